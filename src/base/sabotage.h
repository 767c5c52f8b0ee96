/* sabotage.h -- switches with which a test leaves out a part of the library, and sees that another test then fails.
 *
 * A test that passes both with and without the code it is about proves nothing. Debug builds have these
 * switches; release builds have none. All switches are here.
 * SABOTAGED(r, SABOTAGE_...) asks for one of a replica or of admission, SABOTAGED(s, LEAVE_OUT_...) for one
 * of a scheduler, SABOTAGED(s, LOG_LEAVE_OUT_...) for one of a connection to a store with a log. */
#ifndef BASE_SABOTAGE_H
#define BASE_SABOTAGE_H

enum {
    SABOTAGE_CASCADE = 1, /* what is stacked on a refused commit is not doomed */
    SABOTAGE_FLIP = 2,    /* what a leaving layer uncovers is not announced */
    SABOTAGE_BASIS = 4,   /* claims are dated when they are sent, not when they were read */
    SABOTAGE_MARK = 8,    /* a commit takes effect without being remembered as decided */
    SABOTAGE_FENCE = 16,  /* a commit of an engine is taken although its lease is another's */
    SABOTAGE_SHARD = 32,  /* the same, but for the first shard of a space */
    SABOTAGE_DEATH = 64   /* a session that does not live any more keeps its leases */
};

enum {
    LEAVE_OUT_SUPPRESSION = 1, /* a run's own commit invalidates its node */
    LEAVE_OUT_WITHDRAWAL = 2,  /* liveness is not derived anew where a reference was lost */
    LEAVE_OUT_PROMOTION = 4,   /* an invalid materialiser waits for idle though it is read */
    LEAVE_OUT_EXPIRY = 8,      /* demand by creation never ends */
    LEAVE_OUT_RESTORE = 16,    /* a refused run forgets what caused it */
    LEAVE_OUT_BACKOFF = 32,    /* what does not settle is not slowed down */
    LEAVE_OUT_ECHO = 64,       /* nor are two writers that overwrite each other */
    LEAVE_OUT_CHANGES = 128,   /* what has changed since a row was proved is not asked for */
    LEAVE_OUT_PATIENCE = 512,  /* a node waits for the process that derives, however long */
    LEAVE_OUT_MENDING = 256    /* outputs that another runtime has written over stay */
};

enum {
    LOG_LEAVE_OUT_RACE = 1,     /* a row is appended although another writer has appended it */
    LOG_LEAVE_OUT_RECOVERY = 2, /* a commit whose acknowledgement was lost is judged as a new one */
    LOG_LEAVE_OUT_DOUBT =
        4, /* a commit of which nothing says whether it is stored is tried again */
    LOG_LEAVE_OUT_LEARNING = 8, /* what a failed attempt has changed in memory stays */
    LOG_LEAVE_OUT_COMMIT = 16,  /* verdicts are told although the commit has failed */
    LOG_LEAVE_OUT_ORDER = 32,   /* the position moves before the row has been told */
    LOG_LEAVE_OUT_GAP = 64,     /* rows that were pruned are not missed */
    LOG_LEAVE_OUT_RELOAD = 128, /* after a gap documents stay as they were */
    LOG_LEAVE_OUT_BEFORE = 256, /* a verdict is delivered before the rows before it */
    LOG_LEAVE_OUT_ABSORB =
        512, /* a commit is applied to documents that were loaded with it in them */
    LOG_LEAVE_OUT_CLAIMS = 1024, /* stale reads are admitted */
    LOG_LEAVE_OUT_ABSENT = 2048, /* so are documents that must not exist and do */
    LOG_LEAVE_OUT_HEAD = 4096,   /* a checkpoint folds the log over nothing */
    LOG_LEAVE_OUT_TORN = 8192    /* a reload that failed half way counts as done */
};

#ifndef NDEBUG
#define SABOTAGE_FIELD      unsigned sabotage; /* SABOTAGE_* or LEAVE_OUT_*; written by tests only */
#define SABOTAGED(it, what) (((it)->sabotage & (what)) != 0)
#else
#define SABOTAGE_FIELD
#define SABOTAGED(it, what) false
#endif

#endif
