/* Receipts: an event counts once (CONFORMANCE N; I11). Races are in test_events_race.c. */
#include "lab_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "events_control.h"

static void sync_now(lab *l) { assert_status(hd_runtime_sync(lab_runtime_now(l)), HD_OK); }

static const char *receipt_name(const char *id) {
    static char name[128];
    snprintf(name, sizeof name, "receipt/%s", id);
    /* The lab takes a name with a slash as it is. */
    static char full[160];
    snprintf(full, sizeof full, "main/%s", name);
    return full;
}

static const char *meta_of(lab *l, const char *id, const char *key) {
    static char out[256];
    hd_runtime *rt = lab_runtime_now(l);
    hd_tx *tx;
    hd_tx_begin_read(rt, &tx);
    hd_value v = hd_tx_get_meta(tx, hd_event_receipt(rt, hd_cell_at(rt, "main/buy"), id), key);
    const char *json = hd_json_print(hd_tx_pool(tx), v, HD_JSON_COMPACT, NULL);
    snprintf(out, sizeof out, "%s", json ? json : "-");
    hd_tx_abort(tx);
    return out;
}

static bool count_one(const hd_listing *entry, void *ctx) {
    (*(int *)ctx)++;
    return true;
}
static int count_kind(lab *l, const char *kind) {
    int n = 0;
    hd_runtime_list(lab_runtime_now(l), "main", kind, NULL, count_one, &n);
    return n;
}
static int count_named(lab *l, const char *prefix) {
    int n = 0;
    hd_runtime_list(lab_runtime_now(l), "main", NULL, prefix, count_one, &n);
    return n;
}

/* Whether there is something under this word beside a document. */
static bool says(lab *l, const char *prefix, const char *id, const char *word) {
    char name[160];
    hd_runtime *rt = lab_runtime_now(l);
    hd_tx *tx;
    snprintf(name, sizeof name, "main/%s%s", prefix, id);
    hd_tx_begin_read(rt, &tx);
    bool found = hd_value_exists(hd_tx_get_meta(tx, hd_cell_at(rt, name), word));
    hd_tx_abort(tx);
    return found;
}
static bool says_its_kind(lab *l, const char *prefix, const char *id) {
    return says(l, prefix, id, "kind");
}

/* C278, I11: the same id delivered twice: the effects are there once, the second delivery ends with
 * HD_EXISTS and is not retried. */
static void i11_an_event_delivered_twice_counts_once(void **state) {
    lab *l = lab_start();
    lab_outcome a = { 0 }, b = { 0 }, c = { 0 };
    lab_catch(l);
    lab_handle(l, .stream = "buy");
    lab_fire_id(l, "buy", "1", "x", &a);
    lab_fire_id(l, "buy", "2", "x", &b);
    sync_now(l);
    lab_fire_id(l, "buy", "3", "x", &c);
    sync_now(l);
    assert_json(l, "buy_log", "[1]");
    assert_outcome(a, HD_OK);
    assert_outcome(b, HD_EXISTS);
    assert_outcome(c, HD_EXISTS);
    assert_string_equal(a.id, b.id);
    assert_string_equal(lab_failures(l), "");
    assert_int_equal(lab_event_stats(l).duplicates, 2);
    lab_close(l);
}

/* C278, I11: to two runtimes that do not know of each other. Whoever comes second is refused by the
 * store, and takes it back. */
static void i11_an_event_delivered_to_two_runtimes_counts_once(void **state) {
    lab *l = lab_start();
    lab_outcome a = { 0 }, b = { 0 };
    lab_handler *first = lab_handle(l, .stream = "buy");
    lab_on(l, "b");
    lab_handler *second = lab_handle(l, .stream = "buy");
    lab_fire_id(l, "buy", "2", "x", &b);
    lab_on(l, "a");
    lab_fire_id(l, "buy", "1", "x", &a);
    lab_cut(lab_on(l, "a"));
    lab_idle(l);
    assert_int_equal(first->runs, 1);
    lab_on(l, "b");
    sync_now(l);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_outcome(b, HD_OK);
    assert_outcome(a, HD_EXISTS);
    assert_int_equal(first->runs + second->runs, 2);
    assert_json(l, "buy_log", "[2]");
    lab_close(l);
}

