"""What annotations tell of the expressions of a function: the classes of their values, also of those inside of containers.

A type is a class; :class:`Of` (``list[Decimal]``, what an action's call gives when it is awaited); :class:`OneOf` several;
None, where nothing is known; or UNSET, while nothing is known yet of a variable. Annotations of parameters, variables,
fields, attributes and results tell it, and so do displays, loops, comprehensions and operations on what is known: the class
of an operation's result is found by trying it with sample objects.

It decides who does an operation (bypython.py), and nothing else. An annotation that is wrong makes no wrong answer: either
CPython does the operation, with whatever the operands are, or the engine meets an object that it refuses to judge."""
from __future__ import annotations

import ast
import collections
import collections.abc as abc
import enum
import itertools
import typing
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Union

from .. import values
from ..actions import Action
from .builtin import FUNCTIONS
from .classes import class_kind, field_names
from .names import Scope
from .operations import BINARY, DOES, GIVES, UNARY, PythonOp, method_operands
from .source import Definition, definition_of
from .tree import walk

if TYPE_CHECKING:
    from .calls import Method
    from .program import Program

SAMPLES: dict[str, Callable[[Any], Any]] = {
    "datetime:datetime": lambda c: c(2000, 1, 2), "datetime:date": lambda c: c(2000, 1, 2), "datetime:time": lambda c: c(1, 2),
    "datetime:timedelta": lambda c: c(1), "datetime:timezone": lambda c: c.utc, "uuid:UUID": lambda c: c(int=1),
    "decimal:Decimal": lambda c: c(2), "fractions:Fraction": lambda c: c(1, 2), "frozenset": lambda c: c(),
    **{f"pathlib:{name}": lambda c: c("a/b") for name in ("Path", "PosixPath", "PurePath", "PurePosixPath")}}
"""An object of each class of the standard library that crosses: trying an operation tells the class of its result."""
PLAIN: dict[Any, Any] = {int: 2, float: 1.5, str: "a", bool: True, bytes: b"a"}
NONE: Any = type(None)
MOST, DEEPEST, TRIED = 6, 5, 64
"""Members of a OneOf, nesting of an Of, combinations of samples: beyond these nothing is known."""


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET = _Unset()


@dataclass(frozen=True)
class Of:
    """A container, or something to loop over (Iterable) or to await (Awaitable)."""

    origin: Any
    args: tuple[Any, ...]  # a tuple: its places, or one type and Ellipsis; a dict: key and value


@dataclass(frozen=True)
class OneOf:
    members: frozenset[Any]


def is_standard(cls: Any) -> bool:
    """A class of the standard library whose objects never change, and cross."""
    cls = cls.origin if isinstance(cls, Of) else cls
    return isinstance(cls, type) and values.is_standard(cls)


def members(found: Any) -> tuple[Any, ...]:
    return tuple(found.members) if isinstance(found, OneOf) else (found,)


def _depth(found: Any) -> int:
    if isinstance(found, Of):
        return 1 + max(map(_depth, found.args), default=0)
    return max(map(_depth, found.members)) if isinstance(found, OneOf) else 0


def _of(origin: Any, *args: Any) -> Any:
    made = Of(origin, args)
    return made if _depth(made) <= DEEPEST else None


def _merge(a: Of, b: Of) -> Any:
    if a.origin is tuple and (len(a.args) != len(b.args) or Ellipsis in (*a.args, *b.args)):
        return _of(tuple, join([t for t in (*a.args, *b.args) if t is not Ellipsis]), ...)
    return _of(a.origin, *(join(pair) for pair in zip(a.args, b.args)))


def _sum(a: Of, b: Of) -> Any:
    fixed = a.origin is b.origin is tuple and Ellipsis not in (*a.args, *b.args) and len(a.args) + len(b.args) <= MOST
    if fixed:
        return _of(tuple, *a.args, *b.args)
    return _of(a.origin, join([element(a), element(b)]), *([...] if a.origin is tuple else []))


def join(types: Any) -> Any:
    """What is of one of these types."""
    found: dict[Any, Any] = {}
    for t in types:
        if t is None:
            return None
        for member in () if t is UNSET else members(t):
            key = member.origin if isinstance(member, Of) else member
            known = found.get(key)
            found[key] = _merge(known, member) if isinstance(known, Of) and isinstance(member, Of) else member
    if len(found) > MOST or None in found.values():
        return None
    return UNSET if not found else next(iter(found.values())) if len(found) == 1 else OneOf(frozenset(found.values()))


