/* persistence.c -- which nodes have a row to write, and when rows are written. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "store/overlay.h"
#include "value/text.h"
#include <string.h>

#define QUIET_NS UINT64_C(1000000000) /* how long rows wait for a seal that takes them along */

/* ---- life */

static void on_leaving(scheduler *s, node_id id);

hd_status persistence_init(scheduler *s) {
    /* A store that belongs to the runtime ends with it: rows would be of no use. */
    if (!s->r->authority->ops->memos || s->rt->owns_memory) return HD_OK;
    persistence *p = env_new0(s->env, sizeof *p);
    if (!p) return HD_NOMEM;
    table_init(&p->piece_names, s->env);
    table_init(&p->names, s->env);
    for (int i = 0; i <= HD_SCOPE_SESSION; i++) p->instances[i] = value_absent();
    s->persistence = p;
    p->wanted = s->r->authority->ops->wants_derived(s->r->authority);
    s->r->observer.keep = rows_keep;
    s->r->observer.refused = rows_refused;
    s->r->observer.observed = adopt_observed;
    s->leaving = on_leaving;
    return HD_OK;
}

static kept_node without_name(void) {
    return (kept_node){ .name = value_absent(), .print = value_absent(), .hashes = value_absent() };
}

static void kept_clear(kept_node *k) {
    value_unref(k->name);
    value_unref(k->print);
    value_unref(k->hashes);
    *k = without_name();
}

void persistence_fini(scheduler *s) {
    persistence *p = s->persistence;
    if (!p) return;
    s->r->observer.observed = NULL;
    lead_fini(s);
    for (uint32_t i = 0; i < p->nodes.count; i++) kept_clear(&p->nodes.items[i]);
    for (uint32_t i = 0; i < p->pieces.count; i++) {
        resume_free(s, &p->pieces.items[i]);
        value_unref(p->pieces.items[i].name);
    }
    for (int i = 0; i <= HD_SCOPE_SESSION; i++) value_unref(p->instances[i]);
    rows_forget_deletions(s);
    vec_fini(s->env, &p->nodes);
    vec_fini(s->env, &p->pieces);
    vec_fini(s->env, &p->due);
    vec_fini(s->env, &p->gated);
    vec_fini(s->env, &p->unasked);
    vec_fini(s->env, &p->keys);
    vec_fini(s->env, &p->text);
    vec_fini(s->env, &p->gone);
    table_fini(&p->piece_names);
    table_fini(&p->names);
    env_free(s->env, p, sizeof *p);
    s->persistence = NULL;
}

/* ---- what is due */

void persistence_count_due(scheduler *s) {
    const persistence *p = s->persistence;
    s->r->due = p->due.count + p->gated.count + p->gone.count;
}

void persistence_soon(scheduler *s) {
    persistence *p = s->persistence;
    if (p->wanted && !p->due_at) p->due_at = env_now_ns(s->env) + (p->held ? 0 : QUIET_NS);
}

/* Without memory for the list the node is due after its next run. A node that has begun to register others
 * meanwhile has no row. */
void persistence_due(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    assert(kept_has_name(k));
    if (k->flags & (KEPT_DUE | KEPT_CREATES)) return;
    if (vec_push(s->env, &s->persistence->due, id)) k->flags |= KEPT_DUE;
    else node_of(s, id)->flags |= NODE_NOTED;
    persistence_soon(s);
    persistence_count_due(s);
}

/* The row has hashes of all outputs, also of those that the run did not write. If one cannot be loaded now,
 * there is no row until it has arrived. */
static void load_outputs(scheduler *s, node_id id) {
    assert(!(node_of(s, id)->flags & NODE_NEVER_RAN));
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (!(out & WRITER_ENVELOPE) && !(doc_of(s, out)->doc.flags & DOC_KNOWN))
            (void)replica_load(s->r, place_at(&s->r->places, out)->root);
}

/* NODE_NOTED is cleared: until its row is written, further runs need not be noted. */
void persistence_ran_slow(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    node_of(s, id)->flags &= ~(uint32_t)NODE_NOTED;
    if (k->flags & KEPT_FAILED) k->flags |= KEPT_AGAIN;
    k->flags &= (uint16_t)~KEPT_FAILED;
    load_outputs(s, id);
    persistence_due(s, id);
}

/* The row says that the run failed: after a restart the node is not run on the same inputs again (I7). */
void persistence_failed(scheduler *s, node_id id) {
    kept_node *k = s->persistence ? kept_of(s, id) : NULL;
    if (!k || !kept_has_name(k) || (k->flags & KEPT_CREATES)) return;
    k->flags |= KEPT_FAILED | KEPT_AGAIN;
    node_of(s, id)->flags |= NODE_NOTED;
}

