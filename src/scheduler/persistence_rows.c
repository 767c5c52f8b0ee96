/* persistence_rows.c -- rows and the claims that prove them, into a seal.
 *
 * A row goes out when its node is clean and what it wrote is in the store or in this very seal. Only a
 * row whose reads are others than those of the last one is written in full; the rest is three words,
 * made once: "it is as it was, and proved anew". The third is the end of the fingerprint: should another
 * code have replaced the row before this arrives, the store does not take our word for that one. */
#include "scheduler/persistence.h"

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

#define CELL_SIZE   2048
#define MARK_LENGTH 8 /* of a fingerprint's characters: codes of one node are few */

/* ---- may it be kept now? */

/* All that it wrote has been sealed. */
static bool outputs_are_out(const scheduler *s, node_id id) {
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (doc_of(s, out & ~WRITER_ENVELOPE)->doc.flags & DOC_OVERLAY) return false;
    return true;
}

/* What it read is in the store, or on its way there. A read without a claim must be there. */
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
    return !(k->flags & (KEPT_FAILED | KEPT_CREATES)) && k->wrote_in <= s->r->settled;
}

static bool can_keep(const scheduler *s, node_id id) {
    return is_steady(s, id) && outputs_are_out(s, id) && reads_are_out(s, node_of(s, id));
}

/* Open outputs will be sealed with it. */
bool rows_can_keep(const scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    return (k->flags & KEPT_DUE) && kept_has_name(k) && can_keep(s, id);
}

/* ---- one row */

static size_t print_cell(const scheduler *s, uint32_t key, const char *mark, char out[CELL_SIZE]) {
    static const char *const suffix[] = { "", "", "@user", "@session" };
    const places *ps = &s->r->places;
    place_id at = key & KEY_PLACE;
    const place *doc = doc_of(s, at);
    const doc_home *h = &ps->homes.items[doc->doc.home];
    const struct key *name = doc->doc.id;
    /* A '!' at the end stands for metadata, a mark in front for a shape or an output: names that look
     * so cannot be told from them. */
    if (!h->meta && key_bytes(name)[name->length - 1] == '!') return CELL_SIZE;
    if (!*mark && strchr("~=", *key_bytes(h->space))) return CELL_SIZE;
    int n = snprintf(out, CELL_SIZE, "%s%s%s/%s%s", mark, key_bytes(h->space), suffix[h->scope],
                     key_bytes(name), h->meta ? "!" : "");
    size_t length = n < 0 ? CELL_SIZE : (size_t)n;
    hd_path path = place_path(ps, at);
    if (path == HD_PATH_ROOT || length + 1 >= CELL_SIZE) return length;
    out[length++] = '#';
    return length + hd_path_print(s->r->heap, path, out + length, CELL_SIZE - length);
}

/* As of when the document is what the node has seen: as of the last poll, since the node is clean, and
 * what a verdict has told since then. The document's own seq would do, as long as the log goes back to it. */
static hd_status seen_at(const scheduler *s, const place *doc, uint64_t *seq) {
    authority *a = s->r->authority;
    hd_status status = a->ops->basis->seq_of(a, s->r->places.homes.items[doc->doc.home].space, seq);
    if (!status && (doc->doc.flags & DOC_KNOWN) && doc->doc.seq > *seq) *seq = doc->doc.seq;
    return status;
}

static hd_status push_cell(scheduler *s, build *b, uint32_t key, const char *mark) {
    char text[CELL_SIZE];
    size_t length = print_cell(s, key, mark, text);
    if (length >= CELL_SIZE) return HD_LIMIT;
    hd_value v = text_string(s->r->heap, text, length);
    if (hd_value_status(v)) return hd_value_status(v);
    return build_push(b, v) ? HD_OK : HD_NOMEM;
}

/* "cell", or [cell, seq] for a read that the seal does not claim. */
static hd_status push_read(scheduler *s, build *b, uint32_t key) {
    hd_status status = push_cell(s, b, key, key & KEY_SHAPE ? "~" : "");
    if (status || !(key & KEY_NO_CLAIM)) return status;
    uint64_t seq;
    status = seen_at(s, doc_of(s, key & KEY_PLACE), &seq);
    if (status) return status;
    return build_push(b, int_make(s->r->heap, (int64_t)seq)) ? build_array(b, 2) : HD_NOMEM;
}

