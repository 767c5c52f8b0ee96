/* embedder.c -- a program that uses the installed library and nothing else of the repository.
 *
 * Its helpers happen to have names that the library uses inside. Neither side may notice: the
 * library must go on calling its own, and we must reach ours. */
#include <heddle.h>

#include <stdio.h>
#include <string.h>

int table_find(int x);
int intern_take(int x);
int graph_match(int x);
int env_new(int x);

int table_find(int x) { return x + 1; }
int intern_take(int x) { return x + 2; }
int graph_match(int x) { return x + 3; }
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

int main(void) {
    if (strcmp(hd_version(), HD_VERSION) != 0) return 2;
    if (table_find(1) + intern_take(1) + graph_match(1) + env_new(1) != 14) return 3;
    return use_the_library();
}
