"""Random sources of workflows: all supported constructs, nested, with awaits anywhere in expressions.

They end: loops go through a few elements, and helper methods do not call each other in circles. They may well raise. What
is left out is what the engine refuses by design (integers beyond 64 bits) or orders differently (sets)."""
from __future__ import annotations

import random
import re
from typing import Callable

NAMES = ("a", "b", "c", "d", "e")
WORDS = ("'x'", "'yz'", "''", "'a b'", "'Q7'")
OPERATORS = ("+", "-", "*", "//", "%", "/", "&", "|", "^")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in", "not in")
ERRORS = ("ValueError", "KeyError", "TypeError", "ZeroDivisionError", "Own", "OwnChild", "OSError")
CLASSES = (*ERRORS, "Coded", "Needs")
CAUGHT = (*ERRORS, "Coded", "Exception", "LookupError", "ArithmeticError", "(KeyError, ValueError)", "(Own, IndexError)", "AttributeError",
          "RuntimeError", "StopIteration")

MEMBERS = """
    async def one(self, x):
        return await echo(x)

    async def two(self, x):
        return await self.one(x)

    async def sour(self, x):
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise ValueError(x)

    async def sweet(self, x):
        try:
            await asyncio.sleep(1000)
        finally:
            await echo(x)

    async def count(self, x):
        return 0 if x <= 0 else await echo(x) + await self.count(x - 1)

    async def put(self, to, what, times=1):
        for _ in range(times):
            to.append(await echo(what))

    def half(self, x, by=2):
        return (x // by, x % by)

    async def sours(self, x):
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sour(x))
            group.create_task(self.sweet(x))
"""


