/* outbox_queue.h -- where the messages of the outbox wait, each in one place.
 *
 *     found --> ready (by order) --> at hand --> removing --> gone
 *                 ^                     |
 *                 |   timed             |  the channel failed: until a time
 *                 +-- parked          <-+  the channel is not open
 *                     loading              its space was unloaded: until the record is there
 *
 * What a message waits for moves it to `ready`: messages that wait cost a pass nothing, however many they
 * are.
 *
 * Cost: find, park, take from the channel's list O(1); to ready and to a time O(log n). Adding a message and
 * naming a channel for the first time allocate; moving a message does not, and cannot fail. */
#ifndef SCHEDULER_OUTBOX_QUEUE_H
#define SCHEDULER_OUTBOX_QUEUE_H

#include "base/binheap.h"
#include "base/slab.h"
#include "scheduler/events/state.h"

typedef struct channel {
    struct key *space; /* referenced */
    hd_channel_fn fn;  /* NULL: the program has not opened it */
    void *ctx;
    list parked; /* messages, by order; empty once it is open */
    size_t size; /* of all of this */
    char name[];
} channel;

typedef enum message_state {
    MESSAGE_AT_HAND, /* outbox.c is dealing with it: in no list and no heap */
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

/* The message that this document records; NULL: none is known here. */
message *outbox_find(const outbox *o, place_id doc);
/* A new one, ready. HD_NOMEM: nothing changed. */
hd_status outbox_add(outbox *o, place_id doc);
/* Takes out the first that is ready; NULL: none. */
message *outbox_take(outbox *o);
/* Forgets the message: its record is gone. */
void outbox_drop(outbox *o, message *m);

/* Take the message out of where it waits, and put it where it waits next. */
void outbox_make_ready(outbox *o, message *m);
void outbox_wait_until(outbox *o, message *m, uint64_t due);
void outbox_park(outbox *o, message *m, channel *c);
void outbox_wait_in(outbox *o, message *m, message_state state);

/* Makes the messages ready that wait for a time up to `now`. */
void outbox_release_due(outbox *o, uint64_t now);
/* Makes a parked message ready, behind all that are. */
void outbox_release(outbox *o, message *m);

/* The channel of this name, made at first mention without a function. NULL: no memory. */
channel *outbox_channel(outbox *o, struct key *space, const char *name);

/* Asserts that each message waits in one place, the one that its state says. */
void outbox_queue_check(const outbox *o);

#endif
