/* workflow_tree.c -- steps of a workflow as a tree. */
#define _DEFAULT_SOURCE
#include "cli/workflow_tree.h"

#include "cli/output.h"
#include "cli/workflow_past.h"
#include "workflow/open_record.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* PAST_MAX: rows up to which the past is worked out, which takes rows times nodes. */
enum { DEPTH_MAX = 12, ROWS_MAX = 2000, PAST_MAX = 300, STATE_WIDTH = 9, NAME_SIZE = 512 };
/* Columns: what stands in front of a name; what is kept for what stands behind one. */
enum { FRONT = 2 + STATE_WIDTH + 1, NAME_LEAST = 40, RIGHT_LEAST = 22, TITLE_LEAST = 8 };

/* ---- Rows -------------------------------------------------------------------------------- */

static bool is_shown(node_kind kind) {
    switch (kind) {
    case NODE_ACTION:
    case NODE_LOOP_HEAD:
    case NODE_FAN_HEAD:
    case NODE_SLEEP:
    case NODE_WAIT:
    case NODE_CHILD:
    case NODE_CALL: return true;
    default: return false;
    }
}

static bool add_row(tree *t, uint32_t of, const plan_node *n, uint32_t depth) {
    if (t->count == t->capacity) {
        size_t capacity = t->capacity * 2 + 16;
        tree_row *larger = realloc(t->rows, capacity * sizeof *larger);
        if (!larger) return false;
        t->rows = larger;
        t->capacity = capacity;
    }
    t->rows[t->count++] = (tree_row){ .function = of, .n = n, .depth = depth, .state = "" };
    return true;
}

/* Adds the nodes of one loop, or those outside of all loops (PLAN_NONE), in the plan's order. The body of a loop is
 * added right after its head: in the plan's order the nodes behind the loop may come before its body. */
static bool add_rows(tree *t, uint32_t of, uint32_t loop, uint32_t depth) {
    const plan_function *f = &t->o.p->functions[of];
    for (uint32_t i = 0; i < f->node_count && t->count < ROWS_MAX; i++) {
        const plan_node *n = &f->nodes[i];
        if (n->loop != loop || !is_shown(n->kind)) continue;
        uint32_t inner = 0;
        for (uint32_t at = n->fan; at != PLAN_NONE && inner < DEPTH_MAX; at = f->nodes[at].fan)
            inner += f->nodes[at].loop == loop;
        if (!add_row(t, of, n, depth + inner)) return false;
        if (n->kind == NODE_LOOP_HEAD && !add_rows(t, of, i, depth + inner + 1)) return false;
        if (n->kind == NODE_CALL && n->callee > of && depth < DEPTH_MAX &&
            !add_rows(t, n->callee, PLAN_NONE, depth + inner + 1))
            return false;
    }
    return true;
}

int tree_open(cli *c, tree *t, store *s, hd_value ir, const char *id) {
    hd_error error = { 0 };
    *t = (tree){ .c = c, .id = id };
    hd_status status = outline_open(hd_runtime_heap(s->rt), ir, &t->o, &error);
    if (status) return cli_fail(c, exit_of(status), NULL, "%s: %s", id, error.message);
    bool good = add_rows(t, 0, PLAN_NONE, 0);
    for (uint32_t i = 1; good && i < t->o.p->function_count; i++) {
        bool there = false;
        for (size_t k = 0; k < t->count; k++) there = there || t->rows[k].function == i;
        if (!there) good = add_rows(t, i, PLAN_NONE, 1);
    }
    return good ? CLI_OK : cli_fail(c, CLI_INTERNAL, NULL, "out of memory");
}

void tree_close(tree *t) {
    outline_close(&t->o);
    free(t->rows);
    free(t->steps);
    *t = (tree){ 0 };
}

static tree_row *row_at(tree *t, hd_value document, hd_value place, const char *node) {
    uint32_t of = outline_function_of(t->o.p, document, place);
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].function == of && strcmp(t->rows[i].n->id, node) == 0) return &t->rows[i];
    return NULL;
}

