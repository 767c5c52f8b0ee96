/* workflow_why.c -- what an instance waits for, in words.
 *
 * The program that runs the instances is asked, if one serves: it knows which steps run and which have no worker.
 * Otherwise the store is read, and a step that waits for a worker is just that. */
#define _POSIX_C_SOURCE 200809L
#include "cli/workflow_why.h"

#include "cli/live.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/shown.h"
#include "cli/workflow.h"
#include "workflow/child_id.h"
#include "workflow/open_record.h"
#include "workflow/outline.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_WIDTH = 16 };

/* What was asked about. */
typedef struct question {
    flow f;
    char *text;       /* malloc; the operand, taken apart */
    const char *node; /* NULL: the whole instance */
    hd_value document;
    hd_value places; /* of its steps that other processes do; absent: not looked at yet */
    bool joins;      /* the answer includes nodes at which not all paths have arrived */
    bool answered;   /* by a program that runs the instance */
    int refused; /* the exit status if the store could not be opened, which was said; CLI_OK: it could */
} question;

/* ---- Is it an instance ------------------------------------------------------------------- */

/* "space/workflow/name/key" has the space; "#node" is the step. A path of a cell begins with "#/". */
static bool take_apart(question *q, const char *operand) {
    q->text = strdup(operand);
    if (!q->text) return false;
    char *hash = strchr(q->text, '#'), *infix = strstr(q->text, "/workflow/");
    if (hash && hash[1] == '/') return false;
    if (hash) *hash = '\0', q->node = hash + 1;
    q->f.space = "main";
    if (infix && !memchr(q->text, '/', (size_t)(infix - q->text)) && infix != q->text) {
        *infix = '\0';
        q->f.space = q->text;
        q->f.id = infix + strlen("/workflow/");
    } else {
        q->f.id = strncmp(q->text, "workflow/", 9) ? q->text : q->text + 9;
    }
    return strchr(q->f.id, '/') != NULL;
}

/* Opens the store, and reads the document that the question is about. True: it is an instance of a workflow. */
static bool open_instance(question *q, cli *c) {
    const char *space, *id;
    FILE *there = is_address(c->operands[0]) ? NULL : fopen(c->operands[0], "rb");
    bool missing = !there && !is_address(c->operands[0]);
    if (there) fclose(there);
    if (missing || !take_apart(q, c->operands[1])) return false;
    space = q->f.space;
    id = q->f.id;
    q->refused = store_open_as(c, &q->f.s, c->operands[0], STORE_READ, NULL, NULL);
    if (q->refused) return false;
    q->f.space = space;
    q->f.id = id;
    q->document = hd_read(q->f.s.rt, q->f.s.pool, flow_cell(&q->f, id));
    return *flow_text(q->document, "status") && *flow_text(q->document, "workflow");
}

/* ---- What it does ------------------------------------------------------------------------ */

/* What the program that runs the instance knows: which actions have workers, which steps run. Several programs may
 * serve the file; the others say that they do not run it. */
typedef struct asking {
    question *q;
    hd_value said; /* of the question's pool; absent: no program that runs it has answered */
} asking;

static void ask_one(live *l, pid_t pid, void *ctx) {
    asking *w = ctx;
    question *q = w->q;
    hd_value said;
    bool not_found = false;
    (void)pid;
    hd_value of = hd_object_set(l->pool, hd_object(), "of", hd_string(l->pool, q->f.id));
    if (q->answered || live_ask_gently(l, "workflow", of, &said, &not_found)) return;
    if (strcmp(flow_text(said, "space"), q->f.space)) return;
    const char *words = hd_json_print(l->pool, said, HD_JSON_COMPACT, NULL);
    if (!words) return;
    w->said = hd_json_parse(q->f.s.pool, words, strlen(words), NULL);
    q->answered = hd_value_exists(w->said);
}

static hd_value ask_program(question *q) {
    asking w = { .q = q };
    const char *path = option_text(q->f.s.c, "socket");
    if (path) live_one_program(q->f.s.c, q->f.s.file, path, ask_one, &w);
    else live_each_program(q->f.s.c, q->f.s.file, ask_one, &w);
    return w.said;
}

