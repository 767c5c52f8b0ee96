/* lead.h -- which of several processes derives (see lead.c). */
#ifndef SCHEDULER_LEAD_H
#define SCHEDULER_LEAD_H

#include "scheduler/persistence/persistence.h"

enum { PATIENCE_MS = 100 }; /* how long a node waits at least for the process that leads */
/* The session that leads in the node's space is another one, and it has written a row of the node since it leads. */
bool persistence_is_led(const scheduler *s, node_id id);
/* The node has waited for the leader in vain: it does not follow until the leader's next row of it. `silent`: the
 * leader has written no row of the node meanwhile, and this runtime tries to lead instead. */
void persistence_stop_following(scheduler *s, node_id id, bool silent);
/* What the lease document says of the leader; absent: nothing is known. Borrowed. */
hd_value persistence_leader(const scheduler *s, node_id id);
/* Gives the leases up, and waits until that is stored. */
void persistence_stop_leading(scheduler *s);

/* Nodes in these states take no result of another runtime over. */
#define NODE_NOT_ADOPTED                                                                           \
    (NODE_RUNNING | NODE_SUSPENDED | NODE_WAITING | NODE_STARVED | NODE_PROVISIONAL |              \
     NODE_DEMANDED | NODE_EPHEMERAL | NODE_REMOVED | NODE_OWED)

/* The session of another runtime has stored a row of the node. `by`: that session, if it leads in some space; else
 * NULL. For adopt.c. */
void lead_heard(scheduler *s, node_id id, hd_value item, const char *by);

#endif
