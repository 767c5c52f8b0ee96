"""From a function to its syntax tree, with the positions of its file."""
from __future__ import annotations

import ast
import inspect
import linecache
import re
from types import FunctionType
from typing import Union

from .refusal import CompileError, Source

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Module:
    """A parsed file: its definitions by line and name, and the names that its functions declare ``global``."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.definitions: dict[tuple[int, str], Definition] = {}
        self.rebound: set[str] = set()
        text = "".join(source.lines)
        tree = ast.parse(text, source.filename)
        if any(not name.endswith("__") for name in _UNDERSCORES.findall(text)):
            _mangle(tree, "")
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                self.definitions[first, node.name] = node
            elif isinstance(node, ast.Global):
                self.rebound.update(node.names)


_UNDERSCORES = re.compile(r"\b__\w+")
_NAMED: dict[type[ast.AST], str] = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.ExceptHandler: "name",
                                    ast.MatchAs: "name", ast.MatchStar: "name", ast.MatchMapping: "rest"}
"""Where a name stands in the nodes whose names CPython mangles: not those of keyword arguments."""


def _mangle(node: ast.AST, cls: str) -> None:
    """Gives private names (``__x``) below the node the form that they have in their class: ``_Class__x``."""
    field = _NAMED.get(type(node))
    name = getattr(node, field) if field is not None else None
    if field is not None and cls and name and name.startswith("__") and not name.endswith("__"):
        setattr(node, field, f"_{cls}{name}")
    inside = set(node.body) if isinstance(node, ast.ClassDef) else set()
    for child in ast.iter_child_nodes(node):
        _mangle(child, node.name.lstrip("_") if isinstance(node, ast.ClassDef) and child in inside else cls)


_modules: dict[str, tuple[tuple[str, ...], Module]] = {}


def _missing(function: FunctionType) -> CompileError:
    code = function.__code__
    return CompileError(
        f"the source of {function.__qualname__} cannot be read",
        "Workflows are compiled from their source: define them in a file, not in exec() or at a prompt.",
        code.co_filename, code.co_firstlineno, 1, "", code.co_firstlineno, 1)


def without_run(cls: type) -> CompileError:
    """The refusal of a class that has no ``run``."""
    return at_class(cls, f"class {cls.__name__} has no `async def run(self, ...)`",
                    "Write what the workflow does in this method; its parameters are the inputs of the workflow.")


def at_class(cls: type, reason: str, advice: str) -> CompileError:
    """A refusal at the line of the class."""
    try:
        lines, first = inspect.findsource(cls)
        filename = inspect.getsourcefile(cls) or ""
    except (OSError, TypeError):
        lines, first, filename = [], 0, "?"
    number = next((i for i in range(first, len(lines)) if lines[i].lstrip().startswith("class ")), first)
    line = lines[number].rstrip("\n") if lines else ""
    return CompileError(
        reason, advice,
        filename, number + 1, len(line) - len(line.lstrip()) + 1, line, number + 1, len(line) + 1)


def module_of(function: FunctionType) -> Module:
    """The file that defines the function. Parsed once, and again when its text has changed."""
    filename = inspect.getsourcefile(function) or function.__code__.co_filename
    linecache.checkcache(filename)
    lines = tuple(linecache.getlines(filename, function.__globals__))
    known = _modules.get(filename)
    if known is not None and known[0] == lines:
        return known[1]
    if not lines:
        raise _missing(function)
    try:
        module = Module(Source(filename, lines))
    except SyntaxError:
        raise _missing(function) from None
    _modules[filename] = (lines, module)
    return module


def definition_of(function: FunctionType) -> tuple[Module, Definition]:
    """The tree of a function and the module that it stands in."""
    module = module_of(function)
    found = module.definitions.get((function.__code__.co_firstlineno, function.__name__))
    if found is None:
        raise _made_otherwise(function, module) if module.source.line(function.__code__.co_firstlineno) else _missing(function)
    return module, found


def _made_otherwise(function: FunctionType, module: Module) -> CompileError:
    """The refusal of a lambda, and of what a decorator has made."""
    number = function.__code__.co_firstlineno
    line = module.source.line(number).rstrip("\n")
    return CompileError(
        f"{function.__name__} is not a plain `def` or `async def` method",
        "Leave out its decorator; @staticmethod and @classmethod may stay. Write a method in place of a lambda.",
        module.source.filename, number, len(line) - len(line.lstrip()) + 1, line, number, len(line) + 1)
