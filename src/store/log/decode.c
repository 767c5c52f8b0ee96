/* decode.c -- messages and log commits as submissions. */
#include "store/log/decode.h"

#include "store/log/encode.h"
#include "value/array.h"
#include "value/object.h"
#include "value/text.h"

/* ---- Reading a message ------------------------------------------------------------------- */

typedef struct cursor {
    const unsigned char *at, *end;
    bool bad;
} cursor;

static uint64_t take_long_varint(cursor *c) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->at == c->end) break;
        unsigned char byte = *c->at++;
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return v;
    }
    c->bad = true;
    return 0;
}

/* Most are small. */
static inline uint64_t take_varint(cursor *c) {
    if (c->at < c->end && *c->at < 0x80) return *c->at++;
    return take_long_varint(c);
}

/* A count of things that take at least a byte each: what is larger than the rest is no count. */
static uint32_t take_count(cursor *c) {
    uint64_t n = take_varint(c);
    if (n > (uint64_t)(c->end - c->at)) c->bad = true;
    return c->bad ? 0 : (uint32_t)n;
}

static const char *take_text(cursor *c, uint32_t *length) {
    *length = take_count(c);
    const char *text = (const char *)c->at;
    c->at += *length;
    assert(c->at <= c->end); /* take_count has seen to it */
    return text;
}

static uint32_t take_index(cursor *c, uint32_t count) {
    uint64_t i = take_varint(c);
    if (i >= count) c->bad = true;
    assert(c->bad || i < count);
    return c->bad ? 0 : (uint32_t)i;
}

/* ---- Making submissions ------------------------------------------------------------------ */

void decoder_init(decoder *d, heads *h, const hd_env *env) {
    assert(h && env);
    *d = (decoder){ .h = h };
    arena_init(&d->arena, env);
}

void decoder_reset(decoder *d) {
    for (uint32_t i = 0; i < d->held.count; i++) path_unref(d->h->heap, d->held.items[i]);
    vec_clear(&d->held);
    arena_reset(&d->arena);
}

void decoder_fini(decoder *d) {
    if (!d->h) return;
    decoder_reset(d);
    vec_fini(d->arena.env, &d->held);
    arena_fini(&d->arena);
    d->h = NULL;
}

#define NEW_ARRAY(d, T, n) ((T *)arena_alloc_array(&(d)->arena, (n) ? (n) : 1, sizeof(T)))

static hd_status hold_path(decoder *d, const char *text, size_t length, hd_path *out) {
    assert(d->h); /* between init and fini */
    if (!vec_room(d->arena.env, &d->held, 1)) return HD_NOMEM;
    hd_status status = path_parse(d->h->heap, text, length, out, NULL);
    if (status) return status == HD_NOMEM ? HD_NOMEM : HD_PROTOCOL;
    d->held.items[d->held.count++] = *out;
    return HD_OK;
}

/* The key of a text, held by `*out` until key_unref. */
static hd_status key_of(heads *h, const char *text, size_t length, struct key **out) {
    hd_status status = key_make(h->heap, text, length, out);
    return status == HD_OK || status == HD_NOMEM ? status : HD_PROTOCOL;
}

static hd_status space_of(decoder *d, const char *text, size_t length, uint32_t *out) {
    struct key *k;
    hd_status status = key_of(d->h, text, length, &k);
    if (status) return status;
    status = heads_space(d->h, k, out);
    key_unref(k);
    return status;
}

static hd_status head_of(decoder *d, uint32_t space_index, const doc_name *n, uint32_t *out) {
    assert(space_index < d->h->spaces.count && n->scope != HD_SCOPE_HERE);
    struct key *space = d->h->spaces.items[space_index].name, *instance = NULL, *id = NULL;
    hd_status status = key_of(d->h, n->id, n->id_length, &id);
    if (!status && n->scope != HD_SCOPE_SPACE)
        status = key_of(d->h, n->instance, n->instance_length, &instance);
    if (!status) status = heads_intern(d->h, space, n->scope, instance, n->meta, id, out);
    assert(status || d->h->heads.items[*out].space_index == space_index);
    key_unref(instance);
    key_unref(id);
    return status;
}

