"""Expressions: from the tree to the forms of docs/EXPRESSIONS.md.

Most expressions are one form. What waits inside of an expression (an ``await``, a call of a helper method) cannot be part
of a form: it becomes nodes before it, and its result a temporary variable. Everything that CPython evaluates earlier is
then kept in temporaries too, so that the order of evaluation stays; ``and``, ``or``, ``if``-``else`` and chained
comparisons become branches.
"""
from __future__ import annotations

import ast
import enum
from typing import Any, Callable, Iterator, Optional, Sequence

from .builtin import FUNCTIONS, METHODS, advice_for, advice_for_method
from .classes import BUILTIN_TYPES, runs_code
from .graph import Form, Graph, parts_of, variable_of
from .names import Scope, target_names
from .operations import Keywords, PythonOp
from .tree import walk

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "inv", ast.Not: "not"}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
_CONVERSIONS: dict[int, Optional[str]] = {-1: None, ord("r"): "r", ord("s"): "s", ord("a"): "a"}
_COMPREHENSIONS = {ast.ListComp: "listcomp", ast.SetComp: "setcomp", ast.GeneratorExp: "gen"}
_OF_TASKS = frozenset({"done", "cancel", "cancelled", "exception", "add_done_callback", "cancelling", "uncancel"})
_HIDDEN = ("__class__", "__name__", "__cause__")


def _grouped(forms: list[Form]) -> list[Form]:
    """Parts of a display with ``**``: CPython evaluates the pairs between two of them before it looks at their keys."""
    groups: list[Form] = []
    pairs: list[Form] = []
    for form in forms:
        if isinstance(form, list) and len(form) == 2 and form[0] == "**":
            groups += [["**", ["dict", *pairs]], form] if pairs else [form]
            pairs = []
        else:
            pairs.append(form)
    return [*groups, ["**", ["dict", *pairs]]] if pairs else groups


def _display_of(kind: str, forms: list[Form]) -> Form:
    return [kind, *(_grouped(forms) if kind == "dict" else forms)]


def _beginning(node: ast.BoolOp, count: int) -> ast.expr:
    """Its first operands."""
    last = node.values[count - 1]
    return ast.BoolOp(node.op, node.values[:count], lineno=node.lineno, col_offset=node.col_offset,
                      end_lineno=last.end_lineno, end_col_offset=last.end_col_offset)


def _has_temporary(form: Form) -> bool:
    name = variable_of(form)
    return name is not None and name.startswith("%") or any(map(_has_temporary, parts_of(form)))


