/* rows.c -- rows and the claims that go with them, into a seal.
 *
 * A row is written when its node is clean and what it wrote is in the store, or in the same seal. The claims
 * say that its reads and outputs are, when the row is admitted, what its hashes were made of. If the hashes
 * are those of the last row, nothing is written.
 *
 * Hashes are made here, when a seal is made, for slots in which a place has changed since the last row.
 *
 * Some rows go *alone*, in a seal without outputs, which is made when the runtime is quiet: those with reads
 * that the run did not claim, so that a change of them refuses the row and not the outputs; and long ones,
 * since the log would grow with each of their runs. */
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

enum {
    SCRATCH = KEPT_TAKEN | KEPT_SAME,
    LONG_ROW = 256 /* reads, from which on a row goes alone */
};

/* ---- may it be kept now? */

/* Whether the document's value is at hand, or the last row has its hash already. */
static bool can_hash(const scheduler *s, const kept_node *k, place_id at) {
    bool hashed = value_exists(k->hashes) && place_at(&s->r->places, at)->rev <= k->rev;
    return hashed || (doc_of(s, at)->doc.flags & DOC_KNOWN);
}

/* Whether all that the node wrote has been sealed. */
static bool outputs_are_out(const scheduler *s, node_id id) {
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++) {
        place_id at = out & ~WRITER_ENVELOPE;
        if (doc_of(s, at)->doc.flags & DOC_OVERLAY) return false;
        if (!(out & WRITER_ENVELOPE) && !can_hash(s, kept_of(s, id), at)) return false;
    }
    return true;
}

/* Whether all that the node read is in the store, or in a commit that was sent. */
static bool reads_are_out(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        place_id at = reads[i].key & KEY_PLACE;
        if (doc_of(s, at)->doc.flags & DOC_OVERLAY) return false;
        if (!can_hash(s, kept_of(s, id), at)) return false;
    }
    return true;
}

/* Whether another writer, perhaps another version of the node, has changed an output since the node's last
 * run. A row of the node would be about outputs that are not its own. */
static bool is_overwritten(const scheduler *s, node_id id) {
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (place_at(&s->r->places, out & ~WRITER_ENVELOPE)->rev > node_of(s, id)->ran_rev)
            return true;
    return false;
}

static bool reads_volatile(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (doc_of(s, reads[i].key & KEY_PLACE)->doc.flags & DOC_VOLATILE) return true;
    return false;
}

/* Whether the node's last run stands. If not, the node is due again after its next run. */
static bool is_steady(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    if (node_is_invalid(&s->graph, n) || (n->flags & (NODE_RUNNING | NODE_NEVER_RAN))) return false;
    if (kept_of(s, id)->flags & KEPT_CREATES) return false;
    return !reads_volatile(s, n) && !is_overwritten(s, id);
}

/* If outputs are still open, the row waits for the seal that takes them. */
bool rows_can_keep(const scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    return (k->flags & KEPT_DUE) && kept_has_name(k) && k->wrote_in <= s->r->settled &&
           is_steady(s, id) && outputs_are_out(s, id) && reads_are_out(s, id);
}

static bool goes_alone(const node *n) {
    assert(!(n->flags & NODE_REMOVED));
    const edge *reads = node_reads_const(n);
    if (n->read_count >= LONG_ROW) return true;
    for (uint32_t i = 0; i < n->read_count; i++)
        if (reads[i].key & KEY_NO_CLAIM) return true;
    return false;
}

/* ---- hashes */

/* The text of the hashes: those in `mask` made anew, the others as before. Returns its length. */
static size_t print_hashes(const scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                           const char *before, char text[SLOTS * HASH_TEXT]) {
    uint64_t now[SLOTS];
    uint32_t n = match_hash(s, keys, count, mask, now);
    for (uint32_t i = 0; i < n; i++) {
        char *at = text + (size_t)i * HASH_TEXT;
        if (mask >> i & 1) basis_hash_print(now[i], at);
        else memcpy(at, before + (size_t)i * HASH_TEXT, HASH_TEXT);
    }
    return (size_t)n * HASH_TEXT;
}

