/* chart.c -- nodes, edges, and where an instance stands; hd_workflow_graph. */
#include "workflow/chart.h"

#include "base/env.h"
#include "value/heap.h"
#include "workflow/open_record.h"
#include <heddle/workflow.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- from plan and document */

/* Copies the text; a longer one is cut between characters, and ends with "...". */
static void keep_when(chart_edge *e, const chart_text *t) {
    size_t length = t->failed ? 0 : t->b.length, most = sizeof e->when - 1;
    bool cut = length > most;
    if (cut) length = most - 3;
    while (cut && ((unsigned char)t->b.bytes[length] & 0xC0) == 0x80) length--;
    memcpy(e->when, length ? t->b.bytes : "", length);
    memcpy(e->when + length, cut ? "..." : "", cut ? 4 : 1);
}

/* The node as the IR has it. *at: where to begin to search, and then where it was found. The orders of plan and IR are
 * much alike. */
static hd_value find_node(hd_value nodes, const char *id, size_t *at) {
    size_t count = hd_value_count(nodes);
    for (size_t i = 0; i < count; i++, *at = (*at + 1) % count) {
        hd_value node = hd_value_index(nodes, *at);
        if (!strcmp(hd_value_as_text(hd_value_at(node, "id"), ""), id)) return node;
    }
    return (hd_value){ 0 };
}

/* Edges of one node stand together. */
static void find_tests(chart_function *f) {
    for (uint32_t i = 0; i < f->edges.count;) {
        chart_node *n = &f->nodes[f->edges.items[i].from];
        const chart_edge *test = NULL;
        uint32_t elses = 0, others = 0;
        for (uint32_t from = f->edges.items[i].from;
             i < f->edges.count && f->edges.items[i].from == from; i++) {
            const chart_edge *e = &f->edges.items[i];
            if (e->kind != EDGE_GUARD) continue;
            if (!e->index) test = e;
            else if (strcmp(e->when, "else") == 0) elses++;
            else others++;
        }
        bool is_one = n->n->kind == NODE_BRANCH ? elses == 1 : n->n->kind == NODE_HANDLER;
        n->test = is_one && !others && test && *test->when ? test : NULL;
    }
}

static void add_conditions(chart *c, chart_function *f, hd_value nodes) {
    size_t at = 0;
    for (uint32_t i = 0; i < f->edges.count; i++) {
        chart_edge *e = &f->edges.items[i];
        chart_text t = { .failed = false };
        if (e->kind != EDGE_GUARD) continue;
        json_buffer_init(&t.b, c->env);
        chart_put_when(&t, find_node(nodes, f->f->nodes[e->from].id, &at), e->index);
        keep_when(e, &t);
        json_buffer_fini(&t.b);
    }
    find_tests(f);
}

static bool add_edges(chart *c, chart_function *f) {
    for (uint32_t i = 0; i < f->f->node_count; i++) {
        const plan_node *n = &f->f->nodes[i];
        for (uint32_t k = 0; k < n->out_count; k++) {
            const plan_edge *e = plan_out(f->f, n, k);
            assert(e->from == i && e->to < f->f->node_count);
            if (!vec_push(c->env, &f->edges,
                          ((chart_edge){
                              i, e->to, e->kind, e->index,
                              e->kind == EDGE_GUARD || (e->kind == EDGE_ELEM && !n->code), "" })))
                return false;
        }
        if (n->except != PLAN_NONE &&
            !vec_push(c->env, &f->edges, ((chart_edge){ i, n->except, EDGE_EXCEPT, 0, false, "" })))
            return false;
    }
    return true;
}

const char *chart_label(const chart_node *n) {
    return n->test ? n->test->when : outline_label(n->n);
}

static chart_state state_at(const plan_node *n, hd_value record) {
    bool due = hd_value_exists(open_record_at(record, "due"));
    switch (n->kind) {
    case NODE_SLEEP: return CHART_SLEEPING;
    case NODE_WAIT: return CHART_WAITING;
    case NODE_FAN_HEAD: return CHART_FAN;
    case NODE_CHILD: return CHART_CHILD;
    default: return due ? CHART_BACKOFF : CHART_READY;
    }
}

static chart_node *node_at(chart *c, hd_value place, const char *id) {
    uint32_t of = outline_function_of(c->o.p, c->instance, place);
    if (of == PLAN_NONE) return NULL;
    uint32_t node = plan_find_node(c->functions[of].f, id);
    return node == PLAN_NONE ? NULL : &c->functions[of].nodes[node];
}

