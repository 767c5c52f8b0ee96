/* tail.c -- a table of names, with a list of rows for each. */
#include "store/log/tail.h"

#include "base/env.h"

static size_t name_size(const doc_name *n) {
    return (size_t)n->space_length + n->instance_length + n->id_length + 3;
}

static const char *keep(char **at, const char *text, uint32_t length) {
    char *kept = *at;
    memcpy(kept, text, length);
    kept[length] = '\0';
    *at += length + 1;
    return kept;
}

void tail_init(tail *t, const hd_env *env) {
    assert(env);
    *t = (tail){ .env = env };
    table_init(&t->by_name, env);
}

static void doc_fini(tail *t, tail_doc *d) {
    env_free(t->env, d->memory, name_size(&d->name));
    vec_fini(t->env, &d->at);
}

void tail_fini(tail *t) {
    if (!t->env) return;
    for (uint32_t i = 0; i < t->docs.count; i++) doc_fini(t, &t->docs.items[i]);
    vec_fini(t->env, &t->docs);
    table_fini(&t->by_name);
    t->env = NULL;
}

static uint32_t find(const tail *t, const doc_name *name, uint32_t hash) {
    for (table_probe p = table_find(&t->by_name, hash); table_next(&t->by_name, &p);)
        if (doc_name_equal(&t->docs.items[p.index].name, name)) return p.index;
    return TABLE_NONE;
}

const tail_doc *tail_find(const tail *t, const doc_name *name) {
    uint32_t i = find(t, name, doc_name_hash(name));
    return i == TABLE_NONE ? NULL : &t->docs.items[i];
}

static hd_status doc_new(tail *t, const doc_name *name, uint32_t hash, uint32_t *out) {
    assert(name->scope != HD_SCOPE_HERE);
    tail_doc d = { .name = *name, .hash = hash };
    d.memory = env_new(t->env, name_size(name));
    if (!d.memory) return HD_NOMEM;
    char *at = d.memory;
    d.name.space = keep(&at, name->space, name->space_length);
    d.name.instance = keep(&at, name->instance, name->instance_length);
    d.name.id = keep(&at, name->id, name->id_length);
    if (!vec_room(t->env, &t->docs, 1) || table_insert(&t->by_name, hash, t->docs.count)) {
        doc_fini(t, &d);
        return HD_NOMEM;
    }
    *out = t->docs.count;
    t->docs.items[t->docs.count++] = d;
    return HD_OK;
}

static void doc_drop(tail *t, uint32_t i) {
    assert(i < t->docs.count);
    tail_doc *d = &t->docs.items[i];
    table_remove(&t->by_name, d->hash, i);
    doc_fini(t, d);
    uint32_t last = t->docs.count - 1;
    if (i != last) {
        t->docs.items[i] = t->docs.items[last];
        table_move(&t->by_name, t->docs.items[i].hash, last, i);
    }
    t->docs.count = last;
}

hd_status tail_add(tail *t, const doc_name *name, uint64_t row, uint64_t seq) {
    assert(row); /* seq: 0 where repair collects names */
    assert(name->scope != HD_SCOPE_HERE);
    uint32_t hash = doc_name_hash(name);
    uint32_t i = find(t, name, hash);
    hd_status status = i == TABLE_NONE ? doc_new(t, name, hash, &i) : HD_OK;
    if (status) return status;
    tail_doc *d = &t->docs.items[i];
    if (d->at.count && vec_last(&d->at).row == row) {
        if (vec_last(&d->at).seq < seq) vec_last(&d->at).seq = seq; /* else the row is told again */
        return HD_OK;
    }
    assert(!d->at.count || vec_last(&d->at).row < row);
    assert(!d->at.count || vec_last(&d->at).seq < seq); /* of one space, which only moves forward */
    if (row <= t->trimmed) t->trimmed = row - 1; /* an earlier part of the log is read again */
    if (vec_push(t->env, &d->at, ((tail_at){ row, seq }))) return HD_OK;
    if (!d->at.count) doc_drop(t, i); /* a document in the table has at least one row */
    return HD_NOMEM;
}

void tail_take_back(tail *t, const doc_name *name, uint64_t row) {
    uint32_t i = find(t, name, doc_name_hash(name));
    assert(row > t->trimmed);
    if (i == TABLE_NONE || vec_last(&t->docs.items[i].at).row != row) return;
    if (!--t->docs.items[i].at.count) doc_drop(t, i);
}

static uint32_t rows_through(const tail_doc *d, uint64_t row) {
    uint32_t n = 0;
    while (n < d->at.count && d->at.items[n].row <= row) n++;
    return n;
}

void tail_trim(tail *t, uint64_t row) {
    assert(t->env);
    if (row <= t->trimmed) return;
    t->trimmed = row;
    for (uint32_t i = t->docs.count; i-- > 0;) {
        tail_doc *d = &t->docs.items[i];
        uint32_t gone = rows_through(d, row);
        if (gone == d->at.count) {
            doc_drop(t, i);
        } else if (gone) {
            memmove(d->at.items, d->at.items + gone, (d->at.count - gone) * sizeof *d->at.items);
            d->at.count -= gone;
        }
    }
}

void tail_check(const tail *t) {
    assert(table_count(&t->by_name) == t->docs.count);
    for (uint32_t i = 0; i < t->docs.count; i++) {
        const tail_doc *d = &t->docs.items[i];
        assert(find(t, &d->name, d->hash) == i);
        for (uint32_t k = 1; k < d->at.count; k++) {
            assert(d->at.items[k - 1].row < d->at.items[k].row);
            assert(d->at.items[k - 1].seq < d->at.items[k].seq);
        }
        assert(d->at.count && d->at.items[0].row > t->trimmed);
        assert(d->hash == doc_name_hash(&d->name) && d->name.scope != HD_SCOPE_HERE);
        (void)d;
    }
}
