/* write.c -- writing cells.
 *
 * Each write is applied at once to the transaction's own version of the document, so that later
 * reads see it, and remembered as an operation, which is what travels. A write that changes nothing
 * does not travel. It leaves a claim instead: the commit stands only if the place still holds that
 * value when the commit is admitted (decision 0042). A write that fails fails the transaction, except in a patch
 * (decision 0400). */
#include "store/runtime.h"
#include "store/tx.h"

#include "base/env.h"
#include "store/overlay.h"
#include "value/array.h"
#include "value/diff.h"
#include "value/id.h"
#include "value/key.h"
#include "value/node.h"
#include "value/object.h"
#include "value/text.h"
#include "value/pool.h"
#include <stdio.h>
#include <string.h>

#define FEW_WRITES 8 /* up to here a scan finds a document */

/* ---- the list of documents */

static hd_status index_writes(hd_tx *tx) {
    assert(tx->writes.count);
    if (tx->writes.count <= FEW_WRITES) return HD_OK;
    uint32_t from = tx->writes.count == FEW_WRITES + 1 ? 0 : tx->writes.count - 1;
    for (uint32_t i = from; i < tx->writes.count; i++) {
        hd_status status = table_insert(&tx->written, tx->writes.items[i].doc, i);
        if (status) return status;
    }
    return HD_OK;
}

/* The transaction's version of a document, made at the first write. NULL: no memory. */
static tx_write *write_open(hd_tx *tx, place_id doc) {
    assert(place_is_doc(&tx->r->places, doc));
    assert(!(tx->flags & TX_READ_ONLY));
    tx_write *w = tx_write_of(tx, doc);
    if (w) return w;
    hd_value v = place_at(&tx->r->places, doc)->value;
    tx_write fresh = { doc, v, v, 0, 0, false, false };
    if (!vec_push(tx->r->env, &tx->writes, fresh)) return NULL;
    value_ref(v);
    value_ref(v);
    place_ref(&tx->r->places, doc);
    if (index_writes(tx)) tx_fail(tx, HD_NOMEM);
    tx->flags |= TX_BUSY;
    if (tx->front.out == doc) tx->front.out = HD_NO_OUTPUT_;
    tx_slow_down(tx); /* reads must look here first */
    return &vec_last(&tx->writes);
}

static bool same_place_set(const op *o, op_kind kind, hd_path path) {
    return kind == OP_SET && o->kind == OP_SET && o->path == path;
}

/* Appends an operation to a document's list; a repeated set of one place replaces the one before. */
static hd_status add_op(hd_tx *tx, tx_write *w, op_kind kind, hd_path path, hd_value v,
                        uint64_t keep) {
    assert(!value_is_failed(v));
    assert(w->last <= tx->ops.count && !w->first == !w->last);
    replica *r = tx->r;
    if (w->last > tx->kept && same_place_set(&tx->ops.items[w->last - 1].o, kind, path)) {
        op *o = &tx->ops.items[w->last - 1].o;
        value_ref(v);
        value_unref(o->value);
        o->value = v;
        return HD_OK;
    }
    tx_op fresh = { { kind, w->doc, path, v, keep }, 0 };
    if (!vec_push(r->env, &tx->ops, fresh)) return HD_NOMEM;
    value_ref(v);
    path_ref(r->heap, path);
    place_ref(&r->places, w->doc);
    if (w->last) tx->ops.items[w->last - 1].next = tx->ops.count;
    else w->first = tx->ops.count;
    w->last = tx->ops.count;
    return HD_OK;
}

/* ---- one operation */

static bool changes_nothing(hd_value now, const hd_heap *heap, op_kind kind, hd_path path,
                            hd_value v) {
    hd_value there = value_get_path(heap, now, path);
    if (kind == OP_SET) return value_exists(there) && value_equal(there, v);
    if (kind == OP_REMOVE || kind == OP_DELETE) return value_is_absent(there);
    return false;
}

/* What this program writes may not be nested deeper than its limit, wherever it ends up. What others have
 * written there may be. */