static hd_status set_same(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return lab_tx_set(self, tx, "n", hd_int(NULL, 1));
}

/* C279, I11: also where the second handling would change nothing. */
static void i11_a_repetition_whose_writes_all_elide_is_refused_too(void **state) {
    lab *l = lab_start();
    lab_outcome a = { 0 }, b = { 0 };
    lab_set(l, "n", 1);
    lab_handle(l, .stream = "buy", .reads = "n", .body = set_same);
    lab_on(l, "b");
    lab_handle(l, .stream = "buy", .reads = "n", .body = set_same);
    lab_fire_id(l, "buy", "2", "x", &b);
    lab_on(l, "a");
    lab_fire_id(l, "buy", "1", "x", &a);
    lab_cut(lab_on(l, "a"));
    lab_idle(l);
    lab_on(l, "b");
    sync_now(l);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_outcome(b, HD_OK);
    assert_outcome(a, HD_EXISTS);
    lab_close(l);
}

static hd_status do_nothing(lab_handler *self, hd_tx *tx, const hd_event *event) { return HD_OK; }

/* C280: a handler that does nothing leaves a receipt: an empty record, found by its name. C286: every
 * handling leaves one. */
static void i11_every_handling_leaves_a_receipt(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_handle(l, .stream = "buy", .reads = "n", .body = do_nothing);
    lab_fire(l, "buy", "1", &o);
    sync_now(l);
    assert_outcome(o, HD_OK);
    assert_json(l, receipt_name(o.id), "{}");
    assert_int_equal(count_named(l, "receipt/"), 1);
    lab_close(l);
}

/* Where the store can be asked again, a program does not keep the receipts of all it has handled; and
 * finds them when it asks. */
static void receipts_are_not_kept_at_hand(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 }, again = { 0 };
    lab_handle(l, .stream = "buy");
    lab_fire_id(l, "buy", "0", "first", &o);
    sync_now(l);
    hd_store_stats before, after;
    hd_runtime_store_stats(lab_runtime_now(l), &before);
    for (int i = 0; i < 50; i++) {
        lab_fire(l, "buy", "1", NULL);
        sync_now(l);
    }
    hd_runtime_store_stats(lab_runtime_now(l), &after);
    assert_int_equal(after.documents, before.documents + (lab_is_sqlite(l) ? 0 : 50));
    lab_fire_id(l, "buy", "2", "first", &again);
    sync_now(l);
    assert_outcome(again, HD_EXISTS);
    assert_json(l, receipt_name(o.id), "{}");
    lab_close(l);
}

typedef struct disturbance {
    hd_runtime *rt;
    hd_cell cell;
    int times;
} disturbance;

static hd_status append_disturbed(lab_handler *self, hd_tx *tx, const hd_event *event) {
    disturbance *d = self->data;
    hd_value v = lab_tx_get(self, tx, "hot");
    if (hd_value_status(v)) return hd_value_status(v);
    if (d->times-- > 0) {
        hd_write_json(d->rt, d->cell, d->times ? "1" : "2");
        hd_runtime_sync(d->rt);
    }
    return lab_append(self, tx, event);
}

/* C283, I11: a conflict about another document: the retry has the same receipt, and commits once. */
static void i11_a_retry_does_not_stumble_over_its_own_receipt(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_runtime *b = lab_on(l, "b");
    disturbance d = { lab_rt(b), lab_cell(b, "hot"), 2 };
    lab_on(l, "a");
    lab_handler *h = lab_handle(l, .stream = "buy", .reads = "hot buy_log",
                                .body = append_disturbed, .data = &d);
    lab_fire(l, "buy", "1", &o);
    sync_now(l);
    assert_outcome(o, HD_OK);
    assert_int_equal(h->runs, 3);
    assert_json(l, "buy_log", "[1]");
    assert_json(l, receipt_name(o.id), "{}");
    lab_close(l);
}

static hd_status return_payload(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return hd_tx_return(tx, event->payload);
}

/* C287: what the handler returns is in the receipt; a redelivery with another payload leaves it.
 * C288: its schema names kind and keys of containers, and nothing else. */
