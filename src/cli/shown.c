/* shown.c -- addresses without their secrets. */
#include "cli/shown.h"

#include "store/postgres/url.h"
#include <stdio.h>
#include <string.h>

bool is_address(const char *name) { return url_is_one(name); }

const char *shown(const char *name, char out[SHOWN_SIZE]) {
    if (!url_is_one(name)) return name;
    url_show(name, out, SHOWN_SIZE);
    return out;
}

const char *shown_word(const char *name, char out[SHOWN_SIZE]) {
    static const char special[] = " \t\n!\"#$&'()*;<>?[\\]`{|}~";
    char plain[SHOWN_SIZE];
    const char *text = shown(name, plain);
    bool quoted = !*text || strpbrk(text, special);
    size_t n = 0;
    if (quoted) out[n++] = '\'';
    for (; *text && n < SHOWN_SIZE - 6; text++) {
        if (*text == '\'') memcpy(out + n, "'\\'", 3), n += 3; /* 'it'\''s' */
        out[n++] = *text;
    }
    if (quoted) out[n++] = '\'';
    out[n] = '\0';
    return out;
}

/* What stands in front of "://", back to where a scheme may begin. */
static char *scheme_at(char *text, char *colon) {
    static const char *const schemes[] = { "postgresql", "postgres" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = strlen(schemes[i]);
        if ((size_t)(colon - text) >= n && !strncmp(colon - n, schemes[i], n)) return colon - n;
    }
    return NULL;
}

static void hide_one(char *at, char *end) {
    char plain[SHOWN_SIZE], after = *end;
    *end = '\0';
    url_show(at, plain, sizeof plain);
    *end = after;
    size_t n = strlen(plain);
    memcpy(at, plain, n);
    memmove(at + n, end, strlen(end) + 1);
}

void hide_passwords(char *text) {
    for (char *at = text; (at = strstr(at, "://")); at += 3) {
        char *begin = scheme_at(text, at);
        if (begin) hide_one(begin, begin + strcspn(begin, " \t\n\"'"));
    }
}