static bool is_too_deep(const hd_heap *heap, op_kind kind, hd_path path, hd_value v) {
    uint32_t around = path_depth(heap, path) + (kind == OP_APPEND);
    return (kind == OP_SET || kind == OP_APPEND) && around + value_nesting(v) > heap->limits.depth;
}

static hd_status apply(hd_tx *tx, tx_write *w, op_kind kind, hd_path path, hd_value v,
                       uint64_t keep) {
    assert(!value_is_failed(w->now));
    if (is_too_deep(tx->r->heap, kind, path, v)) return HD_LIMIT;
    hd_value next = op_apply(tx->r->heap, w->now, kind, path, v, keep);
    if (value_is_failed(next)) return hd_value_status(next);
    hd_status status = add_op(tx, w, kind, path, v, keep);
    if (status) {
        value_unref(next);
        return status;
    }
    value_unref(w->now);
    w->now = next;
    return HD_OK;
}

/* Removing an element in the middle, or setting through "length", has no operation of its own: the
 * array is replaced, so that matching by leaf path stays sound. */
static hd_status remove_element(hd_tx *tx, tx_write *w, place_id at) {
    assert(!place_is_doc(&tx->r->places, at));
    hd_heap *heap = tx->r->heap;
    hd_path path = place_path(&tx->r->places, at);
    hd_path parent = path_parent(heap, path);
    hd_value array = value_get_path(heap, w->now, parent);
    uint32_t index = path_key(heap, path)->index;
    size_t count = array_count(array);
    /* What stays is what is there now: a claim, or others' elements would be lost. */
    hd_status status =
        tx_note_place(tx, place_at(&tx->r->places, at)->in.parent, HD_READ_NO_DEPENDENCY);
    if (status) return status;
    if (index == KEY_NO_INDEX || index >= count) return HD_OK;
    if (index == count - 1) return apply(tx, w, OP_SPLICE, parent, hd_array(), index);
    hd_value shorter = array_remove(heap, array, index);
    if (value_is_failed(shorter)) return hd_value_status(shorter);
    status = apply(tx, w, OP_SET, parent, shorter, 0);
    value_unref(shorter);
    return status;
}

static bool in_array(const hd_tx *tx, const tx_write *w, hd_path path) {
    if (path == HD_PATH_ROOT) return false;
    hd_value parent = value_get_path(tx->r->heap, w->now, path_parent(tx->r->heap, path));
    return value_tag(parent) == TAG_ARRAY;
}

static hd_status writable(hd_tx *tx, hd_value v) {
    if (tx->flags & TX_READ_ONLY)
        return runtime_fail(tx->rt, HD_READ_ONLY, "this transaction only reads");
    if (tx->rt->options.read_only)
        return runtime_fail(tx->rt, HD_READ_ONLY, "the store was opened for reading only");
    if (tx->failed) return tx_fail_again(tx);
    return value_is_failed(v) ? tx_fail_told(tx, hd_value_status(v)) : HD_OK;
}

/* Tracers list the writes that changed nothing. Without memory for one the list lacks it. */
static void note_attempt(hd_tx *tx, place_id at) {
    if (!(tx->flags & TX_ATTEMPTS) || !vec_push(tx->r->env, &tx->attempted, at)) return;
    place_ref(&tx->r->places, at);
}

/* Whether what is visible may yet be withdrawn, so that a write of the same value must stand by itself
 * (S1): a pending commit of ours can be refused, an unsealed output can be computed anew. A computation
 * may repeat itself over its own unsealed outputs. */
static bool may_be_withdrawn(const hd_tx *tx, place_id doc) {
    if (replica_top(tx->r, doc)) return true;
    return tx->class != HD_COMMIT_DERIVED && overlay_is_open(tx->r, doc);
}

/* A suspended run writes in a document that has changed since the run began. The claim of a write that is left out
 * would be taken for one of what was there then. */
static bool has_changed_meanwhile(const hd_tx *tx, place_id doc) {
    return (tx->flags & TX_EPOCH) && place_at(&tx->r->places, doc)->rev > tx->epoch;
}

/* Whether the write repeats what the store holds: then it does not travel. What the transaction itself
 * has made equal does: an increment before it may find another number when it is admitted. */
