/* head_write.h -- a document's rows as they are to be, made ready in memory and written.
 *
 * Making ready reads, folds, prints and hashes; writing is what is left to be done while no other process can write.
 * Both may be in different transactions: then writing looks first whether the row is still what it was. */
#ifndef STORE_LOG_HEAD_WRITE_H
#define STORE_LOG_HEAD_WRITE_H

#include "store/log/head.h"
#include "store/log/state.h"

/* What a document's rows will say. Texts with length 0 are null. */
typedef struct new_head {
    stored_head was;      /* when it was read */
    const doc_name *name; /* borrowed from the tail; `meta` does not matter */
    uint64_t seq, meta_seq;
    bool guarded, large;
    size_t size;
    uint64_t patched;
    char kind[KIND_SIZE];
    const json_buffer *patch; /* is to be added; NULL: none */
    bool whole;               /* the head row is to be written, */
    bool value_changed;       /* with another value */
    json_buffer value, meta;
    uint64_t hash, large_hash;
} new_head;

void new_head_init(new_head *h, const hd_env *env, const doc_name *name);
void new_head_fini(new_head *h);
/* The row as it is, the value's text not if it is replaced (`anew`). A row that is damaged is not written on, unless
 * nothing of it stays: the value is replaced, and there is no metadata. */
hd_status new_head_take_old(log_store *s, new_head *h, bool anew);
/* When all is set but the hashes. */
void new_head_hash(new_head *h);
/* Write. `later`: in another transaction than that in which `was` was read; HD_RESYNC: it has changed. */
hd_status new_head_write(log_store *s, const new_head *h, bool later);
/* Write. Deletes a document's large value and its patches. */
hd_status new_head_drop_large(log_store *s, int64_t doc);

#endif
