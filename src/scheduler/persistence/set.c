/* set.c -- the rows of a piece, when its first node is registered: its *resume set*.
 *
 * The store is asked for them once. Rows of this runtime's own commits without a verdict are entered behind them: of
 * rows of one name and instance the last counts. All their reads and outputs become places; then the store tells
 * which of their documents have changed since. No document is loaded before a node asks for its row. A document that
 * changes after the set was made has a later revision than the set.
 *
 * A row that cannot be read is left out: its node runs. */
#define _GNU_SOURCE
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "base/system.h"
#include "store/overlay.h"
#include "value/key.h"
#include "value/object.h"
#include "value/text.h"
#include <string.h>

typedef struct filling {
    scheduler *s;
    resume_set *set;
    const char *piece;
    size_t piece_length;
    uint32_t home;    /* of the key before, for reads_parse */
    uint32_t outputs; /* of the row so far; reads come before them */
} filling;

/* ---- freeing */

void set_free(scheduler *s, resume_set *set) {
    if (!set) return;
    for (uint32_t i = 0; i < set->rows.count; i++) value_unref(set->rows.items[i].seqs);
    for (uint32_t i = 0; i < set->keys.count; i++)
        place_unref(&s->r->places, set->keys.items[i] & KEY_PLACE);
    vec_fini(s->env, &set->rows);
    vec_fini(s->env, &set->text);
    vec_fini(s->env, &set->keys);
    vec_fini(s->env, &set->changes);
    table_fini(&set->by_doc);
    env_free(s->env, set, sizeof *set);
}

/* ---- keys: reads and outputs */

static hd_status add_cell(filling *f, const char *text, size_t length) {
    resume_set *set = f->set;
    uint32_t key;
    bool output = false;
    if (!vec_room(f->s->env, &set->keys, 1)) return HD_NOMEM;
    hd_status status = reads_parse(f->s, text, length, &f->home, &key, &output);
    if (!status && f->outputs && !output) status = HD_CORRUPT;
    if (status) return status;
    f->outputs += output;
    place_ref(&f->s->r->places, key & KEY_PLACE);
    set->keys.items[set->keys.count++] = key;
    return HD_OK;
}

static hd_status add_cells(filling *f, const char *reads) {
    hd_status status = HD_OK;
    const char *cell;
    size_t length;
    while (!status && reads_next(&reads, &cell, &length)) status = add_cell(f, cell, length);
    return status;
}

static void forget_keys(scheduler *s, resume_set *set, uint32_t count) {
    assert(count <= set->keys.count);
    while (set->keys.count > count) place_unref(&s->r->places, vec_pop(&set->keys) & KEY_PLACE);
}

/* ---- rows */

/* Whether the row is for every principal, for this runtime's, or for its session. */
static bool is_ours(const scheduler *s, const char *instance, uint8_t *scope) {
    bool gates = !strcmp(instance, ROW_GATES), user = !strncmp(instance, "user:", 5);
    *scope = gates ? SCOPE_GATES : HD_SCOPE_SPACE;
    if (gates || !*instance) return true;
    *scope = user ? HD_SCOPE_USER : HD_SCOPE_SESSION;
    if (!user && strncmp(instance, "session:", 8)) return false;
    return !strcmp(strchr(instance, ':') + 1, key_bytes(user ? s->rt->principal : s->rt->session));
}

static hd_status fill_texts(filling *f, const memo *from, set_row *row) {
    resume_set *set = f->set;
    for (int i = 0; i < ROW_READS; i++) {
        size_t size = strlen(from->text[i]) + 1;
        if (!vec_room(f->s->env, &set->text, size)) return HD_NOMEM;
        row->text[i] = set->text.count;
        memcpy(set->text.items + set->text.count, from->text[i], size);
        set->text.count += (uint32_t)size;
    }
    return HD_OK;
}

static hd_status fill_row(filling *f, const memo *from, set_row *row) {
    resume_set *set = f->set;
    uint32_t text = set->text.count;
    row->first_key = set->keys.count;
    f->outputs = 0;
    hd_status status = fill_texts(f, from, row);
    if (!status) status = add_cells(f, from->text[ROW_READS]);
    row->keys = set->keys.count - row->first_key;
    if (!status && strlen(from->text[ROW_HASHES]) != (size_t)row->keys * HASH_TEXT)
        status = HD_CORRUPT;
    if (status) {
        forget_keys(f->s, set, row->first_key);
        set->text.count = text;
        return status;
    }
    row->outputs = f->outputs;
    assert(row->outputs <= row->keys);
    return HD_OK;
}

