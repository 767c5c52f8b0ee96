/* letter.c -- posted events and receipts of a store, as lists and by the ids that people type. */
#include "cli/letter.h"

#include "cli/signals.h"
#include <heddle/event.h>
#include <string.h>

enum { PREFIX_LEAST = 8 };

typedef struct walk {
    store *s;
    letter_fn fn;
    void *ctx;
    int kinds;
    bool waiting, stopped;
} walk;

/* The milliseconds in front of an id, in base 32. */
static uint64_t id_time(const char *id) {
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint64_t ms = 0;
    for (int i = 0; i < 9; i++) {
        const char *digit = id[i] ? strchr(digits, id[i]) : NULL;
        if (!digit) return 0;
        ms = ms << 5 | (uint64_t)(digit - digits);
    }
    return ms;
}

static hd_value meta(walk *w, hd_cell document, const char *key) {
    hd_tx *tx;
    if (hd_tx_begin_read(w->s->rt, &tx)) return (hd_value){ 0 };
    hd_value v = hd_tx_get_meta(tx, document, key);
    if (hd_value_exists(v)) v = hd_value_take(w->s->pool, hd_value_ref(v));
    hd_tx_abort(tx);
    return hd_value_status(v) ? (hd_value){ 0 } : v;
}

static uint64_t count_of(hd_value v) {
    int64_t n = hd_value_as_int(v, 0);
    return n > 0 ? (uint64_t)n : 0;
}

static void fill_event(walk *w, letter *l, hd_value record) {
    hd_cell stream = hd_cell_of_link(w->s->rt, l->document, hd_value_at(record, "stream"));
    l->value = hd_value_at(record, "payload");
    l->stream = store_cell_name(w->s, stream);
    l->as = hd_value_as_text(hd_value_at(record, "as"), "");
    l->time_ms = count_of(hd_value_at(record, "time"));
    l->due_ms = count_of(hd_value_at(record, "due"));
    l->every_ms = count_of(hd_value_at(record, "every"));
    l->failure = meta(w, l->document, "failed");
    l->attempts = count_of(hd_value_at(l->failure, "attempts"));
}

static void fill_receipt(walk *w, letter *l, hd_value value) {
    l->value = value;
    l->stream = hd_value_as_text(meta(w, l->document, "stream"), "");
    l->as = hd_value_as_text(meta(w, l->document, "as"), "");
    l->time_ms = count_of(meta(w, l->document, "time"));
    if (!l->time_ms) l->time_ms = id_time(l->id);
    l->attempts = count_of(meta(w, l->document, "attempts"));
    l->dropped = hd_value_as_bool(meta(w, l->document, "dropped"), false);
}

/* Reads the rest of what the document tells, and calls fn. */
static void deliver(walk *w, letter *l) {
    hd_value v = hd_read(w->s->rt, w->s->pool, l->document);
    if (hd_value_exists(v)) {
        if (l->waiting) fill_event(w, l, v);
        else fill_receipt(w, l, v);
        w->stopped = !w->fn(l, w->ctx);
    }
    hd_pool_clear(w->s->pool);
}

static bool visit(const hd_listing *entry, void *ctx) {
    walk *w = ctx;
    const char *slash = strchr(entry->id, '/');
    letter l = { .space = entry->space,
                 .id = slash ? slash + 1 : entry->id,
                 .seq = entry->seq,
                 .waiting = w->waiting };
    l.document = hd_cell_of(w->s->rt, entry->space, entry->scope, entry->id, NULL);
    deliver(w, &l);
    return !w->stopped && !interrupted();
}

static hd_status visit_kind(walk *w, const char *space, bool waiting) {
    w->waiting = waiting;
    if (waiting) return hd_runtime_list(w->s->rt, space, "event", NULL, visit, w);
    return hd_runtime_list(w->s->rt, space, NULL, "receipt/", visit, w);
}

typedef struct spaces {
    walk *w;
    hd_status status;
} spaces;

static bool visit_space(const char *space, void *ctx) {
    spaces *all = ctx;
    walk *w = all->w;
    if (w->kinds & LETTERS_WAITING) all->status = visit_kind(w, space, true);
    if ((w->kinds & LETTERS_RECEIPTS) && !all->status && !w->stopped)
        all->status = visit_kind(w, space, false);
    return !all->status && !w->stopped && !interrupted();
}

hd_status letter_each(store *s, int kinds, letter_fn fn, void *ctx) {
    walk w = { .s = s, .fn = fn, .ctx = ctx, .kinds = kinds };
    spaces all = { &w, HD_OK };
    hd_status status = hd_runtime_spaces(s->rt, visit_space, &all);
    return status ? status : all.status;
}

bool letter_again(store *s, letter l, letter_fn fn, void *ctx) {
    walk w = { .s = s, .fn = fn, .ctx = ctx };
    deliver(&w, &l);
    return !w.stopped && !interrupted();
}

bool letter_is_named(const letter *l, const char *text) {
    size_t length = strlen(text);
    if (*l->as && strcmp(l->as, text) == 0) return true;
    return length >= PREFIX_LEAST && strncmp(l->id, text, length) == 0;
}

const char *letter_state(const letter *l) {
    if (!l->waiting) return l->dropped ? "dropped" : "handled";
    return hd_value_exists(l->failure) ? "failed" : "waiting";
}
