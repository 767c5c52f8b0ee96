"""Statements: from the tree to nodes and edges.

``finally`` is made once for each way out (docs/IR.md): behind the body and each clause, before every ``return``,
``break`` and ``continue`` that leaves it, and behind a HANDLER of its own that ends in a RAISE.
"""
from __future__ import annotations

import ast
import asyncio
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Optional

from .calls import Method
from .builtin import CHANGING, FUNCTIONS, MAKES_ITERATOR
from .coroutines import awaits_values, result
from .graph import End, Form, Graph, Handler
from .groups import compile_async_with, created_task, is_result
from .names import Scope, bound_names
from .parallel import Parallel, parallel_loop
from .patterns import Patterns
from .several import Several
from .source import Definition
from .tasks import Task, compile_before, compile_beside, find_tasks, is_creation, refuse_leaving
from .tree import walk

if TYPE_CHECKING:
    from .program import Program

Block = list[ast.stmt]

_REFUSED: dict[type[ast.stmt], tuple[str, str]] = {
    ast.Import: ("an import inside of a workflow", "Import at the top of the file."),
    ast.ImportFrom: ("an import inside of a workflow", "Import at the top of the file."),
    ast.FunctionDef: ("a function inside of a workflow", "Make it a method of the workflow, or an action."),
    ast.AsyncFunctionDef: ("a function inside of a workflow", "Make it a method of the workflow, or an action."),
    ast.ClassDef: ("a class inside of a workflow", "Define it at the top of the file."),
    ast.Global: ("`global` in a workflow", "Give the value as an input, or keep it in an attribute of self."),
    ast.Nonlocal: ("`nonlocal` in a workflow", "Give the value as an input, or keep it in an attribute of self."),
    ast.With: ("`with` in a workflow", "Use the resource in an action; try ... finally cleans up in a workflow."),
    ast.AsyncFor: ("`async for` in a workflow", "Get the values with an action that returns a list, and loop over it."),
    ast.TryStar: ("`except*` in a workflow", "Catch ExceptionGroup, and look at its .exceptions."),
}


@dataclass
class Loop:
    """A loop around the statement."""

    head: str
    backs: list[End] = field(default_factory=list)
    breaks: list[End] = field(default_factory=list)


@dataclass
class Cleanup:
    """What is done on every way out of the statement: a ``finally`` block, or the end of an exception's name."""

    body: Callable[[], None]
    handler: Optional[Handler]  # asked by what is done: the one outside
    caught: list[str]


@dataclass
class Boundary:
    """A block that ``return``, ``break`` and ``continue`` cannot leave at once: they note in ``box`` what they want, go to
    the end of the block, and are done behind it."""

    box: Form
    wanted: dict[str, ast.stmt] = field(default_factory=dict)
    ends: list[End] = field(default_factory=list)


