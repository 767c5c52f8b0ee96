"""What names stand for: variables of the function, or objects that are there when the workflow is defined."""
from __future__ import annotations

import ast
import builtins
import enum
import inspect
from datetime import timezone
from types import FunctionType, ModuleType
from typing import Any, Optional

from ..actions import Action
from ..operators import hides_fields
from .classes import ClassTable, is_unknown
from .graph import Form
from .refusal import CompileError, Source
from .source import Definition, Module
from .tree import walk

INT_LEAST, INT_MOST = -(1 << 63), (1 << 63) - 1


class Unresolved(Exception):
    """A name is not there yet: it may stand below the class. Compiling is tried again when the workflow is used."""

    def __init__(self, name: str, source: Source, node: ast.AST) -> None:
        super().__init__(name)
        self.name = name
        self.source = source
        self.node = node


class Known:
    """An object that a name or attribute stands for while compiling."""

    def __init__(self, value: Any) -> None:
        self.value = value


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _bind(node: ast.AST, inside: bool, found: set[str]) -> None:
    """Names that a node binds in its function. Targets of comprehensions are their own; ``:=`` in them is not."""
    if isinstance(node, ast.Name):
        if not inside and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        return
    if isinstance(node, ast.NamedExpr):
        found.add(node.target.id)
        _bind(node.value, inside, found)
        return
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        found.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        found.add(node.rest)
    elif isinstance(node, _SCOPES):
        return
    inside = inside or isinstance(node, ast.comprehension)
    for child in ast.iter_child_nodes(node):
        _bind(child, inside, found)


