/* test_stale.c -- which rows hold no longer? The answer from indexes against two others.
 *
 * Random commits, rows, proofs, words of pieces, checkpoints, restarts and prunings, by one program or
 * two. After each step the store is asked which pieces are stale (sqlite_stale.c). That must be
 *
 *   at least   rows of which something that they read became another after their proof;
 *   at most    what a resume finds: each read of each row, looked up in what has changed since;
 *              and that, rows of which some document was written since. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "store/admit.h"
#include "store/basis.h"
#include "store/runtime.h"
#include "store/tx.h"
#include "value/json_read.h"
#include "vfs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "stale.db"

enum { SPACES = 2, DOCS = 6, PATHS = 5, PIECES = 3, NODES = 4, INSTANCES = 3, READS = 4 };
enum { ROWS = PIECES * NODES * INSTANCES };

static const char *const spaces[SPACES] = { "main", "far" };
static const struct {
    const char *cell;
    int space;
    bool user;
} docs[DOCS] = { { "main/a", 0, false },     { "main/b", 0, false }, { "far/c", 1, false },
                 { "main@user/u", 0, true }, { "far/d", 1, false },  { "main/e!", 0, false } };
static const char *const paths[PATHS] = { "", "/x", "/x/y", "/l", "/l/0" };
static const char *const pieces[PIECES] = { "main:p0", "main:p1", "far:p2" };
static const char *const instances[INSTANCES] = { "", "user:local", "session:s" };

/* What a row read. */
typedef struct one_read {
    int doc, path;
    bool shape, claimed;
    uint64_t seq; /* where it is not claimed: the one that was seen */
} one_read;

typedef struct model_row {
    bool exists, stale;
    bool doubted; /* a proof of another code lies over it: later ones may be passed over */
    int code;
    uint64_t proved[SPACES];
    one_read reads[READS];
    int count;
} model_row;

typedef struct place_state {
    char text[2][256];   /* deep, shape */
    uint64_t changed[2]; /* the last seq at which that became another */
} place_state;

static lab_disk *disk;
static lab_env *env;
static lab_random rnd;
static hd_runtime *rt, *other;
static model_row rows[ROWS];
static bool has_valid[PIECES];
static uint64_t valid[PIECES][SPACES];
static place_state places_now[DOCS][PATHS];
static uint64_t written[DOCS];
static int steps;    /* for messages */
static bool hurried; /* several commits came at once: which seq changed what is not known */

static uint64_t below(uint64_t n) { return lab_random_below(&rnd, n); }
static bool once_in(uint64_t n) { return lab_random_once_in(&rnd, n); }

/* ---- programs */

static hd_runtime *open_program(void) {
    hd_options options = { .vfs = lab_disk_vfs(disk), .env = lab_env_of(env), .session = "s" };
    hd_runtime *opened;
    hd_error error;
    if (hd_open(FILE_NAME, &options, &opened, &error)) fail_msg("open: %s", error.message);
    return opened;
}

static void catch_up(hd_runtime *r) {
    lab_env_advance_ms(env, 400);
    assert_int_equal(hd_runtime_settle(r), HD_OK);
    assert_int_equal(hd_runtime_sync(r), HD_OK);
}

static uint64_t seq_now(int space) {
    authority *a = rt->r.authority;
    uint64_t seq;
    struct key *k = key_intern(rt->heap, spaces[space], strlen(spaces[space]));
    assert_int_equal(a->ops->basis->seq_of(a, k, &seq), HD_OK);
    key_unref(k);
    return seq;
}

/* ---- documents */

static bool is_meta(int doc) { return docs[doc].cell[strlen(docs[doc].cell) - 1] == '!'; }

static hd_cell doc_cell(hd_runtime *r, int doc) {
    char name[64];
    snprintf(name, sizeof name, "%s", docs[doc].cell);
    if (is_meta(doc)) name[strlen(name) - 1] = '\0';
    return hd_cell_at(r, name);
}

static hd_cell cell_of(hd_runtime *r, int doc, int path) {
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", docs[doc].cell, path ? "#" : "", paths[path]);
    return hd_cell_at(r, name);
}

