/* signals.c -- SIGINT and SIGTERM. The state is in static variables: a signal handler reaches nothing else.
 *
 * Any thread may be the one that is interrupted, the store's writer among them, so a signal does
 * not just cut a system call short: it also writes into a pipe that every wait looks at. */
#define _GNU_SOURCE
#include "cli/signals.h"

#include "base/system.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t caught; /* the signal's number; written by the handler only */
static int bell[2] = { -1, -1 };     /* readable from the first signal on; set once, before it */

enum { GRACE_S = 5 }; /* how long a command may take to end after SIGTERM */

/* The command has not ended in time: it waits for something, or computes. The file survives this like any crash. */
static void end_at_once(int number) {
    (void)number;
    _exit(128 + (int)caught);
}

static void catch_signal(int number) {
    int saved = errno;
    caught = number;
    if (number == SIGTERM) alarm(GRACE_S);
    ssize_t rung = write(bell[1], "", 1);
    (void)rung; /* a full pipe is readable already */
    errno = saved;
}

void signals_init(void) {
    if (system_pipe(bell)) bell[0] = bell[1] = -1;
    for (int i = 0; i < 2; i++)
        if (bell[i] >= 0) fcntl(bell[i], F_SETFL, O_NONBLOCK);
    struct sigaction ask = { .sa_handler = catch_signal, .sa_flags = (int)SA_RESETHAND };
    struct sigaction late = { .sa_handler = end_at_once };
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigemptyset(&ask.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigemptyset(&late.sa_mask);
    sigaction(SIGINT, &ask, NULL);
    sigaction(SIGTERM, &ask, NULL);
    sigaction(SIGALRM, &late, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* a write beyond the shell's limit fails instead */
}

bool interrupted(void) { return caught != 0; }
int interrupted_status(void) { return 128 + (caught ? (int)caught : SIGINT); }

void wait_readable(int fd, int ms) {
    struct pollfd either[] = { { bell[0], POLLIN, 0 }, { fd, POLLIN, 0 } };
    if (!interrupted()) poll(either, 2, ms);
}
