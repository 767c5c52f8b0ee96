/* workflow_document.h -- instances that are walked without an engine: one document stands for their store. */
#ifndef LAB_WORKFLOW_DOCUMENT_H
#define LAB_WORKFLOW_DOCUMENT_H

#include "lab.h"
#include "expr/encode.h"
#include "workflow/save.h"
#include "workflow/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static hd_env env;
static hd_heap *heap;
static hd_pool *pool;
static world *w;
static classes *known;
static machine *m;

static hd_value document;
static size_t written; /* bytes of the values in the operations so far */
static uint64_t steps_begun;

static hd_value kept(hd_path at, hd_value count) {
    return hd_array_truncate(pool, hd_value_get(heap, document, at),
                             (size_t)hd_value_as_int(count, 0));
}

static hd_status apply(void *ctx, doc_op op, const char *const *path, uint32_t length,
                       hd_value value) {
    hd_path at = HD_PATH_ROOT;
    size_t size = 0;
    (void)ctx;
    for (uint32_t i = 0; i < length; i++)
        assert_int_equal(hd_path_join(heap, at, path[i], strlen(path[i]), &at), HD_OK);
    if (op != DOC_REMOVE) (void)hd_json_print(pool, value, HD_JSON_COMPACT, &size);
    written += size;
    hd_value next = op == DOC_SET      ? hd_value_set(pool, document, at, value)
                    : op == DOC_APPEND ? hd_value_append(pool, document, at, value)
                    : op == DOC_KEEP   ? hd_value_set(pool, document, at, kept(at, value))
                                       : hd_value_remove(pool, document, at);
    if (hd_value_exists(next)) document = next;
    return hd_value_status(next);
}

static instance *load_again(instance *in, plan *p) {
    hd_error error = { 0 };
    instance_close(in);
    assert_int_equal(instance_open(w, p, &steps_begun, &in), HD_OK);
    if (instance_load(in, document, &error))
        fail_msg("%s in %s", error.message, hd_json_print(pool, document, HD_JSON_COMPACT, NULL));
    return in;
}

static int open_world(void **state) {
    (void)state;
    env = hd_env_system();
    assert_int_equal(hd_heap_open(&env, NULL, &heap), HD_OK);
    assert_int_equal(hd_pool_open(heap, &pool), HD_OK);
    assert_int_equal(classes_open(&env, &known), HD_OK);
    assert_int_equal(world_open(&env, NULL, known, &w), HD_OK);
    assert_int_equal(machine_open(w, &m), HD_OK);
    return 0;
}

static int close_world(void **state) {
    (void)state;
    machine_close(m);
    world_close(w);
    classes_close(known);
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}

#endif
