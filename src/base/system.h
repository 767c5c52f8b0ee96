/* system.h -- what Linux and macOS have under different names, or only one of them.
 *
 * poller.h has sets of descriptors and process.h other processes; the rest is here. */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* qsort with a context, which is the last argument of the comparison. */
void system_sort(void *items, size_t count, size_t size,
                 int (*compare)(const void *a, const void *b, void *ctx), void *ctx);

/* Descriptors that programs started from here do not inherit. On macOS one that starts another program in a second
 * thread at that moment may pass them on: the flag is set by a second call there. -1 and errno, as the calls they stand
 * for. */
int system_pipe(int ends[2]);
int system_socket(void); /* AF_UNIX, a stream; does not block */
int system_accept(int listening);
/* For send() to a socket of the two calls above: a closed other end is an error, not a signal. */
#ifdef __linux__
#define SYSTEM_NO_SIGNAL MSG_NOSIGNAL
#else
#define SYSTEM_NO_SIGNAL 0
#endif

/* The path of the program that runs; false: it is not known. */
bool system_program(char *out, size_t size);
/* Its short name; "" where it has none. */
void system_program_name(char *out, size_t size);

/* A shared library as dlopen finds it. */
#ifdef __APPLE__
#define SYSTEM_LIBRARY(name, version) "lib" name "." #version ".dylib"
#else
#define SYSTEM_LIBRARY(name, version) "lib" name ".so." #version
#endif

#endif