/* HD_NOMEM. A row that is not for this runtime, or cannot be read, is left out. */
static hd_status enter(filling *f, const memo *from, bool gone) {
    resume_set *set = f->set;
    set_row row = { .seqs = value_absent(), .gone = gone };
    if (!is_ours(f->s, from->text[ROW_INSTANCE], &row.scope)) return HD_OK;
    if (!vec_room(f->s->env, &set->rows, 1)) return HD_NOMEM;
    hd_status status = fill_row(f, from, &row);
    if (status && status != HD_NOMEM)
        env_log(f->s->env, HD_LOG_WARN, "the row of %s is malformed: its node runs",
                from->text[ROW_NAME]);
    if (status) return status == HD_NOMEM ? status : HD_OK;
    row.seqs = value_ref(from->seqs);
    set->rows.items[set->rows.count++] = row;
    return HD_OK;
}

static bool take_stored(void *ctx, const memo *from) {
    filling *f = ctx;
    f->set->status = enter(f, from, false);
    return !f->set->status;
}

/* ---- own commits on their way */

/* An item of "nodes" (or of "gone"), as a row that replaces (or deletes) the one that was entered before. */
static hd_status enter_item(filling *f, hd_value item, bool gone) {
    memo row = memo_of(item, value_absent());
    const char *name = row.text[ROW_NAME];
    if (strncmp(name, f->piece, f->piece_length) || name[f->piece_length] != ':') return HD_OK;
    return enter(f, &row, gone);
}

static hd_status enter_sent(filling *f, const list *commits) {
    hd_status status = HD_OK;
    LIST_FOR (n, commits) {
        const commit *c = LIST_ENTRY(n, commit, link);
        if (value_is_absent(c->extra) || c->state == COMMIT_DEAD || c->state == COMMIT_GONE)
            continue;
        memo_extra x = memo_extra_of(c->extra);
        for (hd_iter it = hd_iter_of(x.gone); !status && hd_iter_next(&it);)
            status = enter_item(f, it.value, true);
        for (hd_iter it = hd_iter_of(x.kept); !status && hd_iter_next(&it);)
            status = enter_item(f, it.value, false);
    }
    return status;
}

/* ---- order */

/* By name, by scope, and in the order in which rows were entered. */
static int compare_rows(const void *a, const void *b, void *ctx) {
    const set_row *x = a, *y = b;
    int differs = strcmp(set_text(ctx, x, ROW_NAME), set_text(ctx, y, ROW_NAME));
    if (!differs) differs = (x->scope > y->scope) - (x->scope < y->scope);
    return differs ? differs : x->text[ROW_NAME] < y->text[ROW_NAME] ? -1 : 1;
}

/* Whether the next row is of the same name and instance: it was entered later, and counts. */
static bool is_replaced(const resume_set *set, uint32_t i) {
    const set_row *row = &set->rows.items[i];
    return set_is_named(set, i + 1, set_text(set, row, ROW_NAME)) && row[1].scope == row->scope;
}

/* The narrowest of several rows of a name decides, even if it does not hold (C298). Gates come first. */
static void sort_rows(resume_set *set) {
    uint32_t kept = 0;
    set_row *rows = set->rows.items;
    if (set->rows.count) system_sort(rows, set->rows.count, sizeof(set_row), compare_rows, set);
    for (uint32_t i = 0; i < set->rows.count; i++) {
        set_row row = rows[i];
        bool counts = !row.gone && !is_replaced(set, i);
        bool narrower = counts && kept && rows[kept - 1].scope != SCOPE_GATES &&
                        set_is_named(set, kept - 1, set_text(set, &row, ROW_NAME));
        if (!counts) value_unref(row.seqs);
        if (narrower) value_unref(rows[--kept].seqs);
        if (counts) rows[kept++] = row;
    }
    set->rows.count = kept;
    assert(!kept || set->text.count);
}

bool set_is_named(const resume_set *set, uint32_t i, const char *name) {
    return i < set->rows.count && !strcmp(set_text(set, &set->rows.items[i], ROW_NAME), name);
}

