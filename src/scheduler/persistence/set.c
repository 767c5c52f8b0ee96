/* set.c -- the rows of a piece, when its first node is registered: its *resume set*.
 *
 * The rows of a piece are asked for once, when its first node is registered, and the rows that this
 * runtime has sent and not heard of yet lie over them. All their reads become places; then the store
 * tells which of their documents have changed since. No document is loaded before a node asks for its
 * row. What has changed between the two is told by the places themselves.
 *
 * Whatever goes wrong with a row makes its node a fresh one, which runs. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "base/hash.h"
#include "store/basis.h"
#include "store/overlay.h"
#include "value/array.h"
#include "value/key.h"
#include "value/object.h"
#include "value/text.h"
#include <stdlib.h>
#include <string.h>

typedef struct filling {
    scheduler *s;
    resume_set *set;
    basis sent;       /* rows of own commits that have no verdict */
    uint32_t home;    /* of the read before, for reads_parse */
    uint32_t outputs; /* of the row so far; reads come before them */
} filling;

/* ---- freeing */

void set_free(scheduler *s, resume_set *set) {
    if (!set) return;
    for (uint32_t i = 0; i < set->rows.count; i++) value_unref(set->rows.items[i].seqs);
    for (uint32_t i = 0; i < set->reads.count; i++)
        place_unref(&s->r->places, set->reads.items[i] & KEY_PLACE);
    vec_fini(s->env, &set->rows);
    vec_fini(s->env, &set->gates);
    vec_fini(s->env, &set->text);
    vec_fini(s->env, &set->reads);
    vec_fini(s->env, &set->rows_of);
    vec_fini(s->env, &set->changed);
    table_fini(&set->by_doc);
    env_free(s->env, set, sizeof *set);
}

/* ---- reads */

static hd_status add_cell(filling *f, const char *text, size_t length) {
    resume_set *set = f->set;
    uint32_t key;
    bool output = false;
    if (!vec_room(f->s->env, &set->reads, 1)) return HD_NOMEM;
    hd_status status = reads_parse(f->s, text, length, &f->home, &key, &output);
    if (!status && f->outputs && !output) status = HD_CORRUPT;
    if (status) return status;
    f->outputs += output;
    place_ref(&f->s->r->places, key & KEY_PLACE);
    set->reads.items[set->reads.count++] = key;
    return HD_OK;
}

static hd_status add_plain(filling *f, basis_plain reads) {
    hd_status status = HD_OK;
    const char *cell;
    size_t length;
    while (!status && basis_plain_next(&reads, &cell, &length)) status = add_cell(f, cell, length);
    return status;
}

/* Reads that were not claimed hold only as of what was seen: the lower of two seqs counts. */
static hd_status lower_seqs(filling *f, hd_value seen, set_row *row) {
    hd_heap *heap = f->s->r->heap;
    for (hd_iter it = hd_iter_of(seen); hd_iter_next(&it);) {
        int64_t known = hd_value_as_int(object_get_bytes(row->seqs, it.key, it.key_length), 0);
        if (hd_value_as_int(it.value, 0) >= known) continue;
        struct key *space = key_intern(heap, it.key, it.key_length);
        hd_value next =
            space ? object_set(heap, row->seqs, space, it.value) : value_failed(HD_NOMEM);
        key_unref(space);
        if (value_is_failed(next)) return HD_NOMEM;
        value_unref(row->seqs);
        row->seqs = next;
    }
    return HD_OK;
}

static hd_status add_body(filling *f, hd_value body, set_row *row) {
    hd_value reads = basis_reads_of(body), seen = object_get_bytes(body, "seen", 4);
    hd_status status = hd_value_kind(reads) == HD_KIND_ARRAY ? HD_OK : HD_CORRUPT;
    for (hd_iter it = hd_iter_of(reads); !status && hd_iter_next(&it);) {
        size_t length;
        const char *text = hd_value_text(it.value, &length);
        status = text ? add_cell(f, text, length) : HD_CORRUPT;
    }
    row->derived = value_exists(object_get_bytes(body, "derived", 7));
    row->failed = value_exists(object_get_bytes(body, "failed", 6));
    return status || !value_exists(row->seqs) ? status : lower_seqs(f, seen, row);
}