static void note_open(chart *c) {
    for (hd_iter it = hd_iter_of(hd_value_at(c->instance, "open")); hd_iter_next(&it);) {
        chart_node *n = node_at(c, open_record_place(it.value), open_record_node(it.value));
        if (!n) continue;
        chart_state state = state_at(n->n, it.value);
        n->open++;
        if (state > n->state) n->state = state;
    }
}

static void note_failure(chart *c) {
    hd_value at = hd_value_at(c->instance, "failed_at");
    const char *name = hd_value_as_text(hd_value_at(at, "function"), NULL);
    uint32_t of = name ? plan_find_function(c->o.p, name) : 0;
    bool failed = !strcmp(hd_value_as_text(hd_value_at(c->instance, "status"), ""), "failed");
    if (!failed || of == PLAN_NONE) return;
    uint32_t node =
        plan_find_node(c->functions[of].f, hd_value_as_text(hd_value_at(at, "node"), ""));
    if (node == PLAN_NONE) return;
    c->functions[of].nodes[node].state = CHART_FAILED;
}

/* What an activation waits for; `place` names it as a step in it would. */
static void note_activation(chart *c, hd_value place, hd_value record) {
    for (hd_iter it = hd_iter_of(hd_value_at(record, "ready")); hd_iter_next(&it);) {
        chart_node *n = node_at(c, place, it.key);
        uint32_t count = (uint32_t)hd_value_as_int(it.value, 0);
        if (n && count > n->deps_satisfied) n->deps_satisfied = count;
    }
    for (hd_iter it = hd_iter_of(hd_value_at(record, "loops")); hd_iter_next(&it);) {
        chart_node *n = node_at(c, place, it.key);
        uint64_t visits = (uint64_t)hd_value_as_int(hd_value_at(it.value, "visit"), 0);
        if (n && visits > n->visits) n->visits = visits;
    }
}

static void note_branches(chart *c, hd_value fan) {
    hd_value branches = hd_value_at(fan, "branches");
    for (hd_iter it = hd_iter_of(branches); hd_iter_next(&it);)
        note_activation(c, hd_value_at(fan, "in"), it.value);
    /* A BARRIER is where the branches arrive: those that have are its deps_satisfied. */
    chart_node *head =
        node_at(c, hd_value_at(fan, "in"), hd_value_as_text(hd_value_at(fan, "node"), ""));
    if (!head || head->n->pair == PLAN_NONE) return;
    chart_function *f = &c->functions[head->n->function];
    f->nodes[head->n->pair].deps_satisfied = (uint32_t)hd_value_count(hd_value_at(fan, "results"));
}

static void note_instance(chart *c) {
    if (!hd_value_exists(c->instance)) return;
    note_open(c);
    note_failure(c);
    note_activation(c, hd_object(), c->instance);
    for (hd_iter it = hd_iter_of(hd_value_at(c->instance, "calls")); hd_iter_next(&it);) {
        uint32_t of =
            plan_find_function(c->o.p, hd_value_as_text(hd_value_at(it.value, "function"), ""));
        /* The caller's place would name the caller: the record itself says which function it is. */
        if (of == PLAN_NONE) continue;
        chart_function *f = &c->functions[of];
        for (hd_iter k = hd_iter_of(hd_value_at(it.value, "ready")); hd_iter_next(&k);) {
            uint32_t node = plan_find_node(f->f, k.key);
            if (node != PLAN_NONE)
                f->nodes[node].deps_satisfied = (uint32_t)hd_value_as_int(k.value, 0);
        }
    }
    for (hd_iter it = hd_iter_of(hd_value_at(c->instance, "fans")); hd_iter_next(&it);)
        note_branches(c, it.value);
}

static void fill_nodes(chart_function *f) {
    for (uint32_t i = 0; i < f->f->node_count; i++) {
        const plan_node *n = &f->f->nodes[i];
        f->nodes[i].n = n;
        f->nodes[i].deps_required = n->deps_required;
        if (n->kind != NODE_BARRIER || n->pair == PLAN_NONE) continue;
        const plan_node *head = &f->f->nodes[n->pair];
        if (!head->code) f->nodes[i].deps_required = head->out_count;
    }
}

