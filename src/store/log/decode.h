/* decode.h -- commits for admission: from a runtime's messages, and from the log.
 *
 * Both become the same structure, a submission on the writer's heads: one that is still to be judged,
 * or one that another process has admitted already and that is only to be recorded. */
#ifndef STORE_LOG_DECODE_H
#define STORE_LOG_DECODE_H

#include "base/arena.h"
#include "store/log/encode.h"
#include "store/admit.h"
#include "store/log/rows.h"

/* A precondition of kind PRE_EQUAL: the judge loads the value and compares its hash. */
typedef struct equal_check {
    uint32_t precondition; /* index into the submission's */
    hd_path path;
    uint8_t hash[32];
} equal_check;

/* A commit to be judged or recorded. Arrays live in the decoder's arena until decoder_reset. */
typedef struct candidate {
    submission sub;
    const char *fragment; /* borrowed from the message; not of a log commit */
    size_t fragment_length;
    uint32_t *spaces; /* indices into heads.spaces, all of the commit; the written ones first */
    uint32_t space_count, written;
    doc_name *names; /* of the writes; texts borrowed */
    uint64_t *seqs;  /* one for each write: filled in by the judge, or from the log */
    equal_check *equals;
    uint32_t equal_count;
    uint64_t heard; /* the log row up to which its runtime had been told when it made the commit */
    message_refusal refusal; /* not of a log commit */
} candidate;

typedef struct decoder {
    heads *h;
    arena arena;
    VEC(hd_path) held; /* paths of the submissions made since the last reset */
    uint64_t commits;  /* of logs, decoded so far: to find a document that is twice in one */
} decoder;

void decoder_init(decoder *d, heads *h, const hd_env *env);
void decoder_fini(decoder *d);
/* Forgets all works made so far. */
void decoder_reset(decoder *d);

/* Reads one message from `bytes`; *used is its size. HD_NOMEM, or HD_PROTOCOL for anything that is
 * not a whole message. */
hd_status decode_message(decoder *d, uint32_t session, const char *bytes, size_t size,
                         candidate *out, size_t *used);

/* Commit `i` of a log row as a submission that has been admitted; seqs are filled in. */
hd_status decode_log_commit(decoder *d, const log_row *row, size_t i, candidate *out);

#endif
