/* test_basis_store.c -- rows about nodes in a store: kept with the commit that proves them, told with
 * what has changed since. The same in memory and in a file. */
#include "lab_store.h"
#include "store/basis.h"
#include "store/runtime.h"
#include "store/tx.h"
#include "value/json_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static lab *l;
static lab_runtime *a, *b;
static char text[8192];
static int observed;

static int open_kind(lab_kind kind) {
    l = lab_open_with((lab_options){ .kind = kind });
    a = lab_runtime_open(l, "a");
    b = lab_runtime_open(l, "b");
    observed = 0;
    return 0;
}
static int open_memory(void **state) { return open_kind(LAB_MEMORY); }
static int open_file(void **state) { return open_kind(LAB_SQLITE); }
static int close_all(void **state) {
    lab_close(l);
    return 0;
}

/* What others have committed to a file is seen a moment later. */
static void settle(void) {
    lab_settle(l);
    lab_env_advance_ms(lab_world(l), 200);
    lab_settle(l);
}

/* ---- saying and asking */

static void take_status(void *ctx, hd_status status) { *(hd_status *)ctx = status; }

/* A derived commit with rows and claims alone; what became of it is in *fate, after a settle. */
static void say(lab_runtime *r, const char *reads, const char *extra, hd_status *fate) {
    replica *rep = lab_replica(r);
    commit *c = replica_commit_new(rep, HD_COMMIT_DERIVED);
    assert_non_null(c);
    if (reads) assert_status(tx_claim(rep, c, lab_cell(r, reads).id), HD_OK);
    c->extra = json_read(lab_rt(r)->heap, extra, strlen(extra), NULL);
    assert_true(value_exists(c->extra));
    *fate = HD_PENDING;
    c->done = take_status;
    c->done_ctx = fate;
    replica_enqueue(rep, c);
}

static void keep(lab_runtime *r, const char *reads, const char *extra) {
    hd_status fate;
    say(r, reads, extra, &fate);
    settle();
    assert_status(fate, HD_OK);
}

static bool print_row(void *ctx, const basis_row *row) {
    size_t n = strlen(text);
    hd_pool *pool;
    assert_status(hd_pool_open(lab_rt(ctx)->heap, &pool), HD_OK);
    const char *seqs = hd_json_print(pool, row->seqs, HD_JSON_COMPACT, NULL);
    const char *body = hd_json_print(pool, row->body, HD_JSON_COMPACT, NULL);
    snprintf(text + n, sizeof text - n, "%s%s %s %s %s%s", row->name, row->instance,
             row->fingerprint, seqs, body, row->stale ? " stale;" : ";");
    hd_pool_close(pool);
    return true;
}

/* "valid|name fingerprint seqs body;..." */
static const char *rows(lab_runtime *r, const char *piece) {
    authority *at = lab_replica(r)->authority;
    hd_value valid;
    text[0] = '\0';
    assert_status(at->ops->basis->rows(at, piece, &valid, print_row, r), HD_OK);
    if (value_exists(valid)) {
        hd_pool *pool;
        assert_status(hd_pool_open(lab_rt(r)->heap, &pool), HD_OK);
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "valid %s",
                 hd_json_print(pool, valid, HD_JSON_COMPACT, NULL));
        hd_pool_close(pool);
    }
    value_unref(valid);
    return text;
}

static bool print_change(void *ctx, const basis_change *change) {
    size_t n = strlen(text);
    char cell[128], path[128];
    hd_cell_print(lab_rt(ctx), (hd_cell){ change->doc }, cell, sizeof cell);
    hd_path_print(lab_rt(ctx)->heap, change->path, path, sizeof path);
    snprintf(text + n, sizeof text - n, "%s@%d%s%s;", cell, (int)change->seq,
             change->flags & TOUCH_WHOLE ? "*" : "", path);
    return true;
}

static struct key *space_named(lab_runtime *r, const char *space) {
    struct key *k = key_find(lab_rt(r)->heap, space, strlen(space));
    assert_non_null(k);
    return k;
}

static const char *changes(lab_runtime *r, uint64_t after) {
    authority *at = lab_replica(r)->authority;
    text[0] = '\0';
    struct key *space = space_named(r, "main");
    assert_status(at->ops->basis->changes(at, space, after, print_change, r), HD_OK);
    return text;
}

static uint64_t seq_of(lab_runtime *r) {
    authority *at = lab_replica(r)->authority;
    uint64_t seq;
    assert_status(at->ops->basis->seq_of(at, space_named(r, "main"), &seq), HD_OK);
    return seq;
}

/* ---- rows */

/* C311: observations alone make no revision. */
static void a_commit_of_rows_alone_is_kept_and_takes_no_seq(void **state) {
    lab_write(a, "n", "1");
    settle();
    keep(a, "n", "{\"nodes\":[[\"main:p:x\",\"\",\"f\",{\"r\":[\"main/n\"]}]]}");
    assert_int_equal(seq_of(a), 1);
    assert_string_equal(rows(a, "main:p"), "main:p:x f {\"main\":1} {\"r\":[\"main/n\"]};");
    assert_string_equal(rows(b, "main:p"), "main:p:x f {\"main\":1} {\"r\":[\"main/n\"]};");
    assert_string_equal(rows(a, "main:q"), "");
}

/* C311: what is stale goes with the commit that carried it; whoever said it says it again. */
static void rows_whose_claims_are_refused_are_not_kept(void **state) {
    lab_write(a, "n", "1");
    settle();
    assert_cell(b, "n", "1");
    hd_status fate;
    say(b, "n", "{\"nodes\":[[\"main:p:x\",\"\",\"f\",{\"r\":[\"main/n\"]}]]}", &fate);
    lab_write(a, "n", "2");
    lab_pump(a);
    settle();
    assert_status(fate, HD_STALE);
    assert_string_equal(rows(a, "main:p"), "");
}

