/* persistence_resume.c -- taking up where a piece was left.
 *
 * The rows of a piece are asked for once, when its first node is registered: a *resume set*. All their
 * reads become places; then the store tells what has changed since, again once, and rows that read it
 * are stale. No document is read. A node that is registered later, by a list or a derived pattern,
 * finds its row in the same set; what has changed between the two is told by the places themselves.
 *
 * Whatever goes wrong with a row makes its node a fresh one, which runs. */
#include "scheduler/persistence.h"

#include "base/env.h"
#include "base/hash.h"
#include "scheduler/causes.h"
#include "store/admit.h"
#include "store/basis.h"
#include "store/overlay.h"
#include "value/array.h"
#include "value/key.h"
#include "value/object.h"
#include "value/text.h"
#include <stdlib.h>
#include <string.h>

typedef struct set_row {
    uint32_t name, name_length; /* in resume_set.names */
    char print[HD_ID_SIZE];
    hd_value seqs;              /* proved as of; owned; until the set is complete */
    uint32_t first_read, reads; /* in resume_set.reads */
    uint32_t outputs;           /* the last of these are not read but written */
    uint32_t debounce_ms, throttle_ms;
    uint8_t scope; /* of its instance: hd_scope */
    bool stale, claimed;
    bool derived; /* it reads what other pieces write */
} set_row;

/* A read that no claim proved: the seq that was seen. */
typedef struct own_seq {
    uint32_t read;
    uint64_t seq;
} own_seq;

typedef struct since {
    struct key *space; /* of a home, which stays */
    uint64_t seq;      /* the least that a row with reads there is proved as of */
} since;

struct resume_set {
    VEC(set_row) rows;   /* in order of name, and of first_read */
    VEC(char) names;     /* theirs, each with its NUL */
    VEC(uint32_t) reads; /* keys, with a reference to each place */
    VEC(own_seq) own_seqs;
    VEC(uint32_t) changed; /* of reads: those found changed; in order when the set is complete */
    VEC(since) spaces;
    table by_doc;   /* document -> read; only if something has changed */
    hd_value valid; /* owned */
    uint64_t rev;   /* the replica's, when this was right */
    uint32_t unclaimed;
    uint32_t next;    /* behind the row that was found last */
    hd_status status; /* while it is being filled */
};
typedef struct resume_set resume_set;

/* ---- freeing */

static void set_free(scheduler *s, resume_set *set) {
    if (!set) return;
    for (uint32_t i = 0; i < set->rows.count; i++) value_unref(set->rows.items[i].seqs);
    for (uint32_t i = 0; i < set->reads.count; i++)
        place_unref(&s->r->places, set->reads.items[i] & KEY_PLACE);
    value_unref(set->valid);
    vec_fini(s->env, &set->rows);
    vec_fini(s->env, &set->reads);
    vec_fini(s->env, &set->own_seqs);
    vec_fini(s->env, &set->changed);
    vec_fini(s->env, &set->spaces);
    vec_fini(s->env, &set->names);
    table_fini(&set->by_doc);
    env_free(s->env, set, sizeof *set);
}

void resume_free(scheduler *s, kept_piece *of) {
    set_free(s, of->set);
    of->set = NULL;
}

/* ---- reads */

typedef struct filling {
    scheduler *s;
    resume_set *set;
    uint32_t home;    /* of the read before, for reads_parse */
    uint32_t outputs; /* of the row so far; reads come before them */
} filling;

static hd_status add_cell(filling *f, const char *text, size_t length, uint32_t flags) {
    resume_set *set = f->set;
    uint32_t key;
    bool output = false;
    if (!vec_room(f->s->env, &set->reads, 1)) return HD_NOMEM;
    hd_status status = reads_parse(f->s, text, length, &f->home, &key, &output);
    if (!status && f->outputs && !output) status = HD_CORRUPT;
    if (status) return status;
    f->outputs += output;
    place_ref(&f->s->r->places, key & KEY_PLACE);
    set->reads.items[set->reads.count++] = key | flags;
    return HD_OK;
}