static void forget_reads(scheduler *s, resume_set *set, uint32_t count) {
    while (set->reads.count > count) place_unref(&s->r->places, vec_pop(&set->reads) & KEY_PLACE);
}

/* ---- rows */

/* Whether the row is ours to use: of every principal, of this one, of this session. */
static bool is_ours(const scheduler *s, const char *instance, uint8_t *scope) {
    *scope = HD_SCOPE_SPACE;
    if (!*instance) return true;
    bool user = !strncmp(instance, "user:", 5);
    *scope = user ? HD_SCOPE_USER : HD_SCOPE_SESSION;
    if (!user && strncmp(instance, "session:", 8)) return false;
    return !strcmp(strchr(instance, ':') + 1, key_bytes(user ? s->rt->principal : s->rt->session));
}

static hd_status add_text(filling *f, const char *text, uint32_t *out) {
    resume_set *set = f->set;
    size_t size = strlen(text) + 1;
    if (!vec_room(f->s->env, &set->text, size)) return HD_NOMEM;
    *out = set->text.count;
    memcpy(set->text.items + set->text.count, text, size);
    set->text.count += (uint32_t)size;
    return HD_OK;
}

static hd_status fill_texts(filling *f, const basis_row *from, set_row *row) {
    hd_status status = add_text(f, from->name, &row->name);
    if (!status) status = add_text(f, from->print, &row->print);
    if (!status) status = add_text(f, from->mark, &row->mark);
    return status ? status : add_text(f, from->hashes, &row->hashes);
}

static hd_status fill_row(filling *f, const basis_row *from, set_row *row) {
    resume_set *set = f->set;
    uint32_t text = set->text.count;
    row->first_read = set->reads.count;
    row->seqs = value_ref(from->seqs);
    f->outputs = 0;
    hd_status status = fill_texts(f, from, row);
    if (!status) status = from->plain.at ? add_plain(f, from->plain) : add_body(f, from->body, row);
    if (status) {
        forget_reads(f->s, set, row->first_read);
        set->text.count = text;
        value_unref(row->seqs);
        return status;
    }
    row->reads = set->reads.count - row->first_read;
    row->outputs = f->outputs;
    return HD_OK;
}

/* A row that cannot be read is left out: its node runs. */
static hd_status enter_row(filling *f, const basis_row *from, uint8_t scope, uint64_t sent_in) {
    resume_set *set = f->set;
    set_row row = { .scope = scope, .sent_in = sent_in };
    if (!vec_room(f->s->env, &set->rows, 1)) return HD_NOMEM;
    hd_status status = fill_row(f, from, &row);
    if (status) return status == HD_NOMEM ? status : HD_OK;
    set->rows.items[set->rows.count++] = row;
    return HD_OK;
}

static hd_status enter_gates(filling *f, const basis_row *from) {
    resume_set *set = f->set;
    gate_row row = { 0 };
    row.debounce_ms = (uint32_t)hd_value_as_int(object_get_bytes(from->body, "debounce", 8), 0);
    row.throttle_ms = (uint32_t)hd_value_as_int(object_get_bytes(from->body, "throttle", 8), 0);
    hd_status status = add_text(f, from->name, &row.name);
    if (!status && !vec_push(f->s->env, &set->gates, row)) status = HD_NOMEM;
    return status;
}

static hd_status enter(filling *f, const basis_row *from, uint64_t sent_in) {
    uint8_t scope;
    if (gone_is(f->s, from->name, from->instance)) return HD_OK;
    if (!strcmp(from->instance, BASIS_GATES)) return enter_gates(f, from);
    return is_ours(f->s, from->instance, &scope) ? enter_row(f, from, scope, sent_in) : HD_OK;
}

