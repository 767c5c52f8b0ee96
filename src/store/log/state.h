/* state.h -- what the writer thread knows, and how it comes to know it.
 *
 * Everything here belongs to the writer's thread, but for the part that says so. While that thread rests,
 * the runtime's thread may use it for the length of a turn (log/writer.h). The state is a function of the
 * store: writer_learn() builds it from checkpoint and log, writer_catch_up() adds the rows that other
 * processes have appended since. */
#ifndef STORE_LOG_STATE_H
#define STORE_LOG_STATE_H

#include "store/log/decode.h"
#include "store/log/head.h"
#include "store/log/passed.h"
#include "value/json_write.h"
#include <pthread.h>

/* The verdict on one commit. */
typedef struct outcome_item {
    uint64_t local_seq;
    hd_status status;
    uint32_t first_seq, seq_count; /* in outcome.seqs, in the order of the message's spaces */
} outcome_item;

/* The verdicts of one batch, in order of local seq. They hold at log row `row`; the client
 * delivers them after all rows up to `before`. */
typedef struct outcome {
    struct outcome *next;
    uint64_t before, row; /* row == before when nothing was admitted */
    uint64_t sync_ns;     /* from being judged to being durable */
    /* Rows of others up to `before`, as far as the writer has read them since the last outcome. */
    passed_rows passed;
    uint64_t checkpoint; /* the last one that the writer knows of */
    VEC(outcome_item) items;
    VEC(uint64_t) seqs;
} outcome;

typedef enum writer_command {
    COMMAND_NONE,
    COMMAND_CHECKPOINT, /* fold everything, large documents too */
    COMMAND_FOLD,       /* fold the log */
    COMMAND_PRUNE,
    COMMAND_VACUUM,
    COMMAND_REGISTER, /* as a reader, so that no process prunes rows that we have not seen */
    COMMAND_STAY      /* others can see that we live, from now on */
} writer_command;

typedef struct batch {
    struct batch *next;
    json_buffer bytes; /* messages, one after the other */
    size_t at;         /* those before are decided */
    size_t judged;     /* those from `at` to here are decided, if the attempt under way succeeds */
} batch;

/* A commit of ours that was found in the log after a COMMIT whose result was not known. */
typedef struct recovered {
    uint64_t local_seq, row;
    uint32_t first_seq, seq_count;
} recovered;

/* What a head was before a commit of the present group changed it. */
typedef struct undo_write {
    uint32_t head, last_session;
    uint8_t flags;
    uint64_t seq, last_local;
} undo_write;

typedef struct undo {
    bool begun; /* there is a group to take back */
    VEC(undo_write) writes;
    VEC(uint64_t) seqs; /* of the spaces */
    uint64_t last;      /* of our session */
} undo;

/* What checkpoints have done, counted. */
typedef struct fold_counts {
    uint64_t slices;
    uint64_t things; /* documents and memos in all of them */
    uint32_t most;   /* in the largest of them */
    uint64_t passed; /* slices that were not begun, since another process did the housework */
    uint64_t groups; /* of commits, while a checkpoint was under way */
    uint32_t waited; /* slices in a row that a queued commit has waited for, at most */
} fold_counts;

/* Another session whose life our beats ask for. */
typedef struct pulse {
    char session[33];
    uint64_t until_ns; /* it lives until then, on our clock; 0: nothing says so */
    uint64_t asked_ns; /* when our runtime last wanted to know */
} pulse;

