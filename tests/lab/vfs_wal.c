/* vfs_wal.c -- how far SQLite reads a WAL: its file format, https://www.sqlite.org/fileformat2.html#walformat.
 *
 * Written from the description and not from our code, so that a test may compare the two. */
#include "vfs_wal.h"

#include <stdbool.h>
#include <string.h>

enum { HEADER = 32, FRAME_HEADER = 24, MAGIC = 0x377f0682, VERSION = 3007000 };

typedef struct sums {
    uint32_t a, b;
    bool big; /* the words that are summed have their high bytes first */
} sums;

static uint32_t word_at(const uint8_t *p, bool big) {
    return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static uint32_t number_at(const uint8_t *p) { return word_at(p, true); }

static void add(sums *s, const uint8_t *p, size_t size) {
    for (size_t i = 0; i + 8 <= size; i += 8) {
        s->a += word_at(p + i, s->big) + s->b;
        s->b += word_at(p + i + 4, s->big) + s->a;
    }
}

static bool is(const sums *s, const uint8_t *p) {
    return number_at(p) == s->a && number_at(p + 4) == s->b;
}

static bool read_header(const uint8_t *wal, size_t size, sums *s, size_t *page) {
    if (size < HEADER || (number_at(wal) | 1) != (MAGIC | 1)) return false;
    *page = number_at(wal + 8);
    if (number_at(wal + 4) != VERSION || *page < 512 || *page > 65536 || (*page & (*page - 1)))
        return false;
    *s = (sums){ .big = number_at(wal) & 1 };
    add(s, wal, 24);
    return is(s, wal + 24);
}

static bool read_frame(const uint8_t *wal, const uint8_t *frame, size_t page, sums *s) {
    if (!number_at(frame) || memcmp(frame + 8, wal + 16, 8) != 0) return false;
    add(s, frame, 8);
    add(s, frame + FRAME_HEADER, page);
    return is(s, frame + 16);
}

size_t wal_committed(const uint8_t *wal, size_t size) {
    sums s;
    size_t page, at = HEADER, committed = 0;
    if (!read_header(wal, size, &s, &page)) return 0;
    for (; at + FRAME_HEADER + page <= size; at += FRAME_HEADER + page) {
        if (!read_frame(wal, wal + at, page, &s)) break;
        if (number_at(wal + at + 4)) committed = at + FRAME_HEADER + page;
    }
    return committed;
}
