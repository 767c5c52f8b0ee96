/* live.c -- instances in the store: started, taken up, stored, ended.
 *
 * The document of an instance is "workflow/<name>/<key>" of the engine's space; its kind is
 * "workflow.<status>", so that instances of a status, and of a name, are listed by an index. A commit stores
 * the changes of every instance that has walked since the last one. It claims their documents: if anything
 * else has written one, the commit is refused, and its instances are loaded again. */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"
#include "expr/encode.h"
#include "value/key.h"
#include <stdio.h>

#define PREFIX "workflow/"

static void free_text(const hd_env *env, char *chars) {
    if (chars) env_free(env, chars, strlen(chars) + 1);
}

/* ---- which there are */

static uint32_t hash_id(const char *id) { return (uint32_t)hash_bytes(id, strlen(id), 0); }

live *live_find(const hd_engine *e, const char *id) {
    for (table_probe p = table_find(&e->by_id, hash_id(id)); table_next(&e->by_id, &p);)
        if (!strcmp(e->all.items[p.index]->id, id)) return e->all.items[p.index];
    return NULL;
}

static hd_cell cell_of(hd_engine *e, const char *id) {
    char name[HD_INSTANCE_ID_SIZE + 300];
    snprintf(name, sizeof name, "%s/" PREFIX "%s", e->space, id);
    return hd_cell_at(e->rt, name);
}

hd_cell hd_workflow_cell(hd_engine *engine, const char *id) { return cell_of(engine, id); }

/* Room for it among the free ones is made here, so that giving it back cannot fail. */
static uint32_t free_index(hd_engine *e) {
    if (e->free_indices.count) return vec_pop(&e->free_indices);
    if (!vec_room(e->env, &e->free_indices, e->all.count + 1)) return UINT32_MAX;
    return vec_push(e->env, &e->all, NULL) ? e->all.count - 1 : UINT32_MAX;
}

static hd_status new_live(hd_engine *e, const char *id, live **out) {
    live *l = env_new0(e->env, sizeof *l);
    *out = NULL;
    if (!l) return HD_NOMEM;
    l->e = e;
    l->id = env_new_copy(e->env, id, strlen(id) + 1);
    uint32_t index = l->id ? free_index(e) : UINT32_MAX;
    if (index == UINT32_MAX || table_insert(&e->by_id, hash_id(id), index)) {
        if (index != UINT32_MAX) (void)vec_push(e->env, &e->free_indices, index);
        free_text(e->env, l->id);
        env_free(e->env, l, sizeof *l);
        return HD_NOMEM;
    }
    e->all.items[index] = l;
    l->doc = cell_of(e, id).id;
    if (l->doc) place_ref(&e->rt->r.places, l->doc);
    list_push_back(&e->lives, &l->link);
    e->stats.open++;
    *out = l;
    return l->doc ? HD_OK : HD_LIMIT;
}

static void forget_in(live *l) {
    if (!l->in) return;
    step_unqueue(l);
    l->e->stats.nodes += l->in->counts.nodes;
    l->e->stats.arrivals += l->in->counts.arrivals;
    instance_close(l->in);
    l->in = NULL;
}

/* From the end: what is moved into a place has been looked at. */
static void take_out(live *l) {
    hd_engine *e = l->e;
    for (uint32_t i = e->changed.count; i-- > 0;)
        if (e->changed.items[i] == l) vec_swap_remove(&e->changed, i);
    for (uint32_t i = e->under_way.count; i-- > 0;)
        if (e->under_way.items[i] == l) vec_swap_remove(&e->under_way, i);
}

void live_free(live *l) {
    hd_engine *e = l->e;
    forget_in(l);
    take_out(l);
    for (uint32_t i = 0; i < l->mail.count; i++) {
        free_text(e->env, l->mail.items[i].name);
        hd_value_unref(l->mail.items[i].payload);
    }
    vec_fini(e->env, &l->mail);
    for (table_probe p = table_find(&e->by_id, hash_id(l->id)); table_next(&e->by_id, &p);) {
        if (e->all.items[p.index] != l) continue;
        uint32_t index = p.index;
        table_remove(&e->by_id, hash_id(l->id), index);
        e->all.items[index] = NULL;
        (void)vec_push(e->env, &e->free_indices, index);
        break;
    }
    if (l->doc) place_unref(&e->rt->r.places, l->doc);
    list_discard(&l->link);
    free_text(e->env, l->id);
    e->stats.open--;
    l->gone = true;
    if (!l->starting) env_free(e->env, l, sizeof *l);
}

