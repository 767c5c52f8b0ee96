/* start.c -- starting instances.
 *
 * A start is a document: "workflow/<name>/<key>" with the status "queued", its version and its complete input.
 * Any process can write one, also within a transaction of its own; the active engine takes it up. An active
 * engine that is asked itself keeps the record in memory, walks at once and stores both together. */
#include "workflow/engine.h"

#include "base/env.h"
#include "expr/encode.h"
#include "value/text.h"
#include "workflow/name_list.h"
#include <stdio.h>

/* ---- inputs */

/* A key of the input that the workflow does not know; NULL: it knows all. */
static const char *unknown_input(const plan *p, hd_value input) {
    assert(!hd_value_exists(input) || hd_value_kind(input) == HD_KIND_OBJECT);
    for (hd_iter it = hd_iter_of(input); hd_iter_next(&it);) {
        bool known = false;
        for (uint32_t i = 0; i < p->input_count; i++)
            known = known || !strcmp(it.key, p->inputs[i].name);
        if (!known) return it.key;
    }
    return NULL;
}

static hd_status refuse_unknown(hd_engine *e, const plan *p, const char *unknown) {
    name_list l;
    name_list_begin(&l, "; it has ", "%s has no input \"%.100s\"", p->name, unknown);
    for (uint32_t i = 0; i < p->input_count; i++) name_list_add(&l, p->inputs[i].name);
    return runtime_fail(e->rt, HD_MISMATCH, "%s", l.text);
}

static hd_status refuse_input(hd_engine *e, plan *p, const plan_input *in, hd_value v) {
    hd_error error = { 0 };
    if (!hd_value_exists(v))
        return runtime_fail(e->rt, HD_MISMATCH, "%s needs the input \"%s\"", p->name, in->name);
    if (in->schema && hd_schema_validate(in->schema, v, &error))
        return runtime_fail(e->rt, HD_MISMATCH, "input \"%s\" of %s: %s", in->name, p->name,
                            error.message);
    hd_status status = engine_try(e, p, v, &error); /* with another input it could never begin */
    if (!status || status == HD_NOMEM) return status;
    return runtime_fail(e->rt, HD_MISMATCH, "input \"%s\" of %s: %s", in->name, p->name,
                        error.message);
}

hd_value start_input(hd_engine *e, hd_pool *pool, plan *p, hd_value input) {
    hd_value all = hd_object();
    if (hd_value_status(input))
        return hd_failed(runtime_fail(e->rt, hd_value_status(input),
                                      "the input of %s could not be made", p->name));
    if (hd_value_exists(input) && hd_value_kind(input) != HD_KIND_OBJECT)
        return hd_failed(runtime_fail(e->rt, HD_MISMATCH, "the input of %s is an object", p->name));
    if (!engine_takes(e, input))
        return hd_failed(runtime_fail(e->rt, HD_LIMIT, "the input of %s is longer than %zu bytes",
                                      p->name, e->value_max));
    const char *unknown = unknown_input(p, input);
    if (unknown) return hd_failed(refuse_unknown(e, p, unknown));
    for (uint32_t i = 0; i < p->input_count; i++) {
        const plan_input *in = &p->inputs[i];
        hd_value v = hd_value_at(input, in->name);
        if (!hd_value_exists(v)) v = in->otherwise;
        hd_status status = refuse_input(e, p, in, v);
        if (status) return hd_failed(status);
        all = hd_object_set(pool, all, in->name, v);
    }
    return all;
}

hd_status start_walk(live *l, hd_value record, hd_error *error) {
    instance *in = l->in;
    const plan *p = in->p;
    hd_value input = hd_value_at(record, "input");
    hd_status status = HD_OK;
    ev few[8], *inputs = few;
    bool many = p->input_count > 8;
    if (many) inputs = env_new_array(in->env, p->input_count, sizeof *inputs);
    if (!inputs) return HD_NOMEM;
    plan_use(in->p);
    for (uint32_t i = 0; i < p->input_count && !status; i++)
        status = decode_value(in->w, hd_value_at(input, p->inputs[i].name), &inputs[i], error);
    in->now_ms = env_wall_ms(in->env);
    in->started_ms = (uint64_t)hd_value_as_int(hd_value_at(record, "started"), 0);
    if (!status) status = walk_begin(in, inputs);
    in->status_changed = true; /* it was "queued" */
    if (many) env_free(in->env, inputs, p->input_count * sizeof *inputs);
    return status;
}