/* ---- Looking at a document --------------------------------------------------------------- */

/* What the program that runs the instance says of an action that is open; NULL: nothing more than the document. */
static const char *told_of(const tree *t, const char *name) {
    for (hd_iter it = hd_iter_of(t->told); hd_iter_next(&it);) {
        const char *state = flow_text(it.value, "state");
        if (strcmp(flow_text(it.value, "step"), name)) continue;
        return !strcmp(state, "no worker") ? "no worker"
               : !strcmp(state, "running") ? "runs"
                                           : NULL;
    }
    return NULL;
}

static const char *state_of(const tree *t, const plan_node *n, hd_value step, const char *name) {
    const char *told = n->kind == NODE_ACTION ? told_of(t, name) : NULL;
    if (told) return told;
    if (n->kind == NODE_SLEEP) return "sleeps";
    if (n->kind == NODE_WAIT || n->kind == NODE_CHILD) return "waits";
    if (n->kind == NODE_ACTION) return open_record_number(step, "due") ? "retries" : "open";
    return "runs";
}

static void say(const tree *t, const tree_row *r, const char *what, uint64_t ms) {
    char span[SPAN_TEXT];
    if (!t->lines) return;
    fprintf(stderr, "%-8s ", what);
    print_plain(stderr, outline_label(r->n));
    if (ms != UINT64_MAX) fprintf(stderr, "  %s", span_text(ms, span));
    fputc('\n', stderr);
}

static bool was_open(const tree_step *old, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(old[i].name, name) == 0) return true;
    return false;
}

static bool keep_step(tree *t, const tree_step *step) {
    if (t->step_count == t->step_capacity) {
        size_t capacity = t->step_capacity * 2 + 16;
        tree_step *larger = realloc(t->steps, capacity * sizeof *larger);
        if (!larger) return false;
        t->steps = larger;
        t->step_capacity = capacity;
    }
    t->steps[t->step_count++] = *step;
    return true;
}

static bool look_at_step(tree *t, hd_value document, const char *strand, hd_value step) {
    tree_row *r = row_at(t, document, open_record_place(step), open_record_node(step));
    if (!r) return true;
    tree_step now = { .row = (uint32_t)(r - t->rows), .since = open_record_since(document, step) };
    snprintf(now.name, sizeof now.name, "%.10s.%" PRIu64, strand, open_record_number(step, "step"));
    r->state = state_of(t, r->n, step, now.name);
    if (!r->open++ || now.since < r->since) r->since = now.since;
    if (open_record_number(step, "attempt") > r->attempt)
        r->attempt = (uint32_t)open_record_number(step, "attempt");
    if (open_record_number(step, "due")) r->due = open_record_number(step, "due");
    return keep_step(t, &now);
}

static void note_loops(tree *t, hd_value document, hd_value place, hd_value record) {
    for (hd_iter it = hd_iter_of(hd_value_at(record, "loops")); hd_iter_next(&it);) {
        tree_row *r = row_at(t, document, place, it.key);
        if (!r) continue;
        r->visit = flow_number(it.value, "visit");
        r->state = "runs";
    }
}

static void note_fans(tree *t, hd_value document) {
    for (hd_iter it = hd_iter_of(hd_value_at(document, "fans")); hd_iter_next(&it);) {
        tree_row *r = row_at(t, document, hd_value_at(it.value, "in"), flow_text(it.value, "node"));
        if (!r) continue;
        hd_value items = hd_value_at(hd_value_at(it.value, "items"), "$tuple");
        r->done += hd_value_count(hd_value_at(it.value, "results"));
        r->total += hd_value_exists(items) ? hd_value_count(items) : r->n->out_count;
        r->state = "runs";
    }
}

/* ---- What the graph tells ---------------------------------------------------------------- */

/* Calls fn for each node of the first function at which the instance stands: where it waits, where it failed, and
 * the RETURNs of one that is done. */