typedef struct writer {
    hd_env env;
    hd_options
        options; /* of which tail_bytes and keep_history are used: its pointers may be gone */
    uint8_t session[16];
    char session_text[33];

    /* The thread's own. */
    log_store *store; /* owned */
    hd_heap *heap;
    heads heads;
    decoder decoder;
    tail tail;
    uint32_t session_index; /* of our session in heads */
    uint64_t row;           /* the last log row that heads and tail include */
    uint64_t checkpoint;    /* the last log row that head rows include */
    uint64_t kept;          /* bytes of log text at or below it that were not pruned */
    uint64_t fold_to;       /* a checkpoint is under way up to this row; 0: none */
    uint32_t fold_races; /* slices in a row that were dropped, since other processes were faster */
    uint32_t waiting;    /* slices since a commit was queued, or since the last group */
    VEC(uint64_t) last_seqs; /* of each space, at the checkpoint before */
    uint64_t last_row;       /* the last row then */
    uint64_t forgotten;      /* what changed after this row is all in the heads */
    bool known;              /* heads and tail are what the file says; else learn it anew */
    bool
        leaving; /* the runtime closes: none of its commits waits for a slice, which may be longer */
    bool fold_is_blocked; /* a head row is damaged: nothing is folded unless a caller asks for it */
    uint64_t prune_to;    /* log rows up to this one are being deleted; 0: none are */
    bool registered;
    uint64_t told; /* the position that our row in `reader` says */
    verdict verdict;
    json_buffer commits, sizes, body; /* of the row under way */
    uint32_t admitted;                /* commits in it */
    batch *todo;                      /* taken, not decided */
    /* The last local seq of ours whose verdict was told, or is on its way to be. */
    uint64_t decided;
    /* An attempt has failed that may have stored this row all the same, with commits up to the local seq
     * `doubted`; 0: there is none. */
    uint64_t doubt, doubted;
    VEC(recovered) recovered;
    VEC(uint64_t) recovered_seqs;
    bool staying;     /* others can see that we live */
    uint64_t beat_ns; /* when to say so again */
    undo undo;        /* of an optimistic store */
    /* What it has read of others since the last outcome; only in an optimistic store, with a runtime. */
    passed_rows passed;
    uint64_t there; /* the last row that our runtime has been told of */
    uint64_t own;   /* the last row that we have appended */
    bool behind;   /* others have appended, or our append may have been lost: read before judging */
    bool expected; /* the backend knows which documents the present group will look up */
    bool
        abreast; /* what is judged now is judged on a snapshot whose log has been read to its end */
    uint32_t attempts; /* failures in a row */
    uint32_t races;    /* groups in a row before which another writer appended its row */
    uint32_t courtesy; /* groups for which we still step aside for others */
    int rested_ms;     /* for so long the thread has slept, with a tail that is worth folding */
#ifndef NDEBUG
    uint32_t checks; /* groups so far: decides which of them are followed by a check */
#endif

    /* Shared; under `lock`. */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t done; /* a command has been carried out, or a turn is over */
    bool resting;        /* the thread sleeps: what is its own may be used in a turn */
    bool watching;       /* it will wake by itself to fold the tail */
    bool timed;          /* it will wake by itself for work of the backend */
    bool in_turn;        /* another thread has what is the thread's own; only if resting */
    uint64_t turns;
    int wake_fd;   /* a bell: there is something to do */
    int notify_fd; /* a bell, borrowed: outcomes are ready */
    batch *queue, **queue_end;
    batch *spare; /* used up: its memory goes back to the runtime */
    outcome *ready, **ready_end;
    writer_command command;
    hd_status command_status;
    hd_error command_error;
    bool stop;
    hd_status trouble; /* of the last attempt; HD_OK: none */
    hd_error trouble_error;
    uint64_t present_ns; /* until then others see that we live; on our clock, and somewhat early */
    pulse pulses[LOG_LIVES];
    uint32_t pulse_count;
    uint64_t heard;  /* the last row of the log, as of the last beat */
    uint64_t folded; /* the last complete checkpoint, for the other side */
    fold_counts folds;
    bool busy;     /* a batch is with the thread */
    uint64_t seen; /* the last row that our runtime has delivered */
    bool report;   /* our row in `reader` is to say so */
} writer;

/* Builds the state anew from the store. On failure it is not `known`. */
hd_status writer_learn(writer *w);
/* Adds rows that others have appended; within a transaction. On failure it is not `known`. */
hd_status writer_catch_up(writer *w);
void writer_forget(writer *w);
/* After a failed attempt, when the store was learned anew: notes the commits of the row in doubt, if it is ours.
 * *unknowable: other writers have folded and pruned it; whether it was ours, nothing says any more. */
hd_status writer_resolve_doubt(writer *w, bool *unknowable);

/* A transaction that no other process has at the same time, for checkpoints and pruning. */
hd_status writer_begin_housework(writer *w);
/* A transaction whose loss in a power failure does no harm, since it can be made again from the log: its
 * commit does not wait for the disk, so that no other writer waits for it. */
hd_status writer_begin_soft(writer *w);
/* Ends a transaction, if there is one: commits it if `status` is HD_OK, else rolls it back. Returns
 * `status`, or that of the commit. */
hd_status writer_end(writer *w, hd_status status);

#endif
