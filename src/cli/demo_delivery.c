/* demo_delivery.c -- a workflow whose process is killed in the middle of a step, and that goes on.
 *
 *     parent                                child
 *     closes the file, forks                opens the file, charges, packs
 *     reads what the child has begun <---   says so while it packs, through a pipe
 *     SIGKILL                        --->   is gone, in the middle of a step
 *     heddle workflow show
 *     opens the file: packs, ships */
#define _GNU_SOURCE
#include "base/system.h"
#include "cli/demo_steps.h"

#include "cli/output.h"
#include "shop/delivery.h"

#include <inttypes.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORDER "web-18"
enum { PRICE = 2900 };

/* How often the killed process has begun each step. */
typedef struct begun {
    unsigned charged, packed, shipped;
} begun;

static bool open_delivery(story *s, delivery *d) {
    hd_error error = { 0 };
    d->colour = out_colour(s->c, COLOUR_CYAN);
    d->plain = out_colour(s->c, COLOUR_NONE);
    hd_status status = delivery_open(d, s->file, &error);
    if (status && *error.message)
        s->aborted = cli_fail(s->c, exit_of(status), NULL, "%s", error.message);
    return story_ok(s, status, s->file);
}

/* What the program does, whether or not an earlier process has begun with the order. */
static bool deliver(story *s, delivery *d, hd_pool *pool, hd_value *result) {
    char id[HD_INSTANCE_ID_SIZE];
    return story_ok(s, delivery_start(d, ORDER, PRICE, id), "a delivery") &&
           story_ok(s, hd_workflow_await(d->engine, id, pool, result), "a delivery");
}

/* ---- The child --------------------------------------------------------------------------- */

/* While it packs: says so, and does not come to an end. */
static void say_and_wait(delivery *d) {
    begun words = { d->charged, d->packed, d->shipped };
    if (write(*(int *)d->meanwhile_ctx, &words, sizeof words) != (ssize_t)sizeof words) _exit(1);
    for (;;) pause();
}

static void deliver_until_killed(story *s, int pipe_end) {
    delivery d = { .meanwhile = say_and_wait, .meanwhile_ctx = &pipe_end };
    hd_pool *pool;
    hd_value result;
    if (open_delivery(s, &d) &&
        story_ok(s, hd_pool_open(hd_runtime_heap(d.rt), &pool), "a delivery"))
        deliver(s, &d, pool, &result); /* for ever */
}

/* ---- The parent -------------------------------------------------------------------------- */

/* What the command prints of the workflow while no process runs it. */
static void show(story *s) {
    char program[4096], workflow[] = "workflow", verb[] = "show";
    char id[] = DELIVERY "/" ORDER, colours[] = "--color", always[] = "always", never[] = "never";
    char *words[] = { program,
                      workflow,
                      verb,
                      (char *)(uintptr_t)s->file,
                      id,
                      colours,
                      s->c->colour_out ? always : never,
                      NULL };
    pid_t child;
    int status = 0;
    story_shell(s, "heddle workflow show shop.db %s", id);
    fflush(stdout);
    if (!system_program(program, sizeof program) ||
        posix_spawn(&child, program, NULL, NULL, words, environ) ||
        waitpid(child, &status, 0) != child || status)
        story_ok(s, HD_IO, "heddle workflow show");
    s->above = STORY_CHECKED;
}

static int64_t who(hd_value result, const char *step) {
    return hd_value_as_int(hd_value_at(result, step), 0);
}

static void check_delivered(story *s, const delivery *d, const begun *words, pid_t killed,
                            hd_value result) {
    s->above = STORY_DREW;
    story_check(s,
                words->charged == 1 && d->charged == 0 && words->packed == 1 && d->packed == 1 &&
                    words->shipped == 0 && d->shipped == 1,
                "begun before the kill + after it: charge %u + %u, pack %u + %u, ship %u + %u",
                words->charged, d->charged, words->packed, d->packed, words->shipped, d->shipped);
    int64_t charged = who(result, "charged"), packed = who(result, "packed");
    int64_t shipped = who(result, "shipped");
    story_check(s, charged == killed && packed == getpid() && shipped == getpid(),
                "result: charged by %" PRId64 ", packed by %" PRId64 ", shipped by %" PRId64,
                charged, packed, shipped);
}

static void go_on(story *s, const begun *words, pid_t killed) {
    delivery d = { 0 };
    hd_pool *pool = NULL;
    hd_value result;
    if (open_delivery(s, &d) &&
        story_ok(s, hd_pool_open(hd_runtime_heap(d.rt), &pool), "a delivery") &&
        deliver(s, &d, pool, &result))
        check_delivered(s, &d, words, killed, result);
    if (pool) hd_pool_close(pool);
    if (d.rt) story_ok(s, delivery_close(&d), "closing");
}

void demo_delivery(story *s) {
    if (!story_step(s, "kill -9 in the middle of a workflow")) return;
    if (!story_ok(s, shop_close(&s->shop), "closing")) return;
    story_say(s, "Charge, pack, ship: a workflow. The process that runs it dies while it packs:");
    begun words = { 0 };
    pid_t killed = demo_kill(s, deliver_until_killed, &words, sizeof words);
    show(s);
    story_pause(s, 2000);
    story_say(s, "We run the program again. What was finished stays finished:");
    if (!s->aborted) go_on(s, &words, killed);
}
