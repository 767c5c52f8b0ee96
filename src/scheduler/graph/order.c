/* order.c -- positions, the bitmaps over them, and the search for the next node to run. */
#include "scheduler/graph/order.h"

#include "base/env.h"

#define CAPACITY_LEAST  64u
#define ORDER_ALL_WORDS UINT64_MAX

/* ---- the block of arrays */

static uint32_t words_of(uint32_t capacity) { return capacity / 64; }
static uint32_t summary_words(uint32_t capacity) {
    return capacity >> SUMMARY_SHIFT ? capacity >> SUMMARY_SHIFT : 1;
}
static size_t bitmaps_bytes(uint32_t capacity) {
    return (3 * (size_t)words_of(capacity) + summary_words(capacity)) * sizeof(uint64_t);
}
static size_t block_bytes(uint32_t capacity) {
    return bitmaps_bytes(capacity) + (size_t)capacity * sizeof(node_id);
}
/* Arrays that are seldom used have a block of their own, so that they take no room in the cache among the others. */
static size_t spare_bytes(uint32_t capacity) { return 2 * (size_t)capacity * sizeof(node_id); }

/* Lays the arrays out in the two blocks. */
static void lay_out(graph *g, void *block, void *spare, uint32_t capacity) {
    uint64_t *words = block;
    size_t n = words_of(capacity);
    g->invalid.words = words;
    g->live.words = words + n;
    g->eligible.words = words + 2 * n;
    g->summary.words = words + 3 * n;
    g->node_at = (node_id *)(words + 3 * n + summary_words(capacity));
    g->withdrawn = spare;
    g->work = g->withdrawn + capacity;
    g->order_capacity = capacity;
    g->top_shift = SUMMARY_SHIFT;
    while (capacity >> g->top_shift > 64) g->top_shift++;
}

static void free_blocks(const graph *g) {
    env_free(g->env, g->invalid.words, block_bytes(g->order_capacity));
    env_free(g->env, g->withdrawn, spare_bytes(g->order_capacity));
}

hd_status order_grow(graph *g) {
    uint32_t capacity = g->order_capacity ? g->order_capacity * 2 : CAPACITY_LEAST;
    if (capacity > NODE_MAX / 2) return HD_LIMIT;
    void *block = env_new(g->env, block_bytes(capacity));
    void *spare = block ? env_new(g->env, spare_bytes(capacity)) : NULL;
    if (!spare) {
        env_free(g->env, block, block_bytes(capacity));
        return HD_NOMEM;
    }
    graph old = *g;
    lay_out(g, block, spare, capacity);
    memset(block, 0, bitmaps_bytes(capacity)); /* of the rest, what is in use has been written */
    if (!old.order_capacity) return HD_OK;
    size_t bytes = words_of(old.order_capacity) * sizeof(uint64_t);
    memcpy(g->invalid.words, old.invalid.words, bytes);
    memcpy(g->live.words, old.live.words, bytes);
    memcpy(g->eligible.words, old.eligible.words, bytes);
    memcpy(g->summary.words, old.summary.words,
           summary_words(old.order_capacity) * sizeof(uint64_t));
    memcpy(g->node_at, old.node_at, old.order_count * sizeof(node_id));
    memcpy(g->withdrawn, old.withdrawn, old.withdrawn_count * sizeof(node_id));
    memcpy(g->work, old.work, old.work_count * sizeof(node_id));
    if (g->top_shift != old.top_shift) g->top = ORDER_ALL_WORDS; /* may be set in vain */
    free_blocks(&old);
    return HD_OK;
}

void order_fini(graph *g) {
    free_blocks(g);
    vec_fini(g->env, &g->back_edges);
    vec_fini(g->env, &g->pending);
    table_fini(&g->back_index);
    vec_fini(g->env, &g->forward);
    vec_fini(g->env, &g->backward);
    vec_fini(g->env, &g->sequence);
    vec_fini(g->env, &g->pool);
}

/* ---- coming and going */

static void clear_bits(graph *g, uint32_t pos) {
    bit_clear(g->invalid, pos);
    bit_clear(g->live, pos);
    bit_clear(g->eligible, pos);
}

void order_remove(graph *g, node_id id) {
    uint32_t pos = graph_node(g, id)->pos;
    assert(pos < g->order_count && g->node_at[pos] == id);
    clear_bits(g, pos);
    g->node_at[pos] = 0;
    g->holes++;
    /* What comes and goes at the end, such as a pull, leaves no hole. */
    while (g->order_count && !g->node_at[g->order_count - 1]) {
        g->order_count--;
        g->holes--;
    }
}

/* ---- moving */

enum { BIT_INVALID = 1, BIT_LIVE = 2, BIT_ELIGIBLE = 4 };

static uint64_t bits_at(const graph *g, uint32_t pos) {
    return (bit_test(g->invalid, pos) ? BIT_INVALID : 0u) |
           (bit_test(g->live, pos) ? BIT_LIVE : 0u) |
           (bit_test(g->eligible, pos) ? BIT_ELIGIBLE : 0u);
}

static void put_node(graph *g, uint32_t pos, node_id id, uint64_t bits) {
    assert(id && pos < g->order_count && !(bits >> 3));
    clear_bits(g, pos);
    if (bits & BIT_INVALID) bit_set(g->invalid, pos);
    if (bits & BIT_LIVE) bit_set(g->live, pos);
    if (bits & BIT_ELIGIBLE) bit_set(g->eligible, pos);
    if (bits) graph_raise(g, pos);
    g->node_at[pos] = id;
    graph_node(g, id)->pos = pos;
}