static void what_a_handler_returns_is_in_its_receipt(void **state) {
    static const struct {
        const char *json, *schema;
    } cases[] = { { "{\"a\":1,\"b\":{\"c\":2}}",
                    "{\"properties\":{\"a\":{},\"b\":{}},\"type\":\"object\"}" },
                  { "[1,2]", "{\"type\":\"array\"}" },
                  { "7", "-" },
                  { "{\"$link\":{\"id\":\"n\"}}", "-" } };
    lab *l = lab_start();
    lab_set(l, "n", 42);
    lab_handle(l, .stream = "buy", .reads = "x", .body = return_payload);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lab_outcome o = { 0 }, again = { 0 };
        char id[8];
        snprintf(id, sizeof id, "%zu", i);
        lab_fire_id(l, "buy", cases[i].json, id, &o);
        sync_now(l);
        lab_fire_id(l, "buy", "\"other\"", id, &again);
        sync_now(l);
        assert_outcome(o, HD_OK);
        assert_outcome(again, HD_EXISTS);
        assert_json(l, receipt_name(o.id), i < 3 ? cases[i].json : "42"); /* a link is followed */
        assert_string_equal(meta_of(l, o.id, "schema"), cases[i].schema);
    }
    lab_close(l);
}

/* C289: a payload that does not match is refused like a failing handler: no receipt, the id is not
 * spent. Defaults are filled in. */
static void a_payload_that_does_not_match_spends_no_id(void **state) {
    lab *l = lab_start();
    lab_outcome bad = { 0 }, good = { 0 };
    lab_catch(l);
    lab_handle(l, .stream = "buy", .body = return_payload,
               .event_schema = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},"
                               "\"unit\":{\"default\":\"kg\"}},\"additionalProperties\":false}");
    lab_fire_id(l, "buy", "{\"n\":1,\"extra\":2}", "x", &bad);
    sync_now(l);
    assert_ran(l, "");
    assert_outcome(bad, HD_MISMATCH);
    assert_json(l, receipt_name(bad.id), "-");
    assert_string_equal(lab_failures(l), "buy HD_MISMATCH");
    lab_fire_id(l, "buy", "{\"n\":1}", "x", &good);
    sync_now(l);
    assert_outcome(good, HD_OK);
    assert_json(l, receipt_name(good.id), "{\"n\":1,\"unit\":\"kg\"}");
    lab_close(l);
}

/* C290, I11: a receipt that was deleted still counts: tombstones are remembered. */
static void i11_a_deleted_receipt_still_counts(void **state) {
    lab *l = lab_start();
    lab_outcome a = { 0 }, b = { 0 };
    lab_handle(l, .stream = "buy");
    lab_fire_id(l, "buy", "1", "x", &a);
    sync_now(l);
    lab_remove(l, receipt_name(a.id));
    sync_now(l);
    lab_fire_id(l, "buy", "2", "x", &b);
    sync_now(l);
    assert_outcome(a, HD_OK);
    assert_outcome(b, HD_EXISTS);
    assert_json(l, "buy_log", "[1]");
    lab_close(l);
}

static void note_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* C290: "must be absent": applies to what is not there; refuses what is, or was; also alone. C292:
 * the kind of failure comes through. */
static void absence_is_a_condition_of_the_commit(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    hd_cell cell = hd_cell_at(rt, "main/doc");
    hd_status verdicts[3] = { HD_PENDING, HD_PENDING, HD_PENDING };
    hd_tx *tx;
    hd_tx_begin(rt, &tx);
    hd_tx_require_absent(tx, cell);
    hd_tx_set_int(tx, cell, 1);
    hd_tx_commit(tx, note_verdict, &verdicts[0]);
    sync_now(l);
    for (int i = 1; i < 3; i++) {
        hd_tx_begin(rt, &tx);
        hd_tx_require_absent(tx, cell);
        hd_tx_commit(tx, note_verdict, &verdicts[i]);
        sync_now(l);
        lab_remove(l, "doc");
        sync_now(l);
    }
    assert_status(verdicts[0], HD_OK);
    assert_status(verdicts[1], HD_EXISTS);
    assert_status(verdicts[2], HD_EXISTS);
    assert_int_equal(hd_status_class(verdicts[1]), HD_CLASS_PERMANENT);
    lab_close(l);
}

