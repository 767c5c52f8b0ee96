/* outbox_queue.h -- where the messages of the outbox wait, each in one place.
 *
 *     found --> ready (by order) --> at hand --> removing --> gone
 *                 ^                     |
 *                 |   timed             |  the channel failed: until a time
 *                 +-- parked          <-+  nobody has opened the channel
 *                     loading              its space was unloaded: until the record is there
 *
 * A message leaves the place where it waits when that happens which it waits for, and is looked at then:
 * what waits costs a pass nothing, however much of it there is.
 *
 * Cost: find, park, take from the channel's list O(1); to ready and to a time O(log n). Only adding a
 * message and naming a channel for the first time allocate; all moves have their memory from then on. */
#ifndef SCHEDULER_OUTBOX_QUEUE_H
#define SCHEDULER_OUTBOX_QUEUE_H

#include "base/binheap.h"
#include "base/slab.h"
#include "scheduler/events_state.h"

typedef struct channel {
    struct key *space; /* referenced */
    hd_channel_fn fn;  /* NULL: nobody has opened it */
    void *ctx;
    list parked; /* messages, by order; empty once it is open */
    size_t size; /* of all of this */
    char name[];
} channel;

typedef enum message_state {
    MESSAGE_AT_HAND, /* somebody is looking at it: in no place */
    MESSAGE_READY,
    MESSAGE_TIMED,
    MESSAGE_PARKED,
    MESSAGE_LOADING,
    MESSAGE_REMOVING /* delivered; the removal of its record has no verdict yet */
} message_state;

typedef struct message {
    binheap_item turn; /* READY: in outbox.ready; TIMED: in outbox.timed */
    list_node link;    /* PARKED: in channel.parked */
    channel *channel;  /* PARKED: waits for it */
    uint64_t order;    /* of delivery, among those that are ready */
    place_id doc;      /* referenced */
    struct outbox *of;
    uint32_t at;    /* in outbox.all */
    uint32_t times; /* failures so far */
    message_state state;
} message;

typedef struct outbox {
    scheduler *s;
    const hd_env *env;
    places *places;
    slab records;
    VEC(message *) all; /* confirmed, and its record not yet removed */
    table by_doc;       /* -> index into all */
    binheap ready;      /* key: order */
    binheap timed;      /* key: when it is due */
    uint64_t next_order;
    VEC(channel *) channels;
    table by_name; /* -> index into channels */
} outbox;

void outbox_queue_init(outbox *o, scheduler *s);
void outbox_queue_fini(outbox *o);

/* NULL: it is none of ours. */
message *outbox_find(const outbox *o, place_id doc);
/* A new one, ready. HD_NOMEM: nothing changed. */
hd_status outbox_add(outbox *o, place_id doc);
/* Takes out the first that is ready; NULL: none. */
message *outbox_take(outbox *o);
/* It is over. */
void outbox_drop(outbox *o, message *m);

/* From where it is to where it waits next. */
void outbox_make_ready(outbox *o, message *m);
void outbox_wait_until(outbox *o, message *m, uint64_t due);
void outbox_park(outbox *o, message *m, channel *c);
void outbox_wait_in(outbox *o, message *m, message_state state);

/* Those whose time has come are ready. */
void outbox_release_due(outbox *o, uint64_t now);
/* One that is parked is ready, behind all others; in the order of these calls. */
void outbox_release(outbox *o, message *m);

/* Made at first mention, closed. NULL: no memory. */
channel *outbox_channel(outbox *o, struct key *space, const char *name);

#endif
