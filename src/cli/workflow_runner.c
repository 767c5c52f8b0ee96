/* workflow_runner.c -- which program runs the workflows of a space, as their lease tells; and what that program has
 * yet to do. */
#include "cli/output.h"
#include "cli/workflow.h"
#include "store/lease.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct search {
    flow *f;
    bool any; /* a process that lives holds a lease */
    int64_t pid;
} search;

static bool look_at_lease(const hd_listing *entry, void *ctx) {
    search *s = ctx;
    store *of = &s->f->s;
    lease_holder h = { .session = "" };
    hd_cell cell = hd_cell_of(of->rt, entry->space, entry->scope, entry->id, NULL);
    hd_status status = lease_holder_of(of->rt, hd_read(of->rt, of->pool, cell), &h);
    if (*h.session) s->pid = h.pid;
    s->any = status || (*h.session && h.lives); /* in doubt there is one */
    return !s->any;
}

bool flow_runner(flow *f, int64_t *pid) {
    search s = { .f = f };
    (void)hd_runtime_list(f->s.rt, f->space, "lease", "lease/workflow", look_at_lease, &s);
    *pid = s.pid;
    return s.any;
}

void flow_print_runner(flow *f) {
    int64_t pid;
    const cli *c = f->s.c;
    if (flow_runner(f, &pid)) return;
    printf("  %sno program runs it%s", out_colour(c, COLOUR_YELLOW), out_colour(c, COLOUR_NONE));
    if (pid) printf(" (process %" PRId64 " has ended)", pid);
    puts("; the next one goes on with it");
}

/* ---- Requests ---------------------------------------------------------------------------- */

typedef struct requests {
    flow *f;
    hd_value verbs;
} requests;

static bool look_at_message(const hd_listing *entry, void *ctx) {
    requests *r = ctx;
    const store *of = &r->f->s;
    hd_cell cell = hd_cell_of(of->rt, entry->space, entry->scope, entry->id, NULL);
    hd_value message = hd_read(of->rt, of->pool, cell);
    if (*flow_text(message, "verb") && !strcmp(flow_text(message, "to"), r->f->id))
        r->verbs = hd_array_append(of->pool, r->verbs, hd_value_at(message, "verb"));
    return true;
}

hd_value flow_requests(flow *f) {
    requests r = { .f = f, .verbs = hd_array() };
    (void)hd_runtime_list(f->s.rt, f->space, "workflow.inbox", NULL, look_at_message, &r);
    return r.verbs;
}

hd_value flow_with_requests(flow *f, hd_value object) {
    hd_value verbs = flow_requests(f);
    return hd_value_count(verbs) ? hd_object_set(f->s.pool, object, "asked", verbs) : object;
}

void flow_print_requests(flow *f) {
    hd_value verbs = flow_requests(f);
    for (hd_iter it = hd_iter_of(verbs); hd_iter_next(&it);) {
        fputs(it.index ? ", " : "  asked for, and not done yet: ", stdout);
        print_plain(stdout, hd_value_as_text(it.value, ""));
    }
    if (hd_value_count(verbs)) putchar('\n');
}

/* Whether this ("cancel") was asked of the instance and is yet to be done. */
static bool is_asked_for(flow *f, const char *verb) {
    hd_value verbs = flow_requests(f);
    for (hd_iter it = hd_iter_of(verbs); hd_iter_next(&it);)
        if (!strcmp(hd_value_as_text(it.value, ""), verb)) return true;
    return false;
}

const char *flow_how_it_ends(flow *f, hd_value document) {
    if (flow_is_ending(document)) return "It is ending: what it still does is cleaning up.";
    if (is_asked_for(f, "cancel"))
        return "A cancel is asked for, and waits for a program that runs the instance.";
    return "heddle workflow cancel ends it.";
}
