/* rows.c -- puts rows into a seal, and the claims that go with them.
 *
 * A row is written when its node is clean and its outputs are in the store, or in the same seal. With the row go
 * claims on its reads and outputs: the store refuses the seal if one of them has changed since it was hashed. If the
 * hashes are those of the node's last row, the row is not written again.
 *
 * Hashes are computed when a seal is made, for the places that have changed since the last row.
 *
 * Two kinds of rows go *alone*, in a seal that has no outputs and is made when the runtime is quiet. Rows with reads
 * that the run did not claim: if such a read changes, the store refuses the row, and not the outputs as well. And
 * rows of LONG_ROW or more reads: written with each run, they would make the log grow. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "store/overlay.h"
#include "store/session.h"
#include "value/array.h"
#include "value/build.h"
#include "value/key.h"
#include "value/text.h"
#include <stdio.h>
#include <string.h>

enum { LONG_ROW = 256 }; /* reads, from which on a row goes alone */

/* ---- may it be written now? */

/* What the row of a node depends on, from its reads and outputs. */
typedef struct survey {
    bool out;       /* all of it is in the store or in a commit that was sent, and can be hashed */
    bool stands;    /* the last run still counts: a row of it can be written, now or later */
    bool unclaimed; /* it reads something that its run did not claim */
    hd_scope scope; /* the narrowest of the documents */
} survey;

/* Can be hashed is what is at hand, and what has its hash in the last row already. */
static void survey_place(const scheduler *s, const kept_node *k, place_id at, bool hashed,
                         survey *v) {
    const place *doc = doc_of(s, at);
    hd_scope scope = s->r->places.homes.items[doc->doc.home].scope;
    bool known = (doc->doc.flags & DOC_KNOWN) ||
                 (value_exists(k->hashes) && place_at(&s->r->places, at)->rev <= k->rev);
    if ((doc->doc.flags & DOC_OVERLAY) || (hashed && !known)) v->out = false;
    if (scope > v->scope) v->scope = scope;
}

/* A run does not stand if the node reads volatile documents, or if another writer, perhaps another version of the
 * node, has changed an output since: a row would be about outputs that are not its own. */
static survey survey_node(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    survey v = { .out = true, .stands = true, .scope = HD_SCOPE_SPACE };
    for (uint32_t i = 0; i < n->read_count; i++) {
        place_id at = reads[i].key & KEY_PLACE;
        survey_place(s, kept_of(s, id), at, true, &v);
        if (doc_of(s, at)->doc.flags & DOC_VOLATILE) v.stands = false;
        if (reads[i].key & KEY_NO_CLAIM) v.unclaimed = true;
    }
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++) {
        place_id at = out & ~WRITER_ENVELOPE;
        survey_place(s, kept_of(s, id), at, !(out & WRITER_ENVELOPE), &v);
        if (place_at(&s->r->places, at)->rev > n->ran_rev) v.stands = false;
    }
    return v;
}

/* If not, the node is due again after its next run. */
static bool is_steady(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    return !node_is_invalid(&s->graph, n) && !(n->flags & (NODE_RUNNING | NODE_NEVER_RAN)) &&
           !(kept_of(s, id)->flags & KEPT_CREATES);
}

/* If outputs have not been sealed yet, the row waits for the seal that takes them. */
static bool can_keep(const scheduler *s, node_id id, survey *v) {
    const kept_node *k = kept_of(s, id);
    if (!(k->flags & KEPT_DUE) || !kept_has_name(k) || k->wrote_in > s->r->settled) return false;
    if (!is_steady(s, id)) return false;
    *v = survey_node(s, id);
    return v->stands && v->out;
}

bool rows_can_keep(const scheduler *s, node_id id) {
    survey v;
    return can_keep(s, id, &v);
}

/* ---- hashes */

/* Writes the hashes of the keys into persistence.text: anew where the place has changed since the last row, else as
 * they were in that. */
