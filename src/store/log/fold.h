/* fold.h -- from rows of the log to head rows, a slice at a time.
 *
 * A slice begins at the checkpoint and ends behind the row in which it becomes full, so that no commit
 * waits longer than a slice takes, however long the tail is. Each leaves the file as a
 * checkpoint at its last row would. */
#ifndef STORE_LOG_FOLD_H
#define STORE_LOG_FOLD_H

#include "store/log/state.h"

/* Full is a slice that has read so much of the log, or has so many documents to write; two memos count as
 * one. */
#define SLICE_BYTES  (UINT64_C(1) << 20)
#define SLICE_THINGS UINT32_C(1024)
/* So many times that when the runtime closes: only other processes can wait for it then. */
#define SLICE_LEAVING UINT32_C(4)

typedef struct folded {
    uint64_t row;    /* head rows are up to date with this one */
    uint64_t bytes;  /* of log text that was read */
    uint32_t things; /* documents that were written, and half of the memos */
} folded;

/* A slice that was read and folded, and is to be written. Made from one snapshot, it holds as long as the
 * checkpoint is where it was and the rows say what they said: the log before a checkpoint's end does not change. */
typedef struct folding folding;

/* Within a transaction, with the state caught up. A large document that changed little gets a patch behind it. *out
 * is to be freed in any case; the writer's tail must stay as it is until then. */
hd_status fold_gather(writer *w, folding **out);
folded fold_gathered(const folding *g);
/* Within a write transaction in which the checkpoint is where it was. `later`: in another transaction than
 * fold_gather; HD_RESYNC: rows have changed in between, and the slice is to be gathered again. */
hd_status fold_write(folding *g, bool later);
void fold_free(folding *g); /* NULL is fine */
/* What a document is to be, for fold_rewrite. */
typedef struct document_state {
    hd_value value, meta;   /* absent: none */
    uint64_t seq, meta_seq; /* of their last changes */
    bool guarded;
} document_state;
/* Writes a document's rows anew, whatever stands there now. For repair. */
hd_status fold_rewrite(writer *w, const doc_name *name, const document_state *to);
/* Writes some of the large documents whole that have patches, from number *after on, which it moves on; not
 * those whose text would be longer than a row may be. *more: there may be others. */
hd_status fold_patches_slice(writer *w, int64_t *after, bool *more);

#endif
