/* test_tx.c -- transactions: reading one's writes, patches, merging, links, preconditions. */
#include "lab_store.h"
#include "store/replica.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "store_world.h"

static hd_tx *begin(lab_runtime *r) {
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(r), &tx), HD_OK);
    return tx;
}

/* What the open transaction sees. */
static void assert_sees(hd_tx *tx, lab_runtime *r, const char *cell, const char *json) {
    hd_value v = hd_tx_get(tx, lab_cell(r, cell));
    if (!strcmp(json, "-")) assert_false(hd_value_exists(v));
    else assert_string_equal(hd_json_print(hd_tx_pool(tx), v, HD_JSON_COMPACT, NULL), json);
}

/* ---- reading and writing */

static void a_transaction_reads_its_own_writes(void **state) {
    lab_write(a, "n", "{\"x\":1}");
    hd_tx *tx = begin(a);
    assert_status(lab_script(a, tx, "set n#/y 2; append n#/l 1; increment n#/x 5", NULL), HD_OK);
    assert_sees(tx, a, "n", "{\"l\":[1],\"x\":6,\"y\":2}");
    assert_sees(tx, a, "n#/l/length", "1");
    assert_status(lab_script(a, tx, "remove n", NULL), HD_OK);
    assert_sees(tx, a, "n#/x", "-");
    hd_tx_abort(tx);
    assert_cell(a, "n", "{\"x\":1}");
}

static void an_aborted_transaction_leaves_nothing(void **state) {
    lab_heard(a);
    hd_tx *tx = begin(a);
    assert_status(lab_script(a, tx, "set n 1; set m 2; absent k", NULL), HD_OK);
    hd_tx_abort(tx);
    lab_check(a);
    lab_settle(l);
    assert_heard(a, "");
    assert_int_equal(lab_arrived(l), 0);
    assert_cell(a, "n", "-");
}

static void a_write_that_does_not_fit_says_so_and_changes_nothing(void **state) {
    static const struct {
        const char *script;
        hd_status status;
    } writes[] = { { "set n#/x/y 1", HD_KIND },
                   { "append n#/x 1", HD_KIND },
                   { "set n#/l/7 1", HD_RANGE },
                   { "increment n#/l 1", HD_KIND } };
    lab_write(a, "n", "{\"x\":1,\"l\":[1]}");
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        hd_tx *tx = begin(a);
        assert_status(lab_script(a, tx, writes[i].script, NULL), writes[i].status);
        assert_non_null(strstr(hd_runtime_error(hd_tx_runtime(tx))->message, "n#/"));
        assert_sees(tx, a, "n", "{\"l\":[1],\"x\":1}");
        hd_tx_abort(tx);
    }
    assert_cell(a, "n", "{\"l\":[1],\"x\":1}");
}

/* A write or precondition that cannot be made, one for each way to fail. */
static hd_status fail_to_write(hd_tx *tx, int way) {
    hd_cell n = lab_cell(a, "n"), none = { 0 };
    hd_pool *pool = hd_tx_pool(tx);
    switch (way) {
    case 0: return hd_tx_set_int(tx, lab_cell(a, "n#/x/y"), 1);
    case 1: return hd_tx_append(tx, lab_cell(a, "n#/x"), hd_null());
    case 2: return hd_tx_set_int(tx, lab_cell(a, "n#/l/7"), 1);
    case 3: return hd_tx_increment(tx, lab_cell(a, "n#/x"), hd_string(pool, "1"));
    case 4: return hd_tx_set(tx, n, (hd_value){ 0 });
    case 5: return hd_tx_set_json(tx, n, "{");
    case 6: return hd_tx_set_int(tx, none, 1);
    case 7: return hd_tx_remove(tx, none);
    case 8: return hd_tx_append(tx, n, (hd_value){ 0 });
    case 9:
        return hd_tx_set_kind(tx, n,
                              "a kind that has more bytes than a kind can have, by one!!!!!!!!!!");
    case 10: return hd_tx_set_meta(tx, none, "label", hd_null());
    case 11: return hd_tx_require_absent(tx, lab_cell(a, "n#/x"));
    case 12: return hd_tx_require_equal(tx, none, hd_null());
    case 13: return hd_tx_set_int(tx, lab_cell(a, "ring#/a/b"), 1);
    case 14: return hd_tx_set(tx, n, hd_array_append(pool, hd_null(), hd_null()));
    default: return HD_OK;
    }
}

