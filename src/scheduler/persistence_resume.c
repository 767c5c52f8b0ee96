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
#include "store/admit.h"
#include "store/basis.h"
#include "store/overlay.h"
#include "value/array.h"
#include "value/key.h"
#include "value/object.h"
#include "value/text.h"
#include <string.h>

typedef struct set_row {
    hd_value name; /* a string, owned */
    char print[HD_ID_SIZE];
    hd_value seqs;              /* proved as of; owned; until the set is complete */
    uint32_t first_read, reads; /* in resume_set.reads */
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
    VEC(uint32_t) reads; /* keys, with a reference to each place */
    VEC(own_seq) own_seqs;
    VEC(since) spaces;
    table names;    /* name -> row */
    table by_doc;   /* document -> read; only if something has changed */
    hd_value valid; /* owned */
    uint64_t rev;   /* the replica's, when this was right */
    uint32_t unclaimed;
    hd_status status; /* while it is being filled */
};
typedef struct resume_set resume_set;

/* ---- freeing */

static void set_free(scheduler *s, resume_set *set) {
    if (!set) return;
    for (uint32_t i = 0; i < set->rows.count; i++) {
        value_unref(set->rows.items[i].name);
        value_unref(set->rows.items[i].seqs);
    }
    for (uint32_t i = 0; i < set->reads.count; i++)
        place_unref(&s->r->places, set->reads.items[i] & KEY_PLACE);
    value_unref(set->valid);
    vec_fini(s->env, &set->rows);
    vec_fini(s->env, &set->reads);
    vec_fini(s->env, &set->own_seqs);
    vec_fini(s->env, &set->spaces);
    table_fini(&set->names);
    table_fini(&set->by_doc);
    env_free(s->env, set, sizeof *set);
}

void resume_free(scheduler *s, kept_piece *of) {
    set_free(s, of->set);
    of->set = NULL;
}

/* ---- reads as they were written down */

typedef struct filling {
    scheduler *s;
    resume_set *set;
} filling;

static bool scope_named(const char *text, size_t length, hd_scope *out) {
    bool user = length == 4 && !memcmp(text, "user", 4);
    *out = user ? HD_SCOPE_USER : HD_SCOPE_SESSION;
    return user || (length == 7 && !memcmp(text, "session", 7));
}

/* "space@scope" */
static hd_status parse_home(scheduler *s, const char *text, size_t length, bool meta,
                            uint32_t *out) {
    const char *at = memchr(text, '@', length);
    size_t name = at ? (size_t)(at - text) : length;
    hd_scope scope = HD_SCOPE_SPACE;
    struct key *space;
    if (at && !scope_named(at + 1, length - name - 1, &scope)) return HD_CORRUPT;
    hd_status status = key_make(s->r->heap, text, name, &space);
    if (status) return status;
    status = runtime_home(s->rt, space, scope, meta, out);
    key_unref(space);
    return status;
}

static hd_status parse_doc(scheduler *s, const char *text, size_t length, place_id *out) {
    bool meta = length && text[length - 1] == '!';
    length -= meta;
    const char *slash = memchr(text, '/', length);
    struct key *id;
    uint32_t home;
    if (!slash || slash == text || slash + 1 == text + length) return HD_CORRUPT;
    hd_status status = parse_home(s, text, (size_t)(slash - text), meta, &home);
    if (!status) status = key_make(s->r->heap, slash + 1, length - (size_t)(slash + 1 - text), &id);
    if (status) return status;
    status = places_doc(&s->r->places, home, id, out);
    key_unref(id);
    return status;
}

/* "~space@scope/id!#/path" */
hd_status resume_parse_read(scheduler *s, hd_value cell, uint32_t *out) {
    size_t length;
    if (hd_value_kind(cell) != HD_KIND_STRING) return HD_CORRUPT;
    const char *text = text_of(cell, &length);
    bool shape = length && *text == '~';
    text += shape;
    length -= shape;
    const char *hash = memchr(text, '#', length);
    size_t whole = hash ? (size_t)(hash - text) : length;
    place_id at;
    hd_status status = parse_doc(s, text, whole, &at);
    if (!status && hash) {
        hd_path path;
        status = path_parse(s->r->heap, hash + 1, length - whole - 1, &path, NULL);
        if (status) return status;
        status = places_inner(&s->r->places, at, path, &at);
        path_unref(s->r->heap, path);
    }
    if (!status) *out = at | (shape ? KEY_SHAPE : 0);
    return status;
}

