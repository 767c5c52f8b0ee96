/* pointer.h -- writing a JSON pointer (RFC 6901) into a buffer of fixed size.
 *
 *     pointer p = pointer_begin(error->path, sizeof error->path);
 *     pointer_key(&p, "items", 5);
 *     pointer_index(&p, 3);
 *     pointer_end(&p);                                     "/items/3"
 *
 * A pointer that does not fit is cut between two characters, and ends in "...". Cost: O(length). */
#ifndef BASE_POINTER_H
#define BASE_POINTER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pointer {
    char *out;
    size_t size, length;
    bool cut; /* something did not fit: later parts are not written either */
} pointer;

/* `size` is at least 4. */
pointer pointer_begin(char *out, size_t size);
void pointer_key(pointer *p, const char *key, size_t length);
void pointer_index(pointer *p, size_t index);
void pointer_end(pointer *p);

#endif