typedef struct message {
    cursor c;
    const char **space_text;
    uint32_t *space_length;
    doc_name *names;
    uint32_t *docs; /* head of each document */
    uint32_t doc_count;
    hd_path *paths; /* by number; the first is the root */
    uint32_t path_count;
} message;

static hd_status take_spaces(decoder *d, message *m, candidate *w) {
    w->space_count = take_count(&m->c);
    w->written = (uint32_t)take_varint(&m->c);
    if (w->written > w->space_count) m->c.bad = true;
    if (m->c.bad) return HD_PROTOCOL;
    w->spaces = NEW_ARRAY(d, uint32_t, w->space_count);
    m->space_text = NEW_ARRAY(d, const char *, w->space_count);
    m->space_length = NEW_ARRAY(d, uint32_t, w->space_count);
    if (!w->spaces || !m->space_text || !m->space_length) return HD_NOMEM;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < w->space_count && !status; i++) {
        m->space_text[i] = take_text(&m->c, &m->space_length[i]);
        status = m->c.bad ? HD_PROTOCOL
                          : space_of(d, m->space_text[i], m->space_length[i], &w->spaces[i]);
    }
    return status;
}

static hd_status take_docs(decoder *d, message *m, const candidate *w) {
    m->doc_count = take_count(&m->c);
    m->names = NEW_ARRAY(d, doc_name, m->doc_count);
    m->docs = NEW_ARRAY(d, uint32_t, m->doc_count);
    if (!m->names || !m->docs) return HD_NOMEM;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < m->doc_count && !status; i++) {
        uint32_t space = take_index(&m->c, w->space_count);
        uint64_t kind = take_varint(&m->c);
        doc_name *n = &m->names[i];
        *n = (doc_name){ .scope = (hd_scope)(kind >> 1), .meta = kind & 1 };
        n->instance = take_text(&m->c, &n->instance_length);
        n->id = take_text(&m->c, &n->id_length);
        if (m->c.bad || kind >> 1 > HD_SCOPE_SESSION || n->scope == HD_SCOPE_HERE)
            return HD_PROTOCOL;
        n->space = m->space_text[space];
        n->space_length = m->space_length[space];
        status = head_of(d, w->spaces[space], n, &m->docs[i]);
    }
    return status;
}

static hd_status take_paths(decoder *d, message *m) {
    uint32_t count = take_count(&m->c), length;
    if (m->c.bad) return HD_PROTOCOL;
    m->paths = NEW_ARRAY(d, hd_path, (size_t)count + 1);
    if (!m->paths) return HD_NOMEM;
    m->paths[0] = HD_PATH_ROOT; /* always there */
    m->path_count = count + 1;
    hd_status status = HD_OK;
    for (uint32_t i = 1; i <= count && !status; i++) {
        const char *text = take_text(&m->c, &length);
        status = m->c.bad ? HD_PROTOCOL : hold_path(d, text, length, &m->paths[i]);
    }
    return status;
}

static hd_path take_path(message *m) {
    assert(m->paths && m->path_count); /* the root is always there */
    return m->paths[take_index(&m->c, m->path_count)];
}

static hd_status take_touches(decoder *d, message *m, const touch **out, uint32_t *count) {
    *count = take_count(&m->c);
    touch *paths = NEW_ARRAY(d, touch, *count);
    if (!paths) return HD_NOMEM;
    for (uint32_t i = 0; i < *count; i++) {
        paths[i].flags = (uint8_t)take_varint(&m->c);
        paths[i].path = take_path(m);
    }
    *out = paths;
    return m->c.bad ? HD_PROTOCOL : HD_OK;
}

/* WRITE_PLAIN, WRITE_LOOSE: one path, of which follow two sets of flags, for each operation. */
static hd_status take_both(decoder *d, message *m, bool loose, sub_write *w) {
    uint32_t count = take_count(&m->c);
    touch *ops = NEW_ARRAY(d, touch, count), *exact = NEW_ARRAY(d, touch, count);
    if (!ops || !exact) return HD_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t flags = take_varint(&m->c);
        hd_path path = take_path(m);
        ops[i] = (touch){ path, flags % 32 };
        exact[i] = (touch){ path, loose ? (flags % 32) | TOUCH_WAY : flags / 32 % 32 };
    }
    w->ops = ops;
    w->exact = exact;
    w->op_count = w->exact_count = count;
    return m->c.bad ? HD_PROTOCOL : HD_OK;
}