class Statements(Several):
    def __init__(self, program: Program, scope: Scope, graph: Graph, method: Method, definition: Definition,
                 is_main: bool) -> None:
        super().__init__(program, scope, graph, method)
        self.definition = definition
        self.is_main = is_main
        self.around: list[Loop | Cleanup | Boundary] = []
        self.groups: dict[str, str] = {}  # task groups around: name, and the variable with their tasks
        self.task_calls: set[ast.Call] = set()  # calls of create_task whose task is awaited later
        self.unbegun: list[Task] = []  # tasks that begin where the statement awaits them
        self.reasons: dict[ast.AST, str] = {}  # of loops of a concurrent workflow that are not parallel
        self._awaits_values: Optional[bool] = None
        self._private: Optional[set[str]] = None
        self.caught: list[str] = []  # the variables of the exceptions that are being handled
        self._statements: dict[type[ast.stmt], Callable[[Any], None]] = {
            ast.Expr: self._expression, ast.Assign: self._assign, ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented, ast.Delete: self._delete, ast.Pass: lambda node: None,
            ast.If: self._if, ast.For: self._for, ast.While: self._while, ast.Break: self._break,
            ast.Continue: self._continue, ast.Return: self._return, ast.Raise: self._raise, ast.Try: self._try,
            ast.Assert: self._assert, ast.AsyncWith: self._async_with, ast.Match: self._match,
        }

    # ---- blocks

    def block(self, body: Block, label: str = "") -> None:
        """Statements one after the other; with a label, their nodes have it in their ids."""
        path = self.graph.path
        if label:
            self.graph.path = f"{path}{label}/"
        self._sequence(body, 0, len(body), find_tasks(self, body))
        if label:
            self.graph.flush()
        self.graph.path = path

    def _sequence(self, body: Block, number: int, end: int, tasks: list[Task]) -> None:
        """The statements with these numbers. A task that begins with one and is awaited by a later one runs beside them."""
        while number < end:
            begins = [task for task in tasks if task.is_beside and task.starts == number]
            task = max(begins, key=lambda task: task.awaited, default=None)
            if task is not None:
                tasks = [other for other in tasks if other is not task]
                compile_beside(self, task, body, number, tasks)
                number = task.awaited
            else:
                number = self._before(body, number, tasks)
            self.end_statement(body[number - 1])

    def _before(self, body: Block, number: int, tasks: list[Task]) -> int:
        """One statement. If it creates a task, also those up to the one that waits; gives the number of the next."""
        self.unbegun = [task for task in tasks if task.awaited == number and not task.is_beside]
        self._numbered(body, number)
        self.unbegun = []
        created = next((task for task in tasks if task.created == number), None)
        if created is None or created.starts == number + 1:
            return number + 1
        self.end_statement(body[number])
        there = [task for task in tasks if task.created <= number and task.starts == created.starts]
        compile_before(self, there, functools.partial(self._until, body, number + 1, created, tasks))
        return created.starts

    def _until(self, body: Block, number: int, task: Task, tasks: list[Task]) -> None:
        for wanted, at in self.between(body, number, task.starts, tasks, None).wanted.items():
            refuse_leaving(self, task, wanted, at)

    def before_tasks(self, node: ast.Call, act: Callable[[], None]) -> None:
        """Evaluates the arguments of asyncio.gather. Tasks among them begin even if that raises."""
        names = {arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args}
        if all(isinstance(name, ast.Name) for name in names):
            act()
            return
        given = {name.id for name in names if isinstance(name, ast.Name)}
        there = [task for task in self.unbegun if task.name in given]
        if there:
            compile_before(self, there, act)
        else:
            act()

    def _numbered(self, body: Block, number: int) -> None:
        parallel = self._parallel(body, number)
        if parallel is not None:
            self._fan_loop(body[number], parallel)
        else:
            self.statement(body[number])

    def between(self, body: Block, number: int, end: int, tasks: list[Task], box: Form) -> Boundary:
        """Statements that nothing may leave: what would is in the boundary."""
        block = Boundary(box)
        self.around.append(block)
        spent, self._spent = self._spent, []
        self._sequence(body, number, end, tasks)
        self._spent = spent
        self.graph.flush()
        self.around.pop()
        self.graph.give(block.ends)
        return block

    def statement(self, node: ast.stmt) -> None:
        make = self._statements.get(type(node))
        if make is None:
            reason, advice = _REFUSED.get(type(node), (f"{type(node).__name__} in a workflow", "Write it otherwise, or in an action."))
            self.source.refuse(node, reason, advice)
        make(node)

    # ---- assignment

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Await):
            self.await_into(node.value, None)
            return
        if isinstance(node.value, ast.Call) and self.is_awaitable(node.value):
            self.refuse_unawaited(node.value)
        form = self.expr(node.value)
        if not (isinstance(form, list) and form[0] == "name" and form[1].startswith("%t")):
            self.graph.do(["expr", form], node)

    def _assign(self, node: ast.Assign) -> None:
        self._check_kept(node.value, node.targets)
        if isinstance(node.value, ast.Await) and len(node.targets) == 1 and not self.waits(node.targets[0]):
            self.await_into(node.value, self.target(node.targets[0]))
            return
        self.assign(self.expr(node.value), node.targets, node)

    def assign(self, form: Form, targets: list[ast.expr], node: ast.AST) -> None:
        if any(self.waits(target) for target in targets):
            form = form if self.is_stable(form, ()) else self.keep(form, node)
            for target in targets:
                self._assign_waiting(form, target, node)
        else:
            self.graph.do(["assign", form, *(self.target(target) for target in targets)], node)

    def _assign_waiting(self, form: Form, target: ast.expr, node: ast.AST) -> None:
        """A target that may wait. CPython takes a tuple apart first, and then comes to its parts from left to right."""
        if not isinstance(target, (ast.Tuple, ast.List)) or not self.waits(target):
            self.graph.do(["assign", form, self.target(target)], node)
            return
        held = [["name", self.temp()] for _ in target.elts]
        self.graph.do(["assign", form, ["tuple", *(["*", name] if isinstance(part, ast.Starred) else name
                                                   for part, name in zip(target.elts, held))]], node)
        for part, name in zip(target.elts, held):
            self._assign_waiting(name, part.value if isinstance(part, ast.Starred) else part, node)

    def _annotated(self, node: ast.AnnAssign) -> None:
        target = node.target
        if node.value is None:
            self._evaluate_place(target)
            return
        self._check_kept(node.value, [target])
        if isinstance(node.value, ast.Await) and not self.waits(target):
            self.await_into(node.value, self.target(target))
        else:
            self.assign(self.expr(node.value), [target], node)

    def _evaluate_place(self, target: ast.expr) -> None:
        """``d[await key()]: int`` assigns nothing, and CPython evaluates the object and the index all the same."""
        if isinstance(target, (ast.Attribute, ast.Subscript)) and not self.is_self(target.value):
            self._expression(ast.copy_location(ast.Expr(target.value), target))
        if isinstance(target, ast.Subscript):
            ends = [target.slice.lower, target.slice.upper, target.slice.step] if isinstance(target.slice, ast.Slice) else [target.slice]
            for part in filter(None, ends):
                self._expression(ast.copy_location(ast.Expr(part), target))

    def _check_kept(self, value: ast.expr, targets: list[ast.expr]) -> None:
        """Refuses an iterator that a variable or an object would keep. The engine refuses those that are not seen here."""
        if self._builtin_name(value) in MAKES_ITERATOR and not all(isinstance(target, (ast.Tuple, ast.List)) for target in targets):
            self.source.refuse(value, f"{ast.unparse(value)} is an iterator, which cannot be kept",
                               "Take its elements with list(...), or write it where they are needed.")

    def target(self, node: ast.expr) -> Form:
        """What is assigned to."""
        if isinstance(node, ast.Name):
            if node.id == self.self_name:
                self.source.refuse(node, f"{node.id} is assigned to", "Use another name.")
            return ["name", self.scope.variable(node.id)]
        if isinstance(node, ast.Attribute):
            return self._attribute_target(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Starred):
            return ["*", self.target(node.value)]
        assert isinstance(node, (ast.Tuple, ast.List))
        return ["tuple", *(self.target(part) for part in node.elts)]

    def _attribute_target(self, node: ast.Attribute) -> Form:
        if self.is_self(node.value):
            self.program.check_state(node.attr, self.source, node)
            return ["attr", ["name", "self"], node.attr]
        if node.attr == "__cause__":
            self.source.refuse(node, f"{ast.unparse(node)} is assigned", "Write `raise ... from ...`, which gives an exception its cause.")
        known = self.scope.known(node)
        if known is not None or node.attr.startswith("__"):
            self.source.refuse(node, f"{ast.unparse(node)} is not an attribute of the workflow's own data",
                               "Change modules and classes in an action, if at all.")
        return ["attr", self.expr(node.value), node.attr]

    def _augmented(self, node: ast.AugAssign) -> None:
        operator = self.operator(node.op, node)
        if not self.waits(node.value) and not self.waits(node.target):
            self.graph.do(["aug", operator, self.target(node.target), self.expr(node.value)], node)
            return
        place = self._hold_place(node.target)
        held = self.keep(place, node)
        self.graph.do(["aug", operator, held, self.expr(node.value)], node)
        self.graph.do(["assign", held, place], node)

    def _hold_place(self, node: ast.expr) -> Form:
        """The target with its object and index evaluated once."""
        def held(part: Optional[ast.expr]) -> Form:
            if part is None:
                return None
            form = self.expr(part)
            return form if self.is_stable(form, ()) else self.keep(form, node)
        if isinstance(node, ast.Attribute) and not self.is_self(node.value):
            return ["attr", held(node.value), node.attr]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return ["slice", held(node.value), held(node.slice.lower), held(node.slice.upper), held(node.slice.step)]
        if isinstance(node, ast.Subscript):
            return ["item", held(node.value), held(node.slice)]
        return self.target(node)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._delete_one(target, node)

    def _delete_one(self, target: ast.expr, node: ast.Delete) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._delete_one(part, node)
            return
        if isinstance(target, ast.Attribute) and self.is_self(target.value):
            self.source.refuse(target, "an attribute of self is deleted", "Set it to None.")
        self.graph.do(["del", self.target(target)], node)

    # ---- decisions

    def _if(self, node: ast.If) -> None:
        label = self.graph.label("if")
        over: list[End] = []
        tests: list[ast.If] = [node]
        while len(tests[-1].orelse) == 1 and isinstance(tests[-1].orelse[0], ast.If) and \
                not self.waits(tests[-1].orelse[0].test):
            tests.append(tests[-1].orelse[0])
        when = [self.expr(test.test) for test in tests]
        branch = self.graph.add("BRANCH", node, label, when=when, **self.condition(when[0], node.test))
        for i, test in enumerate(tests):
            self.graph.behind(branch, "GUARD", i)
            self.way(test.body, f"{label}-{i}", node)
            over += self.graph.take()
        self.graph.behind(branch, "GUARD", len(tests))
        self.way(tests[-1].orelse, f"{label}-{len(tests)}", node)
        self.graph.give(over)

    def way(self, body: Block, label: str, node: ast.AST) -> None:
        """A block on a way that may not be taken: temporaries of the statement around stay as they are."""
        spent, self._spent = self._spent, []
        self.block(body, label)
        self._spent = spent

    def _assert(self, node: ast.Assert) -> None:
        over = self.skip(self.expr(node.test), True, node, node.test)
        mark = self.mark()
        args = [] if node.msg is None else [self.expr(node.msg)]
        self.graph.add("RAISE", node, "assert", value=["new", "AssertionError", args])
        self.graph.take()
        self.forget(mark)
        self.graph.give(over)

    def _match(self, node: ast.Match) -> None:
        Patterns(self).compile(node)

    # ---- loops

    def _for(self, node: ast.For) -> None:
        label = self.graph.label("for")
        over, count = self._iterable(node)
        reason = {"comment": self.reasons[node]} if node in self.reasons else {}
        item: Optional[Form] = ["name", self._loop_name("%i")] if count or self.waits(node.target) else None
        head = self.graph.add("LOOP_HEAD", node, label, over=over, into=item or self.target(node.target), **reason)
        loop = Loop(head)
        self.graph.behind(head, "CONTINUE")
        self.around.append(loop)
        if item is not None:
            self._assign_element(node, item, count)
        self.way(node.body, label, node)
        self._end_loop(node, loop, label, node.orelse, [])

    def _assign_element(self, node: ast.For, item: Form, count: Optional[str]) -> None:
        """At the beginning of each turn. `count`: the variable that counts, of enumerate()."""
        if count is not None:
            self.graph.do(["aug", "+", ["name", count], 1], node)
            item = ["tuple", ["name", count], item]
        mark = self.mark()
        self.assign(item, [node.target], node)
        self.release(mark, node)

    def _loop_name(self, prefix: str) -> str:
        self._temps += 1
        return f"{prefix}{self._temps}"

    def _end_loop(self, node: ast.stmt, loop: Loop, label: str, orelse: Block, exits: list[End]) -> None:
        self.around.pop()
        self.graph.give(loop.backs)
        self.graph.lead(loop.head, "BACK", node)
        self.graph.behind(loop.head, "BREAK")
        self.graph.give(exits)
        self.way(orelse, f"{label}-else", node)
        self.graph.give(loop.breaks)

    def _iterable(self, node: ast.For) -> tuple[Form, Optional[str]]:
        """What is iterated over; of enumerate() what it takes, and the variable that counts."""
        call = node.iter
        name = self._builtin_name(call)
        if name == "enumerate" and isinstance(call, ast.Call):
            return self._enumerated(node, call)
        if name in MAKES_ITERATOR or isinstance(call, ast.GeneratorExp):
            self._check_unchanged(node, call)
        return self.expr(call), None

    def _builtin_name(self, node: ast.expr) -> Optional[str]:
        if not isinstance(node, ast.Call):
            return None
        known = self.scope.known(node.func) if isinstance(node.func, ast.Name) else None
        return FUNCTIONS.get(known.value) if known is not None and isinstance(known.value, type) else \
            ("reversed" if known is not None and known.value is reversed else None)

    def _enumerated(self, node: ast.For, call: ast.Call) -> tuple[Form, Optional[str]]:
        """enumerate() counts beside the loop, so that a list that grows meanwhile is seen to grow."""
        start = call.args[1] if len(call.args) > 1 else call.keywords[0].value if call.keywords else None
        plain = (start is None or isinstance(start, ast.Constant) and type(start.value) is int) and len(call.args) in (1, 2) and not any(isinstance(arg, ast.Starred) for arg in call.args) and \
            all(k.arg == "start" for k in call.keywords) and len(call.args) + len(call.keywords) <= 2
        if not plain or isinstance(call.args[0], ast.GeneratorExp) or self._builtin_name(call.args[0]) in MAKES_ITERATOR:
            self._check_unchanged(node, call)
            return self.expr(call), None
        over, begin = self.sequence([call.args[0], start])
        over = over if self.is_stable(over, ()) else self.keep(over, node)
        count = self._loop_name("%n")
        self.graph.do(["assign", (begin or 0) - 1, ["name", count]], node)
        return over, count

    def _check_unchanged(self, node: ast.For, call: ast.expr) -> None:
        """zip() and its like look at their lists while the loop runs; the engine takes their elements at the start."""
        strict = self._strict_zip(call)
        if strict is not None:
            self.source.refuse(strict, f"{ast.unparse(strict)} raises its ValueError only after the last turn",
                               "Write list(...) around it, which compares the lengths before the loop begins.")
        lazily = self._computed(call)
        if lazily is not None:
            self.source.refuse(lazily, f"{ast.unparse(lazily)} computes an element when its turn in the loop comes",
                               "Write a list, which has all of them before the loop begins: [... for ... in ...].")
        names = {n.id for n in walk(call) if isinstance(n, ast.Name) and self.scope.variable(n.id) is not None}
        changed = {name for name in self._changed_names(node) if name in names or not self._is_private(name)}
        if changed and names:
            self.source.refuse(call, f"the body may change what {ast.unparse(call)} goes through",
                               "Take the elements first: list(...).")

    def _computed(self, call: ast.expr) -> Optional[ast.expr]:
        """What runs code for each element; None: there is no such thing."""
        name = self._builtin_name(call)
        if isinstance(call, ast.GeneratorExp):
            return call
        if not isinstance(call, ast.Call) or name not in MAKES_ITERATOR:
            return None
        if name in ("map", "filter") and not (call.args and isinstance(call.args[0], ast.Constant)):
            return call
        return next((part for part in map(self._computed, call.args) if part is not None), None)

    def _strict_zip(self, call: ast.expr) -> Optional[ast.Call]:
        """A zip() that may raise when its shortest argument ends; None: there is no such thing."""
        name = self._builtin_name(call)
        if not isinstance(call, ast.Call) or name not in MAKES_ITERATOR:
            return None
        if name == "zip" and any(not (isinstance(k.value, ast.Constant) and not k.value.value) for k in call.keywords):
            return call
        return next((part for part in map(self._strict_zip, call.args) if part is not None), None)

    def elements(self, over: ast.expr, form: Form, inner: list[ast.expr]) -> Form:
        if self._builtin_name(over) not in MAKES_ITERATOR:
            return form
        body: list[ast.stmt] = [ast.Expr(part) for part in inner]
        self._check_unchanged(ast.For(ast.Name("_", ast.Store()), over, body, []), over)
        return ["call", "list", [form]]

    def _changed_names(self, node: ast.For) -> set[str]:
        """Variables whose objects the loop's target or body changes; "*": a helper method may change anything that it is given."""
        found: set[str] = set()
        for part in (inner for statement in (node.target, *node.body) for inner in walk(statement)):
            changed: Optional[ast.expr] = None
            if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, (ast.Store, ast.Del)):
                changed = part.value
            elif isinstance(part, ast.AugAssign):
                changed = part.target
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                if part.func.attr in CHANGING:
                    changed = part.func.value
                elif self.find_method(part.func) is not None and (part.args or part.keywords or self.program.state):
                    found.add("*")
            if changed is not None:
                found |= {n.id for n in walk(changed) if isinstance(n, ast.Name)}
        return found

    def _is_private(self, name: str) -> bool:
        """Whether the object of a variable has no other name: it is made here, and is only looked into or returned."""
        if self._private is None:
            self._private = private_names(self.definition)
        return name in self._private

    def _while(self, node: ast.While) -> None:
        label = self.graph.label("while")
        waits = self.waits(node.test)
        head = self.graph.add("LOOP_HEAD", node, label, **{"while": True if waits else self.expr(node.test)})
        loop = Loop(head)
        self.graph.behind(head, "CONTINUE")
        self.around.append(loop)
        exits: list[End] = []
        if waits:
            mark = self.mark()
            test = self.keep(self.expr(node.test), node)
            exits = self.skip(test, False, node, node.test)
            self.release(mark, node)
        self.way(node.body, label, node)
        self._end_loop(node, loop, label, node.orelse, exits)

    def _leave(self, upto: Loop | Boundary | None) -> None:
        """Does what has to be done on the way out: of everything up to the loop or block, or of the function."""
        around, handler, caught = self.around, self.graph.handler, self.caught
        for i in range(len(around) - 1, -1, -1):
            place = around[i]
            if place is upto:
                break
            if isinstance(place, Cleanup):
                self.graph.flush()
                self.around, self.graph.handler, self.caught = around[:i], place.handler, place.caught
                place.body()
                self.graph.flush()
        self.around, self.graph.handler, self.caught = around, handler, caught

    def _around(self, *kinds: type) -> Any:
        """The innermost of these around the statement; None: there is none."""
        return next((place for place in reversed(self.around) if isinstance(place, kinds)), None)

    def _break(self, node: ast.Break) -> None:
        place = self._around(Loop, Boundary)
        if isinstance(place, Boundary):
            self._leave_block(place, "break", node)
            return
        self._leave(place)
        place.breaks += self.graph.take()

    def _continue(self, node: ast.Continue) -> None:
        place = self._around(Loop, Boundary)
        if isinstance(place, Boundary):
            self._leave_block(place, "continue", node)
            return
        self._leave(place)
        place.backs += self.graph.take()

    # ---- blocks that are left behind their end

    def _leave_block(self, block: Boundary, wanted: str, node: ast.stmt) -> None:
        self._leave(block)
        self.graph.do(["assign", wanted, ["item", block.box, "%wanted"]], node)
        block.wanted[wanted] = node
        block.ends += self.graph.take()
        self._spent = []

    def bounded(self, body: Block, label: str, node: ast.AST, box: Form) -> Boundary:
        """The statements of such a block; all ways lead to its end."""
        block = Boundary(box)
        self.around.append(block)
        self.way(body, label, node)
        self.graph.flush()
        self.around.pop()
        self.graph.give(block.ends)
        return block

    def go_on(self, block: Boundary, at: ast.AST) -> None:
        """Behind the block: what its statements wanted."""
        if not block.wanted:
            return
        wanted = ["method", block.box, "get", ["%wanted"]]
        branch = self.graph.add("BRANCH", at, "if", when=[["cmp", wanted, "==", name] for name in block.wanted])
        spent = self._spent
        for i, (name, node) in enumerate(block.wanted.items()):
            self.graph.behind(branch, "GUARD", i)
            self._spent = []
            if name == "return":
                self.return_value(["item", block.box, "%value"], node)
            else:
                self.statement(node)
        self._spent = spent
        self.graph.behind(branch, "GUARD", len(block.wanted))

    # ---- parallel loops

    def _parallel(self, body: Block, number: int) -> Optional[Parallel]:
        node = body[number]
        if not isinstance(node, ast.For) or not self.program.is_concurrent or not self._has_step(node):
            return None
        found = parallel_loop(self, body, number)
        if isinstance(found, Parallel):
            return found
        self.reasons[node] = found
        return None

    def _has_step(self, node: ast.For) -> bool:
        return any(self.waits(statement) for statement in node.body)

    def _fan_loop(self, node: ast.stmt, loop: Parallel) -> None:
        assert isinstance(node, ast.For)
        label = self.graph.label("for")
        head = self.graph.add("FAN_HEAD", node, label, over=self.expr(node.iter), into=self.target(node.target))
        self.graph.behind(head, "ELEM")
        path, self.graph.path = self.graph.path, f"{self.graph.path}{label}/"
        outer, self.graph.handler = self.graph.handler, None
        result = self.branch_name()
        self.await_into(loop.call, ["name", result])
        self.graph.handler = outer
        end = ["call", "len", [["name", loop.result]]]
        self.barrier(node, {"mode": "ordered"}, ["name", result], ["slice", ["name", loop.result], end, None, None])
        self.graph.path = path

    # ---- ways out

    def _return(self, node: ast.Return) -> None:
        self.return_value(None if node.value is None else self.expr(node.value), node)

    def return_value(self, value: Form, node: ast.stmt) -> None:
        block = self._around(Boundary)
        if block is not None:
            self.graph.do(["assign", value, ["item", block.box, "%value"]], node)
            self._leave_block(block, "return", node)
            return
        if any(isinstance(place, Cleanup) for place in self.around) and isinstance(value, list):
            value = self.keep(value, node)
        self._leave(None)
        self.end_function(value, node)

    def end_function(self, value: Form, at: ast.AST) -> None:
        self._spent = []
        keys = {} if value is None else {"value": value}
        self.graph.add("RETURN" if self.is_main else "RET", at, "return", **keys)
        self.graph.take()

    def _raise(self, node: ast.Raise) -> None:
        if node.exc is None:
            if not self.caught:
                self.source.refuse(node, "`raise` without an exception outside of an `except` clause",
                                   "Write the exception: raise ValueError(...).")
            self._raise_node(["name", self.caught[-1]], node)
            return
        parts = [node.exc, node.cause]
        calls = [self._exception_of(part) for part in parts]  # CPython makes objects of classes after it has evaluated both
        exception, cause = self.sequence([part if call is None else None for part, call in zip(parts, calls)])
        if calls[0] is not None:
            cause = cause if self.is_stable(cause, ()) else self.keep(cause, node)
            exception = self.expr(calls[0])
        if node.cause is not None:
            exception = self.keep(exception, node)
            cause = cause if calls[1] is None else self.expr(calls[1])
            self.graph.do(["assign", cause, ["attr", exception, "__cause__"]], node)
        self._raise_node(exception, node)

    def _exception_of(self, node: Optional[ast.expr]) -> Optional[ast.Call]:
        """``raise Cls`` is ``raise Cls()``: the call, if the expression names a class of exceptions."""
        known = None if node is None else self.scope.known(node)
        if node is None or known is None or not isinstance(known.value, type) or not issubclass(known.value, BaseException):
            return None
        return ast.copy_location(ast.Call(node, [], []), node)

    def _raise_node(self, exception: Form, node: ast.AST) -> None:
        self.graph.add("RAISE", node, "raise", value=exception)
        self.graph.take()
        self._spent = []

    # ---- exceptions

    def _try(self, node: ast.Try) -> None:
        label = self.graph.label("try")
        outer = self.graph.handler
        if node.finalbody:
            self._try_finally(node, label, outer)
        else:
            self._try_except(node, label)

    def _try_except(self, node: ast.Try, label: str) -> None:
        outer = self.graph.handler
        handler = Handler(outer)
        self.graph.flush()
        self.graph.handler = handler
        self.way(node.body, label, node)
        self.graph.flush()
        self.graph.handler = outer
        self.way(node.orelse, f"{label}-else", node)
        over = self.graph.take()
        variable = self.branch_name()
        clauses = [self._clause(clause, variable) for clause in node.handlers]
        found = self.graph.handle(handler, node, f"{label}-except", clauses)
        for i, clause in enumerate(node.handlers):
            self.graph.behind(found, "GUARD", i)
            self._except(clause, variable, f"{label}-except-{i}")
            over += self.graph.take()
        self.graph.give(over)

    def _clause(self, clause: ast.ExceptHandler, variable: str) -> Form:
        if clause.type is None:
            return {"classes": ["BaseException"], "as": variable}
        types = clause.type.elts if isinstance(clause.type, ast.Tuple) else [clause.type]
        classes = [self._exception_class(item, clause) for item in types]
        if not classes:
            self.source.refuse(clause.type, "an empty tuple of classes catches nothing", "Leave the clause out.")
        return {"classes": classes, "as": variable}

    def _exception_class(self, node: ast.expr, clause: ast.ExceptHandler) -> str:
        known = self.scope.known(node)
        cls = known.value if known is not None else None
        if isinstance(cls, tuple) and cls and all(isinstance(c, type) for c in cls):
            self.source.refuse(node, f"{ast.unparse(node)} is a tuple of classes", "Write the classes in the except clause.")
        if not isinstance(cls, type) or not issubclass(cls, BaseException):
            self.source.refuse(node, f"{ast.unparse(node)} is no class of exceptions that is known now",
                               "Write the class by its name.")
        if cls is asyncio.CancelledError and not isinstance(clause.body[-1], ast.Raise):
            self.source.refuse(node, "CancelledError is caught and not raised again",
                               "End the clause with `raise`: a cancelled workflow must end.")
        return self.scope.class_of(cls, node)

    def _except(self, clause: ast.ExceptHandler, variable: str, label: str) -> None:
        name = clause.name and self.scope.variable(clause.name)
        outer, caught = self.graph.handler, self.caught
        guarded = Handler(outer) if name and outer is not None and self._is_read_outside(clause) else None
        self.caught = [*caught, variable]
        if name:
            self.graph.do(["assign", ["name", variable], ["name", name]], clause)
        self.graph.flush()
        self.graph.handler = guarded or outer
        self.around.append(Cleanup(lambda: self._forget(name, variable, clause), outer, caught))
        self.way(clause.body, label, clause)
        self.graph.flush()
        self.around.pop()
        self.graph.handler, self.caught = outer, caught
        self._forget(name, variable, clause)
        if guarded is not None:
            self._forget_and_raise(guarded, name, variable, label, clause)

    def _forget(self, name: Optional[str], variable: str, at: ast.AST) -> None:
        """The name of an exception ends with its clause."""
        if name:
            self.graph.do(["assign", None, ["name", name]], at)
            self.graph.do(["del", ["name", name]], at)
        self.graph.do(["del", ["name", variable]], at)

    def _forget_and_raise(self, handler: Handler, name: Optional[str], variable: str, label: str, at: ast.AST) -> None:
        """Also when the clause raises: a handler around it does not see the name."""
        over = self.graph.take()
        raised = self.branch_name()
        found = self.graph.handle(handler, at, f"{label}-end", [{"as": raised}])
        self.graph.behind(found, "GUARD", 0)
        self._forget(name, variable, at)
        self._raise_node(["name", raised], at)
        self.graph.give(over)

    def _is_read_outside(self, clause: ast.ExceptHandler) -> bool:
        """Whether the function names the exception's variable anywhere but in its clause."""
        inside = sum(isinstance(node, ast.Name) and node.id == clause.name for node in walk(clause))
        return sum(isinstance(node, ast.Name) and node.id == clause.name for node in walk(self.definition)) > inside

    def _try_finally(self, node: ast.Try, label: str, outer: Optional[Handler]) -> None:
        def clean() -> None:
            self.way(node.finalbody, f"{label}-finally", node)
        handler = Handler(outer)
        self.graph.flush()
        self.graph.handler = handler
        self.around.append(Cleanup(clean, outer, self.caught))
        if node.handlers:
            inner = ast.copy_location(ast.Try(node.body, node.handlers, node.orelse, []), node)
            self._try_except(inner, label)
        else:
            self.way(node.body, label, node)
        self.graph.flush()
        self.around.pop()
        self.graph.handler = outer
        clean()
        over = self.graph.take()
        variable = self.branch_name()
        found = self.graph.handle(handler, node, f"{label}-failed", [{"as": variable}])
        self.graph.behind(found, "GUARD", 0)
        self._clean_after(variable, clean, node, label)
        self.graph.give(over)

    def _clean_after(self, variable: str, clean: Callable[[], None], node: ast.AST, label: str) -> None:
        """The block behind an exception, which is raised again. What the block raises, and a `return` or `break` in it, come
        instead of the exception; but not instead of Unsupported, because that may be the reason why the block failed."""
        outer, caught = self.graph.handler, self.caught
        handler = Handler(outer)
        self.graph.handler, self.caught = handler, [*caught, variable]
        self.around.append(Cleanup(lambda: self._raise_unsupported(variable, node), outer, caught))
        clean()
        self.graph.flush()
        self.around.pop()
        self.graph.handler, self.caught = outer, caught
        self._raise_node(["name", variable], node)
        raised = self.branch_name()
        found = self.graph.handle(handler, node, f"{label}-finally-failed", [{"as": raised}])
        self.graph.behind(found, "GUARD", 0)
        self._raise_node(["if", _is_unsupported(variable), ["name", variable], ["name", raised]], node)

    def _raise_unsupported(self, variable: str, node: ast.AST) -> None:
        spent = self._spent
        over = self.skip(_is_unsupported(variable), False, node)
        self._raise_node(["name", variable], node)
        self._spent = spent
        self.graph.give(over)

    # ---- asyncio's blocks

    def _async_with(self, node: ast.AsyncWith) -> None:
        compile_async_with(self, node)

    def call(self, node: ast.Call) -> Form:
        task = created_task(self, node)
        if task is not None:
            return task
        if node in self.task_calls:
            assert isinstance(node.args[0], ast.Call)
            return self.call_value(node.args[0], is_task=True)
        if is_result(node) and isinstance(node.func, ast.Attribute) and self.find_method(node.func) is None:
            return result(self.expr(node.func.value), self.branch_name(), self.scope.class_of(asyncio.InvalidStateError, node))
        return super().call(node)

    def variable(self, name: str, node: ast.AST) -> Form:
        if name in self.groups:
            self.source.refuse(node, f"the task group {name} is no value", f"Call {name}.create_task(...) in its block.")
        return super().variable(name, node)

    def may_be_value(self) -> bool:
        if self._awaits_values is None:
            self._awaits_values = awaits_values(self.definition, lambda call: self.known_call(call) is asyncio.gather)
        return self._awaits_values


