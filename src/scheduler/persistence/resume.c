/* resume.c -- taking a node up where it was left. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "scheduler/causes.h"
#include "store/basis.h"
#include "value/text.h"
#include <string.h>

void resume_free(scheduler *s, kept_piece *of) {
    set_free(s, of->set);
    of->set = NULL;
}

/* The set goes when every row has been taken up, or dropped; gates are asked for by nodes that have no
 * row, too. */
static void free_if_used(scheduler *s, kept_piece *of) {
    if (!of->set->unclaimed && !of->set->gates.count) resume_free(s, of);
}

/* ---- rows that no node will take up */

static const char *instance_text(scheduler *s, hd_scope scope) {
    size_t length;
    hd_value instance = rows_instance(s, scope);
    return value_exists(instance) ? text_of(instance, &length) : NULL;
}

static void drop_row(scheduler *s, resume_set *set, set_row *row) {
    const char *instance = instance_text(s, (hd_scope)row->scope);
    assert(!row->claimed && set->unclaimed);
    row->claimed = true;
    set->unclaimed--;
    if (instance) gone_add(s, set_text(set, row->name), instance);
}

static bool drop_told(void *ctx, const basis_row *row) {
    gone_add(ctx, row->name, row->instance);
    return true;
}

/* Of own commits that are on their way. */
static void drop_sent(scheduler *s, const list *commits, const char *piece) {
    size_t wanted = strlen(piece);
    LIST_FOR (n, commits) {
        basis_extra x = basis_extra_of(LIST_ENTRY(n, commit, link)->extra);
        for (hd_iter it = hd_iter_of(x.nodes); hd_iter_next(&it);) {
            size_t length;
            const char *name = basis_item_text(it.value, ROW_NAME, &length);
            if (basis_piece_length(name, length) == wanted && !memcmp(name, piece, wanted))
                gone_add(s, name, basis_item_text(it.value, ROW_INSTANCE, NULL));
        }
    }
}

void resume_drop_all(scheduler *s, const char *piece) {
    authority *a = s->r->authority;
    hd_status status = a->ops->basis->rows(a, piece, drop_told, s);
    if (status)
        env_log(s->env, HD_LOG_WARN, "the rows of piece %s cannot be deleted: %s", piece,
                hd_status_text(status));
    drop_sent(s, &s->r->pending, piece);
    drop_sent(s, &s->r->queued, piece);
}

/* A row below a node that is there waits for that one to run. */
static bool is_expected(const scheduler *s, const char *name) {
    const char *slash = strchr(name, '/');
    return slash && registry_find(s, 0, name, (size_t)(slash - name)) != 0;
}

void resume_drop_unbuilt(scheduler *s, kept_piece *of) {
    for (uint32_t i = 0; i < of->set->rows.count; i++) {
        set_row *row = &of->set->rows.items[i];
        if (!row->claimed && !is_expected(s, set_text(of->set, row->name)))
            drop_row(s, of->set, row);
    }
    free_if_used(s, of);
}

void resume_drop_below(scheduler *s, kept_piece *of, const char *prefix) {
    size_t begin = strlen(prefix);
    for (uint32_t i = set_first_at_or_after(of->set, prefix); i < of->set->rows.count; i++) {
        set_row *row = &of->set->rows.items[i];
        if (strncmp(set_text(of->set, row->name), prefix, begin) != 0) break;
        if (!row->claimed) drop_row(s, of->set, row);
    }
    free_if_used(s, of);
}

/* ---- a node */

hd_status resume_ask_later(scheduler *s, node_id id) {
    return vec_push(s->env, &s->persistence->unasked, id) ? HD_OK : HD_NOMEM;
}

/* What the program has set counts more than what the node was registered with. */
static void restore_gates(scheduler *s, node_id id, const gate_row *row) {
    cold *c = registry_cold(s, id);
    if (!c) return;
    kept_of(s, id)->flags |= KEPT_GATES;
    c->gate.debounce_ms = row->debounce_ms;
    c->gate.throttle_ms = row->throttle_ms;
    if (row->debounce_ms || row->throttle_ms) node_of(s, id)->flags |= NODE_GATED;
}

static hd_status take_texts(scheduler *s, kept_node *k, const resume_set *set, const set_row *row) {
    const char *mark = set_text(set, row->mark), *hashes = set_text(set, row->hashes);
    assert(value_is_absent(k->mark) && value_is_absent(k->hashes));
    hd_value made = text_string(s->r->heap, mark, strlen(mark));
    if (value_is_failed(made)) return HD_NOMEM;
    k->mark = made;
    made = text_string(s->r->heap, hashes, strlen(hashes));
    if (value_is_failed(made)) return HD_NOMEM;
    k->hashes = made;
    return HD_OK;
}

/* What was found changed causes the first run here (section 10): the reads in slots that differ. */
static void note_causes(scheduler *s, node_id id, const uint32_t *keys, uint32_t count,
                        const char *hashes) {
    uint32_t reads = node_of(s, id)->read_count;
    uint32_t differing = match_differing(s, keys, count, hashes);
    slots of = { 0 };
    for (uint32_t i = 0; i < reads && i < count; i++) {
        uint32_t slot = slots_take(&of, place_at(&s->r->places, keys[i] & KEY_PLACE)->root);
        if (differing >> slot & 1) causes_add(s, id, keys[i] & KEY_PLACE);
    }
}

/* The next run makes all of them anew. */
static void forget_hashes(kept_node *k) {
    value_unref(k->hashes);
    k->hashes = value_absent();
}

