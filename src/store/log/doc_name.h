/* doc_name.h -- the full name of a document, as text.
 *
 * Inside a runtime a document is a place, inside the writer a head: both are numbers of their owner.
 * Between threads, in the log and in the database a document is called by its name. */
#ifndef STORE_LOG_DOC_NAME_H
#define STORE_LOG_DOC_NAME_H

#include <heddle/value.h>

struct key;

/* Texts are borrowed and carry their lengths; they need not end with a NUL. */
typedef struct doc_name {
    const char *space, *instance, *id; /* instance is "" for space scope */
    uint32_t space_length, instance_length, id_length;
    hd_scope scope; /* never HERE */
    bool meta;      /* the metadata of the document, which has versions of its own */
} doc_name;

/* A name whose texts are borrowed from keys; `instance` is NULL for space scope. */
doc_name doc_name_of_keys(const struct key *space, hd_scope scope, const struct key *instance,
                          const struct key *id, bool meta);

bool doc_name_equal(const doc_name *a, const doc_name *b);
uint32_t doc_name_hash(const doc_name *n);
/* The order of listings: by id, word of the scope, instance, each bytewise. Below 0, 0, above 0. */
int doc_name_compare(const doc_name *a, const doc_name *b);
bool doc_name_in_space(const doc_name *n, const struct key *space);

const char *scope_word(hd_scope scope); /* "space", "user", "session" */
hd_scope scope_of_word(const char *word);

#endif