static hd_status take_write(decoder *d, message *m, sub_write *w, doc_name *name) {
    uint32_t doc = take_index(&m->c, m->doc_count);
    uint64_t basis = take_varint(&m->c);
    uint64_t flags = take_varint(&m->c);
    uint64_t under = take_varint(&m->c);
    if (m->c.bad || !m->doc_count) return HD_PROTOCOL;
    *name = m->names[doc];
    *w = (sub_write){ .head = m->docs[doc],
                      .basis = basis,
                      .under = under,
                      .create = flags & WRITE_CREATE,
                      .delete_ = flags & WRITE_DELETE,
                      .anew = flags & WRITE_ANEW,
                      .footprint = flags & WRITE_EXACT ? FOOTPRINT_GIVEN : FOOTPRINT_COARSE };
    if (flags & (WRITE_PLAIN | WRITE_LOOSE)) return take_both(d, m, flags & WRITE_LOOSE, w);
    hd_status status = take_touches(d, m, &w->exact, &w->exact_count);
    return status ? status : take_touches(d, m, &w->ops, &w->op_count);
}

static hd_status take_writes(decoder *d, message *m, candidate *w) {
    uint32_t n = take_count(&m->c);
    sub_write *writes = NEW_ARRAY(d, sub_write, n);
    w->names = NEW_ARRAY(d, doc_name, n);
    w->seqs = NEW_ARRAY(d, uint64_t, n);
    if (!writes || !w->names || !w->seqs) return HD_NOMEM;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < n && !status; i++) status = take_write(d, m, &writes[i], &w->names[i]);
    w->sub.writes = writes;
    w->sub.write_count = n;
    return status;
}

static hd_status take_claim(message *m, const candidate *w, sub_claim *out) {
    uint64_t doc = take_varint(&m->c);
    if (m->c.bad || doc / 8 >= m->doc_count) return HD_PROTOCOL;
    *out = (sub_claim){
        .head = m->docs[doc / 8], .shape = doc & 1, .strict = doc & 2, .all = doc & 4
    };
    out->basis = take_varint(&m->c);
    out->path = take_path(m);
    out->first = take_varint(&m->c);
    out->last = out->first + take_varint(&m->c);
    bool sane = out->first <= out->last && out->last < w->sub.local_seq;
    return m->c.bad || !sane ? HD_PROTOCOL : HD_OK;
}

static hd_status take_claims(decoder *d, message *m, candidate *w) {
    uint32_t n = take_count(&m->c);
    sub_claim *claims = NEW_ARRAY(d, sub_claim, n);
    if (!claims) return HD_NOMEM;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < n && !status; i++) status = take_claim(m, w, &claims[i]);
    w->sub.claims = claims;
    w->sub.claim_count = n;
    return status;
}

static hd_status take_precondition(message *m, candidate *w, uint32_t index,
                                   sub_precondition *out) {
    *out = (sub_precondition){ .kind = (int)take_varint(&m->c) };
    if (out->kind == PRE_ORIGIN) {
        out->origin = take_varint(&m->c);
        return m->c.bad ? HD_PROTOCOL : HD_OK;
    }
    uint32_t doc = take_index(&m->c, m->doc_count);
    equal_check *e = &w->equals[w->equal_count];
    e->path = take_path(m);
    if (m->c.bad || !m->doc_count || m->c.end - m->c.at < (ptrdiff_t)sizeof e->hash)
        return HD_PROTOCOL;
    memcpy(e->hash, m->c.at, sizeof e->hash);
    m->c.at += sizeof e->hash;
    out->head = m->docs[doc];
    e->precondition = index;
    if (out->kind == PRE_EQUAL) w->equal_count++;
    return HD_OK;
}