class Sources:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.waits = True
        self.loops = 0
        self.depth = 0
        self.helpers: list[tuple[str, bool, int]] = []
        self.names = list(NAMES)
        self.serial = 0
        self.bound: list[str] = []
        self.in_except = False
        self.plain = 0
        self.walrus = True
        self.calm = self.random.random() < 0.5
        self.parts: list[str] = []
        self.slow = False
        self.has_members = False
        self.no_del = 0
        self.gathers = 0
        self.times: list[int] = []
        self.cleaning: list[str] = []
        self.is_ordered = True
        """Whether Python has one order of the calls: not where methods run beside each other."""
        self.is_cut = False
        """Whether something may be cancelled, or go on unseen, that would have called more."""

    # ---- choices

    def pick(self, *makers: Callable[[], str]) -> str:
        return self.random.choice(makers)()

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def fresh(self) -> str:
        self.serial += 1
        return f"v{self.serial}"

    # ---- expressions

    def name(self) -> str:
        return self.random.choice([*self.names, *self.bound])

    def atom(self) -> str:
        return self.pick(self.name, self.name, self.name, lambda: str(self.random.randint(-3, 9)),
                         lambda: self.random.choice(WORDS), lambda: self.random.choice(("None", "True", "False", "LIMIT", "WORDS", "1.5", "b'q'")))

    def number(self, depth: int) -> str:
        """An expression that is a number, if nothing in it raises."""
        inner = lambda: self.number(depth - 1)  # noqa: E731
        if depth <= 0 or self.chance(0.25):
            return self.random.choice(("a", "b", "c", "d", "e", str(self.random.randint(-3, 9)), "LIMIT", "self.kept", *self.bound))
        choices: list[Callable[[], str]] = [
            lambda: f"({inner()} {self.random.choice('+-')} {inner()})", lambda: f"({inner()} * {inner()} % 97)",
            lambda: f"({inner()} if {inner()} else {inner()})", lambda: f"({inner()} {self.random.choice(('and', 'or'))} {inner()})",
            lambda: f"({inner()} < {inner()} <= {inner()})", lambda: f"len([{inner()}, {inner()}])", lambda: f"[{inner()}, {inner()}][0]",
            lambda: f"max({inner()}, {inner()})", lambda: f"sum([{inner()}, *[{inner()}]])", lambda: self.number_as_text(depth),
            lambda: f"(not {inner()})", lambda: f"sum([*[{inner()}], {inner()}, *({inner()},)])", lambda: f"len({{**{{{inner()}: 0}}, 1: {inner()}, **{{2: {inner()}}}}})",
            lambda: f"len({{{inner()}, *[{inner()}, 3], {inner()}}})", lambda: f"{{0: {inner()}, 1: {inner()}}}[{self.random.choice('01')}]", lambda: f"Point({inner()}).x"]
        if self.waits:
            choices += [lambda: self.at_once(depth, "len"), lambda: self.limited(depth),
                        lambda: f"(await flaky({inner()}, {self.serial_text()}).options(retries={self.random.randint(0, 2)}))"]
            choices += [lambda: f"(await echo({inner()}))", lambda: f"(await add({inner()}, {inner()}))",
                        lambda: f"(await maybe({inner()}, limit=60)) % 89", lambda: f"sum(await asyncio.gather(echo({inner()}), add({inner()})))",
                        lambda: f"sum([(await echo(i)) for i in range({self.random.randint(0, 3)})])"] * 2
        if not self.plain and self.walrus:
            choices.append(lambda: f"({self.random.choice(self.names)} := {inner()})")
        helpers = [h for h in self.helpers if h[1] <= self.waits] if not self.plain else []
        if helpers:
            name, is_async, count = self.random.choice(helpers)
            choices += [lambda: f"({'await ' if is_async else ''}self.{name}({', '.join(inner() for _ in range(count))}))"] * 3
        return self.random.choice(choices)()

    def number_as_text(self, depth: int) -> str:
        made = self.number(depth - 1)
        return f"int(f'{{ {made} }}')" if "'" not in made and "{" not in made else made

    def expr(self, depth: int = 2) -> str:
        if self.calm and self.chance(0.97):
            return self.number(depth)
        if depth <= 0 or self.chance(0.2):
            return self.atom()
        choices: list[Callable[[], str]] = [
            lambda: self.binary(depth), lambda: self.binary(depth), lambda: self.comparison(depth),
            lambda: self.boolean(depth), lambda: self.conditional(depth), lambda: self.display(depth),
            lambda: self.display(depth), lambda: self.subscript(depth), lambda: self.builtin(depth),
            lambda: self.method(depth), lambda: self.fstring(depth), lambda: self.comprehension(depth),
            lambda: f"(not {self.expr(depth - 1)})", lambda: f"(-{self.expr(depth - 1)})", lambda: self.record(depth)]
        if self.waits:
            choices += [lambda: self.awaited(depth)] * 6
            choices += [lambda: self.gathered(depth), lambda: self.at_once(depth), lambda: self.limited(depth)]
        if self.helpers and not self.plain:
            choices += [lambda: self.helper(depth)] * 2
        if not self.plain and self.walrus:
            choices.append(lambda: f"({self.random.choice(self.names)} := {self.expr(depth - 1)})")
        return self.random.choice(choices)()

    def binary(self, depth: int) -> str:
        return f"({self.expr(depth - 1)} {self.random.choice(OPERATORS)} {self.expr(depth - 1)})"

    def comparison(self, depth: int) -> str:
        parts = [self.expr(depth - 1)]
        for _ in range(self.random.choice((1, 1, 2, 3))):
            parts += [self.random.choice(COMPARISONS), self.expr(depth - 1)]
        return f"({' '.join(parts)})"

    def boolean(self, depth: int) -> str:
        word = self.random.choice((" and ", " or "))
        return "(" + word.join(self.expr(depth - 1) for _ in range(self.random.choice((2, 2, 3)))) + ")"

    def conditional(self, depth: int) -> str:
        return f"({self.expr(depth - 1)} if {self.expr(depth - 1)} else {self.expr(depth - 1)})"

    def display(self, depth: int) -> str:
        items = [self.expr(depth - 1) for _ in range(self.random.randint(0, 3))]
        kind = self.random.randrange(4)
        if kind == 0:
            return "[" + ", ".join(f"*{item}" if self.chance(0.15) else item for item in items) + "]"
        if kind == 1:
            return "(" + "".join(f"{item}, " for item in items) + ")"
        if kind == 2:
            return "{" + ", ".join(f"{self.atom()}: {item}" if self.chance(0.85) else f"**{item}" for item in items) + "}"
        return "[" + ", ".join(items) + "]"

    def subscript(self, depth: int) -> str:
        base = f"({self.expr(depth - 1)})"
        if self.chance(0.3):
            return f"{base}[{self.bounds(depth)}]"
        return f"{base}[{self.expr(depth - 1)}]"

    def bounds(self, depth: int) -> str:
        low, high = (self.expr(depth - 2) if self.chance(0.6) else "" for _ in range(2))
        step = self.random.choice(("", "", "", ":", ":2", ":-1", f":{self.atom()}"))
        return f"{low}:{high}{step}"

    def view(self, depth: int) -> str:
        """keys(), values() or items(), mostly of a dict."""
        of = self.random.choice(("d", "d", f"({self.expr(depth - 1)})", "{'p': 1, 'q': [2], 3: 4}", f"{{'p': {self.atom()}, 'q': {self.atom()}}}"))
        return f"{of}.{self.random.choice(('items', 'keys', 'values'))}()"

    def of_view(self, depth: int) -> str:
        view = lambda: self.view(depth)  # noqa: E731
        return self.pick(lambda: f"list({view()})", lambda: f"len({view()})", lambda: f"({self.expr(depth - 1)} in {view()})", lambda: f"repr({view()})",
                         lambda: f"({view()} {self.random.choice(COMPARISONS[:6])} {view()})", lambda: f"list(reversed({view()}))", lambda: f"dict({view()})",
                         lambda: f"sorted({view()})", lambda: f"[*{view()}, {self.expr(depth - 1)}]", lambda: f"[{view()}, {self.expr(depth - 1)}][1]")

    def builtin(self, depth: int) -> str:
        one = lambda: self.expr(depth - 1)  # noqa: E731
        return self.pick(
            lambda: f"len({one()})", lambda: f"str({one()})", lambda: f"repr({one()})", lambda: f"bool({one()})",
            lambda: f"list({one()})", lambda: f"sum({one()})", lambda: f"sorted({one()})", lambda: f"max({one()}, {one()})",
            lambda: f"min({one()}, default={one()})", lambda: f"isinstance({one()}, (int, str, list))", lambda: f"abs({one()})",
            lambda: f"list(range({self.random.randint(0, 4)}))", lambda: f"list(zip({one()}, {one()}))",
            lambda: f"dict({one()})", lambda: f"int({one()})", lambda: f"list(enumerate({one()}))", lambda: f"tuple({one()})",
            lambda: self.with_lambda(depth), lambda: f"round({one()})", lambda: f"list(reversed({one()}))",
            lambda: self.of_view(depth), lambda: self.of_view(depth), lambda: f"divmod({one()}, {one()})",
            lambda: f"max({one()}, key={self.random.choice(('d.get', 'c.count', 'b.find'))})", lambda: f"list(map({self.random.choice(('d.get', 'b.find'))}, {one()}))",
            lambda: f"max({one()}, key={self.random.choice(('str', 'len', 'repr', 'abs'))})", lambda: f"list(map({self.random.choice(('str', 'len', 'repr'))}, {one()}))",
            lambda: f"list(filter(None, {one()}))", lambda: f"format({one()}, {self.random.choice(WORDS)})", lambda: f"sorted({one()}, reverse={one()})",
            lambda: f"all({self.generator(depth)})", lambda: f"list(zip({one()}, {one()}, strict=True))", lambda: f"list(enumerate({one()}, {one()}))",
            lambda: f"len(set({one()}))", lambda: f"type({one()}).__name__", lambda: f"any({self.generator(depth)})",
            lambda: f"sum({self.generator(depth)})")

    def without_waiting(self, make: Callable[[], str]) -> str:
        waits, self.waits = self.waits, False
        self.plain += 1
        made = make()
        self.plain -= 1
        self.waits = waits
        return made

    def with_lambda(self, depth: int) -> str:
        name = self.fresh()
        self.bound.append(name)
        body = self.without_waiting(lambda: self.expr(depth - 1))
        self.bound.pop()
        return f"sorted({self.expr(depth - 1)}, key=lambda {name}: {body})"

    def generator(self, depth: int) -> str:
        name = self.fresh()
        over = self.iterable_of_comprehension(depth - 1)
        self.bound.append(name)
        body = self.without_waiting(lambda: self.expr(depth - 1))
        self.bound.pop()
        return f"{body} for {name} in {over}"

    def comprehension(self, depth: int) -> str:
        clauses, before = [], len(self.bound)
        for i in range(self.random.choice((1, 1, 2))):
            over = self.iterable_of_comprehension(depth - 1)
            names = [self.fresh() for _ in range(2 if ".items()" in over and over.startswith(("d.", "{")) and self.chance(0.8) or self.chance(0.05) else 1)]
            self.bound += names
            test = f" if {self.expr(depth - 1)}" if self.chance(0.3) else ""
            clauses.append(f"for {', '.join(names)} in {over}{test}")
        kind = self.random.randrange(3)
        body = f"{self.atom()}: {self.expr(depth - 1)}" if kind == 0 else self.expr(depth - 1)
        del self.bound[before:]
        return ("{%s %s}" if kind == 0 else "[%s %s]") % (body, " ".join(clauses))

    def iterable_of_comprehension(self, depth: int) -> str:
        """Without ``:=``, which may not stand there."""
        walrus, self.walrus = self.walrus, False
        made = self.iterable(depth)
        self.walrus = walrus
        return made

    def iterable(self, depth: int) -> str:
        return self.pick(lambda: f"range({self.random.randint(0, 3)})", lambda: f"[{self.expr(depth)}, {self.expr(depth)}]",
                         lambda: "WORDS", lambda: self.expr(depth), lambda: self.random.choice(WORDS), lambda: self.view(depth))

    def method(self, depth: int) -> str:
        base, one = f"({self.expr(depth - 1)})", lambda: self.expr(depth - 1)
        return self.pick(
            lambda: f"{base}.upper()", lambda: f"{base}.split({one()})", lambda: f"{base}.get({one()}, {one()})",
            lambda: f"{base}.count({one()})", lambda: f"{base}.index({one()})", lambda: f"{base}.copy()",
            lambda: f"{base}.append({one()})", lambda: f"{base}.pop()", lambda: f"list({base}.items())",
            lambda: f"list({base}.keys())", lambda: f"{base}.setdefault({one()}, {one()})", lambda: f"{base}.startswith({one()})",
            lambda: f"{base}.extend({one()})", lambda: f"','.join({one()})", lambda: f"{base}.replace({one()}, {one()})",
            lambda: f"{base}.update({one()})", lambda: f"{base}.pop({one()}, {one()})", lambda: f"{base}.insert({one()}, {one()})", lambda: f"{base}.pop({one()})",
            lambda: f"{base}.sort()", lambda: f"{base}.reverse()", lambda: f"{base}.remove({one()})", lambda: f"{base}.strip({one()})", lambda: f"{base}.find({one()})",
            lambda: f"{base}.partition({one()})", lambda: f"{base}.rsplit({one()}, {one()})", lambda: f"{base}.title()", lambda: f"{base}.isdigit()", lambda: f"{base}.popitem()",
            lambda: f"{base}.clear()", lambda: f"'{{}} {{}}'.format({one()}, {one()})", lambda: f"('%s %r' % ({one()}, {one()}))",
            lambda: f"('%{self.random.choice('dxfc')}' % {self.random.choice(('', '-'))}{one()})", lambda: f"{base}.startswith(({one()}, {one()}))",
            lambda: f"'xyz'.endswith(({self.random.choice(('Kind.A', 'Kind.B', 'Rank.LOW'))}, {one()}))", lambda: f"{base}.encode()",
            lambda: f"{base}.sort(key=str)", lambda: f"{base}.center({one()}, {one()})")

    def fstring(self, depth: int) -> str:
        parts = [f"{{{self.quoted(depth)}{self.random.choice(('', '!r', '!s', ':>4', ':x'))}}}" for _ in range(self.random.choice((1, 2)))]
        return 'f"' + " ".join(["t", *parts]) + '"'

    def quoted(self, depth: int) -> str:
        """An expression that can stand in an f-string of 3.11: without its quotes and backslashes."""
        made = self.expr(depth - 1)
        return made if '"' not in made and "\\" not in made and not made.startswith("{") else self.name()

    def record(self, depth: int) -> str:
        return self.pick(lambda: f"Point({self.expr(depth - 1)}, y={self.expr(depth - 1)})", lambda: f"({self.expr(depth - 1)}).x",
                         lambda: f"Pair({self.expr(depth - 1)})", lambda: "Colour.RED", lambda: f"({self.expr(depth - 1)}).left",
                         lambda: self.random.choice(("Rank.LOW", "Rank.HIGH", "Kind.A", "Kind.B")),
                         lambda: f"Frozen(größe={self.atom()})", lambda: f"ValueError({self.expr(depth - 1)})",
                         lambda: f"ExceptionGroup({self.random.choice(WORDS)}, {self.expr(depth - 1)})",
                         lambda: f"len(BaseExceptionGroup('g', [{self.random.choice(ERRORS)}(), {self.expr(depth - 1)}]).exceptions)",
                         lambda: f"ImportError({self.expr(depth - 1)}, name={self.expr(depth - 1)}).name",
                         lambda: f"str(OSError({self.random.randint(1, 20)}, {self.expr(depth - 1)}, 'f'))")

    def call(self, depth: int) -> str:
        """A call of an action, to be awaited."""
        one = lambda: self.expr(depth - 1)  # noqa: E731
        return self.pick(lambda: f"echo({one()})", lambda: f"echo({one()})", lambda: f"add({one()}, b={one()})",
                         lambda: f"maybe({one()}, limit={self.atom()})", lambda: f"fail('{self.random.choice(ERRORS)}')",
                         lambda: f"pair({one()})", lambda: f"add(b={one()}, a={one()})")

    def spread_call(self, depth: int) -> str:
        """A call with ``**``. No argument is given twice: while an exception is handled, CPython 3.11 raises KeyError for that."""
        if self.gathers:
            return f"add({self.expr(depth - 1)})"  # several of them at once are refused
        one = lambda: self.expr(depth - 1)  # noqa: E731
        return self.pick(lambda: f"add(a={one()}, **{{'b': {one()}}})", lambda: f"add(a={one()}, **{{'c': {one()}}})",
                         lambda: f"add(**{{'a': {one()}}}, **{{'b': {one()}}})", lambda: f"add(**d, a={one()})",
                         lambda: f"add(**{{'b': {one()}}}, a={one()}, **({one()}))")

    def awaited(self, depth: int) -> str:
        helpers = [h for h in self.helpers if h[1]]
        if helpers and self.chance(0.3):
            return f"(await {self.helper_call(self.random.choice(helpers), depth)})"
        return f"(await {(self.call(depth) if self.chance(0.9) else self.spread_call(depth))})"

    def gathered(self, depth: int) -> str:
        if self.chance(0.3):
            name = self.fresh()
            over = self.iterable_of_comprehension(depth - 1)
            self.bound.append(name)
            self.gathers += 1
            call = self.without_waiting(lambda: self.call(depth - 1))
            self.gathers -= 1
            value = self.without_waiting(lambda: self.expr(depth - 1))
            self.bound.pop()
            nested = [] if "await" in over else [f"asyncio.wait_for({call}, 1000)", f"asyncio.gather({call}, echo({value}))"]  # refused beside
            call = self.random.choice([call, call, call, *nested, f"asyncio.sleep(0, {value})"])
            again = self.random.choice(("", "", " for _ in 'ab'")) if "wait_for" not in call and "gather" not in call else ""
            return f"(await asyncio.gather(*[{call} for {name} in {over}{again}], return_exceptions=True))"
        calls = ", ".join(self.call(depth - 1) for _ in range(self.random.randint(1, 3)))
        return f"(await asyncio.gather({calls}, return_exceptions=True))"

    def helper_call(self, helper: tuple[str, bool, int], depth: int) -> str:
        name, _, count = helper
        return f"self.{name}({', '.join(self.expr(depth - 1) for _ in range(count))})"

    def helper(self, depth: int) -> str:
        plain = [h for h in self.helpers if not h[1]]
        if not plain:
            return self.atom()
        return self.helper_call(self.random.choice(plain), depth)

    # ---- several at once, and what takes too long

    def serial_text(self) -> str:
        return f"{self.fresh()!r}"

    def part(self, depth: int) -> str:
        """What runs beside others: an action, or a method that touches nothing of the others."""
        if self.parts and self.chance(0.4):
            self.is_ordered = False
            return f"self.{self.random.choice(self.parts)}({self.random.randint(0, 9)})"
        return self.random.choice((f"echo({self.number_without_waiting(depth)})", f"add({self.random.randint(0, 9)}, {self.random.randint(0, 9)})",
                                   f"pair({self.random.randint(0, 9)})"))

    def number_without_waiting(self, depth: int) -> str:
        return self.without_waiting(lambda: self.number(min(depth - 1, 1)))

    def at_once(self, depth: int, around: str = "") -> str:
        """gather without return_exceptions: of literal calls, of a comprehension, of calls that were kept."""
        kind = self.random.randrange(3)
        if kind == 0:
            parts = [self.part(depth) for _ in range(self.random.randint(1, 3))]
            if self.chance(0.15):
                parts.insert(self.random.randint(0, len(parts)), f"fail('{self.random.choice(ERRORS)}')")
                self.is_cut = True
            made = f"(await asyncio.gather({', '.join(parts)}))"
        else:
            name = self.fresh()
            over = f"range({self.random.randint(0, 3)})"
            call = f"echo({name})" if not self.parts or self.chance(0.5) else f"self.{self.random.choice(self.parts)}({name})"
            self.is_ordered &= call.startswith("echo")
            made = f"(await asyncio.gather(*[{call} for {name} in {over}]))"
        return f"{around}({made})" if around else made

    def limited(self, depth: int) -> str:
        """wait_for, with a limit that is far off, or none, or over at once."""
        if self.slow and self.chance(0.3):
            self.is_ordered = False
            return f"(await self.late({self.random.choice((1, 2, 3))}))"
        what = self.part(depth)
        if self.chance(0.25):
            what = f"asyncio.wait_for({what}, {self.far()})"
        return f"(await asyncio.wait_for({what}, {self.far()}))"

    def far(self) -> str:
        """A limit that is never reached; the last ones are computed, so that the compiler does not know whether there is one."""
        return self.random.choice(("None", "1000", "1000.5", "timeout=1000", "timeout=None", "1000 + len('ab')", "[None, 1000][len('a')]",
                                   "[1000, None][len('a')]", "timeout={}.get(1)"))

    def group(self, depth: int) -> list[str]:
        """A TaskGroup; at most one of its tasks fails, because which of two fails first is anybody's guess."""
        group, tasks = self.fresh(), [self.fresh() for _ in range(self.random.randint(1, 3))]
        lines = ["try:", f"    async with asyncio.TaskGroup() as {group}:"]
        bad = self.random.randrange(len(tasks)) if self.chance(0.3) else -1
        for i, task in enumerate(tasks):
            call = self.call(1) if i == bad and not self.calm else f"fail('{self.random.choice(ERRORS)}')" if i == bad else self.part(1)
            if i == bad:
                self.is_cut = True
            lines.append(f"        {task} = {group}.create_task({call})")
        name, caught = self.random.choice(self.names), self.fresh()
        lines += [f"    {name} = [{', '.join(f'{task}.result()' for task in tasks)}]", f"except ExceptionGroup as {caught}:",
                  f"    {name} = [(type(e).__name__, str(e)) for e in {caught}.exceptions]"]
        if self.calm:
            lines.append(f"{name} = len({name})")
        if bad == len(tasks) - 1:  # made last: it has begun, or there is no such task
            lines += ["try:", f"    {tasks[bad]}.result()", f"except Exception as {caught}:", f"    {name} = [{name}, repr({caught})]"]
        return lines

    def timed(self, depth: int) -> list[str]:
        """asyncio.timeout around one await or several statements."""
        limit = self.random.choice(("1000", "None", "1000.5"))
        if self.chance(0.3):
            return [f"async with asyncio.timeout({limit}):", f"    {self.random.choice(self.names)} = await {self.part(1)}"]
        self.no_del += 1
        lines = [f"async with asyncio.timeout({limit}):", *self.indented(min(depth - 1, 1))]
        self.no_del -= 1
        return lines

    def kept_calls(self) -> list[str]:
        """Calls that are awaited later."""
        calls = self.fresh()
        name = self.random.choice(self.names)
        number = lambda: str(self.random.randint(0, 9))  # noqa: E731
        lines = [f"{calls} = [echo({number()}), add({number()}, {self.number_without_waiting(1)})]"]
        more = self.random.choice(("", "", f", echo({number()})", f", *[add(i) for i in range({self.random.randint(0, 2)})]"))
        lines.append(f"{name} = await asyncio.gather(*{calls}{more})")
        self.is_ordered &= not more
        lines = [*lines, f"{name} = sum({name})"] if self.calm else lines
        return lines if self.chance(0.6) else ["try:", *(f"    {line}" for line in lines), "finally:", f"    {name} = await echo({name})"]

    def tasks(self) -> list[str]:
        """asyncio.create_task, and statements that wait before the tasks are awaited, in any order. Nothing in between raises: the
        tasks would go on, and how far they come is anybody's guess. The arguments of a task may raise: then those before it do
        not begin."""
        self.is_ordered = False
        self.is_cut = True
        tasks, results, lines = [self.fresh() for _ in range(self.random.randint(1, 3))], [], []
        bad = {task for task in tasks if self.chance(0.2)}
        for task in tasks:
            call = f"fail('{self.random.choice(ERRORS)}')" if task in bad else self.part(1)
            lines.append(f"{task} = asyncio.{self.random.choice(('create_task', 'ensure_future'))}({call})")
        for task in self.random.sample(tasks, len(tasks)):
            for _ in range(self.random.choice((0, 0, 1, 2))):
                results.append(self.fresh())
                lines += self.beside(results[-1])
            results.append(self.fresh())
            awaited = f"{results[-1]} = {self.random.choice((f'await {task}', f'(await {task}, await {task})', f'[await {task}, {task}.result()]'))}"
            lines += ["try:", f"    {awaited}", "except Exception as caught:", f"    {results[-1]} = repr(caught)"] if task in bad else [awaited]
        name, made = self.random.choice(self.names), f"[{', '.join(results)}]"
        lines.append(f"{name} = len({made})" if self.calm else f"{name} = {made}")
        return self.raising(lines, tasks, name) if self.chance(0.2) else lines

    def raising(self, lines: list[str], tasks: list[str], name: str) -> list[str]:
        """The same with something that raises before anything waits: tasks that are there begin nevertheless, and end in the sleep."""
        at = self.random.randint(1, len(tasks))
        lines = [*lines[:at], f"{name} = [1][{self.random.randint(0, 2)}]", *lines[at:]]
        return ["try:", *(f"    {line}" for line in lines), "except IndexError:", "    await asyncio.sleep(0.01)", f"    {name} = 5"]

    def beside(self, name: str) -> list[str]:
        """Statements that set the variable and raise nothing."""
        number = self.random.randint(0, 4)
        return self.random.choice((
            [f"{name} = await {self.part(1)}"], [f"{name} = {number}"],
            [f"{name} = 0", f"for i in range({number}):", f"    {name} += await echo(i)", f"    if {name} > 2:", "        break"],
            [f"{name} = None", f"if {self.random.randint(0, 1)}:", f"    {name} = await {self.part(1)}"],
            ["try:", f"    {name} = await maybe({number})", "except ValueError:", f"    {name} = await add(1)", "finally:", "    await echo('f')"],
            [f"{name} = await asyncio.gather(echo({number}), {self.part(1)})"],
            [f"{name}t = [asyncio.create_task(add(i)) for i in range({number})]", f"{name} = await asyncio.gather(*{name}t)"],
            [f"{name}t = asyncio.create_task({self.part(1)})", f"{name} = [await echo({number}) for _ in range(2)]", f"{name}.append(await {name}t)"]))

    def member(self, depth: int) -> str:
        """A member of gather that makes one call, in whatever depth: their order does not depend on how long anything takes."""
        number = self.random.randint(0, 99)
        plain = f"echo({number})", f"self.one({number})", f"self.two({number})"
        kinds = (*plain, f"*[{', '.join(self.random.choices(plain, k=2))}]", f"*[self.one(i) for i in range({number % 4})]")
        if depth and self.chance(0.3):
            return f"asyncio.gather({', '.join(self.member(depth - 1) for _ in range(2))})"
        return self.random.choice(kinds)

    def in_order(self) -> list[str]:
        """Calls that begin together, in gather or in a TaskGroup."""
        self.has_members = True
        name, members = self.random.choice(self.names), [self.member(2) for _ in range(self.random.randint(2, 4))]
        if self.chance(0.3):
            group = self.fresh()
            calls = [f"self.{self.random.choice(('one', 'two'))}({i})" if self.chance(0.6) else f"echo({i})" for i in range(len(members))]
            return [f"async with asyncio.TaskGroup() as {group}:", *(f"    {group}.create_task({call})" for call in calls)]
        gathered = f"await asyncio.gather({', '.join(members)})"
        return [f"{name} = len({gathered})" if self.calm else f"{name} = {gathered}"]

    def soured(self) -> list[str]:
        """Members that raise while they are cancelled."""
        self.has_members = True
        name, caught = self.random.choice(self.names), self.fresh()
        sour = lambda: f"self.{self.random.choice(('sour', 'sour', 'sweet'))}({self.random.randint(0, 9)})"  # noqa: E731
        what = self.random.choice((sour(), f"asyncio.gather({sour()}, {sour()})", f"self.sours({self.random.randint(0, 9)})",
                                   f"asyncio.gather({sour()}, {sour()}, return_exceptions=True)"))
        return ["try:", f"    await asyncio.wait_for({what}, 0.002)", f"except Exception as {caught}:",
                f"    {name} = {f'len(repr({caught}))' if self.calm else f'repr({caught}), repr({caught}.__cause__)'}"]

    # ---- what is cancelled, again and again

    def interrupted(self, depth: int) -> list[str]:
        """Time limits, groups and clean-up in each other. Each time is another power of two, so that no two things happen at
        the same moment: which of them CPython does first would be anybody's guess. What tasks note is sorted at the end."""
        self.is_ordered, self.is_cut = False, True
        self.times = [1 << i for i in range(24)]
        self.random.shuffle(self.times)
        name = self.random.choice(self.names)
        lines = ["self.noted = []", "try:", *self.inside(self.waiting(3)), "except BaseException as caught:", "    self.noted.append(repr(caught))",
                 "await asyncio.sleep(100000)",  # what is left behind ends: asyncio.run would cancel it in the order of a set
                 f"{name} = {'len(self.noted)' if self.calm else 'sorted(self.noted, key=repr)'}"]
        return lines

    def inside(self, lines: list[str]) -> list[str]:
        return [f"    {line}" for line in lines]

    def seconds(self) -> float:
        return self.times.pop() / 1000 if self.times else 20000 + self.serial

    def note(self) -> str:
        return f"self.noted.append({self.fresh()!r})"

    def task_of(self, depth: int) -> str:
        """A call of a method that waits; if its ``finally`` returns, that hides a cancellation."""
        name = f"wait{len(self.cleaning)}"
        self.cleaning.append("")
        lines = self.waiting(depth)
        if self.chance(0.1):
            lines = ["try:", *self.inside(lines), "finally:", f"    {self.note()}", "    return 1"]
        elif self.chance(0.2):
            lines = [*lines, f"await asyncio.sleep({self.seconds()})", f"raise ValueError({self.random.randint(0, 9)})"]
        self.cleaning[int(name[4:])] = "\n".join([f"    async def {name}(self):", *(f"        {line}" for line in lines), ""])
        return f"self.{name}()"

    def waiting(self, depth: int) -> list[str]:
        """Statements that wait, and note how far they have come."""
        if not depth or self.chance(0.15):
            return self.random.choice(([f"await asyncio.sleep({self.seconds()})", self.note()], [f"await asyncio.sleep({self.seconds()})", self.note()],
                                       [f"self.noted.append(await echo({self.random.randint(0, 9)}))"],
                                       [f"self.noted.append(await asyncio.wait_for(echo({self.random.randint(0, 9)}), 5000))"]))
        return self.random.choice((self.cleaned_up, self.cleaned_up, self.cleaned_up, self.in_limit, self.in_limit, self.in_wait_for, self.in_group, self.in_two))(depth - 1)

    def in_two(self, depth: int) -> list[str]:
        return [*self.waiting(depth), *self.waiting(depth)]

    def cleaned_up(self, depth: int) -> list[str]:
        if self.chance(0.7):
            return ["try:", *self.inside(self.waiting(depth)), "finally:", *self.inside(self.waiting(depth))]
        return ["try:", *self.inside(self.waiting(depth)), "except asyncio.CancelledError:", *self.inside(self.waiting(depth)), "    raise"]

    def in_limit(self, depth: int) -> list[str]:
        lines = [f"async with asyncio.timeout({self.seconds()}):", *self.inside(self.waiting(depth))]
        return lines if self.chance(0.3) else ["try:", *self.inside(lines), "except TimeoutError:", f"    {self.note()}"]

    def in_wait_for(self, depth: int) -> list[str]:
        call, limit = self.task_of(depth), str(self.seconds())
        if self.chance(0.2):
            call = f"asyncio.wait_for({call}, {self.far()})"
        limit = limit if self.chance(0.6) else f"[{limit}][0]"
        lines = [f"await asyncio.wait_for({call if self.chance(0.8) else f'asyncio.gather({call})'}, {limit})", self.note()]
        return lines if self.chance(0.3) else ["try:", *self.inside(lines), "except (TimeoutError, ValueError) as caught:", "    self.noted.append(repr(caught))"]

    def in_group(self, depth: int) -> list[str]:
        group = self.fresh()
        calls = [self.task_of(depth) for _ in range(self.random.randint(1, 2))]
        lines = [f"async with asyncio.TaskGroup() as {group}:", *(f"    {group}.create_task({call})" for call in calls)]
        return lines if self.chance(0.3) else ["try:", *self.inside(lines), "except ExceptionGroup as caught:", "    self.noted.append(repr(caught))"]

    def part_of(self, number: int) -> list[str]:
        """A method for several at once: it has no state but its own, and raises nothing."""
        lines = [f"    async def part{number}(self, a):", "        b = 0"]
        for _ in range(self.random.randint(1, 3)):
            lines += self.random.choice((
                ["        b += await echo(a)"], ["        if a % 2:", "            return b + await add(a, b)"],
                ["        for i in range(a % 3):", "            b += await add(i, b)"],
                ["        try:", "            b = await maybe(a, limit=4)", "        except ValueError:", "            b = await echo(b + 1)",
                 "        finally:", "            a = await add(a)"]))
        self.parts.append(f"part{number}")
        return [*lines, "        return b", ""]

    def late_of(self) -> list[str]:
        """A method that takes too long: its clean-up runs."""
        self.slow = True
        wait = self.random.choice(("await asyncio.wait_for(self.slow(n), 0.002)", "async with asyncio.timeout(0.002):\n                await self.slow(n)"))
        return ["    async def late(self, n):", "        try:", f"            {wait}", "        except TimeoutError:", "            return await echo(n)", "        return 0", "",
                "    async def slow(self, n):", "        try:", "            await echo(n)", "            await asyncio.sleep(1000)", "        finally:", "            await add(n, n)", ""]

    # ---- statements

    def combined(self, depth: int) -> list[str]:
        """Several constructs in one statement; their operands are random, too."""
        name, made = self.random.choice(self.names), self.fresh()
        number = lambda: self.number(1)  # noqa: E731
        walrus, self.walrus = self.walrus, False  # it may not stand in the iterable of a comprehension
        lines = self.random.choice((self.mutated, self.nested, self.formatted, self.starred, self.cleaned, self.matched, self.timed_gather, self.called,
                                    self.worked_off))(made, number)
        self.walrus = walrus
        return [*lines, f"{name} = len(repr({made}))" if self.calm else f"{name} = {made}"]

    def mutated(self, made: str, number: Callable[[], str]) -> list[str]:
        """Objects with two names, which change while something is awaited."""
        return self.random.choice((
            [f"{made}p = {made}q = Point({number()})", f"{made}p.x += {number()}", f"{made}q.y = await echo({made}p.x)", f"{made} = ({made}p.x, {made}q.y, {made}p is {made}q, {made}p == {made}q)"],
            [f"{made}p = [Point(i) for i in range(3)]", f"for {made}q in {made}p:", f"    {made}q.x *= await add({made}q.x, {number()})", f"{made} = {made}p"],
            [f"{made} = {made}q = [0]", f"{made}q.append(await echo({number()}))", f"{made}[0] += await add(1, {made}q.append(2) or {number()})", f"{made} += {made}q"],
            [f"{made}q = {{}}", f"{made} = {{'q': {made}q}}", f"for i in range(3):", f"    {made}q.setdefault(i % 2, []).append(await echo(i + {number()}))"]))

    def worked_off(self, made: str, number: Callable[[], str]) -> list[str]:
        """A list, a set or a dict from which a loop takes what it works on, with steps in between; at times more is added."""
        count, rest, q, x = self.random.randint(3, 50), self.random.randint(0, 2), f"{made}q", f"{made}x"
        begin, take = self.random.choice((
            (f"list(range({count}))", f"{q}.pop(0)"), (f"list(range({count}))", f"{q}.pop()"), (f"list(range({count}))", f"{q}.pop(len({q}) // 2)"),
            (f"[[i] for i in range({count})]", f"{q}.pop(0)[0]"), (f"{{i: [i] for i in range({count})}}", f"{q}.popitem()[0]"),
            (f"{{i: i for i in range({count})}}", f"{q}.pop(min({q}))"), (f"{{str(99 - i): i for i in range({count})}}", f"{q}.popitem()[1]"),
            (f"{{(i, 'x'): i for i in range({count})}}", f"{q}.pop(max({q}))"), (f"set(range({count}))", f"[max({q}), {q}.discard(max({q}))][0]"),
            (f"set(range({count}))", f"[min({q}), {q}.remove(min({q}))][0]")))
        more = f"{q}.append({q}.pop(0))" if begin.startswith("list") else f"del {q}[:2]" if begin.startswith("[") else \
            f"{q}.discard(7)" if begin.startswith("set") else f"{q}.setdefault({self.random.choice(('3', repr('k'), '(1, 2)'))}, 10)"
        return [f"{q} = {begin}", f"{made} = []", f"while len({q}) > {rest}:", f"    {x} = {take}", f"    {made}.append({x})",
                f"    if {x} % 7 == 3:", f"        {made}.append(await add({x}, len({q})))", f"        if len({q}) > 5 and len({made}) < 60:", f"            {more}",
                f"{made} = [{made}, {q}]"]

    def nested(self, made: str, number: Callable[[], str]) -> list[str]:
        """Comprehensions in each other, over what was awaited, and of results."""
        count = self.random.randint(0, 3)
        return [f"{made} = " + self.random.choice((
            f"[[await add(i, j) for j in range(i)] for i in range({count})]", f"[i + j for i in range({count}) for j in await echo([i, {number()}]) if await echo(i + j > 1)]",
            f"{{word: value for word, value in zip(WORDS, await asyncio.gather(*[add(i) for i in range({count})]))}}", f"sorted({{len(word) + {number()} for word in WORDS}})",
            f"{{i: {{j: await echo(i) for j in 'ab'}} for i in range({count})}}", f"sum([x for row in [[await echo(i), {number()}] for i in range({count})] for x in row])",
            f"[y for x in range({count}) if (y := await add(x, {number()})) > 2]", f"(1 < (await echo({count})) <= (await add({number()})) != 3)",
            f"[(await add(x)) if x % 2 else {number()} for x in [await echo(i) for i in range({count})]]", f"sorted(set(await asyncio.gather(echo({count}), add({count}))) | {{{number()}}}, key=repr)"))]

    def formatted(self, made: str, number: Callable[[], str]) -> list[str]:
        """Texts of what was computed."""
        width, value = self.random.randint(0, 9), self.random.choice(("x", "x + 1", "x / 3", "x > 2", "await echo(x)", "[x]"))
        spec = self.random.choice(("", f":>{width}", f":<{{{width}}}", ":.2f", ":05d", ":+", ":{w}", ":{w}.{w}", ":,", ":%", ":e", ":#x", "!r:^7", "=", ":{await echo(w)}"))
        text = self.random.choice((f'f"{{{value}{spec}}}|{{w}}"', f"'{{0}}-{{k:>{width}}}'.format(x, k=w)", f"'%d %5.1f %s' % (x, w, x == w)", "'{:>{}}'.format(x, w)", "str(x).zfill(w) + repr(w)"))
        return [f"{made} = (x := {number()}, w := {width}, {text})"]

    def starred(self, made: str, number: Callable[[], str]) -> list[str]:
        return [f"{made} = " + self.random.choice((
            f"await add(*[{number()}, {number()}])", f"await add(*({number()},), **{{'b': {number()}}})", f"await add(**{{'a': {number()}, 'b': await echo(1)}})",
            f"[*range(3), *(await echo([{number()}])), {number()}]", f"{{**{{'a': {number()}}}, **(await echo({{'a': 2}}))}}", f"max(*[{number()}, {number()}])",
            f"(lambda_ := [{number()}, *[await echo(2)]])[-1]"))]

    def cleaned(self, made: str, number: Callable[[], str]) -> list[str]:
        """``finally`` blocks that wait, leave loops, and raise."""
        leave, error = self.random.choice(("break", "continue", "pass", "raise KeyError(i)", "await fail('OSError')")), self.random.choice(ERRORS)
        last = self.random.choice(("break", "continue", "pass", f"{made}.append(await echo(i))", "raise ValueError(i)"))
        inner = ["    try:", f"        {made}.append(await add(i, {number()}))", f"        if i == {self.random.randint(0, 2)}:", f"            {leave}", "    finally:", f"        {made}.append('f')",
                 f"        if i >= {self.random.randint(0, 3)}:", f"            {last}", f"    {made}.append('end')"]
        loop = self.random.choice((["for i in range(3):", *inner, "else:", f"    {made}.append('else')"], ["i = 0", "while (i := i + 1) < 4:", *inner, "else:", f"    {made}.append('else')"]))
        return [f"{made} = []", "try:", *(f"    {line}" for line in loop), f"except ({error}, KeyError, ValueError) as caught:", f"    {made}.append((repr(caught), repr(caught.__cause__)))"]

    def matched(self, made: str, number: Callable[[], str]) -> list[str]:
        """match, in try, of the results of a gather."""
        return ["try:", f"    match await asyncio.gather(echo({number()}), pair({self.random.randint(0, 3)}), maybe({self.random.randint(0, 4)}), return_exceptions=True):",
                f"        case [0 | 1, [_, *{made}], int()]:", "            pass", f"        case [{made}, [1, 2], ValueError(args=[{made}t])]:", f"            {made} = [{made}, {made}t]",
                f"        case [int() as {made}, *_] if await echo({made} > {self.random.randint(0, 5)}):", f"            {made} += 1", "        case _:", f"            {made} = await echo('none')",
                "finally:", f"    await echo({self.random.randint(0, 9)})"]

    def timed_gather(self, made: str, number: Callable[[], str]) -> list[str]:
        """Limits around several at once, near and far."""
        self.is_ordered, limit = False, self.random.choice(("0.002", "1000", "None"))
        self.is_cut = True
        late = self.random.choice(("asyncio.sleep(1000)", "echo(1)", "asyncio.sleep(0.001, 5)"))
        wait = [f"    {made} = await asyncio.wait_for(asyncio.gather(echo(2), {late}), {limit})"] if self.chance(0.6) else \
            [f"    async with asyncio.timeout({limit}):", f"        {made} = await asyncio.gather(echo(2), {late})"]
        cause = f"    {made} = repr(caught), repr(caught.__cause__)"
        return ["try:", *wait, "except TimeoutError as caught:", cause, "finally:", f"    await add({self.random.randint(0, 9)})"]

    def called(self, made: str, number: Callable[[], str]) -> list[str]:
        """Helper methods with names, defaults, recursion, and objects that they change."""
        self.has_members = True
        return self.random.choice((
            [f"{made} = await self.count({number()} % 5)"], [f"{made} = []", f"await self.put({made}, {number()})", f"await self.put(what=await echo({number()}), to={made}, times=2)"],
            [f"{made} = [self.half(4), self.half(by=3, x=9), self.half({number()})]"], [f"{made} = await asyncio.gather(self.count(2), self.count(1))", f"{made} = sorted({made})"] if not self.is_ordered else
            [f"{made} = await self.count(3) + await self.count(x=2)"]))

    def block(self, depth: int, count: int = 3) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, count)):
            lines += self.statement(depth)
        return lines

    def indented(self, depth: int, count: int = 2) -> list[str]:
        return [f"    {line}" for line in self.block(depth, count)]

    def statement(self, depth: int) -> list[str]:
        simple: list[Callable[[], list[str]]] = [
            self.assign, self.assign, self.assign, self.augment, lambda: [self.expr(2)],
            lambda: [f"await {self.call(2)}"] if self.waits else ["pass"], self.unpack, self.place, self.delete]
        if self.chance(0.04):
            simple = [lambda: [f"return {self.expr(2)}"], lambda: [f"raise {self.random.choice(ERRORS)}({self.expr(1)})"],
                      lambda: [f"raise StopIteration({self.expr(1)})"], lambda: [f"raise {self.random.choice(ERRORS)}"], lambda: [f"raise {self.random.choice(ERRORS)}({self.expr(1)}) from {self.name()}"],
                      lambda: [f"raise {self.random.choice(CLASSES)}" + self.random.choice(("", f" from {self.random.choice(CLASSES)}", f" from {self.expr(1)}"))],
                      lambda: [f"assert {self.expr(1)}, {self.expr(1)}"]]
        if self.loops and self.chance(0.15):
            simple = [lambda: [f"if {self.expr(1)}:", f"    {self.random.choice(('break', 'continue'))}"]]
        if self.in_except and self.chance(0.1):
            return ["raise"]
        if depth <= 0 or self.chance(0.45):
            return self.random.choice(simple)()
        kinds = [self.if_, self.if_, self.for_, self.for_, self.while_, self.try_, self.try_, self.match_]
        if self.waits:
            kinds += [self.combined, self.combined, self.group, self.timed, lambda _: self.kept_calls(), lambda _: self.tasks(), lambda _: self.in_order(), lambda _: self.soured(), self.interrupted]
        return self.random.choice(kinds)(depth)

    def assign(self) -> list[str]:
        targets = "".join(f"{self.random.choice(self.names)} = " for _ in range(self.random.choice((1, 1, 1, 2))))
        return [f"{targets}{self.expr(3)}"]

    def augment(self) -> list[str]:
        target = self.random.choice((self.random.choice(self.names), f"{self.random.choice(self.names)}[{self.expr(1)}]", "self.kept",
                                     f"{self.random.choice(self.names)}.x", f"{self.random.choice(self.names)}[{self.bounds(2)}]"))
        return [f"{target} {self.random.choice(('+', '-', '*', '|'))}= {self.expr(2)}"]

    def unpack(self) -> list[str]:
        return [f"{self.targets()} = {self.expr(2)}"]

    def targets(self) -> str:
        """Several targets of one assignment, or of a loop."""
        a, b, c = self.random.sample(self.names, 3)
        return self.random.choice((f"{a}, {b}", f"{a}, {b}", f"{a}, *{b}", f"*{a}, {b}", f"{a}, *{b}, {c}", f"({a}, {b}), {c}", f"{a}, ({b}, *{c})", f"[{a}, {b}]",
                                   f"{a}, self.kept", f"{a}, {b}[0]", f"{a}, {b}.x", f"{a}, {b}[{self.expr(1)}]", f"*{b}[{self.expr(1)}], {a}",
                                   f"{b}[{self.expr(1)}], ({a}, self.kept)", f"({a}, d[{self.expr(1)}]), {c}"))

    def place(self) -> list[str]:
        return [self.random.choice((f"{self.random.choice(self.names)}[{self.expr(1)}] = {self.expr(2)}", f"self.kept = {self.expr(2)}",
                                    f"{self.random.choice(self.names)}[{self.expr(1)}]: int", f"{self.random.choice(self.names)}[{self.bounds(2)}]: int", f"{self.random.choice(self.names)}.x[{self.expr(1)}].x: int",
                                    f"{self.random.choice(self.names)}.x = {self.expr(1)}",
                                    f"{self.random.choice(self.names)}[{self.bounds(2)}] = {self.expr(2)}"))]

    def delete(self) -> list[str]:
        name = self.random.choice(self.names)
        if self.chance(0.2):
            return [f"del {name}[{self.bounds(2)}]"]
        if self.chance(0.2):
            return [f"del {self.random.choice(('({0}[{1}], {2}[{3}])', '[{0}[{1}]], {2}[{3}]')).format(name, self.expr(1), self.random.choice(self.names), self.atom())}"]
        return [f"del {name}[{self.atom()}]"] if self.chance(0.7) else [f"del {name}"] if self.chance(0.2) and not self.no_del else ["pass"]

    def if_(self, depth: int) -> list[str]:
        lines = [f"if {self.expr(2)}:", *self.indented(depth - 1)]
        if self.chance(0.3):
            lines += [f"elif {self.expr(2)}:", *self.indented(depth - 1)]
        if self.chance(0.5):
            lines += ["else:", *self.indented(depth - 1)]
        return lines

    def looped(self, depth: int) -> list[str]:
        self.loops += 1
        in_except, self.in_except = self.in_except, False
        lines = self.indented(depth - 1)
        self.in_except = in_except
        self.loops -= 1
        return lines

    def for_(self, depth: int) -> list[str]:
        over = self.iterable(1)
        target = self.random.choice(self.names)
        if over.endswith("()") and over.startswith(("d.", "{")):  # a view; a dict that grows ends the loop
            pair = f"{target}, {self.random.choice(self.names)}" if ".items()" in over else target
            return [f"for {pair} in {over}:", *self.looped(depth)]
        if self.chance(0.25):
            over, target = f"enumerate({over})", f"{target}, {self.random.choice(self.names)}"
        elif self.chance(0.1):
            over, target = f"[{self.expr(1)}, {self.expr(1)}]", self.targets()
        elif self.chance(0.15):
            target = f"{self.random.choice((target, 'd', 'd'))}[{self.expr(1)}]"
        copied = f"list({over})" if not over.startswith(("range", "enumerate")) else over
        if over.startswith("enumerate"):
            copied = f"enumerate(list({over[10:-1]}))"
        lines = [f"for {target} in {copied}[:3]:" if not copied.startswith(("range", "enumerate")) else f"for {target} in {copied}:",
                 *self.looped(depth)]
        return lines + (["else:", *self.indented(depth - 1)] if self.chance(0.25) else [])

    def while_(self, depth: int) -> list[str]:
        counter = self.fresh()
        test = f"{counter} < {self.random.randint(1, 3)}" + (f" and {self.expr(1)}" if self.chance(0.5) else "")
        lines = [f"{counter} = 0", f"while {test}:", f"    {counter} += 1", *self.looped(depth)]
        return lines + (["else:", *self.indented(depth - 1)] if self.chance(0.25) else [])

    def try_(self, depth: int) -> list[str]:
        lines = ["try:", *self.indented(depth - 1)]
        clauses = self.random.choice((0, 1, 1, 2))
        for _ in range(clauses):
            name = self.fresh() if self.chance(0.6) else ""
            lines.append(f"except {self.random.choice(CAUGHT)}{f' as {name}' if name else ''}:")
            if name:
                lines.append(f"    {self.random.choice(self.names)} = (type({name}).__name__, str({name}))")
            loops, self.loops = self.loops, self.loops
            in_except, self.in_except = self.in_except, True
            lines += self.indented(depth - 1)
            self.in_except, self.loops = in_except, loops
        if clauses and self.chance(0.3):
            lines += ["else:", *self.indented(depth - 1)]
        if not clauses or self.chance(0.4):
            in_except, self.in_except = self.in_except, False
            lines += ["finally:", *self.indented(depth - 1)]
            self.in_except = in_except
        return lines

    def match_(self, depth: int) -> list[str]:
        lines = [f"match {self.expr(2)}:"]
        for _ in range(self.random.randint(1, 3)):
            guard = f" if {self.expr(1)}" if self.chance(0.3) else ""
            pattern = self.random.choice(("1 | 2", "'x'", "None", f"[{self.random.choice(self.names)}, *_]", "{'k': 1}", "int()",
                                          f"str({self.random.choice(self.names)})", "[1, 2]", f"Point({self.random.choice(self.names)}, y=1)",
                                          f"[{self.names[0]}, {self.names[1]}]", "Colour.RED", "True", f"{{'k': {self.names[2]}, **{self.names[3]}}}",
                                          "[int(), str()] | [{}, _]", f"(1 | 2 | 'x') as {self.names[4]}", f"[{self.names[0]}, [*{self.names[1]}], _]",
                                          "Kind.A", "Rank.LOW", f"Pair({self.names[0]}, {self.names[1]})", "Own() | ValueError()", "1.5 | b'q'"))
            lines += [f"    case {pattern}{guard}:", *(f"    {line}" for line in self.indented(depth - 1))]
        return lines + (["    case _:", *(f"    {line}" for line in self.indented(depth - 1))] if self.chance(0.5) else [])

    # ---- a workflow

    def method_of(self, number: int) -> list[str]:
        is_async = self.chance(0.6)
        params = self.random.randint(0, 2)
        waits, self.waits = self.waits, is_async
        given = [f"{self.names[i]}=None" if self.chance(0.2) else self.names[i] for i in range(params)]
        if params == 2 and "=" in given[0]:
            given[1] = f"{self.names[1]}=0"
        rest = "".join(f"        {n} = {i}\n" for i, n in enumerate(self.names[params:]))
        lines = [f"    {'async ' if is_async else ''}def helper{number}(self{''.join(', ' + g for g in given)}):", *rest.splitlines(),
                 *(f"        {line}" for line in self.block(1, 3)), f"        return {self.expr(2)}", ""]
        self.waits = waits
        self.helpers.append((f"helper{number}", is_async, params))
        return lines

    def workflow(self, name: str) -> str:
        """The source of one class; the same seed gives the same source."""
        methods: list[str] = []
        if self.chance(0.5):
            for number in range(self.random.choice((1, 2))):
                methods += self.part_of(number)
        if self.chance(0.15):
            methods += self.late_of()
        for number in range(self.random.choice((0, 1, 2))):
            methods += self.method_of(number)
        self.names = list(NAMES)
        lines = ["@workflow", f"class {name}(Workflow):", "    async def run(self):", "        self.kept = 0",
                 "        a, b, c, d, e = " + ("1, 2, 3, 4, 5" if self.calm else "1, 'text', [1, 2, 3], {'k': 1}, (4, 5)")]
        lines += [f"        {line}" for line in (self.guarded() if self.chance(0.5) else self.block(3, 6))]
        lines += [f"        return a, b, c, d, {self.expr(2)}, self.kept", "", *methods]
        if self.has_members:
            lines += MEMBERS.splitlines()
        lines += self.cleaning
        text = "\n".join(lines) + "\n"
        return re.sub(r"\b(e|kept|helper\d)\b", r"__\1", text) if self.chance(0.15) else text  # private names

    def guarded(self) -> list[str]:
        """Statements of which each may raise, and the next one runs all the same."""
        said, lines = self.fresh(), []
        for _ in range(self.random.randint(3, 7)):
            caught = self.fresh()
            lines += ["try:", *(f"    {line}" for line in self.statement(2)), f"except Exception as {caught}:", f"    {said} += [type({caught}).__name__, str({caught})]"]
        return [f"{said} = []", *lines, f"if {said}:", f"    return a, b, c, d, e, self.kept, {said}"]
