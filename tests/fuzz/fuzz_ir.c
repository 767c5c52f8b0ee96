/* IR from a stranger: refused with what and where, or a plan that runs. Every action gives 1 or raises; an instance is
 * saved and loaded after each step. It ends, waits, or is stopped after some steps; nothing crashes. */
#include "expr/machine.h"
#include "workflow/save.h"
#include "workflow/walk.h"

#include <heddle/workflow.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz {
    hd_heap *heap;
    hd_pool *pool;
    classes *classes;
    world *w;
    machine *m;
    hd_value document;
    uint64_t steps_begun;
} fuzz;

static hd_value changed(fuzz *f, hd_value at, doc_op op, const char *const *path, uint32_t length,
                        hd_value value) {
    if (!length) {
        if (op == DOC_KEEP)
            return hd_array_truncate(f->pool, at, (size_t)hd_value_as_int(value, 0));
        if (op != DOC_APPEND) return value;
        return hd_array_append(f->pool, hd_value_kind(at) == HD_KIND_ARRAY ? at : hd_array(),
                               value);
    }
    if (hd_value_kind(at) == HD_KIND_ARRAY) {
        size_t i = (size_t)strtoul(path[0], NULL, 10);
        hd_value inner = changed(f, hd_value_index(at, i), op, path + 1, length - 1, value);
        return hd_array_set(f->pool, at, i, inner);
    }
    if (hd_value_kind(at) != HD_KIND_OBJECT) at = hd_object();
    if (op == DOC_REMOVE && length == 1) return hd_object_remove(f->pool, at, path[0]);
    hd_value inner = changed(f, hd_value_at(at, path[0]), op, path + 1, length - 1, value);
    return hd_object_set(f->pool, at, path[0], inner);
}

static hd_status write_op(void *ctx, doc_op op, const char *const *path, uint32_t length,
                          hd_value value) {
    fuzz *f = ctx;
    f->document = changed(f, f->document, op, path, length, value);
    return hd_value_status(f->document);
}

static bool save(fuzz *f, instance *in) {
    doc_writer out = { f, write_op };
    return instance_save(in, &out) == HD_OK;
}

static strand *waiting(instance *in) {
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_READY || s->state == STRAND_SLEEPING || s->state == STRAND_SIGNAL)
            return s;
    }
    return NULL;
}

static bool go_on(fuzz *f, instance *in, uint32_t turn) {
    strand *s = waiting(in);
    if (!s) return false;
    if (turn % 5 != 4) return walk_result(in, s, ev_int(turn)) == HD_OK;
    (void)raise_f(f->w, CLASS_ValueError, "%u", turn);
    return walk_raise(in, s, raise_catch(f->w)) == HD_OK;
}

static void run(fuzz *f, plan *p) {
    instance *in;
    ev inputs[64];
    if (p->input_count > 64 || instance_open(f->w, p, &f->steps_begun, &in)) return;
    for (uint32_t i = 0; i < p->input_count; i++) inputs[i] = ev_int(i);
    in->most_nodes = 2000;
    bool ok = walk_begin(in, inputs) == HD_OK;
    for (uint32_t turn = 0; ok && turn < 40; turn++) {
        ok = save(f, in);
        if (!ok || instance_is_over(in)) break;
        instance_close(in);
        if (instance_open(f->w, p, &f->steps_begun, &in)) return;
        in->most_nodes = 2000;
        if (instance_load(in, f->document, NULL)) abort(); /* what was saved can be loaded */
        ok = go_on(f, in, turn);
    }
    instance_close(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz f = { 0 };
    plan *p;
    hd_error error = { 0 };
    world_limits limits = { .steps = 20000, .bytes = 1 << 22, .depth = 100 };
    if (hd_heap_open(NULL, NULL, &f.heap) || hd_pool_open(f.heap, &f.pool) ||
        classes_open(NULL, &f.classes) || world_open(NULL, &limits, f.classes, &f.w) ||
        machine_open(f.w, &f.m))
        abort();
    hd_value ir = hd_json_parse(f.pool, (const char *)data, size, NULL);
    f.document = hd_object();
    if (hd_value_exists(ir)) {
        hd_status status = plan_make(f.w, f.heap, ir, &p, &error);
        if (status && !error.message[0]) abort();
        if (!status) {
            run(&f, p);
            plan_unref(p);
        }
    }
    machine_close(f.m);
    world_close(f.w);
    classes_close(f.classes);
    hd_pool_close(f.pool);
    hd_heap_close(f.heap);
    return 0;
}
