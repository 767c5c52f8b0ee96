"""Several at once: ``asyncio.gather``, and what is cancelled when it takes too long."""
from __future__ import annotations

import ast
import asyncio
import inspect
from typing import Any, Callable, Optional

from ..actions import Action, Options
from . import coroutines
from .awaits import Awaits
from .calls import Emit
from .graph import End, Form, Graph, Handler
from .names import target_names


class Branch:
    """One argument of gather: a call, or with `over` one for each element."""

    def __init__(self, node: ast.expr, emit: Emit, over: Optional[Form], into: Optional[Form]) -> None:
        self.node = node
        self.emit = emit
        self.over = over
        self.into = into
        self.given: Form = None
        """The elements as they were given: one that stands there twice is awaited once, and its result is there twice."""


class Several(Awaits):
    # ---- calls that are values

    def prepare_value(self, node: ast.expr, early: bool) -> Emit:
        form = self.expr(node)
        return self._emit_value(node, self.settle([form], early, node)[0])

    def _emit_value(self, node: ast.AST, form: Form) -> Emit:
        def emit(into: Optional[Form]) -> None:
            self.await_value(node, form, into)
        return emit

    def await_value(self, node: ast.AST, form: Form, into: Optional[Form]) -> None:
        self.program.sites.is_used = True
        form = self._check_awaitable(node, form)
        args = [["name", "self"], form] if self.program.state else [form]
        target = {} if into is None else {"into": into}
        self.graph.add("CALL", node, "await", function="await", args=args, **target)

    def _check_awaitable(self, node: ast.AST, form: Form) -> Form:
        """The form, with a check that raises where it is awaited. The function "await" has the position of ``run``."""
        call = form if isinstance(form, list) and form[0] == "name" else self.keep(form, node)
        return ["if", coroutines.is_call(call), call, ["call", "heddle.raise", [coroutines.not_awaitable(call)]]]

    def call_value(self, node: ast.Call, is_task: bool = False) -> Form:
        form = self._call_value(node)
        if is_task:
            self.program.sites.tasks.add(form[2][0])
        return form

    def _call_value(self, node: ast.Call) -> Form:
        method, child = self.find_method(node.func), self.child_class(node)
        if method is not None:
            name, args = self.method_call(node, method, False)
            count = len(args) - (1 if self.program.state else 0)
            return self._value(node, args[len(args) - count:], lambda graph, given, into: graph.add(
                "CALL", node, name, function=name, into=into,
                args=[*args[:len(args) - count], *(["item", given, i] for i in range(count))]))
        if child is not None:
            return self._child_value(node, child)
        if self.known_call(node) is asyncio.sleep:
            return self._sleep_value(node)
        return self._action_value(node)

    def _value(self, node: ast.Call, args: list[Form], write: Callable[[Graph, Form, Form], object]) -> Form:
        site = self.program.sites.add(node, lambda graph, given, into: void(write(graph, given, into)))
        return coroutines.new(site, args)

    def _child_value(self, node: ast.Call, child: Any) -> Form:
        pairs = self.bind(node, inspect.signature(child.run), f"{child.__name__}.run", 1)
        if pairs is None:
            self.source.refuse(node, "a workflow is called with * or **", "Write its inputs one by one.")
        name, given_names = self.program.use_child(child), pairs
        return self._value(node, [form for _, form in pairs], lambda graph, given, into: graph.add(
            "CHILD", node, name, workflow=name, named=_items(given_names, given), into=into))

    def _sleep_value(self, node: ast.Call) -> Form:
        forms = self.sleep_arguments(node)

        def write(graph: Graph, given: Form, into: Form) -> None:
            graph.add("SLEEP", node, "sleep", seconds=["item", given, list(forms).index("delay")])
            graph.do(["assign", ["item", given, list(forms).index("result")] if "result" in forms else None, into], node)
        return self._value(node, list(forms.values()), write)

    def _action_value(self, node: ast.Call) -> Form:
        options, call = Options(), node
        if isinstance(node.func, ast.Attribute) and node.func.attr == "options" and isinstance(node.func.value, ast.Call):
            options, call = self.read_options(node.keywords, node), node.func.value
        action = self.known_call(call)
        if not isinstance(action, Action):
            self.check_defined(node)
            self.source.refuse(node, f"{ast.unparse(node.func)}() is kept to be awaited later",
                               "Await it here, or in a helper method, whose call can be kept, as those of actions, of workflows "
                               "and of asyncio.sleep can.")
        self._refuse_spread(call)
        pairs = self.action_arguments(call, action)
        keys = self.option_keys(options.over(action.defaults), node)
        self.program.use(action, self.source, node)
        return self._value(node, [form for _, form in pairs], lambda graph, given, into: graph.add(
            "ACTION", node, action.name, action=action.name, named=_items(pairs, given), into=into, **keys))

    # ---- several at once

    def before_tasks(self, node: ast.Call, act: Callable[[], None]) -> None:
        raise NotImplementedError

    def gather(self, node: ast.Call, early: bool, now: bool = False) -> Emit:
        """`now`: it is given to another gather, and its calls begin where it stands."""
        settled = False
        for keyword in node.keywords:
            if keyword.arg != "return_exceptions":
                self.source.refuse(keyword.value, f"asyncio.gather has no argument {keyword.arg or '**'}",
                                   "There is return_exceptions.")
            settled = bool(self.static(keyword.value))
        for arg in node.args:
            if isinstance(arg, (ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.SetComp, ast.GeneratorExp)):
                shown = "[...]" if isinstance(arg, (ast.List, ast.ListComp)) else "(...)"
                self.source.refuse(arg, "asyncio.gather takes calls one by one, and no collection of them",
                                   f"Write asyncio.gather(*{shown}).")
            if isinstance(arg, (ast.Constant, ast.JoinedStr, ast.Dict)):
                self.source.refuse(arg, f"asyncio.gather takes calls, and {ast.unparse(arg)} is none", "Leave it out.")
        branches: list[Branch] = []

        def prepare() -> None:
            branches.extend(self._prepare_branch(arg) for arg in node.args)
            self._check_twice(node)
        self.before_tasks(node, prepare)
        mode: dict[str, Form] = {"mode": "settled"} if settled else {}
        place: dict[str, Form] = {"now": True} if now else {}

        def emit(into: Optional[Form]) -> None:
            if not branches:
                self.graph.do(["assign", ["list"], into] if into is not None else ["expr", ["list"]], node)
            elif len(branches) == 1 and branches[0].over is not None:
                self._fan(node, branches[0], mode, place, into)
            else:
                self._fan_of(node, branches, mode, place, into)
        return emit

    def _check_twice(self, node: ast.Call) -> None:
        """One call under two arguments is awaited once by asyncio.gather; here it is awaited by each."""
        values = [arg for arg in node.args if not isinstance(arg, ast.Call)]
        if len(node.args) < 2 or not values:
            return
        calls = [["*", self.expr(arg.value)] if isinstance(arg, ast.Starred) else self.expr(arg) for arg in values
                 if not isinstance(arg, ast.Starred) or isinstance(arg.value, (ast.Name, ast.Attribute))]
        if len(calls) == 1 and not isinstance(values[0], ast.Starred):
            return
        every = self.keep(["list", *calls], node)
        twice = ["cmp", ["call", "len", [["call", "set", [every]]]], "!=", ["call", "len", [every]]]
        over = self.skip(twice, False, node)
        self.graph.add("RAISE", node, "raise", value=["new", "Unsupported", [
            f"{self.source.at(node)}: asyncio.gather is given one call twice"]])
        self.graph.take()
        self.graph.give(over)

    def _prepare_branch(self, node: ast.expr) -> Branch:
        if not isinstance(node, ast.Starred):
            if isinstance(node, ast.Call) and self.known_call(node) is asyncio.gather:
                return Branch(node, self.gather(node, True, now=True), None, None)
            self._check_spread(node)
            return Branch(node, self.prepare(node, True), None, None)
        calls = node.value
        if isinstance(calls, ast.GeneratorExp):  # gather(*...) takes all of it at once
            calls = ast.copy_location(ast.ListComp(calls.elt, calls.generators), calls)
        if isinstance(calls, ast.ListComp) and len(calls.generators) == 1 and isinstance(calls.elt, ast.Call) and \
                not self._waits_inside(calls):
            return self._prepare_each(node, calls)
        outer, self.in_gather = self.in_gather, True
        form = self.expr(calls)
        self.in_gather = outer
        given = self.keep(["list", ["*", form]], node)
        over = self.keep(["call", "list", [["method", ["type", "dict"], "fromkeys", [given]]]], node)
        name = self.branch_name()
        branch = Branch(calls, self._emit_value(node, ["name", name]), over, ["name", name])
        branch.given = given
        return branch

    def _check_spread(self, node: ast.expr) -> None:
        """CPython looks at what * and ** give when it makes the call, before any of the calls begins; the engine does when the
        step begins. Where one call is awaited at once that is the same."""
        if not isinstance(node, ast.Call):
            return
        function = self.known_call(node)
        if function is asyncio.wait_for and node.args:
            self._check_spread(node.args[0])
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            self._check_spread(node.func.value)  # .options()
        if isinstance(function, Action):
            self._refuse_spread(node)

    def _refuse_spread(self, node: ast.Call) -> None:
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords):
            self.source.refuse(node, "a call with * or ** that is not awaited at once", "Write its arguments one by one.")

    def _prepare_each(self, node: ast.Starred, calls: ast.ListComp) -> Branch:
        """``*[charge(o) for o in orders]``: the arguments of all calls first, then a branch for each."""
        clause = calls.generators[0]
        over = self.expr(clause.iter)
        self.check_comprehension_target(clause.target)
        self.scope.renames.append({name: name for name in target_names(clause.target)})
        target = self.plain_target(clause.target)
        tests = [self.expr(test) for test in clause.ifs]
        given: dict[str, ast.expr] = {}
        call = self._with_names(calls.elt, given)
        element = ["tuple", *(self.expr(value) for value in given.values())]
        over = self.keep(["listcomp", element, ["for", target, over, *tests]], node)
        self.scope.renames[-1].update({name: name for name in given})
        self.scope.stable.update(given)
        emit = self.prepare(call, False)
        self.scope.renames.pop()
        return Branch(calls.elt, emit, over, ["tuple", *(["name", name] for name in given)])

    def _with_names(self, node: ast.expr, given: dict[str, ast.expr]) -> ast.expr:
        """A call with variables instead of its arguments, which are put into `given` in the order of evaluation. Calls that it
        awaits, as those of asyncio.wait_for, stay in it; and so do constants, and options."""
        assert isinstance(node, ast.Call)
        self._refuse_spread(node)

        def stand_in(part: ast.expr) -> ast.expr:
            if isinstance(part, ast.Constant):
                return part
            if self.is_awaitable(part):
                return self._with_names(part, given)
            name = self.branch_name()
            given[name] = part
            return ast.copy_location(ast.Name(name, ast.Load()), part)
        function = node.func
        if isinstance(function, ast.Attribute) and self.is_awaitable(function.value):
            return ast.copy_location(ast.Call(ast.copy_location(ast.Attribute(
                self._with_names(function.value, given), function.attr, ast.Load()), function), node.args, node.keywords), node)
        args = [stand_in(arg) for arg in node.args]
        are_options = self._is_run_action(node) or self.known_call(node) is asyncio.gather
        keywords = node.keywords if are_options else [ast.keyword(k.arg, stand_in(k.value)) for k in node.keywords]
        return ast.copy_location(ast.Call(function, args, keywords), node)

    def as_coroutine(self, emit: Callable[[], None], at: ast.AST) -> None:
        """In CPython `emit` makes a coroutine of its own: it does not raise StopIteration, which becomes the cause of a
        RuntimeError."""
        if not self.program.may_stop():
            emit()
            return
        graph, outer = self.graph, self.graph.handler
        guard, stopped, error = Handler(outer), self.branch_name(), ["name", self.branch_name()]
        graph.flush()
        graph.handler = guard
        emit()
        graph.flush()
        graph.handler = outer
        over = graph.take()
        found = graph.handle(guard, at, "stopped", [{"classes": ["StopIteration"], "as": stopped}])
        graph.behind(found, "GUARD", 0)
        graph.do(["assign", ["new", "RuntimeError", ["coroutine raised StopIteration"]], error], at)
        graph.do(["assign", ["name", stopped], ["attr", error, "__cause__"]], at)
        graph.add("RAISE", at, "raise", value=error)
        graph.take()
        graph.give(over)

    def branch_name(self) -> str:
        """A variable that ends with its branch."""
        self._temps += 1
        return f"%b{self._temps}"

    def _fan(self, node: ast.AST, branch: Branch, mode: dict[str, Form], place: dict[str, Form], into: Optional[Form]) -> None:
        """One branch for each element."""
        head = self.graph.add("FAN_HEAD", node, "each", over=branch.over, into=branch.into, **place)
        self.graph.behind(head, "ELEM")
        result = self.branch_name()
        self._in_branch(branch, result)
        self._join(node, [branch], result, mode, into)

    def _fan_of(self, node: ast.AST, branches: list[Branch], mode: dict[str, Form], place: dict[str, Form], into: Optional[Form]) -> None:
        """One branch for each call, in their order; with a starred one their number is known when they begin."""
        result = self.branch_name()
        if any(branch.over is not None for branch in branches):
            which, element = self.branch_name(), self.branch_name()
            head = self.graph.add("FAN_HEAD", node, "gather", over=_numbered(branches),
                                  into=["tuple", ["name", which], ["name", element]], **place)
            self.graph.behind(head, "ELEM")
            outer, self.graph.handler = self.graph.handler, None
            head = self.graph.add("BRANCH", node, "which", when=[["cmp", ["name", which], "==", i] for i in range(len(branches) - 1)])
            self.graph.handler = outer
            kind = "GUARD"
        else:
            head, kind, element = self.graph.add("FAN_HEAD", node, "gather", **place), "ELEM", ""
        ends = []
        for i, branch in enumerate(branches):
            self.graph.behind(head, kind, i)
            self._in_branch(branch, result, element)
            self.graph.one_end(node)
            ends += self.graph.take()
        self.graph.give(ends)
        self._join(node, branches, result, mode, into)

    def _join(self, node: ast.AST, branches: list[Branch], result: str, mode: dict[str, Form], into: Optional[Form]) -> None:
        """The barrier. A call that was given twice has run once, and its result is there twice."""
        if into is None or all(branch.given is None for branch in branches):
            self.barrier(node, mode, ["name", result], into)
            return
        results = self.temp()
        self.barrier(node, mode, ["name", result], ["name", results])
        parts, before = [], 0
        for branch in branches:
            behind: Form = ["+", before, 1 if branch.over is None else ["call", "len", [branch.over]]]
            part: Form = ["slice", ["name", results], before, behind, None]
            if branch.given is not None:
                by_call = self.keep(["call", "dict", [["call", "zip", [branch.over, part]]]], node)
                part = ["listcomp", ["item", by_call, ["name", "x"]], ["for", ["name", "x"], branch.given]]
            parts.append(["*", part])
            before = behind
        self.graph.do(["assign", ["list", *parts], into], node)

    def _in_branch(self, branch: Branch, result: str, element: str = "") -> None:
        """Compiles one branch: the call. `element`: the variable with the element of a starred argument."""
        outer, self.graph.handler = self.graph.handler, None
        mark = self.mark()
        if element and branch.over is not None:
            self.graph.do(["assign", ["name", element], branch.into], branch.node)
        branch.emit(["name", result])
        self.graph.flush()
        self.forget(mark)
        self.graph.flush()
        self.graph.handler = outer

    def barrier(self, node: ast.AST, mode: dict[str, Form], give: Form, into: Optional[Form]) -> None:
        graph = self.graph
        if not graph.is_reached:
            return
        if len(graph._ends) == 1:
            graph.one_end(node)
        ends: list[End] = [(origin, "JOIN", 0) for origin, _, _ in graph.take()]
        graph.give(ends)
        target = {} if into is None else {"into": into}
        graph.add("BARRIER", node, "join", give=give, **mode, **target)

    # ---- cancelling what takes too long

    def wait_for(self, node: ast.Call, early: bool) -> Emit:
        if len(node.args) + len(node.keywords) != 2 or any(k.arg != "timeout" for k in node.keywords) or not node.args:
            self.source.refuse(node, "asyncio.wait_for takes what is awaited and a timeout",
                               "Write `await asyncio.wait_for(charge(order), timeout=5)`.")
        inner = self.prepare(node.args[0], True)
        limit = self.expr(node.args[1] if len(node.args) > 1 else node.keywords[0].value)
        limit = limit if self.is_stable(limit, ()) else self.keep(limit, node)

        def emit(into: Optional[Form]) -> None:
            if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):
                self._refuse_late(node, limit)
            self.limited(node, inner, limit, into, True)
        return emit

    def _refuse_late(self, node: ast.AST, limit: Form) -> None:
        """If the limit is 0 or less, raises TimeoutError before anything is begun."""
        given = ["cmp", limit, "is not", None]
        over = self.skip(["and", given, ["cmp", limit, "<=", 0]], False, node)
        self._raise_late(node, ["new", "CancelledError", []])
        self.graph.give(over)

    def _raise_late(self, node: ast.AST, cause: Form) -> None:
        """Raises TimeoutError; `cause` is the CancelledError of what took too long. Its temporary is free again afterwards."""
        mark = self.mark()
        error = self.keep(["new", "TimeoutError", []], node)
        self.graph.do(["assign", cause, ["attr", error, "__cause__"]], node)
        self.graph.add("RAISE", node, "raise", value=error)
        self.graph.take()
        self.forget(mark)

    def limited(self, node: ast.AST, inner: Emit, limit: Form, into: Optional[Form], is_task: bool) -> None:
        """Compiles the body `inner` with a time limit; None: it has none. `is_task`: the body is a task of its own, as in
        asyncio.wait_for."""
        if limit is None:
            inner(into)
            return
        over = self.skip(["cmp", limit, "is", None], True, node) if isinstance(limit, list) else []
        mark = self.mark()
        both = self.race(node, inner, limit, lambda: None, is_task)
        if into is not None:
            self.graph.do(["assign", ["item", ["item", ["name", both], 0], 0], into], node)
        if over: # each of the two ways deletes its own temporaries
            self.release(mark, node)
            rest = self.graph.take()
            self.graph.give(over)
            inner(into)
            self.release(mark, node)
            self.graph.give(rest)

    def race(self, node: ast.AST, inner: Emit, limit: Form, after: Callable[[], None], is_task: bool) -> str:
        """Compiles two branches, the body `inner` and a sleep; the first that ends cancels the other. Returns the variable
        with both results. What the body raises, or TimeoutError, is raised after the code of `after`. The body's result is
        in a tuple, because it may be an exception that was not raised."""
        result = self.branch_name()
        both = self.temp()
        head = self.graph.add("FAN_HEAD", node, "wait-for", **({} if is_task else {"here": 1}))
        outer, self.graph.handler = self.graph.handler, None
        self.graph.behind(head, "ELEM", 0)
        mark = self.mark()
        inner(["name", result])
        self.graph.do(["assign", ["tuple", ["name", result]], ["name", result]], node)
        self.forget(mark)
        self.graph.one_end(node)
        ends = self.graph.take()
        self.graph.behind(head, "ELEM", 1)
        self.graph.add("SLEEP", node, "limit", seconds=limit)
        self.graph.do(["assign", None, ["name", result]], node)
        ends += self.graph.take()
        self.graph.handler = outer
        self.graph.give(ends)
        self.barrier(node, {"mode": "first"}, ["name", result], ["name", both])
        after()
        self._judge(node, both)
        return both

    def _judge(self, node: ast.AST, both: str) -> None:
        """Raises what the thing raised; TimeoutError if it was cancelled because the sleep was over first."""
        outcome = ["item", ["name", both], 0]
        failed = ["call", "isinstance", [outcome, ["type", "BaseException"]]]
        late = ["and", ["call", "isinstance", [outcome, ["type", "CancelledError"]]],
                ["cmp", ["item", ["name", both], 1], "is", None]]
        branch = self.graph.add("BRANCH", node, "if", when=[late, failed])
        self.graph.behind(branch, "GUARD", 0)
        self._raise_late(node, outcome)
        self.graph.behind(branch, "GUARD", 1)
        self.graph.add("RAISE", node, "raise", value=outcome)
        self.graph.take()
        self.graph.behind(branch, "GUARD", 2)


def _numbered(branches: list[Branch]) -> Form:
    """The list of all elements, each with the number of its branch."""
    x: Form = ["name", "x"]
    return ["list", *(["tuple", i, None] if branch.over is None else
                      ["*", ["listcomp", ["tuple", i, x], ["for", x, branch.over]]] for i, branch in enumerate(branches))]


def _items(pairs: list[tuple[str, Form]], given: Form) -> list[Form]:
    """Arguments by name, out of the tuple of a kept call."""
    return [[name, ["item", given, i]] for i, (name, _) in enumerate(pairs)]


def void(_: object) -> None:
    return None
