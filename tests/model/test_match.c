/* test_match.c -- which readers does a change concern? The walk of places against the definition.
 *
 * The definition (MATCHING 2.4) in a dozen lines: walk the path in both documents, compare what is
 * found. Documents, changes and reads are random; the walk must note_change of exactly the reads for which
 * the definition holds, once each, and leave every place with its new value. The minimal changed
 * paths (2.2) must lead to the same readers, and the hashes of reads that rows keep must differ for
 * exactly these. */
#define _DEFAULT_SOURCE
#include "lab.h"
#include "base/env.h"
#include "scheduler/persistence/persistence.h"
#include "store/place.h"
#include "value/diff.h"
#include "value/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define READS_MAX 96

static lab_env *env;
static hd_heap *heap;
static hd_pool *pool;
static places ps;
static place_id doc;
static uint64_t rev;

typedef struct watcher {
    place_id place;
    char path[64];
    int told; /* by the walk */
    bool shape;
    uint64_t hash[2]; /* as a row would keep it: of a deep read, of a read of the shape */
} watcher;
static watcher readers[READS_MAX];
static size_t reader_count;

static int open_world(void **state) {
    env = lab_env_open();
    assert_int_equal(hd_heap_open(lab_env_of(env), NULL, &heap), HD_OK);
    assert_int_equal(hd_pool_open(heap, &pool), HD_OK);
    assert_int_equal(places_init(&ps, lab_env_of(env), heap), HD_OK);
    struct key *space = key_intern(heap, "main", 4), *id = key_intern(heap, "d", 1);
    uint32_t home;
    assert_int_equal(places_home(&ps, space, HD_SCOPE_SPACE, NULL, false, &home), HD_OK);
    assert_int_equal(places_doc(&ps, home, id, &doc), HD_OK);
    key_unref(space);
    key_unref(id);
    reader_count = 0;
    rev = 1;
    return 0;
}
static int close_world(void **state) {
    places_fini(&ps);
    hd_pool_close(pool);
    hd_heap_close(heap);
    lab_env_close(env);
    return 0;
}

/* ---- the definition */

typedef struct found {
    bool reach;
    bool linked; /* a link is on the way: what is read may be behind it */
    int depth;   /* containers on the way */
    hd_value value;
} found;

static bool container(hd_value v) {
    hd_kind k = hd_value_kind(v);
    return k == HD_KIND_ARRAY || k == HD_KIND_OBJECT;
}

static hd_value child(hd_value v, const char *segment, bool last) {
    if (hd_value_kind(v) == HD_KIND_OBJECT) return hd_value_at(v, segment);
    if (last && !strcmp(segment, "length")) return hd_int(pool, (int64_t)hd_value_count(v));
    bool digits = *segment && strspn(segment, "0123456789") == strlen(segment);
    if (!digits || (segment[0] == '0' && segment[1])) return (hd_value){ 0 };
    return hd_value_index(v, strtoull(segment, NULL, 10));
}

static void next_segment(const char **path, char *out) {
    for (++*path; **path && **path != '/'; ++*path, out++) {
        *out = **path;
        if (**path == '~') *out = *++*path == '1' ? '/' : '~';
    }
    *out = 0;
}

static found look(hd_value root, const char *path) {
    found f = { true, false, 0, root };
    while (*path) {
        char segment[64];
        next_segment(&path, segment);
        if (!container(f.value))
            return (found){ false, hd_value_kind(f.value) == HD_KIND_LINK, f.depth, { 0 } };
        f = (found){ true, false, f.depth + 1, child(f.value, segment, !*path) };
    }
    return f;
}

static bool deep_equal(hd_value a, hd_value b) {
    if (!hd_value_exists(a) || !hd_value_exists(b)) return hd_value_exists(a) == hd_value_exists(b);
    return !strcmp(hd_json_print(pool, a, HD_JSON_COMPACT, NULL),
                   hd_json_print(pool, b, HD_JSON_COMPACT, NULL));
}