bool persistence_has_failed(const scheduler *s, node_id id) {
    return s->persistence && (s->persistence->nodes.items[id].flags & KEPT_FAILED);
}

void persistence_reads_changed(scheduler *s, node_id id) {
    if (!s->persistence) return;
    kept_node *k = kept_of(s, id);
    value_unref(k->hashes);
    k->hashes = value_absent();
}

void persistence_wrote(scheduler *s, node_id id, uint64_t local_seq) {
    assert(local_seq < s->r->next_local);
    if (s->persistence) kept_of(s, id)->wrote_in = local_seq;
}

void persistence_creates(scheduler *s, node_id id) {
    if (!s->persistence || !id || (kept_of(s, id)->flags & KEPT_CREATES)) return;
    kept_node *k = kept_of(s, id);
    k->flags |= KEPT_CREATES;
    node_of(s, id)->flags &= ~(uint32_t)NODE_NOTED;
    if ((k->flags & KEPT_ROW) && kept_has_name(k)) rows_delete_of(s, id);
    k->flags &= (uint16_t)~KEPT_ROW;
}

void persistence_created(scheduler *s, node_id id, left_fn left, void *ctx) {
    if (!s->persistence || !id || !kept_has_name(kept_of(s, id))) return;
    size_t length;
    kept_piece *of = &s->persistence->pieces.items[kept_of(s, id)->piece];
    resume_drop_below(s, of, kept_name(kept_of(s, id), &length), '/', left, ctx);
}

/* Without memory the gates are not stored. */
void persistence_gated(scheduler *s, node_id id, uint16_t which) {
    persistence *p = s->persistence;
    assert((which & KEPT_GATES) && !(which & ~KEPT_GATES));
    if (!p || !kept_has_name(kept_of(s, id)) || !vec_push(s->env, &p->gated, id)) return;
    kept_of(s, id)->flags |= which;
    persistence_soon(s);
    persistence_count_due(s);
}

bool persistence_is_ready(const scheduler *s) {
    const persistence *p = s->persistence;
    if (!p || !p->wanted || p->refused_at == s->r->rev + 1)
        return false; /* it would be refused again */
    if (p->gone.count || p->gated.count) return true;
    for (uint32_t i = 0; i < p->due.count; i++)
        if (rows_can_keep(s, p->due.items[i])) return true;
    return false;
}

/* ---- when */

/* From now on rows are written: nodes that have run are due. */
static void want(scheduler *s) {
    assert(s->persistence);
    s->persistence->wanted = true;
    if (s->persistence->due.count) persistence_soon(s);
}

/* Calls ask_for_writers for resumed nodes that have become live. */
static void ask_for_all(scheduler *s) {
    persistence *p = s->persistence;
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->unasked.count; i++) {
        const node *n = &s->graph.nodes[p->unasked.items[i]];
        if (!(n->flags & NODE_RESUMED)) continue; /* its run has asked; or the node is gone */
        if (node_is_live(&s->graph, n)) ask_for_writers(s, n);
        else p->unasked.items[left++] = p->unasked.items[i];
    }
    p->unasked.count = left;
}

uint64_t persistence_next(const scheduler *s) {
    const persistence *p = s->persistence;
    uint64_t of_leads = p ? lead_deadline(s) : UINT64_MAX;
    return p && p->due_at && p->due_at < of_leads ? p->due_at : of_leads;
}

/* A run whose output is as before has nothing to seal. Its row is sealed alone, when no seal has taken it
 * along for QUIET_NS. A row that cannot be written now waits for the next run or seal. */
static void keep_alone(scheduler *s) {
    persistence *p = s->persistence;
    uint64_t now = env_now_ns(s->env);
    if (now < p->due_at) return;
    if (s->r->pending_count) { /* a verdict may lead to a seal that takes the rows along */
        p->due_at = now + QUIET_NS;
        return;
    }
    p->due_at = 0;
    if (p->wanted && s->r->due) overlay_seal(s->r, true); /* without memory: with a later seal */
}

void persistence_pump(scheduler *s) {
    persistence *p = s->persistence;
    if (!p) return;
    if (!lead_pump(s) && p->due_at) keep_alone(s);
    if (p->unasked.count) ask_for_all(s);
    if (!p->wanted && s->r->authority->ops->wants_derived(s->r->authority)) want(s);
    persistence_check(s);
}

void persistence_closing(scheduler *s) {
    if (s->persistence) want(s);
}

void persistence_last(scheduler *s) {
    if (!s->persistence || !s->persistence->wanted || s->r->pending_count) return;
    rows_renew(s, UINT32_MAX);
    if (s->r->due) (void)overlay_seal(s->r, true); /* without it the next resume loads more */
    if (s->r->pending_count) (void)replica_send(s->r);
}

