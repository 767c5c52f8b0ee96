# expr_forms.py -- the generator of tests/model/expr_oracle.py: random trees by type, with random mistakes.
#
# gen(type) makes an expression that should have this type; now and then it makes one of another type, so
# that every operation meets what it does not expect. SEEN collects what was used, WANTED says what must be.

SEEN = set()
VARIABLES = {"i": "int", "j": "int", "x": "float", "s": "str", "t": "str", "b": "bytes", "l": "ints", "m": "strs",
             "a": "list", "u": "tuple", "d": "dict", "e": "names", "z": "set", "r": "record", "q": "frozen",
             "p": "point", "c": "enum", "n": "none", "k": "bool", "h": "ints", "g": "unbound", "f": "exc"}
WRONG = 0.03

INTS = [0, 1, 2, 3, -1, -2, 5, 7, 8, 10, 16, 63, 64, 97, 100, 255, 256, 1000, -1000, 65, 12345, 2 ** 31, 2 ** 53, 2 ** 53 + 1,
        2 ** 62, HIGH, LOW + 1, LOW, -7, 0x10FFFF, 1114112]
FLOATS = [0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, 0.1, 1e16, 1e22, 1e-5, 123456.789, 1e300, -1e-300, 2.675, 1e15, 9007199254740993.0,
          5e-324, 1.7976931348623157e308, 0.30000000000000004, 100.0, 12345678.9, -0.0, 1 / 3, 1e100]
STRS = ["", "a", "b", "ab", "abc", "hello world", "Hello", "  pad  ", "a,b,c", "1", "-12", "0x1f", "3.5", "1e5", "ÄÖü", "straße",
        "ὈΔΥΣΣΕΎΣ", "ǆ", "日本語", "😀", "a\tb\nc", "line1\r\nline2\x0bx", "ﬁ", "\u2028", "İ", "aXbXc", "{}", "{0}", "%s", "'", "\"", "'\"",
        "\\", "\x00\x7f", "A1b2", "Title Case", "١٢", "½", "_x1", "zz", "\u0301e", "10", " 7 ", "nan", "inf", "1_000", "é",
        "abaabaaab", "aabaabaabaaab" * 3, "日a日日a日日日a"]
SPECS = ["", "d", "5", "<5", ">8", "^7", "08", "+", ",", "_", "x", "#x", "#010x", "b", "o", "c", "n", "e", ".2f", "10.3f", ".3", "%", ".1%",
         "g", "G", "E", "F", "*^9", "=+8", "-", " ", "s", ".2", "020,.2f", "#b", "_b", "z", "z.1f", "é<4", "X", ",.1f", "q", "5.", "0=5", "<07",
         "#", "#.3", ".0f", ".0e", "010,", "zzz", ",_", "_,", ",x", "+.3e", "015_d"]
BYTES = [b"", b"a", b"abc", b"\x00\xff", b"Hello World", b" a b ", b"1,2", b"12", b"\xe2\x82\xac", b"a\nb\r\nc", b"abaabaaab" * 3]
PERCENTS = ["%s", "%d", "%5d|", "%-5d|", "%05d", "%+d", "%x", "%#x", "%o", "%e", "%.2f", "%g", "%r", "%a", "%c", "%%", "%5.1f", "%s %s", "%(a)s",
            "%i", "%u", "%q", "%", "%5s|", "%.1s", "%*d", "%X", "%#o", "% d", "%F", "%G", "%E", "%.3d", "%-8s|", "%08.2f", "%(x)d", "%ld", "%5%"]
FORMATS = ["{}", "{0}", "{1}", "{} {}", "{a}", "{0!r}", "{!s:>5}", "{:5}", "{:.2f}", "{0[0]}", "{a[b]}", "{0.real}", "{{}}", "{", "}", "{:{}}",
           "{0}{}", "{!x}", "{0:d}", "{a.b}", "{0[a]}", "x{}y", "{:>{w}}", "{0!a}", "{0[", "{:,}", "{0!r", "{a!r:^9}", "{0:", "{0.name}"]


def pick(options):
    return options[int(R.random() * len(options))]


def flat(entries):
    return ["dict"] + [x for entry in entries for x in entry]


def chance(p):
    return R.random() < p


def lit(v):
    """A literal as a form."""
    if isinstance(v, bytes):
        return const(scalar(v), repr(v))
    if isinstance(v, float) and (v != v or v in (math.inf, -math.inf)):
        return const(scalar(v), "float(%r)" % repr(v))
    return v


def gen_lit(kind):
    if kind == "int":
        return pick(INTS) if chance(0.5) else R.randint(-20, 20)
    if kind == "small":
        return R.randint(-3, 6)
    if kind == "float":
        if chance(0.04):
            return lit(pick([math.inf, -math.inf, math.nan]))
        return pick(FLOATS) if chance(0.5) else round(R.uniform(-100, 100), R.randint(0, 3))
    if kind == "str":
        return pick(STRS)
    if kind == "bytes":
        return lit(pick(BYTES))
    if kind == "bool":
        return chance(0.5)
    if kind == "none":
        return None
    if kind == "enum":
        return pick([const({"$$enum": "Color", "name": "RED", "value": 1}, "Color.RED"),
                     const({"$$enum": "Color", "name": "BLUE", "value": "b"}, "Color.BLUE")])
    if kind == "spec":
        return pick(SPECS)
    if kind == "encoding":
        return pick(["utf-8", "ascii", "latin-1", "UTF8", "zz", "iso-8859-1"])
    if kind == "errors":
        return pick(["strict", "ignore", "replace", "backslashreplace", "xmlcharrefreplace", "zz"])
    if kind == "order":
        return pick(["big", "little", "big", "x"])
    if kind == "char":
        return pick(["*", " ", "é", "-", "ab", "", "x"])
    if kind == "type":
        return ["type", pick(["int", "str", "float", "bool", "list", "dict", "tuple", "set", "bytes", "Item", "ValueError", "object", "range"])]
    return None


CONTAINERS = {"ints": "int", "strs": "str", "floats": "float"}
ANY = ["int", "float", "str", "bytes", "bool", "none", "ints", "strs", "list", "tuple", "dict", "names", "set", "record", "enum", "range"]