def fill(found: Any, declared: Any) -> Any:
    """The type `found`, with the parts that are not known taken from the annotation `declared`: a list of unknown
    elements that is annotated with list[Decimal] is a list of Decimals."""
    if found is None:
        return declared
    if not isinstance(found, Of):
        return found
    for member in members(declared):
        if not isinstance(member, Of):
            continue
        if found.origin is tuple and member.origin in (tuple, list):  # gather gives a list with a type for each place
            any_place = ... in found.args
            return _of(tuple, *(... if part is ... else fill(part, item(member, None if any_place else i)) for i, part in enumerate(found.args)))
        if member.origin is found.origin:
            return _of(found.origin, *(fill(part, said) for part, said in zip(found.args, member.args)))
    return found


# ---- Annotations

_SAME: dict[Any, Any] = {
    list: list, abc.Sequence: list, abc.MutableSequence: list, collections.deque: list, set: set, abc.Set: set, abc.MutableSet: set,
    frozenset: frozenset, dict: dict, abc.Mapping: dict, abc.MutableMapping: dict, collections.defaultdict: dict,
    collections.OrderedDict: dict, abc.Iterable: abc.Iterable, abc.Iterator: abc.Iterable, abc.Collection: abc.Iterable,
    abc.Reversible: abc.Iterable, abc.Awaitable: abc.Awaitable, abc.Coroutine: abc.Awaitable}
_SEVERAL = {dict: 2}


def normal(hint: Any) -> Any:
    """A type from how annotations write it."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is None:
        return NONE
    if origin in (Union, UnionType):
        return join([normal(arg) for arg in args])
    if origin is typing.Literal:
        return join([type(arg) for arg in args])
    if origin in (typing.Annotated, typing.ClassVar, typing.Final):
        return normal(args[0])
    if isinstance(hint, typing.NewType):
        return normal(hint.__supertype__)
    if origin is tuple or hint is tuple:
        many = len(args) == 2 and args[1] is Ellipsis
        return _of(tuple, normal(args[0]), ...) if many else _of(tuple, *map(normal, args)) if args else _of(tuple, None, ...)
    same = _SAME.get(origin or hint) if isinstance(hint, abc.Hashable) else None
    if same is not None:
        count = _SEVERAL.get(same, 1)
        return _of(same, *(map(normal, args[-count:]) if len(args) >= count else [None] * count))
    cls = origin or hint
    return cls if isinstance(cls, type) and (cls in PLAIN or cls is NONE or is_standard(cls) or class_kind(cls)) else None


def hints(of: Any) -> dict[str, Any]:
    """The types that its annotations name."""
    try:
        return {name: normal(hint) for name, hint in typing.get_type_hints(of, include_extras=True).items()}
    except Exception:  # an annotation may name what is only there for type checkers
        return {}


def written(node: ast.expr, scope: Scope) -> Any:
    """The type that an expression of the source names: of a variable's annotation, of cast()."""
    try:
        found = eval(ast.unparse(node), dict(scope.function.__globals__), dict(scope._cells))
        found = eval(found, dict(scope.function.__globals__)) if isinstance(found, str) else found
        scope.classes.declare(found)
        return normal(found)
    except Exception:
        return None


# ---- Parts


def element(found: Any) -> Any:
    """What a loop over it gives."""
    if found is UNSET:
        return UNSET
    if isinstance(found, OneOf):
        return join([element(member) for member in found.members if member is not NONE])
    if isinstance(found, Of):
        return None if found.origin is abc.Awaitable else found.args[0] if found.origin is not tuple else \
            join([arg for arg in found.args if arg is not Ellipsis])
    if isinstance(found, type) and class_kind(found) == "tuple":
        return join([hints(found).get(name) for name in field_names(found)])
    return str if found is str else int if found is bytes else None


def like(made: Any, owner: Any) -> Any:
    """What a call tells of its owner; UNSET, if the owner is no container of this kind."""
    return made if made is None or isinstance(made, Of) and any(
        isinstance(t, Of) and t.origin is made.origin for t in members(owner)) else UNSET


def item(found: Any, index: Optional[int] = None) -> Any:
    """What a subscript gives; the index is known, or not."""
    if isinstance(found, OneOf):
        return join([item(member, index) for member in found.members if member is not NONE])
    if isinstance(found, Of) and found.origin is dict:
        return found.args[1]
    if isinstance(found, Of) and found.origin is tuple and index is not None and Ellipsis not in found.args:
        return found.args[index] if -len(found.args) <= index < len(found.args) else None
    if isinstance(found, type) and class_kind(found) == "tuple" and index is not None:
        names = field_names(found)
        return hints(found).get(names[index]) if -len(names) <= index < len(names) else None
    return element(found)


