"""parse_oracle -- random Python text, and what CPython's own parser makes of it.

test_parse_cpython.c starts this script. Each line it writes is {"text", "statements"}; the program answers
with the form it has parsed, or with {"refused": message, "offset": n}. The script makes the form from
`ast.parse` and compares. Some texts are spoiled: what Python refuses must be refused, and what Python
accepts must be parsed alike or, outside the documented subset, refused.
"""
import ast
import base64
import json
import math
import os
import random
import re
import sys

COUNT = int(os.environ.get("HD_PARSE_CASES", "20000"))
SEED = int(os.environ.get("HD_SEED", "1"))
R = random.Random(SEED)
NAMES = ["a", "b", "item", "x1", "_y", "größe"]
FUNCTIONS = ("abs all any ascii bin bool bytes callable chr dict divmod enumerate filter float format hex int "
             "isinstance len list map max min oct ord pow range repr reversed round set sorted str sum tuple type "
             "zip").split()
CLASSES = ["int", "str", "list", "dict", "ValueError", "KeyError", "object", "float"]
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
          ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&"}
UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "inv", ast.Not: "not"}
COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
           ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
DEEPEST = 25  # of what is made here; what Python nests deeper may be refused


REFUSED, SKIP = object(), object()


class Outside(Exception):
    """Python has it, the subset has not."""


# ---- what CPython's tree means -----------------------------------------------------------------------

def is_class(name):
    import builtins
    known = getattr(builtins, name, None)
    others = ("CancelledError", "Unsupported", "FrozenInstanceError")
    return name in others or (isinstance(known, type) and (
        issubclass(known, BaseException) or name in (
            "object int bool float str bytes tuple list dict set frozenset range type enumerate zip map filter "
            "reversed".split()))) and name not in ("EnvironmentError", "IOError")


def constant(v):
    if isinstance(v, bytes):
        return ["const", {"$bytes": base64.b64encode(v).decode()}]
    if isinstance(v, float) and not math.isfinite(v):
        return ["const", {"$double": "Infinity"}]
    if isinstance(v, bool) or v is None or isinstance(v, (str, float)):
        if isinstance(v, str) and any(0xD800 <= ord(c) <= 0xDFFF for c in v):
            raise Outside("surrogate")
        return v
    if isinstance(v, int):
        if v > 2 ** 63 - 1:
            raise Outside("big")
        return v
    raise Outside(type(v).__name__)


def starred(e):
    return ["*", form(e.value)] if isinstance(e, ast.Starred) else form(e)


def clauses(generators):
    for g in generators:
        if g.is_async:
            raise Outside("async")
        yield ["for", target(g.target), form(g.iter)] + [form(c) for c in g.ifs]


def pieces(values):
    out = []
    for v in values:
        if isinstance(v, ast.Constant):
            out.append(constant(v.value))
        else:
            spec = None if v.format_spec is None else fstring(v.format_spec)
            out.append(["fmt", form(v.value), chr(v.conversion) if v.conversion > 0 else None, spec])
    return out


def fstring(e):
    out = pieces(e.values)
    if all(isinstance(p, str) for p in out):
        return "".join(out)
    return ["fstr"] + out


def arguments(e):
    args = [starred(a) for a in e.args]
    names = [["**", form(k.value)] if k.arg is None else [k.arg, form(k.value)] for k in e.keywords]
    return [args, names] if names else [args]


def call(e):
    f = e.func
    if isinstance(f, ast.Attribute):
        return ["method", form(f.value), f.attr] + arguments(e)
    if isinstance(f, ast.Name):
        return ["call" if f.id in FUNCTIONS else "new", f.id] + arguments(e)
    raise Outside("callee")