def gen(kind, depth):
    if chance(WRONG):
        kind = pick(ANY)
    if kind == "any":
        kind = pick(ANY)
    if kind == "hashable":
        kind = pick(["int", "str", "float", "bool", "none", "pair", "bytes", "enum"])
    if depth <= 0 and kind in ("small", "spec", "encoding", "errors", "order", "char", "type"):
        return gen_lit(kind)
    if chance(0.25 if depth > 0 else 0.6):
        names = [n for n, k in VARIABLES.items() if k == kind]
        if names:
            return ["name", pick(names)]
    if depth <= 0 or (chance(0.2) and kind in ("int", "float", "str", "bytes", "bool", "enum", "none")):
        return leaf(kind)
    if chance(0.06) and kind not in ("spec", "order", "encoding", "errors"):
        return general(kind, depth - 1)
    return MAKERS.get(kind, leaf_maker(kind))(depth - 1)


def leaf_maker(kind):
    return lambda depth: leaf(kind)


def leaf(kind):
    if kind in CONTAINERS:
        return ["list"] + [gen_lit(CONTAINERS[kind]) for _ in range(R.randint(0, 4))]
    if kind == "list":
        return ["list"] + [gen_lit(pick(["int", "str", "float", "none", "bool"])) for _ in range(R.randint(0, 3))]
    if kind == "tuple":
        return ["tuple"] + [gen_lit(pick(["int", "str", "float"])) for _ in range(R.randint(0, 3))]
    if kind == "pair":
        return ["tuple", gen_lit("int"), gen_lit("str")]
    if kind == "dict":
        return flat([[gen_lit(pick(["int", "str", "bool", "float"])), gen_lit(pick(["int", "str", "none"]))] for _ in range(R.randint(0, 3))])
    if kind == "names":
        return flat([[pick(["a", "b", "x", "$k", "nm", "w"]), gen_lit(pick(["int", "str"]))] for _ in range(R.randint(0, 3))])
    if kind == "set":
        return ["set"] + [gen_lit("int") for _ in range(R.randint(0, 3))]
    if kind == "range":
        return ["call", "range", [R.randint(-3, 6) for _ in range(R.randint(1, 3))], []]
    if kind == "record":
        return ["new", "Item", [gen_lit("str"), gen_lit("int")], []]
    if kind == "frozen":
        return ["new", "Frozen", [gen_lit("int"), gen_lit("int")], []]
    if kind == "point":
        return ["new", "Point", [gen_lit("int"), gen_lit("float")], []]
    if kind == "exc":
        return ["new", pick(["ValueError", "KeyError", "ShopError", "OSError", "Exception"]), [gen_lit(pick(["str", "int"])) for _ in range(R.randint(0, 2))], []]
    if kind == "unbound":
        return ["name", "g"]
    if kind in ("iter", "pairs"):
        return leaf("ints")
    v = gen_lit(kind)
    return v


def general(kind, depth):
    """Forms that any type can come from."""
    what = R.randint(0, 6)
    if what == 0:
        return ["if", gen("bool", depth), gen(kind, depth), gen(kind, depth)]
    if what == 1:
        return [pick(["and", "or"])] + [gen(kind, depth) for _ in range(R.randint(2, 3))]
    if what == 2:
        return [":=", pick(["w", "v"]), gen(kind, depth)]
    if what == 3:
        return ["item", ["tuple", gen(kind, depth), gen("any", depth - 1)], pick([0, 0, -2, 1])]
    if what == 4:
        return ["method", ["dict", "key", gen(kind, depth)], "get", ["key"], []]
    if what == 5 and kind not in ("set",):
        return ["item", ["listcomp", gen(kind, depth - 1), ["for", ["name", "y"], ["list", 1], True]], 0]
    return ["attr", ["new", "Item", [gen(kind, depth), 0], []], "name"]


# ---- Calls: name, receiver, parameters, keywords ----------------------------------------------------

