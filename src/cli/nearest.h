/* nearest.h -- the known word that is nearest to a mistyped one. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include <stddef.h>

/* Keeps the best of the words that it is given. */
typedef struct nearest {
    const char *wanted;
    char best[200]; /* "" while nothing is near enough to be a slip */
    size_t distance;
} nearest;

nearest nearest_to(const char *wanted);
void nearest_offer(nearest *n, const char *word);

#endif
