/* chart_layout.c -- where the nodes of a function stand in a drawing.
 *
 * The usual four steps of a layered drawing: a node's layer is the longest way to it (BACK edges do not count);
 * an edge over several layers gets a point in each it passes; within a layer, boxes are ordered by the mean of
 * their neighbours, swept down and up a few times, so that few edges cross; then each box moves to the mean of
 * its neighbours' places as far as its layer's order and the gaps allow.
 *
 * Cost: O((nodes + points + edges) * sweeps), sorting of layers apart. */
#include "workflow/chart.h"

#include "base/env.h"
#include <stdlib.h>

#define BOXES_MAX    20000
#define ORDER_SWEEPS 12
#define PLACE_SWEEPS 24
#define BOX_HEIGHT   40.0
#define GAP_ACROSS   28.0
#define GAP_DOWN     46.0
#define MARGIN       24.0
#define LABEL_SIZE   13.0
#define KIND_SIZE    10.0
#define BACK_ROOM    22.0 /* for each BACK edge, on the right */

/* A line between boxes of neighbouring layers. */
typedef struct link {
    uint32_t upper, lower;
} link;

typedef struct maker {
    const chart_function *f;
    chart_layout *l;
    VEC(link) links;
    uint32_t *row;   /* boxes layer by layer, each layer in its order */
    uint32_t *first; /* where each layer begins in `row`; one more than there are layers */
    double *sum;     /* by box, while means are formed */
    uint32_t *count;
} maker;

double chart_text_width(const char *chars, double size) {
    size_t points = 0;
    for (; *chars; chars++) points += ((unsigned char)*chars & 0xC0) != 0x80;
    return (double)points * size * 0.6;
}

/* ---- layers */

static bool goes_down(const chart_edge *e) { return e->kind != EDGE_BACK && e->from < e->to; }

static bool add_nodes(maker *m) {
    for (uint32_t i = 0; i < m->f->f->node_count; i++) {
        const plan_node *n = m->f->f->nodes + i;
        double label = chart_text_width(chart_label(&m->f->nodes[i]), LABEL_SIZE);
        double kind = chart_text_width(node_kind_name(n->kind), KIND_SIZE) +
                      (m->f->nodes[i].deps_required > 1 ? 100 : 0) +
                      (m->f->nodes[i].state ? 90 : 0);
        double width = (label > kind ? label : kind) + 24;
        chart_box box = { .node = i, .width = width > 90 ? width : 90, .height = BOX_HEIGHT };
        if (!vec_push(m->l->env, &m->l->boxes, box)) return false;
    }
    /* The order of the nodes is one in which edges go up: a node's layer is final when it is met. */
    for (uint32_t i = 0; i < m->f->edges.count; i++) {
        const chart_edge *e = &m->f->edges.items[i];
        chart_box *to = &m->l->boxes.items[e->to];
        uint32_t below = m->l->boxes.items[e->from].layer + 1;
        if (goes_down(e) && to->layer < below) to->layer = below;
        if (to->layer + 1 > m->l->layers) m->l->layers = to->layer + 1;
    }
    if (!m->l->layers) m->l->layers = 1;
    return true;
}

static hd_status add_way(maker *m, const chart_edge *e) {
    chart_layout *l = m->l;
    chart_way way = { e, l->stops.count, 0 };
    uint32_t at = e->from, last = goes_down(e) ? l->boxes.items[e->to].layer : 0;
    if (!vec_push(l->env, &l->stops, at)) return HD_NOMEM;
    for (uint32_t layer = l->boxes.items[e->from].layer + 1; layer < last; layer++) {
        chart_box point = { .node = PLAN_NONE, .layer = layer, .width = 8, .height = 0 };
        uint32_t next = l->boxes.count;
        if (next >= BOXES_MAX) return HD_LIMIT;
        if (!vec_push(l->env, &l->boxes, point) || !vec_push(l->env, &l->stops, next) ||
            !vec_push(l->env, &m->links, ((link){ at, next })))
            return HD_NOMEM;
        at = next;
    }
    if (goes_down(e) && !vec_push(l->env, &m->links, ((link){ at, e->to }))) return HD_NOMEM;
    if (!vec_push(l->env, &l->stops, e->to)) return HD_NOMEM;
    way.count = l->stops.count - way.first;
    return vec_push(l->env, &l->ways, way) ? HD_OK : HD_NOMEM;
}

