"""expr_oracle.py -- random expressions for tests/model/test_expr_cpython.c, and what CPython makes of them.

Written to standard output: one case per line, in batches; read from standard input: the answers. Each case
is a tree in the JSON form of docs/EXPRESSIONS.md. The same tree becomes Python source and is evaluated
here, with integers checked to be of 64 bits after each operation. Ends with status 1 where an answer
differs, with the first differing cases on standard error.

    HD_EXPR_CASES=100000   how many
    HD_EXPR_SEED=1         which
"""
import base64
import dataclasses
import enum
import gc
import json
import math
import os
import random
import resource
import sys

CASES = int(os.environ.get("HD_EXPR_CASES", "100000"))
SEED = int(os.environ.get("HD_EXPR_SEED", os.environ.get("HD_SEED", "1")))
BATCH = 500
R = random.Random(SEED)
LOW, HIGH = -2 ** 63, 2 ** 63 - 1


# Classes of iterators that heddle does not tell apart.
ALIKE = {"range_iterator": "reversed", "dict_reversevalueiterator": "dict_reversekeyiterator",
         "dict_reverseitemiterator": "dict_reversekeyiterator"}


class Skip(BaseException):
    """The case is not comparable: too large, or the order of a set would show."""


# ---- Classes that both sides know -------------------------------------------------------------

@dataclasses.dataclass
class Item:
    name: object
    price: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    y: object


import collections
Point = collections.namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class ShopError(ValueError):
    pass


def members_are_fixed(self, name, value=None):
    """CPython would change the member for the whole program, which heddle refuses."""
    raise Unsupported("changing an attribute of a member of 'Color'")


Color.__setattr__ = Color.__delattr__ = members_are_fixed
for cls in (Item, Frozen, Point, Color, ShopError):
    cls.__qualname__ = cls.__name__
    cls.__module__ = "builtins"  # messages then have the bare name


# ---- Encoding: what encode.c does, on values of CPython ----------------------------------------

def scalar(v):
    if isinstance(v, float) and (v != v or v in (math.inf, -math.inf)):
        return {"$double": "NaN" if v != v else "Infinity" if v > 0 else "-Infinity"}
    if isinstance(v, bytes):
        return {"$bytes": base64.b64encode(v).decode()}
    return v


class Encoder:
    """Slots and objects by number; numbers in the order in which objects are met."""

    def __init__(self):
        self.numbers, self.objects = {}, []
        self.strange = 0  # iterators and functions met

    def slot(self, v):
        if isinstance(v, (list, dict, set, Item, Frozen, BaseException)):
            if id(v) not in self.numbers:
                self.objects.append(v)
                self.numbers[id(v)] = len(self.objects)
            return {"$$ref": self.numbers[id(v)]}
        if v is None or isinstance(v, (bool, int, float, bytes)):
            if isinstance(v, bool) or not isinstance(v, int) or LOW <= v <= HIGH:
                return scalar(v)
            raise Skip
        if isinstance(v, str):
            if any("\ud800" <= c <= "\udfff" for c in v):
                return {"$$str": [ord(c) for c in v]}
            return v
        if isinstance(v, Point):
            return {"$$tuple": [self.slot(x) for x in v], "class": "Point"}
        if isinstance(v, tuple):
            return {"$$tuple": [self.slot(x) for x in v]}
        if isinstance(v, range):
            return {"$$range": [v.start, v.stop, v.step]}
        if isinstance(v, enum.Enum):
            return {"$$enum": type(v).__name__, "name": v.name, "value": self.slot(v.value)}
        if isinstance(v, type):
            return {"$$type": v.__name__}
        if type(v).__name__ in ("dict_keys", "dict_values", "dict_items"):
            return {**self.slot(gc.get_referents(v)[0]), "view": type(v).__name__[5:]}
        self.strange += 1
        return "<cannot be encoded>"

    def names(self, d, tag=None):
        out = {"$$record": tag} if tag else {}
        for key, value in d.items():
            # One dollar for our own encoding, one for the JSON text.
            out["$$" + key if key.startswith("$") else key] = self.slot(value)
        if list(d) != sorted(d):
            out["$$keys"] = [self.slot(k) for k in d]
        return out

    def content(self, v):
        if isinstance(v, list):
            return [self.slot(x) for x in v]
        if isinstance(v, BaseException):
            out = {"$$error": type(v).__name__, "message": self.slot(str(v)),
                   "args": [self.slot(x) for x in v.args]}
            if vars(v):
                out["attrs"] = self.names(vars(v))
            if isinstance(v, ShopError):
                out["bases"] = ["ValueError"]
            return out
        if several_nans(v if isinstance(v, (set, dict)) else ()):
            raise Skip
        if isinstance(v, set):
            return {"$$set": [self.slot(x) for x in v]}
        if isinstance(v, (Item, Frozen)):
            return self.names(vars(v), type(v).__name__)
        if all(type(k) is str and not any("\ud800" <= c <= "\udfff" for c in k) for k in v):
            return self.names(v)
        return {"$$dict": [[self.slot(k), self.slot(x)] for k, x in v.items()]}

    def all_objects(self):
        out, i = [], 0
        while i < len(self.objects):
            out.append(self.content(self.objects[i]))
            i += 1
        return out


