"""``match``: each case is a test, the names that it binds, a guard and a body."""
from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any, Optional

from .classes import field_names
from .graph import End, Form

if TYPE_CHECKING:
    from .statements import Statements

Binding = tuple[str, Form]

_SEQUENCES = ["tuple", ["type", "list"], ["type", "tuple"], ["type", "range"]]
_SELF_MATCHING = (bool, bytes, dict, float, int, list, set, str, tuple)


def _all(tests: list[Form]) -> Form:
    tests = [test for test in tests if test is not True]
    return True if not tests else tests[0] if len(tests) == 1 else ["and", *tests]


class Patterns:
    def __init__(self, compiler: Statements) -> None:
        self.compiler = compiler
        self.source = compiler.source

    def compile(self, node: ast.Match) -> None:
        compiler = self.compiler
        graph = compiler.graph
        label = graph.label("match")
        subject = compiler.keep(compiler.expr(node.subject), node)
        over: list[End] = []
        for i, case in enumerate(node.cases):
            bound: list[Binding] = []
            test = self.test(case.pattern, subject, bound)
            missed = compiler.skip(test, False, case.pattern) if test is not True else []
            for name, form in bound:
                graph.do(["assign", form, ["name", compiler.scope.variable(name)]], case.pattern)
            if case.guard is not None:
                mark = compiler.mark()
                guard = compiler.expr(case.guard)
                missed += compiler.skip(guard, False, case.guard, case.guard)
                compiler.release(mark, case.guard)
            compiler.way(case.body, f"{label}-{i}", node)
            over += graph.take()
            graph.give(missed)
        graph.give(over)

    def test(self, pattern: ast.pattern, value: Form, bound: list[Binding]) -> Form:
        """Whether the value fits; `bound` gets the names that the pattern binds."""
        if isinstance(pattern, ast.MatchValue):
            return ["cmp", value, "==", self.compiler.expr(pattern.value)]
        if isinstance(pattern, ast.MatchSingleton):
            return ["cmp", value, "is", pattern.value]
        if isinstance(pattern, ast.MatchAs):
            inner = True if pattern.pattern is None else self.test(pattern.pattern, value, bound)
            if pattern.name:
                bound.append((pattern.name, value))
            return inner
        if isinstance(pattern, ast.MatchOr):
            return self._or(pattern, value, bound)
        if isinstance(pattern, ast.MatchSequence):
            return self._sequence(pattern, value, bound)
        if isinstance(pattern, ast.MatchMapping):
            return self._mapping(pattern, value, bound)
        assert isinstance(pattern, ast.MatchClass)
        return self._class(pattern, value, bound)

    def _or(self, pattern: ast.MatchOr, value: Form, bound: list[Binding]) -> Form:
        """Alternatives that bind names: which value a name gets depends on the first that fits."""
        ways: list[tuple[Form, dict[str, Form]]] = []
        for alternative in pattern.patterns:
            names: list[Binding] = []
            ways.append((self.test(alternative, value, names), dict(names)))
        for name in ways[0][1]:
            form = ways[-1][1][name]
            for test, names_of in reversed(ways[:-1]):
                form = ["if", test, names_of[name], form]
            bound.append((name, form))
        tests = [test for test, _ in ways]
        return True if True in tests else ["or", *tests]

    def _sequence(self, pattern: ast.MatchSequence, value: Form, bound: list[Binding]) -> Form:
        stars = [i for i, item in enumerate(pattern.patterns) if isinstance(item, ast.MatchStar)]
        length = ["call", "len", [value]]
        count = len(pattern.patterns)
        tests: list[Form] = [["call", "isinstance", [value, _SEQUENCES]],
                             ["cmp", length, ">=" if stars else "==", count - len(stars)]]
        for i, item in enumerate(pattern.patterns):
            if isinstance(item, ast.MatchStar):
                behind = count - 1 - i
                if item.name:
                    bound.append((item.name, ["call", "list", [["slice", value, i, -behind if behind else None, None]]]))
                continue
            index = i if not stars or i < stars[0] else i - count
            tests.append(self.test(item, ["item", value, index], bound))
        return _all(tests)

    def _mapping(self, pattern: ast.MatchMapping, value: Form, bound: list[Binding]) -> Form:
        tests: list[Form] = [["call", "isinstance", [value, ["type", "dict"]]]]
        keys = [self.compiler.expr(key) for key in pattern.keys]
        if keys:
            tests.append(["cmp", ["call", "len", [value]], ">=", len(keys)])
        tests += [["cmp", key, "in", value] for key in keys]
        for key, item in zip(keys, pattern.patterns):
            tests.append(self.test(item, ["item", value, key], bound))
        if pattern.rest:
            items = ["method", value, "items", []]
            bound.append((pattern.rest, ["dictcomp", ["name", "%k"], ["name", "%v"],
                                         ["for", ["tuple", ["name", "%k"], ["name", "%v"]], items,
                                          ["cmp", ["name", "%k"], "not in", ["tuple", *keys]]]]))
        return _all(tests)

    def _class(self, pattern: ast.MatchClass, value: Form, bound: list[Binding]) -> Form:
        known = self.compiler.scope.known(pattern.cls)
        cls = known.value if known is not None else None
        if not isinstance(cls, type):
            self.source.refuse(pattern.cls, f"{ast.unparse(pattern.cls)} is no class that is known now",
                               "Write the class by its name.")
        tests: list[Form] = [["call", "isinstance", [value, ["type", self.compiler.scope.class_of(cls, pattern)]]]]
        names = self._positions(pattern, cls)
        if names is None:
            tests.append(self.test(pattern.patterns[0], value, bound))
            names = []
        pairs = [*zip(names, pattern.patterns), *zip(pattern.kwd_attrs, pattern.kwd_patterns)]
        for name, item in pairs:
            if name not in field_names(cls) and not issubclass(cls, BaseException):
                if inspect.getattr_static(cls, name, None) is not None:
                    self.source.refuse(item, f"a case looks at {name} of a {cls.__name__}, which code of that class gives",
                                       f"Write `case {ast.unparse(pattern.cls)}() as x if x.{name} == ...`.")
                self.source.refuse(item, f"{cls.__name__} has no field {name}", f"Its fields are {', '.join(field_names(cls)) or 'none'}.")
            tests.append(self.test(item, ["attr", value, name], bound))
        return _all(tests)

    def _positions(self, pattern: ast.MatchClass, cls: Any) -> Optional[list[str]]:
        """The attributes that positional patterns stand for; None: the value itself, as in int(x)."""
        if not pattern.patterns:
            return []
        if cls in _SELF_MATCHING and len(pattern.patterns) == 1:
            return None
        if cls in _SELF_MATCHING:
            self.source.refuse(pattern, f"{cls.__name__}() accepts 1 positional pattern, and {len(pattern.patterns)} are given",
                               f"Write {cls.__name__}(x), where x is the value itself.")
        names = list(getattr(cls, "__match_args__", ()))
        if len(names) < len(pattern.patterns):
            self.source.refuse(pattern, f"{cls.__name__}() accepts {len(names)} positional patterns",
                               "Write the attributes by name: Point(x=0).")
        return names[:len(pattern.patterns)]