/* Later writes fail as the first one did, also those that would fail by themselves, and so does the commit: with the
 * text that the first failure had, if it had one. */
static void assert_fails_as_before(hd_tx *tx, hd_status status) {
    hd_runtime *rt = hd_tx_runtime(tx);
    hd_error first = *hd_runtime_error(rt);
    bool told = first.status == status;
    hd_value patch = hd_array();
    assert_status(hd_tx_set_int(tx, lab_cell(a, "o"), 1), status);
    if (told) assert_string_equal(hd_runtime_error(rt)->message, first.message);
    assert_status(hd_tx_set_int(tx, lab_cell(a, "n#/x/z"), 1), status);
    assert_status(hd_tx_set_int(tx, (hd_cell){ 0 }, 1), status);
    assert_status(hd_tx_patch(tx, lab_cell(a, "o"), patch, NULL), status);
    if (told) assert_string_equal(hd_runtime_error(rt)->message, first.message);
    assert_int_equal(hd_cell_at(rt, "no slash").id, 0); /* another failure, of no write */
    assert_status(hd_tx_commit(tx, NULL, NULL), status);
    if (told) assert_string_equal(hd_runtime_error(rt)->message, first.message);
}

/* C374: whoever does not look commits nothing, and hears of it in the end. */
static void a_write_that_fails_fails_its_transaction(void **state) {
    lab_write(a, "n", "{\"x\":1,\"l\":[1]}");
    lab_write(a, "ring", "{\"a\":{\"$link\":{\"id\":\"ring\",\"path\":\"/a\"}}}");
    lab_settle(l);
    hd_status status = HD_NOMEM;
    for (int way = 0; status; way++) {
        hd_tx *tx = begin(a);
        assert_status(hd_tx_set_int(tx, lab_cell(a, "m"), way), HD_OK);
        status = fail_to_write(tx, way);
        assert_int_equal(status == HD_OK, way == 15);
        if (status) {
            assert_fails_as_before(tx, status);
        } else {
            assert_status(hd_tx_set_int(tx, lab_cell(a, "o"), way), HD_OK);
            assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
        }
        lab_settle(l);
        assert_cell(a, "m", status ? "-" : "15");
        assert_cell(b, "o", status ? "-" : "15");
    }
}

/* C374: a patch may be tried. */
static void a_patch_that_does_not_fit_leaves_the_transaction_as_it_was(void **state) {
    static const char *const patches[] = { "[{\"op\":\"set\",\"path\":\"/x/y\",\"value\":1}]",
                                           "[{\"op\":\"append\",\"path\":\"/x\",\"value\":1}]",
                                           "[{\"op\":\"set\",\"path\":\"/l/7\",\"value\":1}]",
                                           "[{\"op\":\"move\"}]", "{}" };
    lab_write(a, "n", "{\"x\":1,\"l\":[1]}");
    for (size_t i = 0; i < sizeof patches / sizeof *patches; i++) {
        hd_tx *tx = begin(a);
        hd_value patch = hd_json_parse(hd_tx_pool(tx), patches[i], strlen(patches[i]), NULL);
        assert_int_not_equal(hd_tx_patch(tx, lab_cell(a, "n"), patch, NULL), HD_OK);
        assert_status(hd_tx_set_int(tx, lab_cell(a, "m"), (int64_t)i), HD_OK);
        assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    }
    assert_cell(a, "m", "4");
    assert_cell(a, "n", "{\"l\":[1],\"x\":1}");
}

/* store.h, 0042: a blind write below what another writer has made a link of is left out; the rest of the commit
 * stands. */
static void a_blind_write_below_a_new_link_is_left_out(void **state) {
    lab_write(a, "n", "{\"l\":{\"x\":0}}");
    lab_write(a, "to", "{\"x\":5}");
    lab_settle(l);
    lab_do(b, "set n#/l {\"$link\":{\"id\":\"to\"}}");
    lab_pump(b);
    lab_fate *fate = lab_do(a, "set n#/l/x 1; set m 1");
    lab_settle(l);
    assert_fate(fate, HD_OK);
    assert_cell(a, "m", "1");
    assert_cell(a, "n#/l/x", "5");
    assert_cell(b, "to", "{\"x\":5}");
}