/* ---- the record */

hd_value start_record(hd_engine *e, hd_pool *pool, const plan *p, hd_value input, int32_t priority,
                      const char *line_name) {
    hd_value started = hd_int(pool, (int64_t)env_wall_ms(e->env));
    hd_value r = hd_object_set(pool, p->record, "started", started);
    if (priority) r = hd_object_set(pool, r, "priority", hd_int(pool, priority));
    if (line_name) r = hd_object_set(pool, r, "queue", hd_string(pool, line_name));
    return hd_object_set(pool, r, "input", input);
}

bool start_priority_is_good(int32_t priority) { return priority >= -1000 && priority <= 1000; }

/* The key is a part of a cell's name, "space/workflow/<name>/<key>#path". */
static bool key_is_good(const char *key) {
    size_t length = strlen(key);
    return length && length <= 100 && utf8_valid(key, length, NULL) &&
           !utf8_has_control(key, length) && !strpbrk(key, "/#");
}

/* `count` letters of five bits each, the highest first. */
static void put_letters(char *out, int count, uint64_t bits) {
    static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";
    for (int i = count - 1; i >= 0; i--, bits >>= 5) out[i] = letters[bits & 31];
}

/* The time, what this engine drew when it was opened, and a count within the millisecond: instances that are started
 * one after the other stand side by side in the store's indexes, so that storing many touches few pages. A millisecond
 * with more of them than can be counted borrows from the next. */
static void make_key(hd_engine *e, const char *name, char id[HD_INSTANCE_ID_SIZE]) {
    enum { TIME = 9, OWN = 6, COUNT = 2 };
    char key[TIME + OWN + COUNT + 1] = "";
    uint64_t now = env_wall_ms(e->env) << (5 * COUNT);
    e->last_key = now > e->last_key ? now : e->last_key + 1;
    put_letters(key, TIME, e->last_key >> (5 * COUNT));
    put_letters(key + TIME, OWN, e->group >> 1);
    put_letters(key + TIME + OWN, COUNT, e->last_key);
    size_t length = strlen(name);
    assert(length + sizeof key < HD_INSTANCE_ID_SIZE); /* the IR bounds names */
    memcpy(id, name, length);
    id[length] = '/';
    memcpy(id + length + 1, key, sizeof key);
}

static hd_status make_id(hd_engine *e, const char *name, const hd_start_options *o,
                         char id[HD_INSTANCE_ID_SIZE]) {
    if (o->key && !key_is_good(o->key))
        return runtime_fail(
            e->rt, HD_USAGE,
            "a start key has 1 to 100 bytes of UTF-8, without '/', '#' and control characters");
    if (!start_priority_is_good(o->priority))
        return runtime_fail(e->rt, HD_USAGE, "a priority is from -1000 to 1000");
    if (o->queue && !line_name_is_good(o->queue))
        return runtime_fail(e->rt, HD_USAGE, "a queue has a name of " PLAN_NAME_RULE);
    if (o->key) snprintf(id, HD_INSTANCE_ID_SIZE, "%s/%s", name, o->key);
    else make_key(e, name, id);
    return HD_OK;
}

/* ---- by document */

/* The commit claims that the document is absent. With a key the claim is that of a read, because the document may have
 * been there before: the key may be that of an instance that was removed. A handler or an effect that starts an
 * instance does not depend on it (HD_READ_NO_DEPENDENCY). */
static hd_status claim_absence(hd_tx *tx, hd_cell cell, bool keyed) {
    if (!keyed) return hd_tx_require_absent(tx, cell);
    hd_value known = hd_tx_read(tx, cell, HD_READ_NO_DEPENDENCY);
    return hd_value_exists(known) ? HD_EXISTS : hd_value_status(known);
}