/* "cell", or [cell, seq] */
static hd_status add_read(filling *f, hd_value v) {
    resume_set *set = f->set;
    bool own = hd_value_kind(v) == HD_KIND_ARRAY;
    hd_value cell = own ? array_get(v, 0) : v;
    size_t length;
    if (hd_value_kind(cell) != HD_KIND_STRING) return HD_CORRUPT;
    if (own) {
        own_seq seen = { set->reads.count, (uint64_t)hd_value_as_int(array_get(v, 1), 0) };
        if (!vec_push(f->s->env, &set->own_seqs, seen)) return HD_NOMEM;
    }
    const char *text = text_of(cell, &length);
    return add_cell(f, text, length, own ? KEY_NO_CLAIM : 0);
}

static hd_status add_plain(filling *f, basis_plain reads) {
    hd_status status = HD_OK;
    const char *cell;
    size_t length;
    while (!status && basis_plain_next(&reads, &cell, &length))
        status = add_cell(f, cell, length, 0);
    return status;
}

static hd_status add_body(filling *f, hd_value body, set_row *row) {
    hd_value reads = object_get_bytes(body, "r", 1);
    hd_status status = hd_value_kind(reads) == HD_KIND_ARRAY ? HD_OK : HD_CORRUPT;
    for (hd_iter it = hd_iter_of(reads); !status && hd_iter_next(&it);)
        status = add_read(f, it.value);
    row->derived = value_exists(object_get_bytes(body, "derived", 7));
    row->debounce_ms = (uint32_t)hd_value_as_int(object_get_bytes(body, "debounce", 8), 0);
    row->throttle_ms = (uint32_t)hd_value_as_int(object_get_bytes(body, "throttle", 8), 0);
    return status;
}

static void forget_reads(scheduler *s, resume_set *set, uint32_t count) {
    while (set->reads.count > count) place_unref(&s->r->places, vec_pop(&set->reads) & KEY_PLACE);
    while (set->own_seqs.count && vec_last(&set->own_seqs).read >= count) set->own_seqs.count--;
}

/* ---- rows */

/* Whether the row is ours to use: of everybody, of this principal, of this session. */
static bool is_ours(const scheduler *s, const char *instance, uint8_t *scope) {
    *scope = HD_SCOPE_SPACE;
    if (!*instance) return true;
    bool user = !strncmp(instance, "user:", 5);
    *scope = user ? HD_SCOPE_USER : HD_SCOPE_SESSION;
    if (!user && strncmp(instance, "session:", 8)) return false;
    return !strcmp(strchr(instance, ':') + 1, key_bytes(user ? s->rt->principal : s->rt->session));
}

static const char *name_of(const resume_set *set, const set_row *row) {
    return &set->names.items[row->name];
}

static bool is_named(const resume_set *set, const set_row *row, const char *name, size_t length) {
    return row->name_length == length && !memcmp(name_of(set, row), name, length);
}