BUILTINS = {
    "abs": (["num"],), "all": (["iter"],), "any": (["iter"],), "ascii": (["plain"],), "bin": (["int"],), "bool": (["any"],),
    "bytes": (["smalls"], ["bytes"], ["small"], ["str", "encoding"]), "callable": (["any"],), "chr": (["code"],),
    "dict": ([], ["names"], ["pairs"]), "divmod": (["num", "num"],), "enumerate": (["iter"], ["iter", "int"]),
    "filter": (["none", "iter"],), "float": (["float"], ["int"], ["str"], []), "format": (["num", "spec"], ["str", "spec"], ["plain"]),
    "hex": (["int"],), "int": (["int"], ["float"], ["str"], ["str", "base"], []), "isinstance": (["any", "type"],), "len": (["sized"],),
    "list": (["iter"], []), "map": (), "max": (["ints"], ["int", "int"], ["strs"]), "min": (["ints"], ["int", "float"], ["strs"], ["iter"]),
    "oct": (["int"],), "ord": (["char1"],), "pow": (["num", "num"], ["int", "int", "int"], ["small", "small"]),
    "range": (["small"], ["small", "small"], ["small", "small", "small"]), "repr": (["plain"],), "reversed": (["ints"], ["str"], ["dict"]),
    "round": (["num"], ["num", "small"], ["num", "digits"]), "set": (["ints"], []), "sorted": (["ints"], ["strs"], ["iter"], ["set"]),
    "str": (["plain"], ["bytes", "encoding"], ["exc"], []), "sum": (["ints"], ["floats"], ["ints", "int"], ["iter"]), "tuple": (["iter"], []),
    "type": (["any"],), "zip": (["iter", "iter"], ["iter"], ["ints", "strs", "iter"], []),
}
STR = {
    "capitalize": ([],), "casefold": ([],), "center": (["width"], ["width", "char"]), "count": (["sub"], ["sub", "small"], ["sub", "small", "small"]),
    "encode": ([], ["encoding"], ["encoding", "errors"]), "endswith": (["sub"], ["subs"], ["sub", "small", "small"]), "expandtabs": ([], ["small"]),
    "find": (["sub"], ["sub", "small"], ["sub", "small", "small"]), "format": (["any", "any"], ["int"], ["str"]), "format_map": (["names"],),
    "index": (["sub"],), "isalnum": ([],), "isalpha": ([],), "isascii": ([],), "isdecimal": ([],), "isdigit": ([],), "isidentifier": ([],),
    "islower": ([],), "isnumeric": ([],), "isprintable": ([],), "isspace": ([],), "istitle": ([],), "isupper": ([],), "join": (["strs"], ["str"], ["list"]),
    "ljust": (["width"], ["width", "char"]), "lower": ([],), "lstrip": ([], ["sub"], ["none"]), "maketrans": (["sub", "sub"], ["table"], ["sub", "sub", "sub"]),
    "partition": (["sub"],), "removeprefix": (["sub"],), "removesuffix": (["sub"],), "replace": (["sub", "sub"], ["sub", "sub", "small"]),
    "rfind": (["sub"], ["sub", "small", "small"]), "rindex": (["sub"],), "rjust": (["width", "char"], ["width"]), "rpartition": (["sub"],),
    "rsplit": ([], ["sub"], ["sub", "small"], ["none", "small"]), "rstrip": ([], ["sub"]), "split": ([], ["sub"], ["sub", "small"], ["none", "small"]),
    "splitlines": ([], ["bool"]), "startswith": (["sub"], ["subs"], ["sub", "small"]), "strip": ([], ["sub"]), "swapcase": ([],), "title": ([],),
    "translate": (["table"],), "upper": ([],), "zfill": (["width"],),
}
BYTES_METHODS = {
    "capitalize": ([],), "center": (["width"], ["width", "bchar"]), "count": (["bsub"], ["bsub", "small"]), "decode": ([], ["encoding"], ["encoding", "errors"]),
    "endswith": (["bsub"],), "expandtabs": ([],), "find": (["bsub"], ["bsub", "small", "small"]), "fromhex": (["hex"],), "hex": ([], ["char"], ["char", "small"]),
    "index": (["bsub"],), "isalnum": ([],), "isalpha": ([],), "isascii": ([],), "isdigit": ([],), "islower": ([],), "isspace": ([],), "istitle": ([],),
    "isupper": ([],), "join": (["blist"],), "ljust": (["width", "bchar"],), "lower": ([],), "lstrip": ([], ["bsub"]), "maketrans": (["bsub", "bsub"],),
    "partition": (["bsub"],), "removeprefix": (["bsub"],), "removesuffix": (["bsub"],), "replace": (["bsub", "bsub"], ["bsub", "bsub", "small"]),
    "rfind": (["bsub"],), "rindex": (["bsub"],), "rjust": (["width"],), "rpartition": (["bsub"],), "rsplit": ([], ["bsub"], ["bsub", "small"]),
    "rstrip": ([],), "split": ([], ["bsub"], ["none", "small"]), "splitlines": ([], ["bool"]), "startswith": (["bsub"],), "strip": ([], ["bsub"]),
    "swapcase": ([],), "title": ([],), "translate": (["none", "bsub"],), "upper": ([],), "zfill": (["width"],),
}
LIST = {
    "append": (["any"],), "clear": ([],), "copy": ([],), "count": (["int"], ["any"]), "extend": (["finite"],), "index": (["int"], ["int", "small"], ["int", "small", "small"]),
    "insert": (["small", "any"],), "pop": ([], ["small"]), "remove": (["int"],), "reverse": ([],), "sort": ([],),
}
TUPLE = {"count": (["int"],), "index": (["int"], ["int", "small"])}
DICT = {
    "clear": ([],), "copy": ([],), "fromkeys": (["ints"], ["strs", "int"]), "get": (["hashable"], ["hashable", "any"]), "items": ([],), "keys": ([],),
    "pop": (["hashable"], ["hashable", "any"]), "popitem": ([],), "setdefault": (["hashable"], ["hashable", "any"]), "update": (["dict"], ["pairs"]), "values": ([],),
}
SET = {
    "add": (["int"],), "clear": ([],), "copy": ([],), "difference": (["set"], ["ints"], []), "difference_update": (["set"], ["ints"]), "discard": (["int"],),
    "intersection": (["set"], ["ints", "set"]), "intersection_update": (["set"],), "isdisjoint": (["set"], ["ints"]), "issubset": (["set"], ["ints"]),
    "issuperset": (["set"], ["ints"]), "pop": (), "remove": (["int"],), "symmetric_difference": (["set"], ["ints"]),
    "symmetric_difference_update": (["set"], ["ints"]), "union": (["set"], ["ints"], []), "update": (["set"], ["ints"]),
}
INT = {
    "as_integer_ratio": ([],), "bit_count": ([],), "bit_length": ([],), "conjugate": ([],), "from_bytes": (["bytes", "order"], ["smalls", "order"]),
    "to_bytes": (["small", "order"], ["bytesize", "order"], []),
}
FLOAT = {"as_integer_ratio": ([],), "conjugate": ([],), "fromhex": (["hexfloat"],), "hex": ([],), "is_integer": ([],)}
METHODS = {"str": STR, "bytes": BYTES_METHODS, "list": LIST, "tuple": TUPLE, "dict": DICT, "set": SET, "int": INT, "float": FLOAT}
RECEIVERS = {"str": "str", "bytes": "bytes", "list": "ints", "tuple": "tuple", "dict": "dict", "set": "set", "int": "int", "float": "float"}
STATIC = {("str", "maketrans"), ("bytes", "maketrans"), ("bytes", "fromhex"), ("dict", "fromkeys"), ("int", "from_bytes"), ("float", "fromhex")}

for kind, table in METHODS.items():
    # None is forgotten: the tables have exactly the public methods that CPython has.
    real = {n for n in dir({"str": str, "bytes": bytes, "list": list, "tuple": tuple, "dict": dict, "set": set, "int": int, "float": float}[kind])
            if not n.startswith("_")} - {"real", "imag", "numerator", "denominator"}
    assert real == set(table), (kind, real ^ set(table))

WANTED = set(BUILTINS) | {"%s.%s" % (k, m) for k, t in METHODS.items() for m in t if (k, m) != ("set", "pop")}
WANTED_ERRORS = {"TypeError", "ValueError", "KeyError", "IndexError", "AttributeError", "ZeroDivisionError", "OverflowError", "UnboundLocalError",
                 "NameError", "UnicodeDecodeError", "UnicodeEncodeError", "FrozenInstanceError", "Unsupported", "RuntimeError"}


