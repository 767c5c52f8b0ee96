/* env.c -- the test environment: virtual time, seeded randomness, allocations that fail on request.
 *
 * A store in a file has a thread that allocates and logs too: one lock, and clocks that are atomic.
 *
 * Every block carries a header in front and is on a ring, so that a leak can be named (the serial
 * number of a block is the same in each run: break there) and a wrong size is noticed at once. */
#include <heddle/lab.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAB_DEFAULT_SEED UINT64_C(20200101)
#define LAB_START_NS     UINT64_C(1000000000)
#define LAB_START_WALL   UINT64_C(1577836800000) /* 2020-01-01T00:00:00Z */
#define LAB_BLOCK_MARK   UINT64_C(0x6B636F6C62626F6C)

typedef struct lab_block {
    struct lab_block *prev, *next;
    size_t size;
    uint64_t serial; /* number of the allocation that made it, counted from 1 in each world */
    uint64_t mark;   /* LAB_BLOCK_MARK while the block lives */
    uint64_t align_;
} lab_block;
_Static_assert(sizeof(lab_block) % 16 == 0, "blocks follow the header");

struct hd_lab_env {
    hd_env env;
    pthread_mutex_t lock; /* over all that follows, but for the clocks */
    lab_block ring;       /* of live blocks */
    hd_lab_random random;
    _Atomic uint64_t now_ns, wall_ms;
    uint64_t allocations, blocks;
    size_t bytes;
    uint64_t fail_in; /* refuse the allocation that counts this down to 0; 0: refuse none */
    bool fail_rest;   /* and all that follow it */
    bool failed;      /* an allocation was refused */
    bool show_log;
    char **lines;
    size_t line_count, line_capacity;
};

