/* lab_script.c -- transactions as one line of text. */
#define _GNU_SOURCE
#include "lab_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 8192

typedef struct line {
    lab_runtime *r;
    hd_tx *tx;
    lab_fate *reads; /* NULL: nobody wants to know */
    char verb[16], cell[128], rest[WORDS_MAX];
} line;

static hd_value json(line *l) {
    hd_pool *pool = hd_tx_pool(l->tx);
    return pool ? hd_json_parse(pool, l->rest, strlen(l->rest), NULL) : hd_failed(HD_NOMEM);
}

static char *seen_text(line *l, hd_value v) {
    if (!hd_value_exists(v)) return strdup("-");
    hd_pool *pool = hd_tx_pool(l->tx);
    const char *text = pool ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL) : NULL;
    return strdup(text ? text : "?");
}

static void add_read(line *l, bool shape, char *seen) {
    lab_fate *f = l->reads;
    f->reads = realloc(f->reads, (f->read_count + 1) * sizeof *f->reads);
    if (!f->reads) lab_fail("no memory for a read");
    f->reads[f->read_count++] = (lab_read){ strdup(l->cell), shape, seen };
}

static hd_status note_read(line *l, hd_value v, bool shape) {
    hd_status status = hd_value_status(v);
    if (!status && l->reads) add_read(l, shape, seen_text(l, v));
    return status;
}

static hd_status note_write(line *l, hd_status status) {
    if (!status && l->reads) add_read(l, false, NULL);
    return status;
}

static hd_status set_meta(line *l, hd_cell cell) {
    char key[64];
    int used = 0;
    if (sscanf(l->rest, "%63s %n", key, &used) < 1) return HD_SYNTAX;
    memmove(l->rest, l->rest + used, strlen(l->rest + used) + 1);
    return hd_tx_set_meta(l->tx, cell, key, json(l));
}

static hd_status run_line(line *l) {
    hd_tx *tx = l->tx;
    const char *verb = l->verb;
    if (!strcmp(verb, "group")) return hd_tx_set_group(tx, strtoull(l->cell, NULL, 10)), HD_OK;
    hd_cell cell = lab_cell(l->r, l->cell);
    if (!strcmp(verb, "get")) return note_read(l, hd_tx_get(tx, cell), false);
    if (!strcmp(verb, "shape")) return note_read(l, hd_tx_get_shape(tx, cell), true);
    if (!strcmp(verb, "raw")) return hd_value_status(hd_tx_read(tx, cell, HD_READ_RAW));
    if (!strcmp(verb, "look")) return hd_value_status(hd_tx_read(tx, cell, HD_READ_NO_CLAIM));
    if (!strcmp(verb, "set")) return note_write(l, hd_tx_set(tx, cell, json(l)));
    if (!strcmp(verb, "remove")) return note_write(l, hd_tx_remove(tx, cell));
    if (!strcmp(verb, "append")) return note_write(l, hd_tx_append(tx, cell, json(l)));
    if (!strcmp(verb, "increment")) return note_write(l, hd_tx_increment(tx, cell, json(l)));
    if (!strcmp(verb, "patch")) return note_write(l, hd_tx_patch(tx, cell, json(l), NULL));
    if (!strcmp(verb, "absent")) return hd_tx_require_absent(tx, cell);
    if (!strcmp(verb, "equal")) return hd_tx_require_equal(tx, cell, json(l));
    if (!strcmp(verb, "kind")) return hd_tx_set_kind(tx, cell, l->rest);
    if (!strcmp(verb, "meta")) return set_meta(l, cell);
    lab_fail("no such operation: %s", verb);
    return HD_USAGE;
}

/* The end of the operation that begins at `text`: a ';' outside of quotes. */
static const char *end_of(const char *text) {
    bool quoted = false;
    for (; *text && (quoted || *text != ';'); text++)
        if (*text == '"') quoted = !quoted;
    return text;
}

hd_status lab_script(lab_runtime *r, hd_tx *tx, const char *script, lab_fate *reads) {
    hd_status status = HD_OK;
    line *l = malloc(sizeof *l);
    if (!l) lab_fail("no memory for a script");
    while (*script && !status) {
        const char *end = end_of(script);
        char one[WORDS_MAX];
        snprintf(one, sizeof one, "%.*s", (int)(end - script), script);
        *l = (line){ .r = r, .tx = tx, .reads = reads };
        int used = 0;
        if (sscanf(one, " %15s %127s %n", l->verb, l->cell, &used) < 2)
            lab_fail("not an operation: %s", one);
        if (used) snprintf(l->rest, sizeof l->rest, "%s", one + used);
        for (size_t n = strlen(l->rest); n && l->rest[n - 1] == ' ';) l->rest[--n] = 0;
        status = run_line(l);
        script = *end ? end + 1 : end;
    }
    free(l);
    return status;
}