def argument(kind, depth):
    """An argument of a kind that only arguments have."""
    if kind in ("num",):
        return gen(pick(["int", "float", "int", "bool"]), depth)
    if kind in ("plain",):
        return gen(pick(["int", "float", "str", "bytes", "bool", "none", "ints", "strs", "list", "tuple", "dict", "record", "enum", "range", "exc", "frozen", "point"]), depth)
    if kind == "sized":
        return gen(pick(["str", "bytes", "ints", "tuple", "dict", "set", "range"]), depth)
    if kind == "iter":
        return iterable(depth)
    if kind == "finite":
        # Not a lazy one over the list that grows: that never ends, in CPython neither.
        return gen(pick(["ints", "strs", "str", "tuple", "range", "dict"]), depth) if chance(0.6) else ["call", "list", [iterable(depth)], []]
    if kind == "smalls":
        return ["list"] + [R.randint(0, 255) for _ in range(R.randint(0, 4))]
    if kind == "code":
        return pick([97, 8364, 128512, 0x110000, -1, 65, 2 ** 40]) if chance(0.7) else gen("int", depth)
    if kind == "char1":
        return pick(["a", "é", "😀", lit(b"x")]) if chance(0.8) else gen("str", depth)
    if kind == "base":
        return pick([0, 2, 8, 10, 16, 36, 1, 37])
    if kind == "digits":
        return pick([None, -1, -2, 2, 3, 15, 400, -400, 1])
    if kind == "width":
        return R.randint(-1, 14)
    if kind == "bytesize":
        return pick([1, 2, 4, 8, 9])
    if kind == "sub":
        return pick(["", "a", "b", "l", "o", " ", "X", ",", "ab", "é", "1", "日", "aab", "abaaba", "aaaa", "a日日a日"]) if chance(0.7) else gen("str", depth)
    if kind == "subs":
        return ["tuple"] + [argument("sub", 0) for _ in range(R.randint(0, 3))]
    if kind == "bsub":
        return lit(pick([b"", b"a", b"b", b" ", b"l", b"\xff", b",", b"aab", b"abaaba"])) if chance(0.7) else gen(pick(["bytes", "bytes", "int"]), depth)
    if kind == "bchar":
        return lit(pick([b"*", b" ", b"ab", b""]))
    if kind == "blist":
        return ["list"] + [lit(pick(BYTES)) for _ in range(R.randint(0, 3))]
    if kind == "hex":
        return pick(["", "00ff", "a b", "zz", "ab cd", "f"])
    if kind == "hexfloat":
        return pick(["0x1.8p1", "1.8", "-0x0p0", "inf", "nan", "zz", "0x1p5000", "0x.1p-1074", "0x1.fffffffffffffp1023", "0x1.00000000000008p0", "p1", " 0x1p3 "])
    if kind == "table":
        return flat([[pick([97, 98, 108, 233]), pick([None, "x", 120, "yy", 0x110000])] for _ in range(R.randint(0, 3))])
    if kind == "pairs":
        return ["list"] + [["tuple", gen(pick(["int", "str"]), 0), gen("any", 0)] for _ in range(R.randint(0, 3))]
    return gen(kind, depth)


def iterable(depth):
    """Anything that can be iterated in an order that both sides know."""
    what = R.randint(0, 12)
    if what < 4 or depth <= 0:
        return gen(pick(["ints", "strs", "str", "tuple", "list", "range"]), depth)
    if what == 4:
        return generator(depth - 1)
    if what == 5:
        SEEN.add("dict.items")
        return ["method", gen("dict", depth - 1), pick(["items", "values", "keys"]), [], []]
    if what == 6:
        return builtin_call(pick(["enumerate", "zip", "reversed"]), depth - 1)
    if what == 7:
        SEEN.add("map")
        return ["call", "map", [function(depth - 1), gen(pick(["ints", "strs"]), depth - 1)], []]
    if what == 8:
        SEEN.add("filter")
        return ["call", "filter", [pick([None, function(depth - 1)]), gen("ints", depth - 1)], []]
    if what == 9:
        return gen(pick(["dict", "bytes", "point"]), depth - 1)
    return comprehension(depth - 1)


def without_walrus(form):
    """The form without assignments: in a lambda they are refused."""
    if not isinstance(form, list):
        return form
    if len(form) == 3 and form[0] == ":=":
        return without_walrus(form[2])
    return [without_walrus(x) for x in form]


def function(depth):
    what = R.randint(0, 5)
    if what == 0:
        return ["func", pick(["len", "bin", "str", "repr", "hex", "bool", "ord", "float"])]
    if what == 1:
        return ["func", pick(["str.lower", "str.upper", "str.strip", "int.bit_length", "list.copy"])]
    body = pick([["neg", ["name", "o"]], ["%", ["name", "o"], 3], ["call", "str", [["name", "o"]], []], ["name", "o"],
                 ["+", ["name", "o"], gen("int", depth - 1)], ["cmp", ["name", "o"], ">", 2], ["item", ["name", "o"], 0],
                 ["tuple", ["*", gen("ints", 0)], ["name", "o"]], ["call", "len", [["name", "o"]], []]])
    return ["lambda", ["o"], without_walrus(body)]


LOOPS = ["y", "o"]


def loop_body(depth):
    y = ["name", pick(["y", "y", "y", "i", "g"]) if chance(0.15) else "y"]
    return pick([y, ["+", y, gen("int", depth)], ["*", y, 2], ["call", "str", [y], []], ["tuple", y, gen("any", depth)], ["%", y, 2],
                 ["cmp", y, "<", gen("int", depth)], ["if", ["cmp", y, "==", 1], y, gen("any", depth)], ["list", y], ["/", 10, y],
                 ["fstr", "<", ["fmt", y, None, None], ">"], ["item", ["name", "l"], y], [":=", "w", y],
                 ["method", y, pick(["upper", "bit_length", "copy", "strip"]), [], []]])


def loop_clauses(depth):
    where = [["cmp", ["name", "y"], "!=", gen("int", depth)]] if chance(0.25) else [["name", "y"]] if chance(0.1) else []
    out = [["for", ["name", "y"], gen(pick(["ints", "strs", "str", "tuple", "range", "list"]), depth)] + where]
    if chance(0.15):
        out.append(["for", ["name", "o"], gen(pick(["ints", "str", "range"]), depth)] + ([["name", "o"]] if chance(0.2) else []))
    if chance(0.1):
        out[0] = ["for", ["tuple", ["name", "y"], ["name", "o"]], ["method", gen("dict", depth), "items", [], []]]
    if chance(0.02):
        out[0] = ["for", ["tuple", ["name", "y"], ["*", ["name", "o"]]], ["list", gen("tuple", depth), gen("str", depth)]]
    return out


