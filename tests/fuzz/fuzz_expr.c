/* Expressions from a stranger: JSON that is compiled either is refused with a place, or runs to a value,
 * an exception or a limit; and what it gives crosses into a value of the store and back. */
#include "expr/compile.h"
#include "expr/encode.h"
#include "expr/machine.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void evaluate(world *w, machine *m, frame *f, code *c, hd_pool *pool) {
    ev v, again;
    outcome o = machine_eval(m, c, f, &v);
    if (o == OUTCOME_STOPPED) abort(); /* memory is not short here, and nothing is loaded */
    if (o == OUTCOME_RAISED && v.kind != EV_EXC) abort();
    world_check(w);
    hd_value stored = encode_value(w, pool, v);
    if (hd_value_status(stored)) raise_catch(w);
    else if (decode_value(w, stored, &again, NULL) == HD_OK && ev_class(again) != ev_class(v))
        abort();
    w->failure = FAILURE_NONE;
    w->depth = 0;
}

static void compile(world *w, machine *m, hd_value form, hd_pool *pool, bool statements) {
    scope *names;
    frame *f;
    code *c;
    hd_error error = { 0 };
    if (scope_open(NULL, &names)) abort();
    hd_status s = statements ? compile_statements(w, names, form, &c, &error)
                             : compile_expression(w, names, form, &c, &error);
    if (s && (!error.message[0] || c)) abort();
    if (frame_open(w, names, &f)) abort();
    if (!s) evaluate(w, m, f, c, pool);
    frame_close(f);
    code_free(c);
    scope_close(names);
    world_sweep(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_heap *heap;
    hd_pool *pool;
    classes *all;
    world *w;
    machine *m;
    world_limits limits = { .bytes = 1 << 20, .steps = 20000, .depth = 50 };
    if (hd_heap_open(NULL, NULL, &heap) || hd_pool_open(heap, &pool) || classes_open(NULL, &all) ||
        world_open(NULL, &limits, all, &w) || machine_open(w, &m))
        abort();
    hd_value form = hd_json_parse(pool, (const char *)data, size, NULL);
    if (hd_value_exists(form)) {
        compile(w, m, form, pool, false);
        compile(w, m, form, pool, true);
    }
    machine_close(m);
    world_close(w);
    classes_close(all);
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}
