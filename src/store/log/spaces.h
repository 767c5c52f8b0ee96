/* spaces.h -- a few spaces and a seq for each: where a reader of the log has brought them.
 *
 * A store has few spaces, so they are found by walking a list. */
#ifndef STORE_LOG_SPACES_H
#define STORE_LOG_SPACES_H

#include "store/memo.h"
#include "store/log/rows.h"

typedef struct log_space {
    struct key *name; /* referenced */
    uint64_t seq;
    bool followed; /* its owner's: everything in it is told */
} log_space;

typedef struct log_spaces {
    VEC(log_space) items;
} log_spaces;

void log_spaces_fini(log_spaces *s, const hd_env *env);

/* The entry of a space, added with seq 0 if missing; borrowed until the next one is added. HD_NOMEM, and
 * of the second HD_CORRUPT: no space can have that name. */
hd_status log_spaces_at(log_spaces *s, const hd_env *env, struct key *name, log_space **out);
hd_status log_spaces_named(log_spaces *s, const hd_env *env, hd_heap *heap, const char *name,
                           size_t length, log_space **out);
/* Takes the seqs that a commit of the log has brought its spaces to. */
hd_status log_spaces_take(log_spaces *s, const hd_env *env, hd_heap *heap, hd_value made);

/* For memos_apply: the seqs as they are now. */
memo_point log_spaces_point(log_spaces *s);

static inline row_text text_of_key(const struct key *k) {
    return text_of_bytes(key_bytes(k), k->length);
}

#endif