static hd_status take_preconditions(decoder *d, message *m, candidate *w) {
    uint32_t n = take_count(&m->c);
    if (!n) return HD_OK;
    sub_precondition *all = NEW_ARRAY(d, sub_precondition, n);
    w->equals = NEW_ARRAY(d, equal_check, n);
    if (!all || !w->equals) return HD_NOMEM;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < n && !status; i++) status = take_precondition(m, w, i, &all[i]);
    w->sub.preconditions = all;
    w->sub.precondition_count = n;
    return status;
}

hd_status decode_message(decoder *d, uint32_t session, const char *bytes, size_t size,
                         candidate *out, size_t *used) {
    *out = (candidate){ 0 };
    uint32_t sizes[2];
    if (size < sizeof sizes) return HD_PROTOCOL;
    memcpy(sizes, bytes, sizeof sizes);
    if (sizes[0] > size || sizes[0] < MESSAGE_HEADER || sizes[1] > sizes[0] - MESSAGE_HEADER)
        return HD_PROTOCOL;
    *used = sizes[0];
    out->fragment_length = sizes[1];
    out->fragment = bytes + sizes[0] - sizes[1];
    assert(out->fragment >= bytes + MESSAGE_HEADER && out->fragment <= bytes + size);

    message m = { .c = { (const unsigned char *)bytes + MESSAGE_HEADER,
                         (const unsigned char *)out->fragment, false } };
    out->sub.session = session;
    out->sub.local_seq = take_varint(&m.c);
    out->sub.settled = take_varint(&m.c);
    out->heard = take_varint(&m.c);
    uint64_t class = take_varint(&m.c);
    out->sub.class = (hd_commit_class)(class / 4);
    out->refusal = (message_refusal)(class & 3);
    out->sub.payload = log_hash(out->fragment, out->fragment_length);
    hd_status status = m.c.bad ? HD_PROTOCOL : take_spaces(d, &m, out);
    if (!status) status = take_docs(d, &m, out);
    if (!status) status = take_paths(d, &m);
    if (!status) status = take_writes(d, &m, out);
    if (!status) status = take_claims(d, &m, out);
    if (!status) status = take_preconditions(d, &m, out);
    return !status && m.c.bad ? HD_PROTOCOL : status;
}

/* ---- Commits of the log ------------------------------------------------------------------ */

static hd_status log_touches(decoder *d, const log_doc *doc, const touch **out, uint32_t *count) {
    hd_value footprint = log_doc_footprint(doc->entry);
    *count = (uint32_t)hd_value_count(footprint);
    touch *paths = NEW_ARRAY(d, touch, *count);
    if (!paths || !vec_room(d->arena.env, &d->held, *count)) return HD_NOMEM;
    for (uint32_t i = 0; i < *count; i++) {
        hd_status status = log_touch_at(d->h->heap, footprint, i, &paths[i]);
        if (status) return status;
        d->held.items[d->held.count++] = paths[i].path;
    }
    *out = paths;
    return HD_OK;
}

/* By op_plain_flags, or by op_touch_flags and what is to be added to them. */
static hd_status log_op_touches(decoder *d, const log_doc *doc, bool plain, uint8_t more,
                                const touch **out, uint32_t *count) {
    *count = (uint32_t)log_doc_ops(doc);
    touch *paths = NEW_ARRAY(d, touch, *count);
    if (!paths || !vec_room(d->arena.env, &d->held, *count)) return HD_NOMEM;
    for (uint32_t i = 0; i < *count; i++) {
        log_op o;
        hd_status status = log_ops_at(d->h->heap, log_doc_op_list(doc), i, &o);
        if (status) return status;
        d->held.items[d->held.count++] = o.path;
        uint8_t flags =
            plain ? op_plain_flags(o.kind, o.path, o.value) : op_touch_flags(o.kind, o.path);
        paths[i] = (touch){ o.path, flags | more };
    }
    *out = paths;
    return HD_OK;
}