static void print_shape(hd_value v, char *out, size_t size) {
    size_t n = (size_t)snprintf(out, size, "%d %zu", (int)hd_value_kind(v), hd_value_count(v));
    if (hd_value_kind(v) != HD_KIND_OBJECT) return;
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
        n += (size_t)snprintf(out + n, size - n, " %s", it.key);
}

static void look(int doc, int path, char deep[256], char shape[256]) {
    hd_pool *pool;
    hd_tx *tx;
    assert_int_equal(hd_pool_open(rt->heap, &pool), HD_OK);
    assert_int_equal(hd_tx_begin_read(rt, &tx), HD_OK);
    hd_value v = is_meta(doc) ? hd_tx_get_meta(tx, doc_cell(rt, doc), "kind")
                              : hd_tx_get(tx, cell_of(rt, doc, path));
    const char *text =
        hd_value_exists(v) ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL) : "absent";
    snprintf(deep, 256, "%s", text);
    print_shape(v, shape, 256);
    hd_tx_abort(tx);
    hd_pool_close(pool);
}

/* What has become another since the last look has become so with the last commit. */
static void look_at_all(void) {
    for (int d = 0; d < DOCS; d++)
        for (int p = 0; p < (is_meta(d) ? 1 : PATHS); p++) {
            char text[2][256];
            place_state *at = &places_now[d][p];
            look(d, p, text[0], text[1]);
            for (int shape = 0; shape < 2; shape++)
                if (strcmp(text[shape], at->text[shape]) != 0)
                    at->changed[shape] = seq_now(docs[d].space);
            memcpy(at->text, text, sizeof text);
        }
}

static hd_status change_value(hd_runtime *r, hd_tx *tx, int doc) {
    char json[64];
    int n = (int)below(3);
    switch (below(6)) {
    case 0:
        snprintf(json, sizeof json, "{\"x\":{\"y\":%d},\"l\":[%d,2]}", n, n);
        return hd_tx_set_json(tx, cell_of(r, doc, 0), json);
    case 1: return hd_tx_set_int(tx, cell_of(r, doc, 1), n);
    case 2: return hd_tx_set_int(tx, cell_of(r, doc, 2), n);
    case 3: return hd_tx_append(tx, cell_of(r, doc, 3), hd_int(hd_tx_pool(tx), n));
    case 4: return hd_tx_remove(tx, cell_of(r, doc, 1 + (int)below(2)));
    default: return hd_tx_remove(tx, cell_of(r, doc, 0));
    }
}

/* True: it is a commit. */
static bool commit_to(hd_runtime *r, int doc) {
    static const char *const kinds[] = { "one", "two" };
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(r, &tx), HD_OK);
    hd_status status = is_meta(doc) ? hd_tx_set_kind(tx, doc_cell(r, doc), kinds[below(2)])
                                    : change_value(r, tx, doc);
    if (!status) return hd_tx_commit(tx, NULL, NULL) == HD_OK;
    hd_tx_abort(tx); /* it does not fit what is there */
    return false;
}

static void change_document(hd_runtime *r) {
    int doc = (int)below(DOCS);
    uint64_t before = seq_now(docs[doc].space);
    if (!commit_to(r, doc)) return;
    assert_int_equal(hd_runtime_sync(r), HD_OK);
    catch_up(rt);
    if (seq_now(docs[doc].space) > before) written[doc] = seq_now(docs[doc].space);
    look_at_all();
}

/* ---- rows */

static model_row *row_at(int piece, int node, int instance) {
    return &rows[(piece * NODES + node) * INSTANCES + instance];
}

static size_t print_read(const one_read *r, char *out, size_t size) {
    size_t n =
        (size_t)snprintf(out, size, "%s\"%s%s%s%s\"", r->claimed ? "" : "[", r->shape ? "~" : "",
                         docs[r->doc].cell, r->path ? "#" : "", paths[r->path]);
    if (!r->claimed) n += (size_t)snprintf(out + n, size - n, ",%d]", (int)r->seq);
    return n;
}