static bool repeats_the_store(const hd_tx *tx, const tx_write *w, place_id doc, op_kind kind,
                              hd_path path, hd_value v) {
    const hd_heap *heap = tx->r->heap;
    hd_value stored = w ? w->before : place_at(&tx->r->places, doc)->value;
    return changes_nothing(stored, heap, kind, path, v) &&
           (!w || changes_nothing(w->now, heap, kind, path, v)) && !may_be_withdrawn(tx, doc) &&
           !has_changed_meanwhile(tx, doc);
}

/* The write that changes nothing becomes a claim, and is no dependency. */
static hd_status elide(hd_tx *tx, place_id at) {
    assert(at);
    note_attempt(tx, at);
    tx->flags |= TX_ELIDED;
    return tx_note_claim(tx, at);
}

/* The operation did not fit what is there. A body that gives up because of that, or does something else instead, has
 * read the place, and the nearest one above it that exists: a value of another kind, or an array that is too short.
 * Both are dependencies and claims. */
static hd_status note_misfit(hd_tx *tx, place_id at, hd_status status) {
    const places *ps = &tx->r->places;
    if (status != HD_KIND && status != HD_RANGE) return status;
    hd_status noted = tx_note_place(tx, at, HD_READ_SHAPE);
    while (!noted && !place_is_doc(ps, at)) {
        at = place_at(ps, at)->in.parent;
        if (!place_is_doc(ps, at) && value_is_absent(tx_peek(tx, at))) continue;
        noted = tx_note_place(tx, at, HD_READ_SHAPE);
        break;
    }
    return noted ? noted : status;
}

hd_status tx_write_op(hd_tx *tx, op_kind kind, place_id at, hd_value v, uint64_t keep) {
    assert(at && (tx->flags & TX_OPEN));
    hd_status status = writable(tx, v);
    /* The links on the way say where the write goes: they are claimed like any read. */
    if (!status) status = tx_resolve(tx, &at, false, 0);
    /* As with a read: the body is run again, and must not commit without this write. */
    if (hd_status_class(status) == HD_CLASS_TRANSIENT) tx_fail(tx, status);
    if (status) return status;
    place_id doc = place_at(&tx->r->places, at)->root;
    hd_path path = place_path(&tx->r->places, at);
    tx_write *w = tx_write_of(tx, doc);
    if (repeats_the_store(tx, w, doc, kind, path, v)) return elide(tx, at);
    if (!w) w = write_open(tx, doc);
    if (!w || tx->failed) return tx_fail(tx, HD_NOMEM);
    if (kind == OP_REMOVE && in_array(tx, w, path)) status = remove_element(tx, w, at);
    else status = apply(tx, w, kind, path, v, keep);
    if (status) status = note_misfit(tx, at, status);
    if (status == HD_NOMEM) tx_fail(tx, status);
    return status;
}

/* For a write of the library itself. */
static hd_status open_own(hd_tx *tx, place_id doc, tx_write **out) {
    assert(place_is_doc(&tx->r->places, doc));
    assert(tx->flags & TX_OPEN);
    hd_status status = HD_OK;
    if (!(tx_place(tx, doc)->doc.flags & DOC_KNOWN)) status = replica_load(tx->r, doc);
    if (status) return status;
    if (tx_has_output(tx) && tx->front.out == doc) status = tx_unpack_single(tx);
    *out = status ? NULL : write_open(tx, doc);
    if (!*out || tx->failed) return tx_fail(tx, status ? status : HD_NOMEM);
    (*out)->own = true;
    return HD_OK;
}

/* A write of the library itself, at a path that has no links: nothing is resolved and nothing is left out. */
hd_status tx_write_path(hd_tx *tx, op_kind kind, place_id doc, hd_path path, hd_value v,
                        uint64_t keep) {
    tx_write *w;
    hd_status status = kind == OP_REMOVE ? HD_OK : writable(tx, v);
    if (!status) status = open_own(tx, doc, &w);
    if (status) return status;
    status = apply(tx, w, kind, path, v, keep);
    if (status == HD_NOMEM) tx_fail(tx, status);
    return status;
}