def unordered(x):
    """Sets have no order here: their encodings are sorted."""
    if isinstance(x, dict):
        x = {k: unordered(v) for k, v in x.items()}
        if "$$set" in x:
            x["$$set"] = sorted(x["$$set"], key=json.dumps)
        return x
    return [unordered(v) for v in x] if isinstance(x, list) else x


def text_of(x):
    """JSON text that tells 1 from 1.0 and True, and -0.0 from 0.0."""
    return json.dumps(unordered(x), sort_keys=True)


# ---- Source: the tree as Python ---------------------------------------------------------------

def several_nans(v):
    """Floats have no identity here: NaNs that are several objects in CPython are one value."""
    return len({id(x) for x in v if type(x) is float and x != x}) > 1


def checked(v):
    """An int beyond 64 bits is our OverflowError."""
    if type(v) is int and not LOW <= v <= HIGH:
        raise OverflowError("integer beyond 64 bits")
    if type(v) is tuple and any(type(x) is int and not LOW <= x <= HIGH for x in v):
        raise OverflowError("integer beyond 64 bits")
    if type(v) is tuple and several_nans(v):
        raise Skip
    if isinstance(v, (str, bytes, list, tuple)) and len(v) > 20000:
        raise Skip
    if isinstance(v, complex):
        raise Unsupported("complex numbers: a negative number to a fractional power")
    if type(v) is enumerate and v.__reduce__()[1][1] > HIGH - 20000:  # its numbers are not checked when they are made
        raise Skip
    return v


class Unsupported(BaseException):
    pass


def is_sequence(v):
    return isinstance(v, (str, bytes, list, tuple))


def guarded(op, a, b):
    """Refuses what would take CPython too long before it begins."""
    if op == "*":
        for s, n in ((a, b), (b, a)):
            if is_sequence(s) and isinstance(n, int) and len(s) * n > 20000:
                raise Skip
    if op == "**" and isinstance(a, int) and isinstance(b, int) and b > 64 and a not in (0, 1, -1):
        raise OverflowError("integer beyond 64 bits")
    if op == "**" and isinstance(a, (int, float)) and isinstance(b, float) and a < 0 and b == b and b != b // 1 and abs(a) != math.inf and abs(b) != math.inf:
        raise Unsupported("complex numbers: a negative number to a fractional power")
    if op == "<<" and isinstance(a, int) and isinstance(b, int) and b > 64 and a:
        raise OverflowError("integer beyond 64 bits")
    if op == "+" and isinstance(a, list):
        it(b)
    if op == "%" and isinstance(a, str):
        it(b)
        parts = b if isinstance(b, tuple) else b.values() if isinstance(b, dict) else [b]
        if any(isinstance(x, float) and abs(x) >= 2 ** 63 for x in parts):
            raise Skip
    if op == "%" and isinstance(a, bytes):
        raise Unsupported("the operator % on bytes")
    if op == "|" and (isinstance(a, type) or isinstance(b, type)):
        raise Skip


def make_operator(op, inplace=False):
    code = "def f(a, b):\n    guarded(%r, a, b)\n" % op
    code += "    a %s= b\n    return checked(a)\n" % op if inplace else "    return checked(a %s b)\n" % op
    scope = {"guarded": guarded, "checked": checked}
    exec(code, scope)
    return scope["f"]


def it(v, depth=3):
    """The order of a set must not show: here it is CPython's, there that of insertion. Whether a class can be iterated
    over depends on its metaclass, which the engine does not know."""
    if isinstance(v, type):
        raise Skip
    if isinstance(v, (set, type({}.keys() ^ {}.keys()))) and len(v) > 1:
        raise Skip
    if depth and isinstance(v, (list, tuple, dict, Item, Frozen)):
        for x in (v.values() if isinstance(v, dict) else vars(v).values() if isinstance(v, (Item, Frozen)) else v):
            it(x, depth - 1)
    return v