static bool has_text(hd_value array, const char *wanted) {
    for (hd_iter it = hd_iter_of(array); hd_iter_next(&it);)
        if (strcmp(hd_value_as_text(it.value, ""), wanted) == 0) return true;
    return false;
}

/* What the program says of the step; absent: nothing. */
static hd_value said_of(hd_value said, const char *step) {
    for (hd_iter it = hd_iter_of(hd_value_at(said, "steps")); hd_iter_next(&it);)
        if (strcmp(flow_text(it.value, "step"), step) == 0) return it.value;
    return (hd_value){ 0 };
}

static const char *state_word(const plan_node *n, hd_value open, const char *step, hd_value said) {
    const char *told = flow_text(said_of(said, step), "state");
    if (*told) return told;
    if (n->kind == NODE_SLEEP) return "sleeping";
    if (n->kind == NODE_WAIT) return "waiting";
    if (n->kind == NODE_FAN_HEAD) return "branches";
    if (n->kind == NODE_CHILD) return "child";
    if (open_record_number(open, "due")) return "retrying";
    if (!hd_value_exists(said)) return "queued";
    if (has_text(hd_value_at(said, "running"), step)) return "running";
    return flow_number(hd_value_at(said, "workers"), n->name ? n->name : "") ? "queued"
                                                                             : "no worker";
}

/* The process that does the step through the store; absent: none does. */
static hd_value process_of(question *q, const char *step) {
    size_t length = strlen(q->f.id);
    if (!hd_value_exists(q->places)) q->places = flow_places(&q->f, q->f.id);
    for (hd_iter it = hd_iter_of(q->places); hd_iter_next(&it);) {
        const char *id = flow_text(it.value, "id");
        if (!strncmp(id, q->f.id, length) && id[length] == '/' && !strcmp(id + length + 1, step))
            return hd_value_at(it.value, "process");
    }
    return (hd_value){ 0 };
}

/* With the BARRIER that the thread of control `number` waits at, and how many branches have arrived there. */
static hd_value with_fan(question *q, hd_value r, const plan_function *f, const plan_node *n,
                         const char *number) {
    hd_pool *pool = q->f.s.pool;
    uint64_t total = n->out_count, done = 0;
    for (hd_iter it = hd_iter_of(hd_value_at(q->document, "fans")); hd_iter_next(&it);) {
        hd_value items = hd_value_at(hd_value_at(it.value, "items"), "$tuple");
        if (hd_value_as_int(hd_value_at(it.value, "strand"), -1) != strtoll(number, NULL, 10))
            continue;
        if (hd_value_exists(items)) total = hd_value_count(items);
        done = hd_value_count(hd_value_at(it.value, "results"));
    }
    hd_value fan = hd_object_set(pool, hd_object(), "done", hd_int(pool, (int64_t)done));
    fan = hd_object_set(pool, fan, "total", hd_int(pool, (int64_t)total));
    r = hd_object_set(pool, r, "barrier", hd_string(pool, f->nodes[n->pair].id));
    return hd_object_set(pool, r, "fan", fan);
}

static const char *name_key(const plan_node *n) {
    return n->kind == NODE_WAIT ? "signal" : n->kind == NODE_CHILD ? "workflow" : "action";
}

static bool in_shards(const question *q) {
    hd_cell number = hd_cell_of(q->f.s.rt, q->f.space, HD_SCOPE_SPACE, SHARDS_NAME, NULL);
    return hd_value_as_int(hd_read(q->f.s.rt, q->f.s.pool, number), 1) > 1;
}

/* The id of the instance that the step waits for. */
static hd_value child_of(const question *q, const plan_node *n, const char *number, hd_value open) {
    char id[HD_INSTANCE_ID_SIZE];
    child_step step = { .parent = q->f.id,
                        .workflow = n->name,
                        .strand = (uint32_t)strtoul(number, NULL, 10),
                        .step = (uint32_t)open_record_number(open, "step"),
                        .tag = open_record_number(open, "tag"),
                        .in_shards = in_shards(q) };
    child_id(&step, id);
    return hd_string(q->f.s.pool, id);
}