/* Rows are in order of name. */
static uint32_t first_at_or_after(const resume_set *set, const char *text) {
    uint32_t low = 0, high = set->rows.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (strcmp(name_of(set, &set->rows.items[mid]), text) < 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* Most programs register their nodes in one order always, and many in that of their names. */
static set_row *find_row(resume_set *set, const char *name, size_t length) {
    uint32_t at = set->next;
    if (at >= set->rows.count || !is_named(set, &set->rows.items[at], name, length))
        at = first_at_or_after(set, name);
    if (at >= set->rows.count || !is_named(set, &set->rows.items[at], name, length)) return NULL;
    set->next = at + 1;
    return &set->rows.items[at];
}

static hd_status fill_row(filling *f, const basis_row *from, set_row *row) {
    resume_set *set = f->set;
    hd_status status = strlen(from->fingerprint) < sizeof row->print ? HD_OK : HD_CORRUPT;
    row->first_read = set->reads.count;
    f->outputs = 0;
    if (!status) status = from->plain.at ? add_plain(f, from->plain) : add_body(f, from->body, row);
    if (status) {
        forget_reads(f->s, set, row->first_read);
        return status;
    }
    row->reads = set->reads.count - row->first_read;
    row->outputs = f->outputs;
    strcpy(row->print, from->fingerprint);
    row->stale = from->stale;
    row->seqs = value_ref(from->seqs);
    return HD_OK;
}

static hd_status add_name(filling *f, const char *name, size_t length, set_row *row) {
    resume_set *set = f->set;
    if (!vec_room(f->s->env, &set->names, length + 1)) return HD_NOMEM;
    row->name = set->names.count;
    row->name_length = (uint32_t)length;
    memcpy(set->names.items + set->names.count, name, length + 1);
    set->names.count += (uint32_t)length + 1;
    return HD_OK;
}

/* The narrowest of several rows of a name decides, even if it is stale (C298). They come one after the
 * other. */
static hd_status enter_row(filling *f, const basis_row *from, uint8_t scope) {
    resume_set *set = f->set;
    size_t length = strlen(from->name);
    set_row *known = set->rows.count ? &vec_last(&set->rows) : NULL;
    set_row fresh = { .scope = scope };
    if (known && !is_named(set, known, from->name, length)) known = NULL;
    if (known && known->scope > scope) return HD_OK;
    if (!vec_room(f->s->env, &set->rows, 1)) return HD_NOMEM;
    hd_status status = fill_row(f, from, &fresh);
    if (status)
        return status == HD_NOMEM ? status : HD_OK; /* it cannot be read: as if it were not there */
    if (known) {
        known = &vec_last(&set->rows);
        value_unref(known->seqs);
        fresh.name = known->name;
        fresh.name_length = known->name_length;
        *known = fresh;
        return HD_OK;
    }
    status = add_name(f, from->name, length, &fresh);
    if (status) value_unref(fresh.seqs);
    else set->rows.items[set->rows.count++] = fresh;
    return status;
}

static bool take_row(void *ctx, const basis_row *from) {
    filling *f = ctx;
    uint8_t scope;
    if (is_ours(f->s, from->instance, &scope)) f->set->status = enter_row(f, from, scope);
    return !f->set->status;
}

/* ---- what has changed since */

static struct key *space_of(const scheduler *s, uint32_t key) {
    const places *ps = &s->r->places;
    const place *doc = place_doc(ps, key & KEY_PLACE);
    return ps->homes.items[doc->doc.home].space;
}

static uint64_t seq_in(hd_value seqs, const struct key *space) {
    return (uint64_t)hd_value_as_int(object_get_bytes(seqs, key_bytes(space), space->length), 0);
}

/* As of when a row holds in a space. What is said of the whole piece holds for rows of everybody:
 * nobody knows those of another principal. */
static uint64_t proved(const resume_set *set, const set_row *row, const struct key *space) {
    uint64_t own = seq_in(row->seqs, space);
    if (row->stale || row->scope > HD_SCOPE_SPACE) return own;
    uint64_t all = seq_in(set->valid, space);
    return own > all ? own : all;
}

static uint64_t proved_read(const resume_set *set, const set_row *row, uint32_t read,
                            const struct key *space) {
    if (!(set->reads.items[read] & KEY_NO_CLAIM)) return proved(set, row, space);
    for (uint32_t i = 0; i < set->own_seqs.count; i++)
        if (set->own_seqs.items[i].read == read) return set->own_seqs.items[i].seq;
    return 0;
}

static hd_status note_space(scheduler *s, resume_set *set, struct key *space, uint64_t seq) {
    for (uint32_t i = 0; i < set->spaces.count; i++) {
        since *known = &set->spaces.items[i];
        if (known->space != space) continue;
        if (seq < known->seq) known->seq = seq;
        return HD_OK;
    }
    return vec_push(s->env, &set->spaces, ((since){ space, seq })) ? HD_OK : HD_NOMEM;
}

/* From where on changes must be looked at, in each space. */
static hd_status note_spaces(scheduler *s, resume_set *set) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < set->rows.count && !status; i++) {
        const set_row *row = &set->rows.items[i];
        const struct key *last = NULL;
        for (uint32_t j = row->first_read; j < row->first_read + row->reads && !status; j++) {
            struct key *space = space_of(s, set->reads.items[j]);
            if (space == last && !(set->reads.items[j] & KEY_NO_CLAIM)) continue;
            last = space;
            status = note_space(s, set, space, proved_read(set, row, j, space));
        }
    }
    return status;
}