def kept(v):
    """An iterator in a variable is refused there; here it shows at the end only, if it is still there."""
    if isinstance(v, (zip, map, filter, enumerate, reversed)) or hasattr(v, "__next__"):
        raise Skip
    return v


def ints(v):
    """A set of ints sorts to one order, whatever order it has."""
    return v if isinstance(v, set) and all(type(x) is int for x in v) else it(v)


def one(v):
    """Which element a set pops is not defined, unless it has but one."""
    if isinstance(v, set) and len(v) > 1:
        raise Skip
    return v


def bounded_pow(*args, **names):
    if len(args) == 2 and "bad" not in names:
        guarded("**", *args)
    return pow(*args, **names)


def bounded_round(*args, **names):
    if len(args) == 2 and isinstance(args[0], int) and isinstance(args[1], int) and args[1] < -1000:
        return 0
    return round(*args, **names)


def bounded_range(*args, **names):
    r = range(*args, **names)
    if r and abs(r[-1] - r[0]) // abs(r.step) > 5000:
        raise Skip
    return r


# Under the names of the functions themselves, for messages.
BOUNDED = {"pow": bounded_pow, "round": bounded_round, "range": bounded_range}

OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"]
NAMES = {"neg": "-", "pos": "+", "inv": "~", "not": "not "}
GLOBALS = {"checked": checked, "one": one, "it": it, "kept": kept, "ints": ints, "Item": Item, "Frozen": Frozen, "Point": Point, "Color": Color,
           "ShopError": ShopError, "inf": math.inf, "nan": math.nan}
GLOBALS.update({"bounded_" + name: f for name, f in BOUNDED.items()})
for n, o in enumerate(OPERATORS):
    GLOBALS["op%d" % n] = make_operator(o)
    GLOBALS["iop%d" % n] = make_operator(o, True)


# What takes a set without showing its order.
ORDERLESS = {"len", "set", "isinstance", "bool", "type", "callable", "Item", "append", "insert", "count", "remove", "get", "pop",
             "setdefault", "add", "difference", "difference_update", "discard", "intersection", "intersection_update", "isdisjoint",
             "issubset", "issuperset", "symmetric_difference", "symmetric_difference_update", "union", "update"}


def call_source(name, args, names):
    plain = name.rpartition(".")[2] in ORDERLESS and not any(k == "key" for k, _ in names)
    guard = "ints" if name == "sorted" and not names else "it"
    parts = [("*it(%s)" % src(a[1])) if is_star(a, "*") else src(a) if plain or is_form(a, "gen") else "%s(%s)" % (guard, src(a))
             for a in args]
    shown = "%s" if plain else "it(%s)"
    parts += [("**" if k == "**" else k + "=") + shown % src(v) for k, v in names]
    if len(parts) == 1 and is_form(args[0] if args else None, "gen"):
        return "%s%s" % (name, parts[0])
    return "%s(%s)" % (name, ", ".join(parts))


def is_form(f, op):
    return isinstance(f, list) and bool(f) and f[0] == op


def is_star(f, star):
    return is_form(f, star) and len(f) == 2


def clauses(forms):
    out = ""
    for c in forms:
        out += " for %s in it(%s)" % (target(c[1]), src(c[2]))
        out += "".join(" if " + src(x) for x in c[3:])
    return out


def target(t):
    if t[0] == "name":
        return t[1]
    if t[0] == "*":
        return "*" + target(t[1])
    if t[0] in ("tuple", "list"):
        return "[%s]" % ", ".join(target(x) for x in t[1:])
    return src(t)


def fstring(f):
    """As calls: what an f-string does, without the trouble of quoting."""
    parts = []
    for p in f[1:]:
        if isinstance(p, str):
            parts.append(repr(p))
            continue
        v = "it(%s)" % src(p[1])
        v = {"r": "repr(%s)", "s": "str(%s)", "a": "ascii(%s)"}.get(p[2], "%s") % v
        parts.append("format(%s, %s)" % (v, "''" if p[3] is None else src(p[3])))
    return "''.join([%s])" % ", ".join(parts)


