"""Operations that Python does: those of classes whose code the engine does not run.

``price * 2`` of a Decimal, ``when.year`` of a datetime, ``a == b`` of dataclasses with an ``__eq__``: where annotations
tell that an operand is of such a class, the operation becomes a recorded step that CPython does in a worker, as a
constructor with code is. What cannot be a step, because objects of the program's own classes cross by value, is
refused. Where nothing tells the class, the engine raises ``heddle.Unsupported`` when it meets the object.

:func:`rewrite` puts a :class:`PythonOp` in the place of each such operation."""
from __future__ import annotations

import ast
import enum
import operator
import typing
from typing import Any, Callable, Optional

from .. import operators, values
from ..actions import Action, Options
from .builtin import FUNCTIONS
from .classes import class_kind, field_names
from .names import Scope
from .source import Definition
from .tree import walk

_SAMPLES: dict[str, Callable[[Any], Any]] = {
    "datetime:datetime": lambda c: c(2000, 1, 2), "datetime:date": lambda c: c(2000, 1, 2), "datetime:time": lambda c: c(1, 2),
    "datetime:timedelta": lambda c: c(1), "datetime:timezone": lambda c: c.utc, "uuid:UUID": lambda c: c(int=1),
    "decimal:Decimal": lambda c: c(2), "fractions:Fraction": lambda c: c(1, 2), "frozenset": lambda c: c(),
    **{f"pathlib:{name}": lambda c: c("a/b") for name in ("Path", "PosixPath", "PurePath", "PurePosixPath")}}
"""An object of each class of the standard library that crosses: trying an operation tells the class of its result."""
_PLAIN: dict[Any, Any] = {int: 2, float: 1.5, str: "a", bool: True, bytes: b"a"}
_EFFECTS = ("pathlib",)
"""Modules whose methods may do more than compute."""

_BINARY: dict[Any, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.LShift: "<<",
    ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_UNARY: dict[Any, str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "inv", ast.Not: "not"}
_COMPARE: dict[Any, str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
                            ast.NotIn: "not in"}


def _text(value: Any, conversion: str, spec: str) -> str:
    shows: dict[str, Callable[[Any], Any]] = {"r": repr, "s": str, "a": ascii, "": lambda given: given}
    return format(shows[conversion](value), spec)


_DOES: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "neg": operator.neg, "pos": operator.pos, "inv": operator.invert, "not": operator.not_, "==": operator.eq,
    "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b, "attribute": getattr, "text": _text,
    "method": lambda value, name, *args: getattr(value, name)(*args), **{name: function for function, name in FUNCTIONS.items()}}
_GIVES: dict[str, type] = {**{name: str for name in ("text", "str", "repr", "ascii", "format")}, "len": int,
                           **{name: bool for name in ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "not", "bool")}}
_OF_MANY = ("sum", "min", "max", "sorted", "set", "str", "repr")
_UNMOVED = ("isinstance", "type", "callable")
_LAZY = ("zip", "enumerate", "map", "filter", "reversed", "range")
_actions: dict[str, Action[..., Any]] = {}


def action_for(operation: str) -> Action[..., Any]:
    """The action that does the operation."""
    known = _actions.get(operation)
    if known is None:
        does = _DOES[operation]

        def run(operands: list[Any]) -> Any:
            return does(*operands)
        run.__name__ = run.__qualname__ = f"python {operation}"
        known = _actions[operation] = Action(run, f"heddle.python.{operation}", Options())
    return known


class PythonOp(ast.expr):
    """An operation on values that Python does."""

    _fields = ("operands",)
    operands: list[ast.expr]
    operation: str
    type: Any


class _Unset:
    """The type of a variable while nothing is known of it yet."""


UNSET = _Unset()


def is_standard(cls: Any) -> bool:
    """A class of the standard library whose objects never change, and cross."""
    return isinstance(cls, type) and values.class_name(cls) in _SAMPLES


def _says(cls: Any, what: str) -> bool:
    """Whether code of the class decides this: "own_operators", "own_text", "own_equal", "own_truth"."""
    if not isinstance(cls, type) or cls in _PLAIN:
        return False
    if is_standard(cls):
        return True
    kind = class_kind(cls)
    if kind is None or kind == "tuple":
        return False
    flags = operators.own(cls, kind)
    return what in flags and not (what == "own_operators" and "bare" in flags)


