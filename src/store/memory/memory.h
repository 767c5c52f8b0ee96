/* memory.h -- a store in memory.
 *
 * Shared by runtimes of one thread, which all use its heap: values travel as references. It decides
 * like every authority, in the order in which commits are flushed to it, and keeps a log of what it
 * decided until every attached runtime has polled it. A store with one runtime attached has no other runtime
 * to conflict with, and skips what would only serve others: claims, footprints, sealing. */
#ifndef STORE_MEMORY_H
#define STORE_MEMORY_H

#include "store/authority.h"

hd_heap *memory_heap(hd_memory *m);
struct heads;
struct heads *memory_heads(hd_memory *m); /* for tests */
/* `sole`: no other runtime will ever be attached, before or after. */
hd_status memory_attach(hd_memory *m, struct replica *r, bool sole, authority **out);

#endif