uint32_t set_first_at_or_after(const resume_set *set, const char *name) {
    uint32_t low = 0, high = set->rows.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (strcmp(set_text(set, &set->rows.items[mid], ROW_NAME), name) < 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* First looks behind the row that was found last: programs often register nodes in the order of names. */
uint32_t set_find(resume_set *set, const char *name) {
    uint32_t at = set->next;
    if (!set_is_named(set, at, name)) at = set_first_at_or_after(set, name);
    if (!set_is_named(set, at, name)) return TABLE_NONE;
    set->next = at + 1;
    assert(at < set->rows.count);
    return at;
}

/* ---- what has changed since */

typedef struct since {
    struct key *space; /* referenced */
    uint64_t seq;      /* the least that a row with reads there is as of */
} since;
typedef VEC(since) since_vec;

static hd_status note_space(scheduler *s, since_vec *spaces, const hd_iter *at) {
    uint64_t seq = (uint64_t)hd_value_as_int(at->value, 0);
    for (uint32_t i = 0; i < spaces->count; i++) {
        since *known = &spaces->items[i];
        if (known->space->length != at->key_length ||
            memcmp(key_bytes(known->space), at->key, at->key_length))
            continue;
        if (seq < known->seq) known->seq = seq;
        return HD_OK;
    }
    if (!vec_room(s->env, spaces, 1)) return HD_NOMEM;
    struct key *space = key_intern(s->r->heap, at->key, at->key_length);
    if (!space) return HD_NOMEM;
    spaces->items[spaces->count++] = (since){ space, seq };
    return HD_OK;
}

/* From where on changes must be looked at, in each space. Rows without a verdict are compared in any case. */
static hd_status note_spaces(scheduler *s, const resume_set *set, since_vec *spaces) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < set->rows.count && !status; i++)
        for (hd_iter it = hd_iter_of(set->rows.items[i].seqs); !status && hd_iter_next(&it);)
            status = note_space(s, spaces, &it);
    return status;
}

static uint32_t doc_hash(place_id doc) { return hash_fold(hash_u64(doc)); }

static hd_status add_change(scheduler *s, resume_set *set, place_id doc, uint64_t seq) {
    assert(doc && place_at(&s->r->places, doc)->root == doc);
    if (!vec_room(s->env, &set->changes, 1)) return HD_NOMEM;
    hd_status status = table_insert(&set->by_doc, doc_hash(doc), set->changes.count);
    if (!status) set->changes.items[set->changes.count++] = (set_change){ doc, seq };
    return status;
}

static bool take_change(void *ctx, place_id doc, uint64_t seq) {
    filling *f = ctx;
    f->set->status = add_change(f->s, f->set, doc, seq);
    return !f->set->status;
}

/* What this runtime has changed itself, and the store does not know yet. */
static hd_status add_pending(scheduler *s, resume_set *set, const list *commits) {
    hd_status status = HD_OK;
    LIST_FOR (n, commits) {
        const commit *c = LIST_ENTRY(n, commit, link);
        for (uint32_t i = 0; i < c->ops.count && !status; i++)
            status = add_change(s, set, c->ops.items[i].doc, UINT64_MAX);
    }
    return status;
}

static hd_status add_open(scheduler *s, resume_set *set) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < s->r->unsealed.count && !status; i++)
        if (overlay_is_open(s->r, s->r->unsealed.items[i]))
            status = add_change(s, set, s->r->unsealed.items[i], UINT64_MAX);
    return status;
}

static hd_status ask_for_changes(filling *f, const since_vec *spaces) {
    authority *a = f->s->r->authority;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < spaces->count && !status; i++) {
        const since *of = &spaces->items[i];
        status = a->ops->changes(a, of->space, of->seq, take_change, f);
        if (!status) status = f->set->status;
    }
    return status;
}

static hd_status find_changes(filling *f) {
    scheduler *s = f->s;
    since_vec spaces = { 0 };
    if (SABOTAGED(s, LEAVE_OUT_CHANGES)) return HD_OK;
    hd_status status = note_spaces(s, f->set, &spaces);
    if (!status) status = ask_for_changes(f, &spaces);
    for (uint32_t i = 0; i < spaces.count; i++) key_unref(spaces.items[i].space);
    vec_fini(s->env, &spaces);
    if (!status) status = add_pending(s, f->set, &s->r->pending);
    if (!status) status = add_pending(s, f->set, &s->r->queued);
    return status ? status : add_open(s, f->set);
}

