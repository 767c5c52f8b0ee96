/* piece.c -- pieces: a document in the store, and a graph that runs for it.
 *
 *     { "pattern": "shop", "version": "1", "arguments": {...}, "result": link, "started": 3 }
 *
 * The document is the piece; the graph is what this runtime builds for it. The runtime builds first and
 * writes the document afterwards, in the same transaction, because building finds the defaults of the
 * arguments. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "base/hash.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/scheduler.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

/* ---- records */

piece *piece_get(const patterns *all, hd_piece handle) {
    if (!all || !handle.id || handle.id > all->pieces.count) return NULL;
    piece *p = all->pieces.items[handle.id - 1];
    assert(!p || (p->id == handle.id && p->all == all));
    return p && p->generation == handle.generation ? p : NULL;
}

static uint32_t hash_of(const char *space, const char *name) {
    return hash_fold(hash_bytes(name, strlen(name), hash_bytes(space, strlen(space), 0)));
}

static piece *find(const patterns *all, const char *space, const char *name) {
    if (!all) return NULL;
    for (table_probe at = table_find(&all->names, hash_of(space, name));
         table_next(&all->names, &at);) {
        piece *p = all->pieces.items[at.index];
        if (!strcmp(p->name, name) && !strcmp(key_bytes(p->space), space)) return p;
    }
    return NULL;
}

static hd_status take_id(patterns *all, piece *p) {
    assert(!p->id);
    if (!all->free_ids.count) {
        /* free_ids has room for all ids, so that give_id cannot fail. */
        if (!vec_room(all->env, &all->pieces, 1) || !vec_room(all->env, &all->generations, 1) ||
            !vec_room(all->env, &all->free_ids, all->pieces.count + 1))
            return HD_NOMEM;
        all->free_ids.items[all->free_ids.count++] = all->pieces.count;
        all->pieces.items[all->pieces.count++] = NULL;
        all->generations.items[all->generations.count++] = 0;
    }
    uint32_t i = vec_last(&all->free_ids);
    assert(i < all->pieces.count && !all->pieces.items[i]);
    hd_status status = table_insert(&all->names, hash_of(key_bytes(p->space), p->name), i);
    if (status) return status;
    all->free_ids.count--;
    all->pieces.items[i] = p;
    p->id = i + 1;
    p->generation = ++all->generations.items[i];
    return HD_OK;
}

static void give_id(piece *p) {
    patterns *all = p->all;
    if (!p->id) return;
    assert(all->pieces.items[p->id - 1] == p);
    assert(all->free_ids.count < all->free_ids.capacity);
    table_remove(&all->names, hash_of(key_bytes(p->space), p->name), p->id - 1);
    all->pieces.items[p->id - 1] = NULL;
    all->free_ids.items[all->free_ids.count++] = p->id - 1;
    p->id = 0;
}

static void set_parent(piece *p, hd_piece parent) {
    piece *up = piece_get(p->all, parent);
    assert(up != p);
    list_discard(&p->sibling);
    if (up) list_push_back(&up->below, &p->sibling);
    p->parent = parent;
}

static void free_record(piece *p) {
    const hd_env *env = p->all->env;
    give_id(p);
    piece_not_later(p);
    set_parent(p, (hd_piece){ 0, 0 });
    while (list_pop_front(&p->below)) {} /* the children stay, without a parent */
    list_discard(&p->link);
    assert(!list_linked(&p->doomed));
    key_unref(p->space);
    if (p->name) env_free(env, p->name, strlen(p->name) + 1);
    env_free(env, p, sizeof *p);
}

/* The stored rows of its nodes stay in the store for the next start (persistence_stopping). The functions
 * that build_stop calls do not find the piece any more: its id is given back first. */
void piece_forget(piece *p) {
    assert(!list_linked(&p->doomed) && !(p->root && p->root->tx));
    scheduler *s = scheduler_get(p->all->rt);
    give_id(p);
    list_discard(&p->link);
    piece_not_later(p);
    persistence_stopping(s, true);
    if (p->root) build_stop(p->root);
    persistence_stopping(s, false);
    free_record(p);
}

static hd_status open_root(piece *p) {
    const hd_env *env = p->all->env;
    assert(!p->root);
    hd_build *b = env_new0(env, sizeof *b);
    if (!b) return HD_NOMEM;
    size_t length = strlen(p->name) + 1;
    *b = (hd_build){ .all = p->all, .of = p, .what = p->what, .path = env_new(env, length) };
    if (!b->path) {
        env_free(env, b, sizeof *b);
        return HD_NOMEM;
    }
    memcpy(b->path, p->name, length);
    list_init(&b->children);
    list_init(&b->parts);
    p->root = b;
    return HD_OK;
}

