/* start.c -- starting instances.
 *
 * A start is a document: "workflow/<name>/<key>" with the status "queued", its version and its complete input.
 * Any process can write one, also within a transaction of its own; the active engine takes it up. An active
 * engine that is asked itself keeps the record in memory, walks at once and stores both together. */
#include "workflow/engine.h"

#include "base/env.h"
#include "expr/encode.h"
#include <stdio.h>

/* ---- inputs */

/* NULL: the input has no key that the workflow does not know. */
static const char *unknown_input(const plan *p, hd_value input) {
    for (hd_iter it = hd_iter_of(input); hd_iter_next(&it);) {
        bool known = false;
        for (uint32_t i = 0; i < p->input_count; i++)
            known = known || !strcmp(it.key, p->inputs[i].name);
        if (!known) return it.key;
    }
    return NULL;
}

static hd_status refuse_input(hd_engine *e, const plan *p, const plan_input *in, hd_value v) {
    hd_error error = { 0 };
    if (!hd_value_exists(v))
        return runtime_fail(e->rt, HD_MISMATCH, "%s needs the input \"%s\"", p->name, in->name);
    if (in->schema && hd_schema_validate(in->schema, v, &error))
        return runtime_fail(e->rt, HD_MISMATCH, "input \"%s\" of %s: %s", in->name, p->name,
                            error.message);
    return HD_OK;
}

hd_value start_input(hd_engine *e, hd_pool *pool, const plan *p, hd_value input) {
    hd_value all = hd_object();
    const char *unknown = unknown_input(p, input);
    if (hd_value_exists(input) && hd_value_kind(input) != HD_KIND_OBJECT)
        return hd_failed(runtime_fail(e->rt, HD_MISMATCH, "the input of %s is an object", p->name));
    if (unknown)
        return hd_failed(
            runtime_fail(e->rt, HD_MISMATCH, "%s has no input \"%s\"", p->name, unknown));
    for (uint32_t i = 0; i < p->input_count; i++) {
        const plan_input *in = &p->inputs[i];
        hd_value v = hd_value_at(input, in->name);
        if (!hd_value_exists(v)) v = in->otherwise;
        if (refuse_input(e, p, in, v)) return hd_failed(HD_MISMATCH);
        all = hd_object_set(pool, all, in->name, v);
    }
    return all;
}

hd_status start_walk(live *l, hd_value record) {
    instance *in = l->in;
    const plan *p = in->p;
    hd_value input = hd_value_at(record, "input");
    hd_status status = HD_OK;
    ev *inputs = env_new_array(in->env, p->input_count + 1, sizeof *inputs);
    if (!inputs) return HD_NOMEM;
    for (uint32_t i = 0; i < p->input_count && !status; i++)
        status = decode_value(in->w, hd_value_at(input, p->inputs[i].name), &inputs[i], NULL);
    in->now_ms = env_wall_ms(in->env);
    if (!status) status = walk_begin(in, inputs);
    in->status_changed = true; /* it was "queued" */
    env_free(in->env, inputs, (p->input_count + 1) * sizeof *inputs);
    return status;
}

/* ---- the record */

hd_value start_record(hd_engine *e, hd_pool *pool, const plan *p, hd_value input,
                      int32_t priority) {
    hd_value r = hd_object_set(pool, hd_object(), "workflow", hd_string(pool, p->name));
    r = hd_object_set(pool, r, "version", hd_string(pool, p->version));
    r = hd_object_set(pool, r, "status", hd_string(pool, "queued"));
    r = hd_object_set(pool, r, "started", hd_int(pool, (int64_t)env_wall_ms(e->env)));
    if (priority) r = hd_object_set(pool, r, "priority", hd_int(pool, priority));
    return hd_object_set(pool, r, "input", input);
}

static bool key_is_good(const char *key) {
    size_t length = strlen(key);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)key[i] < 0x20 || key[i] == '/') return false;
    return length && length <= 100;
}

/* Time first, then chance, five bits a letter: instances that are started one after the other stand side by side
 * in the store's indexes, so that storing many touches few pages. */
