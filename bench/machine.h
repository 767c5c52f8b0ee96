/* machine.h -- what the figures were measured on, in one line. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stddef.h>

/* "AMD EPYC 7763, 2 cores, 8 GiB, Linux 6.1.0, gcc 12.2.0". What the system does not tell is left out. */
void machine_describe(char *out, size_t size);

#endif
