/* rows.c -- rows and the claims that go with them, into a seal.
 *
 * A row is written when its node is clean and what it wrote is in the store or in the same seal. If the reads
 * are those of the last row, the hashes alone are written; if the hashes are the same too, nothing is. The
 * mark says which row the hashes belong to: if another runtime has replaced that row, they delete it
 * (store/basis.h).
 *
 * Hashes are made here, when a seal is made, for slots whose documents have changed since the last row. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "store/basis.h"
#include "store/overlay.h"
#include "value/array.h"
#include "value/build.h"
#include "value/key.h"
#include "value/object.h"
#include "value/text.h"
#include <stdio.h>
#include <string.h>

enum { SCRATCH = KEPT_TAKEN | KEPT_SAME };

/* ---- may it be kept now? */

/* Whether all that the node wrote has been sealed. */
static bool outputs_are_out(const scheduler *s, node_id id) {
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (doc_of(s, out & ~WRITER_ENVELOPE)->doc.flags & DOC_OVERLAY) return false;
    return true;
}

/* Whether all that the node read is in the store or in a commit that was sent; what it read without a claim
 * must be in the store. */
static bool reads_are_out(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        const place *doc = doc_of(s, reads[i].key & KEY_PLACE);
        if (doc->doc.flags & (DOC_OVERLAY | DOC_VOLATILE)) return false;
        if ((reads[i].key & KEY_NO_CLAIM) && doc->doc.over) return false;
    }
    return true;
}

static bool is_steady(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const kept_node *k = kept_of(s, id);
    if (node_is_invalid(&s->graph, n) || (n->flags & (NODE_RUNNING | NODE_NEVER_RAN))) return false;
    if (k->flags & (KEPT_CREATES | KEPT_UNSURE | KEPT_REPLACED)) return false;
    return k->wrote_in <= s->r->settled;
}

/* If outputs are still open, the row waits for the seal that takes them. */
bool rows_can_keep(const scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    return (k->flags & KEPT_DUE) && kept_has_name(k) && is_steady(s, id) &&
           outputs_are_out(s, id) && reads_are_out(s, node_of(s, id));
}

/* ---- hashes */

/* The slots in which a read may find something else than when the hashes were made. */
static uint32_t changed_slots(const scheduler *s, const kept_node *k, const uint32_t *keys,
                              uint32_t count) {
    const places *ps = &s->r->places;
    slots of = { 0 };
    uint32_t mask = 0;
    if ((k->flags & KEPT_CHANGED) || value_is_absent(k->hashes)) return UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const place *at = place_at(ps, keys[i] & KEY_PLACE);
        uint32_t slot = slots_take(&of, at->root);
        if (at->rev > k->rev) mask |= UINT32_C(1) << slot;
    }
    return mask;
}

/* Brings the node's hashes up to date: *news if they have changed. */
static hd_status renew_hashes(scheduler *s, node_id id, bool *news) {
    kept_node *k = kept_of(s, id);
    uint64_t now[SLOTS];
    char text[SLOTS * HASH_TEXT];
    uint32_t count, mask;
    size_t length = 0;
    const uint32_t *keys = match_keys(s, id, &count);
    if (!keys) return HD_NOMEM;
    mask = changed_slots(s, k, keys, count);
    *news = mask == UINT32_MAX;
    if (!mask) return HD_OK;
    const char *before = value_exists(k->hashes) ? text_of(k->hashes, &length) : "";
    uint32_t n = match_hash(s, keys, count, mask, now);
    assert(mask == UINT32_MAX || length == (size_t)n * HASH_TEXT);
    for (uint32_t i = 0; i < n; i++) {
        char *at = text + (size_t)i * HASH_TEXT;
        if (mask >> i & 1) basis_hash_print(now[i], at);
        else memcpy(at, before + (size_t)i * HASH_TEXT, HASH_TEXT);
    }
    bool same = length == (size_t)n * HASH_TEXT && !memcmp(before, text, length);
    if (same && value_exists(k->hashes)) return HD_OK;
    hd_value made = text_string(s->r->heap, text, (size_t)n * HASH_TEXT);
    if (value_is_failed(made)) return HD_NOMEM;
    value_unref(k->hashes);
    k->hashes = made;
    *news = true;
    return HD_OK;
}

/* ---- a whole row */