/* One open step, from the document and what the program has said. */
static hd_value step_of(question *q, const outline *o, const char *number, hd_value open,
                        hd_value said) {
    static const char *const kept[] = { "node", "due", "attempt", "lost", "why" };
    static const char *const told_keys[] = { "queue", "limit", "cell", "until", "process" };
    hd_pool *pool = q->f.s.pool;
    uint32_t of = outline_function_of(o->p, q->document, open_record_place(open));
    const plan_function *f = of == PLAN_NONE ? NULL : &o->p->functions[of];
    uint32_t node = f ? plan_find_node(f, open_record_node(open)) : PLAN_NONE;
    if (node == PLAN_NONE) return (hd_value){ 0 };
    const plan_node *n = &f->nodes[node];
    hd_value name = hd_string_f(pool, "%s.%" PRIu64, number, open_record_number(open, "step"));
    hd_value r = hd_object_set(pool, hd_object(), "step", name);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (hd_value_exists(open_record_at(open, kept[i])))
            r = hd_object_set(pool, r, kept[i], open_record_at(open, kept[i]));
    r = hd_object_set(pool, r, "since",
                      hd_int(pool, (int64_t)open_record_since(q->document, open)));
    if (n->name) r = hd_object_set(pool, r, name_key(n), hd_string(pool, n->name));
    if (n->kind == NODE_FAN_HEAD) r = with_fan(q, r, f, n, number);
    if (n->kind == NODE_CHILD) r = hd_object_set(pool, r, "child", child_of(q, n, number, open));
    hd_value told = said_of(said, hd_value_as_text(name, ""));
    for (size_t i = 0; i < sizeof told_keys / sizeof *told_keys; i++)
        if (hd_value_exists(hd_value_at(told, told_keys[i])))
            r = hd_object_set(pool, r, told_keys[i], hd_value_at(told, told_keys[i]));
    const char *word = state_word(n, open, hd_value_as_text(name, ""), said);
    hd_value process = process_of(q, hd_value_as_text(name, ""));
    if (hd_value_exists(process)) {
        r = hd_object_set(pool, r, "process", process);
        word = "running";
    }
    return hd_object_set(pool, r, "state", hd_string(pool, word));
}

/* Adds, as steps, the nodes of an activation at which some of the paths that meet there have arrived. `of`: its
 * function. */
static hd_value with_arrivals(hd_pool *pool, const outline *o, uint32_t of, hd_value activation,
                              hd_value steps) {
    if (of == PLAN_NONE) return steps;
    const plan_function *f = &o->p->functions[of];
    for (hd_iter it = hd_iter_of(hd_value_at(activation, "ready")); hd_iter_next(&it);) {
        uint32_t node = plan_find_node(f, it.key);
        if (node == PLAN_NONE) continue;
        int64_t all = f->nodes[node].deps_required;
        hd_value step = hd_object_set(pool, hd_object(), "node", hd_string(pool, it.key));
        step = hd_object_set(pool, step, "state", hd_string(pool, "arrivals"));
        step = hd_object_set(pool, step, "arrived", it.value);
        step = hd_object_set(pool, step, "deps_required", hd_int(pool, all));
        steps = hd_array_append(pool, steps, step);
    }
    return steps;
}

/* The same for all activations: the first, those of functions that it calls, and branches. */
static hd_value with_joins(question *q, const outline *o, hd_value steps) {
    hd_pool *pool = q->f.s.pool;
    steps = with_arrivals(pool, o, 0, q->document, steps);
    for (hd_iter it = hd_iter_of(hd_value_at(q->document, "calls")); hd_iter_next(&it);) {
        uint32_t of = plan_find_function(o->p, flow_text(it.value, "function"));
        steps = with_arrivals(pool, o, of, it.value, steps);
    }
    for (hd_iter it = hd_iter_of(hd_value_at(q->document, "fans")); hd_iter_next(&it);) {
        uint32_t of = outline_function_of(o->p, q->document, hd_value_at(it.value, "in"));
        for (hd_iter b = hd_iter_of(hd_value_at(it.value, "branches")); hd_iter_next(&b);)
            steps = with_arrivals(pool, o, of, b.value, steps);
    }
    return steps;
}

