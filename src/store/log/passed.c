/* passed.c -- see passed.h. */
#include "store/log/passed.h"

void passed_init(passed_rows *p, const hd_env *env) {
    *p = (passed_rows){ 0 };
    json_buffer_init(&p->texts, env);
}

void passed_fini(passed_rows *p, const hd_env *env) {
    vec_fini(env, &p->rows);
    p->texts.env = env; /* the one that it was made with may be gone */
    json_buffer_fini(&p->texts);
}

void passed_clear(passed_rows *p) {
    vec_clear(&p->rows);
    p->texts.length = 0;
}

void passed_add(passed_rows *p, const hd_env *env, const log_text *text) {
    size_t at = p->texts.length;
    assert(text->row && at <= PASSED_MAX);
    if (p->rows.count && vec_last(&p->rows).row + 1 != text->row) passed_clear(p), at = 0;
    passed_row row = { text->row, text->hash, at, text->body.length };
    bool good = row.length <= PASSED_MAX - at &&
                json_buffer_add(&p->texts, text->body.bytes, row.length) &&
                vec_push(env, &p->rows, row);
    if (!good) passed_clear(p);
}

bool passed_has(const passed_rows *p, uint64_t after, uint64_t until) {
    return p->rows.count && after < until && p->rows.items[0].row <= after + 1 &&
           vec_last(&p->rows).row >= until;
}

log_text passed_get(const passed_rows *p, uint64_t row) {
    assert(passed_has(p, row - 1, row));
    const passed_row *r = &p->rows.items[row - p->rows.items[0].row];
    assert(r->row == row && r->at + r->length <= p->texts.length);
    return (log_text){ r->row, r->hash, { p->texts.bytes + r->at, r->length } };
}
