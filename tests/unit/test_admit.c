/* test_admit.c -- may this commit stand? The order of the checks, and each of them. */
#include "lab.h"
#include "store/admit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static lab_env *env;
static hd_heap *heap;
static heads h;
static verdict v;
static uint32_t session, other; /* two sessions */
static uint32_t n, m;           /* two documents of one space */
static uint64_t seq;

static uint32_t head_named(const char *id) {
    struct key *space = key_intern(heap, "main", 4), *k = key_intern(heap, id, strlen(id));
    uint32_t index;
    assert_int_equal(heads_intern(&h, space, HD_SCOPE_SPACE, NULL, false, k, &index), HD_OK);
    key_unref(space);
    key_unref(k);
    return index;
}

static int open_heads(void **state) {
    env = lab_env_open();
    assert_int_equal(hd_heap_open(lab_env_of(env), NULL, &heap), HD_OK);
    assert_int_equal(heads_init(&h, lab_env_of(env), heap), HD_OK);
    assert_int_equal(heads_session(&h, (const uint8_t[16]){ 1 }, &session), HD_OK);
    assert_int_equal(heads_session(&h, (const uint8_t[16]){ 2 }, &other), HD_OK);
    n = head_named("n");
    m = head_named("m");
    v = (verdict){ 0 };
    seq = 0;
    return 0;
}
static int close_heads(void **state) {
    heads_check(&h);
    vec_fini(lab_env_of(env), &v.conflicts);
    heads_fini(&h);
    hd_heap_close(heap);
    lab_env_close(env);
    return 0;
}

static hd_path path(const char *pointer) {
    hd_path p;
    assert_int_equal(hd_path_intern(heap, pointer, &p, NULL), HD_OK);
    return p;
}

/* A write of one path, as from basis 0. */
static void accept_write(uint32_t who, uint64_t local, uint32_t doc, const char *pointer,
                         uint8_t flags) {
    touch t = { path(pointer), flags };
    sub_write w = {
        .head = doc, .basis = seq, .footprint = FOOTPRINT_GIVEN, .exact = &t, .exact_count = 1
    };
    submission s = {
        .session = who, .local_seq = local, .payload = local, .writes = &w, .write_count = 1
    };
    assert_int_equal(admit(&h, &s, &v), HD_OK);
    assert_int_equal(v.status, HD_OK);
    seq++;
    assert_int_equal(admit_apply(&h, &s, &seq), HD_OK);
}

static hd_status judge(uint32_t who, uint64_t local, const sub_claim *claims, uint32_t count) {
    submission s = {
        .session = who, .local_seq = local, .payload = local, .claims = claims, .claim_count = count
    };
    assert_int_equal(admit(&h, &s, &v), HD_OK);
    return v.status;
}

/* ---- overlap */

