/* piece.c -- pieces: a document in the store, and a graph that runs for it.
 *
 *     { "pattern": "shop", "version": "1", "arguments": {...}, "result": link, "started": 3 }
 *
 * The document is the piece; the graph is what this runtime makes of it. Building goes before writing,
 * because defaults of arguments are found while building, and both are in one transaction. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "base/hash.h"
#include "scheduler/persistence.h"
#include "scheduler/scheduler.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

/* ---- records */

piece *piece_get(const patterns *all, hd_piece handle) {
    if (!all || !handle.id || handle.id > all->pieces.count) return NULL;
    piece *p = all->pieces.items[handle.id - 1];
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
    if (!all->free_ids.count) {
        /* Room for each id to be free again, so that letting go cannot fail. */
        if (!vec_room(all->env, &all->pieces, 1) || !vec_room(all->env, &all->generations, 1) ||
            !vec_room(all->env, &all->free_ids, all->pieces.count + 1))
            return HD_NOMEM;
        all->free_ids.items[all->free_ids.count++] = all->pieces.count;
        all->pieces.items[all->pieces.count++] = NULL;
        all->generations.items[all->generations.count++] = 0;
    }
    uint32_t i = vec_last(&all->free_ids);
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
    table_remove(&all->names, hash_of(key_bytes(p->space), p->name), p->id - 1);
    all->pieces.items[p->id - 1] = NULL;
    all->free_ids.items[all->free_ids.count++] = p->id - 1;
    p->id = 0;
}

static void free_record(piece *p) {
    const hd_env *env = p->all->env;
    give_id(p);
    list_discard(&p->link);
    key_unref(p->space);
    if (p->name) env_free(env, p->name, strlen(p->name) + 1);
    env_free(env, p, sizeof *p);
}

/* What is known of its nodes stays, for the next time. Those who are told of the end find it gone. */
void piece_forget(piece *p) {
    scheduler *s = scheduler_get(p->all->rt);
    give_id(p);
    list_discard(&p->link);
    persistence_stopping(s, true);
    if (p->root) build_stop(p->root);
    persistence_stopping(s, false);
    free_record(p);
}