def bound_names(nodes: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        _bind(node, False, found)
    return found


def target_names(target: ast.AST) -> list[str]:
    return [node.id for node in walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


class Scope:
    """The names of one function."""

    def __init__(self, module: Module, function: FunctionType, definition: Definition, classes: ClassTable) -> None:
        self.module = module
        self.source = module.source
        self.function = function
        self.classes = classes
        self.definition = definition
        self.params = list(inspect.signature(function).parameters)
        self.bound = bound_names(definition.body)
        self.locals = self.bound | set(self.params)
        self.stable = {name for name in self.params if name not in self.bound}
        self.renames: list[dict[str, str]] = []
        self._cells = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}

    # ---- variables

    def variable(self, name: str) -> Optional[str]:
        """The variable's name in the IR; None: it is no variable."""
        for names in reversed(self.renames):
            if name in names:
                return names[name]
        return name if name in self.locals else None

    # ---- objects

    def lookup(self, node: ast.Name) -> Any:
        name = node.id
        for place in (self._cells, self.function.__globals__, vars(builtins)):
            if name in place:
                return place[name]
        raise Unresolved(name, self.source, node)

    def known(self, node: ast.AST) -> Optional[Known]:
        """The object that an expression stands for, if that is known now: a name, or an attribute of a module or class."""
        if isinstance(node, ast.Name):
            return None if self.variable(node.id) is not None else Known(self.lookup(node))
        if isinstance(node, ast.Attribute):
            base = self.known(node.value)
            if base is not None and isinstance(base.value, (ModuleType, type)):
                if not hasattr(base.value, node.attr):
                    kind = "module" if isinstance(base.value, ModuleType) else "class"
                    self.source.refuse(node, f"the {kind} {base.value.__name__} has no attribute {node.attr}",
                                       "Correct the name; it is looked up when the workflow is defined.")
                return Known(getattr(base.value, node.attr))
        return None

    def peek(self, node: ast.AST) -> Optional[Known]:
        """The same where a name may not be there: what it is matters only if it is something that the compiler knows."""
        try:
            return self.known(node)
        except Unresolved:
            return None

    # ---- constants

    def constant(self, value: Any, node: ast.AST) -> Form:
        """The form of an object as a constant."""
        plain = self._plain(value, node)
        if value is None or isinstance(value, (bool, int, str)) and plain == value and type(value) in (bool, int, str):
            return plain
        if isinstance(value, float) and type(value) is float:
            return plain
        if isinstance(value, type):
            return ["type", plain["$type"]]
        return ["const", plain]

    def _plain(self, value: Any, node: ast.AST) -> Form:
        if isinstance(value, enum.Enum):
            return {"$enum": self.class_of(type(value), node), "name": value.name, "value": self._plain(value.value, node)}
        if value is None or type(value) in (bool, float, bytes):
            return value
        if type(value) is int:
            if not INT_LEAST <= value <= INT_MOST:
                self.source.refuse(node, f"{value} is beyond 64 bits", "Workflows compute with integers of 64 bits; "
                                   "larger ones can be made and used in an action.")
            return value
        if type(value) is str:
            return value if value.isascii() or _is_whole(value) else {"$str": [ord(c) for c in value]}
        if type(value) is tuple:
            return {"$tuple": [self._plain(item, node) for item in value]}
        if type(value) is range:
            return {"$range": [value.start, value.stop, value.step]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"$tuple": [self._plain(item, node) for item in value], "class": self.class_of(type(value), node)}
        if isinstance(value, type):
            return {"$type": self.class_of(value, node)}
        self._refuse_constant(value, node)

    def default(self, parameter: inspect.Parameter) -> Form:
        """The default of a parameter of this function, as plain data."""
        at = default_node(self.definition, parameter.name)
        value, shown = parameter.default, type(parameter.default).__name__
        if isinstance(value, (list, dict, set)):
            self.source.refuse(at, f"the default of {parameter.name} is a {shown}, which all calls share",
                               f"Use None as the default, and make the object in {self.function.__name__}.")
        try:
            return self._plain(value, at)
        except CompileError:
            if type(value) is int or callable(value):
                raise
            made = ast.unparse(at) if isinstance(at, ast.expr) else f"{shown}(...)"
            self.source.refuse(at, f"the default of {parameter.name} is a {shown}, which is no constant that a workflow can read",
                               f"Write `{parameter.name}: Optional[{shown}] = None`, and in {self.function.__name__} "
                               f"`if {parameter.name} is None: {parameter.name} = {made}`.")

    def _refuse_constant(self, value: Any, node: ast.AST) -> Any:
        shown = ast.unparse(node) if isinstance(node, ast.expr) else "this"
        if isinstance(value, (list, dict, set, bytearray)):
            self.source.refuse(node, f"{shown} is a {type(value).__name__} outside of the workflow, which others may change",
                               "Make it a tuple or another constant, build it inside of run, or give it as an input.")
        if isinstance(value, ModuleType):
            self.source.refuse(node, f"the module {value.__name__} is no value", "Call what you need of it in an action.")
        if isinstance(value, Action):
            self.source.refuse(node, f"the action {shown} is no value in a workflow", f"Call it where it is needed: `await {shown}(...)`.")
        if callable(value):
            self.source.refuse(node, f"the function {shown} is no value in a workflow",
                               "Call an action, or give the function as key= of sorted, min, max or list.sort.")
        if type(value) is timezone:
            offset = round(value.utcoffset(None).total_seconds())
            self.source.refuse(node, f"{shown} is a timezone, which is no constant that a workflow can read",
                               f"Make it in the workflow: `timezone(timedelta({f'seconds={offset}' if offset else 0}))`.")
        self.source.refuse(node, f"{shown} is a {type(value).__name__}, which is no constant that a workflow can read",
                           "Give it to run as an input, or read it in an action.")

    def class_of(self, cls: type, node: ast.AST) -> str:
        """The name of a class in the IR, which then declares it."""
        if is_unknown(cls):
            self.source.refuse(node, f"no object of the class {cls.__name__} can be in a workflow",
                               f"Leave {cls.__name__} out; use its objects in actions only.")
        if hides_fields(cls):
            self.source.refuse(node, f"code of the class {cls.__name__} says what the attributes of its objects are",
                               "Leave out its __getattribute__ and the descriptors of its fields, or use it in actions only.")
        name = self.classes.name(cls)
        if name is None:
            self.source.refuse(node, f"objects of the class {cls.__name__} cannot be in a workflow",
                               "Make it a dataclass, a named tuple, an enum or a pydantic model, or use it in actions only.")
        return name

    def global_constant(self, node: ast.expr, value: Any) -> Form:
        """A constant of the module; one that a function rebinds is none."""
        if isinstance(node, ast.Name) and node.id in self.module.rebound and node.id in self.function.__globals__:
            self.source.refuse(node, f"a function of the module declares {node.id} as global and may change it",
                               "Give the value to run as an input, or read it in an action.")
        return self.constant(value, node)


def default_node(definition: Definition, name: str) -> ast.AST:
    """Where the default of a parameter stands."""
    arguments = definition.args
    places = [*arguments.posonlyargs, *arguments.args]
    by_place = zip(places[len(places) - len(arguments.defaults):], arguments.defaults)
    given = {arg.arg: node for arg, node in (*by_place, *zip(arguments.kwonlyargs, arguments.kw_defaults)) if node is not None}
    return given.get(name, definition)


def _is_whole(text: str) -> bool:
    return not any(0xD800 <= ord(c) <= 0xDFFF for c in text)