static hd_status write_each_key(hd_tx *tx, place_id doc, const tx_key *keys, uint32_t count) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++)
        status = tx_write_path(tx, value_is_absent(keys[i].value) ? OP_REMOVE : OP_SET, doc,
                               keys[i].path, keys[i].value, 0);
    return status;
}

/* The changed object, and the operations that make it. */
static hd_status patch_keys(hd_tx *tx, tx_write *w, const tx_key *keys, uint32_t count) {
    hd_heap *heap = tx->r->heap;
    object_change changes[TX_KEYS_MAX];
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count; i++)
        changes[i] = (object_change){ path_key(heap, keys[i].path), keys[i].value };
    hd_value next = object_patch(heap, w->now, changes, count);
    if (value_is_failed(next)) return hd_value_status(next);
    for (uint32_t i = 0; i < count && !status; i++)
        status = add_op(tx, w, value_is_absent(keys[i].value) ? OP_REMOVE : OP_SET, keys[i].path,
                        keys[i].value, 0);
    value_unref(w->now);
    w->now = next;
    return status;
}

hd_status tx_write_keys(hd_tx *tx, place_id doc, const tx_key *keys, uint32_t count) {
    tx_write *w;
    hd_status status = HD_OK;
    assert(count <= TX_KEYS_MAX);
    for (uint32_t i = 0; i < count && !status; i++) status = writable(tx, keys[i].value);
    if (!status) status = open_own(tx, doc, &w);
    if (status) return status;
    bool together = value_is_object(w->now);
    for (uint32_t i = 0; i < count; i++)
        together = together && !is_too_deep(tx->r->heap, OP_SET, keys[i].path, keys[i].value);
    if (!together) return write_each_key(tx, doc, keys, count);
    status = patch_keys(tx, w, keys, count);
    return status ? tx_fail(tx, status) : HD_OK;
}

/* ---- the public writes */

hd_status tx_unpack_single(hd_tx *tx) {
    if (!tx_has_output(tx)) return HD_OK;
    hd_value v = tx->front.out_value;
    place_id at = tx->front.out;
    tx->front.out_value = value_absent();
    tx->front.out = HD_NO_OUTPUT_;
    return tx_write_op(tx, OP_SET, at, v, 0);
}

/* Says which cell it was: the status alone tells little. If the transaction has failed, another call was the reason. A
 * number that is there has a place, so that only its sum can be out of range. */
static hd_status misfit(hd_tx *tx, hd_cell cell, place_id at, hd_status status) {
    char name[160];
    if (tx->failed || (status != HD_KIND && status != HD_RANGE)) return status;
    hd_cell_print(tx->rt, cell, name, sizeof name);
    const char *why = status == HD_KIND ? "what is there is of another kind"
                      : hd_value_kind(tx_peek(tx, at)) == HD_KIND_INT
                          ? "the sum does not fit into 64 bits"
                          : "not an index of the array there";
    return runtime_fail(tx->rt, status, "%s: %s", name, why);
}

/* The call that made none has said why, and its message is gone by now. */
static hd_status no_cell(hd_tx *tx) {
    return runtime_fail(tx->rt, HD_USAGE,
                        "the cell is empty: hd_cell_at refused its name; hd_runtime_error right "
                        "after it says why");
}

static hd_status write_cell(hd_tx *tx, hd_cell cell, op_kind kind, hd_value v) {
    const hd_schema *schema;
    place_id at = runtime_place(tx->rt, cell, &schema);
    if (!at) return no_cell(tx);
    /* Of a run, only what is done to the same document matters; it may still end in place. */
    if (tx_has_output(tx) && (!(tx->flags & TX_RUN) || tx_place(tx, at)->root == tx->front.out)) {
        hd_status status = tx_unpack_single(tx);
        if (status) return status;
    }
    if (kind == OP_REMOVE && place_is_doc(&tx->r->places, at)) kind = OP_DELETE;
    return misfit(tx, cell, at, tx_write_op(tx, kind, at, v, 0));
}