def awaited(found: Any) -> Any:
    return found.args[0] if isinstance(found, Of) and found.origin is abc.Awaitable else UNSET if found is UNSET else None


def bind(target: ast.expr, found: Any) -> Iterator[tuple[str, Any]]:
    """The names of a target, and what they get."""
    if isinstance(target, ast.Name):
        yield target.id, found
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = any(isinstance(part, ast.Starred) for part in target.elts)
        for i, part in enumerate(target.elts):
            if isinstance(part, ast.Starred):
                yield from bind(part.value, UNSET if found is UNSET else _of(list, element(found)))
            else:
                yield from bind(part, UNSET if found is UNSET else element(found) if starred else item(found, i))


def type_of(value: Any) -> Any:
    """Of an object that is there; None: of one that is not known."""
    cls: Any = type(value)
    if isinstance(value, enum.EnumMeta):
        return Of(type, (value,))  # a loop over it gives its members
    if cls in (list, set, tuple) or cls is frozenset:
        parts = [type_of(part) for part in value]
        return _of(tuple, *parts) if cls is tuple else _of(cls, join(parts))
    if cls is dict:
        return _of(dict, join(map(type_of, value)), join(map(type_of, value.values())))
    return cls if cls in PLAIN or cls is NONE or is_standard(cls) or isinstance(value, enum.Enum) else None


# ---- Expressions

_NO_EFFECT = ("append", "extend", "insert", "remove", "clear", "sort", "reverse", "add", "discard", "update")
_ADDS = ("append", "insert", "extend", "add", "setdefault")
_CLASSES = (int, float, str, bool, bytes)


