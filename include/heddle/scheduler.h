/* heddle/scheduler.h -- computations and effects: values kept right, where somebody looks. */
#ifndef HEDDLE_SCHEDULER_H
#define HEDDLE_SCHEDULER_H

#include <heddle/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a node runs. It reads and writes through `tx` only. HD_OK commits; HD_PENDING suspends an
 * async run (see hd_tx_suspend); a transient status is retried within a budget of 10; anything else
 * is reported and the transaction dropped. */
typedef hd_status (*hd_action_fn)(hd_tx *tx, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