/* What a public write returns. A body that does not look at the status must not commit without the write. */
static hd_status written(hd_tx *tx, hd_status status) {
    if (!status || (tx->flags & TX_READ_ONLY)) return status;
    return tx->failed ? tx_fail_again(tx) : tx_fail_told(tx, status);
}

/* A first write of a whole document: kept in two words until the commit, which has a short way for it. */
static bool is_single(const hd_tx *tx, hd_cell cell) {
    if (tx->flags & ~(uint32_t)(TX_OPEN | TX_DIVERGED | TX_BUSY | TX_ELIDED) || tx_has_output(tx))
        return false;
    if ((tx->flags & TX_BUSY) && (tx->writes.count || tx->failed)) return false;
    if (tx->rt->options.read_only || !cell.id || cell.id >= tx->r->places.count) return false;
    return place_is_doc(&tx->r->places, cell.id);
}

/* Loads the document if it is not here. False: it cannot be loaded now. */
static bool load_single(const hd_tx *tx, place_id doc) {
    assert(place_is_doc(&tx->r->places, doc));
    return (tx_place(tx, doc)->doc.flags & DOC_KNOWN) || !replica_load(tx->r, doc);
}

/* The program may release a value that it made before the transaction ends. Most often that was the transaction itself,
 * just now. */
static bool is_last_made(const hd_pool *pool, hd_value v) {
    return pool && pool->count && pool->items[pool->count - 1].bits == v.bits;
}

static hd_status set_single(hd_tx *tx, hd_cell cell, hd_value v) {
    assert(place_is_doc(&tx->r->places, cell.id) && value_exists(v));
    if (value_is_block(v) && !is_last_made(tx->pool, v)) {
        hd_pool *pool = tx_pool(tx);
        v = pool ? pool_take(pool, value_ref(v)) : value_failed(HD_NOMEM);
        if (value_is_failed(v)) return tx_fail(tx, hd_value_status(v));
    }
    tx->front.out = cell.id;
    tx->front.out_value = v;
    tx_slow_down(tx); /* a read of it must see it */
    return HD_OK;
}

hd_status hd_tx_set_otherwise_(hd_tx *tx, hd_cell cell, hd_value v) {
    bool single = cell.id == tx->front.out || (is_single(tx, cell) && load_single(tx, cell.id));
    if (single && value_exists(v)) return set_single(tx, cell, v);
    hd_status status =
        value_is_absent(v)
            ? runtime_fail(tx->rt, HD_KIND, "absent cannot be stored: remove the cell instead")
            : write_cell(tx, cell, OP_SET, v);
    return written(tx, status);
}

extern inline hd_status hd_tx_set(hd_tx *tx, hd_cell cell, hd_value v); /* inline in the header */
extern inline hd_status hd_tx_set_double(hd_tx *tx, hd_cell cell, double d);

hd_status hd_tx_set_json(hd_tx *tx, hd_cell cell, const char *json) {
    hd_pool *pool = tx_pool(tx);
    if (!pool) return HD_NOMEM;
    hd_value v = hd_json_parse(pool, json, strlen(json), &tx->r->error);
    if (!value_is_failed(v)) return hd_tx_set(tx, cell, v);
    tx->rt->error_body = runtime_body(tx->rt);
    return written(tx, hd_value_status(v));
}

hd_status hd_tx_set_int(hd_tx *tx, hd_cell cell, int64_t i) {
    if (i >= VALUE_INT_MIN && i <= VALUE_INT_MAX) return hd_tx_set(tx, cell, value_small_int(i));
    hd_pool *pool = tx_pool(tx);
    return pool ? hd_tx_set(tx, cell, hd_int(pool, i)) : HD_NOMEM;
}

hd_status hd_tx_set_text(hd_tx *tx, hd_cell cell, const char *text) {
    hd_pool *pool = tx_pool(tx);
    return pool ? hd_tx_set(tx, cell, hd_string(pool, text)) : HD_NOMEM;
}

hd_status hd_tx_remove(hd_tx *tx, hd_cell cell) {
    return written(tx, write_cell(tx, cell, OP_REMOVE, value_absent()));
}

