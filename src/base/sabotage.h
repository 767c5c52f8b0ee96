/* sabotage.h -- leaving out, on request, what a test must notice is missing.
 *
 * A test that passes with and without the thing it is about proves nothing. Debug builds carry these
 * switches, tests set them and see the named test fail; release builds carry nothing. All switches are here.
 * SABOTAGED(r, SABOTAGE_...) asks for one of a replica or of admission, SABOTAGED(s, LEAVE_OUT_...) for one
 * of a scheduler. */
#ifndef BASE_SABOTAGE_H
#define BASE_SABOTAGE_H

enum {
    SABOTAGE_CASCADE = 1, /* what is stacked on a refused commit is not doomed */
    SABOTAGE_FLIP = 2,    /* what a leaving layer uncovers is not announced */
    SABOTAGE_BASIS = 4,   /* claims are dated when they are sent, not when they were read */
    SABOTAGE_MARK = 8     /* a commit takes effect without being remembered as decided */
};

enum {
    LEAVE_OUT_SUPPRESSION = 1, /* a run's own commit invalidates its node */
    LEAVE_OUT_WITHDRAWAL = 2,  /* liveness is not derived anew where a reference was lost */
    LEAVE_OUT_PROMOTION = 4,   /* an invalid materialiser waits for idle though it is read */
    LEAVE_OUT_EXPIRY = 8,      /* demand by creation never ends */
    LEAVE_OUT_RESTORE = 16,    /* a refused run forgets what caused it */
    LEAVE_OUT_BACKOFF = 32,    /* what does not settle is not slowed down */
    LEAVE_OUT_ECHO = 64,       /* nor are two writers that overwrite each other */
    LEAVE_OUT_CHANGES = 128    /* what has changed since a row was proved is not asked for */
};

#ifndef NDEBUG
#define SABOTAGE_FIELD      unsigned sabotage; /* SABOTAGE_* or LEAVE_OUT_*; written by tests only */
#define SABOTAGED(it, what) (((it)->sabotage & (what)) != 0)
#else
#define SABOTAGE_FIELD
#define SABOTAGED(it, what) false
#endif

#endif
