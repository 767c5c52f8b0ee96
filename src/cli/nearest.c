/* nearest.c -- edit distance with swaps of neighbours: the slips that fingers make. */
#include "cli/nearest.h"

#include <stdio.h>
#include <string.h>

enum { WORD_MAX = sizeof(((nearest *)0)->best) - 1 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Insertions, deletions, replacements and swaps that lead from a to b. Both at most WORD_MAX. */
static size_t distance(const char *a, size_t n, const char *b, size_t m) {
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *now = rows[2];
    for (size_t j = 0; j <= m; j++) above[j] = j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least(changed, least(above[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = above;
        above = now;
        now = spare;
    }
    return above[m];
}

nearest nearest_to(const char *wanted) {
    /* A third of the letters may differ; from there on it is another word. */
    return (nearest){ .wanted = wanted, .distance = strlen(wanted) / 3 + 2 };
}

void nearest_offer(nearest *n, const char *word) {
    size_t wanted_length = strlen(n->wanted), length = strlen(word);
    if (wanted_length > WORD_MAX || length > WORD_MAX || !length) return;
    size_t d = distance(n->wanted, wanted_length, word, length);
    if (d >= n->distance || d >= length) return;
    n->distance = d;
    snprintf(n->best, sizeof n->best, "%s", word);
}
