/* suggest.c -- the program's own names, compared with what was typed. */
#include "cli/suggest.h"

#include "cli/nearest.h"
#include "cli/output.h"
#include <stdio.h>
#include <string.h>

/* Nodes of a piece have long names: their last part is what people type. */
static void offer(nearest *n, const char *name) {
    const char *colon = strrchr(name, ':');
    if (colon && strcmp(colon + 1, n->wanted) == 0) {
        n->distance = 0;
        snprintf(n->best, sizeof n->best, "%s", name);
    } else if (n->distance) {
        nearest_offer(n, name);
    }
}

/* The nodes of the program, by name. */
static hd_value node_names(live *l) {
    hd_value answer, more = hd_object_set(l->pool, hd_object(), "by", hd_string(l->pool, "name"));
    bool ignored = false;
    if (live_ask_gently(l, "stats", more, &answer, &ignored)) return (hd_value){ 0 };
    return hd_value_at(answer, "nodes");
}

/* Whether `name` is the last part of `whole`: "total" of "main:shop:total". */
static bool is_short_form(const char *whole, const char *name) {
    size_t n = strlen(whole), m = strlen(name);
    return n > m && !strcmp(whole + n - m, name) && strchr(":/", whole[n - m - 1]);
}

const char *suggest_unique(live *l, const char *name) {
    const char *found = NULL;
    for (hd_iter it = hd_iter_of(node_names(l)); hd_iter_next(&it);) {
        if (!is_short_form(live_text(it.value, "name"), name)) continue;
        if (found) return NULL;
        found = live_text(it.value, "name");
    }
    return found;
}

int suggest_node(live *l, const char *name) {
    char hint[256];
    nearest n = nearest_to(name);
    for (hd_iter it = hd_iter_of(node_names(l)); hd_iter_next(&it);)
        offer(&n, live_text(it.value, "name"));
    if (*n.best) snprintf(hint, sizeof hint, "Did you mean %s?", n.best);
    else
        snprintf(hint, sizeof hint,
                 "\"heddle stats %.100s --by name\" lists the nodes; a cell is "
                 "space/id#/path.",
                 l->file);
    return cli_fail(l->c, CLI_NOT_FOUND, hint, "the program has no node \"%s\"", name);
}
