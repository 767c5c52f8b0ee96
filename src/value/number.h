/* number.h -- numbers as text, independent of locale and C library.
 *
 * A text without `.` and `e` is an integer, anything else a double; "-0" is the double -0.0,
 * because an integer has no signed zero. Printing is canonical: one number, one text, the shortest
 * that reads back as that number. */
#ifndef HD_VALUE_NUMBER_H
#define HD_VALUE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Room that every print function may need; no NUL is written. */
#define NUMBER_TEXT_MAX 32

size_t number_print_int(int64_t i, char *out);
/* d must be finite. The text always has a `.` or an `e`. */
size_t number_print_double(double d, char *out);

typedef enum number_kind {
    NUMBER_INT,
    NUMBER_DOUBLE,
    NUMBER_MALFORMED,    /* `end` is where the grammar of RFC 8259 was left */
    NUMBER_INT_RANGE,    /* an integer beyond 64 bits */
    NUMBER_DOUBLE_RANGE, /* beyond the largest double */
} number_kind;

typedef struct number {
    int64_t i;
    double d;
    const char *end; /* after the number */
} number;

/* Reads the longest number that begins at `text`; never looks at `limit` or beyond. Whether what
 * follows may follow is the caller's business. Doubles are correctly rounded, to even on ties. */
number_kind number_parse(const char *text, const char *limit, number *out);

#endif