/* ---- making it */

/* Rows that the next seal deletes are left out: the program has unregistered their nodes. A node that it registers
 * under the same name may have another function, or another context. */
static hd_status fill(filling *f) {
    scheduler *s = f->s;
    authority *a = s->r->authority;
    const persistence *p = s->persistence;
    hd_status status = a->ops->memos(a, f->piece, take_stored, f);
    if (!status) status = f->set->status;
    if (!status) status = enter_sent(f, &s->r->pending);
    if (!status) status = enter_sent(f, &s->r->queued);
    for (uint32_t i = 0; i < p->gone.count && !status; i++)
        status = enter_item(f, p->gone.items[i], true);
    if (status) return status;
    sort_rows(f->set);
    return find_changes(f);
}

static resume_set *set_new(scheduler *s) {
    resume_set *set = env_new0(s->env, sizeof *set);
    if (!set) return NULL;
    table_init(&set->by_doc, s->env);
    set->rev = s->r->rev;
    return set;
}

/* NULL instead of an empty set. */
static resume_set *complete(scheduler *s, resume_set *set, hd_status status) {
    assert(!set->unclaimed);
    set->unclaimed = set->rows.count;
    if (!status && set->rows.count) return set;
    set_free(s, set);
    return NULL;
}

hd_status set_read(scheduler *s, const char *piece, resume_set **out) {
    filling f = { .s = s, .set = set_new(s), .piece = piece, .piece_length = strlen(piece) };
    *out = NULL;
    if (!f.set) return HD_NOMEM;
    hd_status status = fill(&f);
    *out = complete(s, f.set, status);
    return status;
}

/* If the store cannot tell its rows, all nodes run, and nothing fails (C306). */
resume_set *set_make(scheduler *s, const char *piece) {
    resume_set *set;
    hd_status status = set_read(s, piece, &set);
    if (status)
        env_log(s->env, HD_LOG_WARN,
                "the rows of piece %s cannot be read (%s): all of its nodes run", piece,
                hd_status_text(status));
    return set;
}

resume_set *set_of_item(scheduler *s, hd_value item) {
    assert(array_count(item) == ROW_ITEMS);
    filling f = { .s = s, .set = set_new(s) };
    if (!f.set) return NULL;
    memo row = memo_of(item, hd_object());
    return complete(s, f.set, enter(&f, &row, false));
}

/* ---- what must be compared */

/* As of which seq of the document's space the row is. */
static uint64_t as_of(const scheduler *s, const set_row *row, const place *doc) {
    assert(place_at(&s->r->places, doc->root) == doc);
    const struct key *space = s->r->places.homes.items[doc->doc.home].space;
    hd_value seq = object_get_bytes(row->seqs, key_bytes(space), space->length);
    return (uint64_t)hd_value_as_int(seq, 0);
}

static bool has_changed(const scheduler *s, const resume_set *set, const set_row *row,
                        place_id root) {
    const place *doc = place_at(&s->r->places, root);
    if (!set->changes.count) return false;
    for (table_probe at = table_find(&set->by_doc, doc_hash(root));
         table_next(&set->by_doc, &at);) {
        const set_change *change = &set->changes.items[at.index];
        if (change->doc == root && change->seq > as_of(s, row, doc)) return true;
    }
    return false;
}

static bool may_have_changed(const scheduler *s, const resume_set *set, const set_row *row,
                             uint32_t key) {
    const place *at = place_at(&s->r->places, key & KEY_PLACE);
    return value_is_absent(row->seqs) || at->rev > set->rev || has_changed(s, set, row, at->root);
}

/* Goes on where one differs: the others are causes of the first run, too (note_causes). */
bool set_row_holds(scheduler *s, const resume_set *set, const set_row *row, bool *compared) {
    const uint32_t *keys = set_keys(set, row);
    bool holds = true;
    for (uint32_t i = 0; i < row->keys; i++) {
        if (!may_have_changed(s, set, row, keys[i])) continue;
        *compared = true;
        if (replica_load(s->r, place_at(&s->r->places, keys[i] & KEY_PLACE)->root) ||
            !match_key(s, keys[i], set_text(set, row, ROW_HASHES), i))
            holds = false;
    }
    return holds;
}
