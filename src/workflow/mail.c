/* mail.c -- signals that came before anything waited for them.
 *
 * The document of an instance has them in `signals`, [name, payload] by number; numbers grow, and have eight
 * hexadecimal digits, so that they are in order there. A save writes those that have come, and removes those that a
 * step has taken: its cost does not depend on how many are kept. */
#include "workflow/engine.h"

#include "base/hex.h"
#include <stdio.h>
#include <string.h>

#define PART "signals"

typedef struct mail_key {
    char digits[9];
} mail_key;

static mail_key key_of(uint32_t number) {
    mail_key k;
    snprintf(k.digits, sizeof k.digits, "%08x", number);
    return k;
}

/* No instance is given so many signals that their numbers fill all digits. */
static bool number_of(const char *key, uint32_t *out) {
    uint64_t n;
    if (strlen(key) != 8 || !hex_read(key, 8, &n) || !n || n > UINT32_MAX / 2) return false;
    *out = (uint32_t)n;
    return true;
}

static void free_mail(hd_engine *e, mail *m) {
    engine_free_text(e, m->name);
    hd_value_unref(m->payload);
}

static hd_status add(live *l, hd_value name, hd_value payload, uint32_t number) {
    hd_engine *e = l->e;
    mail m = { engine_text(e, hd_value_as_text(name, "")), hd_value_ref(payload), number };
    if (m.name && vec_push(e->env, &l->mail.kept, m)) return HD_OK;
    free_mail(e, &m);
    return HD_NOMEM;
}

hd_status mail_add(live *l, hd_value name, hd_value payload) {
    hd_status status =
        add(l, name, hd_value_exists(payload) ? payload : hd_null(), l->mail.last + 1);
    l->mail.last += !status;
    return status;
}

hd_status mail_load(live *l, hd_value document) {
    mailbox *box = &l->mail;
    hd_value all = hd_value_at(document, PART);
    bool listed = hd_value_kind(all) == HD_KIND_ARRAY; /* until decision 0630 */
    assert(!box->kept.count && !box->last);
    box->in_document = hd_value_exists(all);
    if (box->in_document && !listed && hd_value_kind(all) != HD_KIND_OBJECT) return HD_CORRUPT;
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it);) {
        if (listed) box->last++;
        else if (!number_of(it.key, &box->last)) return HD_CORRUPT;
        hd_value name = hd_value_index(it.value, 0), payload = hd_value_index(it.value, 1);
        if (hd_value_kind(name) != HD_KIND_STRING || !hd_value_exists(payload)) return HD_CORRUPT;
        hd_status status = add(l, name, payload, box->last);
        if (status) return status;
    }
    box->stored = listed ? 0 : box->last; /* the next save writes a list anew */
    return HD_OK;
}

void mail_leave(live *l, hd_value document) {
    l->mail.in_document = hd_value_exists(hd_value_at(document, PART));
}

hd_status mail_take(live *l, uint32_t at, hd_value *payload) {
    mailbox *box = &l->mail;
    mail *m = &box->kept.items[at];
    if (m->number <= box->stored && !vec_push(l->e->env, &box->taken, m->number)) return HD_NOMEM;
    *payload = hd_value_ref(m->payload);
    free_mail(l->e, m);
    vec_remove(&box->kept, at);
    return HD_OK;
}

static void drop_kept(live *l) {
    while (l->mail.kept.count) free_mail(l->e, &vec_pop(&l->mail.kept));
    l->mail.offered = 0;
}

void mail_forget(live *l) {
    drop_kept(l);
    vec_fini(l->e->env, &l->mail.kept);
    vec_fini(l->e->env, &l->mail.taken);
    l->mail = (mailbox){ 0 };
}

static hd_status write_at(const doc_writer *out, doc_op how, uint32_t number, hd_value value) {
    mail_key k = key_of(number);
    const char *path[] = { PART, k.digits };
    return out->write(out->ctx, how, path, 2, value);
}

static hd_status remove_all(mailbox *box, const doc_writer *out) {
    static const char *const path[] = { PART };
    bool there = box->in_document;
    box->in_document = false;
    return there ? out->write(out->ctx, DOC_REMOVE, path, 1, (hd_value){ 0 }) : HD_OK;
}

/* Those that have come since the last save are at the end. */
static hd_status write_new(mailbox *box, hd_pool *pool, const doc_writer *out) {
    hd_status status = HD_OK;
    uint32_t from = box->kept.count;
    while (from && box->kept.items[from - 1].number > box->stored) from--;
    for (uint32_t i = from; i < box->kept.count && !status; i++) {
        const mail *m = &box->kept.items[i];
        hd_value pair[] = { hd_string(pool, m->name), m->payload };
        status = write_at(out, DOC_SET, m->number, hd_array_of(pool, pair, 2));
        box->in_document = true;
    }
    return status;
}

hd_status mail_save(live *l, hd_pool *pool, const doc_writer *out) {
    mailbox *box = &l->mail;
    if (l->in->status == INSTANCE_DONE) drop_kept(l);
    /* No signal in the document is still kept: the part is replaced whole. */
    bool anew = !box->kept.count || !box->stored;
    hd_status status = anew ? remove_all(box, out) : HD_OK;
    for (uint32_t i = 0; i < box->taken.count && !anew && !status; i++)
        status = write_at(out, DOC_REMOVE, box->taken.items[i], (hd_value){ 0 });
    if (!status) status = write_new(box, pool, out);
    vec_clear(&box->taken);
    box->stored = box->last;
    return status;
}
