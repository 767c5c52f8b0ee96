/* backend.c -- what every connection has: its name in messages, and what was found to be damaged. */
#include "store/log/backend.h"

#include "store/place.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void log_show_name(const char *name, char out[STORE_SHOWN_SIZE]) {
    size_t length = strlen(name);
    bool fits = length < STORE_SHOWN_SIZE;
    const char *end = fits ? name : name + length - (STORE_SHOWN_SIZE - 4);
    while (!fits && ((unsigned char)*end & 0xC0) == 0x80) end++; /* inside of a character */
    snprintf(out, STORE_SHOWN_SIZE, "%s%s", fits ? "" : "...", end);
}

void log_store_init(log_store *s, const log_backend *ops, const hd_env *env, const char *name) {
    assert(ops && env && name);
    *s = (log_store){ .ops = ops, .env = *env, .text_max = SIZE_MAX, .look_ns = UINT64_MAX };
    log_show_name(name, s->shown);
}

hd_status log_store_damaged(log_store *s, const char *format, ...) {
    if (!s) return HD_CORRUPT;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(s->damage, sizeof s->damage, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof s->damage) env_end_cut(s->damage, sizeof s->damage);
    assert(s->damage[0]);
    return HD_CORRUPT;
}

const char *log_store_words(const log_store *s, hd_status status) {
    assert(status != HD_OK);
    const char *words = s->ops->words(s, status);
    if (words) return words;
    return status == HD_CORRUPT && s->damage[0] ? s->damage : hd_status_text(status);
}

void log_store_failure(log_store *s, hd_status status, const char *doing, hd_error *error) {
    assert(status);
    env_error(error, status, "%s: %s: %s", s->shown, doing, log_store_words(s, status));
    s->damage[0] = '\0'; /* it has been told */
}

bool log_number_of(int64_t stored, uint64_t *out) {
    bool sane = stored >= 0 && stored <= (int64_t)SEQ_MAX;
    *out = sane ? (uint64_t)stored : 0;
    return sane;
}
