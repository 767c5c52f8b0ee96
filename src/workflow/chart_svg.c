/* chart_svg.c -- a chart as a drawing: one panel for each function, from top to bottom. */
#include "workflow/chart.h"

#include "base/env.h"
#include <inttypes.h>

#define TITLE_ROOM 34.0
#define BACK_STEP  22.0

static const char style[] =
    "text{font-family:system-ui,sans-serif;text-anchor:middle;fill:#1b2733}"
    ".title{font-size:15px;font-weight:600;text-anchor:start}"
    ".label{font-size:13px;font-weight:500}"
    ".kind{font-size:10px;fill:#5b6b7b}"
    ".edge{fill:none;stroke:#6b7b8b;stroke-width:1.4}"
    ".BACK,.EXCEPT{stroke-dasharray:5 4}.EXCEPT{stroke:#b3403a}.BACK{stroke:#7a4fb0}"
    ".word{font-size:10px;fill:#40505f;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".box{fill:#f4f6f8;stroke:#9aa8b5;stroke-width:1.2}"
    ".ACTION{fill:#e3f0ff;stroke:#3b7dc4}"
    ".LOOP_HEAD{fill:#f0e8fb;stroke:#7a4fb0}"
    ".FAN_HEAD,.BARRIER{fill:#e5f6ec;stroke:#3c9a63}"
    ".BRANCH,.HANDLER{fill:#fff5dc;stroke:#c29a2c}"
    ".SLEEP,.WAIT{fill:#fdeee4;stroke:#c9763c}"
    ".RAISE{fill:#fbe4e3;stroke:#b3403a}"
    ".open{stroke:#d2600a;stroke-width:3}"
    ".panel{fill:#fff;stroke:#d5dce3}";

/* ---- boxes */

static bool is_pill(node_kind kind) {
    return kind == NODE_ENTRY || kind == NODE_RETURN || kind == NODE_RET || kind == NODE_RAISE;
}

static void draw_shape(const chart_box *b, const chart_node *n, chart_text *out) {
    const char *kind = node_kind_name(n->n->kind), *open = n->state ? " open" : "";
    double left = b->x - b->width / 2, top = b->y - b->height / 2;
    if (n->n->kind == NODE_BRANCH || n->n->kind == NODE_HANDLER) {
        double cut = 14, right = left + b->width, low = top + b->height;
        chart_put(out,
                  "<polygon class=\"box %s%s\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f "
                  "%.1f,%.1f %.1f,%.1f\"/>",
                  kind, open, left + cut, top, right - cut, top, right, b->y, right - cut, low,
                  left + cut, low, left, b->y);
        return;
    }
    chart_put(out,
              "<rect class=\"box %s%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
              "rx=\"%d\"/>",
              kind, open, left, top, b->width, b->height, is_pill(n->n->kind) ? 20 : 6);
}

static void draw_words(const chart_box *b, const chart_node *n, chart_text *out) {
    chart_put(out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\">", b->x, b->y - 2);
    chart_put_xml(out, chart_label(n));
    chart_put(out, "</text><text class=\"kind\" x=\"%.1f\" y=\"%.1f\">%s", b->x, b->y + 13,
              node_kind_name(n->n->kind));
    if (n->deps_required > 1) chart_put(out, ", deps_required %u", n->deps_required);
    if (n->deps_satisfied) chart_put(out, ", deps_satisfied %u", n->deps_satisfied);
    if (n->visits) chart_put(out, ", visit %" PRIu64, n->visits);
    if (n->state && n->open > 1) chart_put(out, ", %u %s", n->open, chart_state_name(n->state));
    else if (n->state) chart_put(out, ", %s", chart_state_name(n->state));
    chart_put(out, "</text>");
}

static void draw_box(const chart_box *b, const chart_node *n, chart_text *out) {
    chart_put(out, "<g><title>");
    chart_put_xml(out, n->n->id);
    if (*n->n->at) {
        chart_put(out, " at ");
        chart_put_xml(out, n->n->at);
    }
    chart_put(out, "</title>");
    draw_shape(b, n, out);
    draw_words(b, n, out);
    chart_put(out, "</g>\n");
}

/* ---- edges */

/* The box of the node that the edge leaves has the condition, or the exception. */
static const char *answer_on(const chart_node *from, const chart_edge *e) {
    if (from->n->kind == NODE_HANDLER) return "";
    return e->index ? "no" : "yes";
}

/* There is no room for several conditions between the columns: they are titles, which viewers show under the pointer.
 * FORWARD and EXCEPT show by their lines. */
static void draw_word(const chart_function *f, const chart_edge *e, double x, double y,
                      chart_text *out) {
    bool answers = e->kind == EDGE_GUARD && f->nodes[e->from].test;
    const char *word = answers ? answer_on(&f->nodes[e->from], e) : edge_kind_name(e->kind);
    if (e->kind == EDGE_FORWARD || e->kind == EDGE_EXCEPT || !*word) return;
    chart_put(out, "<text class=\"word\" x=\"%.1f\" y=\"%.1f\">%s", x, y, word);
    if (e->indexed && !answers) chart_put(out, " %u", e->index);
    if (*e->when && !answers) {
        chart_put(out, "<title>");
        chart_put_xml(out, e->when);
        chart_put(out, "</title>");
    }
    chart_put(out, "</text>\n");
}

/* Down through its points, upright at each. */
static void draw_down(const chart_function *f, const chart_layout *l, const chart_way *w,
                      chart_text *out) {
    const chart_box *from = &l->boxes.items[l->stops.items[w->first]];
    double x = from->x, y = from->y + from->height / 2, word_x = x, word_y = y;
    chart_put(out, "<path class=\"edge %s\" marker-end=\"url(#arrow)\" d=\"M%.1f %.1f",
              edge_kind_name(w->edge->kind), x, y);
    for (uint32_t i = 1; i < w->count; i++) {
        const chart_box *to = &l->boxes.items[l->stops.items[w->first + i]];
        double down = to->y - to->height / 2 - (i + 1 == w->count ? 2 : 0);
        chart_put(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, (y + down) / 2, to->x, (y + down) / 2,
                  to->x, down);
        if (i == 1) word_x = (x + to->x) / 2, word_y = (y + down) / 2 + 3;
        x = to->x;
        y = down;
    }
    chart_put(out, "\"/>\n");
    draw_word(f, w->edge, word_x, word_y, out);
}

/* Out on the right, up, and in on the right; right of every box between. `turn` keeps several apart. */
static void draw_back(const chart_function *f, const chart_layout *l, const chart_way *w,
                      uint32_t turn, chart_text *out) {
    const chart_box *from = &l->boxes.items[w->edge->from], *to = &l->boxes.items[w->edge->to];
    double right = 0;
    for (uint32_t i = 0; i < l->boxes.count; i++) {
        const chart_box *b = &l->boxes.items[i];
        if (b->layer < to->layer || b->layer > from->layer) continue;
        if (b->x + b->width / 2 > right) right = b->x + b->width / 2;
    }
    right += 26 + turn * BACK_STEP;
    double x0 = from->x + from->width / 2, x1 = to->x + to->width / 2, r = 10;
    chart_put(out,
              "<path class=\"edge BACK\" marker-end=\"url(#arrow)\" d=\"M%.1f %.1fH%.1fQ%.1f %.1f "
              "%.1f %.1fV%.1fQ%.1f %.1f %.1f %.1fH%.1f\"/>\n",
              x0, from->y, right - r, right, from->y, right, from->y - r, to->y + r, right, to->y,
              right - r, to->y, x1 + 2);
    draw_word(f, w->edge, right, (from->y + to->y) / 2, out);
}

/* ---- panels */

static void draw_function(const chart *c, const chart_function *f, const chart_layout *l,
                          chart_text *out) {
    uint32_t turn = 0;
    bool first = f == &c->functions[0];
    chart_put(out,
              "<rect class=\"panel\" x=\"4\" y=\"4\" width=\"%.1f\" height=\"%.1f\" rx=\"8\"/>"
              "<text class=\"title\" x=\"18\" y=\"28\">",
              l->width - 8, l->height + TITLE_ROOM - 8);
    chart_put_xml(out, first ? c->o.p->name : f->f->name);
    chart_put(out, "</text>\n<g transform=\"translate(0,%.1f)\">\n", TITLE_ROOM);
    for (uint32_t i = 0; i < l->ways.count; i++) {
        const chart_way *w = &l->ways.items[i];
        if (w->edge->kind == EDGE_BACK || w->edge->from >= w->edge->to)
            draw_back(f, l, w, turn++, out);
        else draw_down(f, l, w, out);
    }
    for (uint32_t i = 0; i < f->f->node_count; i++) {
        assert(l->boxes.items[i].node == i);
        draw_box(&l->boxes.items[i], &f->nodes[i], out);
    }
    chart_put(out, "</g>\n");
}

static hd_status make_layouts(const chart *c, chart_layout *all) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < c->o.p->function_count && !status; i++)
        status = chart_layout_make(c, &c->functions[i], &all[i]);
    return status;
}