/* ---- pieces */

/* It may be started again here: from now on rows are wanted also where no other runtime wants them. */
void persistence_stops(scheduler *s, const char *space, const char *piece) {
    persistence *p = s->persistence;
    const kept_piece *of = p ? persistence_piece(s, space, piece) : NULL;
    if (!of || !of->nodes) return;
    want(s);
    s->rt->leaves_derived = !s->rt->options.read_only;
    rows_renew(s, (uint32_t)(of - p->pieces.items));
}

void persistence_stopping(scheduler *s, bool on) {
    if (!s || !s->persistence) return;
    assert(on || s->persistence->stopping);
    if (on) s->persistence->stopping++;
    else s->persistence->stopping--;
}

void persistence_built(scheduler *s, const char *space, const char *piece) {
    kept_piece *of = persistence_piece(s, space, piece);
    size_t length;
    if (of) resume_drop_below(s, of, text_of(of->name, &length), ':', NULL, NULL);
}

void persistence_drop_piece(scheduler *s, const char *space, const char *piece) {
    char name[NAME_SIZE];
    if (s->persistence && name_print_piece(space, piece, name)) resume_drop_all(s, name);
}

/* ---- registering and removing */

/* The node has no name any more. */
static void forget(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    size_t length;
    const char *name = kept_has_name(k) ? kept_name(k, &length) : NULL;
    if (name) table_remove(&s->persistence->names, kept_name_hash(name, length), id);
    kept_clear(k);
}

/* Prepares the record of a new node. A node whose run registers others has no row: after a restart it has to
 * run, to register them again. */
static hd_status enter(scheduler *s, node_id id) {
    persistence *p = s->persistence;
    while (p->nodes.count <= id)
        if (!vec_push(s->env, &p->nodes, without_name())) return HD_NOMEM;
    forget(s, id);
    if (s->running) persistence_creates(s, s->running);
    return HD_OK;
}

/* Whether a row of the node's reads is written: not for effects, nor for nodes with volatile outputs. */
static bool has_row(const scheduler *s, node_id id) {
    if (node_of(s, id)->flags & NODE_EFFECT) return false;
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (doc_of(s, out & ~WRITER_ENVELOPE)->doc.flags & DOC_VOLATILE) return false;
    return graph_output(&s->graph, id, 0) != 0;
}

static hd_status name_node(scheduler *s, node_id id, const hd_node_spec *spec, const char *name) {
    assert(memo_piece_length(name, strlen(name)));
    kept_node *k = kept_of(s, id);
    size_t length = strlen(name);
    hd_value print = fingerprint_of(s, id, spec, name), text;
    hd_status status = hd_value_status(print);
    if (status) return status;
    text = text_string(s->r->heap, name, length);
    status = hd_value_status(text);
    if (!status) status = name_piece(s, name, &k->piece);
    if (!status) status = table_insert(&s->persistence->names, kept_name_hash(name, length), id);
    if (status) {
        if (!value_is_failed(text)) value_unref(text);
        value_unref(print);
        return status;
    }
    k->name = text;
    k->print = print;
    k->flags = 0;
    s->persistence->pieces.items[k->piece].nodes++;
    return HD_OK;
}

hd_status persistence_registered(scheduler *s, node_id id, const hd_node_spec *spec) {
    char name[NAME_SIZE];
    hd_status status = enter(s, id);
    if (status || !node_own_name(s, id) || !name_of_node(s, id, name) ||
        !memo_piece_length(name, strlen(name)))
        return status;
    bool row = has_row(s, id);
    status = name_node(s, id, spec, name);
    if (status) return status;
    if (!row) kept_of(s, id)->flags |= KEPT_CREATES;
    status = resume_take(s, id);
    if (row) node_of(s, id)->flags |= NODE_NOTED;
    return status;
}

/* A node is removed: its row is deleted, unless its piece stops (it may be started again). */
static void on_leaving(scheduler *s, node_id id) {
    persistence *p = s->persistence;
    if (!p || id >= p->nodes.count || !kept_has_name(kept_of(s, id))) return;
    size_t length;
    const kept_node *k = kept_of(s, id);
    if ((k->flags & KEPT_ROW) && !p->stopping) rows_delete_of(s, id);
    if ((k->flags & KEPT_GATES) && !p->stopping) rows_delete(s, kept_name(k, &length), ROW_GATES);
    kept_piece *of = &p->pieces.items[k->piece];
    assert(of->nodes);
    if (--of->nodes == 0) {
        resume_free(s, of);
        of->asked = false;
    }
    forget(s, id); /* its entry in `due` is skipped: KEPT_DUE is cleared */
}
