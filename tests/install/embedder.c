/* embedder.c -- a program that uses the installed library and nothing else of the repository.
 *
 * Its helpers have names that the library uses inside. Neither side may notice: the library must go on
 * calling its own functions, and this program must reach its own. */
#include <heddle.h>

#include <stdio.h>
#include <string.h>

int table_find(int x);
int key_intern(int x);
int graph_link(int x);
int env_new(int x);

int table_find(int x) { return x + 1; }
int key_intern(int x) { return x + 2; }
int graph_link(int x) { return x + 3; }
int env_new(int x) { return x + 4; }

/* Parses, changes and prints a value: allocation, interning, trees and the codec all take part. */
static int use_the_library(void) {
    static const char text[] = "{\"b\":[1,2.5,\"x\"],\"a\":{\"deep\":true}}";
    hd_heap *heap = NULL;
    hd_pool *pool = NULL;
    hd_path path = HD_PATH_ROOT;
    if (hd_heap_open(NULL, NULL, &heap) || hd_pool_open(heap, &pool)) return 1;
    if (hd_path_intern(heap, "/a/deep", &path, NULL)) return 1;
    hd_value v = hd_json_parse(pool, text, strlen(text), NULL);
    hd_value changed = hd_value_set(pool, v, path, hd_int(pool, 7));
    const char *printed = hd_json_print(pool, changed, HD_JSON_COMPACT, NULL);
    int wrong = !printed || strcmp(printed, "{\"a\":{\"deep\":7},\"b\":[1,2.5,\"x\"]}") != 0;
    if (wrong) fprintf(stderr, "printed %s\n", printed ? printed : "nothing");
    hd_pool_close(pool);
    hd_heap_close(heap);
    return wrong;
}

/* Two computations and a sink, which call every function that is inline unless HD_NO_INLINE is defined. */
struct numbers {
    hd_cell in, twice, copy;
    double seen;
};

static hd_status make_twice(hd_tx *tx, void *ctx) {
    const struct numbers *n = ctx;
    return hd_tx_set_double(tx, n->twice, 2 * hd_value_number(hd_tx_get(tx, n->in)));
}

static hd_status make_copy(hd_tx *tx, void *ctx) {
    const struct numbers *n = ctx;
    return hd_tx_set(tx, n->copy, hd_tx_get(tx, n->twice));
}

static void see(hd_value v, void *ctx) { ((struct numbers *)ctx)->seen = hd_value_number(v); }

static int use_a_runtime(void) {
    hd_runtime *rt;
    hd_pool *pool;
    if (hd_open(NULL, NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool)) return 4;
    struct numbers n = { .in = hd_cell_at(rt, "main/in"),
                         .twice = hd_cell_at(rt, "main/twice"),
                         .copy = hd_cell_at(rt, "main/copy") };
    hd_compute(rt, "twice", make_twice, &n, n.twice);
    hd_compute(rt, "copy", make_copy, &n, n.copy);
    hd_sink(rt, n.copy, see, &n);
    int wrong = 0;
    for (int i = 1; i <= 4; i++) { /* the reads of the first run are not inline, later ones are */
        hd_write(rt, n.in, hd_double(i));
        hd_runtime_settle(rt);
        wrong += n.seen != 2 * i || hd_value_number(hd_read(rt, pool, n.twice)) != 2 * i;
    }
    hd_pool_close(pool);
    return hd_close(rt) || wrong ? 5 : 0;
}

int main(void) {
    if (strcmp(hd_version(), HD_VERSION) != 0) return 2;
    if (table_find(1) + key_intern(1) + graph_link(1) + env_new(1) != 14) return 3;
    int status = use_the_library();
    return status ? status : use_a_runtime();
}