static hd_status push_key(scheduler *s, build *b, const char *text) {
    const struct key *k = key_intern_held(s->r->heap, text, strlen(text));
    return k && build_push_key(b, k) ? HD_OK : HD_NOMEM;
}

static hd_status push_field(scheduler *s, build *b, const char *key, hd_value v, size_t *fields) {
    hd_status status = push_key(s, b, key);
    ++*fields;
    if (status) return status;
    return build_push(b, v) ? HD_OK : HD_NOMEM;
}

static hd_status push_text(scheduler *s, build *b, const char *text) {
    hd_value v = text_string(s->r->heap, text, strlen(text));
    if (value_is_failed(v)) return HD_NOMEM;
    return build_push(b, v) ? HD_OK : HD_NOMEM;
}

/* As of when the document is what the node has seen: as of the last poll, since the node is clean, and
 * what a verdict has told since then. */
static hd_status seen_at(const scheduler *s, const place *doc, uint64_t *seq) {
    authority *a = s->r->authority;
    hd_status status = a->ops->basis->seq_of(a, s->r->places.homes.items[doc->doc.home].space, seq);
    if (!status && (doc->doc.flags & DOC_KNOWN) && doc->doc.seq > *seq) *seq = doc->doc.seq;
    return status;
}

/* {"space": seq}, of reads that the seal does not claim: the row does not hold beyond these. Absent:
 * there are none. */
static hd_status seen_of(scheduler *s, node_id id, hd_value *out) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    hd_heap *heap = s->r->heap;
    *out = value_absent();
    for (uint32_t i = 0; i < n->read_count; i++) {
        const place *doc = doc_of(s, reads[i].key & KEY_PLACE);
        uint64_t seq;
        if (!(reads[i].key & KEY_NO_CLAIM)) continue;
        hd_status status = seen_at(s, doc, &seq);
        if (status) return status;
        hd_value number = int_make(heap, (int64_t)seq), before = *out;
        *out = object_set(heap, value_exists(before) ? before : hd_object(),
                          s->r->places.homes.items[doc->doc.home].space, number);
        value_unref(number);
        value_unref(before);
        if (value_is_failed(*out)) return HD_NOMEM;
    }
    return HD_OK;
}

/* The list of reads; the mark is made of their text. */
static hd_status push_reads(scheduler *s, build *b, node_id id, uint64_t *mark) {
    uint32_t count, reads = node_of(s, id)->read_count;
    const uint32_t *keys = match_keys(s, id, &count);
    hd_status status = keys ? HD_OK : HD_NOMEM;
    for (uint32_t i = 0; i < count && !status; i++) {
        size_t length;
        hd_value cell = reads_print(s, keys[i], i >= reads);
        if (value_is_failed(cell)) return hd_value_status(cell);
        const char *text = text_of(cell, &length);
        *mark = hash_bytes(text, length, *mark);
        status = build_push(b, cell) ? HD_OK : HD_NOMEM;
    }
    return status ? status : build_array(b, count);
}

/* {"r": [...], "derived": true, "failed": true, "seen": {...}} */
static hd_status push_body(scheduler *s, build *b, node_id id, uint64_t *mark) {
    const kept_node *k = kept_of(s, id);
    size_t fields = 1;
    hd_value seen;
    hd_status status = push_key(s, b, "r");
    if (!status) status = push_reads(s, b, id, mark);
    if (!status && (k->flags & KEPT_DERIVED))
        status = push_field(s, b, "derived", hd_bool(true), &fields);
    if (!status && (k->flags & KEPT_FAILED))
        status = push_field(s, b, "failed", hd_bool(true), &fields);
    if (!status) status = seen_of(s, id, &seen);
    if (!status && value_exists(seen)) status = push_field(s, b, "seen", seen, &fields);
    return status ? status : build_object(b, fields, NULL);
}

/* Eleven characters of the code's and the reads' hash. */
static hd_status set_mark(scheduler *s, kept_node *k, uint64_t hash) {
    char text[HASH_TEXT];
    basis_hash_print(hash, text);
    hd_value mark = text_string(s->r->heap, text, sizeof text);
    if (value_is_failed(mark)) return HD_NOMEM;
    value_unref(k->mark);
    k->mark = mark;
    return HD_OK;
}

