/* demo_story.c -- how the demonstration is told: a terminal of 80 columns, at reading speed. */
#define _POSIX_C_SOURCE 200809L
#include "cli/demo_story.h"

#include "cli/output.h"
#include "cli/signals.h"
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READING_MS = 4200, RULE = 78 };

/* ---- Sentences --------------------------------------------------------------------------- */

/* Enter, pressed during a pause, is used up by it. */
static void forget_enter(void) {
    char ignored[64];
    struct pollfd keys = { STDIN_FILENO, POLLIN, 0 };
    while (poll(&keys, 1, 0) == 1 && keys.revents & POLLIN)
        if (read(STDIN_FILENO, ignored, sizeof ignored) <= 0) return;
}

void story_pause(story *s, int ms) {
    fflush(stdout);
    if (!s->pauses) return;
    bool reads = isatty(STDIN_FILENO);
    wait_readable(reads ? STDIN_FILENO : -1, ms);
    if (reads) forget_enter();
}

bool story_step(story *s, const char *title) {
    if (s->step) story_pause(s, READING_MS);
    if (s->aborted || interrupted() || output_broken()) return false;
    const char *bold = out_colour(s->c, COLOUR_BOLD), *plain = out_colour(s->c, COLOUR_NONE);
    const char *dim = out_colour(s->c, COLOUR_DIM);
    char text[RULE];
    int width = snprintf(text, sizeof text, "%d. %s", ++s->step, title);
    printf("\n%s== %s%s%s%s ", dim, plain, bold, text, plain);
    fputs(dim, stdout);
    for (int i = width + 4; i < RULE; i++) putchar('=');
    printf("%s\n", plain);
    s->above = STORY_HEADING;
    return true;
}

void story_say(story *s, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (s->above != STORY_HEADING) putchar('\n');
    print_wrapped(text, 0, 0);
    putchar('\n');
    s->above = STORY_SAID;
}

void story_check(story *s, bool holds, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    s->broken += !holds;
    if (s->above == STORY_DREW) putchar('\n');
    s->above = STORY_CHECKED;
    printf("  %s%s%s ", out_colour(s->c, holds ? COLOUR_GREEN : COLOUR_RED), holds ? "ok " : "NO ",
           out_colour(s->c, COLOUR_NONE));
    print_wrapped(text, 6, 6);
}

void story_shell(story *s, const char *format, ...) {
    va_list arguments;
    printf("  %s$%s ", out_colour(s->c, COLOUR_DIM), out_colour(s->c, COLOUR_BOLD));
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("%s\n", out_colour(s->c, COLOUR_NONE));
    s->above = STORY_CHECKED;
}

bool story_ok(story *s, hd_status status, const char *what) {
    if (!status || s->aborted) return !s->aborted;
    const hd_error *error = s->shop.rt ? hd_runtime_error(s->shop.rt) : NULL;
    bool told = error && error->status == status && *error->message;
    s->aborted = cli_fail(s->c, exit_of(status), NULL, "%s: %s", what,
                          told ? error->message : hd_status_text(status));
    return false;
}

/* ---- Nodes and cells by the names that the shop gave them ------------------------------------- */

enum { NAME_SIZE = 128 };

static const char *without_prefix(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) ? name : name + length;
}

/* "total"; of a row "amounts/1". */
static const char *node_name(const hd_runtime *rt, hd_node node, char out[NAME_SIZE]) {
    hd_node_info row, of;
    *out = '\0';
    if (hd_node_inspect(rt, node, &row)) return out;
    const char *own = without_prefix(row.name, SHOP_SPACE ":" SHOP_PIECE ":");
    if (row.parent.id && !hd_node_inspect(rt, row.parent, &of))
        snprintf(out, NAME_SIZE, "%.60s/%.60s",
                 without_prefix(of.name, SHOP_SPACE ":" SHOP_PIECE ":"), own);
    else snprintf(out, NAME_SIZE, "%.120s", own);
    return out;
}

static const char *cell_name(hd_runtime *rt, hd_cell cell, char out[NAME_SIZE]) {
    char whole[NAME_SIZE];
    hd_cell_print(rt, cell, whole, sizeof whole);
    snprintf(out, NAME_SIZE, "%s", without_prefix(whole, SHOP_PREFIX));
    return out;
}

static hd_node find_node(const story *s, const char *node) {
    char name[NAME_SIZE];
    snprintf(name, sizeof name, SHOP_SPACE ":" SHOP_PIECE ":%s", node);
    return hd_node_find(s->shop.rt, name);
}

