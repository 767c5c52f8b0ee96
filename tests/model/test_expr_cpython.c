/* Random expressions, evaluated by CPython and by us: values with their types, aliases and order of
 * insertion, or the class and the arguments of the exception, must be the same.
 *
 * tests/model/expr_oracle.py makes the expressions and knows what CPython makes of them; this program is
 * its other half. It starts the script, reads one case per line from it, evaluates, and writes the answer
 * back; the script compares. HD_EXPR_CASES says how many (100,000 in `make test`), HD_SEED which.
 *
 * A case is {"env": {name: slot}, "objects": {number: [kind, content]}, "code": form, "statements": bool}.
 * The answer has the variables afterwards, the objects by number, and the value or the exception. */
#define _GNU_SOURCE
#include "expr/compile.h"
#include "expr/dict.h"
#include "expr/encode.h"
#include "expr/machine.h"
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { OBJECTS = 2000 };

typedef struct evaluator {
    hd_heap *heap;
    hd_pool *pool;
    classes *classes;
    world *w;
    machine *m;
    hd_value objects;     /* of the question, by number */
    ev asked[OBJECTS];    /* those that were made; referenced */
    ev answered[OBJECTS]; /* by number in the answer */
    uint32_t count;
} evaluator;

/* ---- The two halves ---------------------------------------------------------------------- */

typedef struct script {
    pid_t pid;
    FILE *from, *to;
} script;

static bool has_python(void) {
    return system("python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null "
                  "2>&1") == 0;
}