/* A row of the store, unless an own commit on its way there says something else of it. */
static bool take_stored(void *ctx, const basis_row *from) {
    filling *f = ctx;
    basis_row row = *from;
    const basis_entry *e = basis_find(&f->sent, from->name, from->instance);
    if (e && (e->gone || value_exists(e->whole))) return true;
    if (e && !basis_is_about(e, row.mark, strlen(row.mark))) return true;
    if (e) {
        row.hashes = basis_item_text(e->item, ROW_HASHES, NULL);
        row.seqs = value_absent();
    }
    f->set->status = enter(f, &row, e ? e->at : 0);
    return !f->set->status;
}

static bool take_sent(void *ctx, const basis_row *from) {
    filling *f = ctx;
    basis_row row = *from;
    const basis_entry *e = basis_find(&f->sent, from->name, from->instance);
    row.seqs = value_absent();
    f->set->status = enter(f, &row, e->at);
    return !f->set->status;
}

/* ---- own commits on their way */

static bool no_space(void *ctx, uint32_t i, struct key **name, uint64_t *seq) {
    (void)ctx, (void)i, (void)name, (void)seq;
    return false;
}

static hd_status gather_sent(filling *f, const list *commits) {
    basis_point now = { NULL, no_space };
    hd_status status = HD_OK;
    LIST_FOR (n, commits) {
        const commit *c = LIST_ENTRY(n, commit, link);
        bool counts = value_exists(c->extra) && c->state != COMMIT_DEAD && c->state != COMMIT_GONE;
        if (counts && !status) status = basis_apply(&f->sent, c->extra, &now, c->local_seq);
    }
    return status;
}

/* ---- order */

static _Thread_local const resume_set *sorting; /* qsort has no context */

static int compare_rows(const void *a, const void *b) {
    const set_row *x = a, *y = b;
    int differs = strcmp(set_text(sorting, x->name), set_text(sorting, y->name));
    return differs ? differs : (x->scope > y->scope) - (x->scope < y->scope);
}

static int compare_gates(const void *a, const void *b) {
    const gate_row *x = a, *y = b;
    return strcmp(set_text(sorting, x->name), set_text(sorting, y->name));
}

/* The narrowest of several rows of a name decides, even if it does not hold (C298). */
static void sort_rows(resume_set *set) {
    uint32_t kept = 0;
    sorting = set;
    if (set->rows.count) qsort(set->rows.items, set->rows.count, sizeof(set_row), compare_rows);
    if (set->gates.count)
        qsort(set->gates.items, set->gates.count, sizeof(gate_row), compare_gates);
    for (uint32_t i = 0; i < set->rows.count; i++) {
        set_row *row = &set->rows.items[i];
        bool again = kept && !strcmp(set_text(set, set->rows.items[kept - 1].name),
                                     set_text(set, row->name));
        if (again) value_unref(set->rows.items[kept - 1].seqs);
        set->rows.items[again ? kept - 1 : kept++] = *row;
    }
    set->rows.count = kept;
}

