/* search.c -- where a text stands in another: the two-way algorithm (Crochemore and Perrin, 1991).
 *
 * The needle is cut at a place where no repetition crosses it: what stands behind the cut is compared first, then what
 * stands before it. A mismatch behind the cut moves the needle by as much as has matched; one before it, by the
 * needle's period. So the time is linear in both texts, whatever they are, and the memory is constant.
 *
 * The last place is the first one of both texts read backwards. */
#include "expr/text.h"

/* A part of a text. */
typedef struct span {
    const text *t;
    uint32_t from, count;
    bool back; /* it is read backwards */
} span;

static inline uint32_t at(const span *s, uint32_t i) {
    return text_at(s->t, s->from + (s->back ? s->count - 1 - i : i));
}

/* Where the greatest suffix begins, and the period of that suffix; `least`: the smallest one, by the inverse order of
 * code points. */
static uint32_t greatest_suffix(const span *s, bool least, uint32_t *period) {
    uint32_t begin = 0, other = 1,
             matched = 0; /* the suffixes from `begin` and `other` on agree that far */
    *period = 1;
    while (other + matched < s->count) {
        uint32_t a = at(s, begin + matched), b = at(s, other + matched);
        if (a == b) {
            if (++matched == *period) other += *period, matched = 0;
        } else if ((b < a) != least) {
            other += matched + 1;
            matched = 0;
            *period = other - begin;
        } else {
            begin = other++;
            matched = 0;
            *period = 1;
        }
    }
    return begin;
}

static uint32_t cut_of(const span *needle, uint32_t *period) {
    uint32_t other_period, cut = greatest_suffix(needle, false, period);
    uint32_t other = greatest_suffix(needle, true, &other_period);
    if (other <= cut) return cut;
    *period = other_period;
    return other;
}

/* Whether what stands before the cut repeats with the period, and so the whole needle does. */
static bool repeats(const span *needle, uint32_t cut, uint32_t period) {
    for (uint32_t i = 0; i < cut; i++)
        if (at(needle, i) != at(needle, i + period)) return false;
    return true;
}

/* `known`: so much of the needle's beginning matches already, since it has moved by its period. */
static int64_t search(const span *hay, const span *needle) {
    uint32_t period, cut = cut_of(needle, &period), n = needle->count, known = 0;
    bool periodic = repeats(needle, cut, period);
    if (!periodic) period = (cut > n - cut ? cut : n - cut) + 1;
    for (uint32_t place = 0; n <= hay->count && place <= hay->count - n;) {
        uint32_t i = known > cut ? known : cut;
        while (i < n && at(needle, i) == at(hay, place + i)) i++;
        if (i < n) {
            place += i - cut + 1;
            known = 0;
            continue;
        }
        for (i = cut; i > known && at(needle, i - 1) == at(hay, place + i - 1);) i--;
        if (i <= known) return place;
        place += period;
        known = periodic ? n - period : 0;
    }
    return -1;
}

static int64_t find(const text *hay, const text *needle, uint32_t from, uint32_t to, bool last) {
    if (from > to || to - from < needle->count) return -1;
    if (text_is_wide(needle) && !text_is_wide(hay)) return -1;
    if (!needle->count) return last ? to : from;
    span whole = { hay, from, to - from, last }, part = { needle, 0, needle->count, last };
    int64_t place = search(&whole, &part);
    if (place < 0) return -1;
    return last ? (int64_t)to - place - needle->count : from + place;
}

int64_t text_find(const text *hay, const text *needle, uint32_t from, uint32_t to) {
    return find(hay, needle, from, to, false);
}

int64_t text_find_last(const text *hay, const text *needle, uint32_t from, uint32_t to) {
    return find(hay, needle, from, to, true);
}
