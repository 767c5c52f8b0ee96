/* url.c -- taking an address apart. libpq checks it; this file finds the schema, the password and what is shown. */
#define _GNU_SOURCE
#include "store/postgres/url.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *after_scheme(const char *name) {
    static const char *const schemes[] = { "postgresql://", "postgres://" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(name, schemes[i], strlen(schemes[i])) == 0) return name + strlen(schemes[i]);
    return NULL;
}

bool url_is_one(const char *name) { return after_scheme(name) != NULL; }

/* "password=", "password = ". */
static bool has_password(const char *name) {
    for (const char *at = name; (at = strcasestr(at, "password"));) {
        at += strlen("password");
        if (at[strspn(at, " \t")] == '=') return true;
    }
    return false;
}

bool url_is_misspelt(const char *name) {
    if (url_is_one(name)) return false;
    bool postgres = strncasecmp(name, "postgres", strlen("postgres")) == 0;
    const char *colon = postgres ? strchr(name, ':') : NULL;
    return strstr(name, "://") || (colon && strpbrk(colon, "/@")) || has_password(name);
}

/* A part of the address. */
typedef struct span {
    const char *at;
    size_t length;
} span;

/* ---- Percent signs -------------------------------------------------------------------------- */

static int hex(char c) { return isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10; }

/* A percent sign with two hexadecimal digits behind it stands at `at`. */
static bool is_written(span from, size_t at) {
    const char *c = from.at + at;
    return *c == '%' && at + 2 < from.length && isxdigit((unsigned char)c[1]) &&
           isxdigit((unsigned char)c[2]);
}

/* The byte at *at, with its percent sign resolved; *at moves behind it. */
static char resolved(span from, size_t *at) {
    const char *c = from.at + *at;
    bool written = is_written(from, *at);
    *at += written ? 3 : 1;
    return written ? (char)(hex(c[1]) * 16 + hex(c[2])) : *c;
}

/* Every percent sign has two hexadecimal digits behind it. */
static bool is_well_written(span from) {
    for (size_t i = 0; i < from.length; i++)
        if (from.at[i] == '%' && !is_written(from, i)) return false;
    return true;
}

/* Percent signs resolved; cut to size - 1 bytes. Returns the length without the cut. */
static size_t decode(span from, char *out, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < from.length; n++) {
        char c = resolved(from, &i);
        if (n + 1 < size) out[n] = c;
    }
    assert(size && n <= from.length);
    out[n < size ? n : size - 1] = '\0';
    return n;
}

/* ---- Parameters ----------------------------------------------------------------------------- */

static span name_of(span parameter) {
    const char *end = memchr(parameter.at, '=', parameter.length);
    return (span){ parameter.at, end ? (size_t)(end - parameter.at) : parameter.length };
}

static span value_of(span parameter) {
    size_t skip = name_of(parameter).length;
    if (skip < parameter.length) skip++;
    return (span){ parameter.at + skip, parameter.length - skip };
}

/* libpq resolves percent signs in names, too. */
static bool is_named(span parameter, const char *name) {
    char text[32];
    span written = name_of(parameter);
    return written.length < parameter.length &&
           decode(written, text, sizeof text) == strlen(name) && !strcmp(text, name);
}

/* Its value is not shown: it is a password, or may be one, since its name is misspelt ("Password", "pass%7word"). */
static bool is_secret(span parameter) {
    char text[64];
    span name = name_of(parameter);
    (void)decode(name, text, sizeof text);
    return strcasestr(text, "password") || !is_well_written(name);
}

/* The next name=value behind '?' or '&'; *at moves behind it. */
static bool next_parameter(const char **at, span *out) {
    if (!**at) return false;
    assert(**at == '?' || **at == '&');
    out->at = *at + 1;
    out->length = strcspn(out->at, "&");
    *at = out->at + out->length;
    return true;
}

static const char *last_at_sign(const char *from, size_t length) {
    while (length && from[length - 1] != '@') length--;
    return length ? from + length - 1 : NULL;
}

/* Where the password between user and host begins and ends; length 0: there is none. One with a '/', '?' or '@'
 * in it that is not written as %2F, %3F or %40 makes the address wrong; it must not be shown all the same. An '@'
 * behind a '?' and a '=' belongs to a parameter, if there is another '@' before the '?'. */
static span user_password(const char *name) {
    const char *rest = after_scheme(name);
    assert(rest); /* url_is_one */
    const char *query = rest + strcspn(rest, "?"), *last = last_at_sign(rest, strlen(rest));
    bool in_query = last && last > query && memchr(query, '=', (size_t)(last - query));
    const char *end = in_query ? last_at_sign(rest, (size_t)(query - rest)) : last;
    if (!end) end = last;
    const char *colon = end ? memchr(rest, ':', (size_t)(end - rest)) : NULL;
    return colon ? (span){ colon + 1, (size_t)(end - colon - 1) } : (span){ rest, 0 };
}

/* ---- What is shown ------------------------------------------------------------------------- */

typedef struct writing {
    char *out;
    size_t size, length;
} writing;

static void put(writing *w, const char *text, size_t length) {
    assert(w->length < w->size);
    for (size_t i = 0; i < length && w->length + 1 < w->size; i++) w->out[w->length++] = text[i];
    w->out[w->length] = '\0';
}