static set_row *row_of_read(resume_set *set, uint32_t read) {
    uint32_t low = 0, high = set->rows.count;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (set->rows.items[mid].first_read <= read) low = mid;
        else high = mid;
    }
    return &set->rows.items[low];
}

static uint32_t doc_hash(place_id doc) { return hash_fold(hash_u64(doc)); }

static hd_status index_docs(scheduler *s, resume_set *set) {
    if (table_count(&set->by_doc) || !set->reads.count) return HD_OK;
    hd_status status = table_reserve(&set->by_doc, set->reads.count);
    for (uint32_t i = 0; i < set->reads.count && !status; i++) {
        place_id doc = place_at(&s->r->places, set->reads.items[i] & KEY_PLACE)->root;
        status = table_insert(&set->by_doc, doc_hash(doc), i);
    }
    return status;
}

/* Rows that read what a change touched, or should mend it, and were proved before it, are stale. */
static hd_status mark_stale(scheduler *s, resume_set *set, const basis_change *change) {
    const places *ps = &s->r->places;
    hd_status status = index_docs(s, set);
    if (status) return status;
    table_probe at = table_find(&set->by_doc, doc_hash(change->doc));
    while (table_next(&set->by_doc, &at)) {
        uint32_t key = set->reads.items[at.index];
        if (place_at(ps, key & KEY_PLACE)->root != change->doc) continue;
        set_row *row = row_of_read(set, at.index);
        if (at.index - row->first_read >= row->reads) continue;
        if (change->seq <= proved_read(set, row, at.index, space_of(s, key))) continue;
        if (!touch_overlaps(s->r->heap, change->path, change->flags,
                            place_path(ps, key & KEY_PLACE), key & KEY_SHAPE))
            continue;
        row->stale = true;
        if (!vec_push(s->env, &set->changed, at.index)) return HD_NOMEM;
    }
    return HD_OK;
}

static bool take_change(void *ctx, const basis_change *change) {
    filling *f = ctx;
    f->set->status = mark_stale(f->s, f->set, change);
    return !f->set->status;
}

/* What this runtime has changed itself, and the store does not know yet. */
static hd_status mark_pending(scheduler *s, resume_set *set, const list *commits) {
    hd_status status = HD_OK;
    LIST_FOR (n, commits) {
        const commit *c = LIST_ENTRY(n, commit, link);
        for (uint32_t i = 0; i < c->ops.count && !status; i++) {
            const op *o = &c->ops.items[i];
            bool whole = o->path == HD_PATH_ROOT;
            basis_change change = { o->doc, UINT64_MAX, o->path,
                                    (uint8_t)(TOUCH_KEYS | TOUCH_WAY | (whole ? TOUCH_WHOLE : 0)) };
            status = mark_stale(s, set, &change);
        }
    }
    return status;
}

static hd_status mark_open(scheduler *s, resume_set *set) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < s->r->unsealed.count && !status; i++) {
        place_id doc = s->r->unsealed.items[i];
        if (!overlay_is_open(s->r, doc)) continue;
        basis_change change = { doc, UINT64_MAX, HD_PATH_ROOT, TOUCH_WHOLE };
        status = mark_stale(s, set, &change);
    }
    return status;
}

