/* times.h -- how often a seeded test does what it does: a little in `make test`, much in `make nightly`.
 *
 * Each test names the variable that makes it longer; tools/nightly lists them with their values. */
#ifndef HEDDLE_TIMES_H
#define HEDDLE_TIMES_H

#include <stdint.h>
#include <stdlib.h>

/* The number in the environment, or `usual` where there is none. */
static inline uint64_t lab_times(const char *variable, uint64_t usual) {
    const char *text = getenv(variable);
    uint64_t times = text ? strtoull(text, NULL, 10) : 0;
    return times ? times : usual;
}

/* Under a sanitizer everything takes several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAB_SLOW 1
#else
#define LAB_SLOW 0
#endif

#endif
