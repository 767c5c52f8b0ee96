/* strings.c -- the tables of methods of str and bytes: see strings.h. */
#include "expr/strings.h"

#define NONE(name)         FUNCTION_NONE(#name, text_method_##name)
#define ONE(name)          FUNCTION_ONE(#name, text_method_##name)
#define TUPLE(name)        FUNCTION_TUPLE(#name, text_method_##name, 1, 3)
#define PLACES(name, a, b) FUNCTION_PLACES(#name, text_method_##name, a, b)

/* Methods that str and bytes have in common. */
#define TEXT_METHODS                                                                               \
    NONE(capitalize), PLACES(center, 1, 2), TUPLE(count), TUPLE(endswith),                         \
        { "expandtabs", text_method_expandtabs, CALL_KEYWORDS, 0, 1, 0, { "tabsize" } },           \
        TUPLE(find), TUPLE(index), NONE(isalnum), NONE(isalpha), NONE(isascii), NONE(isdigit),     \
        NONE(islower), NONE(isspace), NONE(istitle), NONE(isupper), ONE(join),                     \
        PLACES(ljust, 1, 2), NONE(lower), PLACES(lstrip, 0, 1), ONE(partition), ONE(removeprefix), \
        ONE(removesuffix), PLACES(replace, 2, 3), TUPLE(rfind), TUPLE(rindex),                     \
        PLACES(rjust, 1, 2), ONE(rpartition),                                                      \
        { "rsplit", text_method_rsplit, CALL_KEYWORDS, 0, 2, 0, { "sep", "maxsplit" } },           \
        PLACES(rstrip, 0, 1),                                                                      \
        { "split", text_method_split, CALL_KEYWORDS, 0, 2, 0, { "sep", "maxsplit" } },             \
        { "splitlines", text_method_splitlines, CALL_KEYWORDS, 0, 1, 0, { "keepends" } },          \
        TUPLE(startswith), PLACES(strip, 0, 1), NONE(swapcase), NONE(title), NONE(upper),          \
        ONE(zfill)

const function str_methods[] = {
    TEXT_METHODS,
    NONE(casefold),
    { "encode", str_method_encode, CALL_KEYWORDS, 0, 2, 0, { "encoding", "errors" } },
    FUNCTION_RAW("format", str_method_format),
    FUNCTION_ONE("format_map", str_method_format_map),
    NONE(isdecimal),
    NONE(isidentifier),
    NONE(isnumeric),
    NONE(isprintable),
    FUNCTION_PLACES("maketrans", str_maketrans, 1, 3),
    FUNCTION_ONE("translate", str_method_translate),
    FUNCTION_END,
};

const function bytes_methods[] = {
    TEXT_METHODS,
    { "decode", bytes_method_decode, CALL_KEYWORDS, 0, 2, 0, { "encoding", "errors" } },
    FUNCTION_ONE("fromhex", bytes_fromhex),
    { "hex", bytes_method_hex, CALL_KEYWORDS, 0, 2, 0, { "sep", "bytes_per_sep" } },
    FUNCTION_PLACES("maketrans", bytes_maketrans, 2, 2),
    { "translate", bytes_method_translate, CALL_KEYWORDS, 1, 2, 1, { "", "delete" } },
    FUNCTION_END,
};