void hd_lab_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("lab: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

/* Memory for the lab's own records. Without it the test ends: no test is about that. */
static void *lab_own_memory(void *block, size_t size) {
    void *moved = realloc(block, size);
    if (!moved) hd_lab_fail("the machine is out of memory");
    return moved;
}

/* ---- Randomness -------------------------------------------------------------------------- */

uint64_t hd_lab_seed(void) {
    const char *text = getenv("HD_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : LAB_DEFAULT_SEED;
    fprintf(stderr, "HD_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

hd_lab_random hd_lab_random_of(uint64_t seed) { return (hd_lab_random){ seed }; }

/* A Weyl sequence through a mixer (the construction of splitmix64): every seed is a good one. */
uint64_t hd_lab_random_u64(hd_lab_random *r) {
    uint64_t x = r->state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

uint64_t hd_lab_random_below(hd_lab_random *r, uint64_t n) {
    if (n == 0) hd_lab_fail("a number below 0 was asked for");
    uint64_t uneven = (UINT64_MAX - n + 1) % n; /* the first 2^64 mod n draws would be too many */
    uint64_t draw;
    do draw = hd_lab_random_u64(r);
    while (draw < uneven);
    return draw % n;
}

bool hd_lab_random_once_in(hd_lab_random *r, uint64_t n) { return hd_lab_random_below(r, n) == 0; }

void hd_lab_random_bytes(hd_lab_random *r, void *out, size_t size) {
    for (size_t done = 0; done < size; done += 8) {
        uint64_t u = hd_lab_random_u64(r);
        memcpy((char *)out + done, &u, size - done < 8 ? size - done : 8);
    }
}

/* ---- The allocator ----------------------------------------------------------------------- */

static bool lab_refuses(hd_lab_env *w) {
    w->allocations++;
    if (w->fail_in == 0 || --w->fail_in > 0) return false;
    w->failed = true;
    if (w->fail_rest) w->fail_in = 1;
    return true;
}

static lab_block *lab_block_of(hd_lab_env *w, void *memory, size_t size) {
    lab_block *b = (lab_block *)memory - 1;
    if (b->mark != LAB_BLOCK_MARK) hd_lab_fail("%p is not a live block of this world", memory);
    if (b->size != size)
        hd_lab_fail("block %llu has %zu bytes and was given back as %zu",
                    (unsigned long long)b->serial, b->size, size);
    if (b->prev->next != b || w->blocks == 0) hd_lab_fail("the header of a block was overwritten");
    return b;
}

static lab_block *lab_block_make(hd_lab_env *w, size_t size) {
    lab_block *b = size < SIZE_MAX / 2 ? malloc(sizeof *b + size) : NULL;
    if (!b) return NULL;
    *b = (lab_block){ w->ring.prev, &w->ring, size, w->allocations, LAB_BLOCK_MARK, 0 };
    b->prev->next = b->next->prev = b;
    w->blocks++;
    w->bytes += size;
    memset(b + 1, 0xA5, size);
    return b;
}

static void lab_block_drop(hd_lab_env *w, lab_block *b) {
    b->prev->next = b->next;
    b->next->prev = b->prev;
    b->mark = 0;
    w->blocks--;
    w->bytes -= b->size;
    free(b);
}

static void *lab_resize(hd_lab_env *w, void *memory, size_t old_size, size_t size) {
    if (!memory && old_size) hd_lab_fail("NULL was given back as a block of %zu bytes", old_size);
    lab_block *old = memory ? lab_block_of(w, memory, old_size) : NULL;
    if (size == 0) {
        if (old) lab_block_drop(w, old);
        return NULL;
    }
    lab_block *b = lab_refuses(w) ? NULL : lab_block_make(w, size);
    if (!b) return NULL;
    if (old) {
        memcpy(b + 1, memory, old_size < size ? old_size : size);
        lab_block_drop(w, old);
    }
    return b + 1;
}

static void *lab_alloc(void *memory, size_t old_size, size_t size, void *ctx) {
    hd_lab_env *w = ctx;
    pthread_mutex_lock(&w->lock);
    void *resized = lab_resize(w, memory, old_size, size);
    pthread_mutex_unlock(&w->lock);
    return resized;
}

/* ---- Clocks, random, log ----------------------------------------------------------------- */

/* A wait in a lab takes no real time: the clock jumps to the deadline. If there is a descriptor, a thread
 * may write to it, and a thread needs real time: so a moment of real time passes first. */
static void lab_wait(int fd, uint64_t deadline_ns, void *ctx) {
    hd_lab_env *w = ctx;
    struct pollfd readable = { fd, POLLIN, 0 };
    if (fd >= 0 && poll(&readable, 1, deadline_ns == UINT64_MAX ? 1000 : 1) > 0) return;
    if (deadline_ns != UINT64_MAX && deadline_ns > w->now_ns)
        hd_lab_env_advance_ns(w, deadline_ns - w->now_ns);
}

static uint64_t lab_monotonic_ns(void *ctx) { return ((hd_lab_env *)ctx)->now_ns; }
static uint64_t lab_wall_ms(void *ctx) { return ((hd_lab_env *)ctx)->wall_ms; }
static void lab_fill(void *out, size_t size, void *ctx) {
    hd_lab_env *w = ctx;
    pthread_mutex_lock(&w->lock);
    hd_lab_random_bytes(&w->random, out, size);
    pthread_mutex_unlock(&w->lock);
}

static void lab_keep_line(hd_lab_env *w, char *line) {
    pthread_mutex_lock(&w->lock);
    if (w->line_count == w->line_capacity) {
        w->line_capacity = w->line_capacity ? 2 * w->line_capacity : 16;
        w->lines = lab_own_memory(w->lines, w->line_capacity * sizeof *w->lines);
    }
    w->lines[w->line_count++] = line;
    pthread_mutex_unlock(&w->lock);
}

static void lab_log(hd_log_level level, const char *line, void *ctx) {
    static const char *const names[] = { "error", "warning", "info", "debug" };
    hd_lab_env *w = ctx;
    size_t size = strlen(names[level]) + 2 + strlen(line) + 1;
    char *kept = lab_own_memory(NULL, size);
    snprintf(kept, size, "%s: %s", names[level], line);
    if (w->show_log) fprintf(stderr, "%s\n", kept);
    lab_keep_line(w, kept);
}

/* ---- The world --------------------------------------------------------------------------- */

hd_lab_env *hd_lab_env_open(void) {
    hd_lab_env *w = lab_own_memory(NULL, sizeof *w);
    *w = (hd_lab_env){ .now_ns = LAB_START_NS,
                       .wall_ms = LAB_START_WALL,
                       .random = hd_lab_random_of(LAB_DEFAULT_SEED),
                       .show_log = getenv("HD_LAB_LOG") != NULL };
    pthread_mutex_init(&w->lock, NULL);
    w->ring.prev = w->ring.next = &w->ring;
    w->env = (hd_env){ .ctx = w,
                       .alloc = lab_alloc,
                       .monotonic_ns = lab_monotonic_ns,
                       .wall_ms = lab_wall_ms,
                       .random = lab_fill,
                       .log = lab_log,
                       .wait = lab_wait };
    return w;
}

void hd_lab_env_close(hd_lab_env *w) {
    if (!w) return;
    for (lab_block *b = w->ring.next; b != &w->ring; b = b->next)
        fprintf(stderr, "lab: leaked: block %llu of %zu bytes\n", (unsigned long long)b->serial,
                b->size);
    if (w->blocks)
        hd_lab_fail("%llu blocks, %zu bytes were not freed", (unsigned long long)w->blocks,
                    w->bytes);
    hd_lab_env_log_clear(w);
    free(w->lines);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

const hd_env *hd_lab_env_of(hd_lab_env *w) { return &w->env; }

void hd_lab_env_advance_ms(hd_lab_env *w, uint64_t ms) { hd_lab_env_advance_ns(w, ms * 1000000); }

/* Wall time follows whole milliseconds of monotonic time, so that many small steps add up. */
void hd_lab_env_advance_ns(hd_lab_env *w, uint64_t ns) {
    w->wall_ms += (w->now_ns + ns) / 1000000 - w->now_ns / 1000000;
    w->now_ns += ns;
}

void hd_lab_env_set_wall_ms(hd_lab_env *w, uint64_t ms) { w->wall_ms = ms; }
void hd_lab_env_set_seed(hd_lab_env *w, uint64_t seed) { w->random = hd_lab_random_of(seed); }

static void hd_lab_env_plan_failure(hd_lab_env *w, uint64_t nth, bool rest) {
    w->fail_in = nth;
    w->fail_rest = rest;
    w->failed = false;
}

void hd_lab_env_fail_at(hd_lab_env *w, uint64_t nth) { hd_lab_env_plan_failure(w, nth, false); }
void hd_lab_env_fail_from(hd_lab_env *w, uint64_t nth) { hd_lab_env_plan_failure(w, nth, true); }
bool hd_lab_env_failed(const hd_lab_env *w) { return w->failed; }
uint64_t hd_lab_env_allocations(const hd_lab_env *w) { return w->allocations; }
uint64_t hd_lab_env_blocks(const hd_lab_env *w) { return w->blocks; }
size_t hd_lab_env_bytes(const hd_lab_env *w) { return w->bytes; }

/* Whether the body met the failure that was planned for it. */
static bool lab_run_failing(hd_lab_body_fn body, void *ctx, uint64_t nth, bool rest) {
    hd_lab_env *w = hd_lab_env_open();
    hd_lab_env_plan_failure(w, nth, rest);
    body(w, ctx);
    bool failed = w->failed;
    hd_lab_env_close(w);
    return failed;
}

uint64_t hd_lab_each_allocation_failure(hd_lab_body_fn body, void *ctx) {
    uint64_t nth = 1;
    while (lab_run_failing(body, ctx, nth, false)) {
        lab_run_failing(body, ctx, nth, true);
        nth++;
    }
    return nth - 1;
}

size_t hd_lab_env_log_count(const hd_lab_env *w) { return w->line_count; }

const char *hd_lab_env_log_line(const hd_lab_env *w, size_t i) {
    return i < w->line_count ? w->lines[i] : NULL;
}

size_t hd_lab_env_logged(const hd_lab_env *w, const char *text) {
    size_t count = 0;
    for (size_t i = 0; i < w->line_count; i++) count += strstr(w->lines[i], text) != NULL;
    return count;
}

void hd_lab_env_log_clear(hd_lab_env *w) {
    for (size_t i = 0; i < w->line_count; i++) free(w->lines[i]);
    w->line_count = 0;
}