void url_show(const char *name, char *out, size_t size) {
    writing w = { out, size, 0 };
    span password = user_password(name), p;
    const char *host = password.length ? password.at + password.length : name;
    const char *query = host + strcspn(host, "?");
    char mark = '?';
    if (password.length) put(&w, name, (size_t)(password.at - 1 - name));
    put(&w, host, (size_t)(query - host));
    while (next_parameter(&query, &p)) {
        if (is_secret(p)) continue;
        put(&w, &mark, 1);
        put(&w, p.at, p.length);
        mark = '&';
    }
}

/* ---- What libpq gets ------------------------------------------------------------------------ */

static hd_status take_schema(url *u, span p, hd_error *error) {
    assert(is_named(p, "schema"));
    if (!is_well_written(value_of(p))) {
        env_error(error, HD_USAGE, "%s: the schema has a bad %%: two hexadecimal digits follow it",
                  u->shown);
        return HD_USAGE;
    }
    size_t n = decode(value_of(p), u->schema, sizeof u->schema);
    if (!strcmp(u->schema, "$user")) { /* search_path takes it for the user's name, quoted or not */
        env_error(error, HD_USAGE, "%s: $user is no name of a schema: name the user's", u->shown);
        return HD_USAGE;
    }
    if (n && n < sizeof u->schema && strlen(u->schema) == n) return HD_OK;
    env_error(error, HD_USAGE, "%s: a schema needs a name of at most %d bytes, none of them 0",
              u->shown, URL_SCHEMA_SIZE - 1);
    return HD_USAGE;
}

static hd_status take_answer_timeout(url *u, span p, hd_error *error) {
    uint32_t seconds = 0;
    span value = value_of(p);
    bool good = value.length > 0;
    for (size_t i = 0; good && i < value.length; i++) {
        good = isdigit((unsigned char)value.at[i]);
        seconds = seconds * 10 + (uint32_t)(value.at[i] - '0');
        good = good && seconds <= URL_ANSWER_MAX_S;
    }
    u->answer_s = seconds;
    if (good) return HD_OK;
    env_error(error, HD_USAGE, "%s: answer_timeout is a whole number of seconds, at most %d",
              u->shown, URL_ANSWER_MAX_S);
    return HD_USAGE;
}

static hd_status refuse_twice(const url *u, const char *parameter, hd_error *error) {
    env_error(error, HD_USAGE, "%s: %s is given twice", u->shown, parameter);
    return HD_USAGE;
}

static hd_status split(url *u, const char *name, hd_error *error) {
    writing w = { u->text, u->size, 0 };
    const char *query = name + strcspn(name, "?");
    hd_status status = HD_OK;
    char mark = '?';
    bool has_schema = false, has_timeout = false;
    span p;
    put(&w, name, (size_t)(query - name));
    while (!status && next_parameter(&query, &p)) {
        if (is_named(p, "schema")) {
            status = has_schema ? refuse_twice(u, "schema", error) : take_schema(u, p, error);
            has_schema = true;
            continue;
        }
        if (is_named(p, "answer_timeout")) {
            status = has_timeout ? refuse_twice(u, "answer_timeout", error)
                                 : take_answer_timeout(u, p, error);
            has_timeout = true;
            continue;
        }
        put(&w, &mark, 1);
        put(&w, p.at, p.length);
        mark = '&';
    }
    return status;
}

/* libpq would take such bytes for parts of the address, and quote them in its messages. */
static hd_status refuse_password(const url *u, const char *name, hd_error *error) {
    span password = user_password(name);
    if (!password.length || strcspn(password.at, "/?@") >= password.length) return HD_OK;
    env_error(error, HD_USAGE, "%s: in a password '/' is written %%2F, '?' %%3F and '@' %%40",
              u->shown);
    return HD_USAGE;
}

hd_status url_init(url *u, const char *name, const hd_env *env, hd_error *error) {
    *u = (url){ .size = strlen(name) + 1, .schema = "heddle", .answer_s = URL_ANSWER_S };
    url_show(name, u->shown, sizeof u->shown);
    if (refuse_password(u, name, error)) return HD_USAGE;
    u->text = env_new0(env, u->size);
    hd_status status = u->text ? split(u, name, error) : HD_NOMEM;
    if (status) url_fini(u, env);
    return status;
}

void url_fini(url *u, const hd_env *env) {
    env_free(env, u->text, u->size);
    u->text = NULL;
}

/* ---- Secrets -------------------------------------------------------------------------------- */

/* So many bytes of a secret at the end of a text are hidden, too: the text may have been cut there. */
enum { CUT_LEAST = 3 };

/* How many bytes at the beginning of the text are the secret, as it is written or resolved; 0: they are not. */
static size_t match(const char *text, span secret, bool as_written) {
    size_t n = 0;
    for (size_t i = 0; i < secret.length; n++) {
        char c = as_written ? secret.at[i++] : resolved(secret, &i);
        if (!text[n]) return n >= CUT_LEAST ? n : 0;
        if (text[n] != c) return 0;
    }
    return n;
}

static void hide(char *text, span secret, bool as_written) {
    while (*text) {
        size_t n = match(text, secret, as_written);
        memset(text, '*', n);
        text += n ? n : 1;
    }
}

static void hide_span(char *text, span secret) {
    hide(text, secret, false);
    hide(text, secret, true);
}

void url_hide(const url *u, char *text) {
    const char *query = u->text + strcspn(u->text, "?");
    span password = user_password(u->text), p;
    if (password.length) hide_span(text, password);
    while (next_parameter(&query, &p)) {
        if (is_secret(p)) hide_span(text, value_of(p));
    }
}
