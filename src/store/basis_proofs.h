/* basis_proofs.h -- what most commits say of nodes, read from their text.
 *
 * A node that ran again and read what it read before is proved anew by three words (basis.h), and that
 * is all that most extras are. A fold meets each node's proofs again and again, and only the last one
 * counts: so nothing is made of them, they are compared where they stand. */
#ifndef STORE_BASIS_PROOFS_H
#define STORE_BASIS_PROOFS_H

#include <stdbool.h>
#include <stddef.h>

/* The end of a commit's text in the log, ,"x":{"nodes":[["name","instance","mark"],...]}}, where it does
 * nothing but prove rows anew, as most do: well formed, and nothing in it escaped. */
typedef struct basis_proofs {
    const char *begin;    /* the comma in front; NULL: it is not such an end */
    const char *at, *end; /* from the first item's bracket on */
} basis_proofs;
basis_proofs basis_proofs_of(const char *made, size_t length);

typedef struct basis_proof {
    const char *name, *instance, *mark; /* borrowed from the text */
    size_t name_length, instance_length, mark_length;
} basis_proof;
/* The next one; false: there is none. */
bool basis_proofs_next(basis_proofs *p, basis_proof *out);

#endif
