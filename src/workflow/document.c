/* document.c -- what a commit writes of an instance.
 *
 * The kind of the document is "workflow.<status>", so that instances of a status are listed by an index. An instance
 * that is new is one value, written at once; of any other, the changes since it was last stored are written. Keys and
 * paths that all instances have in common are made once for the engine. */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"

/* ---- what all instances share */

hd_status document_init(hd_engine *e) {
    static const char *const kinds[INSTANCE_STATUSES] = {
        [INSTANCE_RUNNING] = "workflow.running",     [INSTANCE_PAUSED] = "workflow.paused",
        [INSTANCE_DONE] = "workflow.done",           [INSTANCE_FAILED] = "workflow.failed",
        [INSTANCE_CANCELLED] = "workflow.cancelled", [INSTANCE_STALLED] = "workflow.stalled"
    };
    hd_pool *pool;
    struct key *key;
    hd_status status = key_make(e->heap, "kind", 4, &key);
    if (status) return status;
    status = path_child(e->heap, HD_PATH_ROOT, key, &e->kind_path);
    key_unref(key);
    if (!status) status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    for (int i = 0; i < INSTANCE_STATUSES && !status; i++) {
        e->kinds[i] = hd_value_ref(hd_string(pool, kinds[i]));
        status = hd_value_status(e->kinds[i]);
    }
    hd_pool_close(pool);
    return status;
}

void document_fini(hd_engine *e) {
    for (int i = 0; i < INSTANCE_STATUSES; i++) hd_value_unref(e->kinds[i]);
    for (int i = 0; i < PATH_SLOTS; i++)
        if (e->paths[i].path != HD_PATH_ROOT) path_unref(e->heap, e->paths[i].path);
    if (e->kind_path != HD_PATH_ROOT) path_unref(e->heap, e->kind_path);
}

/* ---- operations */

/* Where the operations of an instance go: into the transaction, or, of a document that is made anew, into its value. */
typedef struct target {
    hd_engine *e;
    hd_tx *tx;
    place_id doc;
    hd_value whole; /* owned; absent: into the transaction */
    /* Keys of the document itself, which are written together; paths and values are referenced. */
    tx_key keys[TX_KEYS_MAX];
    uint32_t key_count;
} target;

static hd_status write_keys(target *t, hd_status status) {
    if (!status && t->key_count) status = tx_write_keys(t->tx, t->doc, t->keys, t->key_count);
    for (; t->key_count; t->key_count--) {
        path_unref(t->e->heap, t->keys[t->key_count - 1].path);
        hd_value_unref(t->keys[t->key_count - 1].value);
    }
    return status;
}

/* Keeps the write for write_keys. Takes the reference of the path. */
static hd_status keep_key(target *t, hd_path at, hd_value value) {
    hd_status status = t->key_count == TX_KEYS_MAX ? write_keys(t, HD_OK) : HD_OK;
    t->keys[t->key_count++] = (tx_key){ at, hd_value_ref(value) };
    return status;
}

static hd_status write_whole(target *t, op_kind kind, hd_path at, hd_value value, uint64_t keep) {
    hd_value next = op_apply(t->e->heap, t->whole, kind, at, value, keep);
    if (hd_value_status(next)) return hd_value_status(next);
    hd_value_unref(t->whole);
    t->whole = next;
    return HD_OK;
}

/* The path `at` with one segment more, referenced. Short segments are looked up in the engine's table first. */
static hd_status path_further(hd_engine *e, hd_path at, const char *segment, hd_path *out) {
    size_t length = strlen(segment);
    uint64_t chars = 0;
    struct key *key;
    path_slot *slot = NULL;
    if (length <= sizeof chars) {
        memcpy(&chars, segment, length);
        slot = &e->paths[hash_combine(chars, at) % PATH_SLOTS];
        if (slot->path != HD_PATH_ROOT && slot->segment == chars && slot->parent == at)
            return *out = path_ref(e->heap, slot->path), HD_OK;
    }
    hd_status status = key_make(e->heap, segment, length, &key);
    if (status) return status;
    status = path_child(e->heap, at, key, out);
    key_unref(key);
    if (status || !slot) return status;
    if (slot->path != HD_PATH_ROOT) path_unref(e->heap, slot->path);
    *slot = (path_slot){ chars, at, path_ref(e->heap, *out) };
    return HD_OK;
}