typedef void (*standing_fn)(tree *t, uint32_t node, void *ctx);
static void each_standing(tree *t, hd_value document, standing_fn fn, void *ctx) {
    const plan_function *f = &t->o.p->functions[0];
    const char *status = flow_text(document, "status");
    hd_value failed = hd_value_at(document, "failed_at");
    for (hd_iter it = hd_iter_of(hd_value_at(document, "open")); hd_iter_next(&it);) {
        uint32_t of = outline_function_of(t->o.p, document, open_record_place(it.value));
        uint32_t node = of ? PLAN_NONE : plan_find_node(f, open_record_node(it.value));
        if (node != PLAN_NONE && !t->over) fn(t, node, ctx);
    }
    if (hd_value_exists(failed) && !*flow_text(failed, "function")) {
        uint32_t node = plan_find_node(f, flow_text(failed, "node"));
        if (node != PLAN_NONE) fn(t, node, ctx);
    }
    for (uint32_t i = 0; i < f->node_count && strcmp(status, "done") == 0; i++)
        if (f->nodes[i].kind == NODE_RETURN) fn(t, i, ctx);
}

typedef struct verdict {
    const plan_function *f;
    uint32_t node;
    /* At how many nodes the instance stands; and from how many of those it follows that `node` is done, has raised, was
     * passed (done or left out), or may still come. */
    uint32_t standing, done, raised, passed, comes;
} verdict;

static void judge(tree *t, uint32_t at, void *ctx) {
    verdict *v = ctx;
    (void)t;
    v->standing++;
    v->done += past_is_done(v->f, v->node, at);
    v->raised += past_has_raised(v->f, v->node, at);
    v->passed += past_is_passed(v->f, v->node, at);
    v->comes += past_may_come(v->f, v->node, at);
}

/* What a branch of a gather has passed, if it has ended and the others have not. One that has ended with an exception
 * does not tell it. */
static void judge_branches(tree *t, hd_value document, verdict *v) {
    for (hd_iter it = hd_iter_of(hd_value_at(document, "fans")); hd_iter_next(&it);) {
        uint32_t of = outline_function_of(t->o.p, document, hd_value_at(it.value, "in"));
        uint32_t head = of ? PLAN_NONE : plan_find_node(v->f, flow_text(it.value, "node"));
        if (head == PLAN_NONE) continue;
        for (hd_iter r = hd_iter_of(hd_value_at(it.value, "results")); hd_iter_next(&r);) {
            uint32_t index = (uint32_t)strtoul(r.key, NULL, 10);
            if (hd_value_exists(hd_value_at(r.value, "$$error")) ||
                !past_is_in_branch(v->f, head, index, v->node))
                continue;
            v->done += past_is_done(v->f, v->node, v->f->nodes[head].pair);
        }
    }
}

/* Of a step that has just ended: whether only an exception leads from it to where the instance stands now. */
static bool has_raised(tree *t, hd_value document, const tree_row *r) {
    const plan_function *f = &t->o.p->functions[0];
    verdict v = { .f = f, .node = (uint32_t)(r->n - f->nodes) };
    hd_value failed = hd_value_at(document, "failed_at");
    if (strcmp(flow_text(failed, "node"), r->n->id) == 0) return true;
    if (r->function || r->n->fan != PLAN_NONE) return false;
    each_standing(t, document, judge, &v);
    return v.standing && v.raised == v.standing;
}

/* The row of the call that the step of a helper was added for: the closest one before it; NULL: there is none. */
static const tree_row *call_of(const tree *t, size_t row) {
    for (size_t i = row; i-- > 0;)
        if (t->rows[i].n->kind == NODE_CALL && t->rows[i].n->callee == t->rows[row].function)
            return &t->rows[i];
    return NULL;
}

/* A call that is done has come to one of the helper's RETs, and it is not known which: all must tell it. */
static void note_past_of_helper(tree *t, size_t row) {
    tree_row *r = &t->rows[row];
    const tree_row *by = call_of(t, row);
    const plan_function *f = &t->o.p->functions[r->function];
    verdict v = { .f = f, .node = (uint32_t)(r->n - f->nodes) };
    for (uint32_t i = 0; by && by->past && i < f->node_count; i++)
        if (f->nodes[i].kind == NODE_RET) judge(t, i, &v);
    r->past = v.standing && v.done == v.standing;
    r->passed = v.standing && v.passed == v.standing;
}

