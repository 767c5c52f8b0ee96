/* hint.h -- what the compiler cannot know: which way things usually go. For the few loops and calls that
 * programs spend their time in; elsewhere they would only be in the way of reading. */
#ifndef BASE_HINT_H
#define BASE_HINT_H

#define USUALLY(x) __builtin_expect(!!(x), 1)
#define RARELY(x)  __builtin_expect(!!(x), 0)

/* A function that seldom runs: it stays out of its callers, which then need fewer registers. */
#define SELDOM __attribute__((cold, noinline))

#endif