static void draw_all(const chart *c, const chart_layout *all, chart_text *out) {
    double width = 0, height = 0, y = 0;
    uint32_t count = c->o.p->function_count;
    for (uint32_t i = 0; i < count; i++) {
        double title = chart_text_width(i ? c->functions[i].f->name : c->o.p->name, 15) + 40;
        if (all[i].width > width) width = all[i].width;
        if (title > width) width = title;
        height += all[i].height + TITLE_ROOM;
    }
    chart_put(out,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
              "viewBox=\"0 0 %.0f %.0f\">\n<style>%s</style>\n"
              "<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" "
              "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\">"
              "<path d=\"M0 1L10 5L0 9z\" fill=\"#6b7b8b\"/></marker></defs>\n",
              width, height, width, height, style);
    for (uint32_t i = 0; i < count; i++) {
        chart_put(out, "<g transform=\"translate(0,%.1f)\">\n", y);
        draw_function(c, &c->functions[i], &all[i], out);
        chart_put(out, "</g>\n");
        y += all[i].height + TITLE_ROOM;
    }
    chart_put(out, "</svg>\n");
}

hd_status chart_print_svg(const chart *c, chart_text *out) {
    uint32_t count = c->o.p->function_count;
    if (c->o.p->node_count > CHART_DRAWN_MAX) return HD_LIMIT;
    chart_layout *all = env_new0(c->env, count * sizeof *all);
    if (!all) return HD_NOMEM;
    hd_status status = make_layouts(c, all);
    if (!status) draw_all(c, all, out);
    for (uint32_t i = 0; i < count; i++)
        if (all[i].env) chart_layout_free(&all[i]);
    env_free(c->env, all, count * sizeof *all);
    return status;
}
