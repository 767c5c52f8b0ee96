/* graphs.c -- what all compilations of the graph template share. */
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double graph_value(const graph *g, const graph_result *result) {
    if (g->unit == GRAPH_MS) return result->ms;
    return result->ms * 1e6 / (double)(result->computed_runs + result->effect_runs);
}

void graph_wrong(graph_result *r, const char *what, double got, double expected) {
    if (r->wrong[0]) return;
    snprintf(r->wrong, sizeof r->wrong, "%s: %.17g instead of %.17g", what, got, expected);
}

/* ---- Arena ------------------------------------------------------------------------------- */

typedef struct arena_chunk {
    struct arena_chunk *next;
    uint64_t pad;
} arena_chunk;

enum { ARENA_CHUNK_BYTES = 1 << 18 };

void *graph_new(graph_arena *a, size_t size) {
    size = size ? (size + 15) & ~(size_t)15 : 16;
    if (size > a->left) {
        size_t room = size > ARENA_CHUNK_BYTES ? size : ARENA_CHUNK_BYTES;
        arena_chunk *fresh = malloc(sizeof *fresh + room);
        if (!fresh) abort();
        fresh->next = a->chunks;
        a->chunks = fresh;
        a->at = (char *)(fresh + 1);
        a->left = room;
    }
    void *taken = a->at;
    a->at += size;
    a->left -= size;
    return memset(taken, 0, size);
}

void graph_arena_free(graph_arena *a) {
    for (arena_chunk *at = a->chunks, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    *a = (graph_arena){ 0 };
}

/* ---- Random numbers ---------------------------------------------------------------------- */

static uint32_t rotate_left(uint32_t x, int by) { return x << by | x >> (32 - by); }

static uint32_t xmur3a_next(uint32_t *h) {
    *h ^= *h >> 16;
    *h *= 2246822507u;
    *h ^= *h >> 13;
    *h *= 3266489909u;
    *h ^= *h >> 16;
    return *h;
}

graph_rng graph_rng_seeded(const char *seed) {
    uint32_t h = 2166136261u;
    for (const char *at = seed; *at; at++) {
        uint32_t k = rotate_left((uint32_t)(unsigned char)*at * 3432918353u, 15);
        h = rotate_left(h ^ k * 461845907u, 13) * 5 + 3864292196u;
    }
    h ^= (uint32_t)strlen(seed);
    graph_rng rng;
    rng.a = xmur3a_next(&h);
    rng.b = xmur3a_next(&h);
    rng.c = xmur3a_next(&h);
    rng.d = xmur3a_next(&h);
    return rng;
}

uint32_t graph_rng_bits(graph_rng *rng) {
    uint32_t t = rng->a + rng->b;
    rng->a = rng->b ^ rng->b >> 9;
    rng->b = rng->c + (rng->c << 3);
    rng->c = rotate_left(rng->c, 21);
    rng->d++;
    t += rng->d;
    rng->c += t;
    return t;
}

double graph_rng_next(graph_rng *rng) { return graph_rng_bits(rng) / 4294967296.0; }