/* Makes a record without a build. */
static hd_status piece_new(patterns *all, const char *space, const char *name, const pattern *what,
                           piece **out) {
    assert(!all->closing && !find(all, space, name));
    piece *p = env_new0(all->env, sizeof *p);
    *out = NULL;
    if (!p) return HD_NOMEM;
    *p = (piece){ .all = all, .what = *what };
    list_init(&p->below);
    size_t length = strlen(name) + 1;
    p->document = hd_cell_of(all->rt, space, HD_SCOPE_SPACE, name, "");
    hd_status status = p->document.id ? HD_OK : hd_runtime_error(all->rt)->status;
    if (!status) status = key_make(all->rt->heap, space, strlen(space), &p->space);
    if (!status) status = (p->name = env_new(all->env, length)) ? HD_OK : HD_NOMEM;
    if (!status) memcpy(p->name, name, length);
    if (!status) status = take_id(all, p);
    if (status) {
        free_record(p);
        return status;
    }
    assert(find(all, space, name) == p);
    p->order = ++all->started;
    list_push_back(&all->running, &p->link);
    *out = p;
    return HD_OK;
}

/* ---- building and writing */

static hd_status build(piece *p, hd_tx *tx) {
    hd_status status = open_root(p);
    if (status) return status;
    hd_runtime *rt = p->all->rt;
    bool driven = rt->driven;
    rt->driven = true; /* the building function must not drive or close the runtime */
    p->asked = hd_object();
    build_begin(p->root, tx);
    p->all->building++;
    p->result = p->what.fn(p->root, p->what.ctx);
    assert(p->all->building && p->root && p->id);
    p->all->building--;
    rt->driven = driven;
    status = build_end(p->root);
    scheduler *s = scheduler_get(p->all->rt);
    if (!status && s) persistence_built(s, key_bytes(p->space), p->name);
    return status;
}

static hd_value describe(const piece *p, hd_pool *pool) {
    hd_value v = hd_object();
    v = hd_object_set(pool, v, "pattern", hd_string(pool, p->what.name));
    if (p->what.version) v = hd_object_set(pool, v, "version", hd_string(pool, p->what.version));
    v = hd_object_set(pool, v, "arguments", p->arguments);
    v = hd_object_set(pool, v, "started", hd_int(pool, (int64_t)p->started));
    if (p->result.id)
        v = hd_object_set(pool, v, "result", hd_cell_link(p->all->rt, pool, p->result));
    return v;
}

static hd_value add_change(hd_pool *pool, hd_value changes, const char *key, hd_value v) {
    hd_value one = hd_object_set(pool, hd_object(), "op", hd_string(pool, "set"));
    one = hd_object_set(pool, one, "path", hd_string_f(pool, "/%s", key));
    one = hd_object_set(pool, one, "value", v);
    return hd_array_append(pool, changes, one);
}

/* Writes the members of the document that changed, not the whole document: nodes that read the other
 * members stay valid, and what another runtime writes to those at the same time is not overwritten. */
static hd_status update_document(const piece *p, hd_tx *tx) {
    hd_pool *pool = hd_tx_pool(tx);
    hd_value now = hd_tx_read(tx, p->document, HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM);
    hd_value changes = hd_array();
    if (hd_value_status(now)) return hd_value_status(now);
    for (hd_iter it = hd_iter_of(describe(p, pool)); hd_iter_next(&it);)
        if (!hd_value_equal(it.value, hd_value_at(now, it.key)))
            changes = add_change(pool, changes, it.key, it.value);
    if (hd_value_status(changes)) return hd_value_status(changes);
    return hd_tx_patch(tx, p->document, changes, NULL);
}

/* Whether the document that the runtime sees is confirmed. While a commit below it has no verdict, the
 * whole document is written: if that commit is refused, a partial update would be left on nothing. */
static bool is_certain(const piece *p) {
    const hd_runtime *rt = p->all->rt;
    const hd_schema *schema;
    return p->resumed && !replica_top(&rt->r, runtime_place(rt, p->document, &schema));
}