def src(f):
    if not isinstance(f, list):
        if isinstance(f, float) and (f != f or f in (math.inf, -math.inf)):
            return "(%s)" % repr(f)
        return "(%s)" % repr(f) if isinstance(f, (int, float)) else repr(f)
    op, rest = f[0], f[1:]
    if op == "name":
        return rest[0]
    if op == "const":
        return CONSTANTS[json.dumps(rest[0], sort_keys=True)]
    if op == "type":
        return rest[0]
    if op in NAMES:
        return "checked(%s(%s))" % (NAMES[op], src(rest[0]))
    if op in OPERATORS:
        return "op%d(%s, %s)" % (OPERATORS.index(op), src(rest[0]), src(rest[1]))
    if op in ("and", "or"):
        return "(%s)" % (" %s " % op).join(src(x) for x in rest)
    if op == "cmp":
        return "(%s)" % " ".join(x if i % 2 else src(x) for i, x in enumerate(rest))
    if op == "if":
        return "(%s if %s else %s)" % (src(rest[1]), src(rest[0]), src(rest[2]))
    if op in ("list", "tuple", "set"):
        parts = [("*it(%s)" % src(x[1])) if is_star(x, "*") else src(x) for x in rest]
        if op == "list":
            return "[%s]" % ", ".join(parts)
        if op == "tuple":
            return "(%s)" % (", ".join(parts) + ("," if len(parts) == 1 else ""))
        return "{%s}" % ", ".join(parts) if parts else "{*()}"
    if op == "dict":
        parts, i = [], 0
        while i < len(rest):
            star = is_star(rest[i], "**")
            parts.append("**" + src(rest[i][1]) if star else "%s: %s" % (src(rest[i]), src(rest[i + 1])))
            i += 1 if star else 2
        return "{%s}" % ", ".join(parts)
    if op == "attr":
        return "(%s).%s" % (src(rest[0]), rest[1])
    if op == "item":
        return "(%s)[%s]" % (src(rest[0]), src(rest[1]))
    if op == "slice":
        return "(%s)[%s:%s:%s]" % tuple(src(x) for x in rest)
    if op == ":=":
        return "(%s := %s)" % (rest[0], src(rest[1]))
    if op == "fstr":
        return fstring(f)
    if op in ("call", "new"):
        name = "bounded_" + rest[0] if rest[0] in BOUNDED else rest[0]
        return "checked(%s)" % call_source(name, rest[1], rest[2] if len(rest) > 2 else [])
    if op == "method":
        receiver = "one(%s)" % src(rest[0]) if rest[1] == "pop" else "(%s)" % src(rest[0])
        return "checked(%s)" % call_source("%s.%s" % (receiver, rest[1]), rest[2],
                                           rest[3] if len(rest) > 3 else [])
    if op == "lambda":
        return "(lambda %s: %s)" % (", ".join(rest[0]), src(rest[1]))
    if op == "func":
        return rest[0]
    if op == "listcomp":
        return "[%s%s]" % (src(rest[0]), clauses(rest[1:]))
    if op == "setcomp":
        return "{%s%s}" % (src(rest[0]), clauses(rest[1:]))
    if op == "dictcomp":
        return "{%s: %s%s}" % (src(rest[0]), src(rest[1]), clauses(rest[2:]))
    if op == "gen":
        return "(%s%s)" % (src(rest[0]), clauses(rest[1:]))
    raise AssertionError(op)


def statement(f):
    op = f[0]
    if op == "assign":
        value = "it(%s)" % src(f[1]) if any(t[0] in ("tuple", "list", "slice") for t in f[2:]) else src(f[1])
        if any(t[0] in ("name", "item", "attr") for t in f[2:]):
            value = "kept(%s)" % value
        return " = ".join([target(t) for t in f[2:]] + [value])
    if op == "aug":
        op, t, v = "iop%d" % OPERATORS.index(f[1]), f[2], src(f[3])
        if t[0] == "name":
            return "%s = %s(%s, %s)" % (t[1], op, t[1], v)
        if t[0] == "attr":
            return "a_ = %s; a_.%s = %s(a_.%s, %s)" % (src(t[1]), t[2], op, t[2], v)
        if t[0] == "item":
            return "a_ = %s; i_ = %s; a_[i_] = %s(a_[i_], %s)" % (src(t[1]), src(t[2]), op, v)
        return "a_ = %s; i_ = slice(%s, %s, %s); a_[i_] = %s(a_[i_], %s)" % (
            src(t[1]), src(t[2]), src(t[3]), src(t[4]), op, v)
    if op == "del":
        return "del " + ", ".join(target(t) for t in f[1:])
    return src(f[1])


CONSTANTS = {}


def const(encoded, source):
    CONSTANTS[json.dumps(encoded, sort_keys=True)] = source
    return ["const", encoded]


exec(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "expr_forms.py")).read())


# ---- Running ----------------------------------------------------------------------------------