static hd_status log_write(decoder *d, const log_doc *doc, bool holds, sub_write *w) {
    *w = (sub_write){ .create = doc->created,
                      .delete_ = doc->deleted,
                      .anew = log_ops_start_anew(log_doc_op_list(doc)),
                      .footprint = holds ? FOOTPRINT_HOLDS : FOOTPRINT_COARSE };
    uint32_t space;
    hd_status status = space_of(d, doc->name.space, doc->name.space_length, &space);
    if (!status) status = head_of(d, space, &doc->name, &w->head);
    if (!status) status = log_op_touches(d, doc, false, 0, &w->ops, &w->op_count);
    if (status || !holds) return status;
    hd_value listed = log_doc_footprint(doc->entry);
    if (hd_value_kind(listed) == HD_KIND_ARRAY)
        return log_touches(d, doc, &w->exact, &w->exact_count);
    bool plain = !value_exists(listed);
    assert(w->footprint == FOOTPRINT_HOLDS);
    return log_op_touches(d, doc, plain, plain ? 0 : TOUCH_WAY, &w->exact, &w->exact_count);
}

static hd_status log_spaces(decoder *d, hd_value made, candidate *w) {
    w->space_count = w->written = (uint32_t)log_commit_spaces(made);
    w->spaces = NEW_ARRAY(d, uint32_t, w->space_count);
    if (!w->spaces) return HD_NOMEM;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < w->space_count && !status; i++) {
        const char *name;
        size_t length;
        uint64_t seq;
        status = log_commit_space(made, i, &name, &length, &seq)
                     ? space_of(d, name, length, &w->spaces[i])
                     : HD_CORRUPT;
    }
    return status;
}

/* A commit has one entry for each document that it changes. False: this is another one. */
static bool note_met(decoder *d, uint32_t index) {
    assert(index < d->h->heads.count && d->h->heads.items[index].met <= d->commits);
    head *h = &d->h->heads.items[index];
    bool first = h->met != d->commits;
    h->met = d->commits;
    return first;
}

static hd_status log_writes(decoder *d, const log_row *row, hd_value made, candidate *w,
                            sub_precondition *guards) {
    sub_write *writes = NEW_ARRAY(d, sub_write, log_commit_docs(made));
    w->names = NEW_ARRAY(d, doc_name, log_commit_docs(made));
    w->seqs = NEW_ARRAY(d, uint64_t, log_commit_docs(made));
    if (!writes || !w->names || !w->seqs) return HD_NOMEM;
    hd_status status = HD_OK;
    w->sub.writes = writes;
    for (; w->sub.write_count < log_commit_docs(made) && !status; w->sub.write_count++) {
        uint32_t i = w->sub.write_count;
        log_doc doc;
        if (!log_commit_doc(made, i, &doc)) return HD_CORRUPT;
        status = log_write(d, &doc, log_doc_footprint_holds(row, made, i), &writes[i]);
        if (!status && !note_met(d, writes[i].head)) status = HD_CORRUPT;
        w->names[i] = doc.name;
        w->seqs[i] = doc.seq;
        if (doc.guarded || doc.forgotten)
            guards[w->sub.precondition_count++] =
                (sub_precondition){ .kind = doc.guarded ? PRE_ABSENT : PRE_FORGET,
                                    .head = writes[i].head };
    }
    w->sub.preconditions = guards;
    return status;
}

hd_status decode_log_commit(decoder *d, const log_row *row, size_t i, candidate *out) {
    assert(i < log_row_commits(row));
    *out = (candidate){ 0 };
    hd_value made = log_row_commit(row, i);
    uint8_t session[16];
    hd_status status = log_commit_session(row, made, session);
    if (!status) status = heads_session(d->h, session, &out->sub.session);
    if (status) return status;
    d->commits++;
    assert(row->payloads.count == log_row_commits(row)); /* log_row_read has counted them */
    out->sub.local_seq = log_commit_local_seq(made);
    out->sub.settled = (uint64_t)hd_value_as_int(
        object_get_bytes(made, "z", 1), (int64_t)d->h->sessions.items[out->sub.session].settled);
    out->sub.class = log_commit_class(made);
    out->sub.payload = row->payloads.items[i];
    sub_precondition *guards = NEW_ARRAY(d, sub_precondition, log_commit_docs(made));
    if (!guards) return HD_NOMEM;
    status = log_spaces(d, made, out);
    if (!status) status = log_writes(d, row, made, out, guards);
    return status == HD_PROTOCOL ? HD_CORRUPT : status;
}