/* ---- order */

static hd_status make_rows(maker *m) {
    chart_layout *l = m->l;
    uint32_t count = l->boxes.count;
    m->row = env_new_array(l->env, count, sizeof *m->row);
    m->first = env_new0(l->env, (l->layers + 1) * sizeof *m->first);
    m->sum = env_new_array(l->env, count, sizeof *m->sum);
    m->count = env_new_array(l->env, count, sizeof *m->count);
    if (!m->row || !m->first || !m->sum || !m->count) return HD_NOMEM;
    for (uint32_t i = 0; i < count; i++) m->first[l->boxes.items[i].layer + 1]++;
    for (uint32_t i = 0; i < l->layers; i++) m->first[i + 1] += m->first[i];
    assert(m->first[l->layers] == count);
    for (uint32_t i = 0; i < l->layers; i++) m->count[i] = 0;
    for (uint32_t i = 0; i < count; i++) {
        chart_box *b = &l->boxes.items[i];
        b->order = m->count[b->layer]++;
        m->row[m->first[b->layer] + b->order] = i;
    }
    return HD_OK;
}

/* The mean of what `value` says of the neighbours above, or below; where there are none, of the box itself. */
static void form_means(maker *m, bool above, bool places) {
    chart_box *boxes = m->l->boxes.items;
    for (uint32_t i = 0; i < m->l->boxes.count; i++) m->sum[i] = 0, m->count[i] = 0;
    for (uint32_t i = 0; i < m->links.count; i++) {
        link k = m->links.items[i];
        uint32_t mine = above ? k.lower : k.upper, other = above ? k.upper : k.lower;
        m->sum[mine] += places ? boxes[other].x : boxes[other].order;
        m->count[mine]++;
    }
    for (uint32_t i = 0; i < m->l->boxes.count; i++)
        m->sum[i] = m->count[i] ? m->sum[i] / m->count[i] : places ? boxes[i].x : boxes[i].order;
}

/* Stable, and quick for rows that are in order already, as most are. */
static void sort_row(maker *m, uint32_t layer) {
    uint32_t *row = m->row + m->first[layer], count = m->first[layer + 1] - m->first[layer];
    for (uint32_t i = 1; i < count; i++) {
        uint32_t box = row[i], k = i;
        for (; k > 0 && m->sum[row[k - 1]] > m->sum[box]; k--) row[k] = row[k - 1];
        row[k] = box;
    }
    for (uint32_t i = 0; i < count; i++) m->l->boxes.items[row[i]].order = i;
}

static uint64_t crossings(const maker *m) {
    uint64_t count = 0;
    const chart_box *b = m->l->boxes.items;
    if (m->links.count > 600) return 0; /* counted for drawings that a person looks at */
    for (uint32_t i = 0; i < m->links.count; i++)
        for (uint32_t k = i + 1; k < m->links.count; k++) {
            link p = m->links.items[i], q = m->links.items[k];
            if (b[p.upper].layer != b[q.upper].layer) continue;
            int64_t up = (int64_t)b[p.upper].order - b[q.upper].order;
            int64_t low = (int64_t)b[p.lower].order - b[q.lower].order;
            count += (up < 0 && low > 0) || (up > 0 && low < 0);
        }
    return count;
}

/* Sweeps while that helps. */
static void order_rows(maker *m) {
    uint64_t best = crossings(m);
    for (int sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
        for (uint32_t i = 0; i < m->l->layers; i++) {
            form_means(m, sweep % 2 == 0, false);
            sort_row(m, sweep % 2 == 0 ? i : m->l->layers - 1 - i);
        }
        uint64_t now = crossings(m);
        if (sweep > 2 && now >= best) break;
        if (now < best) best = now;
    }
}

/* ---- places */

static double apart(const chart_box *a, const chart_box *b) {
    return (a->width + b->width) / 2 + GAP_ACROSS;
}

/* Moves the boxes of a layer to where they want to be (m->sum), with the order and the gaps kept, so that the
 * squares of what is missing are least: boxes that push each other form blocks, and a block stands at the mean
 * of what its boxes want (pool adjacent violators). */