/* Of a node that mends them; behind its reads. */
static hd_status push_outputs(scheduler *s, build *b, node_id id, size_t *count) {
    hd_status status = HD_OK;
    if (!(kept_of(s, id)->flags & KEPT_MENDS)) return HD_OK;
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0 && !status; i++) {
        if (out & WRITER_ENVELOPE) continue; /* it may be of others as well */
        status = push_cell(s, b, out, "=");
        ++*count;
    }
    return status;
}

static hd_status push_key(scheduler *s, build *b, const char *text) {
    const struct key *k = key_intern_held(s->r->heap, text, strlen(text));
    return k && build_push_key(b, k) ? HD_OK : HD_NOMEM;
}

static hd_status push_number(scheduler *s, build *b, const char *key, uint32_t number) {
    hd_status status = push_key(s, b, key);
    if (status) return status;
    return build_push(b, int_make(s->r->heap, number)) ? HD_OK : HD_NOMEM;
}

static hd_status push_true(scheduler *s, build *b, const char *key) {
    hd_status status = push_key(s, b, key);
    if (status) return status;
    return build_push(b, hd_bool(true)) ? HD_OK : HD_NOMEM;
}

/* {"r": [...], "derived": true, "debounce": ms, "throttle": ms} */
static hd_status push_body(scheduler *s, build *b, node_id id) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    const cold *c = cold_of(s, n);
    size_t fields = 1, cells = n->read_count;
    hd_status status = push_key(s, b, "r");
    for (uint32_t i = 0; i < n->read_count && !status; i++) status = push_read(s, b, reads[i].key);
    if (!status) status = push_outputs(s, b, id, &cells);
    if (!status) status = build_array(b, cells);
    if (!status && (kept_of(s, id)->flags & KEPT_DERIVED)) {
        status = push_true(s, b, "derived");
        fields++;
    }
    if (!status && c && c->gate.debounce_ms) {
        status = push_number(s, b, "debounce", c->gate.debounce_ms);
        fields++;
    }
    if (!status && c && c->gate.throttle_ms) {
        status = push_number(s, b, "throttle", c->gate.throttle_ms);
        fields++;
    }
    return status ? status : build_object(b, fields, NULL);
}

static hd_status push_full(scheduler *s, build *b, node_id id) {
    const kept_node *k = kept_of(s, id);
    hd_value brief = rows_kept(s, id);
    if (value_is_absent(brief)) return HD_NOMEM;
    gone_take_back(s, brief);
    bool ok = build_push(b, value_ref(k->name)) && build_push(b, value_ref(array_get(brief, 1))) &&
              build_push(b, value_ref(k->print));
    hd_status status = ok ? push_body(s, b, id) : HD_NOMEM;
    return status ? status : build_array(b, 4);
}

/* ---- instances: one principal's rows never serve another */

static hd_scope narrower(hd_scope a, hd_scope b) { return a > b ? a : b; }

static hd_scope scope_of(const scheduler *s, node_id id) {
    const places *ps = &s->r->places;
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    hd_scope scope = HD_SCOPE_SPACE;
    for (uint32_t i = 0; i < n->read_count; i++)
        scope =
            narrower(scope, ps->homes.items[doc_of(s, reads[i].key & KEY_PLACE)->doc.home].scope);
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        scope = narrower(scope, ps->homes.items[doc_of(s, out & ~WRITER_ENVELOPE)->doc.home].scope);
    return scope;
}

/* Takes the references. */
static hd_status list_of(scheduler *s, const hd_value *items, uint32_t count, hd_value *out) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) status = hd_value_status(items[i]);
    for (uint32_t i = 0; i < count && status; i++)
        if (!value_is_failed(items[i])) value_unref(items[i]);
    hd_value made = status ? value_absent() : array_take(s->r->heap, items, count);
    if (!status) status = hd_value_status(made);
    *out = status ? value_absent() : made;
    return status;
}

hd_status rows_brief_of(scheduler *s, const char *name, const char *instance, hd_value *out) {
    hd_value items[] = { text_string(s->r->heap, name, strlen(name)),
                         text_string(s->r->heap, instance, strlen(instance)) };
    return list_of(s, items, 2, out);
}

/* "user:NAME" */
static hd_value instance_text(scheduler *s, hd_scope scope) {
    char text[CELL_SIZE];
    if (scope <= HD_SCOPE_SPACE) return text_string(s->r->heap, "", 0);
    const char *whose = scope == HD_SCOPE_USER ? "user" : "session";
    const struct key *who = scope == HD_SCOPE_USER ? s->rt->principal : s->rt->session;
    int n = snprintf(text, sizeof text, "%s:%s", whose, key_bytes(who));
    if (n < 0 || (size_t)n >= sizeof text) return value_failed(HD_LIMIT);
    return text_string(s->r->heap, text, (size_t)n);
}