static void keep_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* C375: whoever tried it has read what it did not fit. */
static void what_a_write_did_not_fit_is_a_claim(void **state) {
    lab_write(a, "n", "{\"x\":1,\"l\":[1]}");
    lab_settle(l);
    static const char *const tried[] = { "/x/y", "/l/2" }, *const written[] = { "set n#/x {}",
                                                                                "append n#/l 2" };
    for (int i = 0; i < 2; i++) {
        char patch[80];
        hd_status verdict = HD_PENDING;
        hd_tx *tx = begin(a);
        snprintf(patch, sizeof patch, "[{\"op\":\"set\",\"path\":\"%s\",\"value\":1}]", tried[i]);
        hd_value v = hd_json_parse(hd_tx_pool(tx), patch, strlen(patch), NULL);
        assert_int_not_equal(hd_tx_patch(tx, lab_cell(a, "n"), v, NULL), HD_OK);
        assert_status(hd_tx_set_int(tx, lab_cell(a, "m"), i), HD_OK);
        lab_do(b, written[i]);
        lab_pump(b);
        assert_status(hd_tx_commit(tx, keep_verdict, &verdict), HD_OK);
        lab_settle(l);
        assert_status(verdict, HD_STALE);
    }
}

static void an_increment_beyond_64_bits_is_refused(void **state) {
    lab_write(a, "n", "9223372036854775807");
    hd_tx *tx = begin(a);
    assert_status(lab_script(a, tx, "increment n 1", NULL), HD_RANGE);
    hd_tx_abort(tx);
}

static void a_transaction_of_many_documents_and_reads_works(void **state) {
    hd_tx *tx = begin(a);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        assert_sees(tx, a, name, "-");
        assert_status(hd_tx_set_int(tx, lab_cell(a, name), i), HD_OK);
        assert_sees(tx, a, name, name + 1);
    }
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    lab_settle(l);
    assert_cell(b, "d39", "39");
}

/* ---- patches */

static void a_patch_is_all_or_nothing(void **state) {
    lab_write(a, "n", "{\"x\":1}");
    hd_tx *tx = begin(a);
    assert_status(lab_script(a, tx, "set n#/x 2", NULL), HD_OK);
    assert_status(lab_script(a, tx,
                             "patch n [{\"op\":\"set\",\"path\":\"/x\",\"value\":3},"
                             "{\"op\":\"append\",\"path\":\"/l\",\"value\":3},"
                             "{\"op\":\"set\",\"path\":\"/x/y\",\"value\":1}]",
                             NULL),
                  HD_KIND);
    assert_sees(tx, a, "n", "{\"x\":2}");
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_cell(a, "n", "{\"x\":2}");
    lab_settle(l);
    assert_cell(b, "n", "{\"x\":2}");
}

static void a_patch_does_what_its_entries_say(void **state) {
    lab_write(a, "n", "{\"x\":1,\"y\":1}");
    lab_do(a, "patch n [{\"op\":\"set\",\"path\":\"/a/b\",\"value\":3},"
              "{\"op\":\"append\",\"path\":\"/l\",\"value\":3},{\"op\":\"remove\",\"path\":\"/y\"},"
              "{\"op\":\"increment\",\"path\":\"/x\",\"value\":2}]");
    assert_cell(a, "n", "{\"a\":{\"b\":3},\"l\":[3],\"x\":3}");
}

/* Links may lead a patch into documents that the transaction has written before. */
static void a_failed_patch_takes_back_what_it_wrote_through_links(void **state) {
    lab_write(a, "n", "{\"l\":{\"$link\":{\"id\":\"m\"}},\"k\":{\"$link\":{\"id\":\"o\"}}}");
    lab_write(a, "m", "{\"x\":1}");
    hd_tx *tx = begin(a);
    assert_status(lab_script(a, tx, "set m#/x 2; set m#/z 1", NULL), HD_OK);
    assert_status(lab_script(a, tx,
                             "patch n [{\"op\":\"set\",\"path\":\"/l/z\",\"value\":9},"
                             "{\"op\":\"set\",\"path\":\"/l/y\",\"value\":9},"
                             "{\"op\":\"set\",\"path\":\"/k/y\",\"value\":9},"
                             "{\"op\":\"set\",\"path\":\"/l/x/y\",\"value\":9}]",
                             NULL),
                  HD_KIND);
    assert_sees(tx, a, "m", "{\"x\":2,\"z\":1}");
    assert_sees(tx, a, "o", "-");
    assert_status(lab_script(a, tx, "set m#/w 1", NULL), HD_OK);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_cell(a, "m", "{\"w\":1,\"x\":2,\"z\":1}");
    lab_settle(l);
    assert_cell(b, "m", "{\"w\":1,\"x\":2,\"z\":1}");
}