static hd_status write_document(piece *p, hd_tx *tx) {
    hd_status status = is_certain(p) ? update_document(p, tx)
                                     : hd_tx_set(tx, p->document, describe(p, hd_tx_pool(tx)));
    return status ? status : hd_tx_set_kind(tx, p->document, "piece");
}

static hd_status check_id(const patterns *all, const char *id) {
    if (all->closing) return runtime_fail(all->rt, HD_CLOSED, "the runtime is being closed");
    if (!name_is_plain(id))
        return runtime_fail(all->rt, HD_USAGE, "a piece needs an id, without '/', ':' and '#'");
    if (strcmp(id, "main")) return HD_OK;
    return runtime_fail(
        all->rt, HD_USAGE,
        "a piece cannot have the id \"main\": it means the nodes outside of pieces");
}

static hd_status check_arguments(hd_runtime *rt, const hd_piece_spec *spec) {
    hd_kind kind = hd_value_kind(spec->arguments);
    if (kind == HD_KIND_FAILED) return hd_value_status(spec->arguments);
    if (kind != HD_KIND_ABSENT && kind != HD_KIND_OBJECT)
        return runtime_fail(rt, HD_KIND,
                            "the arguments of a piece are an object: {\"name\": value, ...}");
    return HD_OK;
}

static hd_status find_pattern(const patterns *all, const char *name, const pattern **out) {
    *out = name ? patterns_find(all, name) : NULL;
    if (*out) return HD_OK;
    return runtime_fail(all->rt, HD_NOT_FOUND,
                        "there is no pattern \"%s\": register it first (hd_pattern_register, "
                        "in Python store.use)",
                        name ? name : "");
}

hd_status piece_take(patterns *all, const hd_piece_spec *spec, const char *id, piece **out,
                     bool *fresh) {
    const pattern *what;
    const char *space = spec->space ? spec->space : "main";
    hd_status status = check_id(all, id);
    if (!status) status = check_arguments(all->rt, spec);
    if (!status) status = find_pattern(all, spec->pattern, &what);
    if (status) return status;
    *out = find(all, space, id);
    assert(!*out || list_linked(&(*out)->link));
    *fresh = !*out;
    if (*out && strcmp((*out)->what.name, what->name))
        return runtime_fail(all->rt, HD_USAGE,
                            "the piece \"%s\" runs already, with the pattern \"%s\"", id,
                            (*out)->what.name);
    if (*out && (*out)->stop)
        return runtime_fail(all->rt, HD_USAGE, "the piece \"%s\" is being stopped", id);
    return *out ? HD_OK : piece_new(all, space, id, what, out);
}

/* A member of the piece's document as the transaction sees it. The read makes no dependency and no claim. */
static hd_value stored(const piece *p, hd_tx *tx, const char *key) {
    hd_value v = hd_tx_read(tx, p->document, HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM);
    return hd_value_status(v) ? v : hd_value_at(v, key);
}

/* The stored arguments, and over them those that are given now. */
static hd_value merged(hd_tx *tx, hd_value before, hd_value given) {
    if (hd_value_kind(before) != HD_KIND_OBJECT) before = hd_object();
    for (hd_iter it = hd_iter_of(given); hd_iter_next(&it);)
        before = hd_object_set(hd_tx_pool(tx), before, it.key, it.value);
    return before;
}

/* Whether the document is of a piece that was built (a launch alone writes no result) by the same version
 * of the pattern. */
static bool is_same_code(const piece *p, hd_value document) {
    const char *version = hd_value_as_text(hd_value_at(document, "version"), NULL);
    return version && texts_equal(version, p->what.version) &&
           hd_value_exists(hd_value_at(document, "result"));
}

/* Takes over what the document says of an earlier start. If there is no document, or one of another
 * pattern, the stored rows of the piece's nodes are dropped: they describe other nodes. */
static hd_status recall(piece *p, const hd_piece_spec *spec, hd_tx *tx) {
    hd_value v = hd_tx_read(tx, p->document, HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM);
    if (hd_value_status(v)) return hd_value_status(v);
    bool same = texts_equal(hd_value_as_text(hd_value_at(v, "pattern"), NULL), p->what.name);
    if (!p->started) p->started = (uint64_t)hd_value_as_int(hd_value_at(v, "started"), 0) + 1;
    p->resumed = same && is_same_code(p, v);
    p->arguments =
        merged(tx, same ? hd_value_at(v, "arguments") : (hd_value){ 0 }, spec->arguments);
    scheduler *s = scheduler_of(p->all->rt);
    if (!s) return HD_NOMEM;
    if (!same) persistence_drop_piece(s, key_bytes(p->space), p->name);
    return hd_value_status(p->arguments);
}