static hd_value state_of(question *q) {
    outline o;
    hd_value ir, steps = hd_array(), said = ask_program(q);
    hd_pool *pool = q->f.s.pool;
    hd_value r = hd_object_set(pool, hd_object(), "id", hd_string(pool, q->f.id));
    r = hd_object_set(pool, r, "status", hd_value_at(q->document, "status"));
    if (hd_value_exists(hd_value_at(q->document, "error")))
        r = hd_object_set(pool, r, "error", hd_value_at(q->document, "error"));
    if (flow_is_over(q->document) || flow_version(&q->f, flow_text(q->document, "version"), &ir) ||
        outline_open(hd_runtime_heap(q->f.s.rt), ir, &o, NULL))
        return r;
    for (hd_iter it = hd_iter_of(hd_value_at(q->document, "open")); hd_iter_next(&it);) {
        hd_value step = step_of(q, &o, it.key, it.value, said);
        if (hd_value_exists(step)) steps = hd_array_append(pool, steps, step);
    }
    if (q->joins) steps = with_joins(q, &o, steps);
    outline_close(&o);
    return hd_object_set(pool, r, "steps", steps);
}

/* ---- In words ---------------------------------------------------------------------------- */

static void print_since(hd_value step) {
    char when[WHEN_TEXT];
    if (flow_number(step, "since"))
        printf(" since %s", when_text(flow_number(step, "since"), when));
}

static void print_until(hd_value step) {
    char when[WHEN_TEXT];
    bool again = strcmp(flow_text(step, "state"), "retrying") == 0;
    if (flow_number(step, "due"))
        printf(" %s %s", again ? "at" : "until", when_text(flow_number(step, "due"), when));
}

static void print_fan(hd_value step) {
    hd_value fan = hd_value_at(step, "fan");
    uint64_t total = flow_number(fan, "total"), done = flow_number(fan, "done");
    printf("waits for %" PRIu64 " of %" PRIu64 " arrivals at barrier ",
           total > done ? total - done : 0, total);
    print_plain(stdout, flow_text(step, "barrier"));
}

static void print_arrivals(hd_value step) {
    uint64_t all = flow_number(step, "deps_required"), arrived = flow_number(step, "arrived");
    printf("waits for %" PRIu64 " of %" PRIu64 " arrivals", all > arrived ? all - arrived : 0, all);
}

static void print_named(const char *before, const char *name) {
    fputs(before, stdout);
    print_plain(stdout, name);
}

static void print_taken(const char *before, const char *name, hd_value of) {
    print_named(before, name);
    printf(": %" PRIu64 " of %" PRIu64 " taken", flow_number(of, "running"),
           flow_number(of, "most"));
}

/* The step waits for something other than a worker; false: it does not. A heddle.wait that no worker does waits for
 * one, whatever its cell holds. */
static bool print_room(hd_value step) {
    bool lacks_worker = strcmp(flow_text(step, "state"), "no worker") == 0;
    hd_value queue = hd_value_at(step, "queue"), limit = hd_value_at(step, "limit");
    uint64_t most = flow_number(queue, "most");
    bool queued = strcmp(flow_text(step, "state"), "queued") == 0;
    if (hd_value_exists(limit)) {
        print_taken("waits for a free place of the limit ", flow_text(limit, "key"), limit);
    } else if (queued && hd_value_as_bool(hd_value_at(queue, "paused"), false)) {
        print_named("waits in queue ", flow_text(queue, "name"));
        fputs(", which is paused,", stdout);
    } else if (queued && most && flow_number(queue, "running") >= most) {
        print_taken("waits for a free place in queue ", flow_text(queue, "name"), queue);
    } else if (*flow_text(step, "cell") && !lacks_worker) {
        const char *until = flow_text(step, "until");
        print_named("waits for ", flow_text(step, "cell"));
        print_named(" until ", *until ? until : "value");
    } else {
        return false;
    }
    return true;
}