static void a_malformed_patch_says_which_entry(void **state) {
    static const char *const bad[] = {
        "[{\"op\":\"set\",\"path\":\"/x\",\"value\":1},{\"op\":\"move\",\"path\":\"/x\"}]",
        "[{\"op\":\"set\",\"path\":\"/x\",\"value\":1},{\"op\":\"set\",\"path\":\"/x\"}]",
        "[{\"op\":\"set\",\"path\":\"/x\",\"value\":1},{\"op\":\"set\",\"value\":1}]",
    };
    for (size_t i = 0; i < 3; i++) {
        hd_tx *tx = begin(a);
        hd_error error;
        hd_value patch = hd_json_parse(hd_tx_pool(tx), bad[i], strlen(bad[i]), NULL);
        assert_status(hd_tx_patch(tx, lab_cell(a, "n"), patch, &error), HD_SYNTAX);
        assert_string_equal(error.path, "/1");
        assert_string_equal(hd_runtime_error(hd_tx_runtime(tx))->message, error.message);
        assert_sees(tx, a, "n", "-");
        assert_status(hd_tx_patch(tx, lab_cell(a, "n"), hd_null(), &error), HD_KIND);
        hd_tx_abort(tx);
    }
}

/* A key may have a NUL: the path of a patch is longer than its first part then. */
static void a_patch_writes_keys_with_a_nul(void **state) {
    static const char text[] = "[{\"op\":\"set\",\"path\":\"/x\\u0000y\",\"value\":1}]";
    hd_tx *tx = begin(a);
    hd_value patch = hd_json_parse(hd_tx_pool(tx), text, sizeof text - 1, NULL);
    assert_status(hd_tx_patch(tx, lab_cell(a, "n"), patch, NULL), HD_OK);
    assert_sees(tx, a, "n", "{\"x\\u0000y\":1}");
    hd_tx_abort(tx);
}

/* ---- merging */

static void appends_and_increments_of_two_runtimes_merge(void **state) {
    lab_write(a, "n", "{\"l\":[0],\"s\":0}");
    lab_settle(l);
    assert_cell(b, "n", "{\"l\":[0],\"s\":0}");
    lab_fate *fa = lab_do(a, "append n#/l 1; increment n#/s 1");
    lab_fate *fb = lab_do(b, "append n#/l 2; increment n#/s 2");
    lab_settle(l);
    assert_fate(fa, HD_OK);
    assert_fate(fb, HD_OK);
    assert_cell(a, "n", "{\"l\":[0,1,2],\"s\":3}");
    assert_cell(b, "n", "{\"l\":[0,1,2],\"s\":3}");
}

/* What to keep of an array is known from the array: that is a read. */
static void removing_an_element_of_an_array_that_has_changed_is_stale(void **state) {
    static const char *const removals[] = { "remove n#/l/0", "remove n#/l/2" };
    for (size_t i = 0; i < 2; i++) {
        lab_do(a, "set n {\"l\":[1,2,3]}");
        lab_settle(l);
        assert_cell(b, "n#/l/length", "3");
        lab_fate *removal = lab_do(a, removals[i]);
        lab_fate *append = lab_do(b, "append n#/l 4");
        lab_send(b);
        lab_settle(l);
        assert_fate(append, HD_OK);
        assert_fate(removal, HD_STALE);
        assert_cell(a, "n#/l", "[1,2,3,4]");
    }
}

/* Arrays are never patched in the middle: matching by leaf path stays sound. */
static void no_operation_inserts_or_removes_in_the_middle_of_an_array(void **state) {
    lab_write(a, "n", "[1,2,3,4]");
    lab_settle(l);
    lab_do(a, "remove n#/1");
    assert_cell(a, "n", "[1,3,4]");
    lab_do(a, "remove n#/2");
    assert_cell(a, "n", "[1,3]");
    const place *p = place_at(&lab_replica(a)->places, lab_cell(a, "n").id);
    const layer *bottom = lab_replica(a)->overs.items[p->doc.over].bottom;
    assert_int_equal(bottom->c->ops.items[0].kind, OP_SET);
    assert_int_equal(bottom->next->c->ops.items[0].kind, OP_SPLICE);
    assert_int_equal(bottom->next->c->ops.items[0].keep, 2);
    lab_settle(l);
    assert_cell(b, "n", "[1,3]");
}