/* Brings the node's hashes up to date: *news if they have changed. */
static hd_status renew_hashes(scheduler *s, node_id id, bool *news) {
    kept_node *k = kept_of(s, id);
    char text[SLOTS * HASH_TEXT];
    uint32_t count;
    size_t length = 0;
    const uint32_t *keys = match_keys(s, id, &count);
    if (!keys) return HD_NOMEM;
    bool first = value_is_absent(k->hashes);
    uint32_t mask = first ? UINT32_MAX : match_changed(s, keys, count, k->rev);
    if (!mask) return HD_OK;
    const char *before = first ? "" : text_of(k->hashes, &length);
    size_t size = print_hashes(s, keys, count, mask, before, text);
    assert(first || length == size);
    if (!first && !memcmp(before, text, size)) return HD_OK;
    hd_value made = text_string(s->r->heap, text, size);
    if (value_is_failed(made)) return HD_NOMEM;
    value_unref(k->hashes);
    k->hashes = made;
    *news = true;
    return HD_OK;
}

/* ---- a row */

static hd_status push_key(scheduler *s, build *b, const char *text) {
    const struct key *k = key_intern_held(s->r->heap, text, strlen(text));
    return k && build_push_key(b, k) ? HD_OK : HD_NOMEM;
}

static hd_status push_text(scheduler *s, build *b, const char *text) {
    hd_value v = text_string(s->r->heap, text, strlen(text));
    if (value_is_failed(v)) return HD_NOMEM;
    return build_push(b, v) ? HD_OK : HD_NOMEM;
}

/* The cells, one in a line. HD_LIMIT: one has no text. */
static hd_status push_reads(scheduler *s, build *b, node_id id) {
    persistence *p = s->persistence;
    uint32_t count, reads = node_of(s, id)->read_count;
    const uint32_t *keys = match_keys(s, id, &count);
    hd_status status = keys ? HD_OK : HD_NOMEM;
    vec_clear(&p->text);
    for (uint32_t i = 0; !status && i < count; i++) status = reads_print(s, keys[i], i >= reads);
    if (status) return status;
    if (!vec_push(s->env, &p->text, '\0')) return HD_NOMEM;
    return push_text(s, b, p->text.items);
}

/* [name, instance, hashes, print, flags, reads] */
static hd_status push_item(scheduler *s, build *b, node_id id) {
    static const char *const flags[] = { "", "d", "f", "df" };
    const kept_node *k = kept_of(s, id);
    int said = (k->flags & KEPT_DERIVED ? 1 : 0) + (k->flags & KEPT_FAILED ? 2 : 0);
    hd_value instance = rows_instance(s, kept_scope(k));
    assert(value_exists(k->hashes) && value_exists(k->print));
    bool ok = value_exists(instance) && build_push(b, value_ref(k->name)) &&
              build_push(b, value_ref(instance)) && build_push(b, value_ref(k->hashes)) &&
              build_push(b, value_ref(k->print)) && !push_text(s, b, flags[said]);
    hd_status status = ok ? push_reads(s, b, id) : HD_NOMEM;
    return status ? status : build_array(b, ROW_ITEMS);
}

/* [name, "gates", "", "-", "debounce throttle", ""] */
static hd_status push_gates(scheduler *s, build *b, node_id id) {
    assert(kept_of(s, id)->flags & KEPT_GATES);
    const cold *c = cold_of(s, node_of(s, id));
    char gates[32];
    snprintf(gates, sizeof gates, "%u %u", c ? c->gate.debounce_ms : 0,
             c ? c->gate.throttle_ms : 0);
    bool ok = build_push(b, value_ref(kept_of(s, id)->name)) && !push_text(s, b, BASIS_GATES) &&
              !push_text(s, b, "") && !push_text(s, b, "-") && !push_text(s, b, gates) &&
              !push_text(s, b, "");
    return ok ? build_array(b, ROW_ITEMS) : HD_NOMEM;
}