static hd_status add_read(scheduler *s, resume_set *set, hd_value v) {
    uint32_t key;
    bool own = hd_value_kind(v) == HD_KIND_ARRAY;
    hd_value cell = own ? array_get(v, 0) : v;
    if (!vec_room(s->env, &set->reads, 1)) return HD_NOMEM;
    hd_status status = resume_parse_read(s, cell, &key);
    if (status) return status;
    if (own) {
        own_seq seen = { set->reads.count, (uint64_t)hd_value_as_int(array_get(v, 1), 0) };
        if (!vec_push(s->env, &set->own_seqs, seen)) return HD_NOMEM;
        key |= KEY_NO_CLAIM;
    }
    place_ref(&s->r->places, key & KEY_PLACE);
    set->reads.items[set->reads.count++] = key;
    return HD_OK;
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

static uint32_t text_hash(const char *text, size_t length) {
    return hash_fold(hash_bytes(text, length, 0));
}

static set_row *find_row(const resume_set *set, const char *name, size_t length) {
    table_probe at = table_find(&set->names, text_hash(name, length));
    while (table_next(&set->names, &at)) {
        size_t known;
        const char *text = text_of(set->rows.items[at.index].name, &known);
        if (known == length && !memcmp(text, name, length)) return &set->rows.items[at.index];
    }
    return NULL;
}

static void forget_reads(scheduler *s, resume_set *set, uint32_t count) {
    while (set->reads.count > count) place_unref(&s->r->places, vec_pop(&set->reads) & KEY_PLACE);
    while (set->own_seqs.count && vec_last(&set->own_seqs).read >= count) set->own_seqs.count--;
}

static hd_status fill_row(scheduler *s, resume_set *set, const basis_row *from, set_row *row) {
    hd_value reads = object_get_bytes(from->body, "r", 1);
    hd_status status = hd_value_kind(reads) == HD_KIND_ARRAY ? HD_OK : HD_CORRUPT;
    if (strlen(from->fingerprint) >= sizeof row->print) status = HD_CORRUPT;
    row->first_read = set->reads.count;
    for (hd_iter it = hd_iter_of(reads); !status && hd_iter_next(&it);)
        status = add_read(s, set, it.value);
    if (status) {
        forget_reads(s, set, row->first_read);
        return status;
    }
    row->reads = set->reads.count - row->first_read;
    strcpy(row->print, from->fingerprint);
    row->stale = from->stale;
    row->derived = value_exists(object_get_bytes(from->body, "derived", 7));
    row->seqs = value_ref(from->seqs);
    row->debounce_ms = (uint32_t)hd_value_as_int(object_get_bytes(from->body, "debounce", 8), 0);
    row->throttle_ms = (uint32_t)hd_value_as_int(object_get_bytes(from->body, "throttle", 8), 0);
    return HD_OK;
}

/* The narrowest of several rows of a name decides, even if it is stale (C298). */
static hd_status enter_row(scheduler *s, resume_set *set, const basis_row *from, uint8_t scope) {
    size_t length = strlen(from->name);
    set_row *known = find_row(set, from->name, length);
    set_row fresh = { .scope = scope };
    if (known && known->scope > scope) return HD_OK;
    hd_status status = fill_row(s, set, from, &fresh);
    if (status)
        return status == HD_NOMEM ? status : HD_OK; /* it cannot be read: as if it were not there */
    if (known) {
        value_unref(known->seqs);
        fresh.name = known->name;
        *known = fresh;
        return HD_OK;
    }
    fresh.name = text_string(s->r->heap, from->name, length);
    status = hd_value_status(fresh.name);
    if (!status) status = table_insert(&set->names, text_hash(from->name, length), set->rows.count);
    if (!status && vec_push(s->env, &set->rows, fresh)) return HD_OK;
    if (!status) table_remove(&set->names, text_hash(from->name, length), set->rows.count);
    if (!value_is_failed(fresh.name)) value_unref(fresh.name);
    value_unref(fresh.seqs);
    return HD_NOMEM;
}

static bool take_row(void *ctx, const basis_row *from) {
    filling *f = ctx;
    uint8_t scope;
    if (is_ours(f->s, from->instance, &scope))
        f->set->status = enter_row(f->s, f->set, from, scope);
    return !f->set->status;
}

/* ---- what has changed since */

static struct key *space_of(const scheduler *s, uint32_t key) {
    const places *ps = &s->r->places;
    const place *doc = place_at(ps, place_at(ps, key & KEY_PLACE)->root);
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

/* Rows that read what a change touched, and were proved before it, are stale. */
static hd_status mark_stale(scheduler *s, resume_set *set, const basis_change *change) {
    const places *ps = &s->r->places;
    hd_status status = index_docs(s, set);
    if (status) return status;
    table_probe at = table_find(&set->by_doc, doc_hash(change->doc));
    while (table_next(&set->by_doc, &at)) {
        uint32_t key = set->reads.items[at.index];
        if (place_at(ps, key & KEY_PLACE)->root != change->doc) continue;
        set_row *row = row_of_read(set, at.index);
        if (at.index - row->first_read >= row->reads || row->stale) continue;
        if (change->seq <= proved_read(set, row, at.index, space_of(s, key))) continue;
        row->stale = touch_overlaps(s->r->heap, change->path, change->flags,
                                    place_path(ps, key & KEY_PLACE), key & KEY_SHAPE);
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
    filling f = { s, set };
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
    table_init(&set->names, s->env);
    table_init(&set->by_doc, s->env);
    set->valid = value_absent();
    return set;
}

/* What is needed only to find out what is stale. */
static void set_complete(scheduler *s, resume_set *set) {
    for (uint32_t i = 0; i < set->rows.count; i++) {
        value_unref(set->rows.items[i].seqs);
        set->rows.items[i].seqs = value_absent();
    }
    table_fini(&set->by_doc);
    set->unclaimed = set->rows.count;
    set->rev = s->r->rev;
}

/* A store that cannot tell has no rows: everything runs, nothing fails (C306). */
static void ask(scheduler *s, kept_piece *of) {
    authority *a = s->r->authority;
    resume_set *set = set_new(s);
    size_t length;
    if (!set) return;
    filling f = { s, set };
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

static hd_status install(scheduler *s, node_id id, const resume_set *set, const set_row *row) {
    kept_node *k = kept_of(s, id);
    node *n = node_of(s, id);
    hd_value brief = value_absent();
    const uint32_t *keys = set->reads.items ? &set->reads.items[row->first_read] : NULL;
    bool narrow = row->scope > HD_SCOPE_SPACE;
    hd_status status =
        narrow ? rows_brief(s, row->name, (hd_scope)row->scope, k->print, &brief) : HD_OK;
    if (!status) status = graph_apply_reads(&s->graph, id, keys, row->reads);
    if (status) {
        value_unref(brief);
        return status;
    }
    if (narrow) {
        value_unref(k->brief);
        k->brief = brief;
    }
    n->flags &= ~(uint32_t)NODE_NEVER_RAN;
    n->flags |= NODE_RESUMED;
    n->ran_rev = set->rev;
    k->flags = (uint8_t)(KEPT_ROW | (row->derived ? KEPT_DERIVED : 0));
    k->narrow = row->scope;
    if (row->derived && resume_ask_later(s, id)) return HD_NOMEM;
    restore_gates(s, id, row);
    return row->stale || has_moved(s, set, row) ? HD_OK : graph_mark_clean(&s->graph, id);
}

/* Deletes what nobody will claim. */
static void drop_row(scheduler *s, kept_piece *of, set_row *row) {
    hd_value brief;
    row->claimed = true;
    of->set->unclaimed--;
    if (!rows_brief(s, row->name, (hd_scope)row->scope, value_absent(), &brief))
        persistence_gone(s, brief);
}

static bool drop_told(void *ctx, const basis_row *row) {
    scheduler *s = ctx;
    hd_value brief;
    if (!rows_brief_of(s, row->name, row->instance, &brief)) persistence_gone(s, brief);
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
static bool is_expected(const scheduler *s, const set_row *row) {
    char top[1024];
    size_t length;
    const char *name = text_of(row->name, &length), *slash = strchr(name, '/');
    if (!slash || (size_t)(slash - name) >= sizeof top) return false;
    memcpy(top, name, (size_t)(slash - name));
    top[slash - name] = 0;
    return registry_find(s, 0, top) != 0;
}

void resume_drop_unbuilt(scheduler *s, kept_piece *of) {
    for (uint32_t i = 0; i < of->set->rows.count; i++) {
        set_row *row = &of->set->rows.items[i];
        if (!row->claimed && !is_expected(s, row)) drop_row(s, of, row);
    }
    if (!of->set->unclaimed) resume_free(s, of);
}

/* Rows are in order of name. */
static uint32_t first_at_or_after(const resume_set *set, const char *text) {
    uint32_t low = 0, high = set->rows.count;
    while (low < high) {
        size_t length;
        uint32_t mid = low + (high - low) / 2;
        if (strcmp(text_of(set->rows.items[mid].name, &length), text) < 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

void resume_drop_below(scheduler *s, kept_piece *of, const char *prefix) {
    size_t length, begin = strlen(prefix);
    for (uint32_t i = first_at_or_after(of->set, prefix); i < of->set->rows.count; i++) {
        set_row *row = &of->set->rows.items[i];
        if (strncmp(text_of(row->name, &length), prefix, begin)) break;
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
    if (same && !persistence_is_gone(s, name)) status = install(s, id, of->set, row);
    else k->flags |= KEPT_ROW; /* whatever there is goes, or is replaced */
    claim_row(s, of, row);
    return status;
}
