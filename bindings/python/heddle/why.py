"""Why and why not: answers that print well."""
from __future__ import annotations

import os
from typing import Any, Iterator, Sequence


class Why:
    """What caused a node's last run. ``print`` shows a tree; iterating gives the causes as dicts."""

    def __init__(self, name: str, causes: list[dict[str, Any]], runs: int = 0) -> None:
        self.name = name
        self.causes = causes
        self.runs = runs

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.causes)

    def __len__(self) -> int:
        return len(self.causes)

    def __str__(self) -> str:
        lines = [self.name or "node"]
        if not self.causes:
            lines.append("  has run once, because something needs it; nothing that it read has changed since" if self.runs
                         else "  has not run: why_not() says what it waits for")
        return "\n".join(lines + self._tree())

    def _tree(self) -> list[str]:
        """Below each cause those of its writer's run, where it is named first. They come with the causes of one run after
        the other."""
        of: dict[int, list[dict[str, Any]]] = {}
        for cause in self.causes:
            of.setdefault(cause["node"], []).append(cause)
        lines: list[str] = []
        left = [(1, cause) for cause in of.pop(self.causes[0]["node"])[::-1]] if self.causes else []
        while left:
            depth, cause = left.pop()
            lines.append("  " * depth + self._line(cause))
            left += ((depth + 1, below) for below in of.pop(cause["writer_node"], [])[::-1])
        return lines

    @staticmethod
    def _line(cause: dict[str, Any]) -> str:
        by = {"node": cause["writer"] or "a node", "program": "this program"}.get(cause["origin"], cause["origin"])
        change = f": {cause['before']} -> {cause['after']}" if cause["before"] is not None else ""
        later = ", not run for yet" if cause["pending"] else ""
        return f"{cause['cell']}{change}, by {by}{later}"

    __repr__ = __str__


class WhyNot:
    """Why a node does not run now: ``reason`` in a few words, ``text`` in a sentence."""

    def __init__(self, name: str, reason: str, text: str) -> None:
        self.name, self.reason, self.text = name, reason, text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.name}: {self.text}>"


class Graph:
    """What computes what: text at a prompt, a drawing in a notebook, ``save("graph.svg")`` for a file. ``nodes`` and
    ``edges`` are lists of dicts; ``mermaid()`` is a text for drawing tools. The drawing has the cells that each node
    computes, in dashed boxes those that nodes read and the program writes, and the handlers of :meth:`Store.on` with their streams."""

    def __init__(self, data: dict[str, Any], handlers: Sequence[tuple[str, str, list[str]]] = ()) -> None:
        self.nodes: list[dict[str, Any]] = data["nodes"]
        self.edges: list[dict[str, Any]] = data["edges"]
        self._handlers = handlers

    def _repr_svg_(self) -> str:
        from . import drawing

        place = {node["id"]: i for i, node in enumerate(self.nodes)}
        boxes = [drawing.Box(node.get("name") or "(no name)", ", ".join(node.get("outputs", ())),
                             "#fff" if node.get("status") == "clean" else "#fe9") for node in self.nodes]
        edges = [(place[e["from"]], place[e["to"]]) for e in self.edges if e["from"] in place and e["to"] in place]
        computed = {output.partition("#")[0]: place[node["id"]] for node in self.nodes for output in node.get("outputs", ())}
        reads = [(read["cell"], place[node["id"]]) for node in self.nodes for read in node.get("reads", ())
                 if read["cell"].partition("#")[0] not in computed]
        for name, stream, cells in self._handlers:
            reads += ((cell, len(boxes)) for cell in cells)
            boxes.append(drawing.Box(name or "(no name)", f"on {stream}", "#eef"))
        given: dict[str, int] = {}
        for cell, reader in reads:
            writer = computed.get(cell.partition("#")[0])
            if writer is None and cell not in given:
                given[cell] = len(boxes)
                boxes.append(drawing.Box(cell, dashed=True))
            edges.append((given[cell] if writer is None else writer, reader))
        return drawing.graph(boxes, edges)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, in the form that its name ends in: .svg, .mmd (Mermaid) or .txt."""
        from . import drawing

        forms = {".svg": self._repr_svg_, ".mmd": self.mermaid, ".txt": self.__str__}
        form = forms[drawing.ending_of(path, forms)]
        with open(path, "w", encoding="utf-8") as file:
            file.write(form())

    def mermaid(self) -> str:
        lines = ["flowchart LR"]
        lines += (f"  n{node['id']}[{_label(node)}]" for node in self.nodes)
        lines += (f"  n{edge['from']} --> n{edge['to']}" for edge in self.edges)
        return "\n".join(lines)

    def __str__(self) -> str:
        names = {node["id"]: node.get("name") or "(no name)" for node in self.nodes}
        lines = [f"{names[node['id']]}: {node.get('status', '')}" for node in self.nodes]
        lines += (f"{names.get(edge['from'], '?')} -> {names.get(edge['to'], '?')}" for edge in self.edges)
        return "\n".join(lines)

    __repr__ = __str__


def _label(node: dict[str, Any]) -> str:
    return '"' + (node.get("name") or "(no name)").replace('"', "'") + '"'