def unknown_codec(error):
    """The engine refuses a codec that it does not have: it cannot tell whether CPython has it."""
    for known, refused in (("unknown encoding: ", "the encoding "), ("unknown error handler name ", "the error handler ")):
        if isinstance(error, LookupError) and str(error).startswith(known):
            return Unsupported(refused + str(error).removeprefix(known))
    return None


def run_here(case, env):
    """What CPython makes of it: an answer as the other side writes it."""
    names = sorted(env)
    encoder = Encoder()
    # A function whose locals are the variables: unbound ones are real.
    used = sorted(set(case["names"]))
    lines = ["def f(env_):"]
    lines += ["    if %r in env_: %s = env_[%r]" % (n, n, n) for n in used]
    lines += ["    result_ = None", "    error_ = None", "    try:"]
    if case["statements"]:
        lines += ["        " + statement(s) for s in case["code"]]
    else:
        lines += ["        result_ = " + src(case["code"])]
    lines += ["    except Exception as caught_:", "        error_ = caught_",
              "    except Unsupported_ as caught_:", "        error_ = caught_"]
    lines += ["    out_ = {}"]
    for n in used:
        lines += ["    try: out_[%r] = %s" % (n, n), "    except NameError: pass"]
    lines += ["    return result_, error_, out_"]
    scope = dict(GLOBALS, Unsupported_=Unsupported)
    try:
        exec("\n".join(lines), scope)
    except SyntaxError as e:
        if "assignment expression" in str(e):
            raise Skip from e
        raise AssertionError("\n".join(lines)) from e
    result, error, after = scope["f"](env)
    error = unknown_codec(error) or error
    out = {"env": {n: encoder.slot(after[n]) for n in used if n in after}}
    if error is not None:
        it(error.args)
        out["error"] = encoder.slot(error)
    else:
        out["value"] = encoder.slot(result)
    out["objects"] = encoder.all_objects()
    if encoder.strange > (out.get("value") == "<cannot be encoded>"):
        raise Skip  # an iterator in a variable or object: cannot be kept
    if encoder.strange and hasattr(result, "__next__"):
        name = type(result).__name__
        out["value"] = {"$$iterator": ALIKE.get(name, name)}
    return out, error


def encode_env(env):
    encoder = Encoder()
    slots = {n: encoder.slot(v) for n, v in env.items()}
    contents = encoder.all_objects()
    kinds = [type(v).__name__ for v in encoder.objects]
    return slots, {str(i + 1): [k, c] for i, (k, c) in enumerate(zip(kinds, contents))}


def main():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    shown = differing = done = skipped = raised = 0
    classes_seen = set()
    while done < CASES and differing < 20:
        batch, lines = [], []
        while len(batch) < BATCH:
            case, env = make_case()
            slots, objects = encode_env(env)
            try:
                expected, error = run_here(case, env)
                expected = text_of(expected)
                if isinstance(error, MemoryError) or "bounded_" in str(error):
                    raise Skip
            except (Skip, RecursionError, MemoryError):
                skipped += 1
                continue
            if error is not None:
                raised += 1
                classes_seen.add(type(error).__name__)
            question = dict(case, env=slots, objects=objects)
            batch.append((question, expected))
            lines.append(json.dumps(question))
        lines[-1] = lines[-1][:-1] + ', "flush": true}'
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        for question, expected in batch:
            line = sys.stdin.readline()
            if not line:
                sys.stderr.write("the evaluator stopped at: %s\n" % json.dumps(question))
                return 1
            got = text_of(json.loads(line))
            done += 1
            if got == expected:
                continue
            differing += 1
            if shown < 12:
                shown += 1
                code = question["code"]
                source = "\n    ".join(statement(s) for s in code) if question["statements"] else src(code)
                sys.stderr.write("differs (seed %d):\n    %s\n  env      %s %s\n  cpython  %s\n  heddle   %s\n" %
                                 (SEED, source, json.dumps(question["env"]), json.dumps(question["objects"]),
                                  expected[:600], got[:600]))
    sys.stdout.write('{"coverage": true, "flush": true}\n')
    sys.stdout.flush()
    counts = json.loads(sys.stdin.readline())
    missing = [name for name, n in counts.items() if n == 0] if CASES >= 50000 else []
    missing += [n for n in WANTED - SEEN] if CASES >= 50000 else []
    missing += [n for n in WANTED_ERRORS - classes_seen] if CASES >= 50000 else []
    sys.stderr.write("# %d cases, %d raised, %d skipped, %d differ; never reached: %s\n" %
                     (done, raised, skipped, differing, " ".join(sorted(missing)) or "nothing"))
    return 1 if differing or missing else 0


if __name__ == "__main__":
    sys.exit(main())