/* ---- loading */

static hd_status load_mail(live *l, hd_value all) {
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it);) {
        const char *name = hd_value_as_text(hd_value_index(it.value, 0), "");
        mail m = { env_new_copy(l->e->env, name, strlen(name) + 1),
                   hd_value_ref(hd_value_index(it.value, 1)) };
        if (m.name && vec_push(l->e->env, &l->mail, m)) continue;
        free_text(l->e->env, m.name);
        hd_value_unref(m.payload);
        return HD_NOMEM;
    }
    return HD_OK;
}

static hd_status load(live *l, hd_error *error) {
    hd_engine *e = l->e;
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value doc = hd_read(e->rt, pool, (hd_cell){ l->doc });
    plan *p = engine_plan(e, hd_value_as_text(hd_value_at(doc, "version"), ""));
    if (!p) {
        env_error(error, HD_CORRUPT, "instance %s: its version of the workflow is not in the store",
                  l->id);
        status = HD_CORRUPT;
    }
    if (!status) status = instance_open(e->w, p, &l->in);
    if (!status) status = instance_load(l->in, doc, error);
    if (!status && !l->mail.count) status = load_mail(l, hd_value_at(doc, "signals"));
    l->priority = (int32_t)hd_value_as_int(hd_value_at(doc, "priority"), 0);
    hd_pool_close(pool);
    return status;
}

hd_status live_take_up(hd_engine *e, const char *id, hd_error *error) {
    live *l;
    hd_status status = new_live(e, id, &l);
    if (!status) status = load(l, error);
    if (status) {
        if (l) live_free(l);
        return status;
    }
    l->stored = true;
    step_queue(l);
    return HD_OK;
}

void live_lost(live *l) {
    hd_error error = { 0 };
    forget_in(l);
    l->changed = false;
    l->commits = 0;
    take_out(l);
    if (l->fresh || load(l, &error)) {
        env_log(l->e->env, HD_LOG_ERROR, "workflow instance %s cannot go on: %s", l->id,
                error.message);
        live_free(l);
        return;
    }
    l->stored = true;
    step_queue(l);
}

/* ---- storing */

void live_changed(live *l) {
    if (l->changed) return;
    /* Without memory for the list the instance is loaded again, as if the walk had not been. */
    l->changed = vec_push(l->e->env, &l->e->changed, l);
    if (!l->changed) live_lost(l);
}

typedef struct target {
    hd_tx *tx;
    place_id doc;
} target;

static hd_status write_op(void *ctx, doc_op how, const char *const *path, uint32_t length,
                          hd_value value) {
    static const op_kind kinds[] = {
        [DOC_SET] = OP_SET, [DOC_REMOVE] = OP_REMOVE, [DOC_APPEND] = OP_APPEND
    };
    const target *t = ctx;
    hd_heap *heap = t->tx->r->heap;
    hd_path at = HD_PATH_ROOT;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < length && !status; i++) {
        struct key *key;
        hd_path next;
        status = key_make(heap, path[i], strlen(path[i]), &key);
        if (status) break;
        status = path_child(heap, at, key, &next);
        key_unref(key);
        if (at != HD_PATH_ROOT) path_unref(heap, at);
        at = status ? HD_PATH_ROOT : next;
    }
    if (!status) status = tx_write_path(t->tx, kinds[how], t->doc, at, value);
    if (at != HD_PATH_ROOT) path_unref(heap, at);
    return status;
}