uint64_t story_runs_of(story *s, const char *node) {
    hd_node_info info;
    return hd_node_inspect(s->shop.rt, find_node(s, node), &info) ? 0 : info.runs;
}

hd_why_not story_why_not(story *s, const char *node, char *out, size_t size) {
    return hd_node_why_not(s->shop.rt, find_node(s, node), out, size);
}

int64_t story_number(story *s, hd_cell cell) {
    hd_pool *pool;
    if (!story_ok(s, hd_pool_open(hd_runtime_heap(s->shop.rt), &pool), "reading")) return -1;
    int64_t number = hd_value_as_int(hd_read(s->shop.rt, pool, cell), -1);
    hd_pool_close(pool);
    return number;
}

/* ---- What ran -------------------------------------------------------------------------------- */

enum { NAME_WIDTH = 15, REASONS = HD_WHY_NOT_LED + 1 };

typedef struct telling {
    story *s;
    uint32_t ran[256]; /* ids of nodes that ran */
    size_t ran_count;
    const hd_run_trace *run; /* whose causes are being told */
    hd_cell cause;
    char before[32], after[32]; /* of the cause */
    char names[REASONS][600];   /* of nodes that did not run, by reason */
    hd_node waiting;            /* one that has to wait for its time */
    hd_why_not waits_for;
} telling;

/* The latest change of this cell before the run that concerned its node. */
static bool find_trigger(const hd_trigger *t, void *ctx) {
    telling *told = ctx;
    if (t->at_ns > told->run->began_ns) return false;
    if (t->node.id != told->run->node.id || t->cell.id != told->cause.id) return true;
    snprintf(told->before, sizeof told->before, "%s", t->before);
    snprintf(told->after, sizeof told->after, "%s", t->after);
    return true;
}

static void add_text(char *out, size_t size, const char *a, const char *b, const char *c) {
    size_t length = strlen(out);
    snprintf(out + length, size - length, "%s%s%s", a, b, c);
}

static void describe_cause(telling *told, hd_cell cause, char *out, size_t size) {
    hd_runtime *rt = told->s->shop.rt;
    char name[NAME_SIZE];
    told->cause = cause;
    *told->before = *told->after = '\0';
    hd_trace_triggers(rt, find_trigger, told);
    add_text(out, size, *out ? ", " : "", cell_name(rt, cause, name), "");
    /* Containers are shortened to their size, which may be the same. */
    if (!strcmp(told->before, told->after)) return;
    add_text(out, size, " ", told->before, " -> ");
    add_text(out, size, told->after, "", "");
}

static void print_causes(telling *told, const hd_run_trace *run) {
    char text[512] = "";
    told->run = run;
    if (run->first && !run->causes.count) snprintf(text, sizeof text, "its first run");
    for (uint32_t i = 0; i < run->causes.count && i < HD_TRACE_CELLS; i++)
        describe_cause(told, run->causes.cells[i], text, sizeof text);
    const size_t room = RULE - 10 - NAME_WIDTH;
    if (strlen(text) > room) strcpy(text + room - 3, "...");
    fputs(text, stdout);
}

static bool print_run(const hd_run_trace *run, void *ctx) {
    telling *told = ctx;
    const cli *c = told->s->c;
    char name[NAME_SIZE];
    if (run->set_aside) return true; /* it began too early, and runs again */
    printf("  %s%-7s%s", out_colour(c, COLOUR_GREEN), told->ran_count ? "" : "ran",
           out_colour(c, COLOUR_NONE));
    printf("%-*s ", NAME_WIDTH, node_name(told->s->shop.rt, run->node, name));
    print_causes(told, run);
    if (!run->written.count && run->attempted.count)
        printf("%s  same result: runs no reader%s", out_colour(c, COLOUR_YELLOW),
               out_colour(c, COLOUR_NONE));
    putchar('\n');
    if (told->ran_count < sizeof told->ran / sizeof *told->ran)
        told->ran[told->ran_count++] = run->node.id;
    return true;
}

/* ---- What did not, and why ------------------------------------------------------------------- */

static bool has_run(const telling *told, hd_node node) {
    for (size_t i = 0; i < told->ran_count; i++)
        if (told->ran[i] == node.id) return true;
    return false;
}

static bool collect_idle(const hd_node_info *info, void *ctx) {
    telling *told = ctx;
    if (has_run(told, info->node)) return true;
    char name[NAME_SIZE], *list = told->names[info->why_not];
    size_t length = strlen(list);
    snprintf(list + length, sizeof told->names[0] - length, "%s%s", length ? ", " : "",
             node_name(told->s->shop.rt, info->node, name));
    if (info->eligible_at_ns) {
        told->waiting = info->node;
        told->waits_for = info->why_not;
    }
    return true;
}

