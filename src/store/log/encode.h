/* encode.h -- a commit as bytes, for the writer thread and for the log.
 *
 * A runtime's thread hands commits to the writer as bytes. A *message* has two parts. The first
 * is what admission needs, in a compact binary form: documents by name, claims with their basis,
 * footprints, preconditions. The second is the *fragment*: the commit as it will stand in the log,
 * JSON text but for the sequence numbers, which the writer puts in front. So the writer copies
 * values without ever looking at them, and what is hashed for replays is what is stored.
 *
 *     u32 size, u32 fragment size                         fixed; everything else is a varint
 *     local seq, settled, heard, class * 4 + refusal      refusal: see message_refusal
 *     spaces:        count, written; names                the first `written` get a seq
 *     documents:     count; space, scope * 2 + meta, instance, id
 *     paths:         count; texts                         elsewhere a path is its number here, from 1; 0: the root
 *     writes:        count; document, basis, flags, own commit under it; exact paths, unless WRITE_PLAIN or
 *                    WRITE_LOOSE; operations' paths
 *     claims:        count; document * 4 + strict * 2 + shape, basis, path, layers as runs
 *     preconditions: count; kind, origin | document, path, hash
 *     fragment:      "n":7,"p":["main"],"d":[...]}
 *
 * The fragment is described in docs/FORMAT.md. */
#ifndef STORE_LOG_ENCODE_H
#define STORE_LOG_ENCODE_H

#include "store/replica.h"
#include "value/json_write.h"

#define MESSAGE_HEADER 8u

/* Why the writer is to refuse the commit, whatever its claims are. */
typedef enum message_refusal {
    REFUSAL_NONE,
    REFUSAL_TOO_LONG /* longer than `longest`: HD_LIMIT. The message has no fragment */
} message_refusal;

/* Flags of a write. */
enum {
    WRITE_CREATE = 1,
    WRITE_DELETE = 2,
    WRITE_GUARDED = 4,
    WRITE_EXACT = 8, /* an exact footprint is given; it may be empty */
    WRITE_ANEW = 16, /* nothing is left of what was there */
    /* The exact paths are those of the operations, whose flags then are op_touch_flags + op_plain_flags * 32. */
    WRITE_PLAIN = 32,
    WRITE_LOOSE = 64,  /* ditto, but whatever op_touch_flags and TOUCH_WAY say */
    WRITE_FORGET = 128 /* deleted, without a tombstone that is kept for "absent" */
};

_Static_assert(TOUCH_LEAF < 32 && (TOUCH_WHOLE | TOUCH_KEYS | TOUCH_WAY | TOUCH_REST) < 32,
               "the flags of a touch have five bits, so that two sets fit into one number");
_Static_assert(REFUSAL_TOO_LONG < 4, "a refusal has two bits beside the class");

/* Where the encoder keeps what it has numbered; one for each runtime, reused. */
typedef struct encoder {
    const hd_env *env;
    const replica *r;
    size_t
        longest; /* a fragment of more bytes than this can never be stored (log_store.text_max) */
    bool
        shortens; /* ids of a commit's documents stand behind what they share (log_store.shortens) */
    uint32_t shared; /* so many bytes, in the commit that is being encoded */
    struct encoder_mark {
        uint32_t epoch, index;
        bool guarded;   /* created under "absent" */
        bool forgotten; /* deleted under "forget" */
    } * marks;          /* by place: its number in this message, if epoch is the present one */
    uint32_t mark_count;
    uint32_t epoch;
    VEC(place_id) docs;       /* of this message, by number */
    VEC(struct key *) spaces; /* of this message, written ones first; borrowed */
    uint32_t written;         /* how many of them */
    struct encoder_path {
        uint32_t epoch, index;
        uint32_t at, length; /* its text, in `text` */
    } * paths;               /* by hd_path: as `marks` */
    uint32_t path_room;
    VEC(hd_path) numbered; /* paths of this message, by number */
    json_buffer text;      /* theirs, one after the other, without NULs; and room for one more */
} encoder;

/* `longest` is SIZE_MAX until the caller sets it. */
void encoder_init(encoder *e, const hd_env *env, const replica *r);
void encoder_fini(encoder *e);

/* Appends the message of a commit to `out`. HD_NOMEM: `out` is as it was. */
hd_status encode_commit(encoder *e, const commit *c, json_buffer *out);

/* What an operation can change at most; and what it changes in the plainest case, where the key was
 * there already. A footprint that is the latter is not written into the log. */
uint8_t op_touch_flags(op_kind kind, hd_path path);
uint8_t op_plain_flags(op_kind kind, hd_path path, hd_value value);

/* The operation that a word of the log stands for: "set", "remove", ... */
bool op_of_word(const char *word, op_kind *out);

#endif