class Types:
    """The types of one function's expressions."""

    def __init__(self, program: Program, scope: Scope, method: Method, definition: Definition) -> None:
        self.program = program
        self.scope = scope
        self.self_name = scope.params[0] if method.takes and scope.params else None
        self.over: list[dict[str, Any]] = []
        self.declared = self._parameters(definition)
        self.variables: dict[str, Any] = {name: self.declared.get(name) for name in scope.params}
        self._given: dict[str, list[Callable[[], Any]]] = {name: [] for name in scope.bound}
        self._caught: dict[str, list[Optional[ast.expr]]] = {}
        for node in definition.body:
            self._bindings(node)
        self._settle()

    def _parameters(self, definition: Definition) -> dict[str, Any]:
        known = hints(self.scope.function)
        arguments = definition.args
        found = {name: known[name] for name in self.scope.params if name in known}
        if arguments.vararg and arguments.vararg.arg in found:
            found[arguments.vararg.arg] = _of(tuple, found[arguments.vararg.arg], ...)
        if arguments.kwarg and arguments.kwarg.arg in found:
            found[arguments.kwarg.arg] = _of(dict, str, found[arguments.kwarg.arg])
        return {name: hint for name, hint in found.items() if hint is not None}

    def _settle(self) -> None:
        """Variables get their types from what is assigned to them, which may come from other variables."""
        self.variables.update({name: self.declared.get(name, UNSET) for name in self._given})
        for _ in range(4 * len(self._given) + 8):
            before = dict(self.variables)
            for name, given in self._given.items():
                found = [fill(make(), self.declared.get(name)) for make in given]
                unknown = name in self.scope.params and name not in self.declared
                self.variables[name] = None if unknown else join([*found, self.declared.get(name, UNSET)])
            if before == self.variables:
                return
        self.variables.update({name: None for name in self._given if name not in self.declared})

    # ---- what is assigned

    def _give(self, target: ast.expr, make: Callable[[], Any]) -> None:
        for i, (name, _) in enumerate(bind(target, UNSET)):
            if name in self._given:
                self._given[name].append(lambda i=i: list(bind(target, make()))[i][1])  # type: ignore[misc]

    def _gives(self, target: ast.expr, value: ast.expr) -> None:
        self._give(target, lambda: self.of(value))

    def _bindings(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._gives(target, node.value)
                self._changes(target, node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            declared = written(node.annotation, self.scope)
            if declared is not None:
                self.declared[node.target.id] = declared
            if node.value is not None:
                self._gives(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._gives(node.target, ast.BinOp(_loaded(node.target), node.op, node.value))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            over = node.iter
            self._give(node.target, lambda: element(self.of(over)))
        elif isinstance(node, ast.Match):
            self._cases(node)
        elif isinstance(node, ast.NamedExpr):
            self._gives(node.target, node.value)
        elif isinstance(node, ast.Call):
            self._adds(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr):
                    self._give(inner.target, lambda: None)
            return
        else:
            self._names(node)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.Name) and not isinstance(node, ast.Lambda):
                self._bindings(child)

    def _names(self, node: ast.AST) -> None:
        """Names that get something that is not known."""
        name = node.name if isinstance(node, ast.ExceptHandler) else None
        if isinstance(node, ast.ExceptHandler) and name is not None:
            self._caught.setdefault(name, []).append(node.type)
        targets: list[Any] = [target.id for target in ast.walk(node.optional_vars) if isinstance(target, ast.Name)] \
            if isinstance(node, ast.withitem) and node.optional_vars else [name]
        for found in targets:
            if found in self._given:
                self._given[found].append(lambda: None)

    def caught(self, node: ast.expr) -> list[type]:
        """The classes of exceptions that `except` clauses have given the name, if nothing else gives it a value."""
        name = node.id if isinstance(node, ast.Name) and not any(node.id in names for names in self.over) else ""
        clauses = self._caught.get(name, [])
        if len(clauses) != len(self._given.get(name, [])):
            return []
        parts = [part for clause in clauses if clause is not None for part in (clause.elts if isinstance(clause, ast.Tuple) else [clause])]
        known = [self.scope.peek(part) for part in parts]
        return [found.value for found in known if found is not None and isinstance(found.value, type)]

    # ---- cases

    def _cases(self, node: ast.Match) -> None:
        """The names that the patterns bind."""
        for case in node.cases:
            for pattern in ast.walk(case.pattern):
                name = pattern.name if isinstance(pattern, (ast.MatchAs, ast.MatchStar)) else \
                    pattern.rest if isinstance(pattern, ast.MatchMapping) else None
                if name in self._given:
                    self._given[name].append(lambda top=case.pattern, part=pattern: next(  # type: ignore[misc]
                        self._bound(found, t) for found, t in self.matched(top, self.of(node.subject)) if found is part))

    def _bound(self, pattern: ast.pattern, found: Any) -> Any:
        """What the name in a pattern gets, which is given a value of this type."""
        if found is UNSET:
            return UNSET
        if isinstance(pattern, ast.MatchStar):
            return _of(list, element(found))
        if isinstance(pattern, ast.MatchMapping):
            return join([t for t in members(found) if isinstance(t, Of) and t.origin is dict] or [None])
        assert isinstance(pattern, ast.MatchAs)
        return found if pattern.pattern is None else self._narrowed(pattern.pattern, found)

    def matched(self, pattern: ast.pattern, found: Any) -> Iterator[tuple[ast.pattern, Any]]:
        """The pattern and those inside of it, each with the type of what it is given."""
        yield pattern, found
        inner: list[tuple[ast.pattern, Any]] = []
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
            inner = [(pattern.pattern, found)]
        elif isinstance(pattern, ast.MatchOr):
            inner = [(part, found) for part in pattern.patterns]
        elif isinstance(pattern, ast.MatchSequence):
            starred = any(isinstance(part, ast.MatchStar) for part in pattern.patterns)
            inner = [(part, found if isinstance(part, ast.MatchStar) else item(found, None if starred else i))
                     for i, part in enumerate(pattern.patterns)]
        elif isinstance(pattern, ast.MatchMapping):
            inner = [(part, item(found)) for part in pattern.patterns]
        elif isinstance(pattern, ast.MatchClass):
            inner = self._fields(pattern, self._narrowed(pattern, found))
        for part, of in inner:
            yield from self.matched(part, of)

    def _fields(self, pattern: ast.MatchClass, found: Any) -> list[tuple[ast.pattern, Any]]:
        known = self.scope.peek(pattern.cls)
        names = getattr(known.value, "__match_args__", ()) if known is not None else ()
        said = hints(found) if isinstance(found, type) and class_kind(found) else {}
        by_place = [(part, said.get(names[i]) if i < len(names) else None) for i, part in enumerate(pattern.patterns)] \
            if names else [(part, found) for part in pattern.patterns]
        return [*by_place, *((part, said.get(name)) for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns))]

    def _narrowed(self, pattern: ast.pattern, found: Any) -> Any:
        """What fits the pattern, of values of this type."""
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
            return self._narrowed(pattern.pattern, found)
        if isinstance(pattern, ast.MatchOr):
            return join([self._narrowed(part, found) for part in pattern.patterns])
        known = self.scope.peek(pattern.cls) if isinstance(pattern, ast.MatchClass) else None
        if known is None:
            return found
        fits = [t for t in members(found) if isinstance(t, Of) and t.origin is known.value]
        return join(fits) if fits else normal(known.value)

    def _changes(self, target: ast.expr, value: ast.expr) -> None:
        """``found[key] = value`` tells what is in the dict."""
        if isinstance(target, ast.Subscript):
            key = target.slice
            self._add(target.value, lambda: _of(dict, self.of(key), self.of(value)))

    def _adds(self, node: ast.Call) -> None:
        """``found.append(value)`` tells what is in the list."""
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _ADDS and node.args and not node.keywords:
            name = function.attr
            self._add(function.value, lambda: self.added(name, node.args))

    def _add(self, owner: ast.expr, make: Callable[[], Any]) -> None:
        if isinstance(owner, ast.Name) and owner.id in self._given:
            name = owner.id
            self._given[name].append(lambda: like(make(), self.variables[name]))

    def added(self, method: str, args: list[ast.expr]) -> Any:
        """The container that the owner of this method (one of _ADDS) is then known to be."""
        last = self.of(args[-1])
        if method == "setdefault":
            return _of(dict, self.of(args[0]), last) if len(args) == 2 else UNSET
        return _of(set, last) if method == "add" else _of(list, element(last) if method == "extend" else last)

    # ---- what an expression is

    def of(self, node: Optional[ast.AST]) -> Any:
        if isinstance(node, PythonOp):
            return node.type
        make: Any = getattr(self, "_of_" + type(node).__name__.lower(), None)
        return None if make is None else make(node)

    def _of_name(self, node: ast.Name) -> Any:
        for names in reversed(self.over):
            if node.id in names:
                return names[node.id]
        return self.variables[node.id] if node.id in self.variables else self._of_known(node)

    def _of_constant(self, node: ast.Constant) -> Any:
        return type_of(node.value)

    def _of_await(self, node: ast.Await) -> Any:
        return awaited(self.of(node.value))

    def _of_ifexp(self, node: ast.IfExp) -> Any:
        return join([self.of(node.body), self.of(node.orelse)])

    def _of_boolop(self, node: ast.BoolOp) -> Any:
        return join([self.of(value) for value in node.values])

    def _of_compare(self, node: ast.Compare) -> Any:
        return bool

    def _of_namedexpr(self, node: ast.NamedExpr) -> Any:
        return self.of(node.value)

    def _of_joinedstr(self, node: ast.JoinedStr) -> Any:
        return str

    def _of_binop(self, node: ast.BinOp) -> Any:
        return self.result(BINARY.get(type(node.op), ""), [node.left, node.right])

    def _of_unaryop(self, node: ast.UnaryOp) -> Any:
        return self.result(UNARY[type(node.op)], [node.operand])

    def _inside(self, parts: list[ast.expr]) -> Any:
        return join([element(self.of(part.value)) if isinstance(part, ast.Starred) else self.of(part) for part in parts])

    def _of_list(self, node: ast.List) -> Any:
        return _of(list, self._inside(node.elts))

    def _of_set(self, node: ast.Set) -> Any:
        return _of(set, self._inside(node.elts))

    def _of_tuple(self, node: ast.Tuple) -> Any:
        if any(isinstance(part, ast.Starred) for part in node.elts):
            return _of(tuple, self._inside(node.elts), ...)
        return _of(tuple, *(self.of(part) for part in node.elts))

    def _of_dict(self, node: ast.Dict) -> Any:
        merged = [self.of(value) for key, value in zip(node.keys, node.values) if key is None]
        made = _of(dict, self._inside([key for key in node.keys if key is not None]),
                   self._inside([value for key, value in zip(node.keys, node.values) if key is not None]))
        return join([made, *merged])

    def _comprehension(self, node: Any, origin: Any, *parts: ast.expr) -> Any:
        self.over.append(self.targets(node.generators))
        found = [self.of(part) for part in parts]
        self.over.pop()
        return _of(origin, *found)

    def _of_listcomp(self, node: ast.ListComp) -> Any:
        return self._comprehension(node, list, node.elt)

    def _of_setcomp(self, node: ast.SetComp) -> Any:
        return self._comprehension(node, set, node.elt)

    def _of_generatorexp(self, node: ast.GeneratorExp) -> Any:
        return self._comprehension(node, abc.Iterable, node.elt)

    def _of_dictcomp(self, node: ast.DictComp) -> Any:
        return self._comprehension(node, dict, node.key, node.value)

    def targets(self, clauses: list[ast.comprehension]) -> dict[str, Any]:
        """The variables of a comprehension."""
        found: dict[str, Any] = {}
        self.over.append(found)
        for clause in clauses:
            found.update(bind(clause.target, element(self.of(clause.iter))))
        self.over.pop()
        return found

    def _of_subscript(self, node: ast.Subscript) -> Any:
        owner = self.of(node.value)
        if isinstance(node.slice, ast.Slice):
            fixed = isinstance(owner, Of) and owner.origin is tuple
            return _of(tuple, element(owner), ...) if fixed else owner
        known = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(node.slice, ast.UnaryOp) and isinstance(node.slice.operand, ast.Constant) and isinstance(node.slice.op, ast.USub):
            known = -node.slice.operand.value if type(node.slice.operand.value) is int else None
        return item(owner, known if type(known) is int else None)

    # ---- attributes

    def _of_known(self, node: ast.expr) -> Any:
        known = self.scope.peek(node)
        return type_of(known.value) if known is not None else None

    def is_self(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.self_name and not any(node.id in names for names in self.over)

    def _of_attribute(self, node: ast.Attribute) -> Any:
        if self.is_self(node.value):
            return self.program.attributes.type(node.attr)
        if isinstance(node.value, ast.Name) and self.scope.variable(node.value.id) is None and not any(
                node.value.id in names for names in self.over):
            return self._of_known(node)
        owner = self.of(node.value)
        found = [self._of_part(node, part) for part in members(owner) if part is not NONE]
        return UNSET if owner is UNSET else join(found)

    def _of_part(self, node: ast.Attribute, owner: Any) -> Any:
        if is_standard(owner):
            return self._tried("attribute", [[self._sample(None, owner)], [node.attr]])
        if isinstance(owner, type) and class_kind(owner) in ("record", "tuple") and node.attr in field_names(owner):
            return hints(owner).get(node.attr)
        if isinstance(owner, type) and issubclass(owner, enum.Enum) and node.attr in ("name", "value"):
            return str if node.attr == "name" else join([type_of(member.value) for member in owner])
        return None

    # ---- calls

    def _of_call(self, node: ast.Call) -> Any:
        function = node.func
        method = self._method(function)
        if method is not None:
            found = hints(method.function).get("return")
            return _of(abc.Awaitable, found) if method.is_async else found
        known = self.scope.peek(function) if isinstance(function, (ast.Name, ast.Attribute)) else None
        if known is not None:
            return self._of_known_call(node, known.value)
        return self._of_method(node, function) if isinstance(function, ast.Attribute) else None

    def _method(self, function: ast.expr) -> Optional[Method]:
        if not isinstance(function, ast.Attribute):
            return None
        base = function.value
        above = isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super"
        if self.is_self(base) or above:
            return self.program.find_method(function.attr, None)
        known = self.scope.peek(base) if isinstance(base, (ast.Name, ast.Attribute)) else None
        own = known is not None and isinstance(known.value, type) and known.value in self.program.own_classes
        return self.program.find_method(function.attr, None, known.value) if own and known is not None else None

    def _of_known_call(self, node: ast.Call, function: Any) -> Any:
        if isinstance(function, Action):
            return _of(abc.Awaitable, hints(function.function).get("return"))
        name = FUNCTIONS.get(function) if isinstance(function, abc.Hashable) else None
        if name is not None:
            return self._of_function(name, node)
        if function is typing.cast and len(node.args) == 2:
            return written(node.args[0], self.scope)
        if isinstance(function, type):
            return normal(function)
        if str(getattr(function, "__module__", "")).partition(".")[0] == "asyncio" and node.args:
            return self._of_asyncio(getattr(function, "__name__", ""), node)
        if getattr(function, "__module__", "") == "heddle.recorded":
            return hints(function).get("return")
        owner = getattr(function, "__self__", None)
        if isinstance(owner, type) and is_standard(owner):
            return owner  # datetime.fromisoformat
        return None

    def _of_asyncio(self, name: str, node: ast.Call) -> Any:
        if name in ("create_task", "ensure_future", "wait_for"):
            return self.of(node.args[0])
        if name != "gather":
            return None
        failed = [BaseException] if node.keywords else []
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            parts = [awaited(element(self.of(a.value)) if isinstance(a, ast.Starred) else self.of(a)) for a in node.args]
            return _of(abc.Awaitable, _of(list, join([*parts, *failed])))
        return _of(abc.Awaitable, _of(tuple, *(join([awaited(self.of(arg)), *failed]) for arg in node.args)))

    def _of_function(self, name: str, node: ast.Call) -> Any:
        args = node.args
        if name in GIVES:
            return GIVES[name]
        if any(isinstance(arg, ast.Starred) for arg in args):
            return _of(abc.Iterable, _of(tuple, join(self._rows(args)), ...)) if name == "zip" else None
        if name in ("map", "filter") and not args:
            return None  # CPython will say so
        if name in ("int", "float", "bytes"):
            return next(cls for cls in _CLASSES if cls.__name__ == name)
        each = element(self.of(args[0])) if args else UNSET
        if name in ("list", "sorted"):
            return _of(list, each)
        if name in ("set", "reversed", "filter", "range", "tuple"):
            part = int if name == "range" else element(self.of(args[-1])) if name == "filter" else each
            return _of(tuple, part, ...) if name == "tuple" else _of(set if name == "set" else abc.Iterable, part)
        if name == "enumerate":
            return _of(abc.Iterable, _of(tuple, int, each))
        if name == "zip":
            return _of(abc.Iterable, _of(tuple, *(element(self.of(arg)) for arg in args)))
        if name == "map":
            made = self.scope.peek(args[0])
            return _of(abc.Iterable, made.value if made is not None and made.value in _CLASSES else None)
        if name == "dict":
            return None if node.keywords else join(map(self._as_dict, members(self.of(args[0])))) if args else _of(dict, UNSET, UNSET)
        if name in ("min", "max"):
            more = [self.of(keyword.value) for keyword in node.keywords if keyword.arg == "default"]
            return join([each, *more]) if len(args) == 1 else join(map(self.of, args))
        if name == "sum":
            start = [*args[1:], *(keyword.value for keyword in node.keywords)]
            return join([each, self.of(start[0]) if start else int])
        return None if node.keywords else self.result(name, args)

    def _rows(self, args: list[ast.expr]) -> list[Any]:
        """What zip() takes from its arguments."""
        return [element(element(self.of(arg.value))) if isinstance(arg, ast.Starred) else element(self.of(arg)) for arg in args]

    def _as_dict(self, found: Any) -> Any:
        """What dict() makes of a dict, or of pairs."""
        if found is UNSET or isinstance(found, Of) and found.origin is dict:
            return found
        pair = element(found)
        return UNSET if pair is UNSET else None if pair is None else _of(dict, item(pair, 0), item(pair, 1))

    def _of_method(self, node: ast.Call, function: ast.Attribute) -> Any:
        if function.attr == "options" and isinstance(function.value, ast.Call):
            return self.of(function.value)
        if self.is_self(function.value) and function.attr == "run_action" and node.args:
            return self.of(node.args[0])
        if function.attr == "run" and isinstance(function.value, ast.Call):
            child = self.scope.peek(function.value.func)
            if child is not None and isinstance(child.value, type) and self.program.is_workflow(child.value):
                return _of(abc.Awaitable, hints(getattr(child.value, "run")).get("return"))
        if function.attr == "create_task" and len(node.args) == 1:
            return self.of(node.args[0])
        owner = self.of(function.value)
        found = [self._of_one(node, function, part) for part in members(owner) if part is not NONE]
        return UNSET if owner is UNSET else join(found)

    def _of_one(self, node: ast.Call, function: ast.Attribute, owner: Any) -> Any:
        name = function.attr
        if isinstance(owner, Of) and owner.origin is not frozenset:
            return self._of_container(node, name, owner)
        if owner is str and name in ("join", "format", "format_map"):
            return str
        if owner is None or is_standard(owner) and owner.__module__.partition(".")[0] == "pathlib" or \
                any(isinstance(arg, ast.Starred) for arg in node.args) or any(keyword.arg is None for keyword in node.keywords):
            return None
        return self.result(*method_operands(function, node), owner)

    def _of_container(self, node: ast.Call, name: str, owner: Of) -> Any:
        if name in _NO_EFFECT:
            return NONE
        if name in ("copy", "union", "difference", "intersection", "symmetric_difference"):
            return owner
        if name in ("index", "count"):
            return int
        if owner.origin is abc.Awaitable:
            return owner.args[0] if name == "result" else None
        if owner.origin is not dict:
            return element(owner) if name == "pop" else None
        key, value = owner.args
        other = [self.of(node.args[1])] if len(node.args) > 1 else [NONE] if name == "get" else []
        return {"get": join([value, *other]), "pop": join([value, *other]), "setdefault": join([value, *other]),
                "keys": _of(abc.Iterable, key), "values": _of(abc.Iterable, value), "items": _of(abc.Iterable, _of(tuple, key, value)),
                "popitem": _of(tuple, key, value)}.get(name)

    # ---- operations

    def result(self, operation: str, operands: list[ast.expr], first: Any = None) -> Any:
        """The type of what the operation gives. `first`: of the first operand, if it is one of several."""
        if operation in GIVES:
            return GIVES[operation]
        if operation[:-1] in DOES:
            operation = operation[:-1]  # of an augmented assignment
        types = [self.of(operand) for operand in operands]
        if first is not None:
            types[0] = first
        if any(t is UNSET for t in types):
            return UNSET
        flags = [t for found in types for t in members(found) if isinstance(t, type) and issubclass(t, enum.Flag)]
        if operation in ("|", "&", "^") and flags:
            return join(flags)
        if operation == "+" and all(isinstance(t, Of) for t in types):
            return _sum(*types) if types[0].origin in (list, tuple) else None
        samples = [[self._sample(operand, t) for t in members(of)] for operand, of in zip(operands, types)]
        if operation in ("/", "//", "%", "divmod"):
            samples[-1] = [1 if sample == 0 else sample for sample in samples[-1]]
        return self._tried(operation, samples)

    def _tried(self, operation: str, samples: list[list[Any]]) -> Any:
        made: list[Any] = []
        gives: Any = UNSET  # never a value
        for operands in itertools.islice(itertools.product(*samples), TRIED):
            if UNSET in map(_marked, operands) or operation not in DOES or operation == "**" and not any(
                    is_standard(type(operand)) for operand in operands):
                return None
            try:
                made.append(type_of(DOES[operation](*operands)))
            except (TypeError, AttributeError):  # CPython will say so, whatever the values are
                continue
            except Exception:
                gives = None
        return join(made) if made else gives

    def _sample(self, node: Optional[ast.expr], found: Any) -> Any:
        """UNSET: there is none."""
        known: Any = node if isinstance(node, ast.Constant) else self.scope.peek(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if known is not None and (isinstance(known.value, str) or isinstance(known.value, int) and abs(known.value) < 100):
            return known.value
        if is_standard(found):
            cls = found.origin if isinstance(found, Of) else found
            return SAMPLES[values.class_name(cls)](cls)
        return None if found is NONE else PLAIN.get(found, UNSET) if isinstance(found, type) else UNSET


def _marked(sample: Any) -> Any:
    return UNSET if sample is UNSET else None


def _loaded(target: ast.expr) -> ast.expr:
    """The target of an augmented assignment, as it is read."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())


class Attributes:
    """The attributes of ``self``: by annotation, else by what the methods assign."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[str, Any] = {}
        self._types: dict[Any, Any] = {}

    def type(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = UNSET
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Any:
        declared = hints(self.program.cls).get(name)
        if declared is not None:
            return declared
        known = self.program.class_attribute(name)
        found = [] if known is None else [type_of(known.value)]
        for method in self.program.own_methods():
            found += self._assigned(method, name)
        assigned = join(found)
        if not any(isinstance(t, Of) for t in members(assigned)):
            return assigned
        return join([assigned, *(like(t, assigned) for method in self.program.own_methods() for t in self._added(method, name))])

    def _assigned(self, method: Method, name: str) -> list[Any]:
        _, definition = definition_of(method.function)
        first = definition.args.args[0].arg if method.takes and definition.args.args else None
        found: list[Any] = []
        for node in walk(definition):
            targets = node.targets if isinstance(node, ast.Assign) else \
                [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []
            for target in targets:
                if isinstance(target, ast.Attribute) and target.attr == name and isinstance(target.value, ast.Name) and \
                        target.value.id == first:
                    found.append(self._value(node, method, definition))
        return found

    def _added(self, method: Method, name: str) -> Iterator[Any]:
        """What ``self.found.append(value)`` and ``self.found[key] = value`` tell of the attribute."""
        _, definition = definition_of(method.function)
        first = definition.args.args[0].arg if method.takes and definition.args.args else None

        def is_it(node: ast.AST) -> bool:
            return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name) and node.value.id == first
        for node in walk(definition):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS and node.args and \
                    not node.keywords and is_it(node.func.value):
                yield self._types_of(method, definition).added(node.func.attr, node.args)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Subscript) and is_it(target.value):
                        types = self._types_of(method, definition)
                        yield _of(dict, types.of(target.slice), types.of(node.value))

    def _types_of(self, method: Method, definition: Definition) -> Types:
        types: Optional[Types] = self._types.get(method.function)
        if types is None:
            scope = self.program.scope_of(method)
            types = self._types[method.function] = Types(self.program, scope, method, definition)
        return types

    def _value(self, node: Any, method: Method, definition: Definition) -> Any:
        types = self._types_of(method, definition)
        declared = written(node.annotation, types.scope) if isinstance(node, ast.AnnAssign) else None
        if declared is not None or node.value is None:
            return declared
        value = ast.BinOp(_loaded(node.target), node.op, node.value) if isinstance(node, ast.AugAssign) else node.value
        return types.of(value)
