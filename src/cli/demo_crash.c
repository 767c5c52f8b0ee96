/* demo_crash.c -- the shop in a process of its own, which is killed; and the shop resumed.
 *
 *     parent                                child
 *     closes the file, forks                opens the file, sells, syncs
 *     reads what the child says      <---   says what it sold, through a pipe
 *     SIGKILL                        --->   is gone, in the middle of its life
 *     opens the file
 *
 * The parent has closed its runtime before it forks: a runtime has threads, and these do not cross. */
#define _GNU_SOURCE
#include "base/system.h"
#include "cli/demo_steps.h"

#include "cli/output.h"
#include <heddle/introspect.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

/* What the child process sends before it is killed. */
typedef struct last_words {
    int64_t orders, total;
    uint64_t nodes;
} last_words;

static int64_t order_count(story *s) {
    return story_number(s, hd_cell_child(s->shop.rt, s->shop.orders, "length"));
}

/* ---- The child --------------------------------------------------------------------------- */

static void live_and_wait(story *s, int pipe_end) {
    if (!demo_open_shop(s)) return;
    story_ok(s, shop_sell(&s->shop, "pot", 1, "web-18", NULL, NULL), "a sale");
    story_settle_silently(s);
    if (s->aborted) return;
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(s->shop.rt, &stats);
    last_words words = { order_count(s), story_number(s, s->shop.total), stats.nodes };
    fflush(stdout);
    if (write(pipe_end, &words, sizeof words) != (ssize_t)sizeof words) return;
    hd_runtime_run(s->shop.rt); /* would serve customers for ever */
}

/* ---- A process that is killed -------------------------------------------------------------- */

static pid_t start_child(story *s, demo_life_fn live, int *from) {
    int ends[2];
    fflush(stdout);
    if (system_pipe(ends)) return -1;
    pid_t child = fork();
    if (child == 0) {
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* never outlives the demonstration */
#endif
        live(s, ends[1]);
        _exit(1);
    }
    close(ends[1]);
    *from = ends[0];
    return child;
}

/* Returns the signal that ended it; 0: none. */
static int run_and_kill(story *s, demo_life_fn live, void *words, size_t size, pid_t *child) {
    int from = -1, status = 0;
    *child = start_child(s, live, &from);
    if (*child < 0) return 0;
    bool spoke = read(from, words, size) == (ssize_t)size;
    close(from);
    kill(*child, SIGKILL);
    while (waitpid(*child, &status, 0) < 0 && errno == EINTR) continue;
    return spoke && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

pid_t demo_kill(story *s, demo_life_fn live, void *words, size_t size) {
    pid_t child;
    int died_of = run_and_kill(s, live, words, size, &child);
    s->above = STORY_DREW; /* by the child */
    story_check(s, died_of == SIGKILL, "process %d died of signal %d (%s)", (int)child, died_of,
                died_of ? strsignal(died_of) : "none");
    return child;
}

/* ---- The parent -------------------------------------------------------------------------- */

/* Computations that ran since the file was opened. A map has to run, to have its rows; what its rows
 * compute is the shop's. */
typedef struct recount {
    hd_runtime *rt;
    unsigned maps, others;
    char last[64]; /* name of one of the others */
} recount;

static bool count_run(const hd_run_trace *run, void *ctx) {
    recount *count = ctx;
    hd_node_info info;
    if (run->effect || run->set_aside || hd_node_inspect(count->rt, run->node, &info)) return true;
    if (info.children) count->maps++;
    else count->others++;
    if (!info.children) snprintf(count->last, sizeof count->last, " (%s)", run->action);
    return true;
}

static void check_resumed(story *s, const last_words *words) {
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(s->shop.rt, &stats);
    recount count = { .rt = s->shop.rt };
    hd_trace_runs(s->shop.rt, count_run, &count);
    int64_t orders = order_count(s), total = story_number(s, s->shop.total);
    story_check(s, orders == words->orders && total == words->total,
                "%" PRId64 " orders of %" PRId64 ", and the total it had: nothing is lost", orders,
                words->orders);
    story_check(s, count.others == 0,
                "of %" PRIu64 " computations %u ran again%s; %u maps found their rows, and the "
                "effects drew the screen",
                stats.computations, count.others, count.last, count.maps);
}

static void note_status(const char *id, hd_status status, void *ctx) {
    (void)id;
    *(hd_status *)ctx = status;
}

/* Sends the event of the killed process once more, as its customer would. */
static void deliver_again(story *s) {
    hd_status outcome = HD_PENDING;
    story_ok(s, shop_sell(&s->shop, "pot", 1, "web-18", note_status, &outcome), "a sale");
    story_settle_silently(s);
    if (s->aborted) return;
    story_check(s, outcome == HD_EXISTS, "its last order, delivered again: %s",
                hd_status_name(outcome));
}

void demo_crash(story *s) {
    if (!story_step(s, "kill -9")) return;
    if (!story_ok(s, shop_close(&s->shop), "closing")) return;
    story_say(s, "The shop moves to a process of its own, sells a teapot, and is killed. What its "
                 "storefront shows is visible, which comes a moment before it is durable. So the "
                 "process waits until the sale is on disk (hd_runtime_sync) before it dies:");
    last_words words = { 0 };
    demo_kill(s, live_and_wait, &words, sizeof words);
    story_pause(s, 2000);
    story_say(s, "We open its file:");
    if (s->aborted || !demo_open_shop(s)) return;
    story_settle_silently(s);
    if (s->aborted) return;
    check_resumed(s, &words);
    deliver_again(s);
}