static hd_status write_op(void *ctx, doc_op how, const char *const *path, uint32_t length,
                          hd_value value) {
    static const op_kind kinds[] = {
        [DOC_SET] = OP_SET,
        [DOC_REMOVE] = OP_REMOVE,
        [DOC_APPEND] = OP_APPEND,
        [DOC_KEEP] = OP_SPLICE,
    };
    target *t = ctx;
    hd_heap *heap = t->e->heap;
    hd_path at = HD_PATH_ROOT;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < length && !status; i++) {
        hd_path next;
        status = path_further(t->e, at, path[i], &next);
        if (at != HD_PATH_ROOT) path_unref(heap, at);
        at = status ? HD_PATH_ROOT : next;
    }
    if (status) return status;
    bool whole = hd_value_exists(t->whole);
    if (!whole && length == 1 && (how == DOC_SET || how == DOC_REMOVE))
        return keep_key(t, at, how == DOC_REMOVE ? (hd_value){ 0 } : value);
    if (!whole) status = write_keys(t, HD_OK); /* operations keep their order */
    uint64_t keep = how == DOC_KEEP ? (uint64_t)hd_value_as_int(value, 0) : 0;
    if (how == DOC_KEEP) value = hd_array();
    if (whole) status = write_whole(t, kinds[how], at, value, keep);
    else if (!status) status = tx_write_path(t->tx, kinds[how], t->doc, at, value, keep);
    if (at != HD_PATH_ROOT) path_unref(heap, at);
    return status;
}

static hd_status know_meta(live *l) {
    place_id meta;
    if (l->meta) return HD_OK;
    hd_status status = runtime_meta(l->e->rt, l->doc, &meta);
    if (!status) place_ref(&l->e->rt->r.places, l->meta = meta);
    return status;
}

/* As hd_tx_set_kind does; the text and its place in the metadata are the same for all instances. */
static hd_status write_kind(hd_tx *tx, live *l) {
    hd_engine *e = l->e;
    hd_status status = know_meta(l);
    if (status) return status;
    instance_status now = l->stalled ? INSTANCE_STALLED : l->in->status;
    return tx_write_path(tx, OP_SET, l->meta, e->kind_path, e->kinds[now], 0);
}

static hd_status write_end(hd_tx *tx, const live *l, const doc_writer *out) {
    static const char *const path[] = { "finished" };
    return out->write(out->ctx, DOC_SET, path, 1, hd_int(hd_tx_pool(tx), (int64_t)l->in->now_ms));
}

/* Removes what the last run has left and the next one must not find: the strands, of one that could not be stored
 * (write_off), and for a run from the beginning the variables, which an instance that was not done keeps. */
static hd_status remove_end(const live *l, const doc_writer *out) {
    static const char *const keys[] = { "result", "error", "finished", "failed_at", "again",
                                        "ready",  "open",  "calls",    "fans",      "ending",
                                        "vars",   "loops", "objects",  "cancelling" };
    hd_status status = HD_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && l->again && !status; i++) {
        const char *path[] = { keys[i] };
        if (l->again_at && save_keeps_for_rerun(keys[i])) continue;
        status = out->write(out->ctx, DOC_REMOVE, path, 1, (hd_value){ 0 });
    }
    return status;
}

static hd_status write_walk(hd_tx *tx, live *l, const doc_writer *out) {
    hd_status status = instance_save(l->in, out);
    return status ? status : mail_save(l, hd_tx_pool(tx), out);
}

/* What is no part of the document, or follows from what is. */
static hd_status write_rest(hd_tx *tx, live *l, const doc_writer *out) {
    hd_status status = journal_write(tx, l, out);
    if (status || !instance_is_over(l->in)) return status;
    status = write_end(tx, l, out);
    return status ? status : keep_note(l);
}

bool document_is_unfit(hd_status status) {
    return status == HD_KIND || status == HD_FAILED || status == HD_LIMIT;
}

void document_why_unfit(hd_status status, hd_error *error) {
    bool is_long = status == HD_LIMIT;
    env_error(error, is_long ? HD_LIMIT : HD_KIND,
              is_long ? "it has a text, or another value, that is too long to be stored"
                      : "it has a value that cannot be stored, such as tuples nested too deep");
}