static hd_status mint_ids(lab_handler *self, hd_tx *tx, const hd_event *event) {
    char(*ids)[HD_ID_SIZE] = self->data;
    hd_value v = lab_tx_get(self, tx, "hot");
    if (hd_value_status(v)) return hd_value_status(v);
    for (int i = 0; i < 2; i++)
        if (hd_tx_mint(tx, ids[2 * (event->attempt - 1) + (uint32_t)i])) return HD_FAILED;
    return event->attempt == 1 ? HD_BUSY : HD_OK;
}

/* Ids that a handler mints derive from the event: a retry repeats them, two never share one. */
static void a_retry_mints_the_same_ids(void **state) {
    lab *l = lab_start();
    char ids[4][HD_ID_SIZE] = { { 0 } };
    lab_handle(l, .stream = "buy", .reads = "hot", .body = mint_ids, .data = ids);
    lab_fire(l, "buy", "1", NULL);
    sync_now(l);
    assert_string_equal(ids[0], ids[2]);
    assert_string_equal(ids[1], ids[3]);
    assert_string_not_equal(ids[0], ids[1]);
    lab_close(l);
}

typedef struct journey {
    int arrived, stayed;
} journey;

static void navigate(hd_status status, void *ctx) {
    journey *j = ctx;
    if (status) j->stayed++;
    else j->arrived++;
}

static hd_status go_there(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return hd_tx_after_commit(tx, navigate, self->data);
}

/* C285: a handler that navigates once its commit stands does so at the first delivery; neither a
 * repetition, nor a delivery elsewhere that comes second, does it again. */
static void i11_a_handler_navigates_once(void **state) {
    lab *l = lab_start();
    journey a = { 0 }, b = { 0 };
    lab_outcome first = { 0 }, again = { 0 }, elsewhere = { 0 };
    lab_on(l, "b");
    lab_handle(l, .stream = "buy", .body = go_there, .data = &b);
    lab_on(l, "a");
    lab_handle(l, .stream = "buy", .body = go_there, .data = &a);
    lab_fire_id(l, "buy", "1", "x", &first);
    sync_now(l);
    lab_fire_id(l, "buy", "1", "x", &again);
    sync_now(l);
    lab_on(l, "b");
    lab_fire_id(l, "buy", "1", "x", &elsewhere);
    sync_now(l);
    assert_outcome(first, HD_OK);
    assert_outcome(again, HD_EXISTS);
    assert_outcome(elsewhere, HD_EXISTS);
    assert_int_equal(a.arrived, 1);
    assert_int_equal(a.stayed + b.arrived, 0);
    lab_close(l);
}

/* ---- time */

#define DAY UINT64_C(86400000)

/* Ids older than the receipt horizon are refused for good, and their receipts are forgotten. */
static void an_id_older_than_the_horizon_is_refused(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    const hd_env *env = lab_env_of(lab_world(l));
    uint64_t now = env->wall_ms(env->ctx), pruned;
    lab_outcome old = { 0 }, timeless = { 0 };
    lab_handle(l, .stream = "buy");
    hd_send_options options = {
        .id = "x", .id_time_ms = now, .done = lab_outcome_note, .ctx = &old
    };
    assert_status(hd_event_send(rt, hd_cell_at(rt, "main/buy"), hd_int(NULL, 1), &options), HD_OK);
    lab_fire_id(l, "buy", "2", "y", &timeless);
    sync_now(l);
    assert_outcome(old, HD_OK);
    assert_status(hd_receipt_prune(rt, "main", &pruned), HD_OK);
    assert_int_equal(pruned, 0);
    lab_env_set_wall_ms(lab_world(l), now + 31 * DAY);
    assert_status(hd_event_send(rt, hd_cell_at(rt, "main/buy"), hd_int(NULL, 1), &options),
                  HD_EXPIRED);
    assert_int_equal(hd_status_class(HD_EXPIRED), HD_CLASS_PERMANENT);
    assert_status(hd_receipt_prune(rt, "main", &pruned), HD_OK);
    assert_int_equal(pruned, 2);
    sync_now(l);
    assert_json(l, receipt_name(old.id), "-");
    assert_json(l, receipt_name(timeless.id), "-");
    lab_close(l);
}

