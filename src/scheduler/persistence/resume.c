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

/* The set is freed when every row has been taken up, or is to be deleted. */
static void free_if_used(scheduler *s, kept_piece *of) {
    if (!of->set->unclaimed) resume_free(s, of);
}

static void mark_claimed(resume_set *set, set_row *row) {
    assert(!row->claimed && set->unclaimed);
    row->claimed = true;
    set->unclaimed--;
}

/* ---- rows that no node will take up */

static void drop_row(scheduler *s, resume_set *set, set_row *row) {
    const char *instance = BASIS_GATES;
    size_t length;
    mark_claimed(set, row);
    if (row->scope != SCOPE_GATES) {
        hd_value text = rows_instance(s, (hd_scope)row->scope);
        instance = value_exists(text) ? text_of(text, &length) : NULL;
    }
    if (instance) rows_delete(s, set_text(set, row->name), instance);
}

static bool drop_told(void *ctx, const basis_row *row) {
    rows_delete(ctx, row->name, row->instance);
    return true;
}

/* The rows of all principals in the store, and those of own commits that are on their way there. */
void resume_drop_all(scheduler *s, const char *piece) {
    authority *a = s->r->authority;
    resume_set *set = set_make(s, piece);
    hd_status status = a->ops->basis->rows(a, piece, drop_told, s);
    if (status)
        env_log(s->env, HD_LOG_WARN, "the rows of piece %s cannot be deleted: %s", piece,
                hd_status_text(status));
    for (uint32_t i = 0; set && i < set->rows.count; i++) drop_row(s, set, &set->rows.items[i]);
    set_free(s, set);
}

/* A row below a node that is there waits for that one to run. */
static bool is_expected(const scheduler *s, const char *name) {
    const char *slash = strchr(name, '/');
    return slash && registry_find(s, 0, name, (size_t)(slash - name)) != 0;
}

void resume_drop_unbuilt(scheduler *s, kept_piece *of) {
    assert(of->set);
    for (uint32_t i = 0; i < of->set->rows.count; i++) {
        set_row *row = &of->set->rows.items[i];
        if (!row->claimed && !is_expected(s, set_text(of->set, row->name)))
            drop_row(s, of->set, row);
    }
    free_if_used(s, of);
}

void resume_drop_below(scheduler *s, kept_piece *of, const char *prefix) {
    assert(of->set && *prefix);
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
static void restore_gates(scheduler *s, node_id id, const set_row *row) {
    assert(row->scope == SCOPE_GATES);
    cold *c = registry_cold(s, id);
    if (!c) return;
    kept_of(s, id)->flags |= KEPT_GATES;
    c->gate.debounce_ms = row->debounce_ms;
    c->gate.throttle_ms = row->throttle_ms;
    if (row->debounce_ms || row->throttle_ms) node_of(s, id)->flags |= NODE_GATED;
}

/* The keys in slots that differ cause the first run here (section 10). An output that differs is no cause. */
static void note_causes(scheduler *s, node_id id, const resume_set *set, const set_row *row) {
    const uint32_t *keys = set_keys(set, row);
    uint32_t differing = match_differing(s, keys, row->keys, match_known(s, keys, row->keys),
                                         set_text(set, row->hashes));
    slots of = { 0 };
    for (uint32_t i = 0; i < row->keys - row->outputs; i++) {
        uint32_t slot = slots_take(&of, place_at(&s->r->places, keys[i] & KEY_PLACE)->root);
        if (differing >> slot & 1) causes_add(s, id, keys[i] & KEY_PLACE);
    }
}

static hd_status take_hashes(scheduler *s, kept_node *k, const char *hashes) {
    hd_value made = text_string(s->r->heap, hashes, strlen(hashes));
    if (value_is_failed(made)) return HD_NOMEM;
    value_unref(k->hashes);
    k->hashes = made;
    return HD_OK;
}

hd_status resume_install(scheduler *s, node_id id, const resume_set *set, const set_row *row,
                         bool holds) {
    kept_node *k = kept_of(s, id);
    node *n = node_of(s, id);
    assert(node_is_invalid(&s->graph, n) && !(k->flags & KEPT_CREATES));
    hd_status status =
        graph_apply_reads(&s->graph, id, set_keys(set, row), row->keys - row->outputs);
    if (!status && row->derived) status = resume_ask_later(s, id);
    if (!status && holds) status = take_hashes(s, k, set_text(set, row->hashes));
    if (!status && holds) status = graph_mark_clean(&s->graph, id);
    if (status) return status;
    n->flags &= ~(uint32_t)NODE_NEVER_RAN;
    n->flags |= NODE_RESUMED;
    n->ran_rev = k->rev = holds ? s->r->rev : set->rev;
    k->narrow = row->scope;
    k->flags &= (uint16_t) ~(KEPT_AGAIN | KEPT_FAILED | KEPT_DERIVED);
    k->flags |=
        (uint16_t)(KEPT_ROW | (row->derived ? KEPT_DERIVED : 0) | (row->failed ? KEPT_FAILED : 0));
    if (!holds) note_causes(s, id, set, row);
    return HD_OK;
}

/* A row that was compared is written again: then the next resume need not compare it. So is one that a seal
 * to come deletes, because a node of the same name has left. */
static hd_status take_row(scheduler *s, node_id id, const resume_set *set, const set_row *row) {
    assert(row->claimed && row->scope != SCOPE_GATES);
    kept_node *k = kept_of(s, id);
    size_t length;
    if (strcmp(set_text(set, row->print), text_of(k->print, &length)) != 0) {
        k->flags |= KEPT_ROW;
        return HD_OK;
    }
    uint32_t mask = set_changed_slots(s, set, row);
    bool holds =
        !mask || match_row(s, set_keys(set, row), row->keys, mask, set_text(set, row->hashes));
    hd_status status = resume_install(s, id, set, row, holds);
    if (status) return status;
    if (mask || s->persistence->gone.count) k->flags |= KEPT_AGAIN;
    if (s->persistence->gone.count) persistence_due(s, id);
    return HD_OK;
}

static hd_status take_rows(scheduler *s, node_id id, resume_set *set) {
    size_t length;
    const char *name = kept_name(kept_of(s, id), &length);
    bool computes = !(kept_of(s, id)->flags & KEPT_CREATES);
    hd_status status = HD_OK;
    for (uint32_t i = set_find(set, name); !status && set_is_named(set, i, name); i++) {
        set_row *row = &set->rows.items[i];
        bool gates = row->scope == SCOPE_GATES;
        if (row->claimed || !(gates || computes)) continue;
        mark_claimed(set, row);
        if (gates) restore_gates(s, id, row);
        else status = take_row(s, id, set, row);
    }
    return status;
}

hd_status resume_take(scheduler *s, node_id id) {
    uint32_t piece = kept_of(s, id)->piece;
    kept_piece *of = &s->persistence->pieces.items[piece];
    size_t length;
    assert(kept_has_name(kept_of(s, id)) && of->nodes);
    if (!of->asked) {
        of->asked = true;
        of->set = set_make(s, text_of(of->name, &length));
    }
    if (!of->set) return HD_OK;
    hd_status status = take_rows(s, id, of->set);
    free_if_used(s, of);
    return status;
}