static void print_what(hd_value step) {
    const char *state = flow_text(step, "state"), *action = flow_text(step, "action");
    uint64_t attempt = flow_number(step, "attempt");
    if (print_room(step)) return;
    if (strcmp(state, "no worker") == 0) print_named("no worker for ", action);
    else if (strcmp(state, "queued") == 0) print_named("waits for a worker for ", action);
    else if (strcmp(state, "running") == 0) print_named("a worker runs ", action);
    else if (strcmp(state, "retrying") == 0) print_named("failed, and tries again: ", action);
    else if (strcmp(state, "sleeping") == 0) fputs("sleeps", stdout);
    else if (strcmp(state, "waiting") == 0)
        print_named("waits for the signal ", flow_text(step, "signal"));
    else if (strcmp(state, "child") == 0)
        print_named("waits for its child ", flow_text(step, "child"));
    else if (strcmp(state, "branches") == 0) print_fan(step);
    else if (strcmp(state, "arrivals") == 0) print_arrivals(step);
    else print_named("is ", state);
    flow_print_process(hd_value_at(step, "process"));
    if (attempt > 1) printf(", attempt %" PRIu64, attempt);
}

static const char *shell_word(const question *q, const char *word) {
    char out[SHOWN_SIZE];
    return hd_value_as_text(hd_string(q->f.s.pool, shown_word(word, out)), "");
}

/* "heddle workflow signal shop.db ...": a command on the question's store. */
static const char *command_text(const question *q, const char *verb, const char *operands) {
    bool in_main = strcmp(q->f.space, "main") == 0;
    hd_value words =
        hd_string_f(q->f.s.pool, "heddle workflow %s %s %s%s%s", verb, shell_word(q, q->f.s.file),
                    operands, in_main ? "" : " --space ", in_main ? "" : shell_word(q, q->f.space));
    return hd_value_as_text(words, "");
}

/* What to do about a step, as a text of the pool; NULL: nothing. */
static const char *advice_on(const question *q, hd_value step) {
    const char *state = flow_text(step, "state"), *action = flow_text(step, "action");
    const char *id = shell_word(q, q->f.id);
    hd_value queue = hd_value_at(step, "queue");
    if (strcmp(state, "no worker") == 0 && strncmp(action, "heddle.", 7) == 0)
        return "The program that runs the workflows must call hd_workflow_join.";
    if (strcmp(state, "no worker") == 0)
        return "Register the action, or start a worker for it (heddle workflow worker).";
    if (strcmp(state, "limited") == 0) return "It begins when a step with the same key has ended.";
    if (strcmp(state, "paused") == 0) return command_text(q, "resume", id);
    hd_value operands = { 0 };
    if (strcmp(state, "waiting") == 0) {
        const char *signal = shell_word(q, flow_text(step, "signal"));
        operands = hd_string_f(q->f.s.pool, "%s %s JSON", id, signal);
        return command_text(q, "signal", hd_value_as_text(operands, ""));
    }
    if (strcmp(state, "queued") || !hd_value_as_bool(hd_value_at(queue, "paused"), false))
        return NULL;
    operands = hd_string_f(q->f.s.pool, "resume %s", shell_word(q, flow_text(queue, "name")));
    return command_text(q, "queues", hd_value_as_text(operands, ""));
}

/* `alone`: it is the only step that is printed. */
static void print_step(question *q, hd_value step, bool alone) {
    const cli *c = q->f.s.c;
    const char *advice = alone ? advice_on(q, step) : NULL;
    printf("  %s", out_colour(c, COLOUR_BOLD));
    print_name(c, flow_text(step, "node"), NODE_WIDTH, 2);
    printf("%s ", out_colour(c, COLOUR_NONE));
    print_what(step);
    if (flow_number(step, "due")) print_until(step);
    else print_since(step);
    putchar('\n');
    if (*flow_text(step, "why")) {
        fputs("                   the attempt before raised ", stdout);
        print_one_line(stdout, flow_text(step, "why"));
        putchar('\n');
    }
    if (!advice) return;
    printf("  %s", out_colour(c, COLOUR_DIM));
    print_plain(stdout, advice);
    printf("%s\n", out_colour(c, COLOUR_NONE));
}

