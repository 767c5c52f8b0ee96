/* resume.c -- taking a node up where it was left. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "scheduler/causes.h"
#include "value/text.h"
#include <stdio.h>
#include <stdlib.h>
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
    mark_claimed(set, row);
    rows_delete(s, set_text(set, row, ROW_NAME), set_text(set, row, ROW_INSTANCE));
}

static bool drop_told(void *ctx, const memo *row) {
    rows_delete(ctx, row->text[ROW_NAME], row->text[ROW_INSTANCE]);
    return true;
}

/* The rows of all principals in the store, and those of own commits that are on their way there. */
void resume_drop_all(scheduler *s, const char *piece) {
    authority *a = s->r->authority;
    resume_set *set = set_make(s, piece);
    hd_status status = a->ops->memos(a, piece, drop_told, s);
    if (status)
        env_log(s->env, HD_LOG_WARN, "the rows of piece %s cannot be deleted: %s", piece,
                hd_status_text(status));
    for (uint32_t i = 0; set && i < set->rows.count; i++) drop_row(s, set, &set->rows.items[i]);
    set_free(s, set);
}

/* Whether the row is one of a child of a registered node, which has to run before the child is registered. */
static bool awaits_another(const scheduler *s, const char *name, size_t prefix) {
    const char *slash = strchr(name + prefix, '/');
    return slash && persistence_find(s, name, (size_t)(slash - name)) != 0;
}

void resume_drop_below(scheduler *s, kept_piece *of, const char *name_above, char mark,
                       left_fn left, void *ctx) {
    char prefix[NAME_SIZE];
    int n = of->set ? snprintf(prefix, sizeof prefix, "%s%c", name_above, mark) : 0;
    if (n <= 0 || (size_t)n >= sizeof prefix) return;
    size_t begin = (size_t)n;
    for (uint32_t i = set_first_at_or_after(of->set, prefix); i < of->set->rows.count; i++) {
        set_row *row = &of->set->rows.items[i];
        const char *name = set_text(of->set, row, ROW_NAME);
        if (strncmp(name, prefix, begin) != 0) break;
        if (row->claimed || awaits_another(s, name, begin)) continue;
        if (left) left(of->set, row, ctx);
        drop_row(s, of->set, row);
    }
    free_if_used(s, of);
}

/* ---- a node */

/* The node got its reads from a row, and not by a run. When the node is live, the pieces that write what it reads are
 * opened (ask_for_writers). HD_NOMEM. */
static hd_status ask_later(scheduler *s, node_id id) {
    return vec_push(s->env, &s->persistence->unasked, id) ? HD_OK : HD_NOMEM;
}

/* A number of milliseconds; "-": the program has not set this gate. */
static bool take_gate(const char *text, uint32_t *out) {
    unsigned long ms = strtoul(text, NULL, 10);
    if (*text == '-') return false;
    *out = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    return true;
}

/* What the program has set counts more than what the node was registered with. */
static void restore_gates(scheduler *s, node_id id, const char *flags) {
    cold *c = registry_cold(s, id);
    const char *second = strchr(flags, ' ');
    if (!c || !second) return;
    if (take_gate(flags, &c->gate.debounce_ms)) kept_of(s, id)->flags |= KEPT_DEBOUNCE;
    if (take_gate(second + 1, &c->gate.throttle_ms)) kept_of(s, id)->flags |= KEPT_THROTTLE;
    if (c->gate.debounce_ms || c->gate.throttle_ms) node_of(s, id)->flags |= NODE_GATED;
}

/* The reads that differ cause the first run here (section 10). An output that differs is no cause. */
static void note_causes(scheduler *s, node_id id, const resume_set *set, const set_row *row) {
    const uint32_t *keys = set_keys(set, row);
    for (uint32_t i = 0; i < row->keys - row->outputs; i++)
        if (!match_if_known(s, keys[i], set_text(set, row, ROW_HASHES), i))
            causes_add(s, id, keys[i] & KEY_PLACE);
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
    const char *flags = set_text(set, row, ROW_FLAGS);
    bool derived = strchr(flags, 'd'), failed = strchr(flags, 'f');
    assert(node_is_invalid(&s->graph, n) && !(k->flags & KEPT_CREATES));
    hd_status status =
        graph_apply_reads(&s->graph, id, set_keys(set, row), row->keys - row->outputs);
    if (!status && derived) status = ask_later(s, id);
    if (!status && holds) status = take_hashes(s, k, set_text(set, row, ROW_HASHES));
    if (!status && holds) status = graph_mark_clean(&s->graph, id);
    if (status) return status;
    n->flags &= ~(uint32_t)NODE_NEVER_RAN;
    n->flags |= NODE_RESUMED;
    n->ran_rev = k->rev = holds ? s->r->rev : set->rev;
    k->narrow = row->scope;
    k->flags &= (uint16_t) ~(KEPT_AGAIN | KEPT_FAILED | KEPT_DERIVED);
    k->flags |= (uint16_t)(KEPT_ROW | (derived ? KEPT_DERIVED : 0) | (failed ? KEPT_FAILED : 0));
    if (!holds) note_causes(s, id, set, row);
    return HD_OK;
}

/* A row that was compared is written again: then the next resume need not compare it. */
static hd_status take_row(scheduler *s, node_id id, const resume_set *set, const set_row *row) {
    assert(row->claimed && row->scope != SCOPE_GATES);
    kept_node *k = kept_of(s, id);
    size_t length;
    if (strcmp(set_text(set, row, ROW_PRINT), text_of(k->print, &length)) != 0) {
        k->flags |= KEPT_ROW; /* of other code: the next row replaces it, in another instance too */
        k->narrow = row->scope;
        return HD_OK;
    }
    bool compared = false, holds = set_row_holds(s, set, row, &compared);
    hd_status status = resume_install(s, id, set, row, holds);
    if (!status && compared) k->flags |= KEPT_AGAIN;
    return status;
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
        if (gates) restore_gates(s, id, set_text(set, row, ROW_FLAGS));
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
