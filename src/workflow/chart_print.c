/* chart_print.c -- a chart as lines of text, and for the programs that draw: Mermaid, Graphviz, JSON. */
#include "workflow/chart.h"

#include <inttypes.h>

/* ---- parts */

/* "ACTION charge"; for a kind without a name the kind alone. */
static void put_kind(chart_text *t, const plan_node *n, const char *separator) {
    chart_put(t, "%s", node_kind_name(n->kind));
    if (n->name) chart_put(t, "%s%s", separator, n->name);
}

/* "ready", "2 ready", "deps_satisfied 3", "visit 4": what is to be said about an instance here. */
static void put_state(chart_text *t, const chart_node *n, const char *before) {
    if (n->state && n->open > 1)
        chart_put(t, "%s%" PRIu32 " %s", before, n->open, chart_state_name(n->state));
    else if (n->state) chart_put(t, "%s%s", before, chart_state_name(n->state));
    if (n->deps_satisfied) chart_put(t, "%sdeps_satisfied %" PRIu32, before, n->deps_satisfied);
    if (n->visits) chart_put(t, "%svisit %" PRIu64, before, n->visits);
}

static void put_params(chart_text *t, const plan_function *f) {
    chart_put(t, "%s(", f->name);
    for (uint32_t i = 0; i < f->params; i++)
        chart_put(t, "%s%s", i ? ", " : "", f->names->names.items[i]);
    chart_put(t, ")");
}

/* ---- text */

static void text_of_function(const chart_function *f, chart_text *out) {
    uint32_t e = 0;
    put_params(out, f->f);
    chart_put(out, "\n");
    for (uint32_t i = 0; i < f->f->node_count; i++) {
        const chart_node *n = &f->nodes[i];
        chart_put(out, "  %s  ", n->n->id);
        put_kind(out, n->n, " ");
        if (n->n->kind != NODE_ENTRY) chart_put(out, "  deps_required %u", n->deps_required);
        put_state(out, n, n->state || n->deps_satisfied || n->visits ? "  * " : "");
        chart_put(out, "\n");
        for (; e < f->edges.count && f->edges.items[e].from == i; e++) {
            const chart_edge *edge = &f->edges.items[e];
            const char *to = f->f->nodes[edge->to].id;
            if (edge->indexed)
                chart_put(out, "      %s %-*u -> %s%s%s\n", edge_kind_name(edge->kind),
                          edge->kind == EDGE_GUARD ? 2 : 3, edge->index, to,
                          *edge->when ? "   " : "", edge->when);
            else chart_put(out, "      %-8s -> %s\n", edge_kind_name(edge->kind), to);
        }
    }
}

void chart_print_text(const chart *c, chart_text *out) {
    const plan *p = c->o.p;
    chart_put(out, "%s  version %s\n", p->name, p->version);
    for (uint32_t i = 0; i < p->function_count; i++) {
        chart_put(out, "\n");
        text_of_function(&c->functions[i], out);
    }
}

/* ---- Mermaid */

/* Mermaid ends a label at a quote; it takes #quot;, #35; and &lt; for characters. */
static void put_mermaid(chart_text *t, const char *chars) {
    for (const char *c = chars; *c; c++) {
        if (*c == '"') chart_put(t, "#quot;");
        else if (*c == '#') chart_put(t, "#35;");
        else if (*c == '&') chart_put(t, "&amp;");
        else if (*c == '<') chart_put(t, "&lt;");
        else chart_put(t, "%c", (unsigned char)*c < 0x20 ? '?' : *c);
    }
}

static void mermaid_node(const chart_function *f, uint32_t number, uint32_t i, chart_text *out) {
    const chart_node *n = &f->nodes[i];
    bool decides = n->n->kind == NODE_BRANCH || n->n->kind == NODE_HANDLER;
    const char *left = decides ? "{" : n->n->kind == NODE_ACTION ? "[" : "(";
    const char *right = decides ? "}" : n->n->kind == NODE_ACTION ? "]" : ")";
    chart_put(out, "    f%un%u%s\"", number, i, left);
    put_mermaid(out, outline_label(n->n));
    chart_put(out, "<br/><small>%s", node_kind_name(n->n->kind));
    if (n->deps_required > 1) chart_put(out, ", deps_required %u", n->deps_required);
    put_state(out, n, ", ");
    chart_put(out, "</small>\"%s\n", right);
    if (n->state) chart_put(out, "    style f%un%u stroke:#c60,stroke-width:3px\n", number, i);
}

static void mermaid_edge(uint32_t number, const chart_edge *e, chart_text *out) {
    const char *arrow = e->kind == EDGE_BACK || e->kind == EDGE_EXCEPT ? "-.->" : "-->";
    chart_put(out, "    f%un%u %s", number, e->from, arrow);
    if (*e->when) {
        chart_put(out, "|\"%s %u: ", edge_kind_name(e->kind), e->index);
        put_mermaid(out, e->when);
        chart_put(out, "\"|");
    } else if (e->indexed) chart_put(out, "|%s %u|", edge_kind_name(e->kind), e->index);
    else if (e->kind != EDGE_FORWARD) chart_put(out, "|%s|", edge_kind_name(e->kind));
    chart_put(out, " f%un%u\n", number, e->to);
}