/* An instance that runs stands at all these nodes at once, so it is enough that one of them tells that a node is done
 * or was passed. An instance that is done has ended at one of its RETURNs, and it is not known which: all must tell
 * it. */
static void note_past(tree *t, hd_value document) {
    const plan_function *f = &t->o.p->functions[0];
    bool finished = strcmp(flow_text(document, "status"), "done") == 0;
    for (size_t i = 0; i < t->count; i++) {
        tree_row *r = &t->rows[i];
        verdict v = { .f = f, .node = (uint32_t)(r->n - f->nodes) };
        if (r->function) {
            note_past_of_helper(t, i);
            continue;
        }
        each_standing(t, document, judge, &v);
        judge_branches(t, document, &v);
        r->past = v.standing && (finished ? v.done == v.standing : v.done > 0);
        r->passed = v.standing && (finished ? v.passed == v.standing : v.passed > 0);
        /* When the first function has ended, branches that were left come to their ends, and nothing after them. */
        bool ending = *flow_text(document, "ending") && r->n->fan == PLAN_NONE;
        r->comes = (v.comes > 0 || !v.standing) && !ending;
        r->raised |= strcmp(flow_text(hd_value_at(document, "failed_at"), "node"), r->n->id) == 0;
    }
}

/* Steps that were open and are not any more have ended. */
static void note_ended(tree *t, hd_value document, const tree_step *old, size_t old_count) {
    uint64_t now = wall_ms();
    for (size_t i = 0; i < old_count; i++) {
        tree_row *r = &t->rows[old[i].row];
        if (was_open(t->steps, t->step_count, old[i].name)) continue;
        uint64_t ms = now > old[i].since ? now - old[i].since : 0;
        r->ended++;
        r->raised = has_raised(t, document, r);
        r->spent += ms;
        say(t, r, r->raised ? "failed" : "done", ms);
    }
}

static void note_begun(const tree *t, const tree_step *old, size_t old_count) {
    for (size_t i = 0; i < t->step_count; i++)
        if (!was_open(old, old_count, t->steps[i].name))
            say(t, &t->rows[t->steps[i].row], "begins", UINT64_MAX);
}

bool tree_look(tree *t, hd_value document) {
    tree_step *old = t->steps;
    size_t old_count = t->step_count;
    bool good = true;
    t->steps = NULL;
    t->step_count = t->step_capacity = 0;
    for (size_t i = 0; i < t->count; i++) {
        tree_row *r = &t->rows[i];
        r->state = "";
        r->open = r->attempt = 0;
        r->since = r->due = r->done = r->total = r->visit = 0;
    }
    for (hd_iter it = hd_iter_of(hd_value_at(document, "open")); good && hd_iter_next(&it);)
        good = look_at_step(t, document, it.key, it.value);
    t->over = flow_is_over(document);
    if (!t->over) note_loops(t, document, hd_object(), document);
    note_fans(t, document);
    if (t->count <= PAST_MAX) note_past(t, document);
    if (good) note_ended(t, document, old, old_count);
    if (good) note_begun(t, old, old_count);
    free(old);
    t->looked = true;
    return good;
}

/* The row of the innermost loop around a row; NULL: there is none. */
static tree_row *loop_of(const tree *t, const tree_row *r) {
    const plan_node *nodes = t->o.p->functions[r->function].nodes;
    for (size_t i = 0; i < t->count && r->n->loop != PLAN_NONE; i++)
        if (t->rows[i].n == &nodes[r->n->loop]) return &t->rows[i];
    return NULL;
}

/* An entry has the node's id, and not its function: if rows of several functions have that id, it tells nothing. */
static tree_row *row_called(tree *t, const char *node) {
    tree_row *found = NULL;
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->rows[i].n->id, node) != 0) continue;
        if (found) return NULL;
        found = &t->rows[i];
    }
    return found;
}