static hd_status find_changes(scheduler *s, resume_set *set) {
    authority *a = s->r->authority;
    filling f = { .s = s, .set = set };
    if (SABOTAGED(s, LEAVE_OUT_CHANGES)) return HD_OK;
    hd_status status = note_spaces(s, set);
    for (uint32_t i = 0; i < set->spaces.count && !status; i++) {
        const since *from = &set->spaces.items[i];
        status = a->ops->basis->changes(a, from->space, from->seq, take_change, &f);
        if (!status) status = set->status;
    }
    if (!status) status = mark_pending(s, set, &s->r->pending);
    if (!status) status = mark_pending(s, set, &s->r->queued);
    return status ? status : mark_open(s, set);
}

/* ---- the set of a piece */

static resume_set *set_new(scheduler *s) {
    resume_set *set = env_new0(s->env, sizeof *set);
    if (!set) return NULL;
    table_init(&set->by_doc, s->env);
    set->valid = value_absent();
    return set;
}

static int by_index(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* What is needed only to find out what is stale. */
static void set_complete(scheduler *s, resume_set *set) {
    for (uint32_t i = 0; i < set->rows.count; i++) {
        value_unref(set->rows.items[i].seqs);
        set->rows.items[i].seqs = value_absent();
    }
    table_fini(&set->by_doc);
    if (set->changed.count)
        qsort(set->changed.items, set->changed.count, sizeof(uint32_t), by_index);
    set->unclaimed = set->rows.count;
    set->rev = s->r->rev;
}

/* A store that cannot tell has no rows: everything runs, nothing fails (C306). */
static void ask(scheduler *s, kept_piece *of) {
    authority *a = s->r->authority;
    resume_set *set = set_new(s);
    size_t length;
    if (!set) return;
    filling f = { .s = s, .set = set };
    const char *name = text_of(of->name, &length);
    hd_status status = a->ops->basis->rows(a, name, &set->valid, take_row, &f);
    if (!status) status = set->status;
    if (!status && set->rows.count) status = find_changes(s, set);
    if (status || !set->rows.count) {
        if (status)
            env_log(s->env, HD_LOG_WARN,
                    "what is known of the piece %s cannot be read (%s): it runs", name,
                    hd_status_text(status));
        set_free(s, set);
        return;
    }
    set_complete(s, set);
    of->set = set;
}

/* ---- a node */

/* Whether something the row reads has changed since the set was made. */
static bool has_moved(const scheduler *s, const resume_set *set, const set_row *row) {
    for (uint32_t i = row->first_read; i < row->first_read + row->reads; i++)
        if (place_at(&s->r->places, set->reads.items[i] & KEY_PLACE)->rev > set->rev) return true;
    return false;
}

static void restore_gates(scheduler *s, node_id id, const set_row *row) {
    kept_node *k = kept_of(s, id);
    k->debounce_ms = row->debounce_ms;
    k->throttle_ms = row->throttle_ms;
    if (!row->debounce_ms && !row->throttle_ms) return;
    cold *c = registry_cold(s, id);
    if (!c) return;
    if (!c->gate.debounce_ms) c->gate.debounce_ms = row->debounce_ms;
    if (!c->gate.throttle_ms) c->gate.throttle_ms = row->throttle_ms;
    node_of(s, id)->flags |= NODE_GATED;
}

hd_status resume_ask_later(scheduler *s, node_id id) {
    return vec_push(s->env, &s->persistence->unasked, id) ? HD_OK : HD_NOMEM;
}

/* What was found changed causes its first run here (section 10). What it should mend is no read. */
static void note_causes(scheduler *s, node_id id, const resume_set *set, const set_row *row) {
    uint32_t low = 0, high = set->changed.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (set->changed.items[mid] < row->first_read) low = mid + 1;
        else high = mid;
    }
    uint32_t end = row->first_read + row->reads - row->outputs;
    for (; low < set->changed.count && set->changed.items[low] < end; low++)
        causes_add(s, id, set->reads.items[set->changed.items[low]] & KEY_PLACE);
}