class Expressions:
    """Compiles expressions of one function into its graph."""

    def __init__(self, scope: Scope, graph: Graph) -> None:
        self.scope = scope
        self.graph = graph
        self.source = scope.source
        self._temps = 0
        self._spent: list[str] = []
        self._waits: dict[ast.AST, bool] = {}
        self._forms: dict[type[ast.AST], Callable[[Any], Form]] = {
            ast.Constant: self._constant, ast.Name: self._name, ast.Attribute: self._attribute,
            ast.Subscript: self._subscript, ast.BinOp: self._binary, ast.UnaryOp: self._unary,
            ast.BoolOp: self._boolean, ast.Compare: self._compare, ast.IfExp: self._conditional,
            ast.List: self._display, ast.Tuple: self._display, ast.Set: self._display, ast.Dict: self._dict,
            ast.JoinedStr: self._fstring, ast.FormattedValue: self._formatted, ast.Call: self.call, ast.NamedExpr: self._walrus,
            ast.ListComp: self._comprehension, ast.SetComp: self._comprehension, ast.DictComp: self._comprehension,
            ast.GeneratorExp: self._stored_generator, ast.Await: self.awaited, ast.Lambda: self._stored_lambda,
            PythonOp: self.python_op, Keywords: self.keywords,
        }

    # ---- what the other parts of the compiler provide

    def awaited(self, node: ast.Await) -> Form:
        raise NotImplementedError

    def as_coroutine(self, emit: Callable[[], None], at: ast.AST) -> None:
        raise NotImplementedError

    def is_step(self, node: ast.Call) -> bool:
        """Whether the call, though not awaited, becomes nodes of its own: a helper method, a recorded value."""
        raise NotImplementedError

    def step(self, node: ast.Call) -> Form:
        raise NotImplementedError

    def python_op(self, node: PythonOp) -> Form:
        """An operation that Python does, as a step."""
        raise NotImplementedError

    def keywords(self, node: Keywords) -> Form:
        """What a call of an action gives by name."""
        raise NotImplementedError

    def own_attribute(self, node: ast.Attribute) -> Optional[Form]:
        """``self.name``; None: it is no attribute of the workflow itself."""
        raise NotImplementedError

    def coroutine(self, node: ast.Call) -> Optional[Form]:
        """A call of an action that is not awaited, as a value; None: it is no such call."""
        raise NotImplementedError

    def elements(self, over: ast.expr, form: Form, inner: list[ast.expr]) -> Form:
        """What a comprehension that waits goes through: an iterator is no value of a workflow, but its elements are."""
        raise NotImplementedError

    # ---- waiting

    def waits(self, node: Optional[ast.AST]) -> bool:
        """Whether the expression contains something that becomes nodes."""
        if node is None:
            return False
        known = self._waits.get(node)
        if known is None:
            known = self._waits[node] = self._looks_like_waiting(node)
        return known

    def _looks_like_waiting(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.Await, PythonOp)):
            return True
        if isinstance(node, ast.Lambda):
            return False
        if isinstance(node, ast.Call) and self.is_step(node):
            return True
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return self.waits(node.generators[0].iter) or self._waits_inside(node)
        return any(self.waits(child) for child in ast.iter_child_nodes(node))

    def temp(self) -> str:
        """A new temporary variable; it is deleted when its statement is over."""
        self._temps += 1
        name = f"%t{self._temps}"
        self._spent.append(name)
        return name

    def end_statement(self, at: ast.AST) -> None:
        """Deletes the temporaries of the statement."""
        self.release(0, at)

    def mark(self) -> int:
        """Temporaries that are made from here on belong to a way that may not be taken: see release."""
        return len(self._spent)

    def release(self, mark: int, at: ast.AST) -> None:
        """Deletes the temporaries since the mark, at the end of that way."""
        names, self._spent = self._spent[mark:], self._spent[:mark]
        if names and self.graph.is_reached:
            self.graph.do(["del", *(["name", name] for name in names)], at)

    def forget(self, mark: int) -> None:
        """The way has ended in an exception: its temporaries end with it."""
        del self._spent[mark:]

    def keep(self, form: Form, at: ast.AST) -> Form:
        """Evaluates the form now and keeps its value."""
        name = self.temp()
        self.graph.do(["assign", form, ["name", name]], at)
        return ["name", name]

    def set_temp(self, name: str, form: Form, at: ast.AST) -> None:
        if form != ["name", name]:
            self.graph.do(["assign", form, ["name", name]], at)

    def is_stable(self, form: Form, later: Sequence[Optional[ast.AST]]) -> bool:
        """Whether the form gives the same value, and no exception, when it is evaluated after the later ones."""
        if not isinstance(form, list):
            return True
        if form[0] in ("const", "type", "func", "lambda"):
            return True
        if form[0] != "name":
            return False
        if form[1].startswith("%t"):
            return True
        return form[1] in self.scope.stable

    def sequence(self, nodes: Sequence[Optional[ast.expr]]) -> list[Form]:
        """The forms of expressions that are evaluated from left to right."""
        last = max((i for i, node in enumerate(nodes) if self.waits(node)), default=-1)
        forms: list[Form] = []
        for i, node in enumerate(nodes):
            form = None if node is None else self.element(node)
            if i < last and node is not None:
                form = self._keep_element(form, nodes[i + 1:last + 1], node)
            forms.append(form)
        return forms

    def _keep_element(self, form: Form, later: Sequence[Optional[ast.AST]], at: ast.AST) -> Form:
        if isinstance(form, list) and len(form) == 2 and form[0] in ("*", "**"):
            return [form[0], self.keep(["list", form] if form[0] == "*" else ["dict", form], at)]
        return form if self.is_stable(form, later) else self.keep(form, at)

    # ---- expressions

    def expr(self, node: ast.expr) -> Form:
        """The form of an expression; nodes for what waits in it are made before."""
        make = self._forms.get(type(node))
        return self._refuse(node) if make is None else make(node)

    def element(self, node: ast.expr) -> Form:
        """An element of a display or argument of a call: it may have a star."""
        return ["*", self.expr(node.value)] if isinstance(node, ast.Starred) else self.expr(node)

    def _refuse(self, node: ast.expr) -> Any:
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            self.source.refuse(node, "`yield` makes a generator of the method",
                               "Collect the values in a list and return it.")
        if isinstance(node, ast.Starred):
            self.source.refuse(node, "a star cannot stand here", "Write [*values] or (*values,).")
        self.source.refuse(node, f"{type(node).__name__} is not supported", "Write it with other expressions, or in an action.")

    def _constant(self, node: ast.Constant) -> Form:
        if node.value is Ellipsis or isinstance(node.value, complex):
            kind = "`...`" if node.value is Ellipsis else "a complex number"
            self.source.refuse(node, f"{kind} is no value of a workflow", "Use None or a string; compute in an action.")
        return self.scope.constant(node.value, node)

    def _name(self, node: ast.Name) -> Form:
        variable = self.scope.variable(node.id)
        if variable is not None:
            return self.variable(variable, node)
        return self.scope.global_constant(node, self.scope.lookup(node))

    def variable(self, name: str, node: ast.AST) -> Form:
        return ["name", name]

    def _attribute(self, node: ast.Attribute) -> Form:
        own = self.own_attribute(node)
        if own is not None:
            return own
        known = self.scope.known(node)
        if known is not None:
            return self.scope.global_constant(node, known.value)
        if node.attr.startswith("__") and node.attr not in _HIDDEN:
            self.source.refuse(node, f"the attribute {node.attr} is not there in a workflow",
                               "Read it in an action, and return what you need.")
        return ["attr", self.expr(node.value), node.attr]

    def _subscript(self, node: ast.Subscript) -> Form:
        owner = self.scope.peek(node.value)
        if owner is not None and isinstance(owner.value, type):
            return self._of_class(node, owner.value)
        if isinstance(node.slice, ast.Slice):
            parts = [node.value, node.slice.lower, node.slice.upper, node.slice.step]
            return ["slice", *self.sequence(parts)]
        if isinstance(node.slice, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.slice.elts):
            self.source.refuse(node, "several slices in one pair of brackets", "Slice one dimension at a time.")
        return ["item", *self.sequence([node.value, node.slice])]

    def _of_class(self, node: ast.Subscript, cls: type) -> Form:
        """``Colour["RED"]``, which is known now; other subscripts of classes are for type checkers."""
        if issubclass(cls, enum.Enum) and isinstance(node.slice, ast.Constant) and node.slice.value in cls.__members__:
            return self.scope.constant(cls[str(node.slice.value)], node)
        if issubclass(cls, enum.Enum) and isinstance(node.slice, ast.Constant):
            self.source.refuse(node, f"{cls.__name__} has no member {node.slice.value!r}", f"Its members are {', '.join(cls.__members__)}.")
        self.source.refuse(node, f"a subscript of the class {cls.__name__}",
                           f"Write {cls.__name__}.NAME, {cls.__name__}(value) or {cls.__name__}[\"NAME\"]." if issubclass(cls, enum.Enum) else
                           "Write the class alone.")

    def _binary(self, node: ast.BinOp) -> Form:
        operator = _BINARY.get(type(node.op))
        if operator is None:
            self.source.refuse(node, "`@` multiplies matrices, which a workflow does not have", "Do it in an action.")
        return [operator, *self.sequence([node.left, node.right])]

    def operator(self, op: ast.operator, node: ast.AST) -> str:
        found = _BINARY.get(type(op))
        if found is None:
            self.source.refuse(node, "`@=` multiplies matrices, which a workflow does not have", "Do it in an action.")
        return found

    def _unary(self, node: ast.UnaryOp) -> Form:
        operand = node.operand
        if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant) and type(operand.value) in (int, float):
            return self.scope.constant(-operand.value, node)
        return [_UNARY[type(node.op)], self.expr(operand)]

    def _display(self, node: ast.expr) -> Form:
        assert isinstance(node, (ast.List, ast.Tuple, ast.Set))
        if isinstance(node, ast.Set) and any(isinstance(part, ast.Starred) for part in node.elts):
            return self._gathered("set", [self.element for _ in node.elts], node.elts, [True] * len(node.elts))
        return [type(node).__name__.lower(), *self.sequence(node.elts)]

    def _dict(self, node: ast.Dict) -> Form:
        parts = [part for pair in zip(node.keys, node.values) for part in pair if part is not None]
        if None not in node.keys:
            return ["dict", *self.sequence(parts)]
        merged = [value for key, value in zip(node.keys, node.values) if key is None]
        makes = [self._merged if part in merged else self.expr for part in parts]
        return self._gathered("dict", makes, parts, [part in merged for part in parts])

    def _merged(self, node: ast.expr) -> Form:
        return ["**", self.expr(node)]

    def _gathered(self, kind: str, makes: Sequence[Callable[[ast.expr], Form]], parts: list[ast.expr], closes: list[bool]) -> Form:
        """A display with stars. CPython makes the object before it evaluates what the first star unpacks, and looks at hashes and
        mappings as it goes; so what stands before something that waits becomes an object before."""
        last = max((i for i, part in enumerate(parts) if self.waits(part)), default=-1)
        stars = [i for i, part in enumerate(parts) if isinstance(part, ast.Starred) or kind == "dict" and closes[i]]
        forms: list[Form] = []

        def close(at: ast.expr) -> list[Form]:
            return [["*" if kind == "set" else "**", self.keep(_display_of(kind, forms), at)]]
        for i, part in enumerate(parts):
            if i <= last and i in stars and forms:
                forms = close(part)
            form = makes[i](part)
            forms.append(form if i >= last or closes[i] and i >= stars[0] else self._keep_element(form, (), part))
            if i < last and closes[i] and i >= stars[0]:
                forms = close(part)
        return _display_of(kind, forms)

    def _walrus(self, node: ast.NamedExpr) -> Form:
        variable = self.scope.variable(node.target.id)
        assert variable is not None
        if self.waits(node.value):
            form = self.expr(node.value)
            self.graph.do(["assign", form, ["name", variable]], node)
            return self.keep(["name", variable], node)
        return [":=", variable, self.expr(node.value)]

    # ---- texts

    def _fstring(self, node: ast.JoinedStr) -> Form:
        last = max((i for i, part in enumerate(node.values) if self.waits(part)), default=-1)
        forms: list[Form] = []
        for i, part in enumerate(node.values):
            form = part.value if isinstance(part, ast.Constant) else self._formatted_part(part)
            if i < last and isinstance(form, list):
                form = ["fmt", self.keep(["fstr", form], part), None, None]
            forms.append(form)
        return ["fstr", *forms]

    def _formatted_part(self, node: ast.expr) -> Form:
        assert isinstance(node, ast.FormattedValue)
        spec = node.format_spec
        value = self.expr(node.value)
        if self.waits(spec):
            value = self.keep(value, node)
        text = None if spec is None else self.expr(spec)
        if isinstance(text, list) and len(text) == 2 and isinstance(text[1], str):
            text = text[1]
        return ["fmt", value, _CONVERSIONS[node.conversion], text]

    def _formatted(self, node: ast.FormattedValue) -> Form:
        return ["fstr", self._formatted_part(node)]

    # ---- short circuits

    def _boolean(self, node: ast.BoolOp) -> Form:
        word = "and" if isinstance(node.op, ast.And) else "or"
        if not self.waits(node):
            return [word, *(self.expr(value) for value in node.values)]
        result = self.temp()
        over: list[Any] = []
        first = next(i for i, value in enumerate(node.values) if self.waits(value))
        plain = [self.expr(value) for value in node.values[:first]]
        if plain:
            self.set_temp(result, plain[0] if len(plain) == 1 else [word, *plain], node)
            over += self.skip(["name", result], word == "or", node, _beginning(node, first))
        for i, value in enumerate(node.values[first:], first):
            mark = self.mark()
            self.set_temp(result, self.expr(value), value)
            self.release(mark, value)
            if i + 1 < len(node.values):
                over += self.skip(["name", result], word == "or", node, value)
        self.graph.give(over)
        return ["name", result]

    def skip(self, test: Form, when: bool, at: ast.AST, source: Optional[ast.expr] = None) -> list[Any]:
        """Goes on where the value is not `when`; gives the ends of the other way. `source`: what the test was made of."""
        branch = self.graph.add("BRANCH", at, "if", when=[test], **self.condition(test, source))
        self.graph.behind(branch, "GUARD", 0 if when else 1)
        over = self.graph.take()
        self.graph.behind(branch, "GUARD", 1 if when else 0)
        return over

    def condition(self, test: Form, source: Optional[ast.expr]) -> dict[str, str]:
        """The comment of a BRANCH whose test takes steps, so that its form names a temporary: the test as it was written."""
        return {"comment": self.source.text(source)} if source is not None and _has_temporary(test) else {}

    def _compare(self, node: ast.Compare) -> Form:
        names = [_COMPARE[type(op)] for op in node.ops]
        parts = [node.left, *node.comparators]
        if not any(self.waits(part) for part in parts[2:]):
            forms = self.sequence(parts)
            return ["cmp", forms[0], *(x for pair in zip(names, forms[1:]) for x in pair)]
        result, over = self.temp(), []
        left, right = self.sequence(parts[:2])
        held = self.temp()
        for i, name in enumerate(names):
            mark = self.mark()
            if i:
                left, right = ["name", held], self.expr(parts[i + 1])
            left = left if self.is_stable(left, ()) else self.keep(left, node)
            right = right if self.is_stable(right, ()) else self.keep(right, node)
            self.set_temp(result, ["cmp", left, name, right], node)
            self.set_temp(held, right, node)
            self.release(mark, node)
            if i + 1 < len(names):
                over += self.skip(["name", result], False, node)
        self.graph.give(over)
        return ["name", result]

    def _conditional(self, node: ast.IfExp) -> Form:
        if not (self.waits(node.body) or self.waits(node.orelse)):
            return ["if", *self.sequence([node.test, node.body, node.orelse])]
        result = self.temp()
        over = self.skip(self.expr(node.test), False, node, node.test)
        mark = self.mark()
        self.set_temp(result, self.expr(node.body), node)
        self.release(mark, node)
        then = self.graph.take()
        self.graph.give(over)
        self.set_temp(result, self.expr(node.orelse), node)
        self.release(mark, node)
        self.graph.give(then)
        return ["name", result]

    # ---- calls of what the evaluator has

    def call(self, node: ast.Call) -> Form:
        if self.is_step(node):
            return self.step(node)
        made = self.coroutine(node)
        if made is not None:
            return made
        known = self.scope.known(node.func)
        if known is not None:
            return self.call_known(node, known.value)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        self.source.refuse(node, "only functions that are known by name can be called",
                           "Call an action, a helper method, a built-in function or a method of a value.")

    def call_known(self, node: ast.Call, function: Any) -> Form:
        try:
            name = FUNCTIONS.get(function)
        except TypeError:
            name = None
        if name is None:
            return self.call_other(node, function)
        if name == "type" and len(node.args) == 3:
            self.source.refuse(node, "type() with three arguments makes a class", "Define it at the top of the file.")
        if name == "isinstance" and len(node.args) == 2:
            node = ast.copy_location(ast.Call(node.func, [node.args[0], self._classes(node.args[1])], node.keywords), node)
        args, names = self.arguments(node)
        return ["call", name, args, names] if names else ["call", name, args]

    def _classes(self, node: ast.expr) -> ast.expr:
        """``int | str`` as the tuple ``(int, str)``, which means the same to isinstance."""
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self._classes(part) for part in node.elts], ast.Load()), node)
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.BitOr):
            return node
        parts = [self._classes(part) for part in (node.left, node.right)]
        for i, part in enumerate(parts):
            known = self.scope.peek(part)
            if isinstance(part, ast.Constant) and part.value is None and self.scope.variable("type") is None:
                parts[i] = ast.copy_location(ast.Call(ast.copy_location(ast.Name("type", ast.Load()), part), [part], []), part)
            elif not isinstance(part, ast.Tuple) and not (known is not None and isinstance(known.value, type)):
                return node
        return ast.copy_location(ast.Tuple(parts, ast.Load()), node)

    def call_other(self, node: ast.Call, function: Any) -> Form:
        method = self._method_of_type(node, function)
        if method is not None:
            return method
        shown = ast.unparse(node.func)
        self.source.refuse(node, f"{shown}() is an ordinary function, which a workflow cannot call", advice_for(function))

    def _method_of_type(self, node: ast.Call, function: Any) -> Optional[Form]:
        """``str.lower(x)``, ``dict.fromkeys(x)``."""
        if not isinstance(node.func, ast.Attribute):
            return None
        owner = self.scope.known(node.func.value)
        if owner is None or owner.value not in (str, bytes, int, float, list, tuple, dict, set):
            return None
        if node.func.attr not in METHODS:
            return None
        args, names = self.arguments(node)
        return ["method", ["type", owner.value.__name__], node.func.attr, args, names]

    def _method(self, node: ast.Call, function: ast.Attribute) -> Form:
        if function.attr in _OF_TASKS:
            self.source.refuse(node, f"{function.attr}() of a task is not supported",
                               "Await the task, or call result() behind the block of its TaskGroup.")
        if function.attr == "split" and node.args and self._is_exception_class(node.args[0]):
            self.source.refuse(node, "split of an ExceptionGroup is not supported", "Look at its .exceptions in a loop.")
        if function.attr == "add_note":
            self.source.refuse(node, "add_note() of an exception is not supported", "Put it into the text, or into an attribute.")
        if function.attr not in METHODS:
            known = self.scope.peek(function.value)
            self.source.refuse(node, f"{function.attr} is no method of str, bytes, int, float, list, tuple, dict or set",
                               advice_for_method(function.attr, known.value if known is not None else None))
        if self.waits_in_arguments(node):
            receiver = self.expr(function.value)
            receiver = receiver if self.is_stable(receiver, ()) else self.keep(receiver, function)
            self.graph.do(["expr", ["call", "heddle.method", [receiver, function.attr]]], function)
        else:
            receiver = self.expr(function.value)
        args, names = self.arguments(node)
        return ["method", receiver, function.attr, args, names] if names else ["method", receiver, function.attr, args]

    def _is_exception_class(self, node: ast.expr) -> bool:
        """Whether it is a class of exceptions, or a tuple of them."""
        if isinstance(node, ast.Tuple):
            return any(map(self._is_exception_class, node.elts))
        known = self.scope.peek(node)
        return known is not None and isinstance(known.value, type) and issubclass(known.value, BaseException)

    def waits_in_arguments(self, node: ast.Call) -> bool:
        return any(self.waits(arg) for arg in node.args) or any(self.waits(k.value) for k in node.keywords)

    def arguments(self, node: ast.Call) -> tuple[list[Form], list[Form]]:
        """Positional arguments, and those by name as pairs."""
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        last = max((i for i, value in enumerate(values) if self.waits(value)), default=-1)
        args: list[Form] = []
        names: list[Form] = []
        for i, value in enumerate(values):
            keyword = node.keywords[i - len(node.args)].arg if i >= len(node.args) else None
            bound = self._bound_method(value, node, i < last) if keyword == "key" or i == 0 and self._maps(node) else None
            form = self._argument(value) if bound is None else bound
            if i == 0 and self._maps(node) or keyword == "key" and self._sorts(node):
                form = self._called(value, form, node, keyword)
            if i >= len(node.args) and keyword is None:
                form = ["**", form]
            if i < last and len(node.args) == 1 and isinstance(value, ast.Starred):
                form = ["*", form[1] if self.is_stable(form[1], ()) else self.keep(form[1], value)]  # looked at by the call
            elif i < last:
                form = self._keep_element(form, values[i + 1:last + 1], value)
            if i < len(node.args):
                args.append(form)
            else:
                names.append(form if keyword is None else [keyword, form])
        return args, names

    def _maps(self, node: ast.Call) -> bool:
        """Whether the first argument is a function: of map and filter."""
        return self._is_called(node, map, filter)

    def _is_called(self, node: ast.Call, *functions: Any) -> bool:
        known = self.scope.peek(node.func)
        return known is not None and any(known.value is function for function in functions)

    def _sorts(self, node: ast.Call) -> bool:
        """Whether the argument `key` is a function: of sorted, min, max and list.sort."""
        return self._is_called(node, sorted, min, max, list.sort) or isinstance(node.func, ast.Attribute) and node.func.attr == "sort"

    def _called(self, node: ast.expr, form: Form, call: ast.Call, keyword: Optional[str]) -> Form:
        """A class that is given as a function: the engine makes objects of few classes so. The form, or one that raises if it
        turns out to be another class."""
        known = self.scope.peek(node)
        if known is not None and isinstance(known.value, type) and not self._makes_alone(known.value):
            shown = ast.unparse(node)
            listed = f"[{shown}(x) for x in ...]" if self._is_called(call, map) else f"[x for x in ... if {shown}(x)]"
            self.source.refuse(node, f"the class {shown} is given as a function", f"Write {f'key=lambda x: {shown}(x)' if keyword else listed}.")
        if known is not None or not isinstance(form, list) or form[0] in ("lambda", "if", "func", "const"):
            return form
        self._temps += 1
        held: Form = ["name", f"%f{self._temps}"]
        plain = ["tuple", *(["type", cls.__name__] for cls in FUNCTIONS if isinstance(cls, type) and cls in BUILTIN_TYPES)]
        text = f"{self.source.at(node)}: a class that is given as a function"
        is_other = ["and", ["call", "isinstance", [[":=", held[1], form], ["type", "type"]]], ["cmp", held, "not in", plain]]
        return ["if", is_other, ["call", "heddle.raise", [["new", "Unsupported", [text]]]], held]

    def _makes_alone(self, cls: type) -> bool:
        return cls in FUNCTIONS or issubclass(cls, BaseException) and not runs_code(cls)

    def _bound_method(self, node: ast.expr, call: ast.Call, early: bool) -> Optional[Form]:
        """``key=d.get`` as ``key=lambda x: d.get(x)``, and AttributeError if `d` has no such method. `early`: the call comes
        behind something that waits. None: it is something else."""
        if not isinstance(node, ast.Attribute) or node.attr not in METHODS or self.scope.peek(node) is not None:
            return None
        count = len(call.args) - 1 if self._maps(call) and isinstance(call.func, ast.Name) and call.func.id == "map" else 1
        if not self._is_path(node.value) or any(isinstance(arg, ast.Starred) for arg in call.args):
            self.source.refuse(node, f"the method {node.attr} of an object is given as a function",
                               f"Give the object a name, and write a lambda: lambda x: name.{node.attr}(x).")
        receiver, params = self.expr(node.value), [f"%x{i}" for i in range(count)]
        if early and not self.is_stable(receiver, ()):
            receiver = self.keep(receiver, node)
        function: Form = ["lambda", params, ["method", receiver, node.attr, [["name", param] for param in params]]]
        check: Form = ["call", "heddle.method", [receiver, node.attr]]
        if early:
            self.graph.do(["expr", check], node)
        return function if early else ["if", check, None, function]

    def _is_path(self, node: ast.expr) -> bool:
        """Whether it is the same object however often it is evaluated: a name or constant, or an attribute of one."""
        return isinstance(node, (ast.Name, ast.Constant)) or isinstance(node, ast.Attribute) and self._is_path(node.value)

    def _argument(self, node: ast.expr) -> Form:
        """An argument of a built-in: it may be a function or a generator."""
        if isinstance(node, ast.Lambda):
            return self._lambda(node)
        if isinstance(node, ast.GeneratorExp):
            return self._generator(node)
        known = self.scope.known(node) if isinstance(node, (ast.Name, ast.Attribute)) and not self._is_own(node) else None
        if known is not None and not isinstance(known.value, type) and callable(known.value):
            return self._function(node, known.value)
        return self.element(node)

    def _is_own(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and self.own_attribute(node) is not None

    def _function(self, node: ast.expr, function: Any) -> Form:
        name = FUNCTIONS.get(function) if getattr(function, "__hash__", None) else None
        if name is None and isinstance(node, ast.Attribute):
            owner = self.scope.known(node.value)
            if owner is not None and owner.value in (str, bytes, int, float, list, tuple, dict, set):
                name = f"{owner.value.__name__}.{node.attr}"
        if name is None:
            self.source.refuse(node, f"{ast.unparse(node)} cannot be given as a function",
                               "Give a lambda of one expression, a built-in function, or a method such as str.lower.")
        return ["func", name]

    def _lambda(self, node: ast.Lambda) -> Form:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            self.source.refuse(node, "a lambda with defaults, * or **", "Write a lambda with plain parameters.")
        if any(isinstance(inner, ast.NamedExpr) for inner in walk(node.body)):
            self.source.refuse(node, "`:=` inside of a lambda", "Assign outside of the lambda.")
        params = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        self.scope.renames.append({name: name for name in params})
        if self.waits(node.body):
            self.source.refuse(node, "a lambda that calls a helper method or an action, or does what code of a class does",
                               "Compute the values in a loop before, and use them in the lambda.")
        form = ["lambda", params, self.expr(node.body)]
        self.scope.renames.pop()
        return form

    def _stored_lambda(self, node: ast.Lambda) -> Form:
        self.source.refuse(node, "a lambda can only be an argument: key= of sorted, min, max, list.sort; map; filter",
                           "Write the expression where it is needed, or a helper method.")

    # ---- comprehensions

    def _stored_generator(self, node: ast.GeneratorExp) -> Form:
        self.source.refuse(node, "a generator can only be an argument of a built-in function or method",
                           "Write a list: [... for ... in ...].")

    def _generator(self, node: ast.GeneratorExp) -> Form:
        if self._waits_inside(node):
            self.source.refuse(node, "a generator that waits, calls a helper method, or does what code of a class does",
                               "Write a list: [... for ... in ...].")
        return self._comprehension(node)

    def _waits_inside(self, node: Any) -> bool:
        """Whether a comprehension waits, apart from its first iterable, which is evaluated outside of it."""
        names = [name for clause in node.generators for name in target_names(clause.target)]
        self.scope.renames.append({name: name for name in names})
        found = any(self.waits(part) for part in self._parts(node))
        self.scope.renames.pop()
        return found

    def _parts(self, node: Any) -> Iterator[ast.expr]:
        yield from ([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        for i, clause in enumerate(node.generators):
            if i:
                yield clause.iter
            yield from clause.ifs

    def _comprehension(self, node: Any) -> Form:
        for clause in node.generators:
            if clause.is_async:
                self.source.refuse(node, "`async for` in a comprehension", "Get the values with an action that returns a list.")
        if self._waits_inside(node):
            return self._loops(node)
        first = self.expr(node.generators[0].iter)
        clauses: list[Form] = []
        self.scope.renames.append({})
        for i, clause in enumerate(node.generators):
            over = first if i == 0 else self.expr(clause.iter)
            self.check_comprehension_target(clause.target)
            self.scope.renames[-1].update({name: name for name in target_names(clause.target)})
            clauses.append(["for", self.plain_target(clause.target), over, *(self.expr(test) for test in clause.ifs)])
        if isinstance(node, ast.DictComp):
            form = ["dictcomp", self.expr(node.key), self.expr(node.value), *clauses]
        else:
            form = [_COMPREHENSIONS[type(node)], self.expr(node.elt), *clauses]
        self.scope.renames.pop()
        return form

    def check_comprehension_target(self, target: ast.expr) -> None:
        for node in walk(target):
            if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
                self.source.refuse(node, "the variable of a comprehension is not a plain name",
                                   "Write a loop, or take the element apart inside of the comprehension.")

    def plain_target(self, target: ast.expr) -> Form:
        if isinstance(target, ast.Name):
            return ["name", self.scope.variable(target.id)]
        assert isinstance(target, (ast.Tuple, ast.List))
        return ["tuple", *(self.plain_target(part) for part in target.elts)]

    def _loops(self, node: Any) -> Form:
        """A comprehension that waits: the loops that it stands for, with variables of its own."""
        result = self.temp()
        over = self.expr(node.generators[0].iter)
        empty = {ast.ListComp: ["list"], ast.SetComp: ["set"], ast.DictComp: ["dict"]}[type(node)]
        over = self.keep(self.elements(node.generators[0].iter, over, list(self._parts(node))), node)
        self.graph.do(["assign", empty, ["name", result]], node)
        self.scope.renames.append({})
        self.as_coroutine(lambda: self._loop(node, result, 0, over), node)
        self.scope.renames.pop()
        return ["name", result]

    def _loop(self, node: Any, result: str, depth: int, over: Form) -> None:
        if depth == len(node.generators):
            self._add_element(node, result)
            return
        clause = node.generators[depth]
        over = over if depth == 0 else self.elements(clause.iter, self.expr(clause.iter), list(self._parts(node)))
        self.check_comprehension_target(clause.target)
        self._temps += 1
        self.scope.renames[-1].update({name: f"{name}%{self._temps}" for name in target_names(clause.target)})
        head = self.graph.add("LOOP_HEAD", clause.target, "for", over=over, into=self.plain_target(clause.target))
        self.graph.behind(head, "CONTINUE")
        skipped: list[Any] = []
        mark = self.mark()
        for test in clause.ifs:
            skipped += self.skip(self.expr(test), False, test, test)
        self._loop(node, result, depth + 1, None)
        self.release(mark, node)
        self.graph.give(skipped)
        self.graph.lead(head, "BACK", clause.target)
        self.graph.behind(head, "BREAK")

    def _add_element(self, node: Any, result: str) -> None:
        target = ["name", result]
        if isinstance(node, ast.DictComp):
            key, value = self.sequence([node.key, node.value])
            self.graph.do(["expr", ["method", target, "update", [["dict", key, value]]]], node)
            return
        method = "add" if isinstance(node, ast.SetComp) else "append"
        self.graph.do(["expr", ["method", target, method, [self.expr(node.elt)]]], node)