void chart_print_mermaid(const chart *c, chart_text *out) {
    const plan *p = c->o.p;
    chart_put(out, "flowchart TD\n");
    for (uint32_t i = 0; i < p->function_count; i++) {
        const chart_function *f = &c->functions[i];
        chart_put(out, "  subgraph f%u [\"", i);
        put_mermaid(out, i ? f->f->name : p->name);
        chart_put(out, "\"]\n");
        for (uint32_t k = 0; k < f->f->node_count; k++) mermaid_node(f, i, k, out);
        for (uint32_t k = 0; k < f->edges.count; k++) mermaid_edge(i, &f->edges.items[k], out);
        chart_put(out, "  end\n");
    }
}

/* ---- dot */

static void put_dot(chart_text *t, const char *chars) {
    for (const char *c = chars; *c; c++)
        chart_put(t, *c == '"' || *c == '\\' ? "\\%c" : "%c", (unsigned char)*c < 0x20 ? '?' : *c);
}

static void dot_node(const chart_function *f, uint32_t number, uint32_t i, chart_text *out) {
    const chart_node *n = &f->nodes[i];
    bool decides = n->n->kind == NODE_BRANCH || n->n->kind == NODE_HANDLER;
    chart_put(out, "    f%un%u [label=\"", number, i);
    put_dot(out, outline_label(n->n));
    chart_put(out, "\\n%s", node_kind_name(n->n->kind));
    if (n->deps_required > 1) chart_put(out, ", deps_required %u", n->deps_required);
    put_state(out, n, "\\n");
    chart_put(out, "\"%s%s];\n", decides ? ", shape=diamond" : "",
              n->state ? ", color=\"#cc6600\", penwidth=3" : "");
}

static void dot_edge(uint32_t number, const chart_edge *e, chart_text *out) {
    chart_put(out, "    f%un%u -> f%un%u [label=\"%s", number, e->from, number, e->to,
              e->kind == EDGE_FORWARD ? "" : edge_kind_name(e->kind));
    if (e->indexed) chart_put(out, *e->when ? " %u: " : " %u", e->index);
    put_dot(out, e->when);
    chart_put(out, "\"%s%s];\n",
              e->kind == EDGE_BACK || e->kind == EDGE_EXCEPT ? ", style=dashed" : "",
              e->kind == EDGE_BACK ? ", constraint=false" : "");
}

void chart_print_dot(const chart *c, chart_text *out) {
    const plan *p = c->o.p;
    chart_put(out,
              "digraph workflow {\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n"
              "  edge [fontname=\"sans-serif\", fontsize=10];\n");
    for (uint32_t i = 0; i < p->function_count; i++) {
        const chart_function *f = &c->functions[i];
        chart_put(out, "  subgraph cluster_%u {\n    label=\"", i);
        put_dot(out, i ? f->f->name : p->name);
        chart_put(out, "\";\n");
        for (uint32_t k = 0; k < f->f->node_count; k++) dot_node(f, i, k, out);
        for (uint32_t k = 0; k < f->edges.count; k++) dot_edge(i, &f->edges.items[k], out);
        chart_put(out, "  }\n");
    }
    chart_put(out, "}\n");
}

/* ---- JSON */

static void json_node(const chart_node *n, chart_text *out) {
    chart_put(out, "{\"id\":");
    chart_put_json(out, n->n->id);
    chart_put(out, ",\"kind\":\"%s\"", node_kind_name(n->n->kind));
    if (n->n->name) {
        chart_put(out, ",\"name\":");
        chart_put_json(out, n->n->name);
    }
    if (*n->n->at) {
        chart_put(out, ",\"at\":");
        chart_put_json(out, n->n->at);
    }
    chart_put(out, ",\"deps_required\":%u", n->deps_required);
    if (n->deps_satisfied) chart_put(out, ",\"deps_satisfied\":%u", n->deps_satisfied);
    if (n->visits) chart_put(out, ",\"visit\":%" PRIu64, n->visits);
    if (n->state == CHART_FAILED) chart_put(out, ",\"failed\":true");
    else if (n->state)
        chart_put(out, ",\"open\":%u,\"ready\":%s", n->open,
                  n->state == CHART_READY ? "true" : "false");
    chart_put(out, "}");
}

static void json_edge(const chart_function *f, const chart_edge *e, chart_text *out) {
    chart_put(out, "{\"from\":");
    chart_put_json(out, f->f->nodes[e->from].id);
    chart_put(out, ",\"to\":");
    chart_put_json(out, f->f->nodes[e->to].id);
    chart_put(out, ",\"kind\":\"%s\"", edge_kind_name(e->kind));
    if (e->indexed) chart_put(out, ",\"index\":%u", e->index);
    if (*e->when) {
        chart_put(out, ",\"when\":");
        chart_put_json(out, e->when);
    }
    chart_put(out, "}");
}

void chart_print_json(const chart *c, chart_text *out) {
    const plan *p = c->o.p;
    chart_put(out, "{\"name\":");
    chart_put_json(out, p->name);
    chart_put(out, ",\"version\":\"%s\",\"functions\":[", p->version);
    for (uint32_t i = 0; i < p->function_count; i++) {
        const chart_function *f = &c->functions[i];
        chart_put(out, "%s{\"name\":", i ? "," : "");
        chart_put_json(out, f->f->name);
        chart_put(out, ",\"nodes\":[");
        for (uint32_t k = 0; k < f->f->node_count; k++) {
            chart_put(out, "%s", k ? "," : "");
            json_node(&f->nodes[k], out);
        }
        chart_put(out, "],\"edges\":[");
        for (uint32_t k = 0; k < f->edges.count; k++) {
            chart_put(out, "%s", k ? "," : "");
            json_edge(f, &f->edges.items[k], out);
        }
        chart_put(out, "]}");
    }
    chart_put(out, "]}\n");
}