static void settle_row(maker *m, uint32_t layer) {
    chart_box *boxes = m->l->boxes.items;
    const uint32_t *row = m->row + m->first[layer];
    uint32_t count = m->first[layer + 1] - m->first[layer], blocks = 0;
    double offset = 0, *offsets = m->sum; /* replaced as it is read: each box by its own offset */
    struct {
        double mean;
        uint32_t size;
    } stack[256];
    if (count > 256) return;
    for (uint32_t i = 0; i < count; i++) {
        if (i) offset += apart(&boxes[row[i - 1]], &boxes[row[i]]);
        stack[blocks].mean = m->sum[row[i]] - offset;
        stack[blocks++].size = 1;
        offsets[row[i]] = offset;
        while (blocks > 1 && stack[blocks - 2].mean > stack[blocks - 1].mean) {
            uint32_t a = stack[blocks - 2].size, b = stack[blocks - 1].size;
            stack[blocks - 2].mean =
                (stack[blocks - 2].mean * a + stack[blocks - 1].mean * b) / (a + b);
            stack[blocks - 2].size = a + b;
            blocks--;
        }
    }
    for (uint32_t i = 0, block = 0, used = 0; i < count; i++) {
        boxes[row[i]].x = stack[block].mean + offsets[row[i]];
        if (++used == stack[block].size) block++, used = 0;
    }
}

static void place_boxes(maker *m) {
    chart_layout *l = m->l;
    for (uint32_t layer = 0; layer < l->layers; layer++) {
        double x = 0;
        for (uint32_t i = m->first[layer]; i < m->first[layer + 1]; i++) {
            chart_box *b = &l->boxes.items[m->row[i]];
            if (i > m->first[layer]) x += apart(&l->boxes.items[m->row[i - 1]], b);
            b->x = x;
            b->y = MARGIN + BOX_HEIGHT / 2 + layer * (BOX_HEIGHT + GAP_DOWN);
        }
    }
    for (int sweep = 0; sweep < PLACE_SWEEPS; sweep++)
        for (uint32_t i = 0; i < l->layers; i++) {
            form_means(m, sweep % 2 == 0, true);
            settle_row(m, sweep % 2 == 0 ? i : l->layers - 1 - i);
        }
}

static void move_into_frame(maker *m) {
    chart_layout *l = m->l;
    double left = 0, right = 0;
    uint32_t backs = 0;
    for (uint32_t i = 0; i < l->boxes.count; i++) {
        const chart_box *b = &l->boxes.items[i];
        if (!i || b->x - b->width / 2 < left) left = b->x - b->width / 2;
        if (!i || b->x + b->width / 2 > right) right = b->x + b->width / 2;
    }
    for (uint32_t i = 0; i < l->ways.count; i++) backs += !goes_down(l->ways.items[i].edge);
    for (uint32_t i = 0; i < l->boxes.count; i++) l->boxes.items[i].x += MARGIN - left;
    l->width = right - left + 2 * MARGIN + (backs ? 60 + backs * BACK_ROOM : 0);
    l->height = 2 * MARGIN + l->layers * BOX_HEIGHT + (l->layers - 1) * GAP_DOWN;
}

/* ---- the whole */

static void free_maker(maker *m) {
    const chart_layout *l = m->l;
    uint32_t count = l->boxes.count;
    if (m->row) env_free(l->env, m->row, count * sizeof *m->row);
    if (m->first) env_free(l->env, m->first, (l->layers + 1) * sizeof *m->first);
    if (m->sum) env_free(l->env, m->sum, count * sizeof *m->sum);
    if (m->count) env_free(l->env, m->count, count * sizeof *m->count);
    vec_fini(l->env, &m->links);
}

hd_status chart_layout_make(const chart *c, const chart_function *f, chart_layout *out) {
    maker m = { .f = f, .l = out };
    *out = (chart_layout){ .env = c->env };
    hd_status status = f->f->node_count > CHART_DRAWN_MAX ? HD_LIMIT : HD_OK;
    if (!status && !add_nodes(&m)) status = HD_NOMEM;
    for (uint32_t i = 0; i < f->edges.count && !status; i++)
        status = add_way(&m, &f->edges.items[i]);
    if (!status) status = make_rows(&m);
    if (!status) {
        order_rows(&m);
        place_boxes(&m);
        move_into_frame(&m);
    }
    free_maker(&m);
    if (status) chart_layout_free(out);
    return status;
}

void chart_layout_free(chart_layout *l) {
    vec_fini(l->env, &l->boxes);
    vec_fini(l->env, &l->ways);
    vec_fini(l->env, &l->stops);
}