/* ---- links */

static void reads_and_writes_follow_links_on_the_way(void **state) {
    lab_write(a, "n", "{\"l\":{\"$link\":{\"id\":\"m\",\"path\":\"/in\"}}}");
    lab_write(a, "m", "{\"in\":{\"x\":1}}");
    assert_cell(a, "n#/l", "{\"x\":1}");
    assert_cell(a, "n#/l/x", "1");
    lab_do(a, "set n#/l/y 2");
    assert_cell(a, "m", "{\"in\":{\"x\":1,\"y\":2}}");
    lab_do(a, "set n#/l 5"); /* at its end a link is replaced */
    assert_cell(a, "n", "{\"l\":5}");
    assert_cell(a, "m", "{\"in\":{\"x\":1,\"y\":2}}");
}

static void retargeting_a_link_makes_a_read_through_it_stale(void **state) {
    lab_do(a, "set n {\"$link\":{\"id\":\"x\"}}; set x 1; set y 2");
    lab_settle(l);
    lab_fate *f = lab_do(b, "get n; set copy 1");
    lab_do(a, "set n {\"$link\":{\"id\":\"y\"}}");
    lab_pump(a);
    lab_pump(b);
    assert_fate(f, HD_STALE);
    assert_cell(b, "n", "2");
}

static void changing_the_target_makes_a_read_through_a_link_stale(void **state) {
    lab_do(a, "set n {\"l\":{\"$link\":{\"id\":\"x\",\"path\":\"/p\"}}}; set x {\"p\":1,\"q\":1}");
    lab_settle(l);
    lab_fate *other = lab_do(b, "get n#/l; set copy 1");
    lab_do(a, "set x#/q 2");
    lab_pump(a);
    lab_settle(l);
    assert_fate(other, HD_OK); /* C100: a different field of the target */
    lab_fate *same = lab_do(b, "get n#/l; set copy 2");
    lab_do(a, "set x#/p 2");
    lab_pump(a);
    lab_pump(b);
    assert_fate(same, HD_STALE);
}

static void a_cycle_of_links_is_reported(void **state) {
    lab_do(a, "set n {\"$link\":{\"id\":\"m\"}}; set m {\"$link\":{\"id\":\"n\"}}");
    assert_cell(a, "n", "!HD_CYCLE");
    assert_cell(a, "n#/x", "!HD_CYCLE");
    assert_non_null(strstr(hd_runtime_error(lab_rt(a))->message, "cycle"));
    hd_tx *tx = begin(a);
    assert_status(lab_script(a, tx, "set n#/x 1", NULL), HD_CYCLE);
    hd_tx_abort(tx);
    tx = begin(a);
    assert_status(lab_script(a, tx, "raw n; set n 1", NULL), HD_OK); /* the way out */
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_cell(a, "n", "1");
    lab_do(a, "set self {\"$link\":{\"path\":\"\"}}");
    assert_cell(a, "self", "!HD_CYCLE");
}

static void a_long_chain_of_links_is_followed_to_its_end(void **state) {
    for (int i = 0; i < 60; i++) lab_dof(a, "set c%d {\"$link\":{\"id\":\"c%d\"}}", i, i + 1);
    lab_write(a, "c60", "\"end\"");
    assert_cell(a, "c0", "\"end\"");
    assert_cell(b, "c0", "-");
    lab_settle(l);
    assert_cell(b, "c0", "\"end\"");
}

static void a_link_may_lead_to_another_space_and_scope(void **state) {
    lab_do(a, "set other/x 1; set main@user/x 2; set main@session/x 3");
    lab_do(a, "set n {\"s\":{\"$link\":{\"space\":\"other\",\"id\":\"x\"}},"
              "\"u\":{\"$link\":{\"id\":\"x\",\"scope\":\"user\"}},"
              "\"t\":{\"$link\":{\"id\":\"x\",\"scope\":\"session\"}}}");
    assert_cell(a, "n#/s", "1");
    assert_cell(a, "n#/u", "2");
    assert_cell(a, "n#/t", "3");
    lab_settle(l);
    assert_cell(b, "n#/u", "2"); /* the same principal */
    assert_cell(b, "n#/t", "-"); /* another session */
}

