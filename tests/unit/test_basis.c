/* test_basis.c -- rows about nodes: their form, and the last word on each, against a naive model. */
#include "lab.h"
#include "store/basis.h"
#include "value/json_read.h"
#include "value/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static lab_env *world;
static hd_heap *heap;
static struct key *spaces[2];
static uint64_t seqs[2];

static bool space_at(void *ctx, uint32_t i, struct key **name, uint64_t *seq) {
    if (i >= 2) return false;
    *name = spaces[i];
    *seq = seqs[i];
    return true;
}
static const basis_point now = { NULL, space_at };

static int open_world(void **state) {
    world = lab_env_open();
    assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &heap), HD_OK);
    spaces[0] = key_intern(heap, "main", 4);
    spaces[1] = key_intern(heap, "other", 5);
    seqs[0] = 7;
    seqs[1] = 3;
    return 0;
}

static int close_world(void **state) {
    key_unref(spaces[0]);
    key_unref(spaces[1]);
    hd_heap_close(heap);
    lab_env_close(world);
    return 0;
}

static hd_value json(const char *text) { return json_read(heap, text, strlen(text), NULL); }

static void apply(basis *b, uint64_t at, const char *text) {
    hd_value extra = json(text);
    assert_true(basis_well_formed(extra, NULL));
    assert_int_equal(basis_apply(b, extra, &now, at), HD_OK);
    value_unref(extra);
    basis_check(b);
}

/* ---- form */

