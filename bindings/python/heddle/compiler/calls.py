"""Calls that are not awaited: helper methods of the workflow, recorded steps, constructors; and attributes of ``self``."""
from __future__ import annotations

import ast
import difflib
import enum
import inspect
import typing
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable, Optional

from .. import recorded
from ..actions import Action, Options
from ..operators import hides_fields
from . import construct
from .classes import runs_code
from .expressions import Expressions
from .graph import Form, Graph, Handler
from .inference import is_standard
from .names import Scope
from .operations import METHODS, OF_CLASS, PythonOp, action_for

if TYPE_CHECKING:
    from .program import Program

Emit = Callable[[Optional[Form]], None]
"""Makes the nodes of something awaited; the result goes to the target."""

_RECORDED = (recorded.now, recorded.uuid, recorded.random)


class Method:
    """A method of the workflow: a function of the IR."""

    def __init__(self, function: FunctionType, owner: type, takes: str) -> None:
        self.function = function
        self.owner = owner
        self.takes = takes  # "self", "cls" or "": what its first parameter is
        self.is_async = inspect.iscoroutinefunction(function)


class Calls(Expressions):
    def __init__(self, program: Program, scope: Scope, graph: Graph, method: Method) -> None:
        super().__init__(scope, graph)
        self.program = program
        self.method = method
        self.self_name = scope.params[0] if method.takes and scope.params else None

    # ---- what the other parts of the compiler provide

    def call_method(self, node: ast.Call, method: Method, early: bool) -> Emit:
        raise NotImplementedError

    def action_node(self, node: ast.AST, action: Action[..., Any], named: list[Form], options: Options) -> Emit:
        raise NotImplementedError

    # ---- methods of the workflow

    def is_self(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.self_name and not any(
            node.id in names for names in self.scope.renames)

    def find_method(self, function: ast.expr) -> Optional[Method]:
        """The method of the workflow that is called; None: it is something else."""
        if not isinstance(function, ast.Attribute):
            return None
        base = function.value
        if self.is_self(base):
            return self.program.find_method(function.attr, None) or self._no_method(function)
        if isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and \
                base.func.id == "super" and self.scope.variable("super") is None:
            behind = self._behind(base)
            return self.program.find_method(function.attr, behind) or self._no_super(function, behind)
        if isinstance(base, (ast.Name, ast.Attribute)):
            known = self.scope.peek(base)
            if known is not None and isinstance(known.value, type) and known.value in self.program.own_classes:
                return self.program.find_method(function.attr, None, known.value)
        return None

    def _no_method(self, function: ast.Attribute) -> Optional[Method]:
        """Refuses the call of a method that the class does not have. None: the name is that of another attribute."""
        name, program = function.attr, self.program
        known = program.class_attribute(name)
        if known is not None and name not in program.state and callable(known.value) and not isinstance(
                known.value, (type, Action, FunctionType)):
            self.source.refuse(function, f"{name} is not a plain `def` or `async def` method",
                               "Leave out its decorator; @staticmethod and @classmethod may stay.")
        if name in program.state or known is not None:
            return None
        methods = [method.function.__name__ for method in program.own_methods()]
        near = difflib.get_close_matches(name, methods, 1)
        self.source.refuse(function, f"{program.cls.__name__} has no method {name}",
                           f"Did you mean {near[0]}?" if near else "Define it in the class, or correct the name.")

    def _behind(self, call: ast.Call) -> type:
        """The class behind which super() and ``super(Cls, self)`` look."""
        if not call.args and not call.keywords:
            return self.method.owner
        known = self.scope.known(call.args[0]) if len(call.args) == 2 and not call.keywords else None
        cls = known.value if known is not None else None
        if not isinstance(cls, type) or cls not in self.program.cls.__mro__ or not self.is_self(call.args[1]):
            self.source.refuse(call, f"{ast.unparse(call)} is not supported", "Write super().name(...).")
        return cls

    def _no_super(self, function: ast.Attribute, behind: type) -> Any:
        self.source.refuse(function, f"no class above {behind.__name__} has a method {function.attr}",
                           "Correct the name, or leave out super().")

    def without_self(self, node: ast.Call, method: Method) -> ast.Call:
        """``Cls.name(self, x)``: the call without `self`, which a method always has."""
        function = node.func
        if method.takes != "self" or not isinstance(function, ast.Attribute) or self.is_self(function.value) or \
                isinstance(function.value, ast.Call):
            return node
        if not node.args or not self.is_self(node.args[0]):
            shown = ast.unparse(function)
            self.source.refuse(node, f"the method {shown} is called without {self.self_name or 'self'}",
                               f"Write {shown}({self.self_name}, ...)." if self.self_name else "Call it in a method that has self.")
        return ast.copy_location(ast.Call(function, node.args[1:], node.keywords), node)

    def variable(self, name: str, node: ast.AST) -> Form:
        if name == self.self_name:
            self.source.refuse(node, f"{name} stands alone", "Read and set its attributes, and call its methods."
                               if name == "self" else f"{name} is the object that a method belongs to: write `self` before it.")
        return ["name", name]

    def own_attribute(self, node: ast.Attribute) -> Optional[Form]:
        if not self.is_self(node.value):
            return None
        if node.attr in self.program.state:
            return ["attr", ["name", "self"], node.attr]
        found = self.program.class_attribute(node.attr)
        if found is None:
            self.source.refuse(node, f"{self.program.cls.__name__} has no attribute {node.attr}",
                               "Set it in run, in a helper method or in __init__, or in the class.")
        if isinstance(found.value, property):
            self.source.refuse(node, f"{node.attr} is a property", "Make it a method, and call it.")
        if isinstance(found.value, (FunctionType, staticmethod, classmethod)) or callable(found.value) and \
                not isinstance(found.value, type):
            self.source.refuse(node, f"the method {node.attr} is no value",
                               "Call it; what has to be passed on is its result.")
        return self.scope.constant(found.value, node)

    # ---- steps that are not awaited

    def is_step(self, node: ast.Call) -> bool:
        method = self.find_method(node.func)
        if method is not None:
            return not method.is_async
        if self.known_call(node) is recorded.log:
            return True
        made = self.known_call(node)
        return isinstance(made, type) and self._makes_in_python(made)

    def known_call(self, node: ast.Call) -> Any:
        if isinstance(node.func, (ast.Name, ast.Attribute)) and not (
                isinstance(node.func, ast.Attribute) and self.is_self(node.func.value)):
            known = self.scope.peek(node.func)
            return known.value if known is not None else None
        return None

    def check_defined(self, node: ast.AST) -> None:
        """Raises Unresolved if the called name is not defined yet. To be called before a call is refused: the name may
        be that of an action or a workflow that is defined below the class."""
        function: ast.AST = node.func if isinstance(node, ast.Call) else node
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
            function = function.value.func  # Other().run(x), charge(x).options(...)
        while isinstance(function, ast.Attribute):
            function = function.value  # Flow.helper(self, x)
        if isinstance(function, ast.Name):
            self.scope.known(function)

    def _makes_in_python(self, cls: type) -> bool:
        if cls.__module__ == "builtins" or issubclass(cls, BaseException) and not runs_code(cls):
            return False
        if issubclass(cls, enum.Enum) or is_standard(cls):
            return True
        return self.program.can_have(cls) and runs_code(cls)

    def step(self, node: ast.Call) -> Form:
        result = self.temp()
        into = ["name", result]
        method = self.find_method(node.func)
        function = self.known_call(node)
        if method is not None:
            self.call_method(node, method, False)(into)
        elif function is recorded.log:
            args, names = self.arguments(node)
            if names or not args:
                self.source.refuse(node, "heddle.log takes a text and values for its % signs",
                                   'Write heddle.log("order %s", order).')
            self.action_node(node, recorded.LOG, [["message", ["call", "str", [args[0]]]],
                                                   ["args", ["list", *args[1:]]]], Options())(into)
        else:
            maker = construct.maker(function)
            args, names = self.arguments(node)
            if not is_standard(function):
                self.scope.class_of(function, node)
            self.action_node(node, maker, [["args", ["list", *args]], ["kwargs", construct.named(names)]],
                              Options())(into)
        return into

    def python_op(self, node: PythonOp) -> Form:
        result = ["name", self.temp()]
        if node.operation == OF_CLASS:
            self._attribute_of_class(node, result)
            return result
        operands = self._method_operands(node) if node.operation in METHODS else self.sequence(node.operands)
        self.action_node(node, action_for(node.operation), [["operands", ["list", *operands]]], Options())(result)
        return result

    def _attribute_of_class(self, node: PythonOp, result: Form) -> None:
        """The engine has the attributes of the object. If it says Unsupported, a step asks the class."""
        graph, outer = self.graph, self.graph.handler
        owner, name = self.sequence(node.operands)
        guard, unknown = Handler(outer), f"{result[1]}%"
        graph.flush()
        graph.handler = guard
        graph.do(["assign", ["attr", owner, name], result], node)
        graph.flush()
        graph.handler = outer
        over = graph.take()
        found = graph.handle(guard, node, "of-class", [{"classes": ["Unsupported"], "as": unknown}])
        graph.behind(found, "GUARD", 0)
        graph.do(["del", ["name", unknown]], node)
        self.action_node(node, action_for(OF_CLASS), [["operands", ["list", owner, name]]], Options())(result)
        graph.give(over)

    def _method_operands(self, node: PythonOp) -> list[Form]:
        """CPython looks a method up before it evaluates the arguments. Some classes are known to have it; for other classes
        the engine looks the method up, and raises AttributeError if there is none."""
        value, name, *args = node.operands
        if all(map(self._cannot_fail, args)):
            return self.sequence(node.operands)
        receiver = self.expr(value)
        receiver = receiver if self.is_stable(receiver, ()) else self.keep(receiver, value)
        found: Form = ["call", "heddle.method", [receiver, self.expr(name)]]
        if node.owners:
            classes = ["tuple", *(self.scope.constant(cls, node) for cls in node.owners)]
            found = ["if", ["call", "isinstance", [receiver, classes]], None, found]
        self.graph.do(["expr", found], node)
        return [receiver, self.expr(name), *self.sequence(args)]

    def _cannot_fail(self, node: ast.expr) -> bool:
        """Whether evaluating it cannot fail."""
        if isinstance(node, ast.Name) and self.scope.variable(node.id) in self.scope.stable:
            return True
        return isinstance(node, ast.Constant) or self.scope.peek(node) is not None

    # ---- objects that the engine makes, values that differ from run to run

    def call_other(self, node: ast.Call, function: Any) -> Form:
        if function in _RECORDED:
            if node.args or node.keywords:
                self.source.refuse(node, f"heddle.{function.__name__}() takes no arguments", "Leave them out.")
            return ["call", f"heddle.{function.__name__}", []]
        if function is typing.cast and len(node.args) == 2 and not node.keywords:
            return self.expr(node.args[1])
        if isinstance(function, type):
            return self._new(node, function)
        return super().call_other(node, function)

    def _new(self, node: ast.Call, cls: type) -> Form:
        if self.program.is_workflow(cls):
            self.source.refuse(node, f"{cls.__name__}() is a workflow", f"Write `await {cls.__name__}().run(...)`.")
        if not self.program.can_have(cls) and not hides_fields(cls):
            return super().call_other(node, cls)
        name = self.scope.class_of(cls, node)
        if issubclass(cls, BaseException):
            args, names = self.arguments(node)
            return ["new", name, args, names]
        pairs = self.bind(node, inspect.signature(cls), cls.__name__, 0)
        if pairs is None:
            self.source.refuse(node, f"{cls.__name__}() is called with * or **", "Write its fields one by one.")
        given = dict(pairs)
        defaults = construct.defaults(cls)
        fields = [[name, form] for name, form in pairs]
        for field_name, make in defaults.items():
            if field_name not in given:
                fields.append([field_name, make if isinstance(make, list) else self.scope.constant(make.value, node)])
        return ["new", name, [], fields]

    # ---- arguments by signature

    def bind(self, node: ast.Call, signature: inspect.Signature, shown: str, skip: int) -> Optional[list[tuple[str, Form]]]:
        """Parameters with their forms, in the order of evaluation; None: a star hides which is which."""
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords):
            return None
        parameters = list(signature.parameters.values())[skip:]
        try:
            bound = inspect.Signature(parameters).bind(*node.args, **{str(k.arg): k.value for k in node.keywords})
        except TypeError as error:
            self.source.refuse(node, f"{shown}(): {error}", f"Its parameters are {inspect.Signature(parameters)}.")
        forms = self.sequence([*node.args, *(k.value for k in node.keywords)])
        by_node = {id(value): form for value, form in zip([*node.args, *(k.value for k in node.keywords)], forms)}
        pairs: list[tuple[str, Form]] = []
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                pairs.append((name, ["tuple", *(by_node[id(v)] for v in value)]))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                pairs.append((name, ["dict", *(part for k, v in value.items() for part in (k, by_node[id(v)]))]))
            else:
                pairs.append((name, by_node[id(value)]))
        return self._in_order(pairs, node)

    def _in_order(self, pairs: list[tuple[str, Form]], node: ast.Call) -> list[tuple[str, Form]]:
        """By the order of the call: keyword arguments may stand in another order than the parameters."""
        place = {str(k.arg): i for i, k in enumerate(node.keywords)}
        return sorted(pairs, key=lambda pair: place.get(pair[0], -1))