static void touched_and_read_places_overlap_as_the_rule_says(void **state) {
    static const struct {
        const char *touched;
        uint8_t flags;
        const char *read;
        bool deep, shape;
    } rows[] = {
        { "/a", 0, "/a", true, true },
        { "/a", 0, "/a/b", true, true },
        { "/a/b", 0, "/a", true, false },
        { "/a/b", TOUCH_KEYS, "/a", true, true },
        { "/a/b", TOUCH_KEYS, "", true, false },
        { "/a/b", TOUCH_KEYS, "/a/c", false, false },
        { "/a/b/c", TOUCH_KEYS | TOUCH_WAY, "", true, true },
        { "/a/b/c", TOUCH_KEYS | TOUCH_WAY, "/x", false, false },
        { "/a", 0, "/b", false, false },
        { "/a", TOUCH_WHOLE, "/b", true, true },
        { "", 0, "/b", true, true },
        { "/a", TOUCH_KEYS, "", true, true },
        { "/a", TOUCH_LEAF, "/a/b", false, false },
        { "/a", TOUCH_LEAF, "/a", true, true },
        { "/a", TOUCH_LEAF, "", true, false },
        { "/a", TOUCH_LEAF | TOUCH_KEYS, "", true, true },
        { "/a/3", TOUCH_LEAF | TOUCH_KEYS, "/a/length", true, true },
        { "/a/3", TOUCH_REST, "/a", true, true },
        { "/a/3", TOUCH_REST, "", true, false },
        { "/a/3", TOUCH_REST, "/a/2", false, false },
        { "/a/3", TOUCH_REST, "/a/2/x", false, false },
        { "/a/3", TOUCH_REST, "/a/3", true, true },
        { "/a/3", TOUCH_REST, "/a/10/x", true, true },
        { "/a/3", TOUCH_REST, "/a/length", true, true },
        { "/a/3", TOUCH_REST, "/b/3", false, false },
        { "/a/3", 0, "/a/length", false, false },
        { "/a/3", TOUCH_KEYS, "/a/length", true, true },
        { "/a/3/x", TOUCH_KEYS, "/a/length", false, false },
        { "/a/3/x", TOUCH_KEYS | TOUCH_WAY, "/a/length", true, true },
        { "/a/x", TOUCH_KEYS | TOUCH_WAY, "/a/length", false, false },
        { "/a", 0, "", true, false },
        { "/ab", 0, "/a", false, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int shape = 0; shape < 2; shape++)
            assert_int_equal(touch_overlaps(heap, path(rows[i].touched), rows[i].flags,
                                            path(rows[i].read), shape),
                             shape ? rows[i].shape : rows[i].deep);
}

/* ---- claims */

static void a_claim_at_or_above_the_last_change_holds(void **state) {
    accept_write(other, 1, n, "/a", 0);
    sub_claim now = { n, path("/a"), false, false, false, 1, 0, 0 },
              before = { n, path("/a"), false, false, false, 0, 0, 0 };
    assert_int_equal(judge(session, 1, &now, 1), HD_OK);
    assert_int_equal(judge(session, 1, &before, 1), HD_STALE);
}

static void all_conflicts_are_listed(void **state) {
    accept_write(other, 1, n, "/a", 0);
    accept_write(other, 2, m, "/b", 0);
    sub_claim claims[] = { { n, path("/a"), false, false, false, 0, 0, 0 },
                           { n, path("/z"), false, false, false, 0, 0, 0 },
                           { m, path(""), false, false, false, 0, 0, 0 } };
    assert_int_equal(judge(session, 1, claims, 3), HD_STALE);
    assert_int_equal(v.conflicts.count, 2);
    assert_int_equal(v.conflicts.items[0].head, n);
    assert_int_equal(v.conflicts.items[0].seq, 1);
    assert_int_equal(v.conflicts.items[1].head, m);
    assert_int_equal(v.conflicts.items[1].touched_path, path("/b"));
}

static void named_layers_are_excluded_and_must_have_been_accepted(void **state) {
    accept_write(session, 1, n, "/a", 0);
    sub_claim through = { n, path("/a"), false, false, false, 0, 1, 1 },
              blind = { n, path("/a"), false, false, false, 0, 0, 0 };
    assert_int_equal(judge(session, 2, &through, 1), HD_OK);
    assert_int_equal(judge(session, 2, &blind, 1), HD_STALE);
    assert_int_equal(judge(other, 2, &through, 1), HD_STALE); /* not its own */
    accept_write(other, 1, n, "/a/b", 0);
    assert_int_equal(judge(session, 2, &through, 1), HD_STALE); /* only the named ones */
}

/* What an own append made of an array was behind its end, wherever that was. */
static void a_read_through_layers_depends_on_what_they_stand_on(void **state) {
    accept_write(session, 1, n, "/l/3", TOUCH_KEYS | TOUCH_LEAF);
    sub_claim fourth = { n, path("/l/3"), false, false, false, 0, 1, 1 },
              below = { n, path("/a/b"), false, false, false, 0, 1, 1 },
              blind = { n, path("/a/b"), false, false, false, 0, 0, 0 };
    assert_int_equal(judge(session, 2, &fourth, 1), HD_OK);
    accept_write(other, 1, n, "/l/2", TOUCH_KEYS | TOUCH_LEAF);
    assert_int_equal(judge(session, 2, &fourth, 1), HD_STALE);
    assert_int_equal(judge(session, 2, &below, 1), HD_OK);
    accept_write(other, 2, n, "/a", TOUCH_KEYS | TOUCH_LEAF);
    assert_int_equal(judge(session, 2, &below, 1), HD_STALE);
    assert_int_equal(judge(session, 2, &blind, 1), HD_OK);
}

static void a_layer_that_was_refused_is_dead(void **state) {
    touch t = { path("/a"), 0 };
    sub_write w = { .head = n, .ops = &t, .op_count = 1 };
    submission bad = {
        .session = session, .local_seq = 1, .payload = 1, .writes = &w, .write_count = 1
    };
    assert_int_equal(admit_refuse(&h, &bad, HD_STALE), HD_OK);
    sub_claim through = { n, path("/a"), false, false, false, 0, 1, 1 },
              elsewhere = { m, path("/a"), false, false, false, 0, 1, 1 },
              all = { m, path("/a"), false, false, true, 0, 1, 1 },
              later = { n, path("/a"), false, false, false, 0, 2, 2 };
    assert_int_equal(judge(session, 2, &through, 1), HD_DEAD_LAYER);
    assert_int_equal(judge(session, 2, &elsewhere, 1), HD_OK); /* it wrote another document */
    assert_int_equal(judge(session, 2, &all, 1), HD_DEAD_LAYER);
    assert_int_equal(judge(session, 3, &later, 1), HD_OK);
}

/* A commit may be judged again after an attempt that failed, when its client has heard of the refusal. */
static void a_layer_stays_dead_when_its_refusal_is_settled(void **state) {
    touch t = { path("/a"), 0 };
    sub_write w = { .head = n, .ops = &t, .op_count = 1 };
    submission bad = {
        .session = session, .local_seq = 1, .payload = 1, .writes = &w, .write_count = 1
    };
    submission later = { .session = session, .local_seq = 2, .payload = 1, .settled = 1 };
    assert_int_equal(admit_refuse(&h, &bad, HD_STALE), HD_OK);
    assert_int_equal(admit_refuse(&h, &later, HD_STALE), HD_OK);
    sub_claim through = { n, path("/a"), false, false, false, 0, 1, 1 },
              elsewhere = { m, path("/a"), false, false, false, 0, 1, 1 };
    assert_int_equal(judge(session, 3, &through, 1), HD_DEAD_LAYER);
    assert_int_equal(judge(session, 3, &elsewhere, 1), HD_OK);
    /* The second one writes nothing: only a claim on every commit falls with it. */
    sub_claim second = { n, path("/a"), false, false, false, 0, 2, 2 },
              all = { n, path("/a"), false, false, true, 0, 2, 2 };
    assert_int_equal(judge(session, 3, &second, 1), HD_OK);
    assert_int_equal(judge(session, 3, &all, 1), HD_DEAD_LAYER);
}

/* What was touched before a head was fetched is not known, whoever asks: also to the first session. */
static void a_floor_without_touches_says_nothing_of_sessions(void **state) {
    head *d = &h.heads.items[n];
    d->floor = d->seq = 5;
    d->flags |= HEAD_FLOOR;
    h.spaces.items[d->space_index].seq = seq = 5;
    sub_claim blind = { n, path("/a"), false, false, false, 0, 0, 0 },
              through = { n, path("/a"), false, false, false, 0, 1, 1 };
    for (uint32_t by = 0; by < h.sessions.count; by++) {
        assert_int_equal(judge(by, 2, &blind, 1), HD_RESYNC);
        assert_int_equal(judge(by, 2, &through, 1), HD_RESYNC);
    }
}

/* Touches that are forgotten are no conflict for a claim that was read through all of them. */
static void a_claim_may_be_older_than_what_its_own_session_has_touched(void **state) {
    enum { MANY = 5000 };
    accept_write(other, 1, n, "/b", 0);
    for (uint64_t i = 1; i <= MANY; i++) accept_write(session, i, n, "/a", 0);
    assert_true(h.heads.items[n].touches.count < MANY);
    sub_claim through = { n, path("/a"), false, false, false, 1, 1, MANY },
              some = { n, path("/a"), false, false, false, 1, 1, 100 },
              older = { n, path("/a"), false, false, false, 0, 1, MANY };
    assert_int_equal(judge(session, MANY + 1, &through, 1), HD_OK);
    assert_int_equal(judge(session, MANY + 1, &some, 1), HD_RESYNC);
    assert_int_equal(judge(session, MANY + 1, &older, 1),
                     HD_RESYNC); /* the other one is forgotten, too */
    accept_write(other, 2, n, "/b", 0);
    assert_int_equal(judge(session, MANY + 1, &through, 1), HD_OK); /* it touches another path */
}

static void below_the_floor_only_the_head_is_known(void **state) {
    accept_write(other, 1, n, "/a", 0);
    accept_write(other, 2, m, "/a", 0);
    heads_prune(&h, h.heads.items[n].space_index, 2);
    assert_int_equal(h.heads.items[n].touches.count, 0);
    sub_claim old = { n, path("/z"), false, false, false, 0, 0, 0 },
              good = { n, path("/z"), false, false, false, 1, 0, 0 };
    assert_int_equal(judge(session, 1, &old, 1), HD_RESYNC);
    assert_int_equal(judge(session, 1, &good, 1), HD_OK); /* the head has not moved since */
}

/* ---- forgetting */

/* What is below the floor, and stored, is dropped; what was deleted and is stored nowhere is not. */
static void spent_heads_are_dropped(void **state) {
    touch t = { path(""), TOUCH_WHOLE };
    sub_write gone = { .head = m, .ops = &t, .op_count = 1, .delete_ = true };
    accept_write(session, 1, n, "/a", 0);
    submission deletion = { .session = session, .local_seq = 2, .writes = &gone, .write_count = 1 };
    assert_int_equal(admit_apply(&h, &deletion, (const uint64_t[]){ ++seq }), HD_OK);
    accept_write(session, 3, head_named("late"), "/a", 0);
    heads_prune(&h, 0, 2);
    heads_compact(&h);
    assert_int_equal(h.heads.count, 2);
    heads_check(&h);
    assert_int_equal(h.heads.items[head_named("m")].seq, 2);
    assert_int_equal(h.heads.items[head_named("late")].touches.count, 1);
    assert_int_equal(h.heads.items[head_named("n")].seq, 0); /* made anew */
}

/* ---- replay */

/* C291: the same content: the stored verdict, whatever it was. */
static void a_replay_gets_the_stored_verdict_and_changes_nothing(void **state) {
    accept_write(session, 1, n, "/a", 0);
    submission again = { .session = session, .local_seq = 1, .payload = 1 };
    assert_int_equal(admit(&h, &again, &v), HD_OK);
    assert_true(v.replayed);
    assert_int_equal(v.status, HD_OK);
    assert_int_equal(v.seq, 1);
    submission refused = { .session = session, .local_seq = 2, .payload = 2 };
    assert_int_equal(admit_refuse(&h, &refused, HD_EXISTS), HD_OK);
    assert_int_equal(admit(&h, &refused, &v), HD_OK);
    assert_true(v.replayed);
    assert_int_equal(v.status, HD_EXISTS);
}

/* C291: other content: a protocol error. */
static void a_replay_with_other_content_is_a_protocol_error(void **state) {
    accept_write(session, 1, n, "/a", 0);
    submission fake = { .session = session, .local_seq = 1, .payload = 99 };
    assert_int_equal(admit(&h, &fake, &v), HD_OK);
    assert_int_equal(v.status, HD_PROTOCOL);
    assert_int_equal(hd_status_class(v.status), HD_CLASS_TERMINAL);
}

static void replay_is_checked_before_preconditions(void **state) {
    sub_precondition absent = { .kind = PRE_ABSENT, .head = n };
    touch t = { path(""), TOUCH_WHOLE };
    sub_write w = { .head = n, .create = true, .ops = &t, .op_count = 1 };
    submission create = { .session = session,
                          .local_seq = 1,
                          .payload = 1,
                          .writes = &w,
                          .write_count = 1,
                          .preconditions = &absent,
                          .precondition_count = 1 };
    assert_int_equal(admit(&h, &create, &v), HD_OK);
    assert_int_equal(v.status, HD_OK);
    seq = 1;
    assert_int_equal(admit_apply(&h, &create, &seq), HD_OK);
    assert_int_equal(admit(&h, &create, &v), HD_OK);
    assert_int_equal(v.status, HD_OK); /* its own retry */
    create.local_seq = create.payload = 2;
    assert_int_equal(admit(&h, &create, &v), HD_OK);
    assert_int_equal(v.status, HD_EXISTS);
}

static void what_is_settled_is_forgotten(void **state) {
    for (uint64_t i = 1; i <= 100; i++) {
        submission s = { .session = session, .local_seq = i, .settled = i - 1, .payload = i };
        assert_int_equal(admit_refuse(&h, &s, HD_STALE), HD_OK);
    }
    assert_int_equal(h.sessions.items[session].verdicts.count, 1);
}

/* ---- preconditions; N 290, 292 */

static hd_status precondition_verdict(sub_precondition *all, uint32_t count) {
    submission s = { .session = session,
                     .local_seq = 50,
                     .payload = 50,
                     .preconditions = all,
                     .precondition_count = count };
    assert_int_equal(admit(&h, &s, &v), HD_OK);
    return v.status;
}

static void preconditions_fail_in_their_classes(void **state) {
    sub_precondition absent = { .kind = PRE_ABSENT, .head = n };
    assert_int_equal(precondition_verdict(&absent, 1), HD_OK);
    accept_write(other, 1, n, "", TOUCH_WHOLE);
    assert_int_equal(precondition_verdict(&absent, 1), HD_EXISTS);
    h.heads.items[n].flags = HEAD_TOMBSTONE;
    assert_int_equal(precondition_verdict(&absent, 1), HD_EXISTS);
    sub_precondition equal = { .kind = PRE_EQUAL, .head = n, .holds = false };
    assert_int_equal(precondition_verdict(&equal, 1), HD_HASH_DIFFERS);
    sub_precondition origin = { .kind = PRE_ORIGIN, .origin = 7 };
    assert_int_equal(precondition_verdict(&origin, 1), HD_ORIGIN_FAILED);
    sub_precondition malformed = { .kind = 77 };
    assert_int_equal(precondition_verdict(&malformed, 1), HD_PROTOCOL);
}

/* Local seq 1 is refused, 2 stands, and with 2 the client has settled both or none. */
static void an_origin_that_was_refused_fails_also_when_it_is_settled(void **state) {
    submission refused = { .session = session, .local_seq = 1, .payload = 1 };
    assert_int_equal(admit_refuse(&h, &refused, HD_STALE), HD_OK);
    accept_write(session, 2, n, "", TOUCH_WHOLE);
    sub_precondition first = { .kind = PRE_ORIGIN, .origin = 1 };
    sub_precondition second = { .kind = PRE_ORIGIN, .origin = 2 };
    assert_int_equal(precondition_verdict(&first, 1), HD_ORIGIN_FAILED);
    submission later = { .session = session, .local_seq = 3, .payload = 3, .settled = 2 };
    assert_int_equal(admit_refuse(&h, &later, HD_STALE), HD_OK);
    assert_int_equal(h.sessions.items[session].settled, 2);
    assert_int_equal(precondition_verdict(&first, 1), HD_ORIGIN_FAILED);
    assert_int_equal(precondition_verdict(&second, 1), HD_OK);
}

static void so_many_refused_are_not_all_kept(void **state) {
    for (uint64_t local = 1; local <= 40000; local++) {
        submission s = {
            .session = session, .local_seq = local, .payload = local, .settled = local - 1
        };
        assert_int_equal(admit_refuse(&h, &s, HD_STALE), HD_OK);
    }
    assert_true(h.sessions.items[session].refused.count <= 1 << 14);
    submission s = { .session = session, .local_seq = 40001, .settled = 40000 };
    sub_precondition origin = { .kind = PRE_ORIGIN };
    s.preconditions = &origin;
    s.precondition_count = 1;
    for (origin.origin = 1; origin.origin <= 40000; origin.origin += 37) {
        assert_int_equal(admit(&h, &s, &v), HD_OK);
        assert_int_equal(v.status, HD_ORIGIN_FAILED);
    }
}

static void a_permanent_failure_counts_more_than_a_stale_one(void **state) {
    accept_write(other, 1, n, "", TOUCH_WHOLE);
    sub_precondition both[] = { { .kind = PRE_EQUAL, .head = n, .holds = false },
                                { .kind = PRE_ABSENT, .head = n } };
    assert_int_equal(precondition_verdict(both, 2), HD_EXISTS);
}

/* ---- footprints */

static void an_account_from_an_old_basis_is_not_believed(void **state) {
    accept_write(other, 1, n, "/x", TOUCH_KEYS);
    touch exact = { path("/a"), 0 }, ops = { path("/a/b/c"), TOUCH_KEYS };
    sub_write w = { .head = n,
                    .footprint = FOOTPRINT_GIVEN,
                    .exact = &exact,
                    .exact_count = 1,
                    .ops = &ops,
                    .op_count = 1 };
    submission s = {
        .session = session, .local_seq = 1, .payload = 1, .writes = &w, .write_count = 1
    };
    seq++;
    assert_int_equal(admit_apply(&h, &s, &seq), HD_OK);
    const head_touch *last = &vec_last(&h.heads.items[n].touches);
    assert_int_equal(last->path, path("/a/b/c"));
    assert_true(last->flags & TOUCH_WAY);
}

/* A write on top of the pending commit `under`, made at seq 0, that says it changes /a. */
static const head_touch *stack_write(uint64_t local, uint64_t under, footprint_state footprint,
                                     bool anew) {
    touch exact = { path("/a"), 0 }, ops = { path("/a/b/c"), TOUCH_KEYS };
    sub_write w = { .head = n,
                    .under = under,
                    .footprint = footprint,
                    .anew = anew,
                    .exact = &exact,
                    .exact_count = 1,
                    .ops = &ops,
                    .op_count = 1 };
    submission s = {
        .session = session, .local_seq = local, .payload = local, .writes = &w, .write_count = 1
    };
    seq++;
    assert_int_equal(admit_apply(&h, &s, &seq), HD_OK);
    return &vec_last(&h.heads.items[n].touches);
}

static void an_account_over_own_commits_holds_if_all_of_them_stand(void **state) {
    assert_int_equal(stack_write(1, 0, FOOTPRINT_GIVEN, false)->path, path("/a"));
    assert_int_equal(stack_write(2, 1, FOOTPRINT_GIVEN, false)->path, path("/a"));
    assert_int_equal(stack_write(3, 2, FOOTPRINT_GIVEN, false)->path, path("/a"));
    /* 4 was refused: 5 was made on top of it */
    assert_int_equal(stack_write(5, 4, FOOTPRINT_GIVEN, false)->path, path("/a/b/c"));
    /* what 5 found was not what its author saw, so neither is what it left */
    assert_int_equal(stack_write(6, 5, FOOTPRINT_GIVEN, false)->path, path("/a/b/c"));
}

static void an_account_over_own_commits_fails_when_somebody_came_between(void **state) {
    stack_write(1, 0, FOOTPRINT_GIVEN, false);
    accept_write(other, 1, n, "/x", TOUCH_KEYS);
    assert_int_equal(stack_write(2, 1, FOOTPRINT_GIVEN, false)->path, path("/a/b/c"));
}

static void whoever_replaces_everything_knows_what_is_there(void **state) {
    accept_write(other, 1, n, "/x", TOUCH_KEYS);
    assert_int_equal(stack_write(1, 0, FOOTPRINT_GIVEN, true)->path, path("/a/b/c"));
    assert_int_equal(stack_write(2, 1, FOOTPRINT_GIVEN, false)->path, path("/a"));
    stack_write(3, 2, FOOTPRINT_COARSE, false);
    assert_int_equal(stack_write(4, 3, FOOTPRINT_GIVEN, false)->path, path("/a/b/c"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_heads, close_heads)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(touched_and_read_places_overlap_as_the_rule_says),
        T(a_claim_at_or_above_the_last_change_holds),
        T(all_conflicts_are_listed),
        T(named_layers_are_excluded_and_must_have_been_accepted),
        T(a_read_through_layers_depends_on_what_they_stand_on),
        T(a_claim_may_be_older_than_what_its_own_session_has_touched),
        T(a_layer_that_was_refused_is_dead),
        T(a_layer_stays_dead_when_its_refusal_is_settled),
        T(a_floor_without_touches_says_nothing_of_sessions),
        T(below_the_floor_only_the_head_is_known),
        T(spent_heads_are_dropped),
        T(a_replay_gets_the_stored_verdict_and_changes_nothing),
        T(a_replay_with_other_content_is_a_protocol_error),
        T(replay_is_checked_before_preconditions),
        T(what_is_settled_is_forgotten),
        T(preconditions_fail_in_their_classes),
        T(an_origin_that_was_refused_fails_also_when_it_is_settled),
        T(so_many_refused_are_not_all_kept),
        T(a_permanent_failure_counts_more_than_a_stale_one),
        T(an_account_from_an_old_basis_is_not_believed),
        T(an_account_over_own_commits_holds_if_all_of_them_stand),
        T(an_account_over_own_commits_fails_when_somebody_came_between),
        T(whoever_replaces_everything_knows_what_is_there),
    };
    return cmocka_run_group_tests_name("admit", tests, NULL, NULL);
}
