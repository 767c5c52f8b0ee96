/* strings.h -- methods of str and bytes. One code for both: they differ in a flag and in the words of
 * their complaints. */
#ifndef EXPR_STRINGS_H
#define EXPR_STRINGS_H

#include "expr/call.h"
#include "expr/subscript.h"
#include "expr/text.h"

/* Tables of methods, and of the functions that are called on the class (str.maketrans). */
extern const function str_methods[];
extern const function bytes_methods[];

/* Finding: strings_find.c. */
ev text_method_find(world *w, ev self, const ev *a, const call *c);
ev text_method_rfind(world *w, ev self, const ev *a, const call *c);
ev text_method_index(world *w, ev self, const ev *a, const call *c);
ev text_method_rindex(world *w, ev self, const ev *a, const call *c);
ev text_method_count(world *w, ev self, const ev *a, const call *c);
ev text_method_startswith(world *w, ev self, const ev *a, const call *c);
ev text_method_endswith(world *w, ev self, const ev *a, const call *c);
ev text_method_replace(world *w, ev self, const ev *a, const call *c);
ev text_method_partition(world *w, ev self, const ev *a, const call *c);
ev text_method_rpartition(world *w, ev self, const ev *a, const call *c);
ev text_method_removeprefix(world *w, ev self, const ev *a, const call *c);
ev text_method_removesuffix(world *w, ev self, const ev *a, const call *c);

/* Splitting and joining: strings_split.c. */
ev text_method_split(world *w, ev self, const ev *a, const call *c);
ev text_method_rsplit(world *w, ev self, const ev *a, const call *c);
ev text_method_splitlines(world *w, ev self, const ev *a, const call *c);
ev text_method_join(world *w, ev self, const ev *a, const call *c);

/* Padding and stripping: strings_pad.c. */
ev text_method_center(world *w, ev self, const ev *a, const call *c);
ev text_method_ljust(world *w, ev self, const ev *a, const call *c);
ev text_method_rjust(world *w, ev self, const ev *a, const call *c);
ev text_method_zfill(world *w, ev self, const ev *a, const call *c);
ev text_method_expandtabs(world *w, ev self, const ev *a, const call *c);
ev text_method_strip(world *w, ev self, const ev *a, const call *c);
ev text_method_lstrip(world *w, ev self, const ev *a, const call *c);
ev text_method_rstrip(world *w, ev self, const ev *a, const call *c);

/* Case and properties: strings_case.c. */
ev text_method_upper(world *w, ev self, const ev *a, const call *c);
ev text_method_lower(world *w, ev self, const ev *a, const call *c);
ev text_method_title(world *w, ev self, const ev *a, const call *c);
ev text_method_capitalize(world *w, ev self, const ev *a, const call *c);
ev text_method_swapcase(world *w, ev self, const ev *a, const call *c);
ev text_method_casefold(world *w, ev self, const ev *a, const call *c);
ev text_method_isalnum(world *w, ev self, const ev *a, const call *c);
ev text_method_isalpha(world *w, ev self, const ev *a, const call *c);
ev text_method_isascii(world *w, ev self, const ev *a, const call *c);
ev text_method_isdecimal(world *w, ev self, const ev *a, const call *c);
ev text_method_isdigit(world *w, ev self, const ev *a, const call *c);
ev text_method_isidentifier(world *w, ev self, const ev *a, const call *c);
ev text_method_islower(world *w, ev self, const ev *a, const call *c);
ev text_method_isnumeric(world *w, ev self, const ev *a, const call *c);
ev text_method_isprintable(world *w, ev self, const ev *a, const call *c);
ev text_method_isspace(world *w, ev self, const ev *a, const call *c);
ev text_method_istitle(world *w, ev self, const ev *a, const call *c);
ev text_method_isupper(world *w, ev self, const ev *a, const call *c);

/* Encoding, translating: strings_code.c. */
ev str_method_encode(world *w, ev self, const ev *a, const call *c);
ev bytes_method_decode(world *w, ev self, const ev *a, const call *c);
ev str_method_translate(world *w, ev self, const ev *a, const call *c);
ev bytes_method_translate(world *w, ev self, const ev *a, const call *c);
ev str_maketrans(world *w, ev self, const ev *a, const call *c);
ev bytes_maketrans(world *w, ev self, const ev *a, const call *c);
ev bytes_method_hex(world *w, ev self, const ev *a, const call *c);
ev bytes_fromhex(world *w, ev self, const ev *a, const call *c);
/* str(bytes, encoding, errors) and the like: the arguments are checked to be strs or absent. */
ev text_decode(world *w, ev bytes, ev encoding, ev errors);
/* Whether an argument that names an encoding or an error handler is one, or is not given. False: TypeError,
 * ValueError. */
bool text_codec_arg(world *w, ev v, const char *of, const char *name);
ev text_encode(world *w, ev str, ev encoding, ev errors);

/* strformat.c. */
ev str_method_format(world *w, ev self, const ev *a, const call *c);
ev str_method_format_map(world *w, ev self, const ev *a, const call *c);

#endif