uint32_t set_first_at_or_after(const resume_set *set, const char *name) {
    uint32_t low = 0, high = set->rows.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (strcmp(set_text(set, set->rows.items[mid].name), name) < 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

static bool is_named(const resume_set *set, uint32_t i, const char *name) {
    return i < set->rows.count && !strcmp(set_text(set, set->rows.items[i].name), name);
}

/* First looks behind the row that was found last: programs often register nodes in the order of names. */
set_row *set_find(resume_set *set, const char *name) {
    uint32_t at = set->next;
    if (!is_named(set, at, name)) at = set_first_at_or_after(set, name);
    if (!is_named(set, at, name)) return NULL;
    set->next = at + 1;
    return &set->rows.items[at];
}

const gate_row *set_find_gate(const resume_set *set, const char *name) {
    uint32_t low = 0, high = set->gates.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int differs = strcmp(set_text(set, set->gates.items[mid].name), name);
        if (!differs) return &set->gates.items[mid];
        if (differs < 0) low = mid + 1;
        else high = mid;
    }
    return NULL;
}

/* ---- what has changed since */

static struct key *space_of(const scheduler *s, uint32_t key) {
    return s->r->places.homes.items[doc_of(s, key & KEY_PLACE)->doc.home].space;
}

static uint64_t as_of(const set_row *row, const struct key *space) {
    hd_value seq = object_get_bytes(row->seqs, key_bytes(space), space->length);
    return (uint64_t)hd_value_as_int(seq, 0);
}

typedef struct since {
    struct key *space; /* of a home, which stays */
    uint64_t seq;      /* the least that a row with reads there is as of */
} since;
typedef VEC(since) since_vec;

static hd_status note_space(scheduler *s, since_vec *spaces, struct key *space, uint64_t seq) {
    for (uint32_t i = 0; i < spaces->count; i++) {
        if (spaces->items[i].space != space) continue;
        if (seq < spaces->items[i].seq) spaces->items[i].seq = seq;
        return HD_OK;
    }
    return vec_push(s->env, spaces, ((since){ space, seq })) ? HD_OK : HD_NOMEM;
}

/* From where on changes must be looked at, in each space. Rows that are on their way are compared in any
 * case. */
static hd_status note_spaces(scheduler *s, const resume_set *set, since_vec *spaces) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < set->rows.count && !status; i++) {
        const set_row *row = &set->rows.items[i];
        const struct key *last = NULL;
        for (uint32_t j = row->first_read; j < row->first_read + row->reads && !status; j++) {
            struct key *space = space_of(s, set->reads.items[j]);
            if (row->sent_in || space == last) continue;
            last = space;
            status = note_space(s, spaces, space, as_of(row, space));
        }
    }
    return status;
}

static uint32_t doc_hash(place_id doc) { return hash_fold(hash_u64(doc)); }

/* Made when the first change is told. */
static hd_status index_docs(scheduler *s, resume_set *set) {
    if (set->changed.count || !set->reads.count) return HD_OK;
    if (!vec_room(s->env, &set->changed, set->reads.count)) return HD_NOMEM;
    if (!vec_room(s->env, &set->rows_of, set->reads.count)) return HD_NOMEM;
    hd_status status = table_reserve(&set->by_doc, set->reads.count);
    for (uint32_t i = 0; i < set->reads.count && !status; i++)
        status = table_insert(
            &set->by_doc, doc_hash(place_at(&s->r->places, set->reads.items[i] & KEY_PLACE)->root),
            i);
    memset(set->changed.items, 0, set->reads.count);
    set->changed.count = set->rows_of.count = set->reads.count;
    for (uint32_t i = 0; i < set->reads.count; i++) set->rows_of.items[i] = UINT32_MAX;
    for (uint32_t i = 0; i < set->rows.count; i++)
        for (uint32_t k = 0; k < set->rows.items[i].reads; k++)
            set->rows_of.items[set->rows.items[i].first_read + k] = i;
    return status;
}

static hd_status mark_changed(scheduler *s, resume_set *set, place_id doc, uint64_t seq) {
    const places *ps = &s->r->places;
    hd_status status = index_docs(s, set);
    if (status) return status;
    for (table_probe at = table_find(&set->by_doc, doc_hash(doc)); table_next(&set->by_doc, &at);) {
        uint32_t key = set->reads.items[at.index], row = set->rows_of.items[at.index];
        if (row == UINT32_MAX || place_at(ps, key & KEY_PLACE)->root != doc) continue;
        if (seq > as_of(&set->rows.items[row], space_of(s, key))) set->changed.items[at.index] = 1;
    }
    return HD_OK;
}

static bool take_change(void *ctx, place_id doc, uint64_t seq) {
    filling *f = ctx;
    f->set->status = mark_changed(f->s, f->set, doc, seq);
    return !f->set->status;
}

