/* sabotage.h -- leaving out, on request, what a test must notice is missing.
 *
 * As store/sabotage.h: debug builds carry the switches, tests set them and see the named test fail;
 * release builds carry nothing. SABOTAGED(s, LEAVE_OUT_...) asks. */
#ifndef SCHEDULER_SABOTAGE_H
#define SCHEDULER_SABOTAGE_H

#include "store/sabotage.h"

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

#endif
