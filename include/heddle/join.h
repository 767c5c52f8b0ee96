/* heddle/join.h -- where the two schedulers meet: workflows that send events, and that wait for computed values.
 *
 * hd_workflow_join gives an engine two actions, which any workflow may use as steps:
 *
 *     heddle.send   {"stream": "main/orders", "event": ...}
 *         posts an event to a stream, in the transaction that stores that the step is done: so the event is posted
 *         once, whatever crashes. The result is the event's id. The event's dicts keep their keys, also keys that
 *         begin with "$".
 *     heddle.wait   {"cell": "main/total", "until": "value >= limit", "limit": 100}
 *         ends when the expression is true; its result is the cell's value. In the expression, `value` is the cell's
 *         value (None: the cell is absent), and the other names are the arguments beside "cell" and "until". The step
 *         sees only values that the store has accepted (hd_sink_spec.confirmed). While the step waits, it keeps the
 *         nodes that compute the cell running, as a sink would. The step's "timeout" is its deadline. It raises
 *         ValueError if "cell" is no address, or the expression does not parse or raises an exception.
 *
 * hd_flow_send and hd_flow_wait_for write such steps. */
#ifndef HEDDLE_JOIN_H
#define HEDDLE_JOIN_H

#include <heddle/workflow.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Registers the two actions. Call it once for each engine, on the runtime's thread; they end with the engine.
 * HD_EXISTS: it has been called already; HD_NOMEM. */
HD_API hd_status hd_workflow_join(hd_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
