/* bookkeeping.h -- what keeping rows about nodes costs, beside the same commits without them. */
#ifndef BENCH_BOOKKEEPING_H
#define BENCH_BOOKKEEPING_H

#include "bench.h"

/* Reports "resume/bookkeeping". The files, "NAME-rows.db" and "NAME-plain.db", are removed again. */
void bookkeeping_report(bench *b, const char *name);

#endif