static bool same_shape(hd_value a, hd_value b) {
    if (!container(a) || !container(b)) return deep_equal(a, b);
    if (hd_value_kind(a) != hd_value_kind(b) || hd_value_count(a) != hd_value_count(b))
        return false;
    if (hd_value_kind(a) == HD_KIND_ARRAY) return true;
    for (hd_iter it = hd_iter_of(a); hd_iter_next(&it);)
        if (!hd_value_exists(hd_value_at(b, it.key))) return false;
    return true;
}

static bool triggered(hd_value before, hd_value after, const char *path, bool shape) {
    found b = look(before, path), a = look(after, path);
    if (a.reach && b.reach) return !(shape ? same_shape : deep_equal)(b.value, a.value);
    return a.reach != b.reach || a.linked != b.linked || a.depth != b.depth;
}

/* ---- the walk, told as reads */

static void add_reader(const char *path) {
    hd_path p;
    watcher *r = &readers[reader_count];
    assert_int_equal(hd_path_intern(heap, path, &p, NULL), HD_OK);
    assert_int_equal(places_inner(&ps, doc, p, &r->place), HD_OK);
    for (size_t i = 0; i < reader_count; i++)
        if (readers[i].place == r->place) return;
    place_ref(&ps, r->place);
    place_at(&ps, r->place)->watch = 1;
    if (place_is_doc(&ps, r->place)) place_at(&ps, r->place)->doc.flags |= DOC_HAS_SHAPE;
    else place_at(&ps, r->place)->in.flags |= DOC_HAS_SHAPE;
    snprintf(r->path, sizeof r->path, "%s", path);
    reader_count++;
}

static void note_change(void *ctx, place_id id, bool shape, hd_value before, hd_value after) {
    const hd_value *roots = ctx;
    for (size_t i = 0; i < reader_count; i++) {
        if (readers[i].place != id) continue;
        readers[i].told++;
        readers[i].shape = shape;
        assert_true(deep_equal(before, look(roots[0], readers[i].path).value));
        assert_true(deep_equal(after, look(roots[1], readers[i].path).value));
        return;
    }
    fail_msg("a place that nobody watches was told");
}

/* A restart compares hashes instead: they differ exactly where the reader would be told. */
static void take_hashes(void) {
    for (size_t i = 0; i < reader_count; i++) {
        readers[i].hash[0] = match_hash(&ps, readers[i].place);
        readers[i].hash[1] = match_hash(&ps, readers[i].place | KEY_SHAPE);
    }
}

static void check_hashes(hd_value before, hd_value after) {
    for (size_t i = 0; i < reader_count; i++)
        for (int shape = 0; shape < 2; shape++) {
            const watcher *r = &readers[i];
            uint64_t now = match_hash(&ps, r->place | (shape ? KEY_SHAPE : 0));
            if ((now != r->hash[shape]) != triggered(before, after, r->path, shape))
                fail_msg("read %s%s: %s hashes, %s -> %s", r->path, shape ? " shape" : "",
                         now != r->hash[shape] ? "different" : "equal",
                         hd_json_print(pool, before, HD_JSON_COMPACT, NULL),
                         hd_json_print(pool, after, HD_JSON_COMPACT, NULL));
        }
}

static void change(hd_value after) {
    hd_value before = place_at(&ps, doc)->value;
    if (hd_value_equal(before, after)) return; /* 2.2: no record at all */
    hd_value roots[2] = { before, after };
    for (size_t i = 0; i < reader_count; i++) readers[i].told = readers[i].shape = 0;
    take_hashes();
    place_show(place_at(&ps, doc), hd_value_ref(after), ++rev);
    place_walk(&ps, doc, before, note_change, roots);
    places_check(&ps);
    for (size_t i = 0; i < reader_count; i++) {
        const watcher *r = &readers[i];
        bool deep = triggered(before, after, r->path, false);
        if (r->told != deep || r->shape != triggered(before, after, r->path, true))
            fail_msg("read %s: told %d%s, %s -> %s", r->path, r->told, r->shape ? " shape" : "",
                     hd_json_print(pool, before, HD_JSON_COMPACT, NULL),
                     hd_json_print(pool, after, HD_JSON_COMPACT, NULL));
        assert_int_equal(place_at(&ps, r->place)->rev == rev, deep);
        assert_true(deep_equal(place_at(&ps, r->place)->value, look(after, r->path).value));
    }
    check_hashes(before, after);
    hd_value_unref(before);
}