hd_status hd_tx_append(hd_tx *tx, hd_cell cell, hd_value item) {
    hd_status status = value_is_absent(item)
                           ? runtime_fail(tx->rt, HD_KIND, "absent cannot be stored")
                           : write_cell(tx, cell, OP_APPEND, item);
    return written(tx, status);
}

hd_status hd_tx_increment(hd_tx *tx, hd_cell cell, hd_value by) {
    hd_kind kind = hd_value_kind(by);
    bool number = kind == HD_KIND_INT || kind == HD_KIND_DOUBLE;
    hd_status status =
        number || value_is_failed(by)
            ? write_cell(tx, cell, OP_INCREMENT, by)
            : runtime_fail(tx->rt, HD_KIND, "an increment is a number, not %s", hd_kind_name(kind));
    return written(tx, status);
}

/* ---- patches */

static bool op_named(const char *name, op_kind *out) {
    static const struct {
        const char *name;
        op_kind kind;
    } names[] = { { "set", OP_SET },
                  { "remove", OP_REMOVE },
                  { "append", OP_APPEND },
                  { "increment", OP_INCREMENT } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name)) continue;
        *out = names[i].kind;
        return true;
    }
    return false;
}

/* The runtime keeps the words of a malformed patch, also for a caller that has no `error`. */
static hd_status bad_patch(hd_tx *tx, hd_status status, hd_error *error) {
    if (error) *error = tx->r->error;
    return status;
}

static hd_status bad_entry(hd_tx *tx, hd_error *error, size_t index, const char *what) {
    (void)runtime_fail(tx->rt, HD_SYNTAX, "entry %zu of the patch: %s", index, what);
    snprintf(tx->r->error.path, sizeof tx->r->error.path, "/%zu", index);
    return bad_patch(tx, HD_SYNTAX, error);
}

static hd_status patch_entry(hd_tx *tx, place_id base, size_t index, hd_value entry,
                             hd_error *error) {
    op_kind kind;
    size_t length = 0;
    const char *name = hd_value_as_text(hd_value_at(entry, "op"), NULL);
    const char *pointer = hd_value_text(hd_value_at(entry, "path"), &length);
    hd_value v = hd_value_at(entry, "value");
    if (!name || !op_named(name, &kind))
        return bad_entry(tx, error, index, "\"op\" must be set, remove, append or increment");
    if (!pointer) return bad_entry(tx, error, index, "\"path\" must be a JSON pointer");
    if (kind != OP_REMOVE && !value_exists(v)) return bad_entry(tx, error, index, "no \"value\"");

    places *ps = &tx->r->places;
    hd_path path;
    hd_status status = path_parse(tx->r->heap, pointer, length, &path, &tx->r->error);
    if (status) return bad_patch(tx, status, error);
    place_id at = base;
    for (uint32_t d = 1; d <= path_depth(tx->r->heap, path) && !status; d++) {
        hd_path step = path_ancestor(tx->r->heap, path, d);
        status = places_child(ps, at, path_key(tx->r->heap, step), &at);
    }
    path_unref(tx->r->heap, path);
    if (status) return status;
    place_ref(ps, at);
    status = write_cell(tx, (hd_cell){ at }, kind, v);
    place_unref(ps, at);
    if (status)
        env_error(error, status, "entry %zu of the patch: %s", index, hd_status_text(status));
    return status;
}

hd_status hd_tx_patch(hd_tx *tx, hd_cell cell, hd_value patch, hd_error *error) {
    const hd_schema *schema;
    place_id base = runtime_place(tx->rt, cell, &schema);
    if (tx->failed) {
        hd_status first = tx_fail_again(tx);
        if (error) *error = tx->r->error;
        return first;
    }
    if (!base) return no_cell(tx);
    if (hd_value_status(patch)) {
        (void)runtime_fail(tx->rt, hd_value_status(patch), "the patch could not be made");
        return bad_patch(tx, hd_value_status(patch), error);
    }
    if (hd_value_kind(patch) != HD_KIND_ARRAY) {
        (void)runtime_fail(tx->rt, HD_KIND, "a patch is an array of operations, not %s",
                           hd_kind_name(hd_value_kind(patch)));
        return bad_patch(tx, HD_KIND, error);
    }
    hd_status status = tx_unpack_single(tx); /* not part of the patch */
    if (status) return status;
    tx_savepoint save = tx_save(tx);
    for (hd_iter it = hd_iter_of(patch); !status && hd_iter_next(&it);)
        status = patch_entry(tx, base, it.index, it.value, error);
    tx_restore(tx, &save, status != HD_OK);
    return status;
}

