/* lab.h -- what the files of the lab share. They use the public headers only.
 *
 *     env.c      the environment           lab.c      the store, its runtimes, moving
 *     record.c   what ran and failed       expect.c   expectations, and why they do not hold */
#ifndef LAB_LAB_H
#define LAB_LAB_H

#include <heddle/lab.h>

/* A text that grows. Without memory the test ends. */
typedef struct lab_text {
    char *bytes; /* NULL: empty */
    size_t length, capacity;
} lab_text;

void lab_text_add(lab_text *t, const char *format, ...) HD_PRINTF(2, 3);
static inline const char *lab_text_of(const lab_text *t) { return t->bytes ? t->bytes : ""; }
void lab_text_clear(lab_text *t);
void lab_text_free(lab_text *t);

enum { LAB_GETS_KEPT = 4 };

/* A runtime of a lab. Its hd_env has this as its ctx; lab_runtime_of recognises a lab's runtime by that. */
typedef struct lab_runtime {
    hd_lab *lab;
    hd_runtime *rt;
    char *name;
    hd_env env; /* passes on to the lab's world */
    unsigned held;
    hd_status refusal; /* of the next `refusals` commits */
    uint32_t refusals;
    uint32_t waits;    /* in a row that nothing ended */
    uint64_t last_run; /* number of the last traced run that is in `ran` */
    lab_text ran, failures, violations;
    lab_text ran_told, failures_told, violations_told, gets[LAB_GETS_KEPT];
    unsigned next_get;
    struct lab_runtime *next;
} lab_runtime;

struct hd_lab {
    hd_lab_options options;
    hd_lab_env *world;
    hd_memory *memory;     /* NULL: in a file, or not opened yet */
    lab_text folder, file; /* empty: in memory */
    lab_runtime *runtimes; /* in order of opening */
};

/* The record of a runtime; ends the test if the runtime is not one of a lab. */
lab_runtime *lab_runtime_of(const hd_runtime *rt);

/* record.c: switches the trace of a new runtime on; takes over the runs traced since the last call. */
hd_status lab_record_start(lab_runtime *r);
void lab_record_take(lab_runtime *r);

/* expect.c: tells that an expectation does not hold, or that something cannot be done, by options.fail.
 * Returns false, if options.fail returns. */
bool lab_tell(const hd_lab *lab, const char *message);

#endif
