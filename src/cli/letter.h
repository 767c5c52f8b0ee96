/* letter.h -- posted events and receipts of a store, as lists and by the ids that people type. */
#ifndef CLI_LETTER_H
#define CLI_LETTER_H

#include "cli/store.h"

/* A posted event, or the receipt of one. Texts and values are good during the call. */
typedef struct letter {
    const char *space, *id;
    hd_cell document;
    uint64_t seq;
    bool waiting;       /* an event; else a receipt */
    bool dropped;       /* a receipt: it was dropped, not handled */
    hd_value value;     /* the payload; of a receipt what the handler returned */
    const char *stream; /* its name; "" if a receipt does not tell */
    const char *as;     /* the sender's own id; "": none */
    uint64_t time_ms;   /* when it was posted or, of a receipt without that, sent; 0: not known */
    uint64_t due_ms;    /* of an event for later, or a periodic event: when; 0: at once */
    uint64_t every_ms;  /* of a periodic event: its period; else 0 */
    uint64_t attempts;  /* that failed; of a receipt: that were needed; 0: not known */
    hd_value failure;   /* why it was not handled; absent: it has not failed */
} letter;

typedef enum letter_kinds { LETTERS_WAITING = 1, LETTERS_RECEIPTS = 2 } letter_kinds;

/* Calls fn for each of the kinds asked for, in all spaces. False stops. */
typedef bool (*letter_fn)(const letter *l, void *ctx);
hd_status letter_each(store *s, int kinds, letter_fn fn, void *ctx);
/* Calls fn for one that letter_each has shown: of `l` its space, id, document, seq and `waiting` are used. One that is
 * gone is left out. Returns whether to go on. */
bool letter_again(store *s, letter l, letter_fn fn, void *ctx);

/* Whether `text` names it: its id, the beginning of it (at least 8 characters), or the sender's own. */
bool letter_is_named(const letter *l, const char *text);
/* "waiting", "failed", "handled" or "dropped". */
const char *letter_state(const letter *l);

#endif