static hd_status install(scheduler *s, node_id id, const resume_set *set, const set_row *row) {
    kept_node *k = kept_of(s, id);
    node *n = node_of(s, id);
    const uint32_t *keys = set->reads.items ? &set->reads.items[row->first_read] : NULL;
    hd_status status = graph_apply_reads(&s->graph, id, keys, row->reads - row->outputs);
    if (status) return status;
    assert(value_is_absent(k->brief)); /* it will be that of the row's scope */
    n->flags &= ~(uint32_t)NODE_NEVER_RAN;
    n->flags |= NODE_RESUMED;
    n->ran_rev = set->rev;
    k->flags = (uint8_t)((k->flags & KEPT_MENDS) | KEPT_ROW | (row->derived ? KEPT_DERIVED : 0));
    k->narrow = row->scope;
    if (row->derived && resume_ask_later(s, id)) return HD_NOMEM;
    restore_gates(s, id, row);
    if (row->stale) note_causes(s, id, set, row);
    return row->stale || has_moved(s, set, row) ? HD_OK : graph_mark_clean(&s->graph, id);
}

/* Deletes what nobody will claim. */
static void drop_row(scheduler *s, kept_piece *of, set_row *row) {
    hd_value name = text_string(s->r->heap, name_of(of->set, row), row->name_length), brief;
    row->claimed = true;
    of->set->unclaimed--;
    if (!rows_brief(s, name, (hd_scope)row->scope, value_absent(), &brief)) gone_add(s, brief);
}

static bool drop_told(void *ctx, const basis_row *row) {
    scheduler *s = ctx;
    hd_value brief;
    if (!rows_brief_of(s, row->name, row->instance, &brief)) gone_add(s, brief);
    return true;
}

void resume_drop_all(scheduler *s, const char *piece) {
    authority *a = s->r->authority;
    hd_value valid = value_absent();
    hd_status status = a->ops->basis->rows(a, piece, &valid, drop_told, s);
    if (status)
        env_log(s->env, HD_LOG_WARN, "what is known of the piece %s cannot be deleted: %s", piece,
                hd_status_text(status));
    value_unref(valid);
}

/* A row below a node that is there waits for that one to run. */
static bool is_expected(const scheduler *s, const char *name) {
    const char *slash = strchr(name, '/');
    return slash && registry_find(s, 0, name, (size_t)(slash - name)) != 0;
}

void resume_drop_unbuilt(scheduler *s, kept_piece *of) {
    for (uint32_t i = 0; i < of->set->rows.count; i++) {
        set_row *row = &of->set->rows.items[i];
        if (!row->claimed && !is_expected(s, name_of(of->set, row))) drop_row(s, of, row);
    }
    if (!of->set->unclaimed) resume_free(s, of);
}

void resume_drop_below(scheduler *s, kept_piece *of, const char *prefix) {
    size_t begin = strlen(prefix);
    for (uint32_t i = first_at_or_after(of->set, prefix); i < of->set->rows.count; i++) {
        set_row *row = &of->set->rows.items[i];
        if (strncmp(name_of(of->set, row), prefix, begin)) break;
        if (!row->claimed) drop_row(s, of, row);
    }
    if (!of->set->unclaimed) resume_free(s, of);
}

static void claim_row(scheduler *s, kept_piece *of, set_row *row) {
    row->claimed = true;
    if (--of->set->unclaimed == 0) resume_free(s, of);
}

hd_status resume_take(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    kept_piece *of = &s->persistence->pieces.items[k->piece];
    size_t length, print_length;
    const char *name = kept_name(k, &length);
    if (!of->asked) {
        of->asked = true;
        ask(s, of);
    }
    set_row *row = of->set ? find_row(of->set, name, length) : NULL;
    if (!row || row->claimed) return HD_OK;
    hd_status status = HD_OK;
    bool same = !strcmp(row->print, text_of(k->print, &print_length));
    if (same && !gone_is(s, name, length)) status = install(s, id, of->set, row);
    else k->flags |= KEPT_ROW; /* whatever there is goes, or is replaced */
    claim_row(s, of, row);
    return status;
}