static hd_status write_record(hd_tx *tx, hd_cell cell, hd_value record, bool keyed) {
    hd_pool *pool = hd_tx_pool(tx);
    record = hd_object_set(pool, record, "status", hd_string(pool, "queued"));
    hd_status status = claim_absence(tx, cell, keyed);
    if (!status) status = hd_tx_set(tx, cell, record);
    return status ? status : hd_tx_set_kind(tx, cell, "workflow.queued");
}

static hd_status write_queued(hd_engine *e, hd_tx *tx, const char *id, hd_value record,
                              bool keyed) {
    place_id doc = engine_document(e, INSTANCE_PREFIX, id);
    if (!doc) return HD_LIMIT;
    hd_status status = write_record(tx, (hd_cell){ doc }, record, keyed);
    if (!status) status = within_started(e, tx, doc);
    place_unref(&e->rt->r.places, doc);
    return status;
}

/* ---- a start with a key, or one that an engine hands on, in a commit of its own
 *
 * The commit claims one thing, that the document is absent. If the store refuses the claim, the start is tried again.
 * Then the document is there (HD_EXISTS): another program has started the instance, which is that of this start, too.
 * Or it is absent, because the instance was removed meanwhile: the start is stored. */

typedef struct keyed_start {
    list_node link; /* in engine.keyed until it is stored, or the engine is closed */
    hd_engine *e;   /* NULL: it is closed */
    hd_runtime *rt;
    place_id doc; /* referenced */
    hd_value record;
    uint64_t number; /* from 1, in the order of the calls and of engine.keyed */
} keyed_start;

static void free_keyed(keyed_start *k) {
    list_discard(&k->link);
    place_unref(&k->rt->r.places, k->doc);
    hd_value_unref(k->record);
    env_free(&k->rt->env, k, sizeof *k);
}

static hd_status write_keyed(hd_tx *tx, void *ctx) {
    const keyed_start *k = ctx;
    tx->class = HD_COMMIT_EVENT;
    hd_status status = write_record(tx, (hd_cell){ k->doc }, k->record, true);
    /* A commit of this runtime that has no verdict yet has written the document. The store may still refuse it, and
     * then the instance does not exist: HD_BUSY waits for that verdict. */
    return status == HD_EXISTS && replica_top(&k->rt->r, k->doc) ? HD_BUSY : status;
}

/* HD_EXISTS is no refusal: the instance is there. Any other status is what the next sync returns, and who waits for the
 * instance is told that there is none. */
static void keyed_settled(hd_status status, void *ctx) {
    keyed_start *k = ctx;
    if (status && status != HD_EXISTS) runtime_refused(k->rt, (hd_cell){ 0 }, status);
    if (status && k->e) inbox_note(k->e, k->doc);
    free_keyed(k);
}

static hd_status commit_keyed(hd_engine *e, const char *id, hd_value record) {
    place_id doc = engine_document(e, INSTANCE_PREFIX, id);
    keyed_start *k = doc ? env_new0(e->env, sizeof *k) : NULL;
    if (!k) {
        if (doc) place_unref(&e->rt->r.places, doc);
        return doc ? HD_NOMEM : HD_LIMIT;
    }
    *k = (keyed_start){ .e = e, .rt = e->rt, .doc = doc, .record = hd_value_ref(record) };
    k->number = ++e->keyed_count;
    list_push_back(&e->keyed, &k->link);
    hd_status status = hd_transact_later(e->rt, write_keyed, k, keyed_settled, k);
    if (status) free_keyed(k);
    return status;
}

void start_hand_on(live *l) {
    hd_engine *e = l->e;
    if (e->closing || !hd_value_exists(l->record)) return;
    if (hd_value_exists(hd_value_at(l->record, "parent"))) return; /* its parent begins it again */
    hd_status status = commit_keyed(e, l->id, l->record);
    if (status) runtime_refused(e->rt, (hd_cell){ 0 }, status);
}