static hd_value mark_of(scheduler *s, hd_value print) {
    size_t length;
    const char *text = text_of(print, &length);
    assert(length > MARK_LENGTH);
    return text_string(s->r->heap, text + length - MARK_LENGTH, MARK_LENGTH);
}

hd_status rows_brief(scheduler *s, hd_value name, hd_scope scope, hd_value print, hd_value *out) {
    bool marked = value_exists(print);
    hd_value items[] = { name, instance_text(s, scope),
                         marked ? mark_of(s, print) : value_absent() };
    return list_of(s, items, marked ? 3 : 2, out);
}

hd_value rows_kept(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    assert(kept_has_name(k));
    hd_scope scope = k->narrow ? (hd_scope)k->narrow : HD_SCOPE_SPACE;
    if (value_is_absent(k->brief) && rows_brief(s, value_ref(k->name), scope, k->print, &k->brief))
        k->brief = value_absent();
    return k->brief;
}

/* A row that belongs to somebody else now leaves none behind. */
static hd_status right_instance(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    hd_scope scope = scope_of(s, id);
    hd_value brief;
    if (k->narrow == scope || (!k->narrow && scope == HD_SCOPE_SPACE)) return HD_OK;
    hd_status status = rows_brief(s, value_ref(k->name), scope, k->print, &brief);
    if (status) return status;
    if (k->flags & KEPT_ROW) gone_add_node(s, id);
    value_unref(k->brief);
    k->brief = brief;
    k->narrow = (uint8_t)scope;
    return HD_OK;
}

/* ---- a seal */

/* What a row says beside its reads. */
static void note_rest(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    uint8_t derived = origin_reads_others(s, id) ? KEPT_DERIVED : 0;
    if ((k->flags & KEPT_DERIVED) != derived)
        k->flags = (uint8_t)((k->flags & ~KEPT_DERIVED) | derived | KEPT_CHANGED);
    const cold *c = cold_of(s, node_of(s, id));
    uint32_t debounce = c ? c->gate.debounce_ms : 0, throttle = c ? c->gate.throttle_ms : 0;
    if (k->debounce_ms != debounce || k->throttle_ms != throttle) k->flags |= KEPT_CHANGED;
    k->debounce_ms = debounce;
    k->throttle_ms = throttle;
}

bool rows_has_unclaimed(const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (reads[i].key & KEY_NO_CLAIM) return true;
    return false;
}

/* The store has the row as it is: in full it was accepted. */
bool rows_is_known(const scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    return (k->flags & KEPT_ROW) && !(k->flags & KEPT_CHANGED) && k->full_in <= s->r->settled &&
           !rows_has_unclaimed(node_of(s, id));
}

/* Something that it read without a claim is not in the store yet, and may never be. */
static bool is_ahead(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        const place *doc = doc_of(s, reads[i].key & KEY_PLACE);
        bool open = doc->doc.over || (doc->doc.flags & DOC_OVERLAY);
        if ((reads[i].key & KEY_NO_CLAIM) && open) return true;
    }
    return false;
}

/* {"gone": [row]} */
static hd_status make_gone(scheduler *s, hd_value brief, hd_value *out) {
    hd_heap *heap = s->r->heap;
    hd_value rows = array_append(heap, hd_array(), brief);
    struct key *k = key_intern(heap, "gone", 4);
    hd_value made = k ? object_set(heap, hd_object(), k, rows) : value_failed(HD_NOMEM);
    key_unref(k);
    if (!value_is_failed(rows)) value_unref(rows);
    if (value_is_failed(made)) return HD_NOMEM;
    *out = made;
    return HD_OK;
}

/* What a node makes of such a thing is stored, whatever becomes of it, because nothing is claimed. So its
 * row goes with the same commit: should what it read be again what it was, the row would hold, and the
 * output beside it would be another. */
hd_status rows_outrun(scheduler *s, node_id id, hd_value *extra) {
    *extra = value_absent();
    if (!s->persistence || !(kept_of(s, id)->flags & KEPT_ROW) || !is_ahead(s, node_of(s, id)))
        return HD_OK;
    hd_value brief = rows_kept(s, id);
    hd_status status = value_exists(brief) ? make_gone(s, brief, extra) : HD_NOMEM;
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
        k->flags &= (uint8_t)~KEPT_ROW;
    }
}

