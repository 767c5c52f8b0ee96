/* signals.h -- SIGINT and SIGTERM, for as long as hd_runtime_run is on the stack. */
#ifndef STORE_SIGNALS_H
#define STORE_SIGNALS_H

#include <heddle/base.h>
#include <signal.h>

enum { SIGNALS_CAUGHT = 2 };
typedef struct signals {
    struct sigaction before[SIGNALS_CAUGHT]; /* what the program had installed */
} signals;

/* From now on a signal rings the bell `fd`, and signals_came true. HD_BUSY: another runtime of the
 * process has the signals. */
hd_status signals_take(signals *s, int fd);
/* Puts the program's own handlers back. */
void signals_give_back(const signals *s);
/* Whether one has come since signals_take. */
bool signals_came(void);

#endif
