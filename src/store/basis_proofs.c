/* basis_proofs.c -- proofs in the text of a commit: found at its end, and read where they stand. */
#define _GNU_SOURCE /* memrchr */
#include "store/basis_proofs.h"

#include "store/basis_name.h"
#include "value/json_scan.h"
#include <string.h>

/* The string at *p, and what must stand behind it; *p goes behind both. */
static bool take_string(const char **p, const char *end, char follow, const char **text,
                        size_t *length) {
    if (end - *p < 3 || **p != '"') return false;
    *text = *p + 1;
    const char *quote = json_skip_plain(*text, end);
    if (end - quote < 2 || quote[0] != '"' || quote[1] != follow) return false;
    *length = (size_t)(quote - *text);
    *p = quote + 2;
    return true;
}

static bool take_proof(const char **p, const char *end, basis_proof *out) {
    if (end - *p < 2 || **p != '[') return false;
    ++*p;
    return take_string(p, end, ',', &out->name, &out->name_length) &&
           take_string(p, end, ',', &out->instance, &out->instance_length) &&
           take_string(p, end, ']', &out->mark, &out->mark_length);
}

static bool proof_is_well_formed(const basis_proof *r) {
    return r->mark_length && basis_piece_length(r->name, r->name_length) &&
           basis_is_instance(r->instance, r->instance_length);
}

/* Reading from the last '{' on to the commit's very end tells an extra from a value in the commit that
 * looks like one: behind that, more brackets would have to close. */
basis_proofs basis_proofs_of(const char *made, size_t length) {
    static const char front[] = ",\"x\":", inside[] = "{\"nodes\":[", close[] = "]}}";
    const basis_proofs none = { NULL, NULL, NULL };
    const char *end = made + length, *p = memrchr(made, '{', length);
    if (!p || p - made < (ptrdiff_t)sizeof front || end - p < (ptrdiff_t)sizeof inside) return none;
    basis_proofs all = { p - (sizeof front - 1), p + sizeof inside - 1, end };
    if (memcmp(all.begin, front, sizeof front - 1) || memcmp(p, inside, sizeof inside - 1))
        return none;
    basis_proof r;
    p = all.at;
    do {
        if (!take_proof(&p, end, &r) || !proof_is_well_formed(&r)) return none;
    } while (p < end && *p == ',' && p++);
    return end - p == sizeof close - 1 && !memcmp(p, close, sizeof close - 1) ? all : none;
}

/* The string behind the quote at *p, known to be plain; *p goes behind it and what follows. */
static const char *next_string(const char **p, const char *end, size_t *length) {
    const char *text = *p + 1, *quote = memchr(text, '"', (size_t)(end - text));
    *length = (size_t)(quote - text);
    *p = quote + 2;
    return text;
}

bool basis_proofs_next(basis_proofs *p, basis_proof *out) {
    if (*p->at != '[') return false;
    const char *at = p->at + 1;
    out->name = next_string(&at, p->end, &out->name_length);
    out->instance = next_string(&at, p->end, &out->instance_length);
    out->mark = next_string(&at, p->end, &out->mark_length);
    p->at = at + (*at == ',');
    return true;
}