def comprehension(depth):
    return ["listcomp", loop_body(depth)] + loop_clauses(depth)


def generator(depth):
    return ["gen", loop_body(depth)] + loop_clauses(depth)


def spoil(args):
    """Wrong arity, sometimes; stars, sometimes."""
    if chance(0.02):
        args = args[:-1] if args and chance(0.5) else args + [R.randint(0, 3)]
    if chance(0.02) and args:
        args = args[:-1] + [["*", ["list", args[-1]] if chance(0.7) else args[-1]]]
    return args


def builtin_call(name, depth):
    SEEN.add(name)
    shapes = BUILTINS[name]
    if not shapes:
        return ["call", "map", [function(depth), gen("ints", depth)], []]
    args = [argument(k, depth) for k in pick(shapes)]
    args = args if name == "type" else spoil(args)
    names = []
    if name in ("sorted", "min", "max") and chance(0.4):
        names.append(["key", function(depth) if chance(0.9) else gen("any", 0)])
        if name == "sorted" and chance(0.5):
            names.append(["reverse", gen("bool", 0)])
    if name in ("min", "max") and len(args) == 1 and chance(0.15):
        names.append(["default", gen("any", depth)])
    if name == "sum" and len(args) == 1 and chance(0.1):
        names.append(["start", gen("num" if False else "int", depth)])
    if name == "zip" and chance(0.2):
        names.append(["strict", gen("bool", 0)])
    if name == "enumerate" and len(args) == 1 and chance(0.2):
        names.append(["start", gen("int", 0)])
    if name == "round" and len(args) == 1 and chance(0.1):
        names.append(["ndigits", gen("small", 0)])
    if name == "int" and len(args) == 1 and chance(0.1):
        names.append(["base", argument("base", 0)])
    if name == "dict" and chance(0.3):
        names.append(pick([["a", gen("any", 0)], ["**", gen("names", 0)]]))
    if chance(0.005):
        names.append(["bad", 1])
    return ["call", name, args] + ([names] if names or chance(0.5) else [])


def method_call(kind, name, depth, receiver=None):
    SEEN.add("%s.%s" % (kind, name))
    args = spoil([argument(k, depth) for k in pick(METHODS[kind][name])])
    names = []
    if receiver is None:
        receiver = ["type", kind] if (kind, name) in STATIC and chance(0.5) else gen(RECEIVERS[kind], depth)
    if kind == "str" and name in ("format", "format_map"):
        receiver = pick(FORMATS)
        if name == "format" and chance(0.5):
            names = [["a", gen(pick(["any", "names"]), 0)], ["w", 5]]
            names = names[:R.randint(1, 2)]
    if name in ("split", "rsplit") and kind in ("str", "bytes") and not args and chance(0.3):
        names = [["maxsplit", R.randint(-1, 3)]]
    if name == "sort" and chance(0.5):
        names = [["key", function(depth)], ["reverse", gen("bool", 0)]][:R.randint(1, 2)]
    if name == "splitlines" and not args and chance(0.3):
        names = [["keepends", True]]
    if name in ("to_bytes", "from_bytes") and chance(0.4):
        names = [["signed", gen("bool", 0)]]
    if name == "update" and kind == "dict" and chance(0.2):
        names = [["k1", 1]]
    if chance(0.004):
        names = names + [["bad", 1]]
    if names and any(is_star(a, "*") for a in args):
        names = []  # CPython words its complaints differently on that way
    return ["method", receiver, name, args, names]


def method_of(kind, depth, names):
    return method_call(kind, pick(names), depth)


# ---- By type ----------------------------------------------------------------------------------------

def make_int(d):
    what = R.randint(0, 11)
    if what < 4:
        return [pick(["+", "-", "*", "//", "%", "&", "|", "^", ">>", "-", "+"]), gen("int", d), gen("int", d)]
    if what == 4:
        return [pick(["**", "<<"]), gen("int", d), gen("small", d)]
    if what == 5:
        return [pick(["neg", "pos", "inv"]), gen("int", d)]
    if what == 6:
        return builtin_call(pick(["len", "abs", "int", "ord", "round", "sum", "min", "max", "pow"]), d)
    if what == 7:
        return method_of("str", d, ["find", "rfind", "index", "rindex", "count"]) if chance(0.5) else method_of("int", d, list(INT))
    if what == 8:
        return ["item", gen("ints", d), gen("small", d)]
    if what == 9:
        return method_of("list", d, ["pop", "index", "count"]) if chance(0.6) else method_of("tuple", d, list(TUPLE))
    if what == 10:
        return ["attr", gen(pick(["record", "int", "frozen", "point"]), d), pick(["price", "real", "imag", "x", "y", "numerator", "denominator", "nope"])]
    return method_of("bytes", d, ["find", "rfind", "index", "rindex", "count"])


def make_float(d):
    what = R.randint(0, 7)
    if what < 3:
        return [pick(["+", "-", "*", "/", "//", "%"]), gen(pick(["float", "float", "int"]), d), gen("float", d)]
    if what == 3:
        return ["/", gen("int", d), gen("int", d)]
    if what == 4:
        return ["**", gen("float", d), gen(pick(["small", "float"]), d)]
    if what == 5:
        return builtin_call(pick(["float", "round", "abs", "sum", "divmod"]), d)
    if what == 6:
        return method_of("float", d, list(FLOAT))
    return [pick(["neg", "pos"]), gen("float", d)]


