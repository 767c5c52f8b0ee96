"""What the compiler says when it refuses a construct: where it stands, what it is, what to write instead."""
from __future__ import annotations

import ast
from typing import NoReturn, Sequence


class CompileError(SyntaxError):
    """A workflow uses something that heddle does not run as CPython would.

    ``filename``, ``lineno``, ``offset`` (from 1) and ``text`` are those of :class:`SyntaxError`; ``reason`` says what is
    refused and ``advice`` what to write instead.
    """

    def __init__(self, reason: str, advice: str, filename: str, lineno: int, offset: int, text: str,
                 end_lineno: int, end_offset: int) -> None:
        # The advice is no note, but a part of the message: Python 3.11 prints a SyntaxError without its notes.
        super().__init__(f"{reason}\n{advice}", (filename, lineno, offset, text, end_lineno, end_offset))
        self.reason = reason
        self.advice = advice

    def __str__(self) -> str:
        line = (self.text or "").rstrip("\n")
        shown = line.lstrip()
        start = (self.offset or 1) - 1 - (len(line) - len(shown))
        end = (self.end_offset or 0) - 1 - (len(line) - len(shown))
        if self.end_lineno != self.lineno or end > len(shown):
            end = len(shown)
        carets = " " * max(start, 0) + "^" * max(end - max(start, 0), 1)
        marked = f"    {shown}\n    {carets}\n" if shown else ""
        return f"{self.filename}:{self.lineno}:{self.offset}: {self.reason}\n{marked}{self.advice}"


class Source:
    """The text of a file, for positions and refusals."""

    def __init__(self, filename: str, lines: Sequence[str]) -> None:
        self.filename = filename
        self.lines = lines

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def column(self, number: int, byte: int) -> int:
        """A column in characters, from 1, of an offset in bytes, which is what ``ast`` counts."""
        return len(self.line(number).encode()[:byte].decode(errors="ignore")) + 1

    def at(self, node: ast.AST) -> str:
        """The position of a node as the IR has it: "flow.py:12:8"."""
        number = getattr(node, "lineno", 1)
        name = self.filename.rpartition("/")[2]
        return f"{name}:{number}:{self.column(number, getattr(node, 'col_offset', 0))}"

    def text(self, node: ast.expr) -> str:
        """What stands there, in one line."""
        first, last = node.lineno, node.end_lineno or node.lineno
        lines = [self.line(number).encode() for number in range(first, last + 1)]
        lines[-1] = lines[-1][:node.end_col_offset]
        lines[0] = lines[0][node.col_offset:]
        return " ".join(b" ".join(lines).decode(errors="ignore").split())

    def refuse(self, node: ast.AST, reason: str, advice: str) -> NoReturn:
        number = getattr(node, "lineno", 1)
        end = getattr(node, "end_lineno", None) or number
        raise CompileError(reason, advice, self.filename, number,
                           self.column(number, getattr(node, "col_offset", 0)), self.line(number), end,
                           self.column(end, getattr(node, "end_col_offset", None) or 0)) from None
