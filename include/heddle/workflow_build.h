/* heddle/workflow_build.h -- writing a workflow in C, by hand.
 *
 * A program writes a flow from top to bottom, with one call for each statement; hd_flow_ir returns the IR that
 * hd_workflow_register takes. Expressions are texts in Python's syntax (docs/EXPRESSIONS.md).
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
 * ERRORS. The calls return nothing. The flow keeps each problem (a text that is no expression, an `else` without `if`)
 * with the place of the call; hd_flow_ir returns the first, hd_flow_problem every one. The macros below record the file
 * and line of every call, and an instance that fails names them (define HD_FLOW_WITHOUT_PLACES to leave them out).
 *
 * A step that nothing leads to, behind a return, a raise, a break or a continue, is a problem. What else cannot be
 * reached is left out of the IR: the clauses of a `try` whose block raises nothing. Of the branches of an `each` or a
 * `gather` one at least comes to its end.
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

/* Begins the flow of the workflow `name`. HD_NOMEM, with *out NULL. */
HD_API hd_status hd_flow_open(hd_pool *pool, const char *name, hd_flow **out);
HD_API void hd_flow_close(hd_flow *flow); /* NULL is accepted */

/* The IR. HD_SYNTAX, HD_LIMIT, HD_USAGE with the first problem: error->message says where, which call, and what;
 * HD_NOMEM. */
HD_API hd_status hd_flow_ir(hd_flow *flow, hd_value *ir, hd_error *error);
/* Copies problem number `index`, from 0, in the order of the calls. False: there are fewer. */
HD_API bool hd_flow_problem(const hd_flow *flow, size_t index, hd_error *problem);

/* Sets the source position of the next call; the macros below call this. */
HD_API void hd_flow_at(hd_flow *flow, const char *file, int line);
/* Sets the id of the node that the next call makes; without it the id is made from the node's position. Ids name the
 * steps of running instances: set one if a step must keep its name when other steps are put before it. Two nodes of a
 * function with one id are a problem, and so is an id before hd_flow_break or hd_flow_continue, which are no nodes. A
 * step in a finally stands on each way out: the first has the id, the others have a number behind it, "undo.2". */
HD_API void hd_flow_id(hd_flow *flow, const char *id);

/* ---- Inputs -------------------------------------------------------------------------------- */

/* An input of the workflow, which is a variable from its beginning on. `otherwise` is its default; absent: every start
 * must give the input. */
HD_API void hd_flow_input(hd_flow *flow, const char *name, hd_value otherwise);
/* The JSON Schema of the last input; a start whose input does not match fails with HD_MISMATCH. */
HD_API void hd_flow_schema(hd_flow *flow, hd_value schema);

/* ---- Steps --------------------------------------------------------------------------------- */

/* `into` is a target ("x", "a, b", "r['k']"), or NULL: the result is dropped. */

/* Statements: "n = n + 1; log.append(n)". */
HD_API void hd_flow_do(hd_flow *flow, const char *statements);
/* Calls an action. `args` is the text between the parentheses of a call, either by name ("order=o, retries=3") or by
 * position ("o, 3"); NULL or "": none. */
HD_API void hd_flow_action(hd_flow *flow, const char *into, const char *action, const char *args);
/* How the last action is attempted. A member that is zero has its default. A second call for an action adds to the
 * first: timeout_s, heartbeat_s and, together, the other members replace those of the first where they are given. */
