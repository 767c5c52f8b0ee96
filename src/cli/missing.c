/* missing.c -- messages about a cell that is absent: how much of its path exists, and which names are similar. */
#define _POSIX_C_SOURCE 200809L
#include "cli/missing.h"

#include "cli/nearest.h"
#include "cli/output.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "It has: apples, pears." with the keys of a value, as many as fit; the nearest is noted. */
static void tell_keys(hd_value v, char *out, size_t size, nearest *near) {
    size_t length = (size_t)snprintf(out, size, "There is:");
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        nearest_offer(near, it.key);
        if (length + it.key_length + 8 > size) continue;
        length +=
            (size_t)snprintf(out + length, size - length, "%s %s", it.index ? "," : "", it.key);
    }
    snprintf(out + length, size - length, ".");
}

static void tell_elements(hd_value v, char *out, size_t size) {
    size_t count = hd_value_count(v);
    if (count) snprintf(out, size, "The array there has the elements 0 to %zu.", count - 1);
    else snprintf(out, size, "The array there is empty.");
}

static int tell_missing(store *s, const char *name, const char *end, hd_value at, const char *key) {
    int parent = (int)(end - name);
    if (end[-1] == '#') parent--; /* without a lone # */
    char hint[256], meant[512];
    nearest near = nearest_to(key);
    if (hd_value_kind(at) == HD_KIND_OBJECT) tell_keys(at, hint, sizeof hint, &near);
    else if (hd_value_kind(at) == HD_KIND_ARRAY) tell_elements(at, hint, sizeof hint);
    else
        snprintf(hint, sizeof hint, "There is a value of kind %s, which has no places in it.",
                 hd_kind_name(hd_value_kind(at)));
    if (*near.best)
        snprintf(meant, sizeof meant, "%s Did you mean %.*s/%s?", hint, (int)(end - name), name,
                 near.best);
    return cli_fail(s->c, CLI_NOT_FOUND, *near.best ? meant : hint, "%.*s has no \"%s\"", parent,
                    name, key);
}

/* Walks along the path as far as it exists; says where it ended. `name` is written to meanwhile. */
static int missing_place(store *s, char *name, hd_value document) {
    char *pointer = strchr(name, '#') + 1, *end = pointer, *next = pointer;
    hd_value at = document;
    while (*end) {
        next = end + 1 + strcspn(end + 1, "/");
        char after = *next;
        hd_path path;
        hd_value there = { 0 };
        *next = '\0';
        if (!hd_path_intern(hd_runtime_heap(s->rt), pointer, &path, NULL))
            there = hd_value_get(hd_runtime_heap(s->rt), document, path);
        if (!hd_value_exists(there)) break; /* what is left of the name ends with the missing key */
        *next = after;
        at = there;
        end = next;
    }
    return tell_missing(s, name, end, at, *end ? end + 1 : "");
}

enum { IDS_LOOKED_AT = 2000 };

typedef struct id_search {
    nearest near;
    hd_scope scope; /* of the nearest */
    int left;
} id_search;

static bool offer_id(const hd_listing *entry, void *ctx) {
    id_search *search = ctx;
    size_t before = search->near.distance;
    nearest_offer(&search->near, entry->id);
    if (search->near.distance != before) search->scope = entry->scope;
    return --search->left > 0;
}

/* "main/cart/items" is often meant as "main/cart#/items": the way into a document. The first document on the way
 * that has such a place; `out` is then the name. */
static bool names_a_place(store *s, hd_tx *tx, const char *name, char *out, size_t size) {
    const char *slash = strchr(name, '/');
    while (slash && (slash = strchr(slash + 1, '/')) != NULL) {
        if ((size_t)snprintf(out, size, "%.*s#%s", (int)(slash - name), name, slash) >= size)
            return false;
        hd_cell cell = hd_cell_at(s->rt, out);
        if (cell.id && hd_value_exists(hd_tx_get(tx, cell))) return true;
    }
    return false;
}

static int missing_document(store *s, hd_tx *tx, const char *document, const nearest *also) {
    char hint[640], place[512];
    if (names_a_place(s, tx, document, place, sizeof place)) {
        snprintf(hint, sizeof hint, "Did you mean %s?", place);
        return cli_fail(s->c, CLI_NOT_FOUND, hint, "there is no document %s", document);
    }
    int space = (int)strcspn(document, "@/"), home = (int)strcspn(document, "/");
    char *space_name = strndup(document, (size_t)space);
    id_search search = { .near = nearest_to(document + home + 1), .left = IDS_LOOKED_AT };
    if (space_name) (void)hd_runtime_list(s->rt, space_name, NULL, NULL, offer_id, &search);
    int failed = also || *search.near.best || !space_name ? CLI_OK : store_space(s, space_name);
    free(space_name);
    if (failed) return failed;
    if (also && *also->best && also->distance < search.near.distance)
        snprintf(hint, sizeof hint, "Did you mean %s?", also->best);
    else if (*search.near.best)
        snprintf(hint, sizeof hint, "Did you mean %.*s%s/%s?", space, document,
                 scope_suffix(search.scope), search.near.best);
    else
        snprintf(hint, sizeof hint, "\"heddle ls %.100s %.*s\" lists what there is.", s->file,
                 space < 400 ? space : 400, document);
    return cli_fail(s->c, CLI_NOT_FOUND, hint, "there is no document %s", document);
}

static int tell(store *s, hd_tx *tx, const char *name, const nearest *also) {
    size_t length = strcspn(name, "#");
    char *copy = strdup(name);
    if (!copy) return cli_fail(s->c, CLI_INTERNAL, NULL, "out of memory");
    copy[length] = '\0';
    hd_value whole = hd_tx_get(tx, hd_cell_at(s->rt, copy));
    int failed;
    if (name[length] && hd_value_exists(whole)) {
        copy[length] = '#';
        failed = missing_place(s, copy, whole);
    } else failed = missing_document(s, tx, copy, also);
    free(copy);
    return failed;
}

int missing_cell(store *s, hd_tx *tx, const char *name) { return tell(s, tx, name, NULL); }

int missing_in_file(cli *c, const char *file, const char *name, const nearest *also, bool *exists) {
    store s;
    hd_tx *tx = NULL;
    hd_cell cell;
    char space[512];
    snprintf(space, sizeof space, "%.*s", (int)strcspn(name, "@/"), name);
    int failed = store_open(c, &s, file, STORE_READ);
    if (!failed) failed = store_space(&s, space);
    if (!failed) failed = store_cell(&s, name, &cell);
    hd_status status = failed ? HD_OK : hd_tx_begin_read(s.rt, &tx);
    if (status) failed = store_fail(&s, status, name);
    if (!failed) {
        hd_value v = hd_tx_read(tx, cell, HD_READ_RAW);
        *exists = hd_value_exists(v);
        if (!*exists) failed = tell(&s, tx, name, also);
    }
    if (tx) hd_tx_abort(tx);
    return store_close(&s, failed);
}