/* One that cannot be stored with its first walk is stalled from the beginning, in the same commit: a parent that has
 * begun it goes on from there. Nothing of the walk is in the transaction. */
static hd_status write_first_walk(target *t, live *l, const doc_writer *out) {
    hd_error error;
    if (l->in->status == INSTANCE_RUNNING) l->in->status_changed = false; /* the record says so */
    hd_status status = write_walk(t->tx, l, out);
    if (!document_is_unfit(status)) return status ? status : write_rest(t->tx, l, out);
    document_why_unfit(status, &error);
    hd_value_unref(t->whole);
    t->whole = hd_value_ref(l->record);
    return live_stall(l, &error);
}

/* The commit claims that there is no document. If there is one, another start with this key was first: the instance is
 * loaded from it. */
static hd_status set_whole(target *t) {
    unsigned flags = HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM | HD_READ_NO_TAINT;
    hd_value known = hd_tx_read(t->tx, (hd_cell){ t->doc }, flags);
    hd_status status = hd_value_exists(known) ? HD_STALE : hd_value_status(known);
    if (!status) status = tx_note_claim(t->tx, t->doc);
    return status ? status : tx_write_path(t->tx, OP_SET, t->doc, HD_PATH_ROOT, t->whole, 0);
}

/* The document begins with its record; what the first walk has made is added. */
static hd_status store_first(target *t, live *l, const doc_writer *out) {
    t->whole = hd_value_ref(l->record);
    hd_status status = l->stalled ? HD_OK : write_first_walk(t, l, out);
    if (!status && l->stalled) status = stall_write(hd_tx_pool(t->tx), l, out);
    if (!status) status = set_whole(t);
    hd_value_unref(t->whole);
    return status;
}

/* A document that is no object, since something else has written it, becomes one: it says nothing of the instance. */
static hd_status begin_stalled(target *t) {
    unsigned flags = HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM | HD_READ_NO_TAINT;
    hd_value known = hd_tx_read(t->tx, (hd_cell){ t->doc }, flags);
    hd_status status = hd_value_status(known);
    if (status) return engine_may_pass(status) ? status : HD_OK;
    if (hd_value_kind(known) == HD_KIND_OBJECT) return HD_OK;
    return tx_write_path(t->tx, OP_SET, t->doc, HD_PATH_ROOT, hd_object(), 0);
}

static hd_status store_changes(target *t, live *l, const doc_writer *out) {
    hd_status status = tx_note_claim(t->tx, l->doc);
    if (!status && l->stalled) status = begin_stalled(t);
    if (!status) status = l->stalled ? stall_write(hd_tx_pool(t->tx), l, out) : remove_end(l, out);
    if (!status && !l->stalled) status = write_walk(t->tx, l, out);
    if (!status && !l->stalled) status = write_rest(t->tx, l, out);
    return write_keys(t, status);
}

/* Whether a commit writes the kind of the document. */
static bool writes_kind(const live *l) {
    return hd_value_exists(l->record) || l->stalled || l->in->status_changed;
}

static hd_status load(live *l, bool kind) {
    hd_engine *e = l->e;
    hd_status status = engine_load(e, l->doc);
    for (uint32_t i = 0; i < l->messages.count && !status; i++)
        status = engine_load(e, l->messages.items[i]);
    if (!status && kind) status = know_meta(l);
    return status || !kind ? status : engine_load(e, l->meta);
}

hd_status document_prepare(live *l) {
    hd_status status = load(l, writes_kind(l));
    return !status && l->in && l->in->journal.count ? journal_load(l) : status;
}

hd_status document_prepare_step(live *l) {
    hd_status status = load(l, true); /* it may be the last step */
    return !status && l->in->p->journal ? journal_load(l) : status;
}

hd_status document_store(hd_tx *tx, live *l) {
    assert(l->stalled || !l->in->walking.count);
    target t = { .e = l->e, .tx = tx, .doc = l->doc };
    doc_writer out = { &t, write_op };
    bool fresh = hd_value_exists(l->record);
    bool kind = writes_kind(l);
    hd_status status = engine_fence(tx, l->shard);
    if (!status) status = fresh ? store_first(&t, l, &out) : store_changes(&t, l, &out);
    if (!status && kind) status = write_kind(tx, l);
    return status;
}
