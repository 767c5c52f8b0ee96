/* heddle/workflow_build.h -- writing a workflow in C, by hand.
 *
 * A flow is written from top to bottom, like a program; hd_flow_ir gives the IR that hd_workflow_register takes.
 * What is computed is written as text in Python's syntax (docs/EXPRESSIONS.md).
 *
 *     hd_flow *f;
 *     hd_flow_open(pool, "checkout", &f);
 *     hd_flow_input(f, "order", (hd_value){ 0 });
 *     hd_flow_action(f, "paid", "charge", "order=order");
 *     hd_flow_if(f, "not paid");
 *         hd_flow_return(f, "'declined'");
 *     hd_flow_end(f);
 *     hd_flow_each(f, "item", "order['items']");                  // in parallel
 *         hd_flow_action(f, "parcel", "pack", "item=item");
 *     hd_flow_join(f, "parcels", "parcel");                       // a list, in order of the items
 *     hd_flow_return(f, "len(parcels)");
 *     if (hd_flow_ir(f, &ir, &error)) ...
 *     hd_flow_close(f);
 *
 * ERRORS. The calls return nothing. What is wrong (a text that is no expression, an `else` without `if`) is kept with
 * the place of the call; hd_flow_ir returns the first, hd_flow_problem every one. The same place is told when an
 * instance fails there: every call is noted with file and line (define HD_FLOW_WITHOUT_PLACES to leave that out).
 *
 * OWNERSHIP. Text is copied. The flow lives in the pool: it must be closed before the pool is cleared or closed; the IR
 * is a value of the pool. A flow belongs to one thread. */
#ifndef HEDDLE_WORKFLOW_BUILD_H
#define HEDDLE_WORKFLOW_BUILD_H

#include <heddle/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hd_flow hd_flow;

/* `name` is that of the workflow. HD_NOMEM, with *out NULL. */
HD_API hd_status hd_flow_open(hd_pool *pool, const char *name, hd_flow **out);
HD_API void hd_flow_close(hd_flow *flow); /* NULL is accepted */

/* The IR. HD_SYNTAX, HD_LIMIT, HD_USAGE with the first problem: error->message says where, which call, and what;
 * HD_NOMEM. */
HD_API hd_status hd_flow_ir(hd_flow *flow, hd_value *ir, hd_error *error);
/* Problem number `index`, in the order of the calls. False: there are not so many. */
HD_API bool hd_flow_problem(const hd_flow *flow, size_t index, hd_error *problem);

/* Where the next call stands in the source; the macros below call it. */
HD_API void hd_flow_at(hd_flow *flow, const char *file, int line);
/* The id of the node that the next call makes, in place of one made from its position. Ids name the steps of running
 * instances: give them where a step must keep its name when others are put before it. */
HD_API void hd_flow_id(hd_flow *flow, const char *id);

/* ---- Inputs -------------------------------------------------------------------------------- */

/* An input of the workflow, a variable from the beginning on. Absent: it must be given. */
HD_API void hd_flow_input(hd_flow *flow, const char *name, hd_value otherwise);
/* The last input fits this JSON Schema. */
HD_API void hd_flow_schema(hd_flow *flow, hd_value schema);

/* ---- Steps --------------------------------------------------------------------------------- */

/* `into` is a target ("x", "a, b", "r['k']"), or NULL: the result is dropped. */

/* Statements: "n = n + 1; log.append(n)". */
HD_API void hd_flow_do(hd_flow *flow, const char *statements);
/* An action. `args` is what stands between the parentheses of a call, either by name ("order=o, retries=3") or by place
 * ("o, 3"); NULL or "": none. */
HD_API void hd_flow_action(hd_flow *flow, const char *into, const char *action, const char *args);
/* How the last action is attempted. Zero leaves out. */
typedef struct hd_flow_retry {
    uint32_t attempts; /* in all */
    double backoff_s, factor,
        max_s;        /* before the second; each further one so many times longer; at most */
    double timeout_s; /* of each attempt */
    const char *
        on; /* classes that are worth another attempt, "ConnectionError, TimeoutError"; NULL: all */
} hd_flow_retry;
HD_API void hd_flow_retried(hd_flow *flow, const hd_flow_retry *retry);
HD_API void hd_flow_sleep(hd_flow *flow, const char *seconds);
HD_API void hd_flow_sleep_until(hd_flow *flow, const char *seconds_since_1970);
/* Waits for a signal; TimeoutError after `timeout` seconds (an expression, or NULL: never). */
HD_API void hd_flow_wait(hd_flow *flow, const char *into, const char *signal, const char *timeout);
/* NULL: None. */
HD_API void hd_flow_return(hd_flow *flow, const char *value);
/* NULL, in an except clause: what was caught. */
HD_API void hd_flow_raise(hd_flow *flow, const char *exception);

