/* test_remote.c -- what an engine hears from a worker, when memory runs out. */
#include "workflow/engine.h"
#include "workflow/remote.h"

#include "lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void script(lab_env *small, void *ctx) {
    hd_runtime *r;
    hd_engine *e;
    remotes *all;
    remote *one;
    hd_error error = { 0 };
    hd_options options = { .env = lab_env_of(small) };
    static const char ir[] =
        "{\"heddle\":1,\"name\":\"one\",\"functions\":[{\"name\":\"run\",\"nodes\":[{\"id\":\"in\","
        "\"kind\":\"ENTRY\"},{\"id\":\"do\",\"kind\":\"ACTION\",\"action\":\"work\",\"args\":[1]},{"
        "\"id\":\"out\",\"kind\":\"RETURN\",\"value\":1}],\"edges\":[[\"in\",\"do\"],[\"do\","
        "\"out\"]]"
        "}]}";
    static const char *const said[] = {
        "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"work\"]}",
        "{\"type\":\"claim\",\"count\":3}", "{\"type\":\"heartbeat\",\"tokens\":[\"1-1\"]}",
        "{\"type\":\"complete\",\"token\":\"1-1\",\"result\":[1,2]}", "{\"type\":\"nonsense\"}"
    };
    (void)ctx;
    if (hd_open(NULL, &options, &r, &error)) return;
    hd_pool *p = NULL;
    if (!hd_pool_open(hd_runtime_heap(r), &p) && !hd_engine_open(r, NULL, &e, &error) &&
        !hd_workflow_register(e, hd_json_parse(p, ir, strlen(ir), NULL), NULL, &error) &&
        !remotes_open(e, &all)) {
        char name[HD_INSTANCE_ID_SIZE];
        e->remotes = all;
        (void)hd_workflow_start(e, "one", hd_object(), NULL, name);
        if (!remote_open(all, -1, &one))
            for (size_t i = 0; i < sizeof said / sizeof *said && !one->ending; i++) {
                unsigned char head[] = { 0, 0, 0, (unsigned char)strlen(said[i]) };
                remote_hear(one, (const char *)head, 4);
                remote_hear(one, said[i], strlen(said[i]));
                (void)hd_runtime_pump(r);
            }
    }
    hd_pool_close(p);
    (void)hd_close(r);
}

static void without_memory_a_worker_is_dropped_and_nothing_else(void **state) {
    assert_true(lab_each_allocation_failure(script, NULL) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_a_worker_is_dropped_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