static hd_status write_mail(hd_tx *tx, live *l, const doc_writer *out) {
    static const char *const path[] = { "signals" };
    hd_pool *pool = hd_tx_pool(tx);
    hd_value all = hd_array();
    if (!l->mail_changed) return HD_OK;
    l->mail_changed = false;
    for (uint32_t i = 0; i < l->mail.count; i++) {
        hd_value pair[] = { hd_string(pool, l->mail.items[i].name), l->mail.items[i].payload };
        all = hd_array_append(pool, all, hd_array_of(pool, pair, 2));
    }
    return out->write(out->ctx, l->mail.count ? DOC_SET : DOC_REMOVE, path, 1, all);
}

static hd_status write_kind(hd_tx *tx, const live *l) {
    char kind[40];
    snprintf(kind, sizeof kind, "workflow.%s", instance_status_name(l->in->status));
    return hd_tx_set_kind(tx, (hd_cell){ l->doc }, kind);
}

static hd_status write_end(hd_tx *tx, const live *l, const doc_writer *out) {
    static const char *const path[] = { "finished" };
    hd_status status =
        out->write(out->ctx, DOC_SET, path, 1, hd_int(hd_tx_pool(tx), (int64_t)l->in->now_ms));
    return status ? status : write_kind(tx, l);
}

static hd_status store(hd_tx *tx, live *l) {
    target t = { tx, l->doc };
    doc_writer out = { &t, write_op };
    hd_status status = tx_note_claim(tx, l->doc);
    if (!status) status = instance_save(l->in, &out);
    if (!status) status = write_mail(tx, l, &out);
    if (!status && instance_is_over(l->in)) status = write_end(tx, l, &out);
    return status;
}

static void end_live(live *l) {
    l->e->stats.finished++;
    live_free(l);
}

/* A commit with changes of it is stored. */
static void stored(live *l) {
    assert(l->commits && l->in);
    l->fresh = false;
    l->commits--;
    l->stored = !l->changed && !l->commits;
    if (!l->stored) return;
    if (instance_is_over(l->in)) end_live(l);
    else step_queue(l);
}

/* The engine was closed before this verdict came. */
static void free_orphan(hd_engine *e) {
    if (e->orphan && !e->waits && !e->starting) env_free(e->env, e, sizeof *e);
}

static void verdict(hd_status status, void *ctx) {
    hd_engine *e = ctx;
    e->waits = false;
    if (e->orphan) {
        free_orphan(e);
        return;
    }
    while (e->under_way.count) {
        live *l = vec_pop(&e->under_way);
        if (status) live_lost(l);
        else stored(l);
    }
}

hd_status live_commit(hd_engine *e) {
    hd_tx *tx;
    if (e->waits || !e->changed.count) return HD_OK;
    hd_status status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    while (e->changed.count && !status) {
        live *l = vec_last(&e->changed);
        if (!vec_room(e->env, &e->under_way, 1)) status = HD_NOMEM;
        if (!status) status = store(tx, l);
        if (status) break;
        e->changed.count--;
        l->changed = l->stored = false;
        l->commits++;
        (void)vec_push(e->env, &e->under_way, l);
    }
    if (status) {
        hd_tx_abort(tx);
        while (e->under_way.count) live_lost(vec_pop(&e->under_way));
        while (e->changed.count) live_lost(vec_last(&e->changed));
        return status;
    }
    e->waits = true;
    e->stats.commits++;
    status = hd_tx_commit(tx, verdict, e);
    if (status) verdict(status, e);
    return status;
}

/* ---- starting */

static const plan *latest(const hd_engine *e, const char *name) {
    for (uint32_t i = 0; i < e->latest.count; i++)
        if (!strcmp(e->plans.items[e->latest.items[i]]->name, name))
            return e->plans.items[e->latest.items[i]];
    return NULL;
}

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