typedef struct hd_flow_retry {
    uint32_t attempts;  /* in all; default 1 */
    double backoff_s;   /* delay before the second attempt; default none */
    double factor;      /* each further delay is this many times the one before; default 2 */
    double max_s;       /* no delay is longer; default 3,600 */
    double timeout_s;   /* of each attempt; default none */
    const char *on;     /* classes that are retried, "ConnectionError, TimeoutError"; NULL: all */
    double heartbeat_s; /* a worker that is silent for longer counts as lost */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_flow_retry;
HD_API void hd_flow_retried(hd_flow *flow, const hd_flow_retry *retry);
/* Both take an expression. Sleeps, timeouts of waits and delays between attempts follow the wall clock, so that they
 * survive restarts: a clock that is put forward ends them sooner, one that is put back later. */
HD_API void hd_flow_sleep(hd_flow *flow, const char *seconds);
HD_API void hd_flow_sleep_until(hd_flow *flow, const char *seconds_since_1970);
/* Waits for a signal; TimeoutError after `timeout` seconds (an expression, or NULL: never). */
HD_API void hd_flow_wait(hd_flow *flow, const char *into, const char *signal, const char *timeout);
/* Posts an event, once, to the stream (an expression: "'main/orders'"). The engine's program must have called
 * hd_workflow_join. */
HD_API void hd_flow_send(hd_flow *flow, const char *stream, const char *event);
/* Waits until `condition` is true, in which `value` is the value of the cell (an expression: "'main/total'"), and
 * assigns that value to `into`. `names` ("limit=limit") are the other names that the condition may use, except "cell",
 * "until" and "value"; NULL: none.
 * TimeoutError after `timeout_s` seconds; 0: never. The engine's program must have called hd_workflow_join. */
HD_API void hd_flow_wait_for(hd_flow *flow, const char *into, const char *cell,
                             const char *condition, const char *names, double timeout_s);
/* Starts an instance of another workflow, with inputs by name ("n=3"), and waits for it: its result, or the exception
 * that it raises, is that of the step. */
HD_API void hd_flow_child(hd_flow *flow, const char *into, const char *workflow, const char *args);
/* Limits the last action: of all steps of the space with this key (an expression), at most `most` hold the key at once,
 * from when they are queued until they have ended. Those that wait for it go in order. */
HD_API void hd_flow_limit(hd_flow *flow, const char *key, uint32_t most);
/* The queue that steps of the last action wait in. */
HD_API void hd_flow_queue(hd_flow *flow, const char *queue);
/* The priority of the last action or child, -1000 to 1000; higher goes first. */
HD_API void hd_flow_priority(hd_flow *flow, int32_t priority);
/* What the journal of the workflow's instances records: "none", "steps" or "nodes". */
HD_API void hd_flow_journal(hd_flow *flow, const char *level);
/* How long instances of the workflow stay: an instance is removed `seconds` after its end; and while more than `most`
 * are over, the one that ended first is removed. 0: no such bound. Without this call hd_engine_options decide. */
HD_API void hd_flow_keep(hd_flow *flow, double seconds, uint32_t most);
/* Ends the function with the value of an expression; NULL: None. */
HD_API void hd_flow_return(hd_flow *flow, const char *value);
/* Raises the exception that an expression gives; NULL, in an except clause: the exception that was caught. */
HD_API void hd_flow_raise(hd_flow *flow, const char *exception);

/* ---- Blocks -------------------------------------------------------------------------------- */

/* if, while, for and try begin a block, which hd_flow_end ends; elif, else, except and finally begin the next part of
 * the block. */

HD_API void hd_flow_if(hd_flow *flow, const char *condition);
HD_API void hd_flow_elif(hd_flow *flow, const char *condition);
HD_API void hd_flow_else(hd_flow *flow);
HD_API void hd_flow_while(hd_flow *flow, const char *condition);
HD_API void hd_flow_for(hd_flow *flow, const char *target, const char *iterable);
HD_API void hd_flow_break(hd_flow *flow);
HD_API void hd_flow_continue(hd_flow *flow);
HD_API void hd_flow_try(hd_flow *flow);
/* `classes`: "KeyError, OSError", or NULL: every exception. `as`: the variable that gets the exception, or NULL. */
HD_API void hd_flow_except(hd_flow *flow, const char *classes, const char *as);
/* Runs however the try block ends, also when the instance is cancelled. */
HD_API void hd_flow_finally(hd_flow *flow);
HD_API void hd_flow_end(hd_flow *flow);

/* Runs a branch for each element, in parallel. Variables that a branch assigns are its own, and end with it.
 * hd_flow_join ends the block: it evaluates the expression `give` in each branch, and assigns the list of the results,
 * in the order of the elements, to `into`. */
HD_API void hd_flow_each(hd_flow *flow, const char *target, const char *iterable);
/* At most this many branches of the last hd_flow_each are open at once. */
HD_API void hd_flow_window(hd_flow *flow, uint32_t branches);
/* Runs different branches in parallel: hd_flow_gather, then hd_flow_branch before each branch, then hd_flow_join. */
HD_API void hd_flow_gather(hd_flow *flow);
HD_API void hd_flow_branch(hd_flow *flow);
HD_API void hd_flow_join(hd_flow *flow, const char *into, const char *give);
/* What the last join does about branches that fail (docs/IR.md has all of it):
 *
 *   "ordered"  waits for all; then raises the failure of the lowest index. Default of hd_flow_each.
 *   "all"      raises the first failure at once; the other branches go on. Default of hd_flow_gather.
 *   "settled"  waits for all; exceptions are results.
 *   "group"    the first failure cancels the others; when all have ended, raises an ExceptionGroup.
 *   "first"    the first branch that ends cancels the others; waits for all.
 *
 * Branches that "all" has left behind are cancelled when the first function has ended; the instance is over when they
 * have cleaned up (finally). */
HD_API void hd_flow_mode(hd_flow *flow, const char *mode);

/* ---- Functions ----------------------------------------------------------------------------- */

/* Ends the function written so far (at first the workflow itself) and begins another; `params` is "a, b" or NULL. */
HD_API void hd_flow_function(hd_flow *flow, const char *name, const char *params);
/* Calls a function of this flow. */
HD_API void hd_flow_call(hd_flow *flow, const char *into, const char *function, const char *args);

/* ---- Places -------------------------------------------------------------------------------- */

#ifndef HD_FLOW_WITHOUT_PLACES
#define HD_FLOW_HERE(flow)             (hd_flow_at((flow), __FILE__, __LINE__), (flow))
#define hd_flow_id(flow, ...)          hd_flow_id(HD_FLOW_HERE(flow), __VA_ARGS__)
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
#define hd_flow_send(flow, ...)        hd_flow_send(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_wait_for(flow, ...)    hd_flow_wait_for(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_child(flow, ...)       hd_flow_child(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_limit(flow, ...)       hd_flow_limit(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_queue(flow, ...)       hd_flow_queue(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_priority(flow, ...)    hd_flow_priority(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_journal(flow, ...)     hd_flow_journal(HD_FLOW_HERE(flow), __VA_ARGS__)
#define hd_flow_keep(flow, ...)        hd_flow_keep(HD_FLOW_HERE(flow), __VA_ARGS__)
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