def _element(hint: Any) -> Any:
    """What a loop over it gives; None: not known."""
    args = typing.get_args(hint)
    many = typing.get_origin(hint) in (list, set, frozenset) and len(args) == 1 or \
        typing.get_origin(hint) is tuple and len(args) == 2 and args[1] is Ellipsis
    return args[0] if many else UNSET if hint is UNSET else None


def _hints(of: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(of)
    except Exception:  # an annotation may name what is only there for type checkers
        return {}


class Types:
    """What annotations tell of expressions: a class, ``list[...]`` of one, or None."""

    def __init__(self, scope: Scope, definition: Definition) -> None:
        self.scope = scope
        hints = _hints(scope.function)
        self.variables: dict[str, Any] = {name: hints.get(name) for name in scope.params}
        self.over: list[dict[str, Any]] = []
        found: dict[str, list[Any]] = {name: [] for name in scope.bound}
        for node in definition.body:
            self._bindings(node, found)
        for name in scope.params:
            if name in found:
                found[name].append(None)
        self.variables.update({name: UNSET for name in found})
        for _ in range(len(found) + 1):
            before = dict(self.variables)
            for name, given in found.items():
                self.variables[name] = self._join([None if e is None else e(self) for e in given])
            if before == self.variables:
                break

    @staticmethod
    def _join(types: list[Any]) -> Any:
        known = [t for t in types if t is not UNSET]
        return UNSET if not known else known[0] if all(t == known[0] for t in known) else None

    def _bindings(self, node: ast.AST, found: dict[str, list[Any]]) -> None:
        """What the statement gives to each variable; None: something that is not known."""
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    if node.value is not None:
                        found[target.id].append(lambda types, value=node.value: types.of(value))
                else:
                    self._unknown(target, found)
            if node.value is not None:
                self._bindings(node.value, found)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            found[node.target.id].append(lambda types: types.of(value))
            self._bindings(node.value, found)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            found[node.target.id].append(lambda types, over=node.iter: _element(types.of(over)))
            for part in (node.iter, *node.body, *node.orelse):
                self._bindings(part, found)
        elif isinstance(node, ast.NamedExpr):
            found[node.target.id].append(lambda types, value=node.value: types.of(value))
            self._bindings(node.value, found)
        elif isinstance(node, ast.Delete):
            pass
        elif isinstance(node, ast.comprehension):
            for part in (node.iter, *node.ifs):
                self._bindings(part, found)
        else:
            self._name_of(node, found)
            for child in ast.iter_child_nodes(node):
                self._bindings(child, found)

    def _unknown(self, target: ast.AST, found: dict[str, list[Any]]) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in found:
                found[node.id].append(None)

    def _name_of(self, node: ast.AST, found: dict[str, list[Any]]) -> None:
        name = getattr(node, "name", None) if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) else \
            getattr(node, "rest", None) if isinstance(node, ast.MatchMapping) else \
            node.id if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else None
        if name in found:
            found[name].append(None)

    # ---- expressions

    def of(self, node: Optional[ast.AST]) -> Any:
        if isinstance(node, PythonOp):
            return node.type
        if isinstance(node, ast.Name):
            for names in reversed(self.over):
                if node.id in names:
                    return names[node.id]
            return self.variables[node.id] if node.id in self.variables else self._of_known(node)
        if isinstance(node, ast.Constant):
            return type(node.value)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        if isinstance(node, ast.Await):
            return self._of_call(node.value, True)
        if isinstance(node, ast.Call):
            return self._of_call(node, False)
        if isinstance(node, ast.IfExp):
            return self._join([self.of(node.body), self.of(node.orelse)])
        if isinstance(node, ast.BinOp):
            return self.result(_BINARY.get(type(node.op), ""), [node.left, node.right])
        if isinstance(node, ast.UnaryOp):
            return self.result(_UNARY[type(node.op)], [node.operand])
        if isinstance(node, ast.JoinedStr):
            return str
        if isinstance(node, ast.ListComp):
            with_targets = self.targets(node.generators)
            self.over.append(with_targets)
            found = self.of(node.elt)
            self.over.pop()
            return list[found] if isinstance(found, type) else None  # type: ignore[valid-type]
        return None

    def targets(self, clauses: list[ast.comprehension]) -> dict[str, Any]:
        """The variables of a comprehension."""
        found: dict[str, Any] = {}
        self.over.append(found)
        for clause in clauses:
            element = _element(self.of(clause.iter))
            for node in ast.walk(clause.target):
                if isinstance(node, ast.Name):
                    found[node.id] = element if node is clause.target else None
        self.over.pop()
        return found

    def _of_known(self, node: ast.expr) -> Any:
        known = self.scope.peek(node)
        return type(known.value) if known is not None and isinstance(known.value, (enum.Enum, int, str, float)) else None

    def _of_attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and self.scope.variable(node.value.id) is None and not any(
                node.value.id in names for names in self.over):
            return self._of_known(node)
        owner = self.of(node.value)
        if is_standard(owner):
            return self.result("attribute", [node.value, ast.Constant(node.attr)])
        if isinstance(owner, type) and class_kind(owner) in ("record", "tuple") and node.attr in field_names(owner):
            return _hints(owner).get(node.attr)
        return UNSET if owner is UNSET else None

    def _of_call(self, node: ast.AST, awaited: bool) -> Any:
        if not isinstance(node, ast.Call):
            return None
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "options" and isinstance(function.value, ast.Call):
            return self._of_call(function.value, awaited)
        known = self.scope.peek(function) if isinstance(function, (ast.Name, ast.Attribute)) else None
        if known is not None and isinstance(known.value, Action):
            return _hints(known.value.function).get("return") if awaited else None
        if known is not None and isinstance(known.value, type) and known.value not in FUNCTIONS:
            return known.value if is_standard(known.value) or class_kind(known.value) else None
        name = FUNCTIONS.get(known.value) if known is not None and isinstance(known.value, typing.Hashable) else None
        if name is not None and not node.keywords:
            return self.result(name, node.args)
        if isinstance(function, ast.Attribute) and known is None and not node.keywords:
            return self.result("method", [function.value, ast.Constant(function.attr), *node.args])
        return None

    def result(self, operation: str, operands: list[ast.expr]) -> Any:
        """The class of what the operation gives, tried with objects of these classes."""
        if operation in _GIVES:
            return _GIVES[operation]
        types = [self.of(operand) for operand in operands]
        if any(t is UNSET for t in types):
            return UNSET
        if operation == "sum" and len(types) == 1:
            return _element(types[0])
        if operation in ("+", "-", "*") and all(t in (int, float) for t in types):
            return float if float in types else int
        if operation in ("|", "&", "^") and isinstance(types[0], enum.EnumMeta) and types[0] is types[-1]:
            return types[0]
        samples = [self._sample(operand, t) for operand, t in zip(operands, types)]
        if any(sample is None for sample in samples) or operation not in _DOES or not any(map(is_standard, types)):
            return None
        try:
            made = _DOES[operation](*samples)
        except Exception:
            return None
        return type(made) if type(made) in _PLAIN or is_standard(type(made)) else None

    def _sample(self, node: ast.expr, cls: Any) -> Any:
        if is_standard(cls):
            return _SAMPLES[values.class_name(cls)](cls)
        if isinstance(node, ast.Constant) and (isinstance(node.value, str) or isinstance(node.value, int) and abs(node.value) < 100):
            return node.value
        return _PLAIN.get(cls) if isinstance(cls, type) else None