/* ---- instances: rows of user and session scope are kept apart by principal and session */

hd_value rows_instance(scheduler *s, hd_scope scope) {
    char text[NAME_SIZE];
    hd_value *known = &s->persistence->instances[scope];
    assert(scope >= HD_SCOPE_SPACE && scope <= HD_SCOPE_SESSION);
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

/* The narrowest scope of the documents that the node reads and writes. */
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
        k->flags = (uint16_t)((k->flags & ~KEPT_DERIVED) | derived | KEPT_AGAIN);
    hd_scope scope = scope_of(s, id);
    if (kept_scope(k) == scope) return;
    if (k->flags & KEPT_ROW) rows_delete_of(s, id);
    k->narrow = (uint8_t)scope;
    k->flags |= KEPT_AGAIN;
}

/* ---- claims */

/* A document that has not been loaded here is as it was at the last poll, since the node is clean, or as a
 * verdict has told since then. */
static hd_status claim_unread(scheduler *s, uint32_t key, commit *c) {
    authority *a = s->r->authority;
    const place *doc = doc_of(s, key & KEY_PLACE);
    uint64_t seq;
    hd_status status =
        a->ops->basis->seq_of(a, s->r->places.homes.items[doc->doc.home].space, &seq);
    if (!status) status = tx_claim(s->r, c, key);
    if (!status) vec_last(&c->claims).basis = seq;
    return status;
}

/* Outputs of this very commit need no claim. */
static hd_status add_claim(scheduler *s, uint32_t key, commit *c) {
    assert(!(key & KEY_NO_CLAIM));
    const layer *top = replica_top(s->r, place_at(&s->r->places, key & KEY_PLACE)->root);
    if (top && top->c == c) return HD_OK;
    bool known = doc_of(s, key & KEY_PLACE)->doc.flags & DOC_KNOWN;
    return known ? tx_claim(s->r, c, key) : claim_unread(s, key, c);
}

static hd_status add_claims(scheduler *s, node_id id, commit *c) {
    uint32_t count;
    const uint32_t *keys = match_keys(s, id, &count);
    hd_status status = keys ? HD_OK : HD_NOMEM;
    for (uint32_t i = 0; !status && i < count; i++)
        status = add_claim(s, keys[i] & ~(uint32_t)KEY_NO_CLAIM, c);
    return status;
}

/* ---- deletions */

void rows_delete(scheduler *s, const char *name, const char *instance) {
    persistence *p = s->persistence;
    hd_value items[2] = { text_string(s->r->heap, name, strlen(name)), value_absent() };
    if (value_is_failed(items[0])) return;
    items[1] = text_string(s->r->heap, instance, strlen(instance));
    if (value_is_failed(items[1])) {
        value_unref(items[0]);
        return;
    }
    hd_value item = array_take(s->r->heap, items, 2);
    if (value_is_failed(item)) return;
    if (!vec_push(s->env, &p->gone, item)) value_unref(item);
    persistence_count_due(s);
}

void rows_delete_of(scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    hd_value instance = rows_instance(s, kept_scope(k));
    size_t length;
    assert(kept_has_name(k));
    if (value_exists(instance)) rows_delete(s, kept_name(k, &length), text_of(instance, &length));
}

void rows_forget_deletions(scheduler *s) {
    persistence *p = s->persistence;
    for (uint32_t i = 0; i < p->gone.count; i++) value_unref(p->gone.items[i]);
    vec_clear(&p->gone);
}

/* ---- a seal */

/* *pushed: there was something to write. */
static hd_status push_row(scheduler *s, build *b, node_id id, commit *c, bool *pushed) {
    bool news = false;
    note_rest(s, id);
    hd_status status = renew_hashes(s, id, &news);
    *pushed = news || (kept_of(s, id)->flags & KEPT_AGAIN) || !(kept_of(s, id)->flags & KEPT_ROW);
    if (status || !*pushed) return status;
    status = add_claims(s, id, c);
    return status ? status : push_item(s, b, id);
}