/* ---- the vectors of 2.10 */

static const struct vector {
    const char *before, *after, *reads; /* "d/a/b+" deep read of /a/b is triggered; "s/a-" is not */
} vectors[] = {
    { "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", "d/a/b+ d/a+ d+" },
    { "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", "s/a-" },
    { "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1,\"c\":2}}", "s/a+ d/a/b- d/a/c+" },
    { "{\"a\":{\"b\":1}}", "{\"a\":{}}", "s/a+ d/a/b+" },
    { "{\"a\":{}}", "{\"a\":{\"b\":{\"x\":1}}}", "d/a/b/c+" },
    { "42", "43", "d/field- d+" },
    { "{\"items\":[\"a\",\"b\"]}", "{\"items\":[\"x\",\"y\"]}", "d/items/5- d/items/length-" },
    { "{\"items\":[\"a\",\"b\"]}", "{\"items\":[\"a\",\"b\",\"c\"]}",
      "d/items/0- s/items+ d/items/length+" },
    { "{\"l\":{\"$link\":{\"id\":\"X\"}}}", "{\"l\":{\"$link\":{\"id\":\"Y\"}}}", "s/l+ d/l+ s-" },
    { "[{\"$link\":{\"id\":\"X\"}}]", "[{\"$link\":{\"id\":\"Y\"}}]", "s- s/0+" },
    { "{}", "{\"l\":{\"$link\":{\"id\":\"X\"}}}", "d/l/a+ s/l/a/b+ d/m/a-" },
    { "{\"l\":1}", "{\"l\":{\"$link\":{\"id\":\"X\"}}}", "d/l/a+ s/l/a/b+ d/m/a-" },
    { "null", "{\"$link\":{\"id\":\"X\"}}", "d/l/a+ d/l+" },
    { "{\"a\":{\"b\":1},\"x\":1}", "{\"a\":[],\"x\":2}", "s/a+" },
    { "-", "{\"a\":{\"b\":1}}", "d/a/b+ s+" },
    { "{\"v\":0.0}", "{\"v\":-0.0}", "d/v+" },
    { "{\"v\":{\"$double\":\"NaN\"}}", "{\"v\":{\"$double\":\"NaN\"},\"w\":1}", "d/v-" },
    { "{\"a\":{\"b\":1}}", "{\"a\":5}", "d/a/b+ d/a/b/c+" },
    { "{\"user\":{\"n\":\"A\"},\"post\":{\"t\":1}}", "{\"user\":{\"n\":\"B\"},\"post\":{\"t\":1}}",
      "d/user/n+ d/post/t-" },
    /* pitfalls 6 and 15 (C136), and C82 to C94 */
    { "{\"a\":1}", "-", "d/never+ d/never/there+" },
    { "{\"a/b\":1,\"a\":{\"b\":1}}", "{\"a/b\":2,\"a\":{\"b\":1}}", "d/a~1b+ d/a/b-" },
    { "{\"a\":1}", "{\"a\":null}", "d/a+ s/a+" },
    { "{\"a\":[1,2]}", "{\"a\":[2,1]}", "d/a+ d/a/0+ s/a- d/a/length-" },
    { "{\"a\":{\"b\":{\"c\":1}}}", "{\"a\":{\"b\":{\"c\":2}}}", "s/a- d/a+ s/a/b- s/a/b/c+" },
};

static hd_value parse(const char *json) {
    return *json == '-' && !json[1] ? (hd_value){ 0 }
                                    : hd_json_parse(pool, json, strlen(json), NULL);
}

static void check_vector(const struct vector *v) {
    hd_value before = parse(v->before), after = parse(v->after);
    assert_false(hd_value_status(before) || hd_value_status(after));
    change(before);
    char reads[128], *at = reads;
    snprintf(reads, sizeof reads, "%s", v->reads);
    for (char *word; (word = strsep(&at, " ")) != NULL;) {
        size_t n = strlen(word);
        bool shape = word[0] == 's', yes = word[n - 1] == '+';
        word[n - 1] = 0;
        assert_int_equal(triggered(before, after, word + 1, shape), yes);
        add_reader(word + 1);
    }
    change(after);
    change((hd_value){ 0 });
    for (; reader_count; reader_count--) {
        place_at(&ps, readers[reader_count - 1].place)->watch = 0;
        place_unref(&ps, readers[reader_count - 1].place);
    }
}

