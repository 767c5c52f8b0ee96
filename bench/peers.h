/* peers.h -- what libraries from npm take for the same work, in the same run.
 *
 * The frameworks are installed on first use (bench/peers, versions pinned); without npm, node or
 * the network there are no peers, which is said once and is no failure. Each framework runs in a
 * process of its own, once per run of the bench. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include "bench.h"

#include "graphs.h"

/* The adapters in bench/peers, without ".mjs". */
#define PEER_ALIEN  "alien-signals"
#define PEER_PREACT "preact-signals"

/* What `framework` took for the graph, in the graph's unit; false where it is not known. The
 * first question about a framework runs it on all graphs, which takes a minute or two. */
bool peer_value(bench *b, const char *framework, const graph *g, double *value);

/* DBOS, a workflow engine on PostgreSQL: bench/peers/dbos. Without PostgreSQL it is left out, with a line
 * that says so. */
#define PEER_DBOS "dbos"

/* How often per second the framework did this work; false where it is not known. */
bool peer_rate(bench *b, const char *framework, const char *work, double *per_s);

/* Reports the rates of the group's ten-step workflows, which have been measured, beside DBOS's, with 1, 8 and 32 in
 * flight. `times`: how many times DBOS's rate each must reach. */
void peer_compare_dbos(bench *b, const char *group, const double times[3]);

#endif
