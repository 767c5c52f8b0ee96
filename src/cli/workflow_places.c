/* workflow_places.c -- which other processes do steps of an instance, as the store tells (workflow/away.c). */
#include "cli/output.h"
#include "cli/workflow.h"
#include "workflow/engine.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct search {
    flow *f;
    const char *id; /* of the instance */
    hd_value found;
} search;

static hd_value document(const flow *f, const char *prefix, const char *session) {
    hd_value name = hd_string_f(f->s.pool, "%s/%s%s", f->space, prefix, session);
    hd_cell cell = hd_cell_at(f->s.rt, hd_value_as_text(name, ""));
    return cell.id ? hd_read(f->s.rt, f->s.pool, cell) : (hd_value){ 0 };
}

static hd_value place_of(const flow *f, hd_value entry, hd_value worker_) {
    static const char *const of_step[] = { "id", "node", "action", "attempt", "since" };
    static const char *const of_worker[] = { "host", "pid", "session" };
    hd_pool *pool = f->s.pool;
    hd_value r = hd_object(), process = hd_object();
    for (size_t i = 0; i < sizeof of_step / sizeof *of_step; i++)
        r = hd_object_set(pool, r, of_step[i], hd_value_at(entry, of_step[i]));
    for (size_t i = 0; i < sizeof of_worker / sizeof *of_worker; i++)
        if (hd_value_exists(hd_value_at(worker_, of_worker[i])))
            process =
                hd_object_set(pool, process, of_worker[i], hd_value_at(worker_, of_worker[i]));
    return hd_object_set(pool, r, "process", process);
}

static bool look(const hd_listing *entry, void *ctx) {
    search *s = ctx;
    if (strncmp(entry->id, TASKS_PREFIX, strlen(TASKS_PREFIX)) != 0) return true;
    const char *session = entry->id + strlen(TASKS_PREFIX);
    hd_value tasks = document(s->f, TASKS_PREFIX, session);
    for (hd_iter it = hd_iter_of(tasks); hd_iter_next(&it);) {
        if (strcmp(flow_text(it.value, "instance"), s->id) != 0) continue;
        hd_value worker_ = document(s->f, WORKER_PREFIX, session);
        s->found = hd_array_append(s->f->s.pool, s->found, place_of(s->f, it.value, worker_));
    }
    return true;
}

hd_value flow_places(flow *f, const char *id) {
    search s = { f, id, hd_array() };
    (void)hd_runtime_list(f->s.rt, f->space, TASKS_KIND, TASKS_PREFIX, look, &s);
    return s.found;
}

void flow_print_process(hd_value process) {
    if (*flow_text(process, "host")) {
        fputs(" on ", stdout);
        print_plain(stdout, flow_text(process, "host"));
    }
    if (flow_number(process, "pid")) printf(", process %" PRIu64, flow_number(process, "pid"));
}

void flow_print_places(flow *f) {
    char when[WHEN_TEXT];
    hd_value all = flow_places(f, f->id);
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it);) {
        printf("  %s%-9s%s ", out_colour(f->s.c, COLOUR_DIM), "away",
               out_colour(f->s.c, COLOUR_NONE));
        print_plain(stdout, flow_text(it.value, "node"));
        fputs(" is done", stdout);
        flow_print_process(hd_value_at(it.value, "process"));
        printf(", since %s\n", when_text(flow_number(it.value, "since"), when));
    }
}