static uint64_t wall_now(lab *l) {
    const hd_env *env = lab_env_of(lab_world(l));
    return env->wall_ms(env->ctx);
}
static uint64_t prune(lab *l) {
    uint64_t pruned;
    assert_status(hd_receipt_prune(lab_runtime_now(l), "main", &pruned), HD_OK);
    sync_now(l);
    return pruned;
}
static hd_event_stats event_stats(lab *l) {
    hd_event_stats stats;
    hd_runtime_event_stats(lab_runtime_now(l), &stats);
    return stats;
}

/* event.h: the receipt of an id without a time is kept until the horizon, counted from its handling; then the same id
 * is a new event. */
static void an_id_without_a_time_counts_once_until_the_horizon(void **state) {
    lab *l = lab_start();
    uint64_t start = wall_now(l);
    lab_outcome first = { 0 }, again = { 0 }, later = { 0 };
    lab_handle(l, .stream = "buy");
    lab_env_set_wall_ms(lab_world(l), start + 100 * DAY);
    lab_fire_id(l, "buy", "1", "x", &first);
    sync_now(l);
    lab_env_set_wall_ms(lab_world(l), start + 129 * DAY);
    assert_int_equal(prune(l), 0);
    lab_fire_id(l, "buy", "1", "x", &again);
    sync_now(l);
    assert_outcome(again, HD_EXISTS);
    lab_env_set_wall_ms(lab_world(l), start + 131 * DAY);
    assert_int_equal(prune(l), 1);
    assert_int_equal(count_named(l, "receipt/"), 0);
    lab_fire_id(l, "buy", "1", "x", &later);
    sync_now(l);
    assert_outcome(later, HD_OK);
    assert_string_equal(later.id, first.id);
    lab_env_set_wall_ms(lab_world(l), start + 170 * DAY);
    assert_int_equal(prune(l), 1);
    lab_close(l);
}

/* event.h: a dropped event keeps its receipt until the horizon, counted from when it was dropped. */
static void a_dropped_event_keeps_its_receipt_until_the_horizon(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    hd_cell buy = hd_cell_at(rt, "main/buy");
    uint64_t start = wall_now(l);
    char id[HD_EVENT_ID_SIZE];
    hd_send_options options = { .id = "x" };
    assert_status(hd_event_post(rt, buy, hd_int(NULL, 1), &options, id), HD_OK);
    sync_now(l);
    lab_env_set_wall_ms(lab_world(l), start + 100 * DAY);
    hd_tx *tx;
    hd_tx_begin(rt, &tx);
    assert_status(hd_tx_event_drop(tx, hd_event_cell(rt, buy, id), "no"), HD_OK);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    sync_now(l);
    lab_env_set_wall_ms(lab_world(l), start + 129 * DAY);
    assert_int_equal(prune(l), 0);
    assert_status(hd_event_post(rt, buy, hd_int(NULL, 1), &options, id), HD_EXISTS);
    lab_env_set_wall_ms(lab_world(l), start + 131 * DAY);
    assert_int_equal(prune(l), 1);
    assert_status(hd_event_post(rt, buy, hd_int(NULL, 1), &options, id), HD_OK);
    sync_now(l);
    lab_close(l);
}

static void handle_many(lab *l, int from, int to) {
    for (int i = from; i < to; i++) {
        char id[16];
        lab_outcome outcome = { 0 };
        snprintf(id, sizeof id, "n%d", i);
        lab_fire_id(l, "buy", "1", id, &outcome);
        sync_now(l);
        assert_outcome(outcome, HD_OK);
    }
}