/* By value, in place and without recursion: insertion for few, a heap for many. */
void sort_marks(uint64_t *items, uint32_t count) {
    if (count <= 24) {
        for (uint32_t i = 1; i < count; i++) {
            uint64_t item = items[i];
            uint32_t j = i;
            for (; j && items[j - 1] > item; j--) items[j] = items[j - 1];
            items[j] = item;
        }
        return;
    }
    uint32_t end = count, start = count / 2;
    while (end > 1) {
        uint64_t item;
        if (start) {
            item = items[--start];
        } else {
            item = items[--end];
            items[end] = items[0];
        }
        uint32_t root = start;
        for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && items[child + 1] > items[child]) child++;
            if (items[child] <= item) break;
            items[root] = items[child];
        }
        items[root] = item;
    }
}

bool order_place(graph *g) {
    uint32_t count = g->sequence.count;
    vec_clear(&g->pool);
    if (!vec_room(g->env, &g->pool, count)) return false;
    if (!count) return true;
    memcpy(g->pool.items, g->sequence.items, count * sizeof *g->pool.items);
    sort_marks(g->pool.items, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t mark = g->sequence.items[i];
        g->sequence.items[i] = bits_at(g, (uint32_t)(mark >> 32)) << 32 | (uint32_t)mark;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t mark = g->sequence.items[i];
        put_node(g, (uint32_t)(g->pool.items[i] >> 32), (uint32_t)mark, mark >> 32);
    }
    g->repaired_nodes += count;
    uint32_t low = (uint32_t)(g->pool.items[0] >> 32),
             high = (uint32_t)(g->pool.items[count - 1] >> 32);
    /* What was noted by position may have moved with it. */
    if (low <= g->retry_high && g->retry_low <= high) order_note(g, low, high);
    return true;
}

void graph_tidy(graph *g) {
    if (g->holes < CAPACITY_LEAST || g->holes * 2 < g->order_count) return;
    uint32_t to = 0;
    for (uint32_t from = 0; from < g->order_count; from++) {
        node_id id = g->node_at[from];
        if (!id) continue;
        if (from != to) {
            uint64_t bits = bits_at(g, from);
            clear_bits(g, from);
            g->node_at[from] = 0;
            put_node(g, to, id, bits);
            g->repaired_nodes++;
        }
        to++;
    }
    assert(to + g->holes == g->order_count);
    g->order_count = to;
    g->holes = 0;
    if (g->retry_high) order_note(g, 0, UINT32_MAX);
}

/* ---- the next to run */

/* The first raised word among the summary words from `from` to the end of its share of `top`;
 * UINT32_MAX: none there. */
static uint32_t raised_in_share(const graph *g, uint32_t from, uint32_t end) {
    for (uint32_t s = from; s < end; s++)
        if (g->summary.words[s]) return s * 64 + (uint32_t)__builtin_ctzll(g->summary.words[s]);
    return UINT32_MAX;
}

/* The first word at or above `word` whose summary bit is set; UINT32_MAX: none. */
static uint32_t next_raised(graph *g, uint32_t word) {
    uint32_t count = summary_words(g->order_capacity), s = word >> 6;
    if (s >= count) return UINT32_MAX;
    uint64_t bits = g->summary.words[s] & UINT64_MAX << (word & 63);
    if (bits) return s * 64 + (uint32_t)__builtin_ctzll(bits);

    uint32_t shift = g->top_shift - SUMMARY_SHIFT, t = s >> shift;
    uint32_t end = (t + 1) << shift;
    uint32_t found = raised_in_share(g, s + 1, end < count ? end : count);
    if (found != UINT32_MAX) return found;
    for (uint64_t left = g->top & UINT64_MAX << t << 1; left; left &= left - 1) {
        t = (uint32_t)__builtin_ctzll(left);
        if (t << shift >= count) return UINT32_MAX;
        end = (t + 1) << shift;
        found = raised_in_share(g, t << shift, end < count ? end : count);
        if (found != UINT32_MAX) return found;
        g->top &= ~(UINT64_C(1) << t);
    }
    return UINT32_MAX;
}

bool graph_is_last_of_share(const graph *g, uint32_t at) {
    uint32_t shift = g->top_shift - SUMMARY_SHIFT, count = summary_words(g->order_capacity);
    uint32_t first = at >> shift << shift, end = first + (1U << shift);
    for (uint32_t s = first; s < end && s < count; s++)
        if (s != at && g->summary.words[s]) return false;
    return true;
}

/* From the top down: the lowest raised word is looked at, and lowered if there is nothing in it. */
uint32_t graph_lowest_runnable(graph *g) {
    uint32_t shift = g->top_shift - SUMMARY_SHIFT;
    for (; g->top; g->top &= g->top - 1) {
        uint32_t s = (uint32_t)__builtin_ctzll(g->top) << shift, end = s + (1U << shift);
        uint32_t count = summary_words(g->order_capacity);
        for (end = end < count ? end : count; s < end; s++) {
            for (uint64_t *raised = &g->summary.words[s]; *raised; *raised &= *raised - 1) {
                uint32_t word = s * 64 + (uint32_t)__builtin_ctzll(*raised);
                uint64_t bits = graph_runnable(g, word);
                if (bits) return word * 64 + (uint32_t)__builtin_ctzll(bits);
            }
        }
    }
    return UINT32_MAX;
}

uint32_t graph_next_runnable(graph *g, uint32_t from) {
    if (!g->top || from >= g->order_count) return UINT32_MAX;
    uint32_t word = from >> 6;
    uint64_t bits = graph_runnable(g, word) & UINT64_MAX << (from & 63);
    if (!bits && !(from & 63)) bit_clear(g->summary, word);
    while (!bits) {
        word = next_raised(g, word + 1);
        if (word == UINT32_MAX) return UINT32_MAX;
        bits = graph_runnable(g, word);
        if (!bits) bit_clear(g->summary, word);
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}
