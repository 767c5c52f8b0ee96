"""A whole workflow: ``run``, the methods that it reaches, its classes and actions, as one IR document (docs/IR.md)."""
from __future__ import annotations

import ast
import builtins
import inspect
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Callable, Iterator, Mapping, Optional

from ..actions import Action
from ..keeping import keep_of
from .bypython import rewrite
from .calls import Method
from .classes import ClassTable, class_kind, class_name
from .coroutines import Sites, declare
from .graph import Form, Graph
from .inference import Attributes, hints
from .inputs import conform_inputs
from .names import Known, Scope, Unresolved
from .refusal import Source
from .source import Definition, at_class, definition_of, without_run
from .statements import Statements
from .tree import forget, walk
from .unbound import unbound_reads


_HOOKS = {"__new__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__"}


@dataclass
class Output:
    """What the compiler makes of a workflow."""

    ir: dict[str, Form]
    actions: dict[str, Action[..., Any]]
    children: dict[str, type]


class Program:
    """The workflow while it is compiled."""

    def __init__(self, cls: Any, name: str, base: type) -> None:
        self.cls: Any = cls
        self.name = name
        self.base = base
        self.own_classes = [c for c in cls.__mro__ if c is not base and c is not object and c not in base.__mro__]
        self.run = _function_of(cls, "run")
        if self.run is _function_of(base, "run"):
            raise without_run(cls)
        self._check_class()
        self.is_concurrent = bool(getattr(cls, "concurrent", False))
        self.journal = getattr(cls, "journal", "none")
        if self.journal not in ("none", "steps", "nodes"):
            raise TypeError(f'{cls.__name__}.journal is "none", "steps" or "nodes", not {self.journal!r}')
        self.keep = keep_of(getattr(cls, "keep", None), f"{cls.__name__}.keep")
        self.classes = ClassTable()
        self.actions: dict[str, Action[..., Any]] = {}
        self.children: dict[str, type] = {}
        self._functions: list[dict[str, Form]] = []
        self._names: dict[FunctionType, str] = {}
        self._queue: list[Method] = []
        self._owners = {function: owner for owner in reversed(cls.__mro__) for function in _functions_in(owner)}
        self.state = self._find_state()
        self.sites = Sites()
        self.attributes = Attributes(self)
        self._has_objects: Optional[bool] = None
        self._names_stop: Optional[bool] = None

    # ---- methods and attributes of the class

    def find_method(self, name: str, after: Optional[type], start: Optional[type] = None) -> Optional[Method]:
        """The method of that name; `after`: the next one behind this class, as super() finds it."""
        order = list((start or self.cls).__mro__)
        if after is not None:
            order = order[order.index(after) + 1:]
        for owner in order:
            found = owner.__dict__.get(name)
            if owner in self.base.__mro__:
                if found is not None:
                    return None
                continue  # classes behind Workflow: class Flow(Workflow, Mixin)
            if isinstance(found, staticmethod) and isinstance(found.__func__, FunctionType):
                return Method(found.__func__, owner, "")
            if isinstance(found, classmethod) and isinstance(found.__func__, FunctionType):
                return Method(found.__func__, owner, "cls")
            if isinstance(found, FunctionType):
                return Method(_own_function(found), owner, "self")
            if found is not None:
                return None
        return None

    def _check_class(self) -> None:
        """Refuses code that CPython would run where the object of the workflow is made, or its attributes are read or set."""
        if type(self.cls).__call__ is not type.__call__:
            raise at_class(self.cls, f"the metaclass {type(self.cls).__name__} makes the objects of {self.cls.__name__} in a way of its own",
                           "Leave it out; set attributes in __init__.")
        for owner in self.own_classes:
            for name in sorted(_HOOKS & vars(owner).keys()):
                function = getattr(vars(owner)[name], "__func__", vars(owner)[name])
                if isinstance(function, FunctionType):
                    module, definition = definition_of(function)
                    module.source.refuse(definition, f"{name} of a workflow, which the engine does not call",
                                         "Leave it out; set attributes in __init__, and compute in methods that are called by name.")
        made = inspect.getattr_static(self.cls, "__init__", None)
        if inspect.iscoroutinefunction(made):
            module, definition = definition_of(made)
            module.source.refuse(definition, "__init__ is async", "Write `def __init__(self)`, and await in run.")

    def class_attribute(self, name: str) -> Optional[Known]:
        for owner in self.cls.__mro__:
            if name in owner.__dict__ and owner is not object:
                return Known(owner.__dict__[name])
        return None

    def _find_state(self) -> set[str]:
        """Attributes that a method sets on self: those live in the instance, all others in the class."""
        found: set[str] = set()
        for owner in self.own_classes:
            for function in _functions_in(owner):
                try:
                    _, definition = definition_of(function)
                except SyntaxError:
                    continue
                found |= _set_on(definition)
        return found

    def check_state(self, name: str, source: Source, node: ast.AST) -> None:
        known = self.class_attribute(name)
        if known is not None and _is_code(known.value):
            what = "property" if isinstance(known.value, property) else "method"
            source.refuse(node, f"{name} is a {what} of the class, and is set on self", "Use another name.")
        if name in ("name", "concurrent", "journal", "keep"):
            source.refuse(node, f"{name} belongs to the class", "Use another name.")

    def own_methods(self) -> Iterator[Method]:
        """All methods of the class that have a source."""
        for owner in self.own_classes:
            for name in vars(owner):
                method = self.find_method(name, None, owner)
                if method is not None and method.owner is owner:
                    yield method

    def scope_of(self, method: Method) -> Scope:
        module, definition = definition_of(method.function)
        return Scope(module, method.function, definition, self.classes)

    def has_objects(self, knows: Callable[[Any], bool]) -> bool:
        """Whether annotations of the class or of its methods name classes that the compiler has to look at."""
        if self._has_objects is None:
            own = {name: hint for name, hint in hints(self.cls).items() if name not in self.base.__annotations__}
            named = [own, *(hints(method.function) for method in self.own_methods())]
            self._has_objects = any(knows(hint) for found in named for hint in found.values())
        return self._has_objects

    # ---- what the functions use

    def use(self, action: Action[..., Any], source: Source, node: ast.AST) -> None:
        if action.name not in self.actions:
            self.classes.meet(action.function)
        known = self.actions.setdefault(action.name, action)
        if known is not action and known.function is not action.function:
            source.refuse(node, f"two actions have the name {action.name}", "Give one of them another: @action(name=...).")

    def use_child(self, child: Any) -> str:
        name: str = child.__heddle__.name
        self.children[name] = child
        self.classes.meet(_own_function(child.run))
        return name

    def is_workflow(self, cls: type) -> bool:
        return issubclass(cls, self.base) and cls is not self.base

    def can_have(self, cls: type) -> bool:
        return class_kind(cls) is not None

    def reach(self, method: Method, source: Source, node: ast.AST) -> str:
        """The method's name in the IR; it is compiled if it has not been yet."""
        name = self._names.get(method.function)
        if name is None:
            wanted = method.function.__name__
            taken = set(self._names.values())
            name = wanted if wanted not in taken else f"{method.owner.__name__}.{wanted}"
            self._names[method.function] = name
            self._queue.append(method)
        return name

    # ---- compiling

    def compile(self) -> Output:
        main = Method(self.run, self._owners.get(self.run, self.cls), "self")
        self._names[self.run] = "run"
        self._queue.append(main)
        while self._queue:
            method = self._queue.pop(0)
            self._functions.append(self._function(method, method is main))
        self._add_awaiting(main)
        ir: dict[str, Form] = {"heddle": 1, "name": self.name, "inputs": self._inputs()}
        if self.journal != "none":
            ir["journal"] = self.journal
        if self.keep is not None:
            ir["keep"] = self.keep.ir()
        if self.classes.entries:
            ir["classes"] = list(self.classes.entries.values())
        ir["functions"] = self._functions
        return Output(ir, self.actions, self.children)

    def _add_awaiting(self, main: Method) -> None:
        """The function that awaits calls that were kept, if there are any."""
        if not self.sites.is_used and not self.sites.writes:
            return
        module, definition = definition_of(main.function)
        declare(self.classes)
        if self.sites.is_used:
            self._functions.append(self.sites.function(module.source, definition, bool(self.state)))

    def _function(self, method: Method, is_main: bool) -> dict[str, Form]:
        module, definition = definition_of(method.function)
        scope = self.scope_of(method)
        self.classes.meet(method.function)
        definition = rewrite(self, scope, method, definition)
        graph = Graph(module.source)
        params = scope.params[1:] if method.takes else scope.params
        if self.state and not is_main:
            params = ["self", *params]
        compiler = Statements(self, scope, graph, method, definition, is_main)
        self._check(definition, compiler, is_main)
        graph.add("ENTRY", definition, "entry")
        if is_main:
            self._begin(compiler, definition)
            conform_inputs(compiler, self.name, method.function, definition)

        def body() -> None:
            compiler.block(definition.body)
            compiler.end_function(None, definition)
        if method.is_async:
            compiler.as_coroutine(body, definition)
        else:
            body()
        self._declare(graph, scope, params, definition)
        return {"name": self._names[method.function], "params": params, "nodes": graph.nodes, "edges": graph.edges}

    def may_stop(self) -> bool:
        """Whether methods of the class name StopIteration, or a class below it."""
        if self._names_stop is None:
            self._names_stop = any(_names(function, function.__code__, _is_stop) for owner in self.own_classes
                                   for function in _functions_in(owner))
        return self._names_stop

    def _declare(self, graph: Graph, scope: Scope, params: list[str], at: ast.AST) -> None:
        """Variables that are read before anything can have assigned them begin without a value."""
        missing = [name for name in unbound_reads(graph, params) if name in scope.locals]
        if not missing:
            return
        entry = graph.nodes[0]["id"]
        behind = [edge for edge in graph.edges if edge[0] == entry]
        made: list[Form] = []
        for name in missing:
            made += [["assign", None, ["name", name]], ["del", ["name", name]]]
        calc = graph.name("declare")
        graph.nodes.insert(1, {"id": calc, "kind": "CALC", "do": made})
        for edge in behind:
            edge[0] = calc
        graph.edges.append([entry, calc])

    def _check(self, definition: Definition, compiler: Statements, is_main: bool) -> None:
        arguments = definition.args
        if is_main and not arguments.posonlyargs and not arguments.args:
            compiler.source.refuse(definition, "run has no parameter self", "Write `async def run(self, ...)`.")
        if is_main and (arguments.vararg or arguments.kwarg):
            compiler.source.refuse(definition, "run takes * or **", "Name the inputs one by one.")
        for node in walk(definition):
            if isinstance(node, (ast.Yield, ast.YieldFrom)):
                compiler.source.refuse(node, "`yield` makes a generator of the method",
                                       "Collect the values in a list and return it.")
        if definition.decorator_list and is_main:
            compiler.source.refuse(definition.decorator_list[0], "run has a decorator", "Leave it out.")

    def _begin(self, compiler: Statements, at: ast.AST) -> None:
        """The object behind `self`, with what the class says and what __init__ does."""
        if self.state:
            self._make_object(compiler, at)
        method = self.find_method("__init__", None)
        if method is not None and (self.state or not self._is_generated(method)):
            call = ast.copy_location(ast.Call(ast.Attribute(ast.Name("self", ast.Load()), "__init__", ast.Load()), [], []), at)
            compiler.call_method(call, method, False)(None)

    def _is_generated(self, method: Method) -> bool:
        """Whether it is the __init__ of a dataclass, which sets what the class has."""
        return method.function.__code__.co_filename == "<string>" and not hasattr(self.cls, "__post_init__")

    def _make_object(self, compiler: Statements, at: ast.AST) -> None:
        name = class_name(self.cls)
        self.classes.add(name, open=True, by_id=True)
        graph = compiler.graph
        graph.do(["assign", ["new", name, []], ["name", "self"]], at)
        for attribute in sorted(self.state):
            known = self.class_attribute(attribute)
            if known is not None and not _is_code(known.value):  # check_state refuses those where they are set
                shown = ast.copy_location(ast.Attribute(ast.Name("self", ast.Load()), attribute, ast.Load()), at)
                graph.do(["assign", compiler.scope.constant(known.value, shown), ["attr", ["name", "self"], attribute]], at)

    def _inputs(self) -> list[Form]:
        module, definition = definition_of(self.run)
        scope = Scope(module, self.run, definition, self.classes)
        inputs: list[Form] = []
        for parameter in list(inspect.signature(self.run).parameters.values())[1:]:
            entry: dict[str, Form] = {"name": parameter.name}
            if parameter.default is not parameter.empty:
                entry["default"] = scope.default(parameter)
            inputs.append(entry)
        return inputs