def make_bool(d):
    what = R.randint(0, 9)
    if what < 3:
        k = pick(["int", "float", "str", "ints", "tuple", "bytes", "set"])
        return ["cmp", gen(k, d), pick(["<", "<=", ">", ">=", "==", "!="]), gen(k if chance(0.9) else pick(["float", "int"]), d)]
    if what == 3:
        return ["cmp", gen("int", d), pick(["<", "<=", "=="]), gen("int", d), pick(["<", "!=", ">="]), gen("int", d)]
    if what == 4:
        k, c = pick([("int", "ints"), ("str", "str"), ("hashable", "dict"), ("int", "set"), ("int", "tuple"), ("int", "range"), ("int", "bytes"), ("float", "range")])
        return ["cmp", gen(k, d), pick(["in", "not in"]), gen(c, d)]
    if what == 5:
        return ["not", gen("any", d)]
    if what == 6:
        return ["cmp", gen(pick(["none", "bool", "any"]), d), pick(["is", "is not"]), pick([None, None, True])]
    if what == 7:
        return method_of("str", d, [m for m in STR if m.startswith("is")] + ["startswith", "endswith"])
    if what == 8:
        return builtin_call(pick(["isinstance", "bool", "all", "any", "callable"]), d)
    if chance(0.5):
        return method_of("bytes", d, [m for m in BYTES_METHODS if m.startswith("is")] + ["startswith", "endswith"])
    return pick([["cmp", ["name", "l"], "is", ["name", "h"]], method_of("set", d, ["isdisjoint", "issubset", "issuperset"])])


def make_str(d):
    what = R.randint(0, 11)
    if what == 0:
        return ["+", gen("str", d), gen("str", d)]
    if what == 1:
        return ["*", gen("str", d), gen("small", d)] if chance(0.8) else ["*", gen("small", d), gen("str", d)]
    if what == 2:
        return ["%", pick(PERCENTS), percent_args(d)]
    if what == 3:
        parts = []
        for _ in range(R.randint(1, 3)):
            parts.append(pick(["", "x", "{"]) if chance(0.4) else
                         ["fmt", argument("plain", d), pick([None, None, "r", "s", "a"]),
                          pick([None, gen_lit("spec"), ["fstr", ">", ["fmt", R.randint(1, 9), None, None]]])])
        return ["fstr"] + parts
    if what == 4:
        return ["item", gen("str", d), gen("small", d)]
    if what == 5:
        return ["slice", gen("str", d)] + bounds(d)
    if what == 6:
        return builtin_call(pick(["str", "repr", "ascii", "format", "chr", "hex", "bin", "oct", "format", "format"]), d)
    if what == 7:
        return method_of("bytes", d, ["decode", "hex"])
    if what == 8 and chance(0.4):
        return ["attr", gen("enum", d), pick(["name", "value"])]
    return method_of("str", d, ["capitalize", "casefold", "center", "expandtabs", "format", "format_map", "join", "ljust", "lower", "lstrip", "removeprefix",
                                "removesuffix", "replace", "rjust", "rstrip", "strip", "swapcase", "title", "translate", "upper", "zfill"])


def percent_args(d):
    what = R.randint(0, 4)
    if what == 0:
        return gen("int", d)
    if what == 1:
        return ["tuple"] + [gen(pick(["int", "float", "str"]), d) for _ in range(R.randint(0, 2))]
    if what == 2:
        return gen(pick(["names", "str", "ints", "none", "bytes"]), d)
    return gen(pick(["float", "str", "int"]), d)


def bounds(d):
    return [pick([None, R.randint(-4, 5)]) if chance(0.8) else gen("small", d) for _ in range(2)] + \
           [None if chance(0.6) else pick([1, 2, -1, -2, 3, 0])]


def make_bytes(d):
    what = R.randint(0, 5)
    if what == 0:
        return ["+", gen("bytes", d), gen("bytes", d)]
    if what == 1:
        return ["slice", gen("bytes", d)] + bounds(d)
    if what == 2:
        return method_of("str", d, ["encode"])
    if what == 3:
        return builtin_call("bytes", d)
    return method_of("bytes", d, [m for m in BYTES_METHODS if m not in ("hex", "decode") and not m.startswith("is")])


def make_ints(d):
    what = R.randint(0, 9)
    if what == 0:
        return ["+", gen("ints", d), gen("ints", d)]
    if what == 1:
        return ["*", gen("ints", d), gen("small", d)]
    if what == 2:
        return ["slice", gen("ints", d)] + bounds(d)
    if what == 3:
        return builtin_call("sorted", d)
    if what == 4:
        return ["call", "list", [iterable(d)], []]
    if what == 5:
        return comprehension(d)
    if what == 6:
        return method_of("list", d, ["copy"])
    if what == 7:
        return ["list", ["*", iterable(d)], gen("int", d)]
    return ["list"] + [gen("int", d) for _ in range(R.randint(0, 4))]


def make_strs(d):
    what = R.randint(0, 4)
    if what == 0:
        return method_of("str", d, ["split", "rsplit", "splitlines", "split"])
    if what == 1:
        return ["listcomp", ["call", "str", [["name", "y"]], []], ["for", ["name", "y"], gen("ints", d)]]
    if what == 2:
        return ["call", "list", [gen("str", d)], []]
    return ["list"] + [gen("str", d) for _ in range(R.randint(0, 3))]


def make_list(d):
    what = R.randint(0, 4)
    if what == 0:
        return ["list"] + [gen("any", d) for _ in range(R.randint(0, 3))]
    if what == 1:
        return ["list", ["*", iterable(d)], ["*", gen("tuple", d)]]
    if what == 2:
        return ["listcomp", loop_body(d)] + loop_clauses(d)
    if what == 3:
        return ["+", gen("list", d), gen("list", d)]
    return method_of("bytes", d, ["split", "rsplit", "splitlines"])


def make_tuple(d):
    what = R.randint(0, 7)
    if what == 0:
        return ["+", gen("tuple", d), gen("tuple", d)]
    if what == 1:
        return ["call", "tuple", [iterable(d)], []]
    if what == 2:
        return method_of("str", d, ["partition", "rpartition"]) if chance(0.5) else method_of("bytes", d, ["partition", "rpartition"])
    if what == 3:
        return builtin_call("divmod", d)
    if what == 4:
        return ["slice", gen(pick(["tuple", "point"]), d)] + bounds(d)
    if what == 5:
        return ["tuple", ["*", iterable(d)], gen("any", d)]
    if what == 6:
        return method_of("dict", d, ["popitem"]) if chance(0.5) else ["attr", gen("exc", d), "args"]
    return ["tuple"] + [gen("any" if chance(0.3) else "int", d) for _ in range(R.randint(0, 3))]