static void random_reads(model_row *row, bool user) {
    row->count = 1 + (int)below(READS);
    for (int i = 0; i < row->count; i++) {
        one_read *r = &row->reads[i];
        do r->doc = (int)below(DOCS);
        while (docs[r->doc].user && !user);
        r->path = is_meta(r->doc) ? 0 : (int)below(PATHS);
        r->shape = once_in(3);
        /* A document that was deleted before anybody's row named it leaves nothing to find. */
        bool there = strcmp(places_now[r->doc][0].text[0], "absent") != 0;
        r->claimed = !there || !once_in(8);
        uint64_t now = seq_now(docs[r->doc].space);
        /* It may not have heard of the last ones. */
        r->seq = hurried ? now : now - below(now < 3 ? now + 1 : 3);
    }
}

static void prove(model_row *row) {
    for (int s = 0; s < SPACES; s++) row->proved[s] = seq_now(s);
    row->stale = false;
}

static void keep(hd_runtime *r, const char *extra) {
    commit *c = replica_commit_new(&r->r, HD_COMMIT_DERIVED);
    c->extra = json_read(r->heap, extra, strlen(extra), NULL);
    assert_true(basis_well_formed(c->extra, NULL));
    replica_enqueue(&r->r, c);
    assert_int_equal(hd_runtime_sync(r), HD_OK);
    catch_up(rt);
}

/* One whole row, or one proved anew, by the code that wrote it or by another. */
static void write_row(hd_runtime *r) {
    char extra[1024];
    int piece = (int)below(PIECES), node = (int)below(NODES), instance = (int)below(INSTANCES);
    model_row *row = row_at(piece, node, instance);
    bool whole = !row->exists || once_in(3);
    int code = (int)below(2);
    size_t n = (size_t)snprintf(extra, sizeof extra, "{\"nodes\":[[\"%s:n%d\",\"%s\",\"%scode%d\"",
                                pieces[piece], node, instances[instance], whole ? "the" : "", code);
    if (whole) {
        *row = (model_row){ .exists = true, .code = code };
        random_reads(row, instance > 0);
        n += (size_t)snprintf(extra + n, sizeof extra - n, ",{\"r\":[");
        for (int i = 0; i < row->count; i++) {
            if (i) extra[n++] = ',';
            n += print_read(&row->reads[i], extra + n, sizeof extra - n);
        }
        n += (size_t)snprintf(extra + n, sizeof extra - n, "]}");
    }
    snprintf(extra + n, sizeof extra - n, "]]}");
    if (whole || row->code == code) prove(row);
    else row->doubted = true;
    keep(r, extra);
}

static void end_row(hd_runtime *r) {
    char extra[256];
    int piece = (int)below(PIECES), node = (int)below(NODES), instance = (int)below(INSTANCES);
    row_at(piece, node, instance)->exists = false;
    snprintf(extra, sizeof extra, "{\"gone\":[[\"%s:n%d\",\"%s\"]]}", pieces[piece], node,
             instances[instance]);
    keep(r, extra);
}

/* A piece says how far its rows hold; nobody says so where principals have rows of their own, or
 * something was read that nobody claimed. */
static bool may_say(int piece) {
    for (int n = 0; n < NODES; n++)
        for (int i = 0; i < INSTANCES; i++) {
            const model_row *row = row_at(piece, n, i);
            for (int k = 0; row->exists && k < row->count; k++)
                if (i || !row->reads[k].claimed) return false;
        }
    return true;
}

static void say_valid(hd_runtime *r) {
    char extra[256];
    int piece = (int)below(PIECES), named = (int)below(NODES);
    if (!may_say(piece)) return;
    has_valid[piece] = true;
    for (int s = 0; s < SPACES; s++) valid[piece][s] = seq_now(s);
    for (int n = 0; n < NODES; n++) row_at(piece, n, 0)->stale = n == named;
    snprintf(extra, sizeof extra, "{\"pieces\":[[\"%s\",{\"main\":%d,\"far\":%d},[\"%s:n%d\"]]]}",
             pieces[piece], (int)seq_now(0), (int)seq_now(1), pieces[piece], named);
    keep(r, extra);
}

/* ---- the other answers */

static uint64_t holds_until(int piece, int instance, const model_row *row, const one_read *r) {
    uint64_t own = r->claimed ? row->proved[docs[r->doc].space] : r->seq;
    bool covered = !instance && r->claimed && has_valid[piece];
    uint64_t all = covered ? valid[piece][docs[r->doc].space] : 0;
    return own > all ? own : all;
}