static bool push_head(scheduler *s, build *b, const kept_node *k) {
    hd_value instance = rows_instance(s, kept_scope(k));
    return value_exists(instance) && build_push(b, value_ref(k->name)) &&
           build_push(b, value_ref(instance)) && build_push(b, value_ref(k->mark)) &&
           build_push(b, value_ref(k->hashes));
}

/* The body comes last and is made first: the mark is of what it says. */
static hd_status push_whole(scheduler *s, build *b, node_id id) {
    kept_node *k = kept_of(s, id);
    size_t length;
    const char *print = text_of(k->print, &length);
    uint64_t mark = hash_bytes(print, length, k->flags & KEPT_FAILED);
    hd_value body = value_absent();
    build inner;
    build_init(&inner, s->r->heap);
    hd_status status = push_body(s, &inner, id, &mark);
    if (!status) body = build_take(&inner);
    build_fini(&inner);
    if (!status) status = set_mark(s, k, mark);
    if (!status && !(push_head(s, b, k) && build_push(b, value_ref(k->print)))) status = HD_NOMEM;
    if (status) value_unref(body);
    else status = build_push(b, body) ? build_array(b, ROW_ITEMS) : HD_NOMEM;
    return status;
}

/* ---- instances: rows of user and session scope are kept apart by principal and session */

hd_value rows_instance(scheduler *s, hd_scope scope) {
    char text[NAME_SIZE];
    hd_value *known = &s->persistence->instances[scope];
    if (value_exists(*known)) return *known;
    const char *prefix = scope == HD_SCOPE_USER ? "user:" : "session:";
    const struct key *id = scope == HD_SCOPE_USER ? s->rt->principal : s->rt->session;
    int n = 0;
    if (scope > HD_SCOPE_SPACE) n = snprintf(text, sizeof text, "%s%s", prefix, key_bytes(id));
    if (n < 0 || (size_t)n >= sizeof text) return value_absent();
    hd_value made = text_string(s->r->heap, text, (size_t)n);
    if (!value_is_failed(made)) *known = made;
    return *known;
}

static hd_scope scope_of(const scheduler *s, node_id id) {
    const places *ps = &s->r->places;
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    hd_scope scope = HD_SCOPE_SPACE, one;
    for (uint32_t i = 0; i < n->read_count; i++) {
        one = ps->homes.items[doc_of(s, reads[i].key & KEY_PLACE)->doc.home].scope;
        if (one > scope) scope = one;
    }
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++) {
        one = ps->homes.items[doc_of(s, out & ~WRITER_ENVELOPE)->doc.home].scope;
        if (one > scope) scope = one;
    }
    return scope;
}

/* Finds out what the row says beside its reads, and its instance. If the instance has changed, the row under
 * the former one is deleted. */
static void note_rest(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    uint16_t derived = origin_reads_others(s, id) ? KEPT_DERIVED : 0;
    if ((k->flags & KEPT_DERIVED) != derived)
        k->flags = (uint16_t)((k->flags & ~KEPT_DERIVED) | derived | KEPT_CHANGED);
    hd_scope scope = scope_of(s, id);
    if (kept_scope(k) == scope) return;
    if (k->flags & KEPT_ROW) gone_add_node(s, id);
    k->narrow = (uint8_t)scope;
    k->flags |= KEPT_CHANGED;
}

/* ---- rows that must go because their outputs go without them */

static bool has_unclaimed(const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (reads[i].key & KEY_NO_CLAIM) return true;
    return false;
}

/* Whether the node has read, without a claim, something that is not in the store yet and may be refused. */
static bool is_ahead(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        const place *doc = doc_of(s, reads[i].key & KEY_PLACE);
        bool open = doc->doc.over || (doc->doc.flags & DOC_OVERLAY);
        if ((reads[i].key & KEY_NO_CLAIM) && open) return true;
    }
    return false;
}

static hd_value make_brief(scheduler *s, const kept_node *k) {
    hd_value instance = rows_instance(s, kept_scope(k));
    if (value_is_absent(instance)) return value_failed(HD_NOMEM);
    hd_value items[2] = { value_ref(k->name), value_ref(instance) };
    return array_take(s->r->heap, items, 2);
}

