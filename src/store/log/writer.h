/* writer.h -- the thread that writes: judges commits, appends them to the log, checkpoints.
 *
 * One for each open runtime on a file. It owns a connection, a heap and the heads that admission
 * works on; a runtime hands it batches of messages (bytes) and takes back outcomes.
 *
 *     take everything queued --> lock the file --> catch up on others' rows --> admit each
 *         --> one row for all that are admitted --> COMMIT (the one fsync) --> outcomes
 *
 * A runtime that has nothing to do but wait for the outcome takes a turn at this itself, so that a
 * single commit costs no wake-ups.
 *
 * There is no timer: while one COMMIT waits for the disk the next batch gathers. Whatever happens in
 * memory before COMMIT is thrown away when it fails: the writer then learns the file anew, finds out
 * whether its row is there (S11), and judges again what is not.
 *
 * Transient trouble (busy, I/O, disk full) loses nothing: the batch stays and is tried again.
 *
 * The environment's `alloc` and `log` are called from this thread too, so they must be safe to call
 * from two threads at once, as the system's are. */
#ifndef STORE_LOG_WRITER_H
#define STORE_LOG_WRITER_H

#include "store/log/judge.h"

/* Learns the store and starts the thread. `notify_fd` is a bell that is rung when outcomes are ready. Takes the
 * connection over, also where it fails. */
hd_status writer_open(log_store *store, const hd_options *options, const uint8_t session[16],
                      int notify_fd, writer **out, hd_error *error);
/* Gives a last try to what is queued, checkpoints, ends the thread. */
void writer_close(writer *w);

/* Takes the bytes over; `bytes` is empty afterwards. `seen` is the last row that the runtime has been told.
 * HD_NOMEM: `bytes` is as it was. Then either the thread starts on it, or, if it rests, the runtime does the thread's
 * work in writer_turn: judges, commits, and finds the outcome ready. False: the caller is to call writer_start. */
hd_status writer_push(writer *w, json_buffer *bytes, uint64_t seen);
void writer_start(writer *w);
/* For a store that is stepped (log_store.stepped): does the next thing that the thread would do. */
void writer_step(writer *w);
bool writer_turn(writer *w);
/* All outcomes that are ready, in order; the caller's. `seen` is the last row that was delivered.
 * *folded is the checkpoint's row, *heard the log's last one as of the last beat, *trouble why the last attempts
 * failed; its status is HD_OK if none did. */
outcome *writer_take(writer *w, uint64_t seen, uint64_t *folded, uint64_t *heard,
                     hd_error *trouble);
/* The runtime has delivered everything up to row `seen`. The writer notes that in the runtime's row of `reader`, with
 * the next commit or after about a second. */
void writer_report(writer *w, uint64_t seen);
/* The runtime is being closed: log_store.leaving. */
void writer_leave(writer *w);
/* Nothing is queued or under way. */
bool writer_idle(writer *w);
fold_counts writer_folds(writer *w);
/* Carries a command out and waits for it. */
hd_status writer_do(writer *w, writer_command command, hd_error *error);

#endif