/* The inputs with their defaults, as an object. */
static hd_value complete_input(hd_engine *e, hd_pool *pool, const plan *p, hd_value input) {
    hd_error error = { 0 };
    hd_value all = hd_object();
    const char *unknown = unknown_input(p, input);
    if (unknown)
        return runtime_fail(e->rt, HD_MISMATCH, "%s has no input \"%s\"", p->name, unknown),
               hd_failed(HD_MISMATCH);
    for (uint32_t i = 0; i < p->input_count; i++) {
        const plan_input *in = &p->inputs[i];
        hd_value v = hd_value_at(input, in->name);
        if (!hd_value_exists(v)) v = in->otherwise;
        if (!hd_value_exists(v))
            return runtime_fail(e->rt, HD_MISMATCH, "%s needs the input \"%s\"", p->name, in->name),
                   hd_failed(HD_MISMATCH);
        if (in->schema && hd_schema_validate(in->schema, v, &error))
            return runtime_fail(e->rt, HD_MISMATCH, "input \"%s\" of %s: %s", in->name, p->name,
                                error.message),
                   hd_failed(HD_MISMATCH);
        all = hd_object_set(pool, all, in->name, v);
    }
    return all;
}

static hd_status begin_walk(hd_engine *e, live *l, hd_value input) {
    const plan *p = l->in->p;
    hd_status status = HD_OK;
    ev *inputs = env_new_array(e->env, p->input_count + 1, sizeof *inputs);
    if (!inputs) return HD_NOMEM;
    for (uint32_t i = 0; i < p->input_count && !status; i++)
        status = decode_value(e->w, hd_value_at(input, p->inputs[i].name), &inputs[i], NULL);
    l->in->now_ms = env_wall_ms(e->env);
    if (!status) status = walk_begin(l->in, inputs);
    env_free(e->env, inputs, (p->input_count + 1) * sizeof *inputs);
    return status;
}

static hd_value first_record(hd_engine *e, hd_pool *pool, const plan *p, hd_value input,
                             int32_t priority) {
    hd_value r = hd_object_set(pool, hd_object(), "workflow", hd_string(pool, p->name));
    r = hd_object_set(pool, r, "version", hd_string(pool, p->version));
    r = hd_object_set(pool, r, "status", hd_string(pool, "running"));
    r = hd_object_set(pool, r, "started", hd_int(pool, (int64_t)env_wall_ms(e->env)));
    if (priority) r = hd_object_set(pool, r, "priority", hd_int(pool, priority));
    return hd_object_set(pool, r, "input", input);
}

static void started(hd_status status, void *ctx) {
    live *l = ctx;
    hd_engine *e = l->e;
    assert(l->starting && e->starting);
    l->starting = false;
    e->starting--;
    if (l->gone) {
        env_free(e->env, l, sizeof *l);
        free_orphan(e);
    } else if (status) {
        env_log(e->env, HD_LOG_ERROR, "workflow instance %s is not started: %s", l->id,
                hd_status_text(status));
        live_free(l);
    } else {
        stored(l);
    }
}

/* A start is a commit of its own: if the document is there already, it is refused, and no other instance is
 * touched. It has what the first walk has made. */