/* Where documents arrive late (authority.late), a node whose row cannot be compared yet is taken for clean:
 * what was made of the old state stays, and is seen, until it is known that it must be made anew. */
static hd_status install(scheduler *s, node_id id, const resume_set *set, const set_row *row) {
    kept_node *k = kept_of(s, id);
    node *n = node_of(s, id);
    const uint32_t *keys = set->reads.items ? &set->reads.items[row->first_read] : NULL;
    hd_status status = graph_apply_reads(&s->graph, id, keys, row->reads - row->outputs);
    if (!status) status = take_texts(s, k, set, row);
    if (status) return status;
    n->flags &= ~(uint32_t)NODE_NEVER_RAN;
    n->flags |= NODE_RESUMED;
    n->ran_rev = k->rev = set->rev;
    k->sent_in = k->full_in = row->sent_in;
    k->flags &= KEPT_MENDS | KEPT_GATES;
    k->flags |=
        (uint16_t)(KEPT_ROW | (row->derived ? KEPT_DERIVED : 0) | (row->failed ? KEPT_FAILED : 0));
    k->narrow = row->scope;
    if (row->derived && resume_ask_later(s, id)) return HD_NOMEM;
    bool looked;
    match holds = set_match(s, set, row, &looked);
    if (holds == MATCH_NO) {
        note_causes(s, id, keys, row->reads, set_text(set, row->hashes));
        forget_hashes(k);
        return HD_OK;
    }
    n->ran_rev = k->rev = s->r->rev;
    if (looked) k->flags |= KEPT_AGED;
    if (holds == MATCH_LATER) k->flags |= KEPT_UNSURE;
    return graph_mark_clean(&s->graph, id);
}

static hd_status take_row(scheduler *s, node_id id, resume_set *set) {
    kept_node *k = kept_of(s, id);
    size_t length;
    const char *name = kept_name(k, &length), *instance;
    set_row *row = set_find(set, name);
    hd_status status = HD_OK;
    if (!row || row->claimed) return HD_OK;
    instance = instance_text(s, (hd_scope)row->scope);
    bool same = !strcmp(set_text(set, row->print), text_of(k->print, &length));
    if (same && instance && !gone_is(s, name, instance)) status = install(s, id, set, row);
    else k->flags |= KEPT_ROW; /* the row in the store is replaced, or deleted with the node */
    assert(set->unclaimed);
    row->claimed = true;
    set->unclaimed--;
    return status;
}

hd_status resume_take(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    kept_piece *of = &s->persistence->pieces.items[k->piece];
    size_t length;
    if (!of->asked) {
        of->asked = true;
        of->set = set_make(s, text_of(of->name, &length));
    }
    if (!of->set) return HD_OK;
    const gate_row *set_by_program = set_find_gate(of->set, kept_name(k, &length));
    if (set_by_program) restore_gates(s, id, set_by_program);
    hd_status status = k->flags & KEPT_CREATES ? HD_OK : take_row(s, id, of->set);
    free_if_used(s, &s->persistence->pieces.items[k->piece]);
    return status;
}

/* ---- documents that arrive late */

static bool still_holds(scheduler *s, node_id id) {
    uint32_t count;
    size_t length;
    const uint32_t *keys = match_keys(s, id, &count);
    return keys && match_reads(s, keys, count, match_known(s, keys, count),
                               text_of(kept_of(s, id)->hashes, &length)) != MATCH_NO;
}

static void compare_again(void *ctx, node_id id) {
    scheduler *s = ctx;
    if (id >= s->persistence->nodes.count || !(kept_of(s, id)->flags & KEPT_UNSURE)) return;
    kept_node *k = kept_of(s, id);
    bool ran = !(node_of(s, id)->flags & NODE_RESUMED) || value_is_absent(k->hashes);
    if (!ran && still_holds(s, id)) return;
    k->flags &= (uint16_t)~KEPT_UNSURE;
    if (ran) return;
    uint32_t count;
    size_t length;
    const uint32_t *keys = match_keys(s, id, &count);
    if (keys) note_causes(s, id, keys, count, text_of(k->hashes, &length));
    forget_hashes(k);
    graph_mark_invalid(&s->graph, id);
    s->tick = true;
}

void resume_arrived(void *ctx, place_id doc, hd_status status) {
    scheduler *s = ctx;
    graph_each_reader_of(&s->graph, doc, compare_again, s);
    if (s->persistence->arrived) s->persistence->arrived(ctx, doc, status);
}

/* ---- which pieces have work to do? */

static uint64_t count_stale(scheduler *s, const resume_set *set) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < set->rows.count; i++)
        count += set_match(s, set, &set->rows.items[i], &(bool){ false }) == MATCH_NO;
    return count;
}

typedef struct stale_listing {
    scheduler *s;
    hd_stale_fn fn;
    void *ctx;
} stale_listing;

/* A piece's name is "space:id". */
static bool tell_stale(void *ctx, const char *name) {
    const stale_listing *w = ctx;
    char space[NAME_SIZE];
    const char *colon = strchr(name, ':');
    if (!colon || !basis_parse_space(name, (size_t)(colon - name), space, sizeof space))
        return true;
    resume_set *set = set_make(w->s, name);
    hd_stale_piece piece = { space, colon + 1, set ? count_stale(w->s, set) : 0 };
    set_free(w->s, set);
    return !piece.nodes || w->fn(&piece, w->ctx);
}

hd_status resume_tell_stale(scheduler *s, hd_stale_fn fn, void *ctx) {
    authority *a = s->r->authority;
    stale_listing w = { s, fn, ctx };
    return a->ops->basis->pieces(a, tell_stale, &w);
}