def make_dict(d):
    what = R.randint(0, 8)
    if what == 0:
        return ["|", gen("dict", d), gen("dict", d)]
    if what == 1:
        return ["dictcomp", loop_body(d), loop_body(d)] + loop_clauses(d)
    if what == 2:
        return builtin_call("dict", d)
    if what == 3:
        return method_of("dict", d, ["copy", "fromkeys"])
    if what == 4:
        return ["dict", gen("hashable", d), gen("any", d), ["**", gen("dict", d)], gen("hashable", d), gen("any", d)]
    if what == 5:
        return method_of("str", d, ["maketrans"])
    return flat([[gen("hashable", d), gen("any", d)] for _ in range(R.randint(0, 3))])


def set_of_view(d):
    """A view of a dict takes any iterable on the other side."""
    view = ["method", gen("dict", d), pick(["keys", "items"]), [], []]
    other = gen(pick(["set", "ints", "iter", "dict", "str", "tuple", "int", "none"]), d)
    return [pick(["|", "&", "-", "^"])] + (lambda sides: sides if chance(0.5) else sides[::-1])([view, other])


def make_set(d):
    what = R.randint(0, 7)
    if what < 2:
        return [pick(["|", "&", "-", "^"]), gen("set", d), gen("set", d)]
    if what == 7:
        return set_of_view(d)
    if what == 2:
        return ["setcomp", ["%", ["name", "y"], 5], ["for", ["name", "y"], gen("ints", d)]]
    if what == 3:
        return ["call", "set", [gen("ints", d)], []]
    if what == 4:
        return method_of("set", d, ["copy", "difference", "intersection", "symmetric_difference", "union"])
    if what == 5:
        return ["set", gen("int", d), ["*", gen("ints", d)]]
    return ["set"] + [gen("int", d) for _ in range(R.randint(0, 3))]


def make_record(d):
    args = spoil([gen("any", d), gen("any", d)])
    if chance(0.3):
        return ["new", "Item", args[:1], [["price", gen("any", d)]] if chance(0.9) else [["nope", 1]]]
    return ["new", "Item", args, []]


def make_range(d):
    return pick([["call", "range", [gen("small", d) for _ in range(R.randint(1, 3))], []], ["slice", gen("range", d)] + bounds(d)])


