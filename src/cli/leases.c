/* leases.c -- for each space and job: which process has the lease, since when, and whether that process lives. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/workflow.h"
#include "store/lease.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOB_WIDTH = 28 };

typedef struct listing {
    store *s;
    uint64_t printed;
    hd_status status; /* why a lease or its holder could not be read; it ends the listing */
} listing;

static const char *state_of(const lease_holder *h) {
    return !*h->session ? "free" : h->lives ? "held" : "abandoned";
}

/* "lease/workflow/3" is shard 3 of the job. */
typedef struct job_name {
    char job[200];
    const char *shard; /* "": the job has no shards */
} job_name;

static job_name name_of(const hd_listing *entry) {
    job_name n = { .shard = "" };
    const char *id = entry->id + strlen("lease/"), *slash = strrchr(id, '/');
    bool divided = slash && slash[1] && !slash[1 + strspn(slash + 1, "0123456789")];
    snprintf(n.job, sizeof n.job, "%.*s", (int)(divided ? (size_t)(slash - id) : strlen(id)), id);
    if (divided) n.shard = slash + 1;
    return n;
}

static void print_record(const hd_listing *entry, const lease_holder *h) {
    record r = record_to(stdout);
    job_name n = name_of(entry);
    record_open(&r, NULL, '{');
    record_text(&r, "space", entry->space);
    record_text(&r, "job", n.job);
    if (*n.shard) record_number(&r, "shard", strtoull(n.shard, NULL, 10));
    record_text(&r, "state", state_of(h));
    record_number(&r, "epoch", h->epoch);
    if (*h->session) {
        record_text(&r, "session", h->session);
        record_number(&r, "pid", (uint64_t)h->pid);
        if (*h->host) record_text(&r, "host", h->host);
        if (h->since_ms) record_number(&r, "since_ms", h->since_ms);
    }
    record_close(&r, '}');
    record_end(&r);
}

static void print_holder(const lease_holder *h) {
    char when[WHEN_TEXT];
    printf("process %" PRId64, h->pid);
    if (*h->host) fputs(" on ", stdout), print_plain(stdout, h->host);
    if (h->since_ms) printf(", since %s", when_text(h->since_ms, when));
    fputs("\n    session ", stdout);
    print_plain(stdout, h->session);
    putchar('\n');
}

static void print_line(const cli *c, const hd_listing *entry, const lease_holder *h) {
    char name[512];
    job_name n = name_of(entry);
    snprintf(name, sizeof name, "%s  %s%s%s", entry->space, n.job, *n.shard ? " shard " : "",
             n.shard);
    fputs(out_colour(c, COLOUR_BOLD), stdout);
    print_name(c, name, JOB_WIDTH, 4);
    printf("%s  %s%s%s, epoch %" PRIu64, out_colour(c, COLOUR_NONE),
           out_colour(c, h->lives ? COLOUR_GREEN : COLOUR_YELLOW), state_of(h),
           out_colour(c, COLOUR_NONE), h->epoch);
    if (!*h->session) putchar('\n');
    else fputs(": ", stdout), print_holder(h);
}

static bool print_lease(const hd_listing *entry, void *ctx) {
    listing *l = ctx;
    store *s = l->s;
    lease_holder h;
    hd_cell cell = hd_cell_of(s->rt, entry->space, entry->scope, entry->id, NULL);
    hd_value document = hd_read(s->rt, s->pool, cell);
    l->status = hd_value_status(document);
    if (!l->status) l->status = lease_holder_of(s->rt, document, &h);
    if (l->status) return false;
    if (s->c->json) print_record(entry, &h);
    else print_line(s->c, entry, &h);
    hd_pool_clear(s->pool);
    l->printed++;
    return !output_broken() && !interrupted();
}

static bool list_space(const char *space, void *ctx) {
    listing *l = ctx;
    hd_status status = hd_runtime_list(l->s->rt, space, "lease", "lease/", print_lease, l);
    if (!l->status) l->status = status;
    return !l->status && !output_broken() && !interrupted();
}

static int run(cli *c) {
    store s;
    listing l = { .s = &s };
    int failed = store_open(c, &s, c->operands[0], STORE_READ);
    if (!failed) {
        hd_status status = hd_runtime_spaces(s.rt, list_space, &l);
        if (!status) status = l.status;
        if (status) failed = store_fail(&s, status, s.file);
        else if (interrupted()) failed = interrupted_status();
        else if (!l.printed && !c->json) printf("there are no leases\n");
    }
    return store_close(&s, failed);
}

const command command_leases = {
    .name = "leases",
    .section = "The file",
    .operands = "STORE",
    .least = 1,
    .most = 1,
    .summary = "which process does which job for which space, since when",
    .text = "A job such as running the workflows of a space is done by one process at a time, "
            "which holds its lease. Lists them: held by a process that lives; abandoned by one "
            "that does not, until another takes the lease; or free, since the last one gave it "
            "up. The epoch counts how often the lease was taken. The time is that of the holder's "
            "clock. Where the workflows of a space are divided into shards, each shard has a "
            "lease. Checkpoints and pruning have none: a lock of the store keeps them to one "
            "process at a time.\n\n"
            "In a file a process lives as long as the system says so. On a server it is taken for "
            "dead when it has not been heard of for 2.6 s.",
    .examples = (const cli_example[]){ { "heddle leases shop.db", "for a look" },
                                       { "heddle leases postgresql://shop@db/shop --json",
                                         "for a program" },
                                       { NULL, NULL } },
    .run = run,
};