static hd_status claim_unread(scheduler *s, uint32_t key, commit *c) {
    uint64_t seq;
    hd_status status = seen_at(s, doc_of(s, key & KEY_PLACE), &seq);
    if (!status) status = tx_claim(s->r, c, key);
    if (!status) vec_last(&c->claims).basis = seq;
    return status;
}

/* Outputs of this very commit are proved by it. */
static hd_status add_claim(scheduler *s, uint32_t key, commit *c) {
    const layer *top = replica_top(s->r, place_at(&s->r->places, key & KEY_PLACE)->root);
    if ((key & KEY_NO_CLAIM) || (top && top->c == c)) return HD_OK;
    bool known = doc_of(s, key & KEY_PLACE)->doc.flags & DOC_KNOWN;
    return known ? tx_claim(s->r, c, key) : claim_unread(s, key, c);
}

static hd_status add_claims(scheduler *s, node_id id, commit *c) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < n->read_count && !status; i++) status = add_claim(s, reads[i].key, c);
    if (!(kept_of(s, id)->flags & KEPT_MENDS)) return status;
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0 && !status; i++)
        if (!(out & WRITER_ENVELOPE)) status = add_claim(s, out, c);
    return status;
}

static hd_status push_row(scheduler *s, build *b, node_id id, commit *c) {
    kept_node *k = kept_of(s, id);
    hd_status status = right_instance(s, id);
    if (!status) status = add_claims(s, id, c);
    if (status) return status;
    note_rest(s, id);
    if (rows_is_known(s, id)) {
        hd_value brief = rows_kept(s, id);
        return value_exists(brief) && build_push(b, value_ref(brief)) ? HD_OK : HD_NOMEM;
    }
    k->flags |= KEPT_CHANGED;
    return push_full(s, b, id);
}

static hd_status push_nodes(scheduler *s, build *b, commit *c, uint32_t *count) {
    const persistence *p = s->persistence;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < p->due.count && !status; i++) {
        kept_node *k = kept_of(s, p->due.items[i]);
        if ((k->flags & KEPT_TAKEN) || !rows_can_keep(s, p->due.items[i])) continue;
        size_t before = b->count;
        status = push_row(s, b, p->due.items[i], c);
        if (status == HD_LIMIT) { /* it reads what cannot be written down: nothing is kept of it */
            build_drop(b, before);
            persistence_creates(s, p->due.items[i]);
            status = HD_OK;
            continue;
        }
        k->flags |= KEPT_TAKEN;
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

/* {"nodes": [...], "gone": [...]}; most seals have nobody who is gone. */
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
    k->flags &= (uint8_t)~KEPT_CHANGED;
    k->flags |= KEPT_ROW;
}

/* Whether the node waits for a later seal. What only another run can help waits for that. */
static bool stays_due(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    if (!is_steady(s, id)) return k->wrote_in > s->r->settled;
    if (!reads_volatile(s, node_of(s, id))) return true;
    if (k->flags & KEPT_ROW) gone_add_node(s, id);
    k->flags &= (uint8_t)~KEPT_ROW;
    return false;
}

/* What was taken is on its way. */
static void conclude(scheduler *s, bool sent) {
    persistence *p = s->persistence;
    uint32_t left = 0;
    if (sent) gone_clear(s);
    for (uint32_t i = 0; i < p->due.count; i++) {
        node_id id = p->due.items[i];
        kept_node *k = kept_of(s, id);
        if (!(k->flags & KEPT_DUE)) continue;
        bool taken = sent && (k->flags & KEPT_TAKEN);
        k->flags &= (uint8_t)~KEPT_TAKEN;
        if (taken) note_sent(s, k);
        if (!taken && stays_due(s, id)) {
            p->due.items[left++] = id;
            continue;
        }
        k->flags &= (uint8_t)~KEPT_DUE;
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
    conclude(s, sent);
    if (!sent) value_unref(extra);
    else c->extra = extra, c->extra_is_ours = true;
    return status;
}

/* A seal was refused: what it carried is not kept. */
void rows_refused(void *ctx, const commit *c) {
    scheduler *s = ctx;
    persistence *p = s->persistence;
    hd_value gone = object_get_bytes(c->extra, "gone", 4);
    if (!value_exists(c->extra)) return;
    p->refused_at = s->r->rev;
    for (uint32_t id = 1; id < p->nodes.count; id++) {
        kept_node *k = &p->nodes.items[id];
        if (!kept_has_name(k) || k->sent_in != c->local_seq) continue;
        k->flags |= KEPT_CHANGED;
        persistence_due(s, id);
    }
    for (size_t i = 0; i < hd_value_count(gone); i++) gone_add(s, value_ref(array_get(gone, i)));
}