/* ---- preconditions, properties */

static hd_status require(hd_tx *tx, precondition pre) {
    assert(tx->flags & TX_OPEN);
    tx->flags |= TX_BUSY;
    if (!vec_push(tx->r->env, &tx->preconditions, pre)) return tx_fail(tx, HD_NOMEM);
    if (pre.place) place_ref(&tx->r->places, pre.place);
    return HD_OK;
}

hd_status tx_require_origin(hd_tx *tx, uint64_t local_seq) {
    return require(tx, (precondition){ .kind = PRE_ORIGIN, .origin = local_seq });
}

hd_status hd_tx_require_absent(hd_tx *tx, hd_cell document) {
    const hd_schema *schema;
    place_id at = runtime_place(tx->rt, document, &schema);
    if (!at || !place_is_doc(&tx->r->places, at))
        return written(
            tx, runtime_fail(tx->rt, HD_USAGE, "only a whole document can be required absent"));
    return require(tx, (precondition){ .kind = PRE_ABSENT, .place = at });
}

hd_status tx_forget(hd_tx *tx, place_id doc) {
    assert(place_is_doc(&tx->r->places, doc));
    return require(tx, (precondition){ .kind = PRE_FORGET, .place = doc });
}

hd_status hd_tx_require_equal(hd_tx *tx, hd_cell cell, hd_value v) {
    const hd_schema *schema;
    place_id at = runtime_place(tx->rt, cell, &schema);
    precondition pre = { .kind = PRE_EQUAL, .place = at };
    hd_status status = at ? id_digest(v, pre.hash) : no_cell(tx);
    return status ? written(tx, status) : require(tx, pre);
}

static hd_status meta_cell(hd_tx *tx, hd_cell document, const char *key, place_id *out) {
    const hd_schema *schema;
    place_id at = runtime_place(tx->rt, document, &schema);
    if (!at) return runtime_fail(tx->rt, HD_USAGE, "there is no such document");
    place_id meta;
    hd_status status = runtime_meta(tx->rt, place_at(&tx->r->places, at)->root, &meta);
    if (status) return status;
    struct key *k;
    status = key_make(tx->r->heap, key, strlen(key), &k);
    if (status) return status;
    status = places_child(&tx->r->places, meta, k, out);
    key_unref(k);
    return status;
}

hd_status hd_tx_set_meta(hd_tx *tx, hd_cell document, const char *key, hd_value v) {
    place_id at;
    hd_status status = meta_cell(tx, document, key, &at);
    if (status) return written(tx, status);
    place_ref(&tx->r->places, at); /* afterwards it goes, unless something else needs it */
    status = write_cell(tx, (hd_cell){ at }, value_is_absent(v) ? OP_REMOVE : OP_SET, v);
    place_unref(&tx->r->places, at);
    return written(tx, status);
}

hd_status hd_tx_set_kind(hd_tx *tx, hd_cell document, const char *kind) {
    hd_pool *pool = tx_pool(tx);
    if (strlen(kind) >= KIND_SIZE)
        return written(
            tx, runtime_fail(tx->rt, HD_LIMIT, "a kind has at most %d bytes", KIND_SIZE - 1));
    return pool ? hd_tx_set_meta(tx, document, "kind", hd_string(pool, kind)) : HD_NOMEM;
}

hd_value hd_tx_get_meta(hd_tx *tx, hd_cell document, const char *key) {
    place_id at;
    hd_status status = meta_cell(tx, document, key, &at);
    return status ? value_failed(status) : tx_read_place(tx, at, 0);
}