static void make_key(hd_engine *e, const char *name, char id[HD_INSTANCE_ID_SIZE]) {
    static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";
    enum { TIME = 9, CHANCE = 12 };
    char key[TIME + CHANCE + 1] = "";
    uint64_t time = env_wall_ms(e->env), chance;
    env_random(e->env, &chance, sizeof chance);
    for (int i = TIME - 1; i >= 0; i--, time >>= 5) key[i] = letters[time & 31];
    for (int i = 0; i < CHANCE; i++, chance >>= 5) key[TIME + i] = letters[chance & 31];
    snprintf(id, HD_INSTANCE_ID_SIZE, "%s/%s", name, key);
}

static hd_status make_id(hd_engine *e, const char *name, const hd_start_options *o,
                         char id[HD_INSTANCE_ID_SIZE]) {
    if (o->key && !key_is_good(o->key))
        return runtime_fail(e->rt, HD_USAGE,
                            "a start key has 1 to 100 bytes, no slash and no control character");
    if (o->key) snprintf(id, HD_INSTANCE_ID_SIZE, "%s/%s", name, o->key);
    else make_key(e, name, id);
    return HD_OK;
}

/* ---- by document */

static hd_status write_queued(hd_engine *e, hd_tx *tx, const char *id, hd_value record) {
    place_id doc = engine_document(e, INSTANCE_PREFIX, id);
    hd_cell cell = { doc };
    if (!doc) return HD_LIMIT;
    hd_status status = hd_tx_require_absent(tx, cell);
    if (!status) status = hd_tx_set(tx, cell, record);
    if (!status) status = hd_tx_set_kind(tx, cell, "workflow.queued");
    place_unref(&e->rt->r.places, doc);
    return status;
}

static hd_status commit_queued(hd_engine *e, const char *id, hd_value record) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    status = write_queued(e, tx, id, record);
    if (!status) return hd_tx_commit(tx, NULL, NULL);
    hd_tx_abort(tx);
    return status;
}

/* ---- starting */

/* In `tx`; NULL: in memory if the engine is active, else in a commit of its own. */
static hd_status start_with(hd_engine *e, hd_pool *pool, hd_tx *tx, const plan *p, hd_value input,
                            const hd_start_options *o, const char *id) {
    input = start_input(e, pool, p, input);
    if (!hd_value_exists(input)) return hd_value_status(input);
    if (live_find(e, id) || hd_value_exists(engine_read(e, pool, INSTANCE_PREFIX, id)))
        return HD_EXISTS;
    hd_value record = start_record(e, pool, p, input, o->priority);
    hd_status status = hd_value_status(record);
    if (status) return status;
    if (tx) return write_queued(e, tx, id, record);
    return e->active ? live_start(e, id, record) : commit_queued(e, id, record);
}

static hd_status start(hd_engine *e, hd_tx *tx, const char *name, hd_value input,
                       const hd_start_options *o, char id[HD_INSTANCE_ID_SIZE]) {
    static const hd_start_options defaults;
    hd_pool *pool;
    plan *p;
    hd_status status = version_latest(e, name, &p);
    if (!o) o = &defaults;
    if (status == HD_NOMEM) return status;
    if (status) return runtime_fail(e->rt, HD_NOT_FOUND, "no workflow \"%s\" is registered", name);
    status = make_id(e, name, o, id);
    if (!status) status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = start_with(e, pool, tx, p, input, o, id);
    hd_pool_close(pool);
    if (!status) e->stats.started++;
    return status;
}

hd_status hd_workflow_start(hd_engine *e, const char *name, hd_value input,
                            const hd_start_options *options, char id[HD_INSTANCE_ID_SIZE]) {
    return start(e, NULL, name, input, options, id);
}

hd_status hd_workflow_start_in(hd_engine *e, hd_tx *tx, const char *name, hd_value input,
                               const hd_start_options *options, char id[HD_INSTANCE_ID_SIZE]) {
    hd_status status = inbox_listen(e);
    return status ? status : start(e, tx, name, input, options, id);
}