/* ---- Blocks -------------------------------------------------------------------------------- */

/* Each of these begins a block that hd_flow_end ends. */

HD_API void hd_flow_if(hd_flow *flow, const char *condition);
HD_API void hd_flow_elif(hd_flow *flow, const char *condition);
HD_API void hd_flow_else(hd_flow *flow);
HD_API void hd_flow_while(hd_flow *flow, const char *condition);
HD_API void hd_flow_for(hd_flow *flow, const char *target, const char *iterable);
HD_API void hd_flow_break(hd_flow *flow);
HD_API void hd_flow_continue(hd_flow *flow);
HD_API void hd_flow_try(hd_flow *flow);
/* `classes`: "KeyError, OSError", or NULL: every exception. `as`: the variable that gets it, or NULL. */
HD_API void hd_flow_except(hd_flow *flow, const char *classes, const char *as);
/* Done on every way out, also when the instance is cancelled. */
HD_API void hd_flow_finally(hd_flow *flow);
HD_API void hd_flow_end(hd_flow *flow);

/* A branch for each element, in parallel. What a branch assigns ends with it; hd_flow_join ends the block and gives
 * `into` the list of `give`, evaluated in each branch, in order of the elements. */
HD_API void hd_flow_each(hd_flow *flow, const char *target, const char *iterable);
/* At most so many of the branches of the last hd_flow_each are open at once. */
HD_API void hd_flow_window(hd_flow *flow, uint32_t branches);
/* Branches one by one: hd_flow_gather, then hd_flow_branch before each, then hd_flow_join. */
HD_API void hd_flow_gather(hd_flow *flow);
HD_API void hd_flow_branch(hd_flow *flow);
HD_API void hd_flow_join(hd_flow *flow, const char *into, const char *give);
/* What the last join does with failures: "all", "settled", "group", "ordered" (docs/IR.md). The default is "ordered" for
 * hd_flow_each, as a loop would, and "all" for hd_flow_gather. */
HD_API void hd_flow_mode(hd_flow *flow, const char *mode);

/* ---- Functions ----------------------------------------------------------------------------- */

/* Ends what was written so far and begins a function of its own; `params` is "a, b" or NULL. */
HD_API void hd_flow_function(hd_flow *flow, const char *name, const char *params);
HD_API void hd_flow_call(hd_flow *flow, const char *into, const char *function, const char *args);

/* ---- Places -------------------------------------------------------------------------------- */

#ifndef HD_FLOW_WITHOUT_PLACES
#define HD_FLOW_HERE(flow)             (hd_flow_at((flow), __FILE__, __LINE__), (flow))
#define hd_flow_input(flow, ...)       hd_flow_input(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_do(flow, ...)          hd_flow_do(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_action(flow, ...)      hd_flow_action(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_schema(flow, ...)      hd_flow_schema(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_retried(flow, ...)     hd_flow_retried(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_window(flow, ...)      hd_flow_window(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_mode(flow, ...)        hd_flow_mode(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_sleep(flow, ...)       hd_flow_sleep(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_sleep_until(flow, ...) hd_flow_sleep_until(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_wait(flow, ...)        hd_flow_wait(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_return(flow, ...)      hd_flow_return(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_raise(flow, ...)       hd_flow_raise(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_if(flow, ...)          hd_flow_if(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_elif(flow, ...)        hd_flow_elif(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_else(flow)             hd_flow_else(HD_FLOW_HERE(flow))
#define hd_flow_while(flow, ...)       hd_flow_while(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_for(flow, ...)         hd_flow_for(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_break(flow)            hd_flow_break(HD_FLOW_HERE(flow))
#define hd_flow_continue(flow)         hd_flow_continue(HD_FLOW_HERE(flow))
#define hd_flow_try(flow)              hd_flow_try(HD_FLOW_HERE(flow))
#define hd_flow_except(flow, ...)      hd_flow_except(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_finally(flow)          hd_flow_finally(HD_FLOW_HERE(flow))
#define hd_flow_end(flow)              hd_flow_end(HD_FLOW_HERE(flow))
#define hd_flow_each(flow, ...)        hd_flow_each(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_gather(flow)           hd_flow_gather(HD_FLOW_HERE(flow))
#define hd_flow_branch(flow)           hd_flow_branch(HD_FLOW_HERE(flow))
#define hd_flow_join(flow, ...)        hd_flow_join(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_function(flow, ...)    hd_flow_function(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_call(flow, ...)        hd_flow_call(HD_FLOW_HERE(flow), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