static void print_head(question *q) {
    const cli *c = q->f.s.c;
    hd_value doc = q->document;
    char when[WHEN_TEXT];
    int64_t pid;
    const char *status = flow_text(doc, "status");
    uint64_t at = flow_number(doc, flow_is_over(doc) ? "finished" : "started");
    printf("%s", out_colour(c, COLOUR_BOLD));
    print_plain(stdout, q->f.id);
    printf("%s %s ", out_colour(c, COLOUR_NONE), status_verb(status));
    print_status(c, stdout, status, true);
    if (at) printf(", %s %s", flow_is_over(doc) ? "since" : "started", when_text(at, when));
    print_one_line(stdout, flow_error_text(&q->f, doc));
    putchar('\n');
    if (strcmp(status, "queued") == 0)
        printf("  it begins when a program runs the workflows of the store\n");
    else if (!flow_is_over(doc) && !q->answered && !flow_runner(&q->f, &pid))
        flow_print_runner(&q->f);
    else if (!flow_is_over(doc) && !q->answered)
        printf("  %sfrom the store; process %" PRId64
               " runs it and was not asked: if it serves, give its --socket%s\n",
               out_colour(c, COLOUR_DIM), pid, out_colour(c, COLOUR_NONE));
    if (!flow_is_over(doc) && !q->answered) flow_print_requests(&q->f);
}

/* A step that waits for branches stands at the FAN_HEAD and at the BARRIER. */
static bool is_at(hd_value step, const char *node) {
    return strcmp(node, flow_text(step, "node")) == 0 ||
           strcmp(node, flow_text(step, "barrier")) == 0;
}

static bool stands_at(hd_value state, const char *node) {
    for (hd_iter it = hd_iter_of(hd_value_at(state, "steps")); hd_iter_next(&it);)
        if (is_at(it.value, node)) return true;
    return false;
}

static void print_steps(question *q, hd_value state) {
    hd_value steps = hd_value_at(state, "steps");
    bool alone = q->node || hd_value_count(steps) == 1;
    for (hd_iter it = hd_iter_of(steps); hd_iter_next(&it);)
        if (!q->node || is_at(it.value, q->node)) print_step(q, it.value, alone);
    if (!q->node && hd_value_exists(hd_value_at(state, "more")))
        printf("  and %" PRIu64 " steps more\n", flow_number(state, "more"));
}

static int answer(question *q) {
    q->joins = true;
    hd_value state = state_of(q);
    if (q->node && !stands_at(state, q->node))
        return cli_fail(q->f.s.c, CLI_NOT_FOUND, "heddle workflow show prints its steps.",
                        "%s does not stand at the node %s", q->f.id, q->node);
    if (q->f.s.c->json) {
        hd_value all = hd_value_exists(state) ? state : q->document;
        if (!flow_is_over(q->document)) all = flow_with_requests(&q->f, all);
        return print_value(all, HD_JSON_COMPACT) ? CLI_INTERNAL : CLI_OK;
    }
    print_head(q);
    print_steps(q, state);
    return CLI_OK;
}

hd_value why_steps(const flow *f, hd_value document) {
    question q = { .f = *f, .document = document };
    return hd_value_at(state_of(&q), "steps");
}

/* A name like an instance's, of a workflow that the store has: nothing else can be meant. */
static bool read_workflow_known(question *q) {
    const char *slash = q->f.s.rt && q->f.id ? strchr(q->f.id, '/') : NULL;
    if (!slash || strchr(slash + 1, '/')) return false;
    hd_value name = hd_string_f(q->f.s.pool, "%s/workflow-name/%.*s", q->f.space,
                                (int)(slash - q->f.id), q->f.id);
    hd_cell cell = hd_cell_at(q->f.s.rt, hd_value_as_text(name, ""));
    return cell.id && hd_value_exists(hd_read(q->f.s.rt, q->f.s.pool, cell));
}

