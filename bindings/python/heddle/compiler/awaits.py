"""What a workflow waits for: actions, helper methods, children, sleeps, signals."""
from __future__ import annotations

import ast
import asyncio
import inspect
from typing import Any, Optional

from .. import recorded
from ..actions import OPTION_NAMES, Action, Options, RetryPolicy, make_options
from . import construct
from .calls import Calls, Emit, Method
from .graph import Form
from .operations import Keywords, keywords_of

_REFUSED: tuple[Any, ...] = (asyncio.wait, asyncio.as_completed, asyncio.shield, asyncio.create_task, asyncio.ensure_future)


class Awaits(Calls):
    in_gather = False
    """Whether the expression is what asyncio.gather(*...) is given: calls in it are values, which gather awaits."""

    # ---- what the other parts of the compiler provide

    def gather(self, node: ast.Call, early: bool) -> Emit:
        raise NotImplementedError

    def wait_for(self, node: ast.Call, early: bool) -> Emit:
        raise NotImplementedError

    # ---- calls that must be awaited

    def call_value(self, node: ast.Call, is_task: bool = False) -> Form:
        """A call that is awaited later, as a value."""
        raise NotImplementedError

    def may_be_value(self) -> bool:
        """Whether the function awaits values: only then is a call that is not awaited no mistake."""
        raise NotImplementedError

    def coroutine(self, node: ast.Call) -> Optional[Form]:
        if not self.is_awaitable(node):
            return None
        if not self.in_gather and not self.may_be_value():
            self.refuse_unawaited(node)
        return self.call_value(node)

    def refuse_unawaited(self, node: ast.Call) -> Any:
        self.source.refuse(node, f"{ast.unparse(node.func)}() is called but not awaited",
                           "Write `await` before the call, or give it to asyncio.gather.")

    def is_awaitable(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call):
            return False
        method = self.find_method(node.func)
        if method is not None:
            return method.is_async
        if self.child_class(node) is not None or self._is_run_action(node):
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr == "options" and self.is_awaitable(node.func.value):
            return True
        function = self.known_call(node)
        return isinstance(function, Action) or function in (asyncio.gather, asyncio.sleep, asyncio.wait_for, recorded.signal)

    def is_plain_action(self, node: ast.Call) -> bool:
        """A call of an action, with options or without."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "options" and isinstance(node.func.value, ast.Call):
            return self.is_plain_action(node.func.value)
        return isinstance(self.known_call(node), Action)

    # ---- awaiting

    def awaited(self, node: ast.Await) -> Form:
        emit = self.prepare(node.value, False)
        into = ["name", self.temp()]
        emit(into)
        return into

    def await_into(self, node: ast.Await, into: Optional[Form]) -> None:
        self.prepare(node.value, False)(into)

    def prepare(self, node: ast.expr, early: bool) -> Emit:
        """Evaluates the arguments of something awaited. `early`: its nodes come later, behind others."""
        if not isinstance(node, ast.Call):
            return self.prepare_value(node, early)
        method = self.find_method(node.func)
        if method is not None:
            return self._await_method(node, method, early)
        if self._is_run_action(node):
            return self._run_action(node, early)
        child = self.child_class(node)
        if child is not None:
            return self._child(node, child, early)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "options":
            return self._with_options(node, node.func.value, early)
        return self._prepare_known(node, early)

    def prepare_value(self, node: ast.expr, early: bool) -> Emit:
        """Something that is not a call of the source: a call that was kept."""
        raise NotImplementedError

    def _prepare_known(self, node: ast.Call, early: bool) -> Emit:
        function = self.known_call(node)
        if isinstance(function, Action):
            return self._action(node, function, Options(), early)
        if function is asyncio.sleep:
            return self._sleep(node, early)
        if function is asyncio.gather:
            return self.gather(node, early)
        if function is asyncio.wait_for:
            return self.wait_for(node, early)
        if function is recorded.signal:
            return self._signal(node, early)
        if function in (asyncio.create_task, asyncio.ensure_future) and len(node.args) == 1 and not node.keywords:
            return self.prepare(node.args[0], early)  # awaited at once
        self.refuse_known(node, function)
        self.check_defined(node)
        shown = ast.unparse(node.func)
        if function in (recorded.now, recorded.uuid, recorded.random, recorded.log):
            self.source.refuse(node, f"{shown}() is not awaited", "Write it without `await`: it is a recorded step all the same.")
        if function is asyncio.to_thread:
            self.source.refuse(node, "asyncio.to_thread is not supported",
                               "Make the function an action: one that is not async runs in a thread.")
        if inspect.iscoroutinefunction(function):
            self.source.refuse(node, f"{shown}() is an ordinary async function, which a workflow cannot await",
                               "Put @action before its definition, or make it a method of the workflow.")
        self.source.refuse(node, f"{shown}() cannot be awaited",
                           "A workflow awaits actions, its own async methods, other workflows, asyncio.sleep, "
                           "asyncio.gather and asyncio.wait_for.")

    def refuse_known(self, node: ast.Call, function: Any) -> None:
        if any(function is known for known in _REFUSED):
            if function in (asyncio.create_task, asyncio.ensure_future):
                self.source.refuse(node, f"{ast.unparse(node.func)} starts what nothing waits for",
                                   "Write `task = asyncio.create_task(...)`, and await the task in a later statement of the same "
                                   "block; or create it in `async with asyncio.TaskGroup() as group:`.")
            self.source.refuse(node, f"{ast.unparse(node.func)} is not supported",
                               "Use asyncio.gather, asyncio.TaskGroup, asyncio.wait_for or asyncio.timeout.")

    def call_other(self, node: ast.Call, function: Any) -> Form:
        self.refuse_known(node, function)
        return super().call_other(node, function)

    def settle(self, forms: list[Form], early: bool, at: ast.AST) -> list[Form]:
        """The forms, kept in temporaries where they are evaluated later than others are."""
        if not early:
            return forms
        return [form if self.is_stable(form, ()) else self.keep(form, at) for form in forms]

    # ---- actions

    def _action(self, node: ast.Call, action: Action[..., Any], options: Options, early: bool) -> Emit:
        pairs = self.action_arguments(node, action)
        forms = self.settle([form for _, form in pairs], early, node)
        named: list[Form] = [[name, form] for (name, _), form in zip(pairs, forms)]
        return self.action_node(node, action, named, options.over(action.defaults))

    def action_arguments(self, node: ast.Call, action: Action[..., Any]) -> list[tuple[str, Form]]:
        pairs = self.bind(node, action.signature, action.name, 0)
        if pairs is None:
            if len(node.keywords) > 1 and any(k.arg is None for k in node.keywords):
                given = ast.keyword(None, keywords_of(node, action.function))
                node = ast.copy_location(ast.Call(node.func, node.args, [given]), node)
            args, names = self.arguments(node)
            return [("*", ["list", *args]), ("**", construct.named(names))]
        return pairs

    def keywords(self, node: Keywords) -> Form:
        """CPython looks at each part before it evaluates the next one."""
        merged: list[Form] = []
        for i, part in enumerate(node.parts):
            merged = [["call", "heddle.keywords", [node.shown, *merged, self.expr(part)]]]
            if any(self.waits(later) for later in node.parts[i + 1:]):
                merged = [self.keep(merged[0], part)]
        return merged[0]

    def action_node(self, node: ast.AST, action: Action[..., Any], named: list[Form], options: Options) -> Emit:
        keys = self.option_keys(options, node)
        self.program.use(action, self.source, node)

        def emit(into: Optional[Form]) -> None:
            target = {} if into is None else {"into": into}
            self.graph.add("ACTION", node, action.name, action=action.name, named=named, **target, **keys)
        return emit

    def option_keys(self, options: Options, node: ast.AST) -> dict[str, Form]:
        keys: dict[str, Form] = {}
        if options.retries:
            retry: dict[str, Form] = {"attempts": options.retries + 1}
            keys["retry"] = retry
            for key, value in (("backoff", options.backoff), ("factor", options.backoff_factor), ("max", options.backoff_max)):
                if value is not None:
                    retry[key] = value
            if options.retry_on:
                retry["on"] = [self.scope.class_of(cls, node) for cls in options.retry_on]
        for key in ("timeout", "heartbeat", "priority", "queue"):
            value = getattr(options, key)
            if value is not None:
                keys[key] = value
        return keys

    def _with_options(self, node: ast.Call, inner: ast.expr, early: bool) -> Emit:
        action = self.known_call(inner) if isinstance(inner, ast.Call) else None
        if not isinstance(inner, ast.Call) or not isinstance(action, Action):
            self.source.refuse(node, ".options() belongs to the call of an action", "Write `await charge(order).options(timeout=5)`.")
        if node.args:
            self.source.refuse(node, ".options() takes keyword arguments only", f"There are {', '.join(OPTION_NAMES)}.")
        return self._action(inner, action, self.read_options(node.keywords, node), early)

    def read_options(self, keywords: list[ast.keyword], node: ast.AST) -> Options:
        given: dict[str, Any] = {}
        for keyword in keywords:
            if keyword.arg not in OPTION_NAMES:
                self.source.refuse(keyword.value, f"there is no option {keyword.arg or '**'}", f"There are {', '.join(OPTION_NAMES)}.")
            given[keyword.arg] = self.static(keyword.value)
        try:
            return make_options({k: v for k, v in given.items() if v is not None})
        except (TypeError, ValueError) as error:
            self.source.refuse(node, str(error), "Correct the options.")

    def static(self, node: ast.expr) -> Any:
        """A value that is known while compiling: options are the same for all instances."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(self.static(item) for item in node.elts)
        if isinstance(node, (ast.Name, ast.Attribute)):
            own = isinstance(node, ast.Attribute) and self.is_self(node.value)
            found = self.program.class_attribute(node.attr) if own and isinstance(node, ast.Attribute) else self.scope.known(node)
            if found is not None:
                return found.value
        if isinstance(node, ast.Call) and self.known_call(node) is RetryPolicy:
            try:
                return RetryPolicy(*(self.static(arg) for arg in node.args),
                                   **{str(k.arg): self.static(k.value) for k in node.keywords})
            except (TypeError, ValueError) as error:
                self.source.refuse(node, str(error), "RetryPolicy(attempts, exception_types, backoff_seconds).")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.static(node.operand)
        if isinstance(node, ast.BinOp):
            return _compute(node.op, self.static(node.left), self.static(node.right))
        self.source.refuse(node, "an option is a constant", "Write a number, or the name of a constant of the module.")

    def _is_run_action(self, node: ast.Call) -> bool:
        return isinstance(node.func, ast.Attribute) and node.func.attr == "run_action" and self.is_self(node.func.value)

    def _run_action(self, node: ast.Call, early: bool) -> Emit:
        call = node.args[0] if len(node.args) == 1 else None
        action = self.known_call(call) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not isinstance(action, Action):
            self.source.refuse(node, "run_action takes the call of an action",
                               "Write `await self.run_action(charge(order), retry=RetryPolicy(attempts=3), timeout=30)`.")
        given: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg not in ("retry", "timeout"):
                self.source.refuse(keyword.value, f"run_action has no option {keyword.arg}", "There are retry and timeout.")
            given[keyword.arg] = self.static(keyword.value)
        return self._action(call, action, _options_of(given), early)

    # ---- helper methods

    def _await_method(self, node: ast.Call, method: Method, early: bool) -> Emit:
        if not method.is_async:
            self.source.refuse(node, f"{method.function.__name__} is not async; what it returns cannot be awaited",
                               "Leave out `await`, or define the method with `async def`.")
        return self.call_method(node, method, early)

    def call_method(self, node: ast.Call, method: Method, early: bool) -> Emit:
        name, args = self.method_call(node, method, early)

        def emit(into: Optional[Form]) -> None:
            target = {} if into is None else {"into": into}
            self.graph.add("CALL", node, method.function.__name__, function=name, args=args, **target)
        return emit

    def method_call(self, node: ast.Call, method: Method, early: bool) -> tuple[str, list[Form]]:
        """The function of the IR, and the arguments in the order of its parameters."""
        node = self.without_self(node, method)
        name = self.program.reach(method, self.source, node)
        if method.function is self.program.run:
            self.source.refuse(node, "run cannot call itself", "Put what is repeated into a helper method.")
        skip = 1 if method.takes else 0
        signature = inspect.signature(method.function)
        pairs = self.bind(node, signature, method.function.__name__, skip)
        if pairs is None:
            self.source.refuse(node, "a helper method is called with * or **", "Write its arguments one by one.")
        forms = self.settle([form for _, form in pairs], early, node)
        given = {parameter: form for (parameter, _), form in zip(pairs, forms)}
        parameters = list(signature.parameters.values())[skip:]
        if [p.name for p in parameters if p.name in given] != list(given):
            given = {key: form if self.is_stable(form, ()) else self.keep(form, node) for key, form in given.items()}
        args = [given[p.name] if p.name in given else self._default(p, method, node) for p in parameters]
        return name, [["name", "self"], *args] if self.program.state else args

    def _default(self, parameter: inspect.Parameter, method: Method, node: ast.AST) -> Form:
        if parameter.kind is parameter.VAR_POSITIONAL:
            return ["tuple"]
        if parameter.kind is parameter.VAR_KEYWORD:
            return ["dict"]
        if parameter.default is not parameter.empty:
            self.program.scope_of(method).default(parameter)  # refuses what is no constant, where it stands
        return self.scope.constant(parameter.default, node)

    # ---- children

    def child_class(self, node: ast.Call) -> Optional[type]:
        """``Other().run(x)``: the class."""
        function = node.func
        if not (isinstance(function, ast.Attribute) and function.attr == "run" and isinstance(function.value, ast.Call)):
            return None
        made = self.known_call(function.value)
        if not (isinstance(made, type) and self.program.is_workflow(made)):
            return None
        if "__heddle__" not in vars(made):
            self.source.refuse(node, f"{made.__name__} is no workflow yet", "Put @workflow above its class.")
        if function.value.args or function.value.keywords:
            self.source.refuse(function.value, f"{made.__name__}() is given arguments, but the engine makes the object of a child",
                               f"Give them to run: `await {made.__name__}().run(...)`.")
        return made

    def _child(self, node: ast.Call, child: Any, early: bool) -> Emit:
        pairs = self.bind(node, inspect.signature(child.run), f"{child.__name__}.run", 1)
        if pairs is None:
            self.source.refuse(node, "a workflow is called with * or **", "Write its inputs one by one.")
        forms = self.settle([form for _, form in pairs], early, node)
        named: list[Form] = [[name, form] for (name, _), form in zip(pairs, forms)]
        workflow = self.program.use_child(child)

        def emit(into: Optional[Form]) -> None:
            target = {} if into is None else {"into": into}
            self.graph.add("CHILD", node, workflow, workflow=workflow, named=named, **target)
        return emit

    # ---- times and signals

    def sleep_arguments(self, node: ast.Call) -> dict[str, Form]:
        pairs = self.bind(node, inspect.signature(asyncio.sleep), "asyncio.sleep", 0)
        if pairs is None:
            self.source.refuse(node, "asyncio.sleep with * or **", "Write its arguments.")
        return dict(pairs)

    def _sleep(self, node: ast.Call, early: bool) -> Emit:
        forms = self.sleep_arguments(node)
        if "result" in forms:
            forms = {k: self.keep(f, node) if not self.is_stable(f, ()) else f for k, f in forms.items()}
        elif early:
            forms = {"delay": self.settle([forms["delay"]], True, node)[0]}

        def emit(into: Optional[Form]) -> None:
            self.graph.add("SLEEP", node, "sleep", seconds=forms["delay"])
            if into is not None:
                self.graph.do(["assign", forms.get("result"), into], node)
        return emit

    def _signal(self, node: ast.Call, early: bool) -> Emit:
        pairs = dict(self.bind(node, inspect.signature(recorded.signal), "heddle.signal", 0) or [])
        name = pairs.get("name")
        if not isinstance(name, str) or not name:
            self.source.refuse(node, "the name of a signal is a constant", 'Write `await heddle.signal("paid")`.')
        timeout = pairs.get("timeout")
        keys = {} if timeout is None else {"timeout": self.settle([timeout], early, node)[0]}

        def emit(into: Optional[Form]) -> None:
            target = {} if into is None else {"into": into}
            self.graph.add("WAIT", node, f"wait-{name}", signal=name, **keys, **target)
        return emit

def _options_of(given: dict[str, Any]) -> Options:
    retry = given.get("retry")
    options: dict[str, Any] = {} if given.get("timeout") is None else {"timeout": given["timeout"]}
    if isinstance(retry, RetryPolicy):
        options.update(retries=retry.attempts - 1, backoff=retry.backoff_seconds, backoff_factor=retry.backoff_factor,
                       backoff_max=retry.backoff_max, retry_on=tuple(retry.exception_types) or None)
    return make_options(options)


def _compute(op: ast.operator, left: Any, right: Any) -> Any:
    tree = ast.Expression(ast.BinOp(ast.Constant(left), op, ast.Constant(right)))
    return eval(compile(ast.fix_missing_locations(tree), "<option>", "eval"))
