/* client.h -- a runtime's view of the store: how far it has read the log, and what it loads.
 *
 * The client is at a *position* in the log. Rows behind it have been told to the replica; rows
 * ahead are told in order, one frame for each commit of another runtime, when the position moves over
 * them, which happens only within poll(). Rows of our own move the position too; their verdicts
 * come from the writer.
 *
 * Documents are loaded as of the position. A read transaction (the *snapshot*) is opened by a poll that
 * looks into the file, or by the first load after it, and ended when the pump or the transaction that
 * loaded is over. A runtime that waits has none: while one is open, no process can start the WAL anew
 * and it only grows. If another process has checkpointed past our position between two snapshots, a
 * document may be newer than the position: it is *ahead*, no transaction sees it beside others, and the
 * next poll catches up. Its claim carries its true seq, and the commit is judged by it. */
#ifndef STORE_LOG_CLIENT_H
#define STORE_LOG_CLIENT_H

#include "store/memo.h"
#include "store/replica.h"
#include "store/log/head.h"
#include "store/log/passed.h"
#include "store/log/spaces.h"

typedef struct client {
    const hd_env *env;
    replica *r;
    log_store *store; /* owned */
    char session_text[33];
    uint64_t position;  /* the last log row that has been told */
    uint64_t half_told; /* the row that failed while it was told; 0: none has */
    bool torn;        /* a reload has failed half way: the next advance ends at once, with a gap */
    bool gap;         /* the rows behind the position are gone: client_reload is to be called */
    uint64_t telling; /* the row that is being told; 0: none */
    uint64_t checkpoint; /* of the snapshot, while a transaction is open */
    bool has_checkpoint; /* `checkpoint` has been read in that transaction */
    tail tail;           /* documents changed since the checkpoint, up to the position */
    row_cache parsed;    /* rows after the checkpoint from which documents were loaded lately */
    memos memos;         /* of those rows; the ones at or below the checkpoint say nothing */
    log_spaces spaces;   /* their seqs at the position */
} client;

/* Takes the connection over, also where it fails, and reads spaces and tail. */
hd_status client_open(client *c, log_store *store, replica *r);
void client_close(client *c);
/* Asserts what must hold between two polls. `noted`: commits of ours up to this row may have been noted before their
 * verdicts are delivered. */
void client_check(const client *c, uint64_t noted);

/* Ends the snapshot. */
void client_release(client *c);
hd_status client_snapshot(client *c);

/* Tells the replica of rows up to `until`; with UINT64_MAX of all there are, but not beyond a row of
 * our own, whose verdicts must come first. HD_NOMEM: what is not told yet comes next time. It ends before rows that
 * were pruned, with `gap`. */
hd_status client_advance(client *c, uint64_t until);
/* The same with rows that the writer has read: all up to `until` are among them. There is no snapshot, so what has to
 * be loaded on the way is read in one that is newer; `checkpoint` is one that the writer knows of. */
hd_status client_advance_passed(client *c, const passed_rows *rows, uint64_t until,
                                uint64_t checkpoint);
/* After that, with the same snapshot: reads the documents anew. The writer has decided all commits of ours that it was
 * given, and those that it has accepted are COMMIT_IN. */
hd_status client_reload(client *c);

/* A checkpoint has folded everything up to and including `row`. */
static inline void client_trim(client *c, uint64_t row) {
    tail_trim(&c->tail, row);
    row_cache_trim(&c->parsed, c->r->heap, row);
    memos_trim(&c->memos, row);
}

/* A commit of ours was accepted in `row`. Its seqs are in it. */
hd_status client_note_own(client *c, const commit *made, uint64_t row);

/* The only writer of the position. Reading anew begins at the checkpoint, which is not behind it. */
static inline void client_stand_at(client *c, uint64_t row) {
    assert(row >= c->position || c->torn);
    c->position = c->r->heard = row;
}

/* A document as of now: of the position, or of the commit that is being told. */
hd_status client_document(client *c, const doc_name *name, hd_value *out, uint64_t *seq);
/* See authority_ops. */
hd_status client_metadata(client *c, place_id doc, hd_value *out);
/* The document's place; 0: this runtime does not know it. */
place_id client_find(const client *c, const doc_name *name);
hd_status client_load(client *c, place_id doc, loaded *out);
hd_status client_space_at(client *c, struct key *name, log_space **out);
doc_name client_name(const client *c, place_id doc);

#endif