/* {"gone": [row]} */
static hd_status make_gone(scheduler *s, const kept_node *k, hd_value *out) {
    build b;
    build_init(&b, s->r->heap);
    hd_value brief = make_brief(s, k);
    hd_status status = value_is_failed(brief) ? HD_NOMEM : push_key(s, &b, "gone");
    if (!status && !build_push(&b, brief)) status = HD_NOMEM;
    if (!status) status = build_array(&b, 1);
    if (!status) status = build_object(&b, 1, NULL);
    if (!status) *out = build_take(&b);
    build_fini(&b);
    return status;
}

/* The output of such a node is stored even if what it read is refused, because nothing is claimed. So its row
 * is deleted in the same commit: after a refusal, the node's inputs would again be what the row says, but the
 * output beside the row would be made of others. */
hd_status rows_outrun(scheduler *s, node_id id, hd_value *extra) {
    *extra = value_absent();
    if (!s->persistence || !(kept_of(s, id)->flags & KEPT_ROW) || !is_ahead(s, node_of(s, id)))
        return HD_OK;
    hd_status status = make_gone(s, kept_of(s, id), extra);
    if (!status) kept_of(s, id)->flags |= KEPT_CHANGED;
    return status;
}

/* The same for outputs that are sealed. */
static void drop_outrun(scheduler *s) {
    const persistence *p = s->persistence;
    for (uint32_t i = 0; i < p->due.count; i++) {
        kept_node *k = kept_of(s, p->due.items[i]);
        if (!(k->flags & KEPT_DUE) || !(k->flags & KEPT_ROW)) continue;
        if (!is_ahead(s, node_of(s, p->due.items[i]))) continue;
        gone_add_node(s, p->due.items[i]);
        k->flags &= (uint16_t)~KEPT_ROW;
    }
}

/* ---- claims */

static hd_status claim_unread(scheduler *s, uint32_t key, commit *c) {
    uint64_t seq;
    hd_status status = seen_at(s, doc_of(s, key & KEY_PLACE), &seq);
    if (!status) status = tx_claim(s->r, c, key);
    if (!status) vec_last(&c->claims).basis = seq;
    return status;
}

/* Outputs of this very commit need no claim. */
static hd_status add_claim(scheduler *s, uint32_t key, commit *c) {
    const layer *top = replica_top(s->r, place_at(&s->r->places, key & KEY_PLACE)->root);
    if ((key & KEY_NO_CLAIM) || (top && top->c == c)) return HD_OK;
    bool known = doc_of(s, key & KEY_PLACE)->doc.flags & DOC_KNOWN;
    return known ? tx_claim(s->r, c, key) : claim_unread(s, key, c);
}

/* A whole row replaces whatever row the store has. Where another version of the node has written the
 * outputs meanwhile, the row must not: it would stand beside outputs that are not its own. Under an
 * envelope other nodes may write as well. */