hd_status chart_open(hd_heap *heap, hd_value ir, hd_value instance, chart *out, hd_error *error) {
    *out = (chart){ .env = &heap->env, .instance = instance };
    hd_status status = hd_value_status(instance);
    if (status) env_error(error, status, "the instance's document could not be read");
    else status = outline_open(heap, ir, &out->o, error);
    if (status) return status;
    const plan *p = out->o.p;
    out->functions = env_new0(out->env, p->function_count * sizeof *out->functions);
    bool good = out->functions != NULL;
    for (uint32_t i = 0; good && i < p->function_count; i++) {
        chart_function *f = &out->functions[i];
        f->f = &p->functions[i];
        f->nodes = env_new0(out->env, f->f->node_count * sizeof *f->nodes);
        if (f->nodes) fill_nodes(f);
        good = f->nodes && add_edges(out, f);
    }
    for (uint32_t i = 0; good && i < p->function_count; i++)
        add_conditions(out, &out->functions[i],
                       hd_value_at(hd_value_index(hd_value_at(ir, "functions"), i), "nodes"));
    if (good) note_instance(out);
    else chart_close(out);
    return good ? HD_OK : HD_NOMEM;
}

void chart_close(chart *c) {
    uint32_t count = c->functions ? c->o.p->function_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        chart_function *f = &c->functions[i];
        if (f->nodes) env_free(c->env, f->nodes, f->f->node_count * sizeof *f->nodes);
        vec_fini(c->env, &f->edges);
    }
    if (c->functions) env_free(c->env, c->functions, count * sizeof *c->functions);
    outline_close(&c->o);
    *c = (chart){ 0 };
}

const char *chart_state_name(chart_state state) {
    static const char *const names[] = {
        "",
        "waits for its branches",
        "waits for its signal",
        "sleeps",
        "waits for its child",
        "waits for its next attempt",
        "ready",
        "failed",
    };
    assert(state < sizeof names / sizeof *names);
    return names[state];
}

/* ---- text */

void chart_put(chart_text *t, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0 || !json_buffer_grow(&t->b, (size_t)length + 1)) t->failed = true;
    if (!t->failed) {
        vsnprintf(t->b.bytes + t->b.length, (size_t)length + 1, format, again);
        t->b.length += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void chart_put_xml(chart_text *t, const char *chars) {
    for (const char *c = chars; *c; c++) {
        if (*c == '<') chart_put(t, "&lt;");
        else if (*c == '>') chart_put(t, "&gt;");
        else if (*c == '&') chart_put(t, "&amp;");
        else if (*c == '"') chart_put(t, "&quot;");
        else chart_put(t, "%c", (unsigned char)*c < 0x20 ? '?' : *c);
    }
}

void chart_put_json(chart_text *t, const char *chars) {
    chart_put(t, "\"");
    for (const char *c = chars; *c; c++) {
        if (*c == '"' || *c == '\\') chart_put(t, "\\%c", *c);
        else if ((unsigned char)*c < 0x20) chart_put(t, "\\u%04x", (unsigned)*c);
        else chart_put(t, "%c", *c);
    }
    chart_put(t, "\"");
}

/* ---- public */

static hd_status print(const chart *c, hd_graph_form form, chart_text *out) {
    hd_status status = HD_OK;
    switch (form) {
    case HD_GRAPH_TEXT: chart_print_text(c, out); break;
    case HD_GRAPH_MERMAID: chart_print_mermaid(c, out); break;
    case HD_GRAPH_DOT: chart_print_dot(c, out); break;
    case HD_GRAPH_JSON: chart_print_json(c, out); break;
    case HD_GRAPH_SVG: status = chart_print_svg(c, out); break;
    }
    return status ? status : out->failed ? HD_NOMEM : HD_OK;
}

hd_value hd_workflow_graph(hd_pool *pool, hd_value ir, hd_graph_form form, hd_value instance,
                           hd_error *error) {
    chart c;
    chart_text out = { .failed = false };
    hd_heap *heap = hd_pool_heap(pool);
    hd_status status = chart_open(heap, ir, instance, &c, error);
    if (status) return hd_failed(status);
    json_buffer_init(&out.b, &heap->env);
    status = print(&c, form, &out);
    hd_value printed = status ? hd_failed(status) : hd_string_n(pool, out.b.bytes, out.b.length);
    if (status == HD_LIMIT)
        env_error(error, status, "%s has more than %d nodes, too many for a drawing", c.o.p->name,
                  CHART_DRAWN_MAX);
    json_buffer_fini(&out.b);
    chart_close(&c);
    return printed;
}