static bool is_in_loop(const tree *t, const tree_row *r, const tree_row *loop) {
    while (r && r != loop) r = loop_of(t, r);
    return r != NULL;
}

/* An instance that is over has left its loops: each behind its last step, unless that has raised or the instance has
 * ended there. */
static void note_loops_around(tree *t, const tree_row *r, bool done, const tree_row *failed) {
    for (tree_row *loop = loop_of(t, r); loop; loop = loop_of(t, loop))
        loop->past = done && !is_in_loop(t, failed, loop);
}

void tree_hear(tree *t, hd_value document, hd_value entry) {
    const char *failed = flow_text(hd_value_at(document, "failed_at"), "node");
    const char *what = flow_text(entry, "what");
    bool done = strcmp(what, "done") == 0, raised = strcmp(what, "raise") == 0;
    tree_row *r = done || raised ? row_called(t, flow_text(entry, "node")) : NULL;
    if (!r) return;
    note_loops_around(t, r, done, row_called(t, failed));
    if (strcmp(failed, r->n->id) == 0) return; /* branches beside the one that failed may be done */
    r->past = done;
    r->raised = raised;
}

/* ---- Printing ---------------------------------------------------------------------------- */

/* What stands on the right of a row. */
static void row_text(const tree_row *r, uint64_t now, char *out, size_t size) {
    char span[SPAN_TEXT], when[WHEN_TEXT];
    size_t at = 0;
    out[0] = '\0';
    if (r->total) at += (size_t)snprintf(out, size, "%" PRIu64 " of %" PRIu64, r->done, r->total);
    else if (r->visit) at += (size_t)snprintf(out, size, "visit %" PRIu64, r->visit);
    else if (r->open > 1) at += (size_t)snprintf(out, size, "%" PRIu32 " open", r->open);
    else if (r->ended > 1) at += (size_t)snprintf(out, size, "%" PRIu64 " done", r->ended);
    const char *gap = at ? ", " : "";
    if (r->due > now && r->open)
        snprintf(out + at, size - at, "%suntil %s", gap, when_text(r->due, when));
    else if (r->open && now > r->since)
        snprintf(out + at, size - at, "%s%s", gap, span_text(now - r->since, span));
    else if (r->ended) snprintf(out + at, size - at, "%s%s", gap, span_text(r->spent, span));
    at = strlen(out);
    if (r->attempt > 1)
        snprintf(out + at, size - at, "%sattempt %" PRIu32, at ? ", " : "", r->attempt);
}

static const char *row_state(const tree *t, const tree_row *r) {
    if (*r->state) return r->state;
    if (r->raised) return "failed";
    if (r->past || r->ended) return "done";
    if (r->passed) return "passed";
    const tree_row *loop = loop_of(t, r);
    bool may_come = !t->over && !r->function && r->comes;
    return may_come && (!loop || !strcmp(row_state(t, loop), "to come")) ? "to come" : "-";
}

static colour row_colour(const tree_row *r, const char *state) {
    if (*r->state) return COLOUR_CYAN;
    return strcmp(state, "failed") == 0 ? COLOUR_RED
           : strcmp(state, "done") == 0 ? COLOUR_GREEN
                                        : COLOUR_DIM;
}

/* What the node is called by people, and by commands: "charge #pay". */
static void row_name(const tree_row *r, char out[NAME_SIZE]) {
    const char *label = outline_label(r->n);
    bool same = strcmp(label, r->n->id) == 0;
    snprintf(out, NAME_SIZE, "%s%s%s", label, same ? "" : " #", same ? "" : r->n->id);
}

static int row_indent(const tree_row *r) { return (int)(2 * r->depth < 16 ? 2 * r->depth : 16); }