static hd_status write_first(hd_engine *e, live *l, hd_value record) {
    hd_tx *tx;
    target t = { NULL, l->doc };
    doc_writer out = { &t, write_op };
    hd_status status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    t.tx = tx;
    tx->class = HD_COMMIT_EVENT;
    status = hd_tx_require_absent(tx, (hd_cell){ l->doc });
    if (!status) status = hd_tx_set(tx, (hd_cell){ l->doc }, record);
    if (!status) status = write_kind(tx, l);
    if (!status) status = instance_save(l->in, &out);
    if (!status && instance_is_over(l->in)) status = write_end(tx, l, &out);
    if (status) {
        hd_tx_abort(tx);
        return status;
    }
    l->fresh = l->starting = true;
    l->commits = 1;
    e->starting++;
    e->stats.started++;
    status = hd_tx_commit(tx, started, l);
    if (status) l->starting = false, e->starting--, e->stats.started--;
    return status;
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

static hd_status start(hd_engine *e, hd_pool *pool, plan *p, hd_value input,
                       const hd_start_options *o, const char *id) {
    live *l;
    input = complete_input(e, pool, p, input);
    if (!hd_value_exists(input)) return hd_value_status(input);
    if (live_find(e, id) || hd_value_exists(hd_read(e->rt, pool, cell_of(e, id)))) return HD_EXISTS;
    hd_status status = new_live(e, id, &l);
    if (!status) status = instance_open(e->w, p, &l->in);
    if (!status) status = begin_walk(e, l, input);
    if (l) l->priority = o->priority;
    if (!status) status = write_first(e, l, first_record(e, pool, p, input, o->priority));
    if (status && l) live_free(l);
    return status;
}

hd_status hd_workflow_start(hd_engine *e, const char *name, hd_value input,
                            const hd_start_options *options, char id[HD_INSTANCE_ID_SIZE]) {
    static const hd_start_options defaults;
    hd_pool *pool;
    const plan *p = latest(e, name);
    if (!options) options = &defaults;
    if (!p) return runtime_fail(e->rt, HD_NOT_FOUND, "no workflow \"%s\" is registered", name);
    hd_status status = make_id(e, name, options, id);
    if (!status) status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = start(e, pool, (plan *)(uintptr_t)p, input, options, id);
    hd_pool_close(pool);
    return status;
}

/* ---- waiting and asking */

static hd_status outcome_of(hd_value doc, hd_value *result) {
    const char *status = hd_value_as_text(hd_value_at(doc, "status"), "");
    *result = hd_value_at(doc, "result");
    if (!strcmp(status, "done")) return HD_OK;
    *result = hd_value_at(doc, "error");
    if (!strcmp(status, "cancelled")) return HD_ABORTED;
    /* Not over: the engine could not keep it in memory. It goes on when the space has an engine again. */
    if (!strcmp(status, "running")) return HD_NOMEM;
    return *status ? HD_FAILED : HD_NOT_FOUND;
}

typedef struct awaited {
    const hd_engine *e;
    const char *id;
} awaited;

static bool is_over(void *ctx) {
    const awaited *a = ctx;
    return !live_find(a->e, a->id);
}

hd_status hd_workflow_await(hd_engine *e, const char *id, hd_pool *pool, hd_value *result) {
    awaited a = { e, id };
    *result = (hd_value){ 0 };
    hd_status status = runtime_run_until(e->rt, is_over, &a);
    return status ? status : outcome_of(hd_read(e->rt, pool, cell_of(e, id)), result);
}

static hd_status walked(live *l, hd_status status) {
    if (status) live_lost(l);
    else live_changed(l);
    return status;
}

hd_status hd_workflow_cancel(hd_engine *e, const char *id) {
    hd_pool *pool;
    live *l = live_find(e, id);
    if (l && l->in && !instance_is_over(l->in)) {
        step_unqueue(l);
        l->in->now_ms = env_wall_ms(e->env);
        return walked(l, walk_cancel(l->in));
    }
    if (hd_pool_open(e->heap, &pool)) return HD_NOMEM;
    bool there = l || hd_value_exists(hd_read(e->rt, pool, cell_of(e, id)));
    hd_pool_close(pool);
    return there ? HD_OK : runtime_fail(e->rt, HD_NOT_FOUND, "there is no instance %s", id);
}

static bool plan_knows_signal(const plan *p, const char *name) {
    for (uint32_t i = 0; i < p->function_count; i++)
        for (uint32_t k = 0; k < p->functions[i].node_count; k++) {
            const plan_node *n = &p->functions[i].nodes[k];
            if (n->kind == NODE_WAIT && !strcmp(n->name, name)) return true;
        }
    return false;
}

hd_status hd_workflow_signal(hd_engine *e, const char *id, const char *signal, hd_value payload) {
    live *l = live_find(e, id);
    if (!l || !l->in || instance_is_over(l->in))
        return runtime_fail(e->rt, HD_NOT_FOUND, "there is no instance %s that could hear a signal",
                            id);
    if (!plan_knows_signal(l->in->p, signal))
        return runtime_fail(e->rt, HD_USAGE, "%s waits for no signal \"%s\"", l->in->p->name,
                            signal);
    mail m = { env_new_copy(e->env, signal, strlen(signal) + 1),
               hd_value_exists(payload) ? hd_value_ref(payload) : hd_null() };
    if (!m.name || !vec_push(e->env, &l->mail, m)) {
        free_text(e->env, m.name);
        hd_value_unref(m.payload);
        return HD_NOMEM;
    }
    l->mail_changed = true;
    hd_status status = step_deliver(l);
    step_unqueue_news(l);
    return walked(l, status);
}