/* C294 */
static void rows_that_are_malformed_are_refused_with_their_commit(void **state) {
    hd_status fate;
    say(a, NULL, "{\"nodes\":[[\"main:p:x\",\"\",\"f\",{}]]}", &fate);
    settle();
    assert_status(fate, HD_PROTOCOL);
    assert_int_equal(lab_env_logged(lab_world(l), "a list of reads"), 1);
    assert_string_equal(rows(a, "main:p"), "");
    lab_write(a, "n", "1"); /* what comes after it is none the worse */
    settle();
    assert_cell(b, "n", "1");
}

/* C311, C314: the same row said again is one row, proved later. */
static void a_row_is_replaced_proved_anew_and_gone(void **state) {
    lab_write(a, "n", "1");
    settle();
    keep(a, NULL,
         "{\"nodes\":[[\"main:p:y\",\"\",\"f\",{\"r\":[\"main/n\"]}],"
         "[\"main:p:x\",\"\",\"f\",{\"r\":[]}]]}");
    lab_write(b, "m", "1");
    settle();
    keep(b, NULL, "{\"nodes\":[[\"main:p:y\",\"\",\"f\"]]}");
    assert_string_equal(rows(a, "main:p"), "main:p:x f {\"main\":1} {\"r\":[]};"
                                           "main:p:y f {\"main\":2} {\"r\":[\"main/n\"]};");
    keep(a, NULL,
         "{\"nodes\":[[\"main:p:y\",\"\",\"g\",{\"r\":[\"main/m\"]}]],"
         "\"gone\":[[\"main:p:x\",\"\"]]}");
    assert_string_equal(rows(b, "main:p"), "main:p:y g {\"main\":2} {\"r\":[\"main/m\"]};");
}

static void a_piece_says_how_far_its_rows_hold(void **state) {
    keep(a, NULL,
         "{\"nodes\":[[\"main:p:x\",\"\",\"f\",{\"r\":[]}],[\"main:p:y\",\"\",\"f\",{\"r\":[]}]],"
         "\"pieces\":[[\"main:p\",{\"main\":5},[\"main:p:x\"]]]}");
    assert_string_equal(rows(b, "main:p"),
                        "main:p:x f {} {\"r\":[]} stale;main:p:y f {} {\"r\":[]};"
                        "valid {\"main\":5}");
    keep(b, NULL, "{\"nodes\":[[\"main:p:x\",\"\",\"f\",{\"r\":[]}]]}");
    assert_string_equal(rows(a, "main:p"),
                        "main:p:x f {} {\"r\":[]};main:p:y f {} {\"r\":[]};valid {\"main\":5}");
}

/* ---- changes */

static void changes_are_told_by_path_and_of_known_documents_alone(void **state) {
    lab_write(a, "n", "{\"x\":1,\"y\":1}");
    lab_write(a, "strange", "1");
    settle();
    assert_cell(b, "n#/x", "1");
    uint64_t before = seq_of(b);
    lab_write(a, "n#/x", "2");
    lab_write(a, "strange", "2");
    settle();
    assert_int_equal(seq_of(b), before + 2);
    assert_string_equal(changes(b, before), "main/n@3/x;");
    assert_string_equal(changes(b, before + 1), "");
}

static void what_was_not_heard_yet_has_not_happened(void **state) {
    lab_write(a, "n", "1");
    settle();
    assert_cell(b, "n", "1");
    lab_write(a, "n", "2");
    lab_send(a);
    assert_int_equal(seq_of(b), 1);
    settle();
    assert_int_equal(seq_of(b), 2);
}

/* ---- others' rows */

static void hear(void *ctx, hd_value extra, hd_value seqs) {
    lab_runtime *r = ctx;
    assert_int_equal(hd_value_count(hd_value_at(extra, "nodes")), 1);
    assert_int_equal(hd_value_as_int(hd_value_at(seqs, "main"), 0), 2);
    assert_cell(r, "n", "2"); /* what the commit changed is there already */
    observed++;
}

/* C313 */
static void rows_of_another_runtime_are_told_after_its_changes(void **state) {
    lab_write(a, "n", "1");
    settle();
    assert_cell(b, "n", "1");
    replica *r = lab_replica(b);
    r->observer.observed = hear;
    r->observer.ctx = b;
    lab_replica(a)->observer.observed = hear; /* not told of its own */
    lab_write(a, "n", "2");
    keep(a, "n", "{\"nodes\":[[\"main:p:x\",\"\",\"f\",{\"r\":[\"main/n\"]}]]}");
    assert_int_equal(observed, 1);
    r->observer.ctx = NULL;
    r->observer.observed = NULL;
}

#define EACH(test, open) cmocka_unit_test_setup_teardown(test, open, close_all)
#define ALL(open)                                                                                  \
    EACH(a_commit_of_rows_alone_is_kept_and_takes_no_seq, open),                                   \
        EACH(rows_whose_claims_are_refused_are_not_kept, open),                                    \
        EACH(rows_that_are_malformed_are_refused_with_their_commit, open),                         \
        EACH(a_row_is_replaced_proved_anew_and_gone, open),                                        \
        EACH(a_piece_says_how_far_its_rows_hold, open),                                            \
        EACH(changes_are_told_by_path_and_of_known_documents_alone, open),                         \
        EACH(what_was_not_heard_yet_has_not_happened, open),                                       \
        EACH(rows_of_another_runtime_are_told_after_its_changes, open)

int main(void) {
    const struct CMUnitTest tests[] = { ALL(open_memory), ALL(open_file) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
