"""Operations that Python does: those of classes whose code the engine does not run.

``price * 2`` of a Decimal, ``when.year`` of a datetime, ``a == b`` of dataclasses with an ``__eq__``: where annotations
tell that an operand is of such a class (inference.py), the operation becomes a recorded step that CPython does in a
worker, as a constructor with code is. What cannot be a step, because objects that can change cross by value, is refused.
Where nothing tells the class, the engine raises ``heddle.Unsupported`` when it meets the object.

:func:`rewrite` puts a :class:`PythonOp` in the place of each such operation."""
from __future__ import annotations

import ast
import asyncio
import enum
import inspect
import typing
from collections import abc
from datetime import timedelta
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Optional

from .. import operators, recorded
from ..actions import Action
from . import deciding
from .builtin import FUNCTIONS
from .classes import class_kind, field_names, lacks
from .inference import NONE, PLAIN, Of, OneOf, Types, element, hints, is_standard, members, type_of
from .names import Scope
from .operations import BINARY, COMPARE, GIVES, METHODS, OF_CLASS, UNARY, PythonOp, method_operands
from .source import Definition
from .tree import walk

if TYPE_CHECKING:
    from .calls import Method
    from .program import Program

_CONSTANTS = (type(None), bool, int, float, str, bytes, tuple, enum.Enum)
_EFFECTS = ("pathlib",)
"""Modules whose methods may do more than compute."""
_OF_MANY = ("sum", "min", "max", "sorted")
_UNMOVED = ("isinstance", "type", "callable")
_LAZY = ("zip", "enumerate", "map", "filter", "reversed", "range")
_MAKES = ("list", "tuple", "set", "dict")
_TEXTS = ("str", "repr", "ascii", "format")
_AT_ONCE = ("list", "tuple", "sorted", "join")
"""What takes all of a generator before it does anything: a list is the same to it."""
_TAKES = (*_OF_MANY, "any", "all", "in", "not in", "list", "tuple", "set", *METHODS)
"""Operations to which an iterable is the same as a list of its elements."""
_ITERATE = ("join", "fromkeys", "extend", "update", "union", "intersection", "difference", "symmetric_difference", "issubset",
            "issuperset", "isdisjoint", "difference_update", "intersection_update", "symmetric_difference_update")
"""Methods that go through the elements of their arguments."""
_PARSE = ("fromisoformat", "strptime", "combine", "fromordinal", "fromisocalendar", "from_float", "from_decimal")
"""Methods of classes of the standard library that only compute."""
_BY_KEY = ("get", "pop", "setdefault", "add", "discard")


_SECONDS: dict[Any, tuple[str, int]] = {asyncio.sleep: ("delay", 0), asyncio.timeout: ("delay", 0),
                                        asyncio.wait_for: ("timeout", 1), recorded.signal: ("timeout", 1)}
"""Functions that take a number of seconds: the parameter, and its place."""


def _has_step(node: ast.AST) -> bool:
    return any(isinstance(part, PythonOp) for part in ast.walk(node))


def _steps_while_running(generator: ast.AST) -> bool:
    """Whether the generator needs a step for each element. The iterable of its first `for` does not count: it is
    computed once, before the generator runs."""
    if not isinstance(generator, ast.GeneratorExp):
        return _has_step(generator)
    first = set(ast.walk(generator.generators[0].iter))
    return any(isinstance(part, PythonOp) and part not in first for part in ast.walk(generator))


