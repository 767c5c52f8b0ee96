/* test_admit_naive.c -- admission against a validator that keeps everything and looks at all of it.
 *
 * The validator has the full history as a list of touches, and compares a claim with each of them by
 * the text of their paths. Sessions lose acknowledgements and repeat commits; floors move. */
#include "lab.h"
#include "store/admit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define DOCS     3
#define SESSIONS 3
#define COMMITS  400
#define PATHS    8

static const char *const texts[PATHS] = { "", "/a", "/a/b", "/a/b/c", "/ab", "/b", "/b/c", "/a/c" };
static hd_path paths[PATHS];

typedef struct past {
    uint32_t doc, session, path;
    uint64_t seq, local_seq;
    uint8_t flags;
} past;

typedef struct sent {
    hd_status status;
    uint64_t payload;
    uint32_t doc; /* that it wrote, or would have written */
} sent;

static struct {
    past touches[COMMITS];
    size_t count;
    uint64_t seq, last_seq[DOCS], floor;
    uint64_t forgotten[DOCS]; /* the last change at or below the floor; 0: none is known of */
    uint64_t since[DOCS];     /* the floor when the first change was forgotten */
    sent sent[SESSIONS][COMMITS + 1]; /* by local seq */
    uint64_t next[SESSIONS];
} naive;

static bool above(const char *a, const char *b) { /* a is b, or on the way to it */
    size_t n = strlen(a);
    return !strncmp(a, b, n) && (b[n] == 0 || b[n] == '/');
}

static bool parent_is(const char *path, const char *parent) {
    size_t n = strlen(parent);
    return above(parent, path) && path[n] == '/' && !strchr(path + n + 1, '/');
}

static bool naive_overlap(const past *t, const char *read, bool shape) {
    const char *touched_at = texts[t->path];
    if ((t->flags & TOUCH_WHOLE) || above(touched_at, read)) return true;
    if (!shape) return above(read, touched_at);
    return (t->flags & TOUCH_KEYS) && parent_is(touched_at, read);
}

static bool named(const sub_claim *c, const past *t, uint32_t session) {
    return t->session == session && c->first && c->first <= t->local_seq && t->local_seq <= c->last;
}

static bool is_known(const sub_claim *c, uint32_t session) {
    uint64_t forgotten = naive.forgotten[c->head];
    if (c->basis >= (forgotten ? forgotten : naive.floor)) return true;
    if (!forgotten || c->basis < naive.since[c->head]) return false;
    for (size_t i = 0; i < naive.count; i++) {
        const past *t = &naive.touches[i];
        if (t->doc == c->head && t->seq > c->basis && t->seq <= forgotten && !named(c, t, session))
            return false;
    }
    return true;
}

static hd_status naive_claim(const sub_claim *c, uint32_t path, uint32_t session) {
    for (uint64_t i = c->first; i && i <= c->last; i++) {
        const sent *s = &naive.sent[session][i];
        if (s->status && (c->all || s->doc == c->head)) return HD_DEAD_LAYER;
    }
    if (naive.last_seq[c->head] <= c->basis) return HD_OK;
    if (!is_known(c, session)) return HD_RESYNC;
    for (size_t i = 0; i < naive.count; i++) {
        const past *t = &naive.touches[i];
        if (t->doc == c->head && t->seq > c->basis && !named(c, t, session) &&
            naive_overlap(t, texts[path], c->shape))
            return HD_STALE;
    }
    return HD_OK;
}

/* ---- one commit, made up */

typedef struct made {
    sub_claim claims[3];
    uint32_t claim_paths[3], claim_count;
    touch touch;
    uint32_t path, doc;
    submission s;
    sub_write write;
} made;

/* The first commit of the session that was not accepted at or below the basis; 0: there is none. */
static uint64_t pending_above(uint32_t session, uint64_t local, uint64_t basis) {
    uint64_t first = 1;
    for (size_t i = 0; i < naive.count; i++) {
        const past *t = &naive.touches[i];
        if (t->session == session && t->seq <= basis && t->local_seq >= first)
            first = t->local_seq + 1;
    }
    return first < local ? first : 0;
}

static void make(lab_random *r, made *out) {
    *out = (made){ .doc = (uint32_t)lab_random_below(r, DOCS),
                   .path = (uint32_t)lab_random_below(r, PATHS) };
    uint32_t session = (uint32_t)lab_random_below(r, SESSIONS);
    uint64_t local = naive.next[session] + 1;
    out->claim_count = (uint32_t)lab_random_below(r, 4);
    for (uint32_t i = 0; i < out->claim_count; i++) {
        out->claim_paths[i] = (uint32_t)lab_random_below(r, PATHS);
        uint64_t back = lab_random_below(r, 6);
        /* From some commit of its own on, which was pending: so nothing of its own before that is above the basis. */
        bool through = local > 1 && lab_random_once_in(r, 3);
        uint64_t first =
            through ? pending_above(session, local, naive.seq > back ? naive.seq - back : 0) : 0;
        out->claims[i] = (sub_claim){ (uint32_t)lab_random_below(r, DOCS),
                                      paths[out->claim_paths[i]],
                                      lab_random_once_in(r, 2),
                                      false,
                                      first && lab_random_once_in(r, 5),
                                      naive.seq > back ? naive.seq - back : 0,
                                      first,
                                      first ? first + lab_random_below(r, local - first) : 0 };
    }
    static const uint8_t flags[] = { 0, TOUCH_KEYS, TOUCH_KEYS, TOUCH_WHOLE };
    out->touch = (touch){ paths[out->path], flags[lab_random_below(r, 4)] };
    out->write = (sub_write){ .head = out->doc,
                              .basis = naive.seq,
                              .footprint = FOOTPRINT_GIVEN,
                              .exact = &out->touch,
                              .exact_count = 1 };
    out->s = (submission){ .session = session,
                           .local_seq = local,
                           .payload = lab_random_u64(r),
                           .claims = out->claims,
                           .claim_count = out->claim_count,
                           .writes = &out->write,
                           .write_count = 1 };
}