/* From where on a resume of the piece looks at changes of a space. */
static uint64_t looks_from(int piece, int space) {
    uint64_t least = UINT64_MAX;
    for (int n = 0; n < NODES; n++)
        for (int i = 0; i < INSTANCES; i++) {
            const model_row *row = row_at(piece, n, i);
            for (int k = 0; row->exists && k < row->count; k++) {
                uint64_t until = holds_until(piece, i, row, &row->reads[k]);
                if (docs[row->reads[k].doc].space == space && until < least) least = until;
            }
        }
    return least;
}

typedef struct looking {
    place_id doc;
    uint64_t until;
    hd_path path;
    bool shape, hit;
} looking;

static bool take_change(void *ctx, const basis_change *change) {
    looking *w = ctx;
    w->hit |= change->doc == w->doc && change->seq > w->until &&
              touch_overlaps(rt->heap, change->path, change->flags, w->path, w->shape);
    return !w->hit;
}

static place_id place_of(int doc) {
    uint32_t home;
    if (!is_meta(doc)) return doc_cell(rt, doc).id;
    const place *p = place_at(&rt->r.places, doc_cell(rt, doc).id);
    const doc_home *h = &rt->r.places.homes.items[p->doc.home];
    struct key *id = p->doc.id;
    place_id at;
    assert_int_equal(places_home(&rt->r.places, h->space, h->scope, h->instance, true, &home), 0);
    assert_int_equal(places_doc(&rt->r.places, home, id, &at), HD_OK);
    return at;
}

static bool resume_finds(int piece, const one_read *r, uint64_t until) {
    authority *a = rt->r.authority;
    const char *space = spaces[docs[r->doc].space], *path = paths[r->path];
    struct key *k = key_intern(rt->heap, space, strlen(space));
    looking w = { .doc = place_of(r->doc), .shape = r->shape, .until = until };
    uint64_t from = looks_from(piece, docs[r->doc].space);
    assert_int_equal(path_parse(rt->heap, path, strlen(path), &w.path, NULL), HD_OK);
    assert_int_equal(a->ops->basis->changes(a, k, from, take_change, &w), HD_OK);
    path_unref(rt->heap, w.path);
    key_unref(k);
    return w.hit;
}

typedef struct counts {
    int least, resumed, most;
} counts;

static void count_row(int piece, int instance, const model_row *row, counts *out) {
    bool least = row->stale, resumed = row->stale, most = row->stale;
    for (int i = 0; i < row->count; i++) {
        const one_read *r = &row->reads[i];
        uint64_t until = holds_until(piece, instance, row, r);
        least |= places_now[r->doc][r->path].changed[r->shape] > until;
        most |= written[r->doc] > until;
        resumed |= resume_finds(piece, r, until);
    }
    out->least += least;
    out->resumed += resumed;
    out->most += most;
}

static bool take_stale(void *ctx, const hd_stale_piece *piece) {
    int *found = ctx;
    char name[64];
    snprintf(name, sizeof name, "%s:%s", piece->space, piece->id);
    for (int i = 0; i < PIECES; i++)
        if (strcmp(name, pieces[i]) == 0) found[i] = (int)piece->nodes;
    return true;
}

static void compare(void) {
    int found[PIECES] = { 0 };
    assert_int_equal(hd_store_stale_pieces(rt, take_stale, found), HD_OK);
    for (int p = 0; p < PIECES; p++) {
        counts c = { 0 };
        for (int n = 0; n < NODES; n++)
            for (int i = 0; i < INSTANCES; i++)
                if (row_at(p, n, i)->exists) count_row(p, i, row_at(p, n, i), &c);
        if (found[p] > c.resumed || found[p] < c.least || c.resumed > c.most)
            fail_msg("step %d: %s: %d stale; a resume runs %d, at least %d, at most %d", steps,
                     pieces[p], found[p], c.resumed, c.least, c.most);
    }
}

/* The rows themselves: proved as of when? */
typedef struct listing {
    int piece, count;
} listing;

/* A row is proved no later than it says, if it must be earlier. */
static void believe(model_row *row, const basis_row *given) {
    row->stale |= given->stale;
    for (int s = 0; s < SPACES; s++) {
        uint64_t seq = (uint64_t)hd_value_as_int(hd_value_at(given->seqs, spaces[s]), 0);
        if (seq < row->proved[s]) row->proved[s] = seq;
    }
}

