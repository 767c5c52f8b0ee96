/* workflow.h -- what the commands of "heddle workflow" share: a store with its workflows, instances by name, times.
 *
 * Commands that look read documents. Commands that change something open an engine that runs nothing
 * (an observer): the program that runs the space's instances acts on what they commit. */
#ifndef CLI_WORKFLOW_H
#define CLI_WORKFLOW_H

#include "cli/store.h"
#include <heddle/workflow.h>
#include <stdio.h>

#define OPTION_SPACE                                                                               \
    { "space", "NAME", "the space of the workflows (default: main)" }

#define FLOW_SECTION "Workflows"

typedef struct flow {
    store s;
    hd_engine *engine; /* NULL: not opened */
    const char *space;
    const char *id; /* of the instance that flow_instance has found: "name/key"; of the pool */
} flow;

/* All of these say what is wrong and return an exit status. */

/* Opens the store that the first operand names. */
int flow_open(cli *c, flow *f, store_mode mode);
/* The same, with an engine. */
int flow_open_engine(cli *c, flow *f, store_mode mode);
/* Opens the engine of one that flow_open has opened. */
int flow_engine(flow *f);
int flow_close(flow *f, int status);
/* Waits until everything is stored. */
int flow_sync(flow *f, const char *what);

/* Says why the library refused: by `error` (may be NULL), else by the runtime's message. */
int flow_refused(flow *f, hd_status status, const hd_error *error);
/* Shows each of a list of names; says `none` where there are none. */
typedef bool (*flow_name_fn)(const char *name, void *ctx);
typedef hd_status (*flow_list_fn)(hd_engine *engine, flow_name_fn fn, void *ctx);
int flow_list(flow *f, flow_list_fn each, int (*show)(flow *f, const char *name), const char *none);

/* The document of an instance: "name/key", "workflow/name/key" or "space/workflow/name/key". */
int flow_instance(flow *f, const char *name, hd_value *document);
hd_cell flow_cell(flow *f, const char *id);
/* The IR of a version; and of what new instances of a workflow begin with. */
int flow_version(flow *f, const char *version, hd_value *ir);
int flow_latest(flow *f, const char *workflow, hd_value *ir);
/* A workflow, or an instance of one (then *document is its document): by name. */
int flow_find(flow *f, const char *name, hd_value *ir, hd_value *document);

const char *flow_text(hd_value v, const char *key); /* "" */
uint64_t flow_number(hd_value v, const char *key);  /* 0 */
bool flow_is_over(hd_value document);
/* Its first function has ended, and branches that were left clean up: no command ends it sooner. */
bool flow_is_ending(hd_value document);
/* ": ValueError: too large, at charge (order.c:31)" of an instance's document, whole; "" if it has no error. */
const char *flow_error_text(flow *f, hd_value document);

/* "2026-11-16 12:03:04", local time; without the day if that is today. */
#define WHEN_TEXT 32
const char *when_text(uint64_t ms, char out[WHEN_TEXT]);
/* "0.21 s", "3 min 20 s", "2 d 4 h". */
#define SPAN_TEXT 32
const char *span_text(uint64_t ms, char out[SPAN_TEXT]);
/* Milliseconds since 1970. */
uint64_t wall_ms(void);

/* The status of an instance, in its colour. */
void print_status(const cli *c, FILE *to, const char *status, bool coloured);
/* The word in front of it in a sentence: "has" (failed, stalled), else "is". */
const char *status_verb(const char *status);

/* Whether a program runs the workflows of the space, as their lease tells; *pid: the one that has, or had, the lease;
 * 0: none. */
bool flow_runner(flow *f, int64_t *pid);
/* A line that says so, if there is none. */
void flow_print_runner(flow *f);
/* What was asked of the instance (cancel, pause, a signal) and is yet to be done: an array of words; as a line; and as
 * "asked" of an object, where there is something. */
hd_value flow_requests(flow *f);
void flow_print_requests(flow *f);
hd_value flow_with_requests(flow *f, hd_value object);
/* The hint for a command that needs an instance to be over, if this one is not: how it ends. */
const char *flow_how_it_ends(flow *f, hd_value document);

/* Steps of the instance that other processes do through the store: [{"id", "node", "action", "attempt", "since",
 * "process": {"host", "pid", "session"}}]. */
hd_value flow_places(flow *f, const char *id);
/* A line for each of those of the instance that flow_instance has found. */
void flow_print_places(flow *f);
/* " on till-3, process 17". */
void flow_print_process(hd_value process);

#endif