def form(e):
    if isinstance(e, ast.Constant):
        return constant(e.value)
    if isinstance(e, ast.Name):
        return ["type" if is_class(e.id) else "func" if e.id in FUNCTIONS else "name", e.id]
    if isinstance(e, ast.UnaryOp):
        if isinstance(e.op, ast.USub) and isinstance(e.operand, ast.Constant) and e.operand.value == 2 ** 63 and \
                isinstance(e.operand.value, int):
            return -2 ** 63
        return [UNARY[type(e.op)], form(e.operand)]
    if isinstance(e, ast.BinOp):
        if type(e.op) not in BINARY:
            raise Outside("@")
        return [BINARY[type(e.op)], form(e.left), form(e.right)]
    if isinstance(e, ast.BoolOp):
        return ["and" if isinstance(e.op, ast.And) else "or"] + [form(v) for v in e.values]
    if isinstance(e, ast.Compare):
        out = ["cmp", form(e.left)]
        for op, right in zip(e.ops, e.comparators):
            out += [COMPARE[type(op)], form(right)]
        return out
    if isinstance(e, ast.IfExp):
        return ["if", form(e.test), form(e.body), form(e.orelse)]
    if isinstance(e, (ast.List, ast.Tuple, ast.Set)):
        return [type(e).__name__.lower()] + [starred(x) for x in e.elts]
    if isinstance(e, ast.Dict):
        out = ["dict"]
        for k, v in zip(e.keys, e.values):
            out += [["**", form(v)]] if k is None else [form(k), form(v)]
        return out
    if isinstance(e, ast.Attribute):
        if isinstance(e.value, ast.Name) and is_class(e.value.id):
            return ["func", "%s.%s" % (e.value.id, e.attr)]
        return ["attr", form(e.value), e.attr]
    if isinstance(e, ast.Subscript):
        s = e.slice
        if isinstance(s, ast.Slice):
            return ["slice", form(e.value)] + [None if p is None else form(p) for p in (s.lower, s.upper, s.step)]
        if isinstance(s, ast.Tuple) and any(isinstance(x, ast.Slice) for x in s.elts):
            raise Outside("slices")
        return ["item", form(e.value), form(s)]
    if isinstance(e, ast.NamedExpr):
        if is_class(e.target.id) or e.target.id in FUNCTIONS:
            raise Outside("built in")
        return [":=", e.target.id, form(e.value)]
    if isinstance(e, ast.JoinedStr):
        return fstring(e)
    if isinstance(e, ast.Call):
        return call(e)
    if isinstance(e, ast.Lambda):
        a = e.args
        if a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg or a.defaults:
            raise Outside("parameters")
        return ["lambda", [p.arg for p in a.args], form(e.body)]
    if isinstance(e, ast.DictComp):
        return ["dictcomp", form(e.key), form(e.value)] + list(clauses(e.generators))
    names = {ast.ListComp: "listcomp", ast.SetComp: "setcomp", ast.GeneratorExp: "gen"}
    if type(e) in names:
        return [names[type(e)], form(e.elt)] + list(clauses(e.generators))
    raise Outside(type(e).__name__)


def target(e):
    if isinstance(e, (ast.Tuple, ast.List)):
        return ["tuple"] + [["*", target(x.value)] if isinstance(x, ast.Starred) else target(x) for x in e.elts]
    out = form(e)
    if out[0] in ("type", "func"):
        raise Outside("built in")
    return out


def statement(s):
    if isinstance(s, ast.Assign):
        return [["assign", form(s.value)] + [target(t) for t in s.targets]]
    if isinstance(s, ast.AugAssign):
        if type(s.op) not in BINARY:
            raise Outside("@=")
        return [["aug", BINARY[type(s.op)], target(s.target), form(s.value)]]
    if isinstance(s, ast.Delete):
        return [["del"] + [target(t) for t in s.targets]]
    if isinstance(s, ast.Expr):
        return [["expr", form(s.value)]]
    if isinstance(s, ast.Pass):
        return []
    raise Outside(type(s).__name__)


def height(x):
    if isinstance(x, list):
        return 1 + max([height(y) for y in x], default=0)
    return 0


# ---- random trees --------------------------------------------------------------------------------------

def name():
    return ast.Name(R.choice(NAMES), ast.Load())


def literal():
    return ast.Constant(R.choice([
        0, 1, 17, 2 ** 63 - 1, 2 ** 63, 0.5, 1e300, 1e-7, float("inf"), True, False, None, "", "x", "it's", 'a"b', "\n\t\\",
        "größe \U0001F600", "\0", b"", b"\xff'x", "{}", "a{b"]))


def args(d):
    out = [node(d - 1) for _ in range(R.randrange(3))]
    if R.random() < 0.1:
        out.append(ast.Starred(node(d - 1), ast.Load()))
    keys = [ast.keyword(R.choice(["key", "start", None]), node(d - 1)) for _ in range(R.randrange(2))]
    return out, keys


def generators(d):
    return [ast.comprehension(places(1), node(d - 1), [node(d - 1) for _ in range(R.randrange(2))], 0)
            for _ in range(R.randrange(1, 3))]


def places(d):
    if d and R.random() < 0.3:
        return ast.Tuple([places(d - 1) for _ in range(R.randrange(1, 3))], ast.Store())
    return ast.Name(R.choice(NAMES), ast.Store())