static void every_vector_of_the_specification_holds(void **state) {
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) check_vector(&vectors[i]);
    assert_int_equal(place_at(&ps, doc)->first_child, 0); /* C128: no residue */
}

/* ---- random documents, changes and reads */

static const char *const keys[] = { "a", "b", "c", "length", "0", "1" };

static hd_value random_value(lab_random *r, int depth) {
    uint64_t kind = lab_random_below(r, depth > 0 ? 9 : 5);
    hd_value v = hd_object();
    switch (kind) {
    case 0: return hd_int(pool, (int64_t)lab_random_below(r, 3));
    case 1: return hd_string(pool, lab_random_once_in(r, 2) ? "x" : "y");
    case 2: return hd_null();
    case 3: return hd_double(lab_random_once_in(r, 2) ? 0.0 : -0.0);
    case 4: {
        hd_link link = { NULL, HD_SCOPE_HERE, lab_random_once_in(r, 2) ? "X" : "Y", NULL };
        return hd_link_make(pool, &link);
    }
    case 5:
        v = hd_array();
        for (uint64_t n = lab_random_below(r, 4); n > 0; n--)
            v = hd_array_append(pool, v, random_value(r, depth - 1));
        return v;
    default:
        for (uint64_t n = lab_random_below(r, 4); n > 0; n--)
            v = hd_object_set(pool, v, keys[lab_random_below(r, 6)], random_value(r, depth - 1));
        return v;
    }
}

static void random_path(lab_random *r, char *out, size_t size) {
    size_t length = 0;
    out[0] = 0;
    for (uint64_t n = lab_random_below(r, 5); n > 0; n--)
        length +=
            (size_t)snprintf(out + length, size - length, "/%s", keys[lab_random_below(r, 6)]);
}

/* A few places of the old document changed, or another document. */
static hd_value random_change(lab_random *r, hd_value v) {
    if (lab_random_once_in(r, 8)) return (hd_value){ 0 };
    if (lab_random_once_in(r, 6) || !hd_value_exists(v)) return random_value(r, 4);
    for (uint64_t n = 1 + lab_random_below(r, 3); n > 0; n--) {
        char text[64];
        hd_path path;
        random_path(r, text, sizeof text);
        assert_int_equal(hd_path_intern(heap, text, &path, NULL), HD_OK);
        hd_value next = lab_random_once_in(r, 3) ? hd_value_remove(pool, v, path)
                                                 : hd_value_set(pool, v, path, random_value(r, 2));
        if (hd_value_exists(next)) v = next;
    }
    return v;
}

static void the_walk_tells_what_the_definition_says(void **state) {
    lab_random r = lab_random_of(lab_seed());
    for (int round = 0; round < 4000; round++) {
        if (reader_count < READS_MAX - 1 && lab_random_once_in(&r, 2)) {
            char path[64];
            random_path(&r, path, sizeof path);
            add_reader(path);
        }
        if (lab_random_once_in(&r, 3) && reader_count) { /* readers leave, too */
            size_t i = lab_random_below(&r, reader_count);
            place_at(&ps, readers[i].place)->watch = 0;
            place_unref(&ps, readers[i].place);
            readers[i] = readers[--reader_count];
        }
        change(random_change(&r, place_at(&ps, doc)->value));
        hd_pool_clear(pool);
    }
}

/* Wide containers with many places go another way through the walk: by what differs. */
static hd_value wide(lab_random *r, bool array, size_t count) {
    hd_builder *b;
    assert_int_equal(hd_builder_open(pool, array ? HD_KIND_ARRAY : HD_KIND_OBJECT, &b), HD_OK);
    for (size_t i = 0; i < count; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        hd_value v = random_value(r, 1);
        if (array) hd_builder_add(b, v);
        else hd_builder_put(b, key, v);
    }
    return hd_builder_close(b);
}