/* event.h: pruning looks at what has become too old since the last time, not at every receipt. */
static void pruning_looks_at_what_has_become_too_old(void **state) {
    lab *l = lab_start();
    uint64_t start = wall_now(l);
    lab_handle(l, .stream = "buy");
    assert_int_equal(prune(l), 0); /* from here on there is a horizon */
    handle_many(l, 0, 20);
    lab_env_set_wall_ms(lab_world(l), start + 20 * DAY);
    handle_many(l, 20, 70);
    uint64_t listed = event_stats(l).receipts_listed;
    assert_int_equal(prune(l), 0);
    lab_env_set_wall_ms(lab_world(l), start + 31 * DAY);
    assert_int_equal(prune(l), 20);
    assert_int_equal(prune(l), 0);
    assert_int_equal(event_stats(l).receipts_listed - listed, 20);
    assert_int_equal(count_named(l, "receipt/"), 50);
    lab_close(l);
}

/* event.h: a program that handles events prunes by itself, within the hour, a slice in each step. */
static void old_receipts_go_by_themselves(void **state) {
    lab *l = lab_start();
    uint64_t start = wall_now(l);
    lab_handle(l, .stream = "buy");
    handle_many(l, 0, 300);
    lab_env_set_wall_ms(lab_world(l), start + 31 * DAY);
    handle_many(l, 300, 301);
    assert_int_equal(count_named(l, "receipt/"), 301);
    lab_advance_ms(l, 3600 * 1000 + 1);
    handle_many(l, 301, 302);
    lab_settle(l);
    sync_now(l);
    assert_int_equal(event_stats(l).receipts_pruned, 300);
    assert_int_equal(count_named(l, "receipt/"), 2);
    lab_close(l);
}

/* An id has room for milliseconds until the year 3084. What does not fit would be cut: another time,
 * and a receipt that is forgotten too early. */
static void a_time_that_an_id_cannot_carry_is_refused(void **state) {
    static const uint64_t wrong[] = { UINT64_C(1) << 45, UINT64_C(1700000000000000), UINT64_MAX };
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    hd_cell buy = hd_cell_at(rt, "main/buy");
    char id[HD_EVENT_ID_SIZE];
    lab_handle(l, .stream = "buy");
    for (size_t i = 0; i < 3; i++) {
        hd_send_options options = { .id = "x", .id_time_ms = wrong[i] };
        assert_status(hd_event_send(rt, buy, hd_int(NULL, 1), &options), HD_USAGE);
        assert_status(hd_event_post(rt, buy, hd_int(NULL, 1), &options, id), HD_USAGE);
        assert_status(hd_event_id_of(rt, buy, "x", wrong[i], id), HD_USAGE);
    }
    assert_status(hd_event_id_of(rt, buy, "x", (UINT64_C(1) << 45) - 1, id), HD_OK);
    lab_close(l);
}

/* ---- the outbox */

typedef struct post_office {
    int calls;
    hd_status says;
    char key[2][128];
} post_office;

static hd_status deliver(const char *key, hd_value message, void *ctx) {
    post_office *o = ctx;
    snprintf(o->key[o->calls % 2], 128, "%s", key);
    o->calls++;
    return o->says;
}

static hd_status send_mail(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "hot");
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_tx_outbox(tx, "mail", event->payload);
}

/* A message leaves once its handling is confirmed, and again, under the same key, until the channel
 * has taken it; then its record is gone. */
static void messages_leave_after_the_commit_at_least_once(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    post_office o = { .says = HD_BUSY };
    assert_status(hd_channel_register(rt, "main", "mail", deliver, &o), HD_OK);
    lab_handle(l, .stream = "buy", .reads = "hot", .body = send_mail);
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "buy", "\"hello\"", NULL);
    lab_idle(l);
    assert_int_equal(o.calls, 0);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    lab_turn(l);
    assert_int_equal(o.calls, 1);
    o.says = HD_OK;
    lab_advance_ms(l, 150);
    lab_turn(l);
    assert_int_equal(o.calls, 2);
    assert_string_equal(o.key[0], o.key[1]);
    sync_now(l);
    lab_advance_ms(l, 100000);
    lab_turn(l);
    assert_int_equal(o.calls, 2);
    char cell[160];
    snprintf(cell, sizeof cell, "main/%s", o.key[0]);
    assert_json(l, cell, "-");
    assert_false(says_its_kind(l, "", o.key[0]));
    lab_close(l);
}