static hd_status push_due(scheduler *s, build *b, commit *c, uint32_t *count) {
    persistence *p = s->persistence;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < p->due.count && !status; i++) {
        node_id id = p->due.items[i];
        if ((kept_of(s, id)->flags & SCRATCH) || !rows_can_keep(s, id)) continue;
        if (c->writes.count && goes_alone(node_of(s, id))) {
            persistence_soon(s);
            continue;
        }
        size_t before = b->count;
        bool pushed = false;
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

/* What the seal did with the node. True: its row waits for a later seal. */
static bool conclude_node(scheduler *s, node_id id, bool made) {
    kept_node *k = kept_of(s, id);
    uint16_t taken = made ? k->flags & SCRATCH : 0;
    k->flags &= (uint16_t)~SCRATCH;
    if (taken & KEPT_TAKEN) {
        k->rev = s->r->rev;
        k->flags &= (uint16_t)~KEPT_AGAIN;
        k->flags |= KEPT_ROW;
    }
    return !taken && (is_steady(s, id) || k->wrote_in > s->r->settled);
}

/* Updates the nodes that were due. `made`: all rows that could be written are in the seal; a node that has
 * left since its gates were set has none, and is not asked for again. */
static void conclude(scheduler *s, bool made) {
    assert(s->r->due ==
           s->persistence->due.count + s->persistence->gated.count + s->persistence->gone.count);
    persistence *p = s->persistence;
    uint32_t left = 0;
    if (made) {
        rows_forget_deletions(s);
        vec_clear(&p->gated);
    }
    for (uint32_t i = 0; i < p->due.count; i++) {
        node_id id = p->due.items[i];
        kept_node *k = kept_of(s, id);
        if (!(k->flags & KEPT_DUE)) continue;
        if (conclude_node(s, id, made)) {
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
    assert(c->sealed && value_is_absent(c->extra));
    if (!s->r->due) return HD_OK;
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
    if (!strcmp(basis_item_text(item, ROW_INSTANCE, NULL), BASIS_GATES)) {
        persistence_gated(s, id);
        return;
    }
    kept_of(s, id)->flags |= KEPT_AGAIN;
    persistence_due(s, id);
}

/* A seal was refused, and its rows and deletions with it. */
void rows_refused(void *ctx, const commit *c) {
    scheduler *s = ctx;
    if (!value_exists(c->extra)) return;
    basis_extra x = basis_extra_of(c->extra);
    s->persistence->refused_at = s->r->rev;
    for (hd_iter it = hd_iter_of(x.nodes); hd_iter_next(&it);) send_again(s, it.value);
    for (hd_iter it = hd_iter_of(x.gone); hd_iter_next(&it);)
        rows_delete(s, basis_item_text(it.value, ROW_NAME, NULL),
                    basis_item_text(it.value, ROW_INSTANCE, NULL));
}

/* ---- rows that have aged */

/* Whether the row holds, but documents that it is about have changed since, so that a resume would have to
 * load and compare them. */
static bool has_aged(scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    uint32_t count;
    const uint32_t *keys = match_keys(s, id, &count);
    if (!(k->flags & KEPT_ROW) || (k->flags & (KEPT_DUE | KEPT_CREATES))) return false;
    if (k->flags & KEPT_AGAIN) return true;
    for (uint32_t i = 0; keys && i < count; i++)
        if (doc_of(s, keys[i] & KEY_PLACE)->rev > k->rev) return true;
    return false;
}

void rows_renew(scheduler *s, uint32_t piece) {
    const persistence *p = s->persistence;
    for (node_id id = 1; id < p->nodes.count; id++) {
        const kept_node *k = kept_of(s, id);
        if (!kept_has_name(k) || (piece != UINT32_MAX && k->piece != piece)) continue;
        if (node_of(s, id)->flags & NODE_REMOVED || !has_aged(s, id)) continue;
        kept_of(s, id)->flags |= KEPT_AGAIN;
        persistence_due(s, id);
    }
}