def place(d):
    k = R.randrange(6)
    if k == 0:
        return ast.Attribute(node(1), R.choice(["v", "next"]), ast.Store())
    if k == 1:
        return ast.Subscript(node(1), node(1), ast.Store())
    if k == 2 and d:
        elements = [place(d - 1) for _ in range(R.randrange(1, 4))]
        if R.random() < 0.3:
            elements[R.randrange(len(elements))] = ast.Starred(place(0), ast.Store())
        return ast.Tuple(elements, ast.Store())
    return ast.Name(R.choice(NAMES), ast.Store())


def joined(d):
    values = []
    for _ in range(R.randrange(1, 4)):
        if R.random() < 0.5:
            values.append(ast.Constant(R.choice(["x", " = ", "{", "}", "größe"])))
        else:
            spec = None
            if R.random() < 0.4:
                spec = ast.JoinedStr([ast.Constant(">"), ast.FormattedValue(name(), -1, None)]
                                     if R.random() < 0.5 else [ast.Constant(R.choice(["03d", ".2f"]))])
            values.append(ast.FormattedValue(R.choice([name(), ast.BinOp(name(), ast.Add(), ast.Constant(1)),
                                                       ast.Subscript(name(), ast.Constant(0), ast.Load())]),
                                             R.choice([-1, 114, 115, 97]), spec))
    return ast.JoinedStr(values)


def some(d, least=0):
    out = [node(d - 1) for _ in range(R.randrange(least, 4))]
    if out and R.random() < 0.15:
        out[R.randrange(len(out))] = ast.Starred(node(d - 1), ast.Load())
    return out


def make_call(d):
    a, k = args(d)
    if R.random() < 0.4:
        return ast.Call(ast.Attribute(node(d - 1), R.choice(["append", "get", "split"]), ast.Load()), a, k)
    if R.random() < 0.1:
        return ast.Call(ast.Name("sum", ast.Load()), [ast.GeneratorExp(node(d - 1), generators(d))], [])
    return ast.Call(ast.Name(R.choice(FUNCTIONS + ["Item", "ValueError"]), ast.Load()), a, k)


def compare(d):
    n = R.randrange(1, 4)
    return ast.Compare(node(d - 1), [R.choice(list(COMPARE))() for _ in range(n)], [node(d - 1) for _ in range(n)])


def subscript(d):
    if R.random() < 0.5:
        part = lambda: node(d - 1) if R.random() < 0.6 else None  # noqa: E731
        return ast.Subscript(node(d - 1), ast.Slice(part(), part(), part()), ast.Load())
    return ast.Subscript(node(d - 1), node(d - 1), ast.Load())


def dictionary(d):
    n = R.randrange(4)
    return ast.Dict([None if R.random() < 0.2 else node(d - 1) for _ in range(n)], [node(d - 1) for _ in range(n)])


MAKERS = [
    lambda d: name(), lambda d: literal(), joined, make_call, make_call, compare, subscript, dictionary,
    lambda d: ast.Name(R.choice(CLASSES), ast.Load()),
    lambda d: ast.UnaryOp(R.choice(list(UNARY))(), node(d - 1)),
    lambda d: ast.BinOp(node(d - 1), R.choice(list(BINARY))(), node(d - 1)),
    lambda d: ast.BinOp(node(d - 1), R.choice(list(BINARY))(), node(d - 1)),
    lambda d: ast.BoolOp(R.choice([ast.And, ast.Or])(), [node(d - 1) for _ in range(R.randrange(2, 4))]),
    lambda d: ast.IfExp(node(d - 1), node(d - 1), node(d - 1)),
    lambda d: ast.List(some(d), ast.Load()), lambda d: ast.Tuple(some(d), ast.Load()),
    lambda d: ast.Set(some(d, 1)), lambda d: ast.Attribute(node(d - 1), R.choice(["v", "name"]), ast.Load()),
    lambda d: ast.Attribute(ast.Name("str", ast.Load()), "lower", ast.Load()),
    lambda d: ast.NamedExpr(ast.Name(R.choice(NAMES), ast.Store()), node(d - 1)),
    lambda d: ast.Lambda(ast.arguments([], [ast.arg(n) for n in R.sample(NAMES, R.randrange(3))], None, [], [], None,
                                       []), node(d - 1)),
    lambda d: ast.ListComp(node(d - 1), generators(d)), lambda d: ast.SetComp(node(d - 1), generators(d)),
    lambda d: ast.DictComp(node(d - 1), node(d - 1), generators(d)),
]


