"""From Python to IR: see docs/IR.md. Every construct means what it means in CPython 3.11, or is refused."""
from __future__ import annotations

from .classes import class_name
from .names import Unresolved
from .program import Output, compile_workflow, refuse_unresolved
from .refusal import CompileError

__all__ = ["CompileError", "Output", "Unresolved", "class_name", "compile_workflow", "refuse_unresolved"]