/* ---- preconditions; N 290 to 292 */

static void a_document_can_be_required_absent(void **state) {
    lab_fate *first = lab_do(a, "absent n; set n 1");
    lab_fate *second = lab_do(b, "absent n; set n 2");
    lab_settle(l);
    assert_fate(first, HD_OK);
    assert_fate(second, HD_EXISTS);
    assert_int_equal(hd_status_class(second->status), HD_CLASS_PERMANENT);
    assert_cell(b, "n", "1");
}

static void a_deleted_document_counts_as_existing(void **state) {
    lab_do(a, "absent n; set n 1");
    lab_do(a, "remove n");
    lab_settle(l);
    assert_cell(a, "n", "-");
    lab_fate *again = lab_do(b, "absent n; set n 2");
    lab_settle(l);
    assert_fate(again, HD_EXISTS);
    assert_cell(b, "n", "-");
}

static void a_precondition_alone_is_a_real_commit(void **state) {
    lab_fate *holds = lab_do(a, "absent n");
    lab_write(b, "m", "1");
    lab_settle(l);
    lab_fate *fails = lab_do(a, "absent m");
    lab_settle(l);
    assert_fate(holds, HD_OK);
    assert_fate(fails, HD_EXISTS);
}

static void a_value_can_be_required_equal(void **state) {
    lab_write(a, "n", "{\"x\":1}");
    lab_settle(l);
    lab_fate *holds = lab_do(a, "equal n#/x 1; set m 1");
    lab_fate *fails = lab_do(a, "equal n#/x 2; set m 2");
    lab_settle(l);
    assert_fate(holds, HD_OK);
    assert_fate(fails, HD_HASH_DIFFERS);
    assert_int_equal(hd_status_class(fails->status), HD_CLASS_STALE);
    assert_cell(a, "m", "1");
}

static void only_a_document_can_be_required_absent(void **state) {
    hd_tx *tx = begin(a);
    assert_status(lab_script(a, tx, "absent n#/x", NULL), HD_USAGE);
    hd_tx_abort(tx);
}

/* ---- claims */

static void a_look_without_claim_is_never_stale(void **state) {
    lab_write(a, "n", "1");
    lab_settle(l);
    lab_fate *f = lab_do(b, "look n; set copy 1");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_pump(b);
    assert_fate(f, HD_OK);
}

static void the_absence_of_a_document_is_a_claim(void **state) {
    lab_fate *f = lab_do(b, "get n; set copy 1");
    lab_write(a, "n", "1");
    lab_pump(a);
    lab_pump(b);
    assert_fate(f, HD_STALE);
}

/* Places that nobody else needs are kept while they stand in a journal. */
static void reads_of_fleeting_places_are_claimed(void **state) {
    lab_do(a,
           "set n {\"l\":{\"$link\":{\"id\":\"x\",\"path\":\"/p/q\"}}}; set x {\"p\":{\"q\":1}}");
    lab_settle(l);
    hd_tx *tx = begin(b);
    hd_value n = hd_tx_read(tx, lab_cell(b, "n"), HD_READ_RAW);
    hd_value v = hd_tx_follow(tx, lab_cell(b, "n"), hd_value_at(n, "l"));
    assert_int_equal(hd_value_as_int(v, 0), 1);
    assert_status(lab_script(b, tx, "set copy 1", NULL), HD_OK);
    lab_write(a, "x#/p/q", "2");
    lab_pump(a);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    lab_pump(b);
    assert_cell(b, "copy", "-");
}

static void repeated_reads_of_one_transaction_are_claimed_once(void **state) {
    lab_write(b, "n", "1");
    lab_settle(l);
    hd_tx *tx = begin(b);
    for (int i = 0; i < 100; i++) hd_tx_get(tx, lab_cell(b, "n"));
    assert_status(lab_script(b, tx, "set m 1", NULL), HD_OK);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    const commit *c = LIST_ENTRY(list_first(&lab_replica(b)->queued), commit, link);
    assert_int_equal(c->claims.count, 1);
}

/* ---- usage */

static void one_transaction_at_a_time(void **state) {
    hd_tx *tx = begin(a), *second;
    assert_status(hd_tx_begin(lab_rt(a), &second), HD_USAGE);
    assert_null(second);
    assert_status(hd_tx_begin_read(lab_rt(a), &second), HD_USAGE);
    assert_status(hd_write(lab_rt(a), lab_cell(a, "n"), hd_null()), HD_USAGE);
    hd_tx_abort(tx);
}