/* What a program left behind is delivered by the next one that opens the channel. */
static void messages_left_behind_are_delivered_by_the_next_program(void **state) {
    lab *l = lab_start();
    post_office o = { .says = HD_OK };
    lab_handle(l, .stream = "buy", .reads = "hot", .body = send_mail);
    lab_fire(l, "buy", "\"hello\"", NULL);
    sync_now(l);
    assert_int_equal(o.calls, 0);
    lab_on(l, "b");
    assert_status(hd_channel_register(lab_runtime_now(l), "main", "mail", deliver, &o), HD_OK);
    lab_idle(l);
    assert_int_equal(o.calls, 1);
    sync_now(l);
    lab_close(l);
}

/* ---- posted events */

static hd_status post_with(lab *l, const char *json, hd_send_options options,
                           char out[HD_EVENT_ID_SIZE]) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    hd_status status = hd_event_post(rt, hd_cell_at(rt, "main/buy"),
                                     hd_json_parse(pool, json, strlen(json), NULL), &options, out);
    hd_pool_close(pool);
    return status;
}

static hd_status post(lab *l, const char *json, const char *id, char out[HD_EVENT_ID_SIZE]) {
    return post_with(l, json, (hd_send_options){ .id = id }, out);
}

/* Posted events wait in the store for a program with a handler, which takes them in order; their
 * handling leaves a receipt and no event. */
static void i11_posted_events_wait_for_a_handler(void **state) {
    lab *l = lab_start();
    char id[HD_EVENT_ID_SIZE];
    for (int i = 1; i <= 3; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        assert_status(post(l, text, NULL, id), HD_OK);
        sync_now(l);
    }
    assert_int_equal(count_kind(l, "event"), 3);
    lab_on(l, "b");
    lab_handle(l, .stream = "buy");
    assert_status(post(l, "4", NULL, id), HD_OK);
    sync_now(l);
    lab_on(l, "a");
    assert_status(post(l, "5", NULL, id), HD_OK);
    sync_now(l);
    assert_true(says_its_kind(l, "event/", id));
    lab_on(l, "b");
    lab_advance_ms(l, 100); /* others' commits in a file are seen a moment later */
    lab_turn(l);
    sync_now(l);
    assert_json(l, "buy_log", "[1,2,3,4,5]");
    assert_int_equal(count_kind(l, "event"), 0);
    assert_int_equal(count_named(l, "receipt/"), 5);
    assert_false(says_its_kind(l, "event/", id)); /* nothing is left beside it either */
    lab_close(l);
}

/* A sender's id: what waits already stays as it is, what was handled is refused. */
static void i11_a_posted_id_counts_once(void **state) {
    lab *l = lab_start();
    char id[HD_EVENT_ID_SIZE], again[HD_EVENT_ID_SIZE];
    assert_status(post(l, "1", "x", id), HD_OK);
    sync_now(l);
    assert_status(post(l, "2", "x", again), HD_OK);
    sync_now(l);
    assert_string_equal(id, again);
    lab_handle(l, .stream = "buy");
    sync_now(l);
    assert_json(l, "buy_log", "[1]");
    assert_status(post(l, "3", "x", id), HD_EXISTS);
    sync_now(l);
    assert_json(l, "buy_log", "[1]");
    lab_close(l);
}

/* A posted event whose handler fails stays in the store, with the reason beside it, and is tried again
 * by the next program. */
static void a_posted_event_that_fails_is_not_lost(void **state) {
    lab *l = lab_start();
    char id[HD_EVENT_ID_SIZE];
    lab_catch(l);
    lab_handler *h = lab_handle(l, .stream = "buy");
    h->fail_with = HD_FAILED;
    h->fail_times = 1;
    post(l, "1", NULL, id);
    sync_now(l);
    assert_int_equal(h->runs, 1);
    assert_string_equal(lab_failures(l), "buy HD_FAILED");
    assert_int_equal(count_kind(l, "event"), 1);
    assert_true(says(l, "event/", id, "failed"));
    lab_on(l, "b");
    lab_handle(l, .stream = "buy");
    sync_now(l);
    assert_json(l, "buy_log", "[1]");
    assert_int_equal(count_kind(l, "event"), 0);
    assert_false(says(l, "event/", id, "failed"));
    lab_close(l);
}

