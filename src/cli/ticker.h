/* ticker.h -- a sign of life while the library does something long in one call.
 *
 *     ticker t;
 *     ticker_start(&t, c, true, "checking", "shop.db");
 *     status = hd_store_check(...);
 *     ticker_stop(&t);
 *
 * On a watched stderr the time that has passed is shown from the first second on. */
#ifndef CLI_TICKER_H
#define CLI_TICKER_H

#include "cli/command.h"
#include <pthread.h>

typedef struct ticker {
    const cli *c;
    char what[128];
    bool may_end; /* Ctrl-C ends the process at once: for work that only reads */
    bool running, stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
} ticker;

void ticker_start(ticker *t, const cli *c, bool may_end, const char *doing, const char *file);
/* May be called again. Clears the line. */
void ticker_stop(ticker *t);

#endif