def _functions_in(cls: type) -> Iterator[FunctionType]:
    for value in vars(cls).values():
        function = getattr(value, "__func__", value)
        if isinstance(function, FunctionType):
            yield _own_function(function)


def _names(function: FunctionType, code: CodeType, wanted: Callable[[Any], bool]) -> bool:
    """Whether the code names an object that is wanted: a global, a built-in, or an attribute of a module."""
    places: list[Mapping[str, Any]] = [inspect.getclosurevars(function).nonlocals if function.__closure__ else {},
                                       function.__globals__, vars(builtins)]
    for name in (*code.co_names, *code.co_freevars):
        found = next((place[name] for place in places if name in place), None)
        if wanted(found) or isinstance(found, ModuleType) and any(wanted(vars(found).get(inner)) for inner in code.co_names):
            return True
    return any(_names(function, inner, wanted) for inner in code.co_consts if isinstance(inner, CodeType))


def _is_code(found: Any) -> bool:
    """Whether an attribute of a class is a method or a property."""
    return callable(found) or isinstance(found, (property, staticmethod, classmethod))


def _is_stop(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, StopIteration)


def _own_function(function: FunctionType) -> FunctionType:
    """What @workflow has put another function around: run."""
    inner = getattr(function, "__wrapped__", function)
    return inner if function.__name__ == "run" and isinstance(inner, FunctionType) else function


def _function_of(cls: type, name: str) -> FunctionType:
    found = inspect.getattr_static(cls, name, None)
    found = _own_function(found) if isinstance(found, FunctionType) else found
    if not isinstance(found, FunctionType) or not (inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found)):
        raise TypeError(f"{cls.__name__} needs a method `async def run(self, ...)`")
    return found


def _set_on(definition: Definition) -> set[str]:
    """Attributes that a method sets on its first parameter."""
    arguments = [*definition.args.posonlyargs, *definition.args.args]
    if not arguments:
        return set()
    first = arguments[0].arg
    return {node.attr for node in walk(definition) if isinstance(node, ast.Attribute) and
            isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == first}


def compile_workflow(cls: Any, name: str, base: type) -> Output:
    """Compiles a class. CompileError: it is refused. Unresolved: a name is not there yet."""
    try:
        return Program(cls, name, base).compile()
    finally:
        forget()


def refuse_unresolved(error: Unresolved) -> None:
    error.source.refuse(error.node, f"the name {error.name} is not defined", "Define or import it, or correct the name.")
