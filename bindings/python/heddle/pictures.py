"""A workflow as people look at it: its graph as a drawing or as text, and what runs at once."""
from __future__ import annotations

import os
from typing import Any, Mapping

from . import _heddle, drawing


class WorkflowGraph:
    """The graph of a workflow: a drawing in a notebook, Mermaid's text at a prompt."""

    def __init__(self, ir: Mapping[str, Any], instance: Any = None) -> None:
        self._ir = dict(ir)
        self._instance = instance
        """The document of an instance, which then stands in the picture; None: the workflow alone."""

    def text(self, form: str = "mermaid") -> str:
        """As "mermaid", "dot", "svg", "json" or "text"."""
        return _heddle.workflow_graph(self._ir, form, self._instance)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, in the form that its name ends in: .svg, .dot, .mmd, .json or .txt."""
        forms = {".svg": "svg", ".dot": "dot", ".mmd": "mermaid", ".json": "json", ".txt": "text"}
        form = forms[drawing.ending_of(path, forms)]
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text(form))

    def _repr_svg_(self) -> str:
        return self.text("svg")

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


class Explanation:
    """The nodes and edges of a workflow, which loops run in parallel, and why others do not."""

    def __init__(self, ir: Mapping[str, Any]) -> None:
        self.graph = _heddle.workflow_graph(dict(ir), "text")
        self.loops = _heddle.workflow_explain(dict(ir))

    def _loop(self, loop: Mapping[str, Any]) -> list[str]:
        what = "in parallel" if loop["parallel"] else "one iteration after the other"
        actions = f": {', '.join(loop['actions'])}" if loop["actions"] else ""
        return [f"{loop['at']}  {loop['node']} runs {what}{actions}", *(f"    {why}" for why in loop["why"])]

    def __str__(self) -> str:
        lines = [line for loop in self.loops for line in self._loop(loop)]
        return self.graph.rstrip("\n") + "\n\n" + ("\n".join(lines) if lines else "no loops")

    __repr__ = __str__