/* C294: whatever is missing or of another kind is refused, and the message says where. */
static void an_extra_that_lacks_something_is_refused(void **state) {
    static const struct {
        const char *extra, *says;
    } bad[] = {
        { "[]", "must be an object" },
        { "{\"nodes\":3}", "nodes must be a list" },
        { "{\"nodes\":[[\"main:p:n\"]]}", "item 0: must be [name, instance, fingerprint, body]" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[]},1]]}", "item 0: must be" },
        { "{\"nodes\":[[\"main:p\",\"\",\"f\"]]}", "the name must be" },
        { "{\"nodes\":[[\"main:p:\",\"\",\"f\"]]}", "the name must be" },
        { "{\"nodes\":[[\":p:n\",\"\",\"f\"]]}", "the name must be" },
        { "{\"nodes\":[[7,\"\"]]}", "the name must be" },
        { "{\"nodes\":[[\"main:p:n\",\"\"],[\"main:p:n\",\"user:\"]]}", "item 1: the instance" },
        { "{\"nodes\":[[\"main:p:n\",\"ann\"]]}", "the instance must be" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"\"]]}", "the fingerprint must be" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"\",{\"r\":[]}]]}", "the fingerprint" },
        { "{\"nodes\":[[\"main:p:n\",\"\",1,{\"r\":[]}]]}", "the fingerprint" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{}]]}", "a list of reads" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",[]]]}", "a list of reads" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[\"x\"]}]]}", "a read must be" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[\"main/\"]}]]}", "a read must be" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[\"main/a#b\"]}]]}", "a read must be" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[\"main@me/a\"]}]]}", "a read must be" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[[\"main/a\"]]}]]}", "a read must be" },
        { "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[[\"main/a\",-1]]}]]}", "a read must be" },
        { "{\"pieces\":[[\"main:p\",{\"main\":1}]]}", "must be [piece, seqs" },
        { "{\"pieces\":[[\"main\",{},[]]]}", "the name must be" },
        { "{\"pieces\":[[\"main:p:n\",{},[]]]}", "the name must be" },
        { "{\"pieces\":[[\"main:p\",{\"main\":\"x\"},[]]]}", "the seqs" },
        { "{\"pieces\":[[\"main:p\",{},[7]]]}", "the stale nodes" },
        { "{\"gone\":[[\"main:p:n\"]]}", "must be [name, instance]" },
        { "{\"gone\":[\"main:p:n\"]}", "must be [name, instance]" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hd_error error = { 0 };
        hd_value extra = json(bad[i].extra);
        if (basis_well_formed(extra, &error)) fail_msg("accepted: %s", bad[i].extra);
        assert_int_equal(error.status, HD_PROTOCOL);
        if (!strstr(error.message, bad[i].says))
            fail_msg("%s: \"%s\" lacks \"%s\"", bad[i].extra, error.message, bad[i].says);
        value_unref(extra);
    }
}

static void an_extra_may_have_keys_of_others(void **state) {
    hd_value extra = json("{\"event\":\"e1\"}");
    assert_true(basis_well_formed(extra, NULL));
    value_unref(extra);
    assert_true(basis_well_formed(value_absent(), NULL));
}

static void a_read_is_taken_apart(void **state) {
    hd_value body =
        json("{\"r\":[\"main/corner#/items\",\"~main@user/a/b\",[\"other/x#/y/z\",5]]}");
    hd_value reads = basis_reads_of(body);
    basis_read r;
    assert_int_equal(hd_value_count(reads), 3);
    assert_true(basis_read_at(reads, 0, &r));
    assert_memory_equal(r.id, "corner", r.id_length);
    assert_memory_equal(r.path, "/items", r.path_length);
    assert_true(r.claimed && !r.shape && r.scope == HD_SCOPE_SPACE);
    assert_true(basis_read_at(reads, 1, &r));
    assert_memory_equal(r.space, "main", r.space_length);
    assert_memory_equal(r.id, "a/b", r.id_length);
    assert_int_equal(r.path_length, 0);
    assert_true(r.claimed && r.shape && r.scope == HD_SCOPE_USER);
    assert_true(basis_read_at(reads, 2, &r));
    assert_memory_equal(r.path, "/y/z", r.path_length);
    assert_true(!r.claimed && r.seq == 5);
    value_unref(body);
}

/* ---- rows */

static uint64_t seq_in(hd_value of, const char *space) {
    return (uint64_t)hd_value_as_int(hd_value_at(of, space), 0);
}
static uint64_t proved(const basis *b, const basis_entry *e, const char *space) {
    hd_value of = basis_seqs_of(b, e);
    uint64_t seq = seq_in(of, space);
    value_unref(of);
    return seq;
}

static void a_row_is_proved_as_of_the_moment_it_is_taken_in(void **state) {
    basis b;
    basis_init(&b, lab_env_of(world), heap, false);
    apply(&b, 1, "{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[\"main/a\",\"other/b\"]}]]}");
    const basis_entry *e = basis_find(&b, "main:p:n", 8, "", 0);
    assert_int_equal(proved(&b, e, "main"), 7);
    assert_int_equal(proved(&b, e, "other"), 3);
    seqs[0] = 9;
    apply(&b, 2, "{\"nodes\":[[\"main:p:n\",\"\",\"f\"]]}"); /* the same code, the same reads */
    e = basis_find(&b, "main:p:n", 8, "", 0);
    assert_int_equal(proved(&b, e, "main"), 9);
    assert_string_equal(basis_row_of(e, hd_object()).fingerprint, "f");
    seqs[0] = 10;
    apply(&b, 3,
          "{\"nodes\":[[\"main:p:n\",\"\",\"g\"],[\"main:p:n\",\"\"]]}"); /* of another code */
    assert_int_equal(proved(&b, basis_find(&b, "main:p:n", 8, "", 0), "main"), 9);
    apply(&b, 4, "{\"nodes\":[[\"main:p:other\",\"\",\"f\"]]}"); /* of what there is no row */
    assert_null(basis_find(&b, "main:p:other", 12, "", 0));
    basis_fini(&b);
}

/* C312: the same node is another one for another principal. */
static void rows_of_two_principals_are_two_rows(void **state) {
    basis b;
    basis_init(&b, lab_env_of(world), heap, false);
    apply(&b, 1,
          "{\"nodes\":[[\"main:p:n\",\"user:ann\",\"f\",{\"r\":[]}],"
          "[\"main:p:n\",\"user:bob\",\"f\",{\"r\":[]}]]}");
    apply(&b, 2, "{\"gone\":[[\"main:p:n\",\"user:ann\"]]}");
    assert_null(basis_find(&b, "main:p:n", 8, "user:ann", 8));
    assert_non_null(basis_find(&b, "main:p:n", 8, "user:bob", 8));
    basis_fini(&b);
}

static void a_stale_row_is_stale_until_it_is_written_again(void **state) {
    basis b;
    basis_init(&b, lab_env_of(world), heap, false);
    apply(&b, 1,
          "{\"nodes\":[[\"main:p:a\",\"\",\"f\",{\"r\":[]}],[\"main:p:b\",\"\",\"f\",{\"r\":[]}]],"
          "\"pieces\":[[\"main:p\",{\"main\":7},[\"main:p:a\"]]]}");
    assert_true(basis_row_of(basis_find(&b, "main:p:a", 8, "", 0), hd_object()).stale);
    assert_false(basis_row_of(basis_find(&b, "main:p:b", 8, "", 0), hd_object()).stale);
    apply(&b, 2, "{\"nodes\":[[\"main:p:a\",\"\",\"f\"]]}");
    assert_false(basis_row_of(basis_find(&b, "main:p:a", 8, "", 0), hd_object()).stale);
    assert_int_equal(seq_in(basis_find_piece(&b, "main:p", 6)->valid, "main"), 7);
    basis_fini(&b);
}

/* ---- the model: what a file's rows and its log's tail say together is what one table says */

enum { NODES = 12, PIECES = 3, ROUNDS = 400 };

static const char *const instances[] = { "", "user:ann", "session:x" };

static void random_name(lab_random *r, char *out, size_t size, unsigned *piece) {
    *piece = (unsigned)lab_random_below(r, PIECES);
    snprintf(out, size, "main:p%u:n%u", *piece, (unsigned)lab_random_below(r, NODES));
}

static void random_proofs(lab_random *r, char *out, size_t size) {
    size_t n = (size_t)snprintf(out, size, "{\"nodes\":[");
    for (uint64_t i = 0, count = 1 + lab_random_below(r, 3); i < count; i++) {
        char name[64];
        unsigned piece;
        random_name(r, name, sizeof name, &piece);
        n += (size_t)snprintf(out + n, size - n, "%s[\"%s\",\"%s\",\"f\"]", i ? "," : "", name,
                              instances[lab_random_below(r, 3)]);
    }
    snprintf(out + n, size - n, "]}");
}

static void random_extra(lab_random *r, char *out, size_t size) {
    char name[64];
    unsigned piece;
    if (lab_random_once_in(r, 3)) {
        random_proofs(r, out, size);
        return;
    }
    size_t n = (size_t)snprintf(out, size, "{\"nodes\":[");
    for (uint64_t i = 0, count = lab_random_below(r, 4); i < count; i++) {
        random_name(r, name, sizeof name, &piece);
        n += (size_t)snprintf(out + n, size - n, "%s[\"%s\",\"%s\"", i ? "," : "", name,
                              instances[lab_random_below(r, 3)]);
        if (!lab_random_once_in(r, 3))
            n += (size_t)snprintf(out + n, size - n, ",\"%uf\",{\"r\":[\"main/d%u\"]}",
                                  (unsigned)lab_random_below(r, 3),
                                  (unsigned)lab_random_below(r, 9));
        else n += (size_t)snprintf(out + n, size - n, ",\"f\"");
        n += (size_t)snprintf(out + n, size - n, "]");
    }
    n += (size_t)snprintf(out + n, size - n, "],\"pieces\":[");
    if (lab_random_once_in(r, 3)) {
        random_name(r, name, sizeof name, &piece);
        n += (size_t)snprintf(out + n, size - n, "[\"main:p%u\",{\"main\":%u},[\"%s\"]]", piece,
                              (unsigned)lab_random_below(r, 100), name);
    }
    n += (size_t)snprintf(out + n, size - n, "],\"gone\":[");
    if (lab_random_once_in(r, 3)) {
        random_name(r, name, sizeof name, &piece);
        n += (size_t)snprintf(out + n, size - n, "[\"%s\",\"%s\"]", name,
                              instances[lab_random_below(r, 3)]);
    }
    snprintf(out + n, size - n, "]}");
}

/* A naive account of the same: one slot for each node there can be. */
typedef struct model {
    struct {
        bool there, stale;
        char fingerprint[8];
        uint64_t seq;
    } at[PIECES][NODES][3];
} model;

static void model_item(hd_value item, unsigned *p, unsigned *n, unsigned *k) {
    sscanf(hd_value_as_text(hd_value_index(item, 0), ""), "main:p%u:n%u", p, n);
    const char *instance = hd_value_as_text(hd_value_index(item, 1), "");
    for (*k = 0; strcmp(instances[*k], instance) != 0;) ++*k;
}

static void model_apply(model *m, hd_value extra) {
    unsigned p, n, k;
    for (hd_iter it = hd_iter_of(hd_value_at(extra, "nodes")); hd_iter_next(&it);) {
        model_item(it.value, &p, &n, &k);
        bool whole = hd_value_count(it.value) == 4;
        if (!whole && !m->at[p][n][k].there) continue;
        m->at[p][n][k].there = true;
        m->at[p][n][k].stale = false;
        m->at[p][n][k].seq = seqs[0];
        if (whole)
            snprintf(m->at[p][n][k].fingerprint, 8, "%s",
                     hd_value_as_text(hd_value_index(it.value, 2), ""));
    }
    for (hd_iter it = hd_iter_of(hd_value_at(extra, "pieces")); hd_iter_next(&it);) {
        unsigned stale;
        sscanf(hd_value_as_text(hd_value_index(it.value, 0), ""), "main:p%u", &p);
        const char *name = hd_value_as_text(hd_value_index(hd_value_index(it.value, 2), 0), "");
        sscanf(name, "main:p%*u:n%u", &stale);
        for (n = 0; n < NODES; n++)
            for (k = 0; k < 3; k++) m->at[p][n][k].stale = n == stale;
    }
    for (hd_iter it = hd_iter_of(hd_value_at(extra, "gone")); hd_iter_next(&it);) {
        model_item(it.value, &p, &n, &k);
        m->at[p][n][k].there = false;
    }
}

/* The row of a file's table with what its tail says on top; false: there is none. */
static bool merged(const basis *below, const basis *tail, const char *name, const char *instance,
                   const char **fingerprint, uint64_t *seq, bool *stale) {
    const basis_entry *under = basis_find(below, name, strlen(name), instance, strlen(instance));
    const basis_entry *over = basis_find(tail, name, strlen(name), instance, strlen(instance));
    const basis_piece *piece = basis_find_piece(tail, name, basis_piece_length(name, strlen(name)));
    if (over && (over->flags & ROW_GONE)) return false;
    const basis_entry *whole = over && (over->flags & ROW_WHOLE) ? over : under;
    if (!whole) return false;
    basis_row row = basis_row_of(whole, hd_object());
    *fingerprint = row.fingerprint;
    *seq = over ? proved(tail, over, "main") : proved(below, under, "main");
    if (over) *stale = over->flags & ROW_STALE;
    else *stale = piece && value_exists(piece->valid) ? basis_names_stale(piece, name) : row.stale;
    return true;
}

static void compare_with_model(const model *m, const basis *below, const basis *tail) {
    for (unsigned p = 0; p < PIECES; p++)
        for (unsigned n = 0; n < NODES; n++)
            for (unsigned k = 0; k < 3; k++) {
                char name[64];
                const char *fingerprint;
                uint64_t seq;
                bool stale;
                snprintf(name, sizeof name, "main:p%u:n%u", p, n);
                bool there = merged(below, tail, name, instances[k], &fingerprint, &seq, &stale);
                assert_int_equal(there, m->at[p][n][k].there);
                if (!there) continue;
                assert_string_equal(fingerprint, m->at[p][n][k].fingerprint);
                assert_int_equal(stale, m->at[p][n][k].stale);
                if (m->at[p][n][k].seq) assert_int_equal(seq, m->at[p][n][k].seq);
            }
}

/* As a fold takes it in: proofs alone from the text of their commit, everything else as a value. */
static void take_in(basis *b, const char *text, hd_value extra, uint64_t at) {
    char made[1200];
    int length = snprintf(made, sizeof made, "{\"q\":[%u],\"n\":%u,\"x\":%s}", (unsigned)at,
                          (unsigned)at, text);
    basis_proofs proofs = basis_proofs_of(made, (size_t)length);
    bool alone = hd_value_count(extra) == 1;
    assert_int_equal(proofs.begin != NULL, alone);
    if (alone) assert_int_equal(basis_apply_proofs(b, proofs, &now, at), HD_OK);
    else assert_int_equal(basis_apply(b, extra, &now, at), HD_OK);
}

static void a_table_and_a_tail_over_one_say_what_the_model_says(void **state) {
    lab_random r = lab_random_of(lab_seed());
    basis all, below, tail, none;
    model m = { 0 };
    basis_init(&all, lab_env_of(world), heap, false);
    basis_init(&below, lab_env_of(world), heap, false);
    basis_init(&tail, lab_env_of(world), heap, true);
    basis_init(&none, lab_env_of(world), heap, true);
    hd_value pending[8];
    uint64_t pending_seq[8];
    uint32_t waiting = 0;
    for (uint64_t at = 1; at <= ROUNDS; at++) {
        char text[1024];
        random_extra(&r, text, sizeof text);
        hd_value extra = json(text);
        assert_true(basis_well_formed(extra, NULL));
        seqs[0]++;
        model_apply(&m, extra);
        assert_int_equal(basis_apply(&all, extra, &now, at), HD_OK);
        take_in(&tail, text, extra, at);
        pending_seq[waiting] = seqs[0];
        pending[waiting++] = extra;
        compare_with_model(&m, &all, &none);
        compare_with_model(&m, &below, &tail);
        basis_check(&all);
        basis_check(&tail);
        if (waiting < 8 && !lab_random_once_in(&r, 5)) continue;
        /* A checkpoint, perhaps not of everything. */
        uint32_t taken = 1 + (uint32_t)lab_random_below(&r, waiting);
        uint64_t standing = seqs[0];
        for (uint32_t i = 0; i < taken; i++) {
            seqs[0] = pending_seq[i];
            assert_int_equal(basis_apply(&below, pending[i], &now, 0), HD_OK);
            value_unref(pending[i]);
        }
        seqs[0] = standing;
        memmove(pending, pending + taken, (waiting - taken) * sizeof *pending);
        memmove(pending_seq, pending_seq + taken, (waiting - taken) * sizeof *pending_seq);
        waiting -= taken;
        basis_trim(&tail, at - waiting);
        basis_check(&tail);
        compare_with_model(&m, &below, &tail);
    }
    while (waiting) value_unref(pending[--waiting]);
    basis_fini(&all);
    basis_fini(&below);
    basis_fini(&tail);
    basis_fini(&none);
}

static void rows_come_in_order_of_name(void **state) {
    basis b;
    basis_init(&b, lab_env_of(world), heap, false);
    for (int i = 0; i < 200; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"nodes\":[[\"main:p:n%03d\",\"\",\"f\",{\"r\":[]}]]}",
                 i * 77 % 200);
        apply(&b, 1, text);
    }
    basis_piece *p = basis_find_piece(&b, "main:p", 6);
    basis_sort(&b, p);
    basis_check(&b);
    for (unsigned i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "main:p:n%03u", i);
        assert_string_equal(basis_row_of(&b.entries.items[p->rows.items[i]], hd_object()).name,
                            name);
    }
    basis_fini(&b);
}

static void without_memory_an_extra_is_completed_by_applying_it_again(lab_env *w, void *ctx) {
    hd_heap *h;
    if (hd_heap_open(lab_env_of(w), NULL, &h)) return;
    static const char text[] =
        "{\"nodes\":[[\"main:p:a\",\"\",\"f\",{\"r\":[\"main/a\",\"other/b\"]}],"
        "[\"main:q:b\",\"\",\"f\",{\"r\":[]}],[\"main:p:c\",\"\",\"f\"]],"
        "\"pieces\":[[\"main:p\",{\"main\":7},[\"main:p:a\"]],[\"main:r\",{},[]]],"
        "\"gone\":[[\"main:q:b\",\"\"],[\"main:q:x\",\"\"]]}";
    static const char proofs[] = "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:a\",\"\",\"f\"],"
                                 "[\"main:q:x\",\"\",\"f\"]]}}";
    struct key *kept[2] = { spaces[0], spaces[1] };
    hd_value extra = json_read(h, text, sizeof text - 1, NULL);
    spaces[0] = key_intern(h, "main", 4);
    spaces[1] = key_intern(h, "other", 5);
    for (int overlay = 0; overlay < 2 && value_exists(extra) && spaces[0] && spaces[1]; overlay++) {
        basis b;
        basis_init(&b, lab_env_of(w), h, overlay);
        hd_status status = basis_apply(&b, extra, &now, 1);
        basis_check(&b);
        if (status) {
            assert_int_equal(status, HD_NOMEM);
            if (basis_apply(&b, extra, &now, 1)) basis_drop(&b, extra);
        }
        basis_check(&b);
        status = basis_apply_proofs(&b, basis_proofs_of(proofs, sizeof proofs - 1), &now, 2);
        assert_true(!status || status == HD_NOMEM);
        basis_check(&b);
        basis_drop(&b, extra);
        assert_int_equal(b.entries.count, 0);
        basis_fini(&b);
    }
    value_unref(extra);
    key_unref(spaces[0]);
    key_unref(spaces[1]);
    spaces[0] = kept[0];
    spaces[1] = kept[1];
    hd_heap_close(h);
}

static void no_memory_leaves_rows_that_are_right_or_none(void **state) {
    lab_each_allocation_failure(without_memory_an_extra_is_completed_by_applying_it_again, NULL);
}

/* ---- proofs as text */

static void proofs_alone_are_told_from_what_looks_like_them(void **state) {
    static const char *const others[] = {
        "",
        "}",
        "{}",
        "{\"n\":1}",
        "{\"x\":{\"nodes\":[[\"main:p:n\",\"\",\"f\"]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"\"]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"\",\"\"]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p\",\"\",\"f\"]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"ann\",\"f\"]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\\\"\",\"\",\"f\"]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:\xC3\xA9\",\"\",\"f\"]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:{\",\"\",\"f\"]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"\",\"f\",{\"r\":[]}]]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"\",\"f\"]],\"gone\":[]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"\",\"f\"],]}}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"\",\"f\"]]}",
        "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"\",\"f",
        /* a document's value */
        "{\"d\":[[\"set\",{\"a\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"\",\"f\"]]}}]]}",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (basis_proofs_of(others[i], strlen(others[i])).begin) fail_msg("taken: %s", others[i]);
    static const char made[] = "{\"n\":1,\"x\":{\"nodes\":[[\"main:p:n\",\"user:ann\",\"f\"]]}}";
    basis_proofs all = basis_proofs_of(made, sizeof made - 1);
    basis_proof r;
    assert_ptr_equal(all.begin, made + 6);
    assert_true(basis_proofs_next(&all, &r));
    assert_memory_equal(r.name, "main:p:n", r.name_length);
    assert_memory_equal(r.instance, "user:ann", r.instance_length);
    assert_memory_equal(r.mark, "f", r.mark_length);
    assert_false(basis_proofs_next(&all, &r));
}

/* ---- bodies as text */

/* Whether the text is read as plain, and then gives what reading it as JSON gives. */
static bool plain_is_right(const char *text, size_t length) {
    basis_plain p = basis_plain_of(text, length);
    if (!p.at) return false;
    hd_value body = json_read(heap, text, length, NULL);
    assert_false(value_is_failed(body));
    assert_int_equal(hd_value_count(body), 1);
    const char *cell;
    size_t size, known, count = 0;
    for (; basis_plain_next(&p, &cell, &size); count++) {
        const char *same = hd_value_text(hd_value_index(hd_value_at(body, "r"), count), &known);
        assert_non_null(same);
        assert_int_equal(size, known);
        assert_memory_equal(cell, same, size);
    }
    assert_int_equal(count, hd_value_count(hd_value_at(body, "r")));
    value_unref(body);
    return true;
}

static void a_body_of_reads_alone_is_read_from_its_text(void **state) {
    static const char *const plain[] = {
        "{\"r\":[]}", "{\"r\":[\"\"]}", "{\"r\":[\"main/n\"]}", "{\"r\":[\"~main/n#/a\",\"b/c!\"]}",
        "{\"r\":[\"a/0123456789abcdef0123456789abcdef\",\"\",\"x/y\"]}"
    };
    static const char *const other[] = {
        "",
        "{",
        "{\"r\":[",
        "{\"r\":[]",
        "{\"r\":[}}",
        "{\"r\":[\"a\",]}",
        "{\"r\":[\"a\"\"b\"]}",
        "{\"r\":[\"a]}",
        "{\"r\":[\"a\\n\"]}",
        "{\"r\":[\"\xc3\xa9\"]}",
        "{\"r\":[\"a\"],\"derived\":true}",
        "{\"r\":[[\"a\",1]]}",
        "{\"r\":[ ]}",
        "{\"r\":[]} ",
        "{\"derived\":true,\"r\":[]}",
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        assert_true(plain_is_right(plain[i], strlen(plain[i])));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_false(plain_is_right(other[i], strlen(other[i])));
}

/* A byte changed, taken out or doubled, in a copy that ends where the text ends. */
static void a_damaged_body_is_read_as_json_reads_it(void **state) {
    static const char whole[] = "{\"r\":[\"main/items#/3\",\"\",\"main@user/it\"]}";
    static const char bytes[] = "\"\\,[]{}:r \n\x80";
    lab_random r = lab_random_of(lab_seed());
    for (int i = 0; i < 20000; i++) {
        size_t length = sizeof whole - 1, at = lab_random_below(&r, length);
        char *text = malloc(length + 1);
        memcpy(text, whole, length);
        switch (lab_random_below(&r, 3)) {
        case 0: text[at] = bytes[lab_random_below(&r, sizeof bytes - 1)]; break;
        case 1: memmove(text + at, text + at + 1, --length - at); break;
        default: memmove(text + at + 1, text + at, length++ - at); break;
        }
        char *exact = realloc(text, length);
        plain_is_right(exact, length);
        free(exact);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_extra_that_lacks_something_is_refused),
        cmocka_unit_test(an_extra_may_have_keys_of_others),
        cmocka_unit_test(a_read_is_taken_apart),
        cmocka_unit_test(a_row_is_proved_as_of_the_moment_it_is_taken_in),
        cmocka_unit_test(rows_of_two_principals_are_two_rows),
        cmocka_unit_test(a_stale_row_is_stale_until_it_is_written_again),
        cmocka_unit_test(a_table_and_a_tail_over_one_say_what_the_model_says),
        cmocka_unit_test(rows_come_in_order_of_name),
        cmocka_unit_test(proofs_alone_are_told_from_what_looks_like_them),
        cmocka_unit_test(a_body_of_reads_alone_is_read_from_its_text),
        cmocka_unit_test(a_damaged_body_is_read_as_json_reads_it),
        cmocka_unit_test(no_memory_leaves_rows_that_are_right_or_none),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