class _Rewriter(ast.NodeTransformer):
    def __init__(self, types: Types) -> None:
        self.types = types
        self.source = types.scope.source
        self._tests: set[ast.AST] = set()  # expressions of which only the truth counts
        self._only_arguments: set[ast.AST] = set()  # of f(*x): CPython names f if x cannot be iterated over

    def _op(self, operation: str, operands: list[ast.expr], at: ast.expr, type: Any = None) -> ast.expr:
        made = PythonOp()
        made.operation = operation
        begin = 1 if operation in METHODS else 0 if operation in _TAKES else len(operands)
        made.operands = operands[:begin] + [self._taken(operand) for operand in operands[begin:]]
        made.type = self.types.result(operation, operands) if type is None else type
        if operation in METHODS:
            made.owners = self._owners(operands[0], operands[1])
        return ast.copy_location(made, at)

    def _taken(self, node: ast.expr) -> ast.expr:
        """A view of a dict or an iterator as a list of its elements: neither can leave the workflow."""
        found = self.types.of(node)
        if not (isinstance(found, Of) and found.origin is abc.Iterable):
            return node
        each = [ast.copy_location(ast.Name("each%", context), node) for context in (ast.Load(), ast.Store())]
        return ast.copy_location(ast.ListComp(each[0], [ast.comprehension(each[1], node, [], 0)]), node)

    def _owners(self, value: ast.expr, name: ast.expr) -> tuple[Any, ...]:
        assert isinstance(name, ast.Constant)
        classes = [deciding.class_of(member) for member in members(self.types.of(value)) if deciding.code_says(member, "own_calls")]
        return tuple(cls for cls in classes if hasattr(cls, name.value))

    def _kind(self, *nodes: ast.expr, says: str = "own_operators", any_of: bool = False) -> Any:
        """The first class among the operands whose code decides. Unless the operation gives a text or a truth, one operand
        must be nothing else but such an object or a value that never changes: of others the workflow has the only one."""
        for found in map(self.types.of, nodes):
            cls = deciding.decides(found, says)
            if cls is not None and (any_of or all(deciding.is_fixed(member) or deciding.code_says(member, says) for member in members(found))):
                return cls
        return None

    def _own(self, *nodes: ast.expr, says: str = "own_operators") -> Any:
        """A class of the program among them, whose code decides, and whose objects may change."""
        return next((deciding.class_of(member) for node in nodes for member in members(self.types.of(node))
                     if deciding.code_says(member, says) and not deciding.is_fixed(member)), None)

    def _refuse(self, node: ast.expr, what: str, cls: Any) -> Any:
        self.source.refuse(node, f"{what} of a {cls.__name__} runs code of that class",
                           "Do it in an action that takes the object, and await the call.")

    def _refuse_attribute(self, node: ast.expr, name: str, cls: Any) -> None:
        if isinstance(inspect.getattr_static(cls, name, None), _CONSTANTS):
            self.source.refuse(node, f"{name} is an attribute of the class {cls.__name__}, and no field of its objects",
                               f"Write {cls.__name__}.{name}.")
        self._refuse(node, f"the attribute {name}", cls)

    def _refuse_key(self, node: ast.expr, where: str) -> None:
        """The engine compares keys, and cannot ask the class."""
        found = self.types.of(node)
        inside = (deciding.class_of(member) for part in (found, *deciding.held(found)) for member in members(part)
                  if deciding.code_says(member, "own_operators") and not deciding.is_fixed(member)
                  and not operators.only_orders(deciding.class_of(member)))
        cls = deciding.decides(found, "own_equal") or deciding.within(found, "own_equal") or next(inside, None)
        if cls is not None:
            self.source.refuse(node, f"a {cls.__name__} {where}, which code of that class compares",
                               "Use a text or a number that stands for it: str(...).")

    def _is_enum_class(self, node: ast.expr) -> Optional[Any]:
        known = self.types.scope.peek(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        found = known.value if known is not None else None
        return found if isinstance(found, type) and issubclass(found, enum.Enum) else None

    def _many(self, node: ast.expr, operation: str = "list") -> ast.expr:
        """The expression that a loop iterates over. The members of an enum are known when it is compiled. "elements": it is an
        argument of a function, which raises the TypeError for what cannot be iterated over when the other arguments have
        been evaluated."""
        listed = self._is_enum_class(node)
        if listed is not None:
            return ast.copy_location(ast.Constant(tuple(listed)), node)
        found = self.types.of(node)
        cls = deciding.decides(found, "own_calls")
        if cls is None or not deciding.is_sure(found, "own_calls"):
            return node
        if not deciding.is_fixed(found):
            self._refuse(node, "a loop", cls)
        return self._op(operation, [node], node, Of(list, (element(found),)))

    # ---- truth

    def _mark(self, node: ast.expr) -> None:
        """Only the truth of the expression counts; so it is with the parts of `and`, `or` and `not`."""
        self._tests.add(node)
        for part in node.values if isinstance(node, ast.BoolOp) else [node.operand] if isinstance(node, ast.UnaryOp) else []:
            self._mark(part)

    def _test(self, node: ast.expr) -> ast.expr:
        return self._op("bool", [node], node) if self._kind(node, says="own_truth", any_of=True) else node

    def visit_If(self, node: Any) -> Any:
        self._mark(node.test)
        self.generic_visit(node)
        node.test = self._test(node.test)
        return node

    visit_While = visit_Assert = visit_IfExp = visit_If

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        only_truth = node in self._tests
        self.generic_visit(node)
        if only_truth:
            node.values = [self._test(value) for value in node.values]
            return node
        for value in node.values[:-1]:
            cls = self._kind(value, says="own_truth", any_of=True)
            if cls is not None and not all(isinstance(part, ast.Name) for part in node.values[:-1]):
                self.source.refuse(value, f"whether a {cls.__name__} is true, code of that class says",
                                   "Compare it, or give it a name before.")
            if cls is not None:
                return self._branches(node)
        return node

    def _branches(self, node: ast.BoolOp) -> ast.expr:
        """``a or b`` as ``a if a else b``."""
        made = node.values[-1]
        for value in reversed(node.values[:-1]):
            then, other = (made, value) if isinstance(node.op, ast.And) else (value, made)
            made = ast.copy_location(ast.IfExp(self._test(value), then, other), node)
        return made

    # ---- statements

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.iter = self._many(node.iter)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if all(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            node.value = self._members(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        found = self.types.of(node.target)
        self.generic_visit(node)
        if isinstance(found, Of) and found.origin is list and isinstance(node.op, ast.Add):
            node.value = self._members(node.value)
        cls = deciding.decides(found, "own_operators") or self._kind(node.value)
        if cls is None or isinstance(found, Of) and found.origin is list:
            return node
        if not isinstance(node.target, ast.Name) or not deciding.is_fixed(found) or self._own(node.value):
            self.source.refuse(node.value, f"an operator of a {cls.__name__} runs code of that class", "Write `x = x + y` with a name "
                               "for each, and assign the result; objects of your own classes are added in an action.")
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        return ast.copy_location(ast.Assign([node.target], self._op(f"{BINARY[type(node.op)]}=", [read, node.value], node.value)), node)

    def visit_Match(self, node: ast.Match) -> Any:
        for case in node.cases:
            for pattern, found in self.types.matched(case.pattern, self.types.of(node.subject)):
                cls = deciding.decides(found, "own_equal") if isinstance(pattern, ast.MatchValue) else None
                if isinstance(pattern, ast.MatchValue) and cls is not None:
                    self.source.refuse(pattern.value, f"a case compares with a {cls.__name__}, whose code decides what is equal",
                                       f"Write `case x if x == {ast.unparse(pattern.value)}`.")
            if case.guard is not None:
                self._mark(case.guard)
        self.generic_visit(node)
        for case in node.cases:
            case.guard = case.guard and self._test(case.guard)
        return node

    # ---- comprehensions and lambdas

    def _comprehension(self, node: Any) -> Any:
        first = node.generators[0]
        first.iter = self._many(self.visit(first.iter))
        self.types.over.append(self.types.targets(node.generators))
        for i, clause in enumerate(node.generators):
            if i:
                clause.iter = self._many(self.visit(clause.iter))
            for test in clause.ifs:
                self._mark(test)
            clause.ifs = [self._test(self.visit(test)) for test in clause.ifs]
        for field in ("key", "value", "elt"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        if isinstance(node, (ast.DictComp, ast.SetComp)):
            self._refuse_key(node.key if isinstance(node, ast.DictComp) else node.elt, "as a key or in a set")
        self.types.over.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Lambda(self, node: ast.Lambda, given: Any = None) -> Any:
        """`given`: the type of its parameter, if there is one."""
        self.types.over.append({arg.arg: given for arg in node.args.args})
        self.generic_visit(node)
        self.types.over.pop()
        return node

    def _of_lambda(self, node: ast.Lambda, given: Any) -> Any:
        self.types.over.append({arg.arg: given for arg in node.args.args})
        found = self.types.of(node.body)
        self.types.over.pop()
        return found

    # ---- operators

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if type(node.op) not in BINARY:
            return node
        right = self.types.of(node.right)
        shows = isinstance(node.op, ast.Mod) and self.types.of(node.left) is str and (
            deciding.decides(right, "own_text") or deciding.within(right, "own_text"))
        if self._kind(node.left, node.right) is None and not shows:
            return node
        own = self._own(node.left, node.right)
        if own is not None:
            self._refuse(node, "an operator", own)
        return self._op(BINARY[type(node.op)], [node.left, node.right], node, str if shows else None)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return self._op("not", [node.operand], node) if self._kind(node.operand, says="own_truth", any_of=True) else node
        cls = self._kind(node.operand)
        if cls is None:
            return node
        if self._own(node.operand):
            self._refuse(node, "an operator", cls)
        return self._op(UNARY[type(node.op)], [node.operand], node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        parts = [node.left, *node.comparators]
        for op, part in zip(node.ops, node.comparators):
            listed = self._is_enum_class(part) if isinstance(op, (ast.In, ast.NotIn)) else None
            if listed is not None:
                self.source.refuse(part, f"`in` of the class {listed.__name__}", f"Write isinstance(x, {listed.__name__}).")
        again = all(self._is_again(part) for part in parts[1:-1])
        for i, op in enumerate(node.ops):
            if not self._compares(op, parts[i], parts[i + 1], again):
                continue
            if len(node.ops) > 1 and again:
                pairs = [ast.copy_location(ast.Compare(parts[k], [op], [parts[k + 1]]), node) for k, op in enumerate(node.ops)]
                return ast.copy_location(ast.BoolOp(ast.And(), [self.visit_Compare(pair) for pair in pairs]), node)
            if len(node.ops) > 1:
                self.source.refuse(node, "a chain of comparisons with an object whose class has code for them",
                                   "Give what stands in the middle a name before, or write the comparisons one by one.")
            return self._op(COMPARE[type(op)], parts, node)
        return node

    def _is_again(self, node: ast.expr) -> bool:
        """Whether it may be evaluated twice."""
        return isinstance(node, (ast.Name, ast.Constant)) or isinstance(node, ast.Attribute) and self.types.scope.peek(node) is not None

    def _compares(self, op: ast.cmpop, a: ast.expr, b: ast.expr, again: bool) -> bool:
        """`again`: a chain can be taken apart; else one with a member of an IntEnum is left to the engine."""
        if isinstance(op, (ast.Is, ast.IsNot)):
            return False
        says = "own_equal" if isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) else "own_operators"
        inside = any(deciding.within(self.types.of(part), says) and not deciding.has_only_one(self.types.of(part)) for part in (a, b))
        if not isinstance(op, (ast.Eq, ast.NotEq)):
            inside = inside or any(deciding.within(self.types.of(part), "own_equal") for part in (a, b))
        if isinstance(op, (ast.In, ast.NotIn)):
            if self._own(b) is not None:
                self._refuse(b, "`in`", self._own(b))
            if not again and isinstance(self.types.of(b), enum.EnumMeta) and "bare" in operators.own(self.types.of(b), "enum"):
                return False
            by_value = self._kind(b, says="own_calls") or self.types.of(b) is str and self._kind(a, says="own_calls")
            return inside or by_value is not None and by_value is not False or self._kind(a, says=says) is not None
        return inside or self._kind(a, b, says=says) is not None

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        self.generic_visit(node)
        if self._kind(node.value, says="own_text", any_of=True) is None and deciding.within(self.types.of(node.value), "own_text") is None:
            return node
        conversion = ast.Constant("" if node.conversion < 0 else chr(node.conversion))
        spec = node.format_spec or ast.Constant("")
        made = self._op("text", [node.value, conversion, spec], node.value)
        return ast.copy_location(ast.FormattedValue(made, -1, None), node)

    # ---- keys

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        found = self.types.of(node)
        self.generic_visit(node)
        cls = deciding.decides(self.types.of(node.value), "own_calls")
        if cls is not None and isinstance(node.ctx, ast.Load) and deciding.is_fixed(self.types.of(node.value)):
            if not isinstance(node.slice, ast.Slice):
                return self._op("item", [node.value, node.slice], node, found)
            ends = [part or ast.copy_location(ast.Constant(None), node) for part in (node.slice.lower, node.slice.upper, node.slice.step)]
            return self._op("slice", [node.value, *ends], node, found)
        bounds = [part for part in (node.slice.lower, node.slice.upper, node.slice.step) if part is not None] if isinstance(
            node.slice, ast.Slice) else []
        if isinstance(node.slice, ast.Slice):
            for field in ("lower", "upper", "step"):
                part = getattr(node.slice, field)
                cls = None if part is None else self._kind(part, says="own_calls")
                if cls is not None and issubclass(cls, int):
                    setattr(node.slice, field, self._op("index", [part], part))
        for part in [node.value, *bounds]:
            cls = deciding.decides(self.types.of(part), "own_operators")
            if cls is not None and deciding.is_sure(self.types.of(part), "own_operators"):
                self._refuse(part, "a subscript", cls)
        if not isinstance(node.slice, ast.Slice):
            owner = self.types.of(node.value)
            cls = self._kind(node.slice, says="own_calls")
            if (owner is str or isinstance(owner, Of) and owner.origin in (list, tuple)) and cls is not None and issubclass(cls, int):
                node.slice = self._op("index", [node.slice], node.slice)
            self._refuse_key(node.slice, "as a key")
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        for key in node.keys:
            if key is not None:
                self._refuse_key(key, "as a key")
        return node

    def visit_Set(self, node: ast.Set) -> Any:
        self.generic_visit(node)
        for part in node.elts:
            self._refuse_key(part, "in a set")
        return node

    def visit_Starred(self, node: ast.Starred) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            made = self._many(node.value)
            if isinstance(made, PythonOp) and made is not node.value:
                made.operation = "elements" if node in self._only_arguments else "unpack"
            node.value = made
        return node

    # ---- attributes

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        type_ = self.types.of(node)
        self.generic_visit(node)
        if self.types.is_self(node.value):
            return node
        found = self.types.of(node.value)
        models = [member for member in members(found) if member is not NONE]
        if models and all(isinstance(cls, type) and lacks(cls, node.attr) for cls in models):
            self.source.refuse(node, f"{models[0].__name__} has no field {node.attr}",
                               f"Its fields are {', '.join(field_names(models[0])) or 'none'}.")
        if not isinstance(node.ctx, ast.Load):
            self._check_set(node, found)
            return node
        cls = next((deciding.class_of(m) for m in members(found) if is_standard(m) or isinstance(m, enum.EnumMeta)), None)
        if cls is not None and deciding.is_fixed(found) and (is_standard(cls) or node.attr not in ("name", "value")):
            return self._op("attribute", [node.value, ast.Constant(node.attr)], node, type_)
        made = [member for member in members(found) if isinstance(member, type) and issubclass(member, BaseException)]
        for owner in made or self.types.caught(node.value):
            home = next((c for c in owner.__mro__ if node.attr in c.__dict__), object)
            if home.__module__ != "builtins":
                return self._of_class(node, owner)
        for owner in members(found):
            if isinstance(owner, type) and class_kind(owner) == "record" and node.attr not in field_names(owner) and \
                    hasattr(owner, node.attr) and not node.attr.startswith("__"):
                self._refuse_attribute(node, node.attr, owner)
        return node

    def _of_class(self, node: ast.Attribute, cls: Any) -> ast.expr:
        """``e.code`` of an exception whose class has the attribute, too: the object's own comes first."""
        known = inspect.getattr_static(cls, node.attr, None)
        if not isinstance(known, _CONSTANTS):
            what = "a property" if isinstance(known, property) else f"a {type(known).__name__}"
            self.source.refuse(node, f"{node.attr} of the class {cls.__name__} is {what}", "Make it a constant of the class, as a text, a number "
                               "or a tuple, or an attribute that __init__ sets.")
        self.types.scope.classes.declare(type(known))
        return self._op(OF_CLASS, [node.value, ast.Constant(node.attr)], node, type_of(known))

    def _check_set(self, node: ast.Attribute, found: Any) -> None:
        """Refuses to assign an attribute if code of the class says what that does, whichever class it is of."""
        classes = [member for member in members(found) if member is not NONE]
        name = getattr(classes[0], "__name__", "") if classes else ""
        if isinstance(node.ctx, ast.Del) and any(isinstance(cls, type) and class_kind(cls) == "record" and hasattr(cls, node.attr)
                                                 for cls in classes):
            self.source.refuse(node, f"{node.attr} of a {name} is deleted, and {name}.{node.attr} shows in its place",
                               "Assign the value that it shall have.")
        if classes and all(map(deciding.sets, classes)):
            self.source.refuse(node, f"{name} is frozen: {node.attr} cannot be assigned" if operators.is_frozen_model(classes[0]) else
                               f"assigning {node.attr} of a {name} runs code of that class",
                               f"Make another {name}, or change it in an action that returns it.")

    # ---- calls

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        found = self.types.of(node)
        if len(node.args) == 1:
            self._only_arguments.add(node.args[0])
        if isinstance(function, ast.Attribute) and function.attr in _ITERATE:
            node.args = [self._members(arg) for arg in node.args]
        if isinstance(function, ast.Attribute) and self.types.scope.peek(function) is None:
            return self._method(node, function, found)
        known = self.types.scope.peek(function)
        name = FUNCTIONS.get(known.value) if known is not None and isinstance(known.value, typing.Hashable) else None
        node.keywords = [k for k in node.keywords if not (name in _OF_MANY and k.arg == "key" and _is_none(k.value))]
        if name == "sum" and len(node.args) == 1 and [k.arg for k in node.keywords] == ["start"]:
            node.args, node.keywords = [*node.args, node.keywords[0].value], []
        if name in ("min", "max") and len(node.args) == 1 and [k.arg for k in node.keywords] == ["default"]:
            given = self._or_default(node, name, found)
            if given is not None:
                return given
        if name in ("min", "max") and len(node.args) > 1 and [k.arg for k in node.keywords] == ["key"] and not any(
                isinstance(arg, ast.Starred) for arg in node.args):
            node.args = [ast.copy_location(ast.Tuple(node.args, ast.Load()), node)]
        if name in ("sorted", "min", "max") and len(node.args) == 1:
            made = self._by_key(node, name, found)
            if made is not None:
                return made
        self.generic_visit(node)
        if known is not None and isinstance(function, ast.Attribute) and self._makes_by_method(known.value):
            return self._of_class_method(node, function, known.value.__self__)
        self._check_known(node, known.value if known is not None else None)
        if name == "reversed" and len(node.args) == 1:
            taken = self._many(node.args[0], "backwards")
            if isinstance(taken, PythonOp) and taken is not node.args[0]:
                return taken  # the operation has reversed the elements
        if name in _LAZY and name != "range" or name in ("list", "tuple", "set"):
            begin = 1 if name in ("map", "filter") else 0
            end = 1 if name == "enumerate" else len(node.args)
            alone = len(node.args) == begin + 1 and not node.keywords
            node.args[begin:end] = [self._many(arg, "list" if alone else "elements") for arg in node.args[begin:end]]
        if name in ("min", "max", "sum"):
            self._check_starred(node, name)
        if name is None or name in _UNMOVED or any(isinstance(arg, (ast.Starred, ast.Lambda)) for arg in node.args):
            return node
        begin = 1 if name in ("map", "filter") else 0
        node.args[begin:] = [self._members(arg) for arg in node.args[begin:]]
        if any(isinstance(arg, ast.GeneratorExp) for arg in node.args):
            return self._of_generator(node, name, found)
        return self._function(node, name, found)

    def _makes_by_method(self, function: Any) -> bool:
        owner = getattr(function, "__self__", None)
        return isinstance(owner, type) and is_standard(owner) and getattr(function, "__name__", "") in _PARSE

    def _of_class_method(self, node: ast.Call, function: ast.Attribute, cls: Any) -> ast.expr:
        """``date.fromisoformat(text)``: what it gives depends on nothing but its arguments."""
        self._check_spread(node, function, cls)
        operation, operands = method_operands(function, node)
        made = self._op(operation, operands, node, cls)
        assert isinstance(made, PythonOp)
        made.owners = (type,)
        return made

    def _check_spread(self, node: ast.Call, function: ast.Attribute, cls: Any) -> None:
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(keyword.arg is None for keyword in node.keywords):
            self.source.refuse(node, f"{function.attr}() of a {cls.__name__} is called with * or **", "Write its arguments one by one.")

    def _check_starred(self, node: ast.Call, name: str) -> None:
        for arg in node.args:
            cls = deciding.orders(element(self.types.of(arg.value))) if isinstance(arg, ast.Starred) else None
            if cls is not None:
                self.source.refuse(arg, f"{name}() of objects with code of the class {cls.__name__} is called with *",
                                   f"Give them as one list: {name}([...]).")

    def _check_known(self, node: ast.Call, function: Any) -> None:
        """Arguments of functions that the engine does, which it cannot take as they are."""
        place = _SECONDS.get(function) if isinstance(function, FunctionType) else None
        if place is not None:
            by_name = next((k for k in node.keywords if k.arg == place[0]), None)
            given = by_name.value if by_name is not None else node.args[place[1]] if len(node.args) > place[1] else None
            if given is not None and deciding.decides(self.types.of(given), "own_operators") is timedelta:
                self.source.refuse(given, f"{ast.unparse(node.func)} takes seconds, and is given a timedelta",
                                   "Write .total_seconds() behind it.")
        if isinstance(function, type) and issubclass(function, BaseExceptionGroup) and node.args:
            text = self.types.of(node.args[0])
            if isinstance(text, enum.EnumMeta):
                self.source.refuse(node.args[0], f"the message of an {function.__name__} is a member of {text.__name__}",
                                   "Give its text: .value behind it.")

    def _function(self, node: ast.Call, name: str, found: Any) -> ast.expr:
        if name in _OF_MANY and any(keyword.arg == "key" for keyword in node.keywords):  # the keys are compared, and nothing else
            node.args = [self._many(arg) for arg in node.args]
            return node
        says = "own_text" if name in _TEXTS else "own_truth" if name in ("bool", "any", "all") else "own_operators" if \
            name in _OF_MANY or name in _MAKES else "own_calls"
        cls = self._kind(*node.args, says=says, any_of=name in GIVES)
        each = element(self.types.of(node.args[0])) if node.args else None
        for what in ("own_equal", "own_operators") if name == "set" and cls is None else ():
            if deciding.decides(each, what):
                self._refuse(node, "set()", deciding.decides(each, what))
        if name in _TEXTS and cls is None:
            cls = next((c for c in (deciding.within(self.types.of(arg), says) for arg in node.args) if c), None)
        if name in ("map", "filter") and len(node.args) > 1 and any(
                deciding.decides(element(self.types.of(node.args[-1])), what) for what in ("own_text", "own_truth", "own_operators")):
            self.source.refuse(node, f"{name}() of objects with code of their own", "Write a list: [... for ... in ...].")
        own = self._own(*node.args) or (deciding.decides(each, "own_operators") if name == "dict" else None)
        if name in _MAKES and own is not None:
            self._refuse(node, f"{name}()", own)
        many = len(node.args) <= 2 and (name in _OF_MANY or name in ("any", "all")) and deciding.decides(each, says)
        if name in ("min", "max") and cls is None and not many:
            return self._least(node, name, found)
        if cls is None and not many or name in _LAZY or name in _MAKES and not is_standard(cls):
            return node
        if name in ("min", "max") and not node.keywords and (many and not deciding.is_fixed(each) or own is not None):
            self.source.refuse(node, f"{name}() of objects of the class {(many or own).__name__}, which code of that class compares",
                               f"Write sorted([...]{', reverse=True' if name == 'max' else ''})[0].")
        if node.keywords or many and name in _OF_MANY and not deciding.is_fixed(each) or \
                says in ("own_operators", "own_calls") and name != "len" and own is not None:
            self._refuse(node, f"{name}()", cls or many)
        return self._op(name, node.args, node, found)

    def _least(self, node: ast.Call, name: str, found: Any) -> ast.expr:
        """min() and max() of tuples with objects in them: a copy of such a tuple is as good if nothing in it changes."""
        kinds = [element(self.types.of(node.args[0]))] if len(node.args) == 1 else [self.types.of(arg) for arg in node.args]
        code = next((cls for cls in map(deciding.orders, kinds) if cls is not None), None)
        if code is None:
            return node
        if node.keywords or not all(map(deciding.is_all_fixed, kinds)):
            self.source.refuse(node, f"{name}() of values with a {code.__name__} in them, which code of that class compares",
                               f"Write sorted([...]{', reverse=True' if name == 'max' else ''})[0].")
        return self._op(name, node.args, node, found)

    def _of_generator(self, node: ast.Call, name: str, found: Any) -> ast.expr:
        """CPython adds and compares while the generator runs; a step has all elements at once."""
        each = element(self.types.of(node.args[0]))
        says = "own_truth" if name in ("any", "all") else "own_equal" if name == "set" else "own_operators"
        decides = deciding.decides(each, says) if name in _OF_MANY or name in ("any", "all", "set") else None
        if name in ("min", "max"):
            decides = decides or deciding.orders(each)
        if not _steps_while_running(node.args[0]) and decides is None:
            return node
        if name in _AT_ONCE:
            node.args[0] = _as_list(node.args[0])
            return self._function(node, name, found)
        self.source.refuse(node.args[0], f"{name}() of a generator whose elements are objects with code of their own",
                           f"Write a list: {name}([... for ... in ...]).")

    def _by_key(self, node: ast.Call, name: str, found: Any) -> Optional[ast.expr]:
        """``sorted(orders, key=lambda o: o.price)``: Python says the order of the keys, the workflow sorts its own objects. None:
        the engine does it."""
        by = {keyword.arg: keyword.value for keyword in node.keywords}
        key = by.get("key")
        each = element(self.types.of(node.args[0]))
        keyed = self._of_lambda(key, each) if isinstance(key, ast.Lambda) else each if key is None else None
        if key is None and (name != "sorted" or deciding.is_fixed(each) and not by or deciding.orders(each) is None):
            return None
        if key is not None and not isinstance(key, ast.Lambda):
            if deciding.decides(each, "own_text") and is_standard(deciding.decides(each, "own_text")):
                self.source.refuse(key, f"{name}() by a function of objects with code of their own",
                                   f"Write key=lambda x: {ast.unparse(key)}(x).")
            return None
        copied = None if key is None else self.visit_Lambda(_copied(key), each)
        if copied is not None and not _has_step(copied.body) and deciding.orders(keyed) is None:
            return None
        if name != "sorted" or set(by) - {"key", "reverse"} or copied is not None and len(copied.args.args) != 1:
            self.source.refuse(node, f"{name}() by keys that are objects with code of their own",
                               f"Write sorted(...{', key=...' if by else ''}{', reverse=True' if name == 'max' else ''})[0].")
        return self._sorted(node, copied, by.get("reverse"), each)

    def _or_default(self, node: ast.Call, name: str, found: Any) -> Optional[ast.expr]:
        """``max(xs, default=d)`` as ``[max(all) if all else d for all in [[*xs]]][0]``. None: the engine does it."""
        default, each = node.keywords[0].value, element(self.types.of(node.args[0]))
        if deciding.orders(each) is None or not deciding.is_fixed(each) or not isinstance(default, ast.Constant):
            return None
        elements = self._listed(node.args[0], node)
        self.types.over.append({"all%": Of(list, (each,))})
        made = self._op(name, [ast.copy_location(ast.Name("all%", ast.Load()), node)], node, found)
        self.types.over.pop()
        either = ast.copy_location(ast.IfExp(ast.copy_location(ast.Name("all%", ast.Load()), node), made, default), node)
        return ast.copy_location(ast.Subscript(_comprehension_of(node, either, ("all%", elements)), ast.Constant(0), ast.Load()), node)

    def _listed(self, xs: ast.expr, at: ast.expr) -> ast.expr:
        """``[[*xs]]``"""
        taken = _as_list(self.visit(xs))
        made = ast.copy_location(ast.List([ast.copy_location(ast.Starred(taken, ast.Load()), at)], ast.Load()), at)
        return ast.copy_location(ast.List([made], ast.Load()), at)

    def _sorted(self, node: ast.Call, key: Optional[ast.Lambda], reverse: Optional[ast.expr], each: Any) -> ast.expr:
        """``[all[i] for all in [[*xs]] for i in <order of keys>]``"""
        def name(text: str, context: ast.expr_context) -> ast.expr:
            return ast.copy_location(ast.Name(text, context), node)
        elements = self._listed(node.args[0], node)
        self.types.over.append({"all%": Of(list, (each,)), "at%": int})
        keys = name("all%", ast.Load()) if key is None else _comprehension_of(node, key.body, (key.args.args[0].arg, name("all%", ast.Load())))
        order = self._op("order", [keys, *([self.visit(reverse)] if reverse is not None else [])], node, Of(list, (int,)))
        elt = ast.copy_location(ast.Subscript(name("all%", ast.Load()), name("at%", ast.Load()), ast.Load()), node)
        self.types.over.pop()
        return _comprehension_of(node, elt, ("all%", elements), ("at%", order))

    def _members(self, node: ast.expr) -> ast.expr:
        listed = self._is_enum_class(node)
        return node if listed is None else ast.copy_location(ast.Constant(tuple(listed)), node)

    # ---- methods

    def _method(self, node: ast.Call, function: ast.Attribute, found: Any) -> Any:
        """A step for objects that never change, refused for others; unchanged where the class is not known."""
        owner = self.types.of(function.value)
        function.value = self.visit(function.value)
        node.args = [self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        cls = next((deciding.class_of(m) for m in members(owner) if is_standard(m) or isinstance(m, enum.EnumMeta)), None)
        has_one = any(hasattr(deciding.class_of(member), function.attr) for member in members(owner))
        if cls is not None and deciding.is_fixed(owner) and has_one:
            if cls.__module__.partition(".")[0] in _EFFECTS:
                self._refuse(node, f"{function.attr}()", cls)
            self._check_spread(node, function, cls)
            operation, operands = method_operands(function, node)
            return self._op(operation, operands, node, found)
        for member in members(owner):
            if isinstance(member, type) and class_kind(member) == "record" and function.attr not in field_names(member) and \
                    hasattr(member, function.attr) and not function.attr.startswith("__"):
                self._refuse(function, f"the attribute {function.attr}", member)
        return self._of_container(node, function, owner, found)

    def _compared(self, node: ast.expr, owner: Any, method: str) -> Any:
        """The class whose code says whether elements of a list or tuple are equal to the value, or, of list.index, what the
        ValueError shows; None: there is none."""
        many = isinstance(owner, Of) and owner.origin in (list, tuple)
        kinds = [self.types.of(node), *([element(owner)] if many else [])]
        by_id = any(map(deciding.is_by_id, members(kinds[0])))  # a copy of it is equal to nothing
        direct = None if by_id else next((cls for cls in (deciding.decides(kind, "own_equal") for kind in kinds) if cls is not None), None)
        says = ("own_equal", "own_text") if method == "index" else ("own_equal",)
        inside = (deciding.within(kind, what) for kind in kinds for what in says if not deciding.has_only_one(kind))
        return direct if direct is not None or not many else next((cls for cls in inside if cls is not None), None)

    def _of_container(self, node: ast.Call, function: ast.Attribute, owner: Any, found: Any) -> ast.expr:
        """Methods of built-in classes that look at objects with code of their own."""
        name = function.attr
        each = deciding.orders(element(owner)) if isinstance(owner, Of) else None
        operands = [function.value, ast.Constant(name), *node.args]
        given = [*(arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args), *(keyword.value for keyword in node.keywords)]
        if owner is str and name == "join" and node.args:
            part = element(self.types.of(node.args[0]))
            if _has_step(node.args[0]) or deciding.decides(part, "own_calls"):
                node.args[0] = operands[2] = _as_list(node.args[0])
            if deciding.decides(part, "own_calls") and deciding.is_fixed(part):
                return self._op("method", operands, node, str)
        if owner is str and name in ("format", "format_map") and any(
                deciding.decides(self.types.of(arg), "own_text") or deciding.within(self.types.of(arg), "own_text") for arg in given):
            if any(isinstance(arg, ast.Starred) for arg in node.args) or any(keyword.arg is None for keyword in node.keywords):
                self.source.refuse(node, f"{name}() of objects with code of their own is called with * or **", "Write its arguments one by one.")
            return self._op(*method_operands(function, node), node, str)
        says = "own_operators" if name == "join" else "own_calls"  # the engine joins members of an IntEnum and the like
        if owner is str and not node.keywords and any(
                deciding.decides(self.types.of(arg), says) and deciding.is_fixed(self.types.of(arg)) for arg in node.args):
            return self._op("method", operands, node, found)
        by_key = any(_has_step(k.value) or isinstance(k.value, ast.Lambda) and isinstance(owner, Of) and deciding.orders(
            self._of_lambda(k.value, element(owner))) for k in node.keywords)
        has_key = any(keyword.arg == "key" and not _is_none(keyword.value) for keyword in node.keywords)
        if name == "sort" and (each is not None and not has_key or by_key):
            self.source.refuse(node, "sort() by objects with code of their own", "Write `xs[:] = sorted(xs, ...)`.")
        compares = name in ("index", "count", "remove") and node.args and not node.keywords
        compared = self._compared(node.args[0], owner, name) if compares else None
        if compared is not None:
            if name == "remove":
                self.source.refuse(node, f"remove() of what code of the class {compared.__name__} compares",
                                   "Write `del xs[xs.index(x)]`.")
            return self._op("method", operands, node, int)
        if node.args and name in _BY_KEY and not (isinstance(owner, Of) and owner.origin in (list, tuple)):
            self._refuse_key(node.args[0], "as a key or in a set")
        return node


def _comprehension_of(at: ast.expr, elt: ast.expr, *clauses: tuple[str, ast.expr]) -> ast.expr:
    made = [ast.comprehension(ast.copy_location(ast.Name(target, ast.Store()), at), over, [], 0) for target, over in clauses]
    return ast.copy_location(ast.ListComp(elt, made), at)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _as_list(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.ListComp(node.elt, node.generators), node) if isinstance(node, ast.GeneratorExp) else node


def _may_have_code(found: Any) -> bool:
    """Whether objects of the type may have code of their own. Those of Python's built-in classes have none."""
    if isinstance(found, (Of, OneOf)) and not is_standard(found):
        return any(map(_may_have_code, found.args if isinstance(found, Of) else found.members))
    return is_standard(found) or isinstance(found, type) and found.__module__ != "builtins"


def _brings_objects(found: Any) -> bool:
    """Whether what a name of the module stands for brings objects with code of their own into the workflow: it is such
    an object, their class, or an action that returns them."""
    if isinstance(found, Action):
        return _may_have_code(hints(found.function).get("return"))
    if isinstance(found, (type, FunctionType, BuiltinFunctionType, ModuleType)):
        return isinstance(found, type) and _may_have_code(found)
    return type(found) not in PLAIN and found is not None


def _matters(program: Program, scope: Scope, definition: Definition) -> bool:
    """Whether Python may have to do an operation of the function. False: it has to do with built-in classes only."""
    if program.has_objects(_may_have_code):
        return True
    seen: set[str] = set()
    for node in walk(definition):
        if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Constant):
            return True  # a type in quotes, which may name any class
        name = node.id if isinstance(node, ast.Name) else ""
        if name in seen or not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        if name:
            seen.add(name)
        known = scope.peek(node)
        if known is not None and _brings_objects(known.value):
            return True
    return False


def _copied(node: Any) -> Any:
    """The tree is the module's: other workflows may share the function."""
    if isinstance(node, list):
        return [_copied(part) for part in node]
    if not isinstance(node, (ast.expr, ast.stmt, ast.comprehension, ast.excepthandler, ast.pattern, ast.match_case, ast.keyword,
                             ast.arguments, ast.arg, ast.withitem)):
        return node
    made = type(node)()
    for key, value in vars(node).items():
        setattr(made, key, _copied(value))
    return made


def rewrite(program: Program, scope: Scope, method: Method, definition: Definition) -> Definition:
    """The function with operations that Python does as nodes of their own."""
    if not _matters(program, scope, definition):
        return definition
    made: Definition = _copied(definition)
    rewriter = _Rewriter(Types(program, scope, method, made))
    made.body = [rewriter.visit(statement) for statement in made.body]
    return made
