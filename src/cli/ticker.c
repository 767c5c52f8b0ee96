/* ticker.c -- a thread that shows the time that has passed. */
#define _GNU_SOURCE
#include "cli/ticker.h"

#include "cli/output.h"
#include "cli/signals.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 100000000 };

/* Ends the process. The call in progress only reads (may_end), so the file is as it was. */
static void end_now(const ticker *t) {
    progress(t->c, "%s", "");
    fflush(stdout);
    _exit(interrupted_status());
}

static void show(const ticker *t, unsigned tenths) {
    static const char marks[] = "|/-\\";
    if (tenths >= 10) progress(t->c, "%s %c %u s", t->what, marks[tenths % 4], tenths / 10);
}

static void *tick(void *ctx) {
    ticker *t = ctx;
    pthread_mutex_lock(&t->lock);
    for (unsigned tenths = 1; !t->stop; tenths++) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TICK_NS;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        pthread_cond_timedwait(&t->stopped, &t->lock, &until);
        if (t->stop) break;
        if (t->may_end && interrupted()) end_now(t);
        show(t, tenths);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void ticker_start(ticker *t, const cli *c, bool may_end, const char *doing, const char *file) {
    *t = (ticker){ .c = c, .may_end = may_end };
    snprintf(t->what, sizeof t->what, "%s %.100s", doing, file);
    if (!c->progress && !may_end) return;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->stopped, NULL);
    t->running = pthread_create(&t->thread, NULL, tick, t) == 0;
}

void ticker_stop(ticker *t) {
    if (!t->running) return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->stopped);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    t->running = false;
    progress(t->c, "%s", "");
}