def node(d):
    return R.choice([name, literal])() if d <= 0 else R.choice(MAKERS)(d)


def one_statement():
    k = R.randrange(5)
    if k == 0:
        return ast.Expr(node(3))
    if k == 1:
        return ast.AugAssign(R.choice([ast.Name("a", ast.Store()), ast.Attribute(name(), "v", ast.Store())]),
                             R.choice(list(BINARY))(), node(2))
    if k == 2:
        return ast.Delete([R.choice([ast.Name("b", ast.Del()), ast.Subscript(name(), node(1), ast.Del())])
                           for _ in range(R.randrange(1, 3))])
    return ast.Assign([place(2) for _ in range(R.randrange(1, 3))], node(3))


def spoil(text):
    """A letter more, less or other."""
    letters = "()[]{},:.=+-*/%<>!~\"'\\ #\n;@0x1e_a if else for in not lambda await"
    for _ in range(R.randrange(1, 3)):
        at = R.randrange(len(text) + 1)
        k = R.randrange(3)
        if k == 0:
            text = text[:at] + R.choice(letters) + text[at:]
        elif k == 1:
            text = text[:at] + text[at + 1:]
        else:
            text = text[:at] + R.choice(letters) + text[at + 1:]
    return text.replace("\0", " ")


def loosen(text):
    """The same with other space: only where there is no string."""
    if "'" in text or '"' in text:
        return text
    for sign in ",()[]+:":
        if R.random() < 0.3:
            text = text.replace(sign, " %s " % sign if sign != ":" else ":")
    return text


def make_text(statements):
    try:
        if statements:
            lines = [ast.unparse(ast.fix_missing_locations(ast.Module([one_statement()], [])))
                     for _ in range(R.randrange(1, 4))]
            text = R.choice(["\n", "; ", "\n\n"]).join(lines)
        else:
            text = ast.unparse(ast.fix_missing_locations(node(R.randrange(1, 5))))
    except (ValueError, RecursionError):
        return None  # an f-string that this Python cannot write
    text = loosen(text).strip()
    if R.random() < 0.3:
        text = spoil(text).strip()
    if re.search(r"\b[0-9.][0-9a-fA-Fx_.]*(if|else|for|in|is|and|or|not)\b", text) or re.search(
            r"[0-9.](if|else|for|in|is|and|or|not)\b", text):
        return None  # "1if x", "0xfor x": Python takes it, with a warning
    return None if "\r" in text or "\f" in text or "\\N" in text or "# -*-" in text else text


def expected(text, statements):
    """The form; or why it must be refused."""
    try:
        tree = ast.parse(text, mode="exec" if statements else "eval")
    except IndentationError:
        return SKIP, None  # space at the beginning of a line means nothing here
    except (SyntaxError, ValueError, MemoryError, RecursionError) as e:
        return REFUSED, "python: %s" % e
    try:
        if statements:
            out = [f for s in tree.body for f in statement(s)]
        else:
            out = form(tree.body)
        if height(out) > DEEPEST:
            return REFUSED, "deep"
        return out, None
    except (Outside, RecursionError) as e:
        return REFUSED, "outside: %s" % e


def same(a, b):
    """Equal, with the types of numbers."""
    if type(a) != type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


def main():
    wrong = made = refused = 0
    while made < COUNT:
        statements = R.random() < 0.3
        text = make_text(statements)
        if text is None:
            continue
        made += 1
        want, why = expected(text, statements)
        if want is SKIP:
            continue
        print(json.dumps({"text": text, "statements": statements}), flush=True)
        got = json.loads(sys.stdin.readline())
        said = got.get("refused") if isinstance(got, dict) else None
        if want is REFUSED:
            refused += 1
            if said is None and why != "deep":
                wrong += 1
                print("parse_oracle: %r is taken as %s, but %s" % (text, json.dumps(got), why), file=sys.stderr)
        elif said and "'=' in an f-string" in said and re.search(r"=\s*[}!:]", text):
            refused += 1  # a form of f-strings that is not supported
        elif said is not None or not same(got, want):
            wrong += 1
            print("parse_oracle: %r gives %s, not %s" % (text, json.dumps(got), json.dumps(want)), file=sys.stderr)
        if wrong > 20:
            break
    print("parse_oracle: %d texts, %d to be refused, %d wrong (seed %d)" % (made, refused, wrong, SEED), file=sys.stderr)
    sys.exit(1 if wrong or refused < COUNT // 100 else 0)


main()