/* What this runtime has changed itself, and the store does not know yet. */
static hd_status mark_pending(scheduler *s, resume_set *set, const list *commits) {
    hd_status status = HD_OK;
    LIST_FOR (n, commits) {
        const commit *c = LIST_ENTRY(n, commit, link);
        for (uint32_t i = 0; i < c->ops.count && !status; i++)
            status = mark_changed(s, set, c->ops.items[i].doc, UINT64_MAX);
    }
    return status;
}

static hd_status mark_open(scheduler *s, resume_set *set) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < s->r->unsealed.count && !status; i++)
        if (overlay_is_open(s->r, s->r->unsealed.items[i]))
            status = mark_changed(s, set, s->r->unsealed.items[i], UINT64_MAX);
    return status;
}

static hd_status find_changes(filling *f) {
    scheduler *s = f->s;
    resume_set *set = f->set;
    authority *a = s->r->authority;
    since_vec spaces = { 0 };
    if (SABOTAGED(s, LEAVE_OUT_CHANGES)) return HD_OK;
    hd_status status = note_spaces(s, set, &spaces);
    for (uint32_t i = 0; i < spaces.count && !status; i++) {
        status =
            a->ops->basis->changes(a, spaces.items[i].space, spaces.items[i].seq, take_change, f);
        if (!status) status = set->status;
    }
    vec_fini(s->env, &spaces);
    if (!status) status = mark_pending(s, set, &s->r->pending);
    if (!status) status = mark_pending(s, set, &s->r->queued);
    return status ? status : mark_open(s, set);
}

/* ---- making it */

static hd_status fill(filling *f, const char *piece) {
    scheduler *s = f->s;
    authority *a = s->r->authority;
    hd_status status = gather_sent(f, &s->r->pending);
    if (!status) status = gather_sent(f, &s->r->queued);
    if (!status) status = a->ops->basis->rows(a, piece, take_stored, f);
    if (!status) status = f->set->status;
    if (!status) basis_tell(&f->sent, piece, take_sent, f);
    if (!status) status = f->set->status;
    if (status) return status;
    sort_rows(f->set);
    return find_changes(f);
}

/* Drops what was needed to find out what has changed. */
static void complete(scheduler *s, resume_set *set) {
    for (uint32_t i = 0; i < set->rows.count; i++) {
        value_unref(set->rows.items[i].seqs);
        set->rows.items[i].seqs = value_absent();
    }
    table_fini(&set->by_doc);
    vec_fini(s->env, &set->rows_of);
    set->unclaimed = set->rows.count;
    set->rev = s->r->rev;
}

/* A store that cannot tell has no rows: everything runs, nothing fails (C306). */
resume_set *set_make(scheduler *s, const char *piece) {
    resume_set *set = env_new0(s->env, sizeof *set);
    if (!set) return NULL;
    filling f = { .s = s, .set = set };
    table_init(&set->by_doc, s->env);
    basis_init(&f.sent, s->env, s->r->heap, true);
    hd_status status = fill(&f, piece);
    basis_fini(&f.sent);
    if (status)
        env_log(s->env, HD_LOG_WARN,
                "the rows of piece %s cannot be read (%s): all of its nodes run", piece,
                hd_status_text(status));
    if (status || (!set->rows.count && !set->gates.count)) {
        set_free(s, set);
        return NULL;
    }
    complete(s, set);
    return set;
}

/* ---- does a row hold? */

match set_match(scheduler *s, const resume_set *set, const set_row *row, bool *looked) {
    const uint32_t *keys = set->reads.items ? &set->reads.items[row->first_read] : NULL;
    slots of = { 0 };
    uint32_t mask = row->sent_in ? UINT32_MAX : 0;
    for (uint32_t i = 0; i < row->reads; i++) {
        const place *at = place_at(&s->r->places, keys[i] & KEY_PLACE);
        uint32_t slot = slots_take(&of, at->root);
        bool changed = set->changed.count && set->changed.items[row->first_read + i];
        if (changed || at->rev > set->rev) mask |= UINT32_C(1) << slot;
    }
    *looked = mask;
    return mask ? match_reads(s, keys, row->reads, mask, set_text(set, row->hashes)) : MATCH_YES;
}
