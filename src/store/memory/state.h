/* state.h -- what the memory authority knows: heads with values, memos, and the log
 * of what has been decided and not yet been polled by every attached runtime. */
#ifndef STORE_MEMORY_STATE_H
#define STORE_MEMORY_STATE_H

#include "base/list.h"
#include "store/admit.h"
#include "store/memo.h"
#include "store/replica.h"

/* One operation of a decided commit, for the other runtimes. */
typedef struct logged_op {
    uint32_t head;
    uint64_t seq;
    op_kind kind;
    hd_path path;   /* referenced */
    hd_value value; /* referenced */
    uint64_t keep;
    hd_value before; /* of the document, before the commit; referenced */
    uint64_t before_seq;
} logged_op;

/* What was decided. `c` is good while its owner has not polled this entry. */
typedef struct logged {
    struct memory_authority *owner;
    commit *c;
    hd_status status;
    hd_commit_class class;
    uint64_t first_op; /* counted from the beginning, like positions */
    uint32_t op_count;
    hd_value extra; /* commit.extra; owned */
} logged;

/* For tests; heddle/lab.h declares both, and says what they mean. Before a runtime is attached. */
typedef hd_status memory_arrives_fn(const hd_runtime *rt, void *ctx);
typedef bool memory_hears_fn(const hd_runtime *rt, void *ctx);
HD_API void hd_memory_load_late(hd_memory *m);
HD_API void hd_memory_intercept(hd_memory *m, memory_arrives_fn *arrives, memory_hears_fn *hears,
                                void *ctx);

struct hd_memory {
    hd_env env;
    hd_heap *heap;
    heads h;
    bool load_late;             /* set before the first runtime is attached */
    memory_arrives_fn *arrives; /* of a test; usually NULL, and so is the next */
    memory_hears_fn *hears;
    void *hooks_ctx; /* of both */
    memos memos;
    list attached;
    uint32_t attached_count;
    bool untold; /* one runtime is left, and has not heard of all commits of those that left */
    uint64_t confirmed; /* commits taken the short way; see head_space.stamp */

    VEC(logged) log;
    uint64_t log_base; /* number of the first entry; positions count from the beginning */
    VEC(logged_op) ops;
    uint64_t ops_base;

    /* Scratch of one submission. */
    VEC(sub_claim) claims;
    VEC(sub_write) writes;
    VEC(sub_precondition) preconditions;
    VEC(touch) op_paths;
    VEC(uint64_t) seqs, seqs_before; /* of each write's document */
    verdict verdict;
};

typedef struct memory_authority {
    authority base;
    hd_memory *m;
    list_node link;
    uint32_t session;
    uint64_t position; /* the next log entry to look at */
    VEC(commit *) inbox;
    bool kept_out;          /* the first of them was told to wait */
    VEC(uint32_t) head_of;  /* place -> head + 1; 0: not looked up yet */
    VEC(uint32_t) space_of; /* home -> index of its space + 1; 0: not looked up yet */
    /* The store is this runtime's own. What is confirmed stands in the replica and nowhere else; a
     * document gets a head when a commit that takes the long way concerns it, or a listing. */
    bool sole;
    bool apart; /* a sole one has heads of documents that the replica has forgotten */
    VEC(struct key *) followed;
    VEC(place_id) wanted; /* late loads to deliver in the next poll */
} memory_authority;

static inline memory_authority *self(authority *a) { return (memory_authority *)(void *)a; }
static inline const memory_authority *self_const(const authority *a) {
    return (const memory_authority *)(const void *)a;
}

/* The head of a document, if it has one. */
bool memory_find_head(const memory_authority *ma, place_id doc, uint32_t *out);

/* ---- Memos, and what has changed (memos.c): see authority_ops */

/* Keeps the memos of an accepted commit. Without memory nothing is known of them afterwards. */
void memory_keep_extra(hd_memory *m, hd_value extra);
hd_status memory_memos(authority *a, const char *piece, memo_fn fn, void *ctx);
hd_status memory_memo_pieces(authority *a, piece_fn fn, void *ctx);
hd_status memory_changes(authority *a, struct key *space, uint64_t after, change_fn fn, void *ctx);
hd_status memory_seq_of(authority *a, struct key *space, uint64_t *out);

#endif