static void a_reading_transaction_does_not_write(void **state) {
    hd_tx *tx;
    assert_status(hd_tx_begin_read(lab_rt(a), &tx), HD_OK);
    assert_status(hd_tx_set_int(tx, lab_cell(a, "n"), 1), HD_READ_ONLY);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_cell(a, "n", "-");
}

static void no_cell_reads_as_absent_and_cannot_be_written(void **state) {
    hd_tx *tx = begin(a);
    assert_false(hd_value_exists(hd_tx_get(tx, (hd_cell){ 0 })));
    assert_status(hd_tx_set(tx, (hd_cell){ 0 }, hd_null()), HD_USAGE);
    assert_non_null(strstr(hd_runtime_error(hd_tx_runtime(tx))->message, "the cell is empty"));
    assert_status(hd_tx_remove(tx, (hd_cell){ 0 }), HD_USAGE);
    assert_status(hd_tx_set(tx, (hd_cell){ 99999 }, hd_null()), HD_USAGE);
    hd_tx_abort(tx);
}

static void a_failed_value_is_refused_with_its_status(void **state) {
    hd_tx *tx = begin(a);
    assert_status(hd_tx_set(tx, lab_cell(a, "n"), hd_failed(HD_LIMIT)), HD_LIMIT);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_LIMIT);
    assert_cell(a, "n", "-");
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_two, close_all)

/* Who made a value may let it go: the transaction has its own reference. */
static void a_value_may_go_before_the_commit(void **state) {
    static const char *const texts[] = { "a text that is too long to stand in a word",
                                         "another text that is too long to stand in a word" };
    hd_pool *pool;
    hd_tx *tx = begin(a);
    for (int i = 0; i < 2; i++) {
        assert_status(hd_pool_open(hd_runtime_heap(lab_rt(a)), &pool), HD_OK);
        assert_status(hd_tx_set(tx, lab_cell(a, "text"), hd_string(pool, texts[i])), HD_OK);
        hd_pool_close(pool);
    }
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    lab_settle(l);
    assert_cell(a, "text", "\"another text that is too long to stand in a word\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_value_may_go_before_the_commit),
        T(a_transaction_reads_its_own_writes),
        T(an_aborted_transaction_leaves_nothing),
        T(a_write_that_does_not_fit_says_so_and_changes_nothing),
        T(a_write_that_fails_fails_its_transaction),
        T(a_patch_that_does_not_fit_leaves_the_transaction_as_it_was),
        T(what_a_write_did_not_fit_is_a_claim),
        T(a_blind_write_below_a_new_link_is_left_out),
        T(an_increment_beyond_64_bits_is_refused),
        T(a_transaction_of_many_documents_and_reads_works),
        T(a_patch_is_all_or_nothing),
        T(a_patch_does_what_its_entries_say),
        T(a_failed_patch_takes_back_what_it_wrote_through_links),
        T(a_malformed_patch_says_which_entry),
        T(a_patch_writes_keys_with_a_nul),
        T(appends_and_increments_of_two_runtimes_merge),
        T(removing_an_element_of_an_array_that_has_changed_is_stale),
        T(no_operation_inserts_or_removes_in_the_middle_of_an_array),
        T(reads_and_writes_follow_links_on_the_way),
        T(retargeting_a_link_makes_a_read_through_it_stale),
        T(changing_the_target_makes_a_read_through_a_link_stale),
        T(a_cycle_of_links_is_reported),
        T(a_long_chain_of_links_is_followed_to_its_end),
        T(a_link_may_lead_to_another_space_and_scope),
        T(a_document_can_be_required_absent),
        T(a_deleted_document_counts_as_existing),
        T(a_precondition_alone_is_a_real_commit),
        T(a_value_can_be_required_equal),
        T(only_a_document_can_be_required_absent),
        T(a_look_without_claim_is_never_stale),
        T(the_absence_of_a_document_is_a_claim),
        T(reads_of_fleeting_places_are_claimed),
        T(repeated_reads_of_one_transaction_are_claimed_once),
        T(one_transaction_at_a_time),
        T(a_reading_transaction_does_not_write),
        T(no_cell_reads_as_absent_and_cannot_be_written),
        T(a_failed_value_is_refused_with_its_status),
    };
    return cmocka_run_group_tests_name("tx", tests, NULL, NULL);
}