/* ---- A name that neither an instance nor a cell has ------------------------------------------- */

typedef struct unknown {
    size_t prefix; /* of the listed documents' ids */
    size_t length; /* of the workflow's name in `typed` */
    const char *typed;
    bool is_space;
    nearest instance, name; /* "name/key", and a workflow's or a space's name */
    uint32_t seen;
} unknown;

static bool offer_instance(const hd_listing *entry, void *ctx) {
    unknown *u = ctx;
    nearest_offer(&u->instance, entry->id + u->prefix);
    return ++u->seen < 2000;
}
static bool offer_workflow(const hd_listing *entry, void *ctx) {
    unknown *u = ctx;
    nearest_offer(&u->name, entry->id + u->prefix);
    return true;
}
static bool offer_space(const char *space, void *ctx) {
    unknown *u = ctx;
    u->is_space |= strlen(space) == u->length && !memcmp(space, u->typed, u->length);
    nearest_offer(&u->name, space);
    return true;
}

static void look_around(question *q, unknown *u) {
    hd_runtime *rt = q->f.s.rt;
    u->prefix = strlen("workflow/");
    (void)hd_runtime_list(rt, q->f.space, NULL, "workflow/", offer_instance, u);
    u->prefix = strlen("workflow-name/");
    (void)hd_runtime_list(rt, q->f.space, "workflow.name", NULL, offer_workflow, u);
    (void)hd_runtime_spaces(rt, offer_space, u);
}

static int tell_unknown(question *q, const unknown *u, const char *workflow) {
    char hint[320];
    const char *file = q->f.s.file, *key = u->typed + u->length;
    if (*u->instance.best) snprintf(hint, sizeof hint, "Did you mean %s?", u->instance.best);
    else if (*u->name.best)
        snprintf(hint, sizeof hint, "Did you mean %s%.100s?", u->name.best, key);
    else
        snprintf(hint, sizeof hint,
                 "\"heddle workflow ls %.80s\" lists the instances, \"heddle ls %.80s\" the "
                 "spaces.",
                 file, file);
    return cli_fail(q->f.s.c, CLI_NOT_FOUND, hint, "%s has no workflow and no space \"%s\"", file,
                    workflow);
}

bool why_unknown(cli *c, bool only_near, int *status) {
    question q = { .node = NULL };
    bool told = !open_instance(&q, c) && q.f.s.rt && q.f.id;
    if (told) {
        size_t length = strcspn(q.f.id, "/");
        hd_value workflow = hd_string_n(q.f.s.pool, q.f.id, length);
        const char *name = hd_value_as_text(workflow, "");
        unknown u = { .typed = q.f.id,
                      .length = length,
                      .instance = nearest_to(q.f.id),
                      .name = nearest_to(name) };
        look_around(&q, &u);
        told = !u.is_space && (!only_near || *u.instance.best || *u.name.best);
        if (told) *status = tell_unknown(&q, &u, name);
    }
    if (q.f.s.rt) {
        int closed = store_close(&q.f.s, told ? *status : CLI_OK);
        if (told) *status = closed;
    }
    free(q.text);
    return told;
}

bool why_instance(cli *c, int *status) {
    question q = { .node = NULL };
    bool is = open_instance(&q, c);
    if (is) *status = answer(&q);
    else if (q.refused && is_address(c->operands[0]) && !option_given(c, "socket")) {
        *status = q.refused; /* there is no program to ask, either */
        is = true;
    } else if (read_workflow_known(&q)) {
        hd_value ignored;
        *status = flow_instance(&q.f, q.f.id, &ignored); /* which says so, and what is near */
        is = true;
    }
    if (q.f.s.rt) {
        int closed = store_close(&q.f.s, is ? *status : CLI_OK);
        if (is) *status = closed;
    }
    free(q.text);
    return is;
}