static hd_status claim_outputs(scheduler *s, node_id id, commit *c) {
    hd_status status = HD_OK;
    for (uint32_t i = 0, out; !status && (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (!(out & WRITER_ENVELOPE)) status = add_claim(s, out, c);
    return status;
}

static hd_status add_claims(scheduler *s, node_id id, commit *c) {
    uint32_t count;
    const uint32_t *keys = match_keys(s, id, &count);
    uint16_t flags = kept_of(s, id)->flags;
    hd_status status = keys ? HD_OK : HD_NOMEM;
    for (uint32_t i = 0; i < count && !status; i++) status = add_claim(s, keys[i], c);
    bool outputs_too = (flags & KEPT_CHANGED) && !(flags & KEPT_MENDS); /* those are keys */
    return status || !outputs_too ? status : claim_outputs(s, id, c);
}

/* ---- a seal */

/* Whether the store has the whole row: it was sent and accepted. */
static bool is_known(const scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    return (k->flags & KEPT_ROW) && !(k->flags & KEPT_CHANGED) && k->full_in <= s->r->settled &&
           !has_unclaimed(node_of(s, id));
}

/* *pushed: there was something to write. */
static hd_status push_row(scheduler *s, build *b, node_id id, commit *c, bool *pushed) {
    kept_node *k = kept_of(s, id);
    bool news = false;
    note_rest(s, id);
    if (!is_known(s, id)) k->flags |= KEPT_CHANGED;
    hd_status status = HD_OK;
    if (k->flags & (KEPT_RAN | KEPT_CHANGED)) status = renew_hashes(s, id, &news);
    *pushed = news || (k->flags & (KEPT_CHANGED | KEPT_AGED));
    if (status || !*pushed) return status;
    status = add_claims(s, id, c);
    if (status) return status;
    gone_take_back(s, k->name, rows_instance(s, kept_scope(k)));
    if (k->flags & KEPT_CHANGED) return push_whole(s, b, id);
    return push_head(s, b, k) ? build_array(b, ROW_PRINT) : HD_NOMEM;
}

static hd_status push_due(scheduler *s, build *b, commit *c, uint32_t *count) {
    const persistence *p = s->persistence;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < p->due.count && !status; i++) {
        node_id id = p->due.items[i];
        if ((kept_of(s, id)->flags & SCRATCH) || !rows_can_keep(s, id)) continue;
        size_t before = b->count;
        bool pushed;
        status = push_row(s, b, id, c, &pushed);
        if (status == HD_LIMIT) { /* a read that has no text: the node has no row from now on */
            build_drop(b, before);
            persistence_creates(s, id);
            status = HD_OK;
            continue;
        }
        kept_of(s, id)->flags |= pushed ? KEPT_TAKEN : KEPT_SAME;
        *count += pushed;
    }
    return status;
}

/* [name, "gates", "-", "", "-", {"r": [], "debounce": ms, "throttle": ms}] */
static hd_status push_gates(scheduler *s, build *b, node_id id) {
    const cold *c = cold_of(s, node_of(s, id));
    size_t fields = 0;
    bool ok = build_push(b, value_ref(kept_of(s, id)->name)) && !push_text(s, b, BASIS_GATES) &&
              !push_text(s, b, "-") && !push_text(s, b, "") && !push_text(s, b, "-");
    hd_status status = ok ? push_field(s, b, "r", hd_array(), &fields) : HD_NOMEM;
    if (!status)
        status = push_field(s, b, "debounce", int_make(s->r->heap, c ? c->gate.debounce_ms : 0),
                            &fields);
    if (!status)
        status = push_field(s, b, "throttle", int_make(s->r->heap, c ? c->gate.throttle_ms : 0),
                            &fields);
    if (!status) status = build_object(b, fields, NULL);
    return status ? status : build_array(b, ROW_ITEMS);
}

static hd_status push_nodes(scheduler *s, build *b, commit *c, uint32_t *count) {
    const persistence *p = s->persistence;
    hd_status status = push_due(s, b, c, count);
    for (uint32_t i = 0; i < p->gated.count && !status; i++) {
        if (!(kept_of(s, p->gated.items[i])->flags & KEPT_GATES)) continue; /* it has left */
        status = push_gates(s, b, p->gated.items[i]);
        ++*count;
    }
    return status ? status : build_array(b, *count);
}

static hd_status push_gone(scheduler *s, build *b) {
    const persistence *p = s->persistence;
    for (uint32_t i = 0; i < p->gone.count; i++)
        if (!build_push(b, value_ref(p->gone.items[i]))) return HD_NOMEM;
    return build_array(b, p->gone.count);
}

/* {"nodes": [...], "gone": [...]}; most seals have no deletions. */
static hd_status make_extra(scheduler *s, commit *c, uint32_t *rows, hd_value *out) {
    build b;
    build_init(&b, s->r->heap);
    hd_status status = push_key(s, &b, "nodes");
    if (!status) status = push_nodes(s, &b, c, rows);
    bool gone = s->persistence->gone.count; /* rows may have moved to another instance */
    if (!status && gone) status = push_key(s, &b, "gone");
    if (!status && gone) status = push_gone(s, &b);
    if (!status) status = build_object(&b, gone ? 2 : 1, NULL);
    if (!status) *out = build_take(&b);
    build_fini(&b);
    return status;
}

static bool reads_volatile(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (doc_of(s, reads[i].key & KEY_PLACE)->doc.flags & DOC_VOLATILE) return true;
    return false;
}

static void note_sent(scheduler *s, kept_node *k) {
    if (k->flags & KEPT_CHANGED) k->full_in = s->r->next_local;
    k->sent_in = s->r->next_local;
    k->rev = s->r->rev;
    k->flags &= (uint16_t) ~(KEPT_CHANGED | KEPT_RAN | KEPT_AGED);
    k->flags |= KEPT_ROW;
}

/* Whether the node stays due, for a later seal. If its row can be written after another run at the earliest,
 * that run makes it due again. */
static bool stays_due(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    if (!is_steady(s, id)) return k->wrote_in > s->r->settled;
    if (!reads_volatile(s, node_of(s, id))) return true;
    if (k->flags & KEPT_ROW) gone_add_node(s, id);
    k->flags &= (uint16_t)~KEPT_ROW;
    return false;
}

/* Updates the nodes that were due. `made`: all rows that could be written are in the seal; a node that has
 * left since its gates were set has none, and is not asked for again. */
static void conclude(scheduler *s, bool made) {
    persistence *p = s->persistence;
    uint32_t left = 0;
    if (made) {
        gone_clear(s);
        vec_clear(&p->gated);
    }
    for (uint32_t i = 0; i < p->due.count; i++) {
        node_id id = p->due.items[i];
        kept_node *k = kept_of(s, id);
        if (!(k->flags & KEPT_DUE)) continue;
        uint16_t taken = made ? k->flags & SCRATCH : 0;
        k->flags &= (uint16_t)~SCRATCH;
        if (taken & KEPT_TAKEN) note_sent(s, k);
        if (taken & KEPT_SAME) k->flags &= (uint16_t)~KEPT_RAN;
        if (!taken && stays_due(s, id)) {
            p->due.items[left++] = id;
            continue;
        }
        k->flags &= (uint16_t)~KEPT_DUE;
        if (!(k->flags & KEPT_CREATES)) node_of(s, id)->flags |= NODE_NOTED;
    }
    p->due.count = left;
    persistence_count_due(s);
}

hd_status rows_keep(void *ctx, commit *c) {
    scheduler *s = ctx;
    uint32_t rows = 0;
    if (!s->r->due) return HD_OK;
    drop_outrun(s);
    hd_value extra = value_absent();
    hd_status status = make_extra(s, c, &rows, &extra);
    bool sent = !status && (rows || s->persistence->gone.count);
    conclude(s, !status);
    if (!sent) value_unref(extra);
    else c->extra = extra, c->extra_is_ours = true;
    return status;
}

static void send_again(scheduler *s, hd_value item) {
    size_t length;
    const char *name = basis_item_text(item, ROW_NAME, &length);
    node_id id = persistence_find(s, name, length);
    if (!id) return;
    if (!strcmp(basis_item_text(item, ROW_INSTANCE, NULL), BASIS_GATES)) persistence_gated(s, id);
}

/* A seal was refused: what it carried is not kept. */
void rows_refused(void *ctx, const commit *c) {
    scheduler *s = ctx;
    persistence *p = s->persistence;
    if (!value_exists(c->extra)) return;
    basis_extra x = basis_extra_of(c->extra);
    p->refused_at = s->r->rev;
    for (uint32_t id = 1; id < p->nodes.count; id++) {
        kept_node *k = &p->nodes.items[id];
        if (!kept_has_name(k) || k->sent_in != c->local_seq) continue;
        k->flags |= KEPT_CHANGED | KEPT_RAN;
        persistence_due(s, id);
    }
    for (hd_iter it = hd_iter_of(x.nodes); hd_iter_next(&it);) send_again(s, it.value);
    for (hd_iter it = hd_iter_of(x.gone); hd_iter_next(&it);)
        gone_add(s, basis_item_text(it.value, 0, NULL), basis_item_text(it.value, 1, NULL));
}

/* ---- rows that have aged */

static bool has_aged(const scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    if (!(k->flags & KEPT_ROW) || (k->flags & (KEPT_DUE | KEPT_CREATES))) return false;
    if (k->flags & KEPT_AGED) return true;
    for (uint32_t i = 0; i < n->read_count; i++)
        if (doc_of(s, reads[i].key & KEY_PLACE)->rev > k->rev) return true;
    return false;
}

void rows_renew(scheduler *s, uint32_t piece) {
    const persistence *p = s->persistence;
    for (node_id id = 1; id < p->nodes.count; id++) {
        const kept_node *k = kept_of(s, id);
        if (!kept_has_name(k) || (piece != UINT32_MAX && k->piece != piece)) continue;
        if (node_of(s, id)->flags & NODE_REMOVED || !has_aged(s, id)) continue;
        kept_of(s, id)->flags |= KEPT_AGED;
        persistence_due(s, id);
    }
}