class _Rewriter(ast.NodeTransformer):
    def __init__(self, types: Types) -> None:
        self.types = types
        self.source = types.scope.source

    def _op(self, operation: str, operands: list[ast.expr], at: ast.expr) -> ast.expr:
        made = PythonOp()
        made.operation, made.operands, made.type = operation, operands, self.types.result(operation, operands)
        return ast.copy_location(made, at)

    def _kind(self, *nodes: ast.expr, says: str = "own_operators") -> Any:
        """The first class among the operands whose code decides."""
        return next((cls for cls in map(self.types.of, nodes) if _says(cls, says)), None)

    def _refuse(self, node: ast.expr, what: str, cls: Any) -> Any:
        self.source.refuse(node, f"{what} of a {cls.__name__} runs code of that class",
                           "Do it in an action that takes the object, and await the call.")

    def _is_enum_class(self, node: ast.expr) -> Optional[Any]:
        known = self.types.scope.peek(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        found = known.value if known is not None else None
        return found if isinstance(found, type) and issubclass(found, enum.Enum) else None

    def _many(self, node: ast.expr) -> ast.expr:
        """What a loop goes through: the members of an enum are known now."""
        members = self._is_enum_class(node)
        if members is not None:
            return ast.copy_location(ast.Constant(tuple(members)), node)
        cls = self.types.of(node)
        if is_standard(cls) or isinstance(cls, enum.EnumMeta) and _says(cls, "own_operators"):
            return self._op("list", [node], node)
        if _says(cls, "own_operators"):
            self._refuse(node, "a loop", cls)
        return node

    def _test(self, node: ast.expr) -> ast.expr:
        return self._op("bool", [node], node) if self._kind(node, says="own_truth") else node

    # ---- statements

    def visit_If(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = self._test(node.test)
        return node

    visit_While = visit_Assert = visit_IfExp = visit_If

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.iter = self._many(node.iter)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        cls = self.types.of(node.target)
        if isinstance(node.target, ast.Name) and (is_standard(cls) or self._kind(node.value) and cls in _PLAIN):
            value = ast.copy_location(ast.BinOp(ast.copy_location(ast.Name(node.target.id, ast.Load()), node), node.op, node.value), node)
            return ast.copy_location(ast.Assign([node.target], self.visit(value)), node)
        self.generic_visit(node)
        if _says(cls, "own_operators") or self._kind(node.value):
            self._refuse(node.value, "an operator", cls if _says(cls, "own_operators") else self._kind(node.value))
        return node

    # ---- comprehensions

    def _comprehension(self, node: Any) -> Any:
        first = node.generators[0]
        first.iter = self._many(self.visit(first.iter))
        self.types.over.append(self.types.targets(node.generators))
        for i, clause in enumerate(node.generators):
            if i:
                clause.iter = self._many(self.visit(clause.iter))
            clause.ifs = [self._test(self.visit(test)) for test in clause.ifs]
        for field in ("key", "value", "elt"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self.types.over.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.types.over.append({arg.arg: None for arg in node.args.args})
        self.generic_visit(node)
        self.types.over.pop()
        return node

    # ---- expressions

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        cls = self._kind(node.left, node.right)
        if cls is None or type(node.op) not in _BINARY:
            return node
        if not is_standard(cls) and not issubclass(cls, enum.Enum):
            self._refuse(node, "an operator", cls)
        return self._op(_BINARY[type(node.op)], [node.left, node.right], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        cls = self._kind(node.operand, says="own_truth" if isinstance(node.op, ast.Not) else "own_operators")
        if cls is None:
            return node
        if not isinstance(node.op, ast.Not) and not is_standard(cls) and not issubclass(cls, enum.Enum):
            self._refuse(node, "an operator", cls)
        return self._op(_UNARY[type(node.op)], [node.operand], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        for i, value in enumerate(node.values):
            cls = self._kind(value, says="own_truth")
            if cls is not None:
                self.source.refuse(value, f"whether a {cls.__name__} is true, code of that class says",
                                   "Write bool(...) around it, or compare it.")
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        parts = [node.left, *node.comparators]
        for i, op in enumerate(node.ops):
            if not self._compares(op, parts[i], parts[i + 1]):
                continue
            if len(node.ops) > 1:
                self.source.refuse(node, "a chain of comparisons with an object whose class has code for them",
                                   "Write the comparisons one by one, with `and` in between.")
            return self._op(_COMPARE[type(op)], parts, node)
        return node

    def _compares(self, op: ast.cmpop, a: ast.expr, b: ast.expr) -> bool:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return False
        if isinstance(op, (ast.In, ast.NotIn)):
            return is_standard(self.types.of(b))
        return self._kind(a, b, says="own_equal" if isinstance(op, (ast.Eq, ast.NotEq)) else "own_operators") is not None

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        self.generic_visit(node)
        if self._kind(node.value, says="own_text") is None:
            return node
        conversion = ast.Constant("" if node.conversion < 0 else chr(node.conversion))
        spec = node.format_spec or ast.Constant("")
        made = self._op("text", [node.value, conversion, spec], node.value)
        return ast.copy_location(ast.FormattedValue(made, -1, None), node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        cls = self.types.of(node.value)
        if not isinstance(node.ctx, ast.Load) or not isinstance(cls, type) or cls in _PLAIN:
            return node
        if is_standard(cls) or issubclass(cls, enum.Enum) and node.attr not in ("name", "value"):
            return self._op("attribute", [node.value, ast.Constant(node.attr)], node)
        if class_kind(cls) == "record" and node.attr not in field_names(cls) and hasattr(cls, node.attr) and \
                not node.attr.startswith("__"):
            self._refuse(node, f"the attribute {node.attr}", cls)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        if isinstance(function, ast.Attribute):
            return self._method(node, function)
        self.generic_visit(node)
        known = self.types.scope.peek(function)
        name = FUNCTIONS.get(known.value) if known is not None and isinstance(known.value, typing.Hashable) else None
        if name is None or name in _UNMOVED or any(isinstance(arg, (ast.Starred, ast.Lambda, ast.GeneratorExp)) for arg in node.args):
            return node
        node.args = [self._members(arg) for arg in node.args]
        says = "own_text" if name in ("str", "repr", "ascii", "format") else "own_truth" if name == "bool" else "own_operators"
        cls = self._kind(*node.args, says=says)
        many = name in _OF_MANY and len(node.args) == 1 and is_standard(_element(self.types.of(node.args[0])))
        if cls is None and not many or name in _LAZY or name in ("list", "tuple") and not is_standard(cls):
            return node
        if node.keywords or cls is not None and says == "own_operators" and name != "len" and not is_standard(cls):
            self._refuse(node, f"{name}()", cls or _element(self.types.of(node.args[0])))
        return self._op(name, node.args, node)

    def _members(self, node: ast.expr) -> ast.expr:
        members = self._is_enum_class(node)
        return node if members is None else ast.copy_location(ast.Constant(tuple(members)), node)

    def _method(self, node: ast.Call, function: ast.Attribute) -> Any:
        """A step for objects that never change, refused for others; unchanged where the class is not known."""
        cls = self.types.of(function.value)
        function.value = self.visit(function.value)
        node.args = [self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if not isinstance(cls, type) or cls in _PLAIN or not hasattr(cls, function.attr):
            return node
        if not is_standard(cls) and not issubclass(cls, enum.Enum):
            return self._own_method(node, function, cls)
        if cls.__module__.partition(".")[0] in _EFFECTS or node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
            self._refuse(node, f"{function.attr}()", cls)
        return self._op("method", [function.value, ast.Constant(function.attr), *node.args], node)

    def _own_method(self, node: ast.Call, function: ast.Attribute, cls: Any) -> Any:
        if class_kind(cls) == "record" and function.attr not in field_names(cls) and not function.attr.startswith("__"):
            self._refuse(function, f"the attribute {function.attr}", cls)
        return node


def _matters(scope: Scope, definition: Definition) -> bool:
    """Whether the function meets anything that this module knows."""
    def own(hint: Any) -> bool:
        return any(map(own, typing.get_args(hint))) or isinstance(hint, type) and hint not in _PLAIN and (
            is_standard(hint) or class_kind(hint) in ("record", "enum"))
    if any(map(own, _hints(scope.function).values())):
        return True
    seen: set[str] = set()
    for node in walk(definition):
        name = node.id if isinstance(node, ast.Name) else ""
        if name in seen or not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        if name:
            seen.add(name)
        known = scope.peek(node)
        found = known.value if known is not None else None
        if isinstance(found, Action) and own(_hints(found.function).get("return")) or own(found) or isinstance(found, enum.Enum):
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


def rewrite(scope: Scope, definition: Definition) -> Definition:
    """The function with operations that Python does as nodes of their own."""
    if not _matters(scope, definition):
        return definition
    made: Definition = _copied(definition)
    rewriter = _Rewriter(Types(scope, made))
    made.body = [rewriter.visit(statement) for statement in made.body]
    return made