static hd_status naive_verdict(const made *c, uint32_t *conflicts) {
    hd_status worst = HD_OK;
    *conflicts = 0;
    for (uint32_t i = 0; i < c->claim_count; i++) {
        hd_status status = naive_claim(&c->claims[i], c->claim_paths[i], c->s.session);
        if (status) ++*conflicts;
        if (status && (!worst || status == HD_DEAD_LAYER)) worst = status;
    }
    return worst;
}

static void record(heads *h, const made *c, hd_status status) {
    naive.sent[c->s.session][c->s.local_seq] = (sent){ status, c->s.payload, c->doc };
    naive.next[c->s.session] = c->s.local_seq;
    if (status) {
        assert_int_equal(admit_refuse(h, &c->s, status), HD_OK);
        return;
    }
    naive.seq++;
    naive.last_seq[c->doc] = naive.seq;
    naive.touches[naive.count++] =
        (past){ c->doc, c->s.session, c->path, naive.seq, c->s.local_seq, c->touch.flags };
    assert_int_equal(admit_apply(h, &c->s, &naive.seq), HD_OK);
}

/* The acknowledgement was lost: the same commit again gets the same verdict, and another commit with that number is an
 * error. */
static void replay(lab_random *r, const heads *h, verdict *v) {
    uint32_t session = (uint32_t)lab_random_below(r, SESSIONS);
    if (!naive.next[session]) return;
    uint64_t local = 1 + lab_random_below(r, naive.next[session]);
    submission s = { .session = session,
                     .local_seq = local,
                     .payload = naive.sent[session][local].payload };
    assert_int_equal(admit(h, &s, v), HD_OK);
    assert_true(v->replayed);
    assert_int_equal(v->status, naive.sent[session][local].status);
    s.payload++;
    assert_int_equal(admit(h, &s, v), HD_OK);
    assert_int_equal(v->status, HD_PROTOCOL);
}

static void make_heads(heads *h, const hd_env *env, hd_heap *heap) {
    struct key *space = key_intern(heap, "main", 4);
    assert_int_equal(heads_init(h, env, heap), HD_OK);
    for (uint32_t i = 0; i < DOCS; i++) {
        struct key *id = key_intern(heap, &"abc"[i], 1);
        uint32_t index;
        assert_int_equal(heads_intern(h, space, HD_SCOPE_SPACE, NULL, false, id, &index), HD_OK);
        assert_int_equal(index, i);
        for (uint32_t k = 0; k < i; k++) assert_int_not_equal(heads_bit(h, k), heads_bit(h, i));
        key_unref(id);
    }
    for (uint8_t i = 0; i < SESSIONS; i++) {
        uint32_t index;
        assert_int_equal(heads_session(h, (uint8_t[16]){ i }, &index), HD_OK);
    }
    for (size_t i = 0; i < PATHS; i++)
        assert_int_equal(hd_path_intern(heap, texts[i], &paths[i], NULL), HD_OK);
    key_unref(space);
}

static void prune(heads *h) {
    uint64_t before = naive.floor;
    naive.floor = naive.seq - 3;
    for (size_t i = 0; i < naive.count; i++) {
        uint32_t doc = naive.touches[i].doc;
        if (naive.touches[i].seq > naive.floor) break;
        if (!naive.forgotten[doc]) naive.since[doc] = before;
        naive.forgotten[doc] = naive.touches[i].seq;
    }
    heads_prune(h, 0, naive.floor);
}

static void run(lab_random *r) {
    lab_env *env = lab_env_open();
    hd_heap *heap;
    heads h;
    verdict v = { 0 };
    memset(&naive, 0, sizeof naive);
    assert_int_equal(hd_heap_open(lab_env_of(env), NULL, &heap), HD_OK);
    make_heads(&h, lab_env_of(env), heap);
    for (int i = 0; i < COMMITS; i++) {
        made c;
        uint32_t conflicts;
        make(r, &c);
        assert_int_equal(admit(&h, &c.s, &v), HD_OK);
        assert_int_equal(v.status, naive_verdict(&c, &conflicts));
        assert_int_equal(v.conflicts.count, conflicts); /* every claim that fails is listed */
        record(&h, &c, v.status);
        replay(r, &h, &v);
        if (lab_random_once_in(r, 40) && naive.seq > 3) prune(&h);
        heads_check(&h);
    }
    vec_fini(lab_env_of(env), &v.conflicts);
    heads_fini(&h);
    hd_heap_close(heap);
    lab_env_close(env);
}

static void admission_decides_like_the_naive_validator(void **state) {
    lab_random r = lab_random_of(lab_seed());
    for (int i = 0; i < 50; i++) run(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(admission_decides_like_the_naive_validator),
    };
    return cmocka_run_group_tests_name("admit, naively", tests, NULL, NULL);
}