static hd_value wide_change(lab_random *r, hd_value v, size_t size) {
    uint64_t how = lab_random_below(r, 8);
    if (how == 0) return wide(r, lab_random_once_in(r, 2), lab_random_below(r, size));
    if (how == 1) return hd_object();
    for (uint64_t n = lab_random_below(r, 4); n > 0; n--) {
        size_t count = hd_value_count(v);
        char key[24];
        snprintf(key, sizeof key, "%d", (int)lab_random_below(r, size));
        if (hd_value_kind(v) == HD_KIND_OBJECT)
            v = lab_random_once_in(r, 3) ? hd_object_remove(pool, v, key)
                                         : hd_object_set(pool, v, key, random_value(r, 1));
        else if (how == 2) v = hd_array_truncate(pool, v, lab_random_below(r, count + 1));
        else v = hd_array_append(pool, v, random_value(r, 1));
    }
    return v;
}

static void wide_containers_are_walked_alike(void **state) {
    lab_random r = lab_random_of(lab_seed() + 1);
    for (int i = 0; i < 60; i++) {
        char path[64];
        snprintf(path, sizeof path, lab_random_once_in(&r, 4) ? "/%d/a" : "/%d",
                 (int)lab_random_below(&r, 100));
        add_reader(path);
    }
    add_reader("/length");
    change(wide(&r, false, 100));
    for (int round = 0; round < 400; round++) {
        change(wide_change(&r, place_at(&ps, doc)->value, 100));
        hd_pool_clear(pool);
    }
}

/* More differences than places: the walk changes its mind half way, and tells nobody twice. */
static void a_walk_that_changes_its_mind_tells_once(void **state) {
    lab_random r = lab_random_of(lab_seed() + 2);
    for (int i = 0; i < 40; i++) {
        char path[64];
        snprintf(path, sizeof path, "/%d", 70 * i);
        add_reader(path);
    }
    for (int round = 0; round < 6; round++) {
        change(wide(&r, round % 2, 3000));
        change(wide(&r, round % 2, 2900));
        hd_pool_clear(pool);
    }
}

/* ---- change paths, MATCHING 2.2 */

typedef struct records {
    hd_value before, after;
    bool hit[READS_MAX][2]; /* triggered through some record that is prefix-related */
} records;

static bool related(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b), shorter = n < m ? n : m;
    if (strncmp(a, b, shorter)) return false;
    return n == m || (n < m ? b : a)[shorter] == '/';
}

static bool record(const hd_step *path, size_t depth, hd_value before, hd_value after, void *ctx) {
    records *all = ctx;
    char text[256] = "";
    size_t length = 0;
    for (size_t i = 0; i < depth; i++)
        length +=
            path[i].key
                ? (size_t)snprintf(text + length, sizeof text - length, "/%s", path[i].key)
                : (size_t)snprintf(text + length, sizeof text - length, "/%zu", path[i].index);
    for (size_t i = 0; i < reader_count; i++)
        for (int shape = 0; shape < 2; shape++)
            if (related(text, readers[i].path) &&
                triggered(all->before, all->after, readers[i].path, shape))
                all->hit[i][shape] = true;
    return true;
}

static void changed_paths_lead_to_the_same_readers_as_whole_documents(void **state) {
    lab_random r = lab_random_of(lab_seed() + 3);
    for (int i = 0; i < 40; i++) {
        char path[64];
        random_path(&r, path, sizeof path);
        add_reader(path);
    }
    hd_value before = random_value(&r, 4);
    for (int round = 0; round < 2000; round++) {
        hd_value after = random_change(&r, before);
        records all = { before, after, { { false } } };
        assert_int_equal(hd_value_diff(heap, before, after, record, &all), HD_OK);
        for (size_t i = 0; i < reader_count; i++)
            for (int shape = 0; shape < 2; shape++)
                assert_int_equal(all.hit[i][shape],
                                 triggered(before, after, readers[i].path, shape));
        before = after;
        if (round % 50 == 49) {
            before = (hd_value){ 0 };
            hd_pool_clear(pool);
        }
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(every_vector_of_the_specification_holds),
        T(the_walk_tells_what_the_definition_says),
        T(wide_containers_are_walked_alike),
        T(a_walk_that_changes_its_mind_tells_once),
        T(changed_paths_lead_to_the_same_readers_as_whole_documents),
    };
    return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