/* The sender chooses: what it posts as lasting is handled however late, once. */
static void a_lasting_event_is_handled_however_late(void **state) {
    lab *l = lab_start();
    char id[HD_EVENT_ID_SIZE], second[HD_EVENT_ID_SIZE];
    const hd_env *env = lab_env_of(lab_world(l));
    assert_int_equal(post_with(l, "1", (hd_send_options){ .lasting = true }, id), HD_OK);
    assert_int_equal(post_with(l, "2", (hd_send_options){ .lasting = true }, second), HD_OK);
    assert_string_not_equal(id, second);
    sync_now(l);
    lab_env_set_wall_ms(lab_world(l), env->wall_ms(env->ctx) + 3100 * DAY);
    lab_on(l, "b");
    lab_handler *h = lab_handle(l, .stream = "buy");
    sync_now(l);
    assert_int_equal(h->runs, 2);
    assert_int_equal(count_kind(l, "event"), 0);
    lab_close(l);
}

/* One that waited longer than receipts are kept is not handled: whether it was before, nobody knows
 * any more. It stays, for somebody to decide. */
static void a_posted_event_that_is_too_old_is_not_handled(void **state) {
    lab *l = lab_start();
    char id[HD_EVENT_ID_SIZE];
    const hd_env *env = lab_env_of(lab_world(l));
    lab_catch(l);
    post(l, "1", NULL, id);
    sync_now(l);
    lab_env_set_wall_ms(lab_world(l), env->wall_ms(env->ctx) + 31 * DAY);
    lab_on(l, "b");
    lab_catch(l);
    lab_handler *h = lab_handle(l, .stream = "buy");
    sync_now(l);
    assert_int_equal(h->runs, 0);
    assert_string_equal(lab_failures(l), "buy HD_EXPIRED");
    assert_int_equal(count_kind(l, "event"), 1);
    assert_true(says(l, "event/", id, "failed"));
    lab_close(l);
}

static void without_the_receipt_i11_fails(void **state) {
    struct CMUnitTest test = cmocka_unit_test(i11_an_event_delivered_to_two_runtimes_counts_once);
    must_miss(EVENTS_WITHOUT_RECEIPT, test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i11_an_event_delivered_twice_counts_once),
        cmocka_unit_test(i11_an_event_delivered_to_two_runtimes_counts_once),
        cmocka_unit_test(i11_a_repetition_whose_writes_all_elide_is_refused_too),
        cmocka_unit_test(i11_every_handling_leaves_a_receipt),
        cmocka_unit_test(receipts_are_not_kept_at_hand),
        cmocka_unit_test(i11_a_retry_does_not_stumble_over_its_own_receipt),
        cmocka_unit_test(what_a_handler_returns_is_in_its_receipt),
        cmocka_unit_test(a_payload_that_does_not_match_spends_no_id),
        cmocka_unit_test(i11_a_deleted_receipt_still_counts),
        cmocka_unit_test(absence_is_a_condition_of_the_commit),
        cmocka_unit_test(a_retry_mints_the_same_ids),
        cmocka_unit_test(i11_a_handler_navigates_once),
        cmocka_unit_test(an_id_older_than_the_horizon_is_refused),
        cmocka_unit_test(an_id_without_a_time_counts_once_until_the_horizon),
        cmocka_unit_test(a_dropped_event_keeps_its_receipt_until_the_horizon),
        cmocka_unit_test(pruning_looks_at_what_has_become_too_old),
        cmocka_unit_test(old_receipts_go_by_themselves),
        cmocka_unit_test(a_time_that_an_id_cannot_carry_is_refused),
        cmocka_unit_test(messages_leave_after_the_commit_at_least_once),
        cmocka_unit_test(messages_left_behind_are_delivered_by_the_next_program),
        cmocka_unit_test(i11_posted_events_wait_for_a_handler),
        cmocka_unit_test(i11_a_posted_id_counts_once),
        cmocka_unit_test(a_posted_event_that_fails_is_not_lost),
        cmocka_unit_test(a_posted_event_that_is_too_old_is_not_handled),
        cmocka_unit_test(a_lasting_event_is_handled_however_late),
        cmocka_unit_test(without_the_receipt_i11_fails),
    };
    LAB_EVERYWHERE(tests);
}
