/* hint.h -- tells the compiler which branch is usually taken. For hot loops and calls; elsewhere it makes
 * code harder to read and gains nothing. */
#ifndef BASE_HINT_H
#define BASE_HINT_H

#define USUALLY(x) __builtin_expect(!!(x), 1)
#define RARELY(x)  __builtin_expect(!!(x), 0)

/* A function that seldom runs: it stays out of its callers, which then need fewer registers. */
#define SELDOM __attribute__((cold, noinline))

#endif
