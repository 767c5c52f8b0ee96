/* signals.c -- SIGINT and SIGTERM end hd_runtime_run, for programs that ask for it (hd_options.signals).
 *
 * The handlers are installed while hd_runtime_run is on the stack, and those of before are put back when it
 * returns. A handler may do next to nothing: it sets a flag and makes the runtime's descriptor readable. One
 * runtime at a time has the signals, because they come to the process. */
#define _GNU_SOURCE
#include "store/signals.h"

#include "base/poller.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

static const int CAUGHT[SIGNALS_CAUGHT] = { SIGINT, SIGTERM };

/* The library's only data that is the process's: a handler has no other way to its runtime. */
static struct {
    atomic_bool taken; /* a runtime has the signals */
    atomic_bool came;
    atomic_int wake_fd;
} signals_of_process;

static void on_signal(int number) {
    int before = errno;
    (void)number;
    atomic_store(&signals_of_process.came, true);
    bell_ring(atomic_load(&signals_of_process.wake_fd));
    errno = before;
}

hd_status signals_take(signals *s, int fd) {
    struct sigaction action = { .sa_handler = on_signal };
    if (atomic_exchange(&signals_of_process.taken, true)) return HD_BUSY;
    atomic_store(&signals_of_process.came, false);
    atomic_store(&signals_of_process.wake_fd, fd);
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS_CAUGHT; i++) sigaction(CAUGHT[i], &action, &s->before[i]);
    return HD_OK;
}

void signals_give_back(const signals *s) {
    for (int i = 0; i < SIGNALS_CAUGHT; i++) sigaction(CAUGHT[i], &s->before[i], NULL);
    atomic_store(&signals_of_process.taken, false);
}

bool signals_came(void) { return atomic_load(&signals_of_process.came); }