static hd_status open_root(piece *p) {
    const hd_env *env = p->all->env;
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

/* A record, with nothing built. */
static hd_status piece_new(patterns *all, const char *space, const char *name, const pattern *what,
                           piece **out) {
    piece *p = env_new0(all->env, sizeof *p);
    *out = NULL;
    if (!p) return HD_NOMEM;
    *p = (piece){ .all = all, .what = *what };
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
    p->order = ++all->started;
    list_push_back(&all->running, &p->link);
    patterns_forswear(all, space, name, false);
    *out = p;
    return HD_OK;
}

/* ---- building and writing */

static hd_status build(piece *p, hd_tx *tx) {
    hd_status status = open_root(p);
    if (status) return status;
    build_begin(p->root, tx);
    p->all->building++;
    p->result = p->what.fn(p->root);
    p->all->building--;
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

static hd_status write_document(piece *p, hd_tx *tx) {
    hd_status status = hd_tx_set(tx, p->document, describe(p, hd_tx_pool(tx)));
    return status ? status : hd_tx_set_kind(tx, p->document, "piece");
}

static hd_status check_spec(hd_runtime *rt, const hd_piece_spec *spec, const char *id) {
    if (!id || !name_is_plain(id))
        return runtime_fail(rt, HD_USAGE, "a piece needs an id, without '/', ':' and '#'");
    if (!strcmp(id, "main"))
        return runtime_fail(rt, HD_USAGE,
                            "\"main\" are the nodes outside of pieces: the piece needs another id");
    hd_kind kind = hd_value_kind(spec->arguments);
    if (kind == HD_KIND_FAILED) return hd_value_status(spec->arguments);
    if (kind != HD_KIND_ABSENT && kind != HD_KIND_OBJECT)
        return runtime_fail(rt, HD_KIND, "the arguments of a piece are an object");
    return HD_OK;
}

static hd_status find_pattern(const patterns *all, const char *name, const pattern **out) {
    *out = name ? patterns_find(all, name) : NULL;
    if (*out) return HD_OK;
    return runtime_fail(all->rt, HD_NOT_FOUND, "there is no pattern \"%s\"", name ? name : "");
}

/* The piece of this spec: the one that runs, or a new one. */
static hd_status take_piece(patterns *all, const hd_piece_spec *spec, const char *id, piece **out,
                            bool *fresh) {
    const pattern *what;
    const char *space = spec->space ? spec->space : "main";
    hd_status status = check_spec(all->rt, spec, id);
    if (!status) status = find_pattern(all, spec->pattern, &what);
    if (status) return status;
    *out = find(all, space, id);
    *fresh = !*out;
    if (*out && strcmp((*out)->what.name, what->name))
        return runtime_fail(all->rt, HD_USAGE, "the piece \"%s\" runs already, as a \"%s\"", id,
                            (*out)->what.name);
    if (*out && (*out)->going)
        return runtime_fail(all->rt, HD_USAGE, "the piece \"%s\" is being stopped", id);
    return *out ? HD_OK : piece_new(all, space, id, what, out);
}

/* What the transaction sees of the document, without depending on it. */
static hd_value stored(const piece *p, hd_tx *tx, const char *key) {
    hd_value v = hd_tx_read(tx, p->document, HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM);
    return hd_value_status(v) ? v : hd_value_at(v, key);
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* The stored arguments, and over them those that are given now. */
static hd_value merged(hd_tx *tx, hd_value before, hd_value given) {
    if (hd_value_kind(before) != HD_KIND_OBJECT) before = hd_object();
    for (hd_iter it = hd_iter_of(given); hd_iter_next(&it);)
        before = hd_object_set(hd_tx_pool(tx), before, it.key, it.value);
    return before;
}

/* What the document says of an earlier life. One of another pattern, or none: nothing that is known
 * of its nodes is of any use. */
static hd_status recall(piece *p, const hd_piece_spec *spec, hd_tx *tx) {
    hd_value v = hd_tx_read(tx, p->document, HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM);
    if (hd_value_status(v)) return hd_value_status(v);
    bool same = same_text(hd_value_as_text(hd_value_at(v, "pattern"), NULL), p->what.name);
    const char *version = hd_value_as_text(hd_value_at(v, "version"), NULL);
    p->started = (uint64_t)hd_value_as_int(hd_value_at(v, "started"), 0) + 1;
    p->resumed = same && version && same_text(version, p->what.version);
    p->arguments =
        merged(tx, same ? hd_value_at(v, "arguments") : (hd_value){ 0 }, spec->arguments);
    scheduler *s = scheduler_of(p->all->rt);
    if (!s) return HD_NOMEM;
    if (!same) persistence_drop_piece(s, key_bytes(p->space), p->name);
    return hd_value_status(p->arguments);
}

static hd_status start_fresh(piece *p, const hd_piece_spec *spec, hd_tx *tx, bool build_now) {
    hd_status status = recall(p, spec, tx);
    if (status) return status;
    if (spec->parent.id) p->parent = spec->parent;
    status = build_now ? build(p, tx) : HD_OK;
    if (!status) status = write_document(p, tx);
    p->arguments = (hd_value){ 0 };
    return status;
}

static hd_status change_arguments(piece *p, const hd_piece_spec *spec, hd_tx *tx) {
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

static hd_status failure(const patterns *all, hd_status status, hd_error *error) {
    if (!status || !error) return status;
    const hd_error *last = all ? hd_runtime_error(all->rt) : NULL;
    if (last && last->status == status) *error = *last;
    else env_error(error, status, "%s", hd_status_text(status));
    return status;
}

/* Of a piece that was launched and waits: the launch can still build it. */
static void unbuild(piece *p) {
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
    *out = (hd_piece){ 0, 0 };
    hd_status status = all ? hd_tx_begin(rt, &tx) : HD_NOMEM;
    if (status) return failure(all, status, error);
    status = take_piece(all, spec, spec->id, &p, &fresh);
    if (!status) waits = !p->root;
    if (!status) status = waits ? start_fresh(p, spec, tx, true) : change_arguments(p, spec, tx);
    if (status) hd_tx_abort(tx);
    else status = hd_tx_commit(tx, NULL, NULL);
    if (status && fresh && p) piece_forget(p);
    else if (status && waits) unbuild(p);
    if (status) return failure(all, status, error);
    p->launches++;       /* by the program: never taken back */
    p->stopping = false; /* whoever wanted that did so before */
    *out = handle_of(p);
    return HD_OK;
}

static hd_status open_stored(piece *p, hd_tx *tx) {
    p->arguments = stored(p, tx, "arguments");
    p->started = (uint64_t)hd_value_as_int(stored(p, tx, "started"), 0);
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
    hd_value v = hd_tx_get(tx, document);
    if (hd_value_status(v)) return hd_value_status(v);
    const char *name = hd_value_as_text(hd_value_at(v, "pattern"), NULL);
    if (!name) return runtime_fail(all->rt, HD_NOT_FOUND, "%s/%s is no piece", space, id);
    hd_status status = find_pattern(all, name, &what);
    if (!status) status = piece_new(all, space, id, what, out);
    return status ? status : open_stored(*out, tx);
}

hd_status hd_piece_open(hd_runtime *rt, const char *space, const char *id, hd_piece *out,
                        hd_error *error) {
    patterns *all = patterns_of(rt);
    hd_tx *tx;
    *out = hd_piece_find(rt, space, id);
    if (out->id) return HD_OK;
    if (!name_is_plain(id)) return failure(all, HD_USAGE, error);
    hd_status status = all ? hd_tx_begin_read(rt, &tx) : HD_NOMEM;
    if (status) return failure(all, status, error);
    piece *p;
    status = open_piece(all, tx, space, id, &p);
    hd_tx_abort(tx);
    if (status && p) piece_forget(p);
    if (status) return failure(all, status, error);
    p->launches++;
    *out = handle_of(p);
    return HD_OK;
}

/* ---- stopping */

static bool is_below(const piece *p, const piece *above) {
    for (hd_piece up = p->parent; up.id;) {
        const piece *q = piece_get(p->all, up);
        if (q == above) return true;
        up = q ? q->parent : (hd_piece){ 0, 0 };
    }
    return false;
}

/* While the nodes can vouch for what they know. */
static void keep_all(piece *p) {
    patterns *all = p->all;
    scheduler *s = scheduler_get(all->rt);
    LIST_FOR (at, &all->running) {
        const piece *q = LIST_ENTRY(at, piece, link);
        if (s && (q == p || is_below(q, p))) persistence_stops(s, key_bytes(q->space), q->name);
    }
    runtime_seal(all->rt, true);
}

static piece *last_of(const patterns *all) {
    return list_empty(&all->running) ? NULL : LIST_ENTRY(list_last(&all->running), piece, link);
}

/* Children were started after their parents: the latest first. Whoever is told that his piece stops
 * may stop others: the next may be gone by then. */
static void stop_children(const piece *p) {
    patterns *all = p->all;
    for (piece *q = last_of(all); q;) {
        list_node *before = list_before(&all->running, &q->link);
        piece *next = before ? LIST_ENTRY(before, piece, link) : NULL;
        hd_piece handle = handle_of(next);
        if (!q->going && is_below(q, p)) piece_forget(q);
        q = !next || piece_get(all, handle) == next ? next : last_of(all);
    }
}

static void stop_now(piece *p) {
    patterns *all = p->all;
    p->going = true;
    patterns_forswear(all, key_bytes(p->space), p->name, true);
    if (!all->rt->open) keep_all(p);
    stop_children(p);
    piece_forget(p);
}

static void *pack(hd_piece h) { return (void *)(uintptr_t)((uint64_t)h.generation << 32 | h.id); }

static void stop_posted(hd_runtime *rt, void *ctx) {
    uint64_t word = (uint64_t)(uintptr_t)ctx;
    hd_work_end(rt, HD_OK);
    piece *p = piece_get(patterns_get(rt), (hd_piece){ (uint32_t)word, (uint32_t)(word >> 32) });
    if (p && p->stopping && !p->going) stop_now(p);
}

void hd_piece_stop(hd_runtime *rt, hd_piece handle) {
    piece *p = piece_get(patterns_get(rt), handle);
    if (!p || p->going) return;
    if (!rt->in_run && !p->all->building) {
        stop_now(p);
        return;
    }
    /* Its own node may be the one that runs, or its pattern the one that builds. Idle waits for the
     * post; without memory for it the piece goes on. */
    if (p->stopping || hd_runtime_post(rt, stop_posted, pack(handle))) return;
    hd_work_begin(rt);
    p->stopping = true;
}

/* ---- launching with a transaction
 *
 * A launch is told what became of its transaction, once. A piece that two deliveries of an event
 * launch is one piece, and goes when both have failed. */

static void build_launched(piece *p) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(p->all->rt, &tx);
    if (!status) {
        p->arguments = stored(p, tx, "arguments");
        status = build(p, tx);
        if (!status) status = write_document(p, tx);
        if (status) hd_tx_abort(tx);
        else status = hd_tx_commit(tx, NULL, NULL);
    }
    p->arguments = (hd_value){ 0 };
    if (!status) return;
    env_log(p->all->env, HD_LOG_ERROR, "the piece \"%s\" could not be started: %s", p->name,
            hd_runtime_error(p->all->rt)->message);
    piece_forget(p);
}

static void build_posted(hd_runtime *rt, void *ctx) {
    uint64_t word = (uint64_t)(uintptr_t)ctx;
    hd_work_end(rt, HD_OK);
    piece *p = piece_get(patterns_get(rt), (hd_piece){ (uint32_t)word, (uint32_t)(word >> 32) });
    if (!p || p->root || p->stopping) return;
    bool orphan = p->parent.id && !piece_get(p->all, p->parent);
    if (orphan) piece_forget(p);
    else build_launched(p);
}

/* Outside of the run or the verdict that asks for it; idle waits for it. */
static hd_status post_build(hd_runtime *rt, hd_piece handle) {
    hd_status status = hd_runtime_post(rt, build_posted, pack(handle));
    if (!status) hd_work_begin(rt);
    return status;
}

static void launch_decided(void *ctx, hd_status status) {
    launch *l = ctx;
    piece *p = piece_get(l->all, l->piece);
    hd_runtime *rt = l->all->rt;
    if (p && status && --p->launches == 0) hd_piece_stop(rt, l->piece);
    if (p && !status && l->deferred && !p->root) post_build(rt, l->piece);
    list_remove(&l->link);
    env_free(l->all->env, l, sizeof *l);
}

static hd_status follow_fate(hd_tx *tx, piece *p, bool deferred) {
    launch *l = env_new(p->all->env, sizeof *l);
    if (!l) return HD_NOMEM;
    *l = (launch){ .all = p->all, .piece = handle_of(p), .deferred = deferred };
    hd_status status = hd_tx_after_commit(tx, launch_decided, l);
    if (status) {
        env_free(p->all->env, l, sizeof *l);
        return status;
    }
    list_push_back(&p->all->launches, &l->link);
    p->launches++;
    return HD_OK;
}

/* A node of the piece must not become a child of the effect that launches it. */
static bool must_wait(const hd_runtime *rt, const hd_piece_spec *spec) {
    const scheduler *s = scheduler_get(rt);
    return spec->after_commit || (s && s->running);
}

hd_status hd_tx_launch_piece(hd_tx *tx, const hd_piece_spec *spec, hd_piece *out) {
    hd_runtime *rt = hd_tx_runtime(tx);
    patterns *all = patterns_of(rt);
    char minted[HD_ID_SIZE];
    const char *id = spec->id;
    piece *p = NULL;
    bool fresh = false, wait = must_wait(rt, spec);
    *out = (hd_piece){ 0, 0 };
    if (!all) return HD_NOMEM;
    hd_status status = id ? HD_OK : hd_tx_mint(tx, minted);
    if (!status) status = take_piece(all, spec, id ? id : minted, &p, &fresh);
    if (status) return status;
    status = fresh ? start_fresh(p, spec, tx, !wait) : change_arguments(p, spec, tx);
    if (!status) status = follow_fate(tx, p, spec->after_commit);
    if (!status && fresh && wait && !spec->after_commit) status = post_build(rt, handle_of(p));
    if (!status) {
        p->stopping = false; /* as in hd_piece_start */
        *out = handle_of(p);
    } else if (fresh) piece_forget(p);
    return status;
}

/* ---- removing */

typedef struct removal {
    patterns *all;
    hd_tx *tx;
    hd_status status;
} removal;

static bool remove_document(void *ctx, const hd_listing *entry) {
    removal *r = ctx;
    hd_cell doc = hd_cell_of(r->all->rt, entry->space, entry->scope, entry->id, "");
    r->status = doc.id ? hd_tx_remove(r->tx, doc) : HD_NOMEM;
    return !r->status;
}

/* Of a piece that has been stopped; `prefix` is that of its documents: "corner/". */
static hd_status remove_documents(removal *r, hd_cell document, const char *space,
                                  const char *prefix) {
    hd_status status = hd_runtime_sync(r->all->rt); /* so that the list has everything */
    if (!status) status = hd_tx_begin(r->all->rt, &r->tx);
    if (status) return status;
    status = hd_tx_remove(r->tx, document);
    if (!status) status = hd_runtime_list(r->all->rt, space, NULL, prefix, remove_document, r);
    if (!status) status = r->status;
    if (!status) return hd_tx_commit(r->tx, NULL, NULL);
    hd_tx_abort(r->tx);
    return status;
}

static hd_status remove_piece(piece *p, char *prefix, size_t length) {
    removal r = { .all = p->all };
    hd_cell document = p->document;
    struct key *space = p->space;
    memcpy(prefix, p->name, length + 1);
    key_ref(space);
    stop_now(p);
    persistence_drop_piece(scheduler_get(r.all->rt), key_bytes(space), prefix);
    memcpy(prefix + length, "/", 2);
    hd_status status = remove_documents(&r, document, key_bytes(space), prefix);
    key_unref(space);
    return status;
}

hd_status hd_piece_remove(hd_runtime *rt, hd_piece handle) {
    patterns *all = patterns_get(rt);
    piece *p = piece_get(all, handle);
    if (!p) return HD_NOT_FOUND;
    if (rt->in_run || all->building)
        return runtime_fail(rt, HD_USAGE, "a piece cannot be removed inside a run or a pattern");
    if (p->going) return runtime_fail(rt, HD_USAGE, "the piece \"%s\" is being stopped", p->name);
    size_t length = strlen(p->name);
    char *prefix = env_new(all->env, length + 2);
    if (!prefix) return HD_NOMEM;
    hd_status status = remove_piece(p, prefix, length);
    env_free(all->env, prefix, length + 2);
    return status;
}

/* ---- finding */

hd_piece hd_piece_find(const hd_runtime *rt, const char *space, const char *id) {
    return handle_of(find(patterns_get(rt), space, id));
}
