/* sabotage.h -- leaving out, on request, what a test must notice is missing.
 *
 * A test that passes with and without the thing it is about proves nothing. Debug builds carry these
 * switches, tests set them and see the named test fail; release builds carry nothing. */
#ifndef STORE_SABOTAGE_H
#define STORE_SABOTAGE_H

enum {
    SABOTAGE_CASCADE = 1, /* what is stacked on a refused commit is not doomed */
    SABOTAGE_FLIP = 2,    /* what a leaving layer uncovers is not announced */
    SABOTAGE_BASIS = 4,   /* claims are dated when they are sent, not when they were read */
    SABOTAGE_MARK = 8     /* a commit takes effect without being remembered as decided */
};

#ifndef NDEBUG
#define SABOTAGE_FIELD      unsigned sabotage; /* SABOTAGE_*; written by tests only */
#define SABOTAGED(it, what) (((it)->sabotage & (what)) != 0)
#else
#define SABOTAGE_FIELD
#define SABOTAGED(it, what) false
#endif

#endif
