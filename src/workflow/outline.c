/* outline.c -- a plan without an engine. */
#include "workflow/outline.h"

#include "base/env.h"
#include "expr/class.h"
#include "expr/machine.h"
#include "value/heap.h"
#include <stdio.h>

#define PLACES_MAX 1000 /* fans around one step; a document with more is taken for damaged */

static hd_status open_world(outline *o, const hd_env *env) {
    machine *m;
    hd_status status = classes_open(env, &o->classes);
    if (!status) status = world_open(env, NULL, o->classes, &o->w);
    return status ? status : machine_open(o->w, &m);
}

hd_status outline_open(hd_heap *heap, hd_value ir, outline *out, hd_error *error) {
    *out = (outline){ .env = &heap->env };
    hd_status status = open_world(out, out->env);
    if (!status) status = plan_make(out->w, heap, ir, &out->p, error);
    if (status) outline_close(out);
    assert(status || out->p->function_count > 0);
    return status;
}

void outline_close(outline *o) {
    if (o->p) plan_unref(o->p);
    if (o->w) {
        if (o->w->machine) machine_close(o->w->machine);
        world_close(o->w);
    }
    if (o->classes) classes_close(o->classes);
    *o = (outline){ 0 };
}

static hd_value numbered(hd_value all, int64_t number) {
    char key[24];
    snprintf(key, sizeof key, "%lld", (long long)number);
    return hd_value_at(all, key);
}

uint32_t outline_function_of(const plan *p, hd_value document, hd_value place) {
    for (int i = 0; i < PLACES_MAX; i++) {
        int64_t caller = hd_value_as_int(hd_value_at(place, "call"), -1);
        int64_t fan = hd_value_as_int(hd_value_at(place, "fan"), -1);
        if (caller >= 0) {
            hd_value record = numbered(hd_value_at(document, "calls"), caller);
            return plan_find_function(p, hd_value_as_text(hd_value_at(record, "function"), ""));
        }
        if (fan < 0) return 0;
        place = hd_value_at(numbered(hd_value_at(document, "fans"), fan), "in");
        if (!hd_value_exists(place)) return PLAN_NONE;
    }
    return PLAN_NONE;
}

const char *outline_label(const plan_node *n) { return n->name ? n->name : n->id; }
