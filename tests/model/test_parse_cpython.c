/* Random Python text, parsed by CPython and by us, must have the same form; what CPython refuses, and what is
 * outside the documented subset, must be refused.
 *
 * tests/model/parse_oracle.py makes the texts and knows the forms; this program parses and answers.
 * HD_PARSE_CASES says how many (20,000 in `make test`), HD_SEED which. */
#define _GNU_SOURCE
#include "expr/parse.h"
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static bool has_python(void) {
    return system("python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null "
                  "2>&1") == 0;
}

static hd_value refusal(hd_pool *pool, size_t length, const hd_error *error) {
    assert_true(error->message[0]);
    assert_true(error->line && error->column && error->offset <= length);
    hd_value v = hd_object_set(pool, hd_object(), "refused", hd_string(pool, error->message));
    return hd_object_set(pool, v, "offset", hd_int(pool, (int64_t)error->offset));
}

static void answer(hd_pool *pool, const char *line, size_t length, FILE *to) {
    hd_error error = { 0 };
    hd_value question = hd_json_parse(pool, line, length, &error), form;
    if (!hd_value_exists(question)) fail_msg("%s: %s", error.message, line);
    size_t size;
    const char *text = hd_value_text(hd_value_at(question, "text"), &size);
    bool statements = hd_value_as_bool(hd_value_at(question, "statements"), false);
    error = (hd_error){ 0 };
    hd_status status = statements ? parse_statements(pool, text, &form, &error)
                                  : parse_expression(pool, text, &form, &error);
    if (status) form = refusal(pool, size, &error);
    const char *said = hd_json_print(pool, form, HD_JSON_COMPACT, NULL);
    assert_non_null(said);
    fprintf(to, "%s\n", said);
    fflush(to);
}

static void text_means_what_it_means_to_cpython(void **state) {
    int down[2], up[2], status;
    hd_heap *heap;
    hd_pool *pool;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    if (!has_python()) {
        print_message("python3 is not 3.11: skipped\n");
        skip();
    }
    assert_int_equal(pipe(down) || pipe(up), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[0]), close(down[1]), close(up[0]), close(up[1]);
        execlp("python3", "python3", "-W", "ignore", "tests/model/parse_oracle.py", (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    FILE *from = fdopen(up[0], "r"), *to = fdopen(down[1], "w");
    assert_int_equal(hd_heap_open(NULL, NULL, &heap), HD_OK);
    assert_int_equal(hd_pool_open(heap, &pool), HD_OK);
    while ((length = getline(&line, &room, from)) > 0) {
        answer(pool, line, (size_t)length, to);
        hd_pool_clear(pool);
    }
    free(line);
    fclose(from);
    fclose(to);
    hd_pool_close(pool);
    hd_heap_close(heap);
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(text_means_what_it_means_to_cpython) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