def of_exception(d):
    """What a workflow can see of an exception whose constructor does more than to keep its arguments."""
    what = R.randint(0, 4)
    inner = pick([["list", gen("exc", d), gen("exc", d)], ["tuple", gen("exc", d)], ["list", gen("any", d)], gen("any", d),
                  ["list", gen("exc", d), ["new", pick(["SystemExit", "GeneratorExit", "KeyError"]), [], []]]])
    group = ["new", pick(["ExceptionGroup", "BaseExceptionGroup"]), spoil([gen("str", d), inner]), [["x", 1]] if chance(0.05) else []]
    if what == 0:
        return ["call", "str", [group], []]
    if what == 1:
        return ["tuple", ["call", "len", [["attr", group, "exceptions"]], []], ["attr", ["call", "type", [group], []], "__name__"]]
    names = [[name, ["list", gen("any", d)]] for name in ("name", "path", "obj", "nope") if chance(0.4)]
    made = ["new", pick(["ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "UnboundLocalError"]), [gen("any", d)], names]
    if what == 2 and names:
        return ["attr", made, pick(names)[0]]
    if what == 3:
        return ["attr", made, "args"]
    return ["call", pick(["str", "repr"]), [["new", pick(["OSError", "KeyError", "FileNotFoundError"]),
                                             [gen("small", d), gen("str", d), gen("str", d), None, gen("str", d)][:pick([2, 3, 5])], []]], []]


def make_text(d):
    return of_exception(d) if chance(0.03) else make_str(d)


MAKERS = {
    "int": make_int, "float": make_float, "bool": make_bool, "str": make_text, "bytes": make_bytes, "ints": make_ints, "strs": make_strs, "list": make_list,
    "tuple": make_tuple, "dict": make_dict, "names": leaf_maker("names"), "set": make_set, "record": make_record, "range": make_range,
    "frozen": lambda d: ["new", "Frozen", [gen("hashable", d), gen("hashable", d)], []],
    "point": lambda d: ["new", "Point", [gen("any", d), gen("int", d)], []],
    "exc": lambda d: ["new", pick(["ValueError", "KeyError", "ShopError", "OSError", "Exception"]), [gen("any", d) for _ in range(R.randint(0, 2))], []],
    "pair": lambda d: ["tuple", gen("hashable", d), gen("int", d)],
    "floats": lambda d: ["list"] + [gen("float", d) for _ in range(R.randint(0, 4))],
}


# ---- Statements -------------------------------------------------------------------------------------

def place(d):
    """A target, and the type of what it takes."""
    what = R.randint(0, 7)
    if what == 0:
        return ["item", gen("ints", d), gen("small", d)], "int"
    if what == 1:
        return ["item", ["name", pick(["d", "e"])], gen("hashable", d)], "any"
    if what == 2:
        return ["attr", gen(pick(["record", "record", "record", "exc", "frozen", "int"]), d), pick(["name", "price", "x", "nope"])], "any"
    if what == 3:
        return ["slice", ["name", pick(["l", "a", "h", "m"])]] + bounds(d), "iter"
    if what == 4:
        return ["item", ["name", "l"], R.randint(-2, 2)], "int"
    n = pick(["i", "j", "s", "l", "a", "d", "z", "w", "x", "u", "v", "r", "h"])
    return ["name", n], VARIABLES.get(n, "any")


def assignment(d):
    what = R.randint(0, 9)
    if what == 0:
        parts = [["name", n] for n in ("v", "w", "i")[:R.randint(1, 3)]]
        if chance(0.4):
            at = R.randint(0, len(parts) - 1)
            parts[at] = ["*", parts[at]]
        return ["assign", iterable(d) if chance(0.5) else ["tuple"] + [gen("any", d) for _ in parts], ["tuple"] + parts]
    if what == 1:
        t, k = place(d)
        u, _ = place(d)
        return ["assign", argument(k, d), t, u]
    if what == 2:
        return ["assign", ["name", pick(["l", "a", "d", "r", "h"])], ["name", pick(["w", "v", "h", "a"])]]
    if what == 3:
        return ["assign", ["tuple", gen("any", d), ["list", gen("int", d), gen("int", d)]], ["tuple", ["name", "v"], ["list", ["name", "w"], ["item", ["name", "l"], 0]]]]
    t, k = place(d)
    return ["assign", argument(k, d), t]


def augment(d):
    t, k = place(d)
    if k == "set":
        return ["aug", pick(["|", "&", "-", "^"]), t, gen("set", d)]
    if k == "ints" or k == "iter":
        return ["aug", pick(["+", "+", "*"]), t, argument("finite", d) if chance(0.6) else gen("small", d)]
    if k == "dict":
        return ["aug", "|", t, gen("dict", d) if chance(0.8) else argument("pairs", d)]
    if k == "str":
        return ["aug", pick(["+", "*", "%"]), t, gen(pick(["str", "small"]), d)]
    return ["aug", pick(OPERATORS), t, gen("int" if chance(0.7) else "any", d)]


def deletion(d):
    return ["del"] + [pick([["item", ["name", pick(["l", "a", "h"])], gen("small", 0)], ["item", ["name", "d"], gen("hashable", 0)],
                            ["slice", ["name", pick(["l", "h"])]] + bounds(0), ["name", pick(["i", "g", "s"])],
                            ["attr", gen(pick(["record", "frozen", "int"]), 0), pick(["name", "x", "nope"])], ["item", gen("any", 0), 0],
                            ["slice", gen("any", 0), 0, 1, None]])
                      for _ in range(1 if chance(0.8) else 2)]


def change(d):
    kind = pick(["list", "dict", "set", "list", "dict"])
    mutating = {"list": ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"],
                "dict": ["clear", "pop", "popitem", "setdefault", "update"],
                "set": ["add", "clear", "difference_update", "discard", "intersection_update", "remove", "symmetric_difference_update", "update"]}[kind]
    names = {"list": ["l", "h", "a", "m"], "dict": ["d", "e"], "set": ["z"]}[kind]
    call = method_call(kind, pick(mutating), d, ["name", pick(names)])
    if chance(0.03):
        call = ["listcomp", ["method", ["name", "d"], pick(["pop", "setdefault"]), [["name", "y"]] + ([[]] if False else []), []],
                ["for", ["name", "y"], ["name", "d"]]]
    return ["assign", call, ["name", "v"]] if chance(0.3) else ["expr", call]


def one_statement(d):
    return pick([assignment, assignment, augment, change, change, deletion])(d)


# ---- Environments -----------------------------------------------------------------------------------

def random_value(kind, depth=2):
    simple = {"int": lambda: pick(INTS) if chance(0.3) else R.randint(-9, 9), "float": lambda: pick(FLOATS), "str": lambda: pick(STRS),
              "bytes": lambda: pick(BYTES), "bool": lambda: chance(0.5), "none": lambda: None, "enum": lambda: pick([Color.RED, Color.BLUE]),
              "small": lambda: R.randint(-5, 9)}
    if kind in simple:
        return simple[kind]()
    n = R.randint(0, 4)
    if kind == "ints":
        return [R.randint(-5, 9) for _ in range(n)]
    if kind == "strs":
        return [pick(STRS) for _ in range(n)]
    if kind == "list":
        return [random_value(pick(["int", "str", "ints", "none", "tuple", "dict"]) if depth > 0 else "int", depth - 1) for _ in range(n)]
    if kind == "tuple":
        return tuple(random_value(pick(["int", "str", "ints"]) if depth > 0 else "int", depth - 1) for _ in range(n))
    if kind == "dict":
        return {random_value(pick(["int", "str", "bool", "float", "none", "enum"])): random_value(pick(["int", "str", "ints"]) if depth > 0 else "int", depth - 1) for _ in range(n)}
    if kind == "names":
        return {pick(["a", "b", "x", "$k", "é", "name", "$"]): random_value("int") for _ in range(n)}
    if kind == "set":
        return {R.randint(-5, 9) for _ in range(n)}
    if kind == "record":
        return Item(random_value("str"), random_value(pick(["int", "ints"])))
    if kind == "frozen":
        return Frozen(random_value("int"), random_value("int"))
    if kind == "point":
        return Point(random_value("int"), random_value("float"))
    if kind == "exc":
        made = pick([ValueError, KeyError, ShopError, Exception])(*[random_value(pick(["str", "ints"])) for _ in range(R.randint(0, 2))])
        if chance(0.5):
            made.price = random_value("ints")
        return made
    raise AssertionError(kind)


def make_env(names):
    env = {}
    for n in sorted(names):
        kind = VARIABLES.get(n)
        if kind and kind != "unbound":
            env[n] = random_value(kind)
    # Aliases: two names for one object, an object inside another.
    if chance(0.3) and "l" in env and "h" in env:
        env["h"] = env["l"]
    if chance(0.2) and "a" in env and "l" in env:
        env["a"].append(env["l"])
    if chance(0.1) and "d" in env and "l" in env:
        env["d"]["shared"] = env["l"]
    if chance(0.2) and "a" in env and "f" in env:
        env["a"].append(env["f"])
    if chance(0.02) and "a" in env:
        env["a"].append(env["a"])
    return env


def used_names(form, out):
    if isinstance(form, list):
        if len(form) == 2 and form[0] == "name" and isinstance(form[1], str):  # not the argument name=[...]
            if form[1] not in ("y", "o"):
                out.add(form[1])
        elif len(form) == 3 and form[0] == ":=":
            out.add(form[1])
            used_names(form[2], out)
        else:
            for x in form:
                used_names(x, out)


def make_case():
    statements = chance(0.3)
    if statements:
        code = [one_statement(R.randint(0, 2)) for _ in range(R.randint(1, 4))]
    elif chance(0.45):
        # Straight at one function or method, so that each gets its share.
        if chance(0.3):
            code = builtin_call(pick(list(BUILTINS)), R.randint(0, 2))
        else:
            kind = pick(["str", "str", "bytes", "list", "tuple", "dict", "set", "int", "float"])
            code = method_call(kind, pick([m for m in METHODS[kind] if METHODS[kind][m]]), R.randint(0, 2))
    else:
        code = gen(pick(ANY), R.randint(1, 3))
    names = set()
    used_names(code, names)
    return {"code": code, "statements": statements, "names": sorted(names)}, make_env(names)