/* Columns for indented names: the longest decides, as far as the lines have room for what stands behind. */
static int name_columns(const tree *t, int columns) {
    int width = NAME_LEAST, most = columns - FRONT - RIGHT_LEAST;
    char name[NAME_SIZE];
    for (size_t i = 0; i < t->count; i++) {
        row_name(&t->rows[i], name);
        int needs = row_indent(&t->rows[i]) + name_width(name);
        if (needs > width && needs <= most) width = needs;
    }
    return width;
}

/* A name that is longer than its column is whole on stdout, and what stands behind it follows on a line of its own. The
 * drawing on a terminal counts its lines, so there the name is cut. */
static void print_row_name(const tree_row *r, FILE *to, int width, bool more) {
    char name[NAME_SIZE];
    row_name(r, name);
    int room = width - row_indent(r), columns = name_width(name);
    if (to == stderr && !more) room = screen_width() - 1 - FRONT - row_indent(r);
    bool cut = to == stderr && columns > room;
    if (cut) print_cell(to, name, room);
    else print_plain(to, name);
    if (more && columns > room && !cut) fprintf(to, "\n%*s", FRONT + width, "");
    else if (more && !cut) fprintf(to, "%*s", room - columns, "");
}

static void print_row(const tree *t, const tree_row *r, FILE *to, uint64_t now, int width) {
    const char *(*shade)(const cli *, colour) = to == stderr ? err_colour : out_colour;
    const char *state = row_state(t, r);
    char right[64];
    row_text(r, now, right, sizeof right);
    fprintf(to, "  %s%-*s %*s", shade(t->c, row_colour(r, state)), STATE_WIDTH, state,
            row_indent(r), "");
    print_row_name(r, to, width, *right);
    fprintf(to, "%s%s%s\n", shade(t->c, COLOUR_NONE), *right ? "  " : "", right);
}

void tree_print(const tree *t, FILE *to, uint64_t now) {
    int width = name_columns(t, output_width());
    for (size_t i = 0; i < t->count; i++) print_row(t, &t->rows[i], to, now, width);
}

static unsigned screen_rows(void) {
    struct winsize w = { 0 };
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || w.ws_row < 6) return 24;
    return w.ws_row;
}

/* One line of the screen. */
static void draw_title(const tree *t, hd_value document, uint64_t now) {
    uint64_t began = flow_number(document, "started");
    const char *status = flow_text(document, "status");
    char span[SPAN_TEXT];
    span_text(began && now > began ? now - began : 0, span);
    int right = (int)(2 + strlen(status) + 2 + strlen(span)), room = screen_width() - 1 - right;
    int columns = name_width(t->id);
    fputs(err_colour(t->c, COLOUR_BOLD), stderr);
    print_cell(stderr, t->id, columns < room ? columns : room > TITLE_LEAST ? room : TITLE_LEAST);
    fprintf(stderr, "%s  ", err_colour(t->c, COLOUR_NONE));
    print_status(t->c, stderr, status, true);
    fprintf(stderr, "  %s\n", span);
}

void tree_draw(tree *t, hd_value document) {
    uint64_t ended = flow_number(document, "finished");
    uint64_t now = t->over && ended ? ended : wall_ms();
    int width = name_columns(t, screen_width());
    bool orphan = t->orphan && !t->over;
    size_t most = screen_rows() - 3 - orphan, shown = t->count < most ? t->count : most;
    if (!t->c->progress) return;
    /* If the terminal has echoed ^C, the cursor is not at the beginning of the line. */
    if (t->drawn) fprintf(stderr, "\r\033[%uA\033[J", t->drawn);
    draw_title(t, document, now);
    if (orphan)
        fprintf(stderr, "  %sno program runs it%s; the next one goes on with it\n",
                err_colour(t->c, COLOUR_YELLOW), err_colour(t->c, COLOUR_NONE));
    for (size_t i = 0; i < shown; i++) print_row(t, &t->rows[i], stderr, now, width);
    if (shown < t->count) fprintf(stderr, "  and %zu more\n", t->count - shown);
    t->drawn = (unsigned)shown + 1 + orphan + (shown < t->count);
    fflush(stderr);
}
