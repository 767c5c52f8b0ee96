/* name.h -- what nodes are called in rows: "space:piece:path", and whose instance a row is. */
#ifndef STORE_BASIS_NAME_H
#define STORE_BASIS_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The texts of an item of "nodes" (basis.h); one of "gone" has the first two. */
enum { ROW_NAME, ROW_INSTANCE, ROW_HASHES, ROW_PRINT, ROW_FLAGS, ROW_READS, ROW_ITEMS };
enum { GONE_ITEMS = ROW_HASHES };

#define BASIS_GATES "gates" /* the instance of rows that have the gates a program has set */

/* "", "user:NAME", "session:NAME" or "gates". */
bool basis_is_instance(const char *text, size_t length);
/* The length of the piece in front of a node's name; 0: it is no such name. */
size_t basis_piece_length(const char *name, size_t length);
/* The space as it stands in front of names: ':' is "%3A" there, '%' is "%25", so that the first colon
 * ends it. False: no room. */
bool basis_print_space(const char *space, char *out, size_t size);
/* The space that was printed so. False: no room. */
bool basis_parse_space(const char *text, size_t length, char *out, size_t size);

#endif