/* A piece that waits to be built may have children already, so a parent may turn out to be below it. */
static hd_status take_parent(piece *p, hd_piece parent) {
    const piece *up = piece_get(p->all, parent);
    if (!parent.id) return HD_OK;
    if (!up || up->stop)
        return runtime_fail(p->all->rt, HD_NOT_FOUND, "the parent of the piece \"%s\" does not run",
                            p->name);
    if (up == p || piece_is_below(up, p))
        return runtime_fail(p->all->rt, HD_USAGE, "the piece \"%s\" would be its own parent",
                            p->name);
    set_parent(p, parent);
    return HD_OK;
}

/* Warns of given arguments that the pattern did not ask for: most are misspelt. */
static void tell_unasked(const piece *p, hd_value given) {
    if (hd_value_status(p->asked)) return;
    for (hd_iter it = hd_iter_of(given); hd_iter_next(&it);)
        if (!hd_value_exists(hd_value_at(p->asked, it.key)))
            env_log(p->all->env, HD_LOG_WARN,
                    "the piece \"%s\": the pattern \"%s\" has no argument \"%s\"", p->name,
                    p->what.name, it.key);
}

hd_status piece_begin(piece *p, const hd_piece_spec *spec, hd_tx *tx, bool build_now) {
    assert(p->id && !p->root && !p->stop);
    hd_status status = take_parent(p, spec->parent);
    if (!status) status = recall(p, spec, tx);
    if (!status && build_now) status = build(p, tx);
    if (!status && build_now) tell_unasked(p, spec->arguments);
    if (!status) status = write_document(p, tx);
    p->arguments = (hd_value){ 0 };
    return status;
}

/* Whether the document says already what write_document would write: the result is the same cell as in
 * the earlier start, and no argument got a default. */
static bool reads_as_written(const piece *p, hd_tx *tx) {
    hd_value link = hd_cell_link(p->all->rt, hd_tx_pool(tx), p->result);
    return p->resumed && hd_value_equal(stored(p, tx, "result"), link) &&
           hd_value_equal(stored(p, tx, "arguments"), p->arguments);
}

hd_status piece_build(piece *p) {
    assert(p->id && !p->root && !p->stop);
    hd_tx *tx;
    hd_status status = hd_tx_begin(p->all->rt, &tx);
    if (status) return status;
    p->arguments = stored(p, tx, "arguments");
    status = build(p, tx);
    if (!status && !reads_as_written(p, tx)) status = write_document(p, tx);
    p->arguments = (hd_value){ 0 };
    return tx_end(tx, status, NULL, NULL);
}

hd_status piece_change_arguments(piece *p, const hd_piece_spec *spec, hd_tx *tx) {
    hd_runtime *rt = p->all->rt;
    hd_cell arguments = hd_cell_child(rt, p->document, "arguments");
    hd_status status = arguments.id ? HD_OK : HD_NOMEM;
    for (hd_iter it = hd_iter_of(spec->arguments); !status && hd_iter_next(&it);) {
        hd_cell one = hd_cell_child(rt, arguments, it.key);
        status = one.id ? hd_tx_set(tx, one, it.value) : HD_NOMEM;
    }
    return status;
}

/* ---- starting */

static hd_status check_outside(const patterns *all) {
    if (!all->rt->open && !all->building) return HD_OK;
    return runtime_fail(all->rt, HD_USAGE,
                        "a piece cannot be started inside a transaction or a pattern: see "
                        "hd_tx_launch_piece for the one, hd_build_use for the other");
}

static hd_status failure(const patterns *all, hd_status status, hd_error *error) {
    if (!status || !error) return status;
    const hd_error *last = all ? hd_runtime_error(all->rt) : NULL;
    if (last && last->status == status) *error = *last;
    else env_error(error, status, "%s", hd_status_text(status));
    return status;
}

void piece_wanted(piece *p) {
    assert(p->id && !p->stop);
    p->stopping = p->renounced = false;
    forswear(p->all, p->document, false);
}

void piece_unbuild(piece *p) {
    if (p->root) build_stop(p->root);
    p->root = NULL;
    p->result = (hd_cell){ 0 };
}