static script script_start(void) {
    int down[2], up[2];
    if (pipe(down) || pipe(up)) abort();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[0]), close(down[1]), close(up[0]), close(up[1]);
        execlp("python3", "python3", "-W", "ignore", "tests/model/expr_oracle.py", (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    return (script){ pid, fdopen(up[0], "r"), fdopen(down[1], "w") };
}

static int script_end(script *s) {
    int status;
    fclose(s->to);
    fclose(s->from);
    waitpid(s->pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- Classes that the cases use ---------------------------------------------------------- */

static void add_class(evaluator *e, const char *name, uint32_t base, class_kind kind, uint8_t flags,
                      const char *a, const char *b) {
    char *fields[2] = { (char *)(uintptr_t)a, (char *)(uintptr_t)b };
    uint32_t count = a ? b ? 2 : 1 : 0, id;
    class_info info = { .name = (char *)(uintptr_t)name,
                        .base = base,
                        .kind = (uint8_t)kind,
                        .flags = flags,
                        .fields_count = count,
                        .fields = fields,
                        .required = count };
    assert_int_equal(classes_add(e->classes, &info, &id), HD_OK);
}

static hd_status load_object(void *ctx, world *w, ev object);

static void evaluator_open(evaluator *e) {
    memset(e, 0, sizeof *e);
    assert_int_equal(hd_heap_open(NULL, NULL, &e->heap), HD_OK);
    assert_int_equal(hd_pool_open(e->heap, &e->pool), HD_OK);
    assert_int_equal(classes_open(NULL, &e->classes), HD_OK);
    add_class(e, "Item", CLASS_object, CLASS_RECORD, CLASS_OPEN, "name", "price");
    add_class(e, "Frozen", CLASS_object, CLASS_RECORD, CLASS_FROZEN, "x", "y");
    add_class(e, "Point", CLASS_tuple, CLASS_TUPLE, 0, "x", "y");
    add_class(e, "Color", CLASS_Enum, CLASS_ENUM, 0, NULL, NULL);
    add_class(e, "ShopError", CLASS_ValueError, CLASS_EXCEPTION, 0, NULL, NULL);
    assert_int_equal(world_open(NULL, NULL, e->classes, &e->w), HD_OK);
    assert_int_equal(machine_open(e->w, &e->m), HD_OK);
    world_set_loader(e->w, load_object, e);
    for (uint32_t i = 0; i < OBJECTS; i++) e->asked[i] = ev_unbound();
}

static void evaluator_close(evaluator *e) {
    machine_close(e->m);
    world_close(e->w);
    classes_close(e->classes);
    hd_pool_close(e->pool);
    hd_heap_close(e->heap);
}

/* ---- One case ---------------------------------------------------------------------------- */

static hd_value object_entry(const evaluator *e, uint32_t number) {
    char key[16];
    snprintf(key, sizeof key, "%u", number);
    return hd_value_at(e->objects, key);
}

/* Objects are made when the first reference to them is read, and filled by the loader when the first
 * operation looks inside. */
static ev find_object(void *ctx, world *w, uint32_t number) {
    evaluator *e = ctx;
    if (number >= OBJECTS) return ev_fail();
    if (ev_is_obj(e->asked[number])) return e->asked[number];
    const char *kind = hd_value_as_text(hd_value_index(object_entry(e, number), 0), "");
    uint32_t class_ = classes_find(e->classes, kind, strlen(kind));
    ev_kind k = class_ == CLASS_list                                    ? EV_LIST
                : class_ == CLASS_dict                                  ? EV_DICT
                : class_ == CLASS_set                                   ? EV_SET
                : class_of(e->classes, class_)->kind == CLASS_EXCEPTION ? EV_EXC
                                                                        : EV_RECORD;
    ev stub = world_stub(w, k, k == EV_RECORD || k == EV_EXC ? class_ : 0, number);
    world_ref(stub);
    return e->asked[number] = stub;
}

static hd_status load_object(void *ctx, world *w, ev object) {
    evaluator *e = ctx;
    hd_value content = hd_value_index(object_entry(e, world_number(object)), 1);
    return decode_object(w, content, object, find_object, e, NULL);
}

/* Numbers in the order in which the answer meets objects. */
static uint32_t number_object(void *ctx, world *w, ev object) {
    evaluator *e = ctx;
    (void)w;
    if (e->count + 1 >= OBJECTS) return 0;
    e->answered[++e->count] = object;
    world_track(object, e->count);
    return e->count;
}

/* Numbers of the question are forgotten, so that both sides count alike. */
static void forget_numbers(evaluator *e) {
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t i = 1; i < OBJECTS; i++) {
            if (!ev_is_obj(e->asked[i]) || !(e->asked[i].o->flags & OBJ_UNLOADED)) continue;
            assert_true(world_need(e->w, e->asked[i]));
            more = true;
        }
    }
    for (uint32_t i = 1; i < OBJECTS; i++)
        if (ev_is_obj(e->asked[i])) world_track(e->asked[i], 0);
    world_journal_clear(e->w);
    e->count = 0;
}

static hd_value put(evaluator *e, hd_value object, const char *key, hd_value v) {
    if (hd_value_status(v)) {
        /* An iterator or function is no answer; say so. */
        raise_catch(e->w);
        e->w->failure = FAILURE_NONE;
        e->w->depth = 0;
        v = hd_string(e->pool, "<cannot be encoded>");
    }
    return hd_object_set(e->pool, object, key, v);
}

/* An object as an instance's document has it, with nothing where an entry was deleted. */
static hd_value without_holes(evaluator *e, hd_value content) {
    static const char *const tags[] = { "$keys", "$dict", "$set" };
    for (int i = 0; i < 3; i++) {
        hd_value all = hd_value_at(content, tags[i]), left = hd_array();
        if (hd_value_kind(all) != HD_KIND_ARRAY) continue;
        for (hd_iter it = hd_iter_of(all); hd_iter_next(&it);)
            if (hd_value_kind(it.value) != HD_KIND_ARRAY || hd_value_count(it.value))
                left = hd_array_append(e->pool, left, it.value);
        content = hd_object_set(e->pool, content, tags[i], left);
    }
    return content;
}

static hd_value answer(evaluator *e, const frame *f, outcome o, ev v) {
    hd_value out = hd_object(), env = hd_object(), objects = hd_array();
    forget_numbers(e);
    for (uint32_t i = 0; i < f->slots.count; i++)
        if (f->slots.items[i].kind != EV_UNBOUND)
            env = put(e, env, f->names->names.items[i],
                      encode_slot(e->w, e->pool, f->slots.items[i], number_object, e));
    out = put(e, out, "env", env);
    if (o == OUTCOME_STOPPED)
        return put(e, out, "stopped", hd_string(e->pool, hd_status_name(e->w->status)));
    out = put(e, out, o == OUTCOME_VALUE ? "value" : "error",
              encode_slot(e->w, e->pool, v, number_object, e));
    for (uint32_t i = 1; i <= e->count; i++) {
        hd_value one = put(e, hd_object(), "o",
                           encode_object(e->w, e->pool, e->answered[i], number_object, e));
        objects = hd_array_append(e->pool, objects, without_holes(e, hd_value_at(one, "o")));
    }
    return put(e, out, "objects", objects);
}

static hd_value refused(evaluator *e, const hd_error *error) {
    hd_value out =
        hd_object_set(e->pool, hd_object(), "refused", hd_string(e->pool, error->message));
    return hd_object_set(e->pool, out, "path", hd_string(e->pool, error->path));
}

static frame *read_frame(evaluator *e, hd_value question, scope *names) {
    frame *f;
    uint32_t slot;
    ev v;
    for (hd_iter it = hd_iter_of(hd_value_at(question, "names")); hd_iter_next(&it);) {
        size_t length;
        const char *name = hd_value_text(it.value, &length);
        assert_int_equal(scope_slot(names, name, length, &slot), HD_OK);
    }
    assert_int_equal(frame_open(e->w, names, &f), HD_OK);
    for (hd_iter it = hd_iter_of(hd_value_at(question, "env")); hd_iter_next(&it);) {
        assert_int_equal(decode_slot(e->w, it.value, find_object, e, &v, NULL), HD_OK);
        frame_set(f, scope_find(names, it.key, it.key_length), v);
    }
    return f;
}

static hd_value evaluate(evaluator *e, hd_value question) {
    scope *names;
    code *c = NULL;
    hd_error error = { 0 };
    hd_value out, form = hd_value_at(question, "code");
    ev v;
    assert_int_equal(scope_open(NULL, &names), HD_OK);
    e->objects = hd_value_at(question, "objects");
    frame *f = read_frame(e, question, names);
    bool statements = hd_value_as_bool(hd_value_at(question, "statements"), false);
    hd_status status = statements ? compile_statements(e->w, names, form, &c, &error)
                                  : compile_expression(e->w, names, form, &c, &error);
    if (status) out = refused(e, &error);
    else {
        outcome o = machine_eval(e->m, c, f, &v);
        out = answer(e, f, o, v);
    }
    world_check(e->w);
    code_free(c);
    frame_close(f);
    scope_close(names);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        world_unref(e->w, e->asked[i]);
        e->asked[i] = ev_unbound();
    }
    world_sweep(e->w);
    return out;
}