def private_names(definition: Definition) -> set[str]:
    """Variables that are only assigned new objects, and whose object is never given another name."""
    parents = {child: parent for parent in walk(definition) for child in ast.iter_child_nodes(parent)}
    found: set[str] = set()
    shared = {argument.arg for argument in walk(definition.args) if isinstance(argument, ast.arg)}
    for node in walk(definition):
        if not isinstance(node, ast.Name):
            continue
        parent = parents[node]
        if isinstance(node.ctx, ast.Store):
            value = parent.value if isinstance(parent, (ast.Assign, ast.AnnAssign)) else None
            alone = isinstance(parent, ast.AnnAssign) or isinstance(parent, ast.Assign) and len(parent.targets) == 1
            (found if alone and isinstance(value, _NEW) or isinstance(parent, ast.AugAssign) else shared).add(node.id)
        elif not (isinstance(parent, (ast.Attribute, ast.Subscript, ast.Return, ast.Compare, ast.FormattedValue)) or
                  isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in _LOOKS):
            shared.add(node.id)
    return found - shared


_NEW = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_LOOKS = frozenset({"len", "sum", "sorted", "list", "dict", "set", "tuple", "str", "repr", "max", "min", "any", "all"})


def _is_unsupported(variable: str) -> Form:
    return ["call", "isinstance", [["name", variable], ["type", "Unsupported"]]]
