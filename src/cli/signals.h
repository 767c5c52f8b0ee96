/* signals.h -- Ctrl-C ends a command in order: the store is closed first. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* SIGINT and SIGTERM set a flag that loops look at, so that the store is closed in order. The
 * second one ends the process at once, and so do five seconds after a SIGTERM: that too leaves the
 * file whole, like any crash. A closed pipe becomes a write error. */
void signals_init(void);
bool interrupted(void);
/* 130 for SIGINT, 143 for SIGTERM. */
int interrupted_status(void);

/* Blocks until the descriptor is readable, a signal came, or `ms` have passed (-1: never). */
void wait_readable(int fd, int ms);

#endif