static hd_value coverage(evaluator *e) {
    static const char *const names[] = {
#define CODE_ROW(name) #name,
        CODE_OPS(CODE_ROW)
#undef CODE_ROW
    };
    hd_value out = hd_object();
    for (uint32_t i = 0; i < CODE_COUNT; i++)
        out = hd_object_set(e->pool, out, names[i],
                            hd_int(e->pool, (int64_t)machine_counts(e->m)[i]));
    return out;
}

/* Answers of a batch are written when all its questions have been read: otherwise both sides could wait
 * for the other to read. */
static void answer_all(evaluator *e, script *s) {
    char *line = NULL, *batch = NULL;
    size_t size = 0, batch_size = 0, length;
    FILE *out_file = open_memstream(&batch, &batch_size);
    for (ssize_t n; (n = getline(&line, &size, s->from)) > 0;) {
        hd_error error;
        hd_value question = hd_json_parse(e->pool, line, (size_t)n, &error);
        if (!hd_value_exists(question))
            fail_msg("the script wrote no JSON: %s: %s", error.message, line);
        bool last = hd_value_exists(hd_value_at(question, "coverage"));
        hd_value out = last ? coverage(e) : evaluate(e, question);
        const char *text_out = hd_json_print(e->pool, out, HD_JSON_COMPACT, &length);
        if (!text_out) fail_msg("the answer cannot be printed: %s", line);
        fwrite(text_out, 1, length, out_file);
        fputc('\n', out_file);
        if (hd_value_exists(hd_value_at(question, "flush"))) {
            fflush(out_file);
            fwrite(batch, 1, (size_t)ftello(out_file), s->to);
            fflush(s->to);
            rewind(out_file);
        }
        hd_pool_clear(e->pool);
    }
    fclose(out_file);
    free(batch);
    free(line);
}

/* Issue: the evaluator against real CPython on random expressions. */
static void expressions_mean_what_they_mean_in_cpython(void **state) {
    evaluator *e = malloc(sizeof *e);
    (void)state;
    if (!has_python()) {
        free(e);
        print_message("skipped: python3 is not installed or is not 3.11\n");
        skip();
    }
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)lab_seed());
    setenv("HD_EXPR_SEED", seed, 1);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    setenv("HD_EXPR_CASES", "15000", 0); /* several times slower */
#endif
    evaluator_open(e);
    script s = script_start();
    answer_all(e, &s);
    int status = script_end(&s);
    evaluator_close(e);
    free(e);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_mean_what_they_mean_in_cpython),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