static bool take_row(void *ctx, const basis_row *given) {
    listing *w = ctx;
    int instance = 0, node = given->name[strlen(given->name) - 1] - '0';
    while (strcmp(instances[instance], given->instance) != 0) instance++;
    model_row *row = row_at(w->piece, node, instance);
    w->count++;
    if (!row->exists) fail_msg("step %d: %s is gone", steps, given->name);
    if (row->doubted) believe(row, given);
    if (row->stale != given->stale) fail_msg("step %d: %s: stale?", steps, given->name);
    for (int i = 0; i < row->count; i++) {
        int s = docs[row->reads[i].doc].space;
        int64_t seq = hd_value_as_int(hd_value_at(given->seqs, spaces[s]), 0);
        if (seq != (int64_t)row->proved[s])
            fail_msg("step %d: %s%s: %s is proved at %d, not at %d", steps, given->name,
                     given->instance, spaces[s], (int)seq, (int)row->proved[s]);
    }
    return true;
}

static void compare_rows(void) {
    authority *a = rt->r.authority;
    for (int p = 0; p < PIECES; p++) {
        int wanted = 0;
        hd_value said;
        listing w = { .piece = p };
        for (int i = 0; i < NODES * INSTANCES; i++)
            wanted += rows[p * NODES * INSTANCES + i].exists;
        assert_int_equal(a->ops->basis->rows(a, pieces[p], &said, take_row, &w), HD_OK);
        value_unref(said);
        assert_int_equal(w.count, wanted);
    }
}

/* ---- steps */

static hd_status ask(int found[PIECES]) {
    memset(found, 0, PIECES * sizeof *found);
    return hd_store_stale_pieces(rt, take_stale, found);
}

static bool take_any(void *ctx, const basis_row *row) { return row->name != ctx; }

/* Nobody has pumped: what is in the file may be ahead of what this program has heard of. */
static void ask_behind(void) {
    authority *a = rt->r.authority;
    int found[PIECES];
    hd_value said;
    assert_int_equal(ask(found), HD_OK);
    assert_int_equal(a->ops->basis->rows(a, pieces[0], &said, take_any, NULL), HD_OK);
    value_unref(said);
}

/* The other program commits, folds and prunes, and this one asks in between. */
static void hurry(void) {
    hurried = true;
    for (int i = 0; i < 6; i++) {
        int doc = (int)below(DOCS);
        if (commit_to(other, doc)) written[doc] = UINT64_MAX;
        assert_int_equal(hd_runtime_sync(other), HD_OK);
        if (once_in(2)) assert_int_equal(hd_store_checkpoint(other, NULL), HD_OK);
        if (once_in(4)) assert_int_equal(hd_store_prune(other, NULL), HD_OK);
        if (once_in(2)) ask_behind();
    }
    catch_up(rt);
    for (int d = 0; d < DOCS; d++)
        if (written[d] == UINT64_MAX) written[d] = seq_now(docs[d].space);
    look_at_all();
}

static void one_step(bool two) {
    hd_runtime *who = two && once_in(2) ? other : rt;
    if (who == other) catch_up(other);
    if (two && once_in(12)) hurry();
    switch (below(12)) {
    case 0: assert_int_equal(hd_store_checkpoint(who, NULL), HD_OK); break;
    case 1: end_row(who); break;
    case 2:
    case 3: say_valid(who); break;
    case 4:
    case 5:
    case 6: write_row(who); break;
    default: change_document(who);
    }
    catch_up(rt);
    if (once_in(40)) assert_int_equal(hd_store_prune(who, NULL), HD_OK);
    if (!once_in(25)) return;
    assert_int_equal(hd_close(rt), HD_OK);
    rt = open_program();
    catch_up(rt);
}

static void forget_all(void) {
    memset(rows, 0, sizeof rows);
    memset(has_valid, 0, sizeof has_valid);
    memset(written, 0, sizeof written);
    memset(places_now, 0, sizeof places_now);
    hurried = false;
}

static void open_world(bool two) {
    disk = lab_disk_new(NULL);
    env = lab_env_open();
    forget_all();
    rt = open_program();
    if (two) other = open_program();
    look_at_all();
}