static void print_idle(const telling *told, hd_why_not reason, bool first) {
    const cli *c = told->s->c;
    char text[800], sentence[160];
    snprintf(sentence, sizeof sentence, "%s", hd_why_not_text(reason));
    if (told->waiting.id && reason == told->waits_for)
        hd_node_why_not(told->s->shop.rt, told->waiting, sentence, sizeof sentence);
    snprintf(text, sizeof text, "%s: %s", sentence, told->names[reason]);
    printf("  %s%-7s", out_colour(c, COLOUR_DIM), first ? "not" : "");
    print_wrapped(text, 9, 11);
    fputs(out_colour(c, COLOUR_NONE), stdout);
}

static void tell(story *s) {
    telling told = { .s = s };
    hd_trace_runs(s->shop.rt, print_run, &told);
    hd_runtime_nodes(s->shop.rt, collect_idle, &told);
    bool first = true;
    for (int reason = REASONS - 1; reason >= 0; reason--) {
        if (!*told.names[reason]) continue;
        print_idle(&told, (hd_why_not)reason, first);
        first = false;
    }
}

static void look_at_effects(story *s) {
    uint64_t drawn = story_runs_of(s, "storefront") + story_runs_of(s, "draft");
    if (drawn != s->drawn) s->above = STORY_DREW;
    s->drawn = drawn;
}

void story_settle_silently(story *s) {
    if (!story_ok(s, hd_runtime_settle(s->shop.rt), "settling")) return;
    if (!story_ok(s, hd_runtime_sync(s->shop.rt), "committing")) return;
    if (!story_ok(s, hd_runtime_settle(s->shop.rt), "settling"))
        return; /* what a verdict set off */
    look_at_effects(s);
}

void story_settle(story *s) {
    story_settle_silently(s);
    if (s->aborted) return;
    putchar('\n');
    tell(s);
    s->above = STORY_DREW;
    hd_trace_clear(s->shop.rt);
}

void story_wait_for(story *s, const char *node, uint64_t runs) {
    const hd_env *env = hd_runtime_env(s->shop.rt);
    uint64_t end = env->monotonic_ns(env->ctx) + UINT64_C(2000000000);
    fflush(stdout);
    while (!s->aborted && story_runs_of(s, node) <= runs && !interrupted()) {
        uint64_t now = env->monotonic_ns(env->ctx), until = hd_runtime_deadline(s->shop.rt);
        if (now >= end) break;
        if (until > end) until = end;
        if (until > now) env->wait(hd_runtime_fd(s->shop.rt), until, env->ctx);
        hd_status status = hd_runtime_pump(s->shop.rt);
        story_ok(s, status == HD_PENDING ? HD_OK : status, "waiting");
    }
    look_at_effects(s);
}

/* ---- Why ------------------------------------------------------------------------------------- */

static const char *origin_text(hd_origin origin) {
    switch (origin) {
    case HD_ORIGIN_SOURCE: return "a commit of this program";
    case HD_ORIGIN_OTHERS: return "a commit of another program";
    case HD_ORIGIN_LOAD: return "it was in the file";
    case HD_ORIGIN_REVERT: return "a commit was refused";
    case HD_ORIGIN_NODE: break;
    }
    return "";
}

static bool print_link_of_chain(const hd_cause *cause, void *ctx) {
    story *s = ctx;
    char name[NAME_SIZE], writer[NAME_SIZE];
    printf("  %*s%s<-%s %s", (int)(2 * cause->depth), "", out_colour(s->c, COLOUR_DIM),
           out_colour(s->c, COLOUR_NONE), cell_name(s->shop.rt, cause->cell, name));
    const char *before = cause->before, *after = cause->after;
    if (after && (!before || strcmp(before, after)))
        printf(" %s%s%s", before ? before : "", before ? " -> " : "is now ", after);
    if (cause->origin == HD_ORIGIN_NODE)
        printf("%s, written by %s%s", out_colour(s->c, COLOUR_DIM),
               node_name(s->shop.rt, cause->writer, writer), out_colour(s->c, COLOUR_NONE));
    else
        printf(", %s%s%s", out_colour(s->c, COLOUR_BOLD), origin_text(cause->origin),
               out_colour(s->c, COLOUR_NONE));
    puts(cause->repeated ? " (as above)" : "");
    return true;
}

void story_why(story *s, const char *node) {
    story_ok(s, hd_node_why(s->shop.rt, find_node(s, node), print_link_of_chain, s), "why");
}