static hd_status print_hashes(scheduler *s, const kept_node *k, const uint32_t *keys,
                              uint32_t count, const char *before) {
    const places *ps = &s->r->places;
    persistence *p = s->persistence;
    vec_clear(&p->text);
    if (!vec_room(s->env, &p->text, (size_t)count * HASH_TEXT + 1)) return HD_NOMEM;
    for (uint32_t i = 0; i < count; i++, p->text.count += HASH_TEXT) {
        char *at = p->text.items + p->text.count;
        bool same = before && place_at(ps, keys[i] & KEY_PLACE)->rev <= k->rev;
        if (same) memcpy(at, before + (size_t)i * HASH_TEXT, HASH_TEXT);
        else match_print(match_hash(ps, keys[i]), at);
    }
    return HD_OK;
}

/* Brings the node's hashes up to date: *news if they have changed. */
static hd_status renew_hashes(scheduler *s, node_id id, const uint32_t *keys, uint32_t count,
                              bool *news) {
    kept_node *k = kept_of(s, id);
    const persistence *p = s->persistence;
    size_t length = 0;
    const char *before = value_exists(k->hashes) ? text_of(k->hashes, &length) : NULL;
    hd_status status = print_hashes(s, k, keys, count, before);
    if (status) return status;
    assert(!before || length == p->text.count);
    if (before && !memcmp(before, p->text.items, length)) return HD_OK;
    hd_value made = text_string(s->r->heap, p->text.items, p->text.count);
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
static hd_status push_reads(scheduler *s, build *b, node_id id, const uint32_t *keys,
                            uint32_t count) {
    persistence *p = s->persistence;
    uint32_t reads = node_of(s, id)->read_count;
    hd_status status = HD_OK;
    vec_clear(&p->text);
    for (uint32_t i = 0; !status && i < count; i++) status = reads_print(s, keys[i], i >= reads);
    if (status) return status;
    if (!vec_push(s->env, &p->text, '\0')) return HD_NOMEM;
    return push_text(s, b, p->text.items);
}

/* [name, instance, hashes, print, flags, reads] */
static hd_status push_item(scheduler *s, build *b, node_id id, const uint32_t *keys,
                           uint32_t count) {
    static const char *const flags[] = { "", "d", "f", "df" };
    const kept_node *k = kept_of(s, id);
    int said = (k->flags & KEPT_DERIVED ? 1 : 0) + (k->flags & KEPT_FAILED ? 2 : 0);
    hd_value instance = rows_instance(s, kept_scope(k));
    assert(value_exists(k->hashes) && value_exists(k->print));
    bool ok = value_exists(instance) && build_push(b, value_ref(k->name)) &&
              build_push(b, value_ref(instance)) && build_push(b, value_ref(k->hashes)) &&
              build_push(b, value_ref(k->print)) && !push_text(s, b, flags[said]);
    hd_status status = ok ? push_reads(s, b, id, keys, count) : HD_NOMEM;
    return status ? status : build_array(b, ROW_ITEMS);
}

/* A gate that the program has not set is that of the registration, whatever that says next time. */
static void print_gate(bool set, uint32_t ms, char out[12]) {
    if (set) snprintf(out, 12, "%u", ms);
    else snprintf(out, 12, "-");
}

/* [name, "gates", "", "-", "debounce throttle", ""] */
static hd_status push_gates(scheduler *s, build *b, node_id id) {
    const uint16_t flags = kept_of(s, id)->flags;
    const cold *c = cold_of(s, node_of(s, id));
    char gates[32], debounce[12], throttle[12];
    assert((flags & KEPT_GATES) && c); /* setting a gate makes the record */
    print_gate(flags & KEPT_DEBOUNCE, c->gate.debounce_ms, debounce);
    print_gate(flags & KEPT_THROTTLE, c->gate.throttle_ms, throttle);
    snprintf(gates, sizeof gates, "%s %s", debounce, throttle);
    bool ok = build_push(b, value_ref(kept_of(s, id)->name)) && !push_text(s, b, ROW_GATES) &&
              !push_text(s, b, "") && !push_text(s, b, "-") && !push_text(s, b, gates) &&
              !push_text(s, b, "");
    return ok ? build_array(b, ROW_ITEMS) : HD_NOMEM;
}

/* ---- instances: rows of user and session scope are kept apart by principal and session */

/* "user:NAME" or "session:NAME", owned; or why not. A name may have any length. */
static hd_value make_instance(scheduler *s, const char *prefix, const struct key *id) {
    size_t size = strlen(prefix) + id->length + 1;
    char *text = env_new(s->env, size);
    if (!text) return value_failed(HD_NOMEM);
    snprintf(text, size, "%s%s", prefix, key_bytes(id));
    hd_value made = text_string(s->r->heap, text, size - 1);
    env_free(s->env, text, size);
    return made;
}

hd_value rows_instance(scheduler *s, hd_scope scope) {
    hd_value *known = &s->persistence->instances[scope];
    assert(scope >= HD_SCOPE_SPACE && scope <= HD_SCOPE_SESSION);
    if (value_exists(*known)) return *known;
    hd_value made = scope == HD_SCOPE_SPACE  ? text_string(s->r->heap, "", 0)
                    : scope == HD_SCOPE_USER ? make_instance(s, "user:", s->rt->principal)
                                             : make_instance(s, "session:", s->rt->session);
    if (!value_is_failed(made)) *known = made;
    return *known;
}

/* ---- the flag 'd': other pieces write some of what it reads */

/* A node that is resumed as clean has not read its documents here. By the flag 'd' of its row it is known whether the
 * metadata of its reads must be looked up, for the pieces that write them (origin.h). */
static bool is_of_another(const scheduler *s, const kept_node *own, place_id at) {
    assert(kept_has_name(own));
    const place *doc = doc_of(s, at);
    if (!doc->doc.writer) return doc->doc.flags & DOC_OF_PIECE;
    if (doc->doc.flags & DOC_MULTI_WRITER) return true; /* found out if it is asked about */
    const kept_node *author = kept_of(s, doc->doc.writer);
    return kept_has_name(author) && author->piece != own->piece &&
           !s->persistence->pieces.items[author->piece].plain;
}

static bool reads_others(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (is_of_another(s, kept_of(s, id), reads[i].key & KEY_PLACE)) return true;
    return false;
}

/* Brings the flag 'd' and the instance of the node's row up to date. If the instance has changed, the row under the
 * former one is deleted. */
static void note_rest(scheduler *s, node_id id, hd_scope scope) {
    kept_node *k = kept_of(s, id);
    uint16_t derived = reads_others(s, id) ? KEPT_DERIVED : 0;
    if ((k->flags & KEPT_DERIVED) != derived)
        k->flags = (uint16_t)((k->flags & ~KEPT_DERIVED) | derived | KEPT_AGAIN);
    if (kept_scope(k) == scope) return;
    if (k->flags & KEPT_ROW) rows_delete_of(s, id);
    k->narrow = (uint8_t)scope;
    k->flags |= KEPT_AGAIN;
}

/* ---- claims */

/* A claim on a document that has not been loaded here. The node is clean, so the document is as it was at the last
 * poll, or as a verdict has told since then: the claim is as of that sequence number. */
static hd_status claim_unread(scheduler *s, uint32_t key, commit *c) {
    authority *a = s->r->authority;
    const place *doc = doc_of(s, key & KEY_PLACE);
    uint64_t seq;
    hd_status status = a->ops->seq_of(a, s->r->places.homes.items[doc->doc.home].space, &seq);
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

static hd_status add_claims(scheduler *s, const uint32_t *keys, uint32_t count, commit *c) {
    hd_status status = HD_OK;
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

/* Appends the node's row to the seal, if it has to be written: *pushed. If the seal is not made after all, KEPT_AGAIN
 * makes a later one take the row. */
static hd_status push_row(scheduler *s, build *b, node_id id, hd_scope scope, commit *c,
                          bool *pushed) {
    kept_node *k = kept_of(s, id);
    bool news = false;
    uint32_t count;
    const uint32_t *keys = match_keys(s, id, &count);
    note_rest(s, id, scope);
    hd_status status = keys ? renew_hashes(s, id, keys, count, &news) : HD_NOMEM;
    if (status || !(news || (k->flags & KEPT_AGAIN) || !(k->flags & KEPT_ROW))) return status;
    *pushed = true;
    k->flags |= KEPT_AGAIN;
    k->rev = s->r->rev;
    status = add_claims(s, keys, count, c);
    return status ? status : push_item(s, b, id, keys, count);
}

static bool goes_alone(const node *n, const survey *v) {
    return v->unclaimed || n->read_count >= LONG_ROW;
}

static hd_status push_due(scheduler *s, build *b, commit *c, uint32_t *count) {
    persistence *p = s->persistence;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < p->due.count && !status; i++) {
        node_id id = p->due.items[i];
        survey v;
        if ((kept_of(s, id)->flags & KEPT_TAKEN) || !can_keep(s, id, &v)) continue;
        if (c->writes.count && goes_alone(node_of(s, id), &v)) {
            persistence_soon(s);
            continue;
        }
        size_t before = b->count;
        bool pushed = false;
        status = push_row(s, b, id, v.scope, c, &pushed);
        if (status == HD_LIMIT) { /* a read that has no text: the node has no row from now on */
            build_drop(b, before);
            persistence_creates(s, id);
            status = HD_OK;
            continue;
        }
        kept_of(s, id)->flags |= KEPT_TAKEN;
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

static hd_status push_lead(scheduler *s, build *b) {
    char ours[SESSION_TEXT];
    session_text(s->r->session, ours);
    hd_status status = push_key(s, b, "lead");
    return status ? status : push_text(s, b, ours);
}

/* {"nodes": [...], "gone": [...], "lead": "..."}; most seals have the first alone. */
static hd_status make_extra(scheduler *s, commit *c, uint32_t *rows, hd_value *out) {
    build b;
    build_init(&b, s->r->heap);
    hd_status status = push_key(s, &b, "nodes");
    if (!status) status = push_nodes(s, &b, c, rows);
    bool gone = s->persistence->gone.count; /* rows may have moved to another instance */
    if (!status && gone) status = push_key(s, &b, "gone");
    if (!status && gone) status = push_gone(s, &b);
    bool leads = s->persistence->held;
    if (!status && leads) status = push_lead(s, &b);
    if (!status) status = build_object(&b, 1u + gone + leads, NULL);
    if (!status) *out = build_take(&b);
    build_fini(&b);
    return status;
}

/* Updates the node after a seal was made, or could not be made. True: its row waits for a later seal. */
static bool conclude_node(scheduler *s, node_id id, bool made) {
    kept_node *k = kept_of(s, id);
    bool taken = made && (k->flags & KEPT_TAKEN);
    k->flags &= (uint16_t)~KEPT_TAKEN;
    if (taken) k->flags = (uint16_t)((k->flags & ~KEPT_AGAIN) | KEPT_ROW);
    return !taken &&
           ((is_steady(s, id) && survey_node(s, id).stands) || k->wrote_in > s->r->settled);
}

/* Updates the nodes that were due. `made`: the seal has been made, with all rows that could be written, and with the
 * deletions. */
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
    else c->extra = extra;
    return status;
}

static void send_again(scheduler *s, hd_value item) {
    size_t length;
    const char *name = memo_text(item, ROW_NAME, &length);
    node_id id = persistence_find(s, name, length);
    if (!id) return;
    if (!strcmp(memo_text(item, ROW_INSTANCE, NULL), ROW_GATES)) {
        uint16_t which = kept_of(s, id)->flags & KEPT_GATES; /* none: the node is another one */
        if (which) persistence_gated(s, id, which);
        return;
    }
    kept_of(s, id)->flags |= KEPT_AGAIN;
    persistence_due(s, id);
}

/* The row is deleted by a later seal; a node that has taken the name since writes its own once more with it. */
static void delete_again(scheduler *s, hd_value item) {
    size_t length;
    const char *name = memo_text(item, ROW_NAME, &length);
    node_id id = persistence_find(s, name, length);
    rows_delete(s, name, memo_text(item, ROW_INSTANCE, NULL));
    if (id && (kept_of(s, id)->flags & (KEPT_ROW | KEPT_GATES))) send_again(s, item);
}

/* A seal was refused, and its rows and deletions with it. */
void rows_refused(void *ctx, const commit *c) {
    scheduler *s = ctx;
    if (!value_exists(c->extra)) return;
    memo_extra x = memo_extra_of(c->extra);
    s->persistence->refused_at = s->r->rev + 1;
    for (hd_iter it = hd_iter_of(x.kept); hd_iter_next(&it);) send_again(s, it.value);
    for (hd_iter it = hd_iter_of(x.gone); hd_iter_next(&it);) delete_again(s, it.value);
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