static void close_world(bool two) {
    if (two) assert_int_equal(hd_close(other), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    lab_env_close(env);
    lab_disk_free(disk);
}

static void one_life(int length, bool two) {
    open_world(two);
    for (steps = 0; steps < length; steps++) {
        one_step(two);
        compare_rows();
        compare();
    }
    close_world(two);
}

static void stale_pieces_are_those_that_a_resume_would_run(void **state) {
    rnd = lab_random_of(lab_seed());
    for (int life = 0; life < 8; life++) one_life(60, false);
}

static void the_same_with_two_programs(void **state) {
    rnd = lab_random_of(lab_seed() + 1);
    for (int life = 0; life < 8; life++) one_life(60, true);
}

/* ---- no memory */

static bool count_change(void *ctx, const basis_change *change) {
    ++*(int *)ctx;
    return change != NULL;
}

static hd_status ask_changes(int *count) {
    authority *a = rt->r.authority;
    struct key *k = key_intern(rt->heap, "main", 4);
    *count = 0;
    hd_status status = a->ops->basis->changes(a, k, 0, count_change, count);
    key_unref(k);
    return status;
}

/* Each allocation of a question fails once; it is then answered as before. */
static void ask_with_failures(void) {
    int right[PIECES], found[PIECES], changes, count;
    assert_int_equal(ask(right), HD_OK);
    assert_int_equal(ask_changes(&changes), HD_OK);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        lab_env_fail_at(env, nth);
        hd_status status = ask(found);
        failed = lab_env_failed(env);
        lab_env_fail_at(env, nth);
        hd_status told = ask_changes(&count);
        failed |= lab_env_failed(env);
        lab_env_fail_at(env, 0);
        assert_true(status == HD_NOMEM || !memcmp(found, right, sizeof found));
        assert_true(told == HD_NOMEM || count == changes);
    }
}

/* What another program writes is heard of although one allocation after the other fails. */
static void hear_with_failures(void) {
    bool failed = true;
    int found[PIECES], count;
    for (uint64_t nth = 1; failed; nth++) {
        lab_env_advance_ms(env, 200);
        lab_env_fail_at(env, nth);
        hd_status status = hd_runtime_pump(rt);
        failed = lab_env_failed(env);
        lab_env_fail_at(env, 0);
        assert_true(!status || status == HD_NOMEM || status == HD_PENDING);
        assert_int_equal(ask(found), HD_OK);
        assert_int_equal(ask_changes(&count), HD_OK);
    }
}

static void without_memory_there_is_no_answer_or_the_right_one(void **state) {
    rnd = lab_random_of(lab_seed() + 2);
    open_world(true);
    for (int round = 0; round < 4; round++) {
        for (steps = 0; steps < 12; steps++) one_step(true);
        ask_with_failures();
        for (int i = 0; i < 6; i++) (void)commit_to(other, (int)below(DOCS));
        assert_int_equal(hd_runtime_sync(other), HD_OK);
        hear_with_failures();
    }
    close_world(true);
}

/* Each read of the disk fails once, with nothing in the cache. */
static void a_disk_that_fails_is_told_and_asked_again(void **state) {
    rnd = lab_random_of(lab_seed() + 3);
    open_world(false);
    for (steps = 0; steps < 40; steps++) one_step(false);
    int right[PIECES], found[PIECES];
    assert_int_equal(ask(right), HD_OK);
    bool struck = true;
    for (uint64_t nth = 1; struck; nth++) {
        assert_int_equal(hd_close(rt), HD_OK);
        rt = open_program();
        uint64_t before = lab_disk_faults_struck(disk);
        lab_disk_fail(disk, (lab_fault){ .op = LAB_OP_READ, .nth = nth });
        hd_status status = ask(found);
        struck = lab_disk_faults_struck(disk) > before;
        lab_disk_heal(disk);
        assert_true(status == HD_IO || !memcmp(found, right, sizeof found));
        catch_up(rt);
        assert_int_equal(ask(found), HD_OK);
        assert_memory_equal(found, right, sizeof found);
    }
    close_world(false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stale_pieces_are_those_that_a_resume_would_run),
        cmocka_unit_test(the_same_with_two_programs),
        cmocka_unit_test(without_memory_there_is_no_answer_or_the_right_one),
        cmocka_unit_test(a_disk_that_fails_is_told_and_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