hd_status hd_piece_start(hd_runtime *rt, const hd_piece_spec *spec, hd_piece *out,
                         hd_error *error) {
    patterns *all = patterns_of(rt);
    piece *p = NULL;
    hd_tx *tx = NULL;
    bool fresh = false, waits = false;
    hd_piece unwanted;
    if (!out) out = &unwanted;
    *out = (hd_piece){ 0, 0 };
    hd_status status = all ? check_outside(all) : HD_NOMEM;
    if (!status) status = hd_tx_begin(rt, &tx);
    if (status) return failure(all, status, error);
    status = piece_take(all, spec, spec->id, &p, &fresh);
    if (!status) waits = !p->root;
    if (!status)
        status = waits ? piece_begin(p, spec, tx, true) : piece_change_arguments(p, spec, tx);
    status = tx_end(tx, status, NULL, NULL);
    if (status && fresh && p) piece_forget(p);
    else if (status && waits) piece_unbuild(p); /* its launch can still build it */
    if (status) return failure(all, status, error);
    p->launches++; /* stays: a start by the program cannot fail any more */
    piece_wanted(p);
    *out = handle_of(p);
    return HD_OK;
}

/* A document without a result is of a piece that was launched and not built, because the process that
 * launched it ended before. open_or_find builds it afterwards, in a transaction of its own. */
static hd_status open_stored(piece *p, hd_value document, hd_tx *tx) {
    assert(!p->root && !p->opened);
    p->started = (uint64_t)hd_value_as_int(hd_value_at(document, "started"), 0);
    if (!hd_value_exists(hd_value_at(document, "result"))) return HD_OK;
    p->arguments = hd_value_at(document, "arguments");
    p->resumed = is_same_code(p, document);
    p->opened = true;
    hd_status status = build(p, tx);
    p->arguments = (hd_value){ 0 };
    return status;
}

static hd_status open_piece(patterns *all, hd_tx *tx, const char *space, const char *id,
                            piece **out) {
    const pattern *what;
    *out = NULL;
    hd_cell document = hd_cell_of(all->rt, space, HD_SCOPE_SPACE, id, "");
    hd_value v = hd_tx_read(tx, document, HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM);
    if (hd_value_status(v)) return hd_value_status(v);
    const char *name = hd_value_as_text(hd_value_at(v, "pattern"), NULL);
    if (!name) return runtime_fail(all->rt, HD_NOT_FOUND, "%s/%s is no piece", space, id);
    hd_status status = find_pattern(all, name, &what);
    if (!status) status = piece_new(all, space, id, what, out);
    return status ? status : open_stored(*out, v, tx);
}

/* Opening a piece writes nothing, except arguments and state that its code asks for and the store lacks. */
static hd_status end_opening(const piece *p, hd_tx *tx) {
    assert(!p->supplied || p->opened);
    if (p->supplied) return hd_tx_commit(tx, NULL, NULL);
    hd_tx_abort(tx);
    return HD_OK;
}

static hd_status open_or_find(patterns *all, const char *space, const char *id, piece **out) {
    hd_tx *tx;
    *out = NULL;
    hd_status status = check_id(all, id);
    if (status) return status;
    *out = find(all, space, id);
    if (*out && (*out)->stop)
        return runtime_fail(all->rt, HD_USAGE, "the piece \"%s\" is being stopped", id);
    if (*out) return HD_OK;
    status = check_outside(all);
    if (!status) status = hd_tx_begin(all->rt, &tx);
    if (status) return status;
    status = open_piece(all, tx, space, id, out);
    if (status) hd_tx_abort(tx);
    else status = end_opening(*out, tx);
    if (!status && !(*out)->root) status = piece_build(*out);
    if (status && *out) piece_forget(*out);
    if (!status) (*out)->launches++; /* stays, as in hd_piece_start */
    return status;
}

hd_status hd_piece_open(hd_runtime *rt, const char *space, const char *id, hd_piece *out,
                        hd_error *error) {
    patterns *all = patterns_of(rt);
    piece *p;
    hd_piece unwanted;
    if (!out) out = &unwanted;
    *out = (hd_piece){ 0, 0 };
    hd_status status = all ? open_or_find(all, space ? space : "main", id, &p) : HD_NOMEM;
    if (status) return failure(all, status, error);
    piece_wanted(p);
    *out = handle_of(p);
    return HD_OK;
}

/* ---- finding */

hd_piece hd_piece_find(const hd_runtime *rt, const char *space, const char *id) {
    return handle_of(id ? find(patterns_get(rt), space ? space : "main", id) : NULL);
}