bool start_is_pending(const hd_engine *e, uint64_t number) {
    if (list_empty(&e->keyed)) return false;
    return LIST_ENTRY(list_first(&e->keyed), keyed_start, link)->number <= number;
}

bool start_comes(const hd_engine *e, place_id doc) {
    LIST_FOR (n, &e->keyed)
        if (LIST_ENTRY(n, keyed_start, link)->doc == doc) return true;
    return false;
}

void start_fini(hd_engine *e) {
    for (list_node *n; (n = list_pop_front(&e->keyed));) LIST_ENTRY(n, keyed_start, link)->e = NULL;
}

static hd_status commit_queued(hd_engine *e, const char *id, hd_value record) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    status = write_queued(e, tx, id, record, false);
    return tx_end(tx, status, NULL, NULL);
}

/* ---- starting */

/* Whether the transaction itself has started the instance. engine_read does not see what a transaction has written. */
static bool has_started(hd_engine *e, hd_tx *tx, const char *id) {
    place_id doc = engine_document(e, INSTANCE_PREFIX, id);
    unsigned flags = HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM | HD_READ_NO_TAINT;
    if (!doc) return false;
    bool started = hd_value_exists(hd_tx_read(tx, (hd_cell){ doc }, flags));
    place_unref(&e->rt->r.places, doc);
    return started;
}

/* Writes the start into `tx`. NULL: the engine keeps it in memory if it runs the instance's shard; else the start is a
 * commit of its own. */
static hd_status refuse_second(hd_engine *e, const char *id) {
    return runtime_fail(e->rt, HD_EXISTS, "the instance %s exists already", id);
}

static hd_status start_with(hd_engine *e, hd_pool *pool, hd_tx *tx, plan *p, hd_value input,
                            const hd_start_options *o, const char *id) {
    input = start_input(e, pool, p, input);
    if (!hd_value_exists(input)) return hd_value_status(input);
    hd_value known = { 0 };
    if (live_find(e, id)) known = hd_null();
    else if (o->key) known = engine_read(e, pool, INSTANCE_PREFIX, id);
    if (hd_value_exists(known)) return refuse_second(e, id);
    hd_value record = start_record(e, pool, p, input, o->priority, o->queue);
    hd_status status = hd_value_status(hd_value_status(known) ? known : record);
    if (status) return status;
    if (tx && o->key && has_started(e, tx, id)) return refuse_second(e, id);
    if (tx) return write_queued(e, tx, id, record, o->key);
    if (shard_runs(e, id)) return live_start(e, id, p, record, o);
    return o->key ? commit_keyed(e, id, record) : commit_queued(e, id, record);
}

static hd_status start(hd_engine *e, hd_tx *tx, const char *name, hd_value input,
                       const hd_start_options *o, char id[HD_INSTANCE_ID_SIZE]) {
    static const hd_start_options defaults;
    hd_pool *pool;
    plan *p;
    hd_status status = version_latest(e, name, &p);
    if (!o) o = &defaults;
    if (engine_may_pass(status)) return status;
    if (status) return runtime_fail(e->rt, HD_NOT_FOUND, "no workflow \"%s\" is registered", name);
    status = make_id(e, name, o, id);
    if (!status) status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = start_with(e, pool, tx, p, input, o, id);
    hd_pool_close(pool);
    if (!status) e->stats.started++;
    return status;
}

static hd_status no_name(hd_engine *e) {
    return runtime_fail(e->rt, HD_USAGE, "no workflow is named");
}

hd_status hd_workflow_start(hd_engine *e, const char *name, hd_value input,
                            const hd_start_options *options, char id[HD_INSTANCE_ID_SIZE]) {
    if (!name) return no_name(e);
    hd_status status = start(e, NULL, name, input, options, id);
    if (!status && e->active) flight_begin_group(e);
    return status;
}

hd_status hd_workflow_start_in(hd_engine *e, hd_tx *tx, const char *name, hd_value input,
                               const hd_start_options *options, char id[HD_INSTANCE_ID_SIZE]) {
    if (!name) return no_name(e);
    hd_status status = inbox_listen(e);
    return status ? status : start(e, tx, name, input, options, id);
}
