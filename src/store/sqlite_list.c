/* sqlite_list.c -- head rows from an index, merged with what the tail has changed since.
 *
 * Both sides come in order of (id, scope, instance); where both know a document the tail is right. */
#include "store/sqlite_list.h"

typedef struct listed {
    const doc_name *name; /* in the tail */
    char kind[64];
    uint64_t seq;
    bool shown; /* exists, and has the kind asked for */
} listed;

typedef struct listing {
    client *c;
    const struct key *space;
    const char *kind, *prefix;
    size_t prefix_length;
    VEC(listed) changed;
    hd_list_fn fn;
    void *ctx;
    bool stopped;
} listing;

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_names(const doc_name *a, const doc_name *b) {
    int order = compare_text(a->id, a->id_length, b->id, b->id_length);
    if (!order) order = strcmp(scope_word(a->scope), scope_word(b->scope));
    return order ? order
                 : compare_text(a->instance, a->instance_length, b->instance, b->instance_length);
}

static void sink(listed *items, uint32_t root, uint32_t end) {
    for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
        if (child + 1 < end && compare_names(items[child].name, items[child + 1].name) < 0) child++;
        if (compare_names(items[root].name, items[child].name) >= 0) return;
        listed swap = items[root];
        items[root] = items[child];
        items[child] = swap;
    }
}

/* Heap sort: in place, no memory, no worst case. */
static void sort_listed(listed *items, uint32_t count) {
    for (uint32_t i = count / 2; i-- > 0;) sink(items, i, count);
    for (uint32_t end = count; end-- > 1;) {
        listed top = items[0];
        items[0] = items[end];
        items[end] = top;
        sink(items, 0, end);
    }
}

/* One principal's documents are not shown to another. */
static bool may_see(const client *c, hd_scope scope, const char *instance, size_t length) {
    if (scope == HD_SCOPE_SPACE) return true;
    const places *ps = &c->r->places;
    const struct key *whose = key_find(c->r->heap, instance, length);
    for (uint32_t i = 0; whose && i < ps->homes.count; i++)
        if (ps->homes.items[i].scope == scope && ps->homes.items[i].instance == whose) return true;
    return false;
}

static bool concerns(const listing *l, const doc_name *n) {
    return n->space_length == l->space->length &&
           memcmp(n->space, key_bytes(l->space), n->space_length) == 0 &&
           n->id_length >= l->prefix_length && memcmp(n->id, l->prefix, l->prefix_length) == 0 &&
           may_see(l->c, n->scope, n->instance, n->instance_length);
}

/* A changed document as it is now. */
static hd_status look_up(listing *l, const doc_name *given, listed *out) {
    client *c = l->c;
    doc_name name = *given, beside = *given;
    name.meta = false;
    beside.meta = true;
    hd_value value = value_absent(), meta = value_absent();
    uint64_t ignored;
    hd_status status = document_load(&c->file, c->r->heap, &c->tail, c->checkpoint, c->position,
                                     &name, &value, &out->seq);
    if (!status)
        status = document_load(&c->file, c->r->heap, &c->tail, c->checkpoint, c->position, &beside,
                               &meta, &ignored);
    const char *kind = hd_value_as_text(hd_value_at(meta, "kind"), "");
    out->name = given;
    out->kind[0] = '\0';
    strncat(out->kind, kind, sizeof out->kind - 1);
    out->shown = value_exists(value) && (!l->kind || strcmp(kind, l->kind) == 0);
    value_unref(value);
    value_unref(meta);
    return status;
}

static hd_status gather(listing *l) {
    const tail *t = &l->c->tail;
    for (uint32_t i = 0; i < t->docs.count; i++) {
        const doc_name *n = &t->docs.items[i].name;
        doc_name value = *n;
        value.meta = false;
        if (!concerns(l, n) || (n->meta && tail_find(t, &value))) continue; /* once is enough */
        listed item;
        hd_status status = look_up(l, n, &item);
        if (status) return status;
        if (!vec_push(l->c->env, &l->changed, item)) return HD_NOMEM;
    }
    sort_listed(l->changed.items, l->changed.count);
    return HD_OK;
}

static void show(listing *l, const doc_name *name, const char *kind, uint64_t seq) {
    if (l->stopped) return;
    hd_listing entry = { key_bytes(l->space), name->scope, name->id, kind, seq };
    l->stopped = !l->fn(l->ctx, &entry);
}

static void show_changed(listing *l, uint32_t i) {
    const listed *item = &l->changed.items[i];
    if (item->shown) show(l, item->name, item->kind, item->seq);
}

/* The row's name; false when it is beyond the prefix or not to be read. */
static bool row_name(const listing *l, sqlite3_stmt *s, doc_name *out) {
    *out = (doc_name){ .id = (const char *)sqlite3_column_text(s, 0),
                       .id_length = (uint32_t)sqlite3_column_bytes(s, 0),
                       .instance = (const char *)sqlite3_column_text(s, 2),
                       .instance_length = (uint32_t)sqlite3_column_bytes(s, 2) };
    const char *scope = (const char *)sqlite3_column_text(s, 1);
    if (!out->id || !out->instance || !scope) return false;
    out->scope = scope_of_word(scope);
    return out->id_length >= l->prefix_length && memcmp(out->id, l->prefix, l->prefix_length) == 0;
}

static hd_status merge(listing *l, sqlite3_stmt *s) {
    uint32_t next = 0;
    int rc = SQLITE_DONE;
    doc_name name;
    while (!l->stopped && (rc = sqlite3_step(s)) == SQLITE_ROW && row_name(l, s, &name)) {
        int order = -1;
        while (next < l->changed.count &&
               (order = compare_names(l->changed.items[next].name, &name)) < 0)
            show_changed(l, next++);
        if (next < l->changed.count && order == 0) continue; /* shown in its turn, as it is now */
        if (may_see(l->c, name.scope, name.instance, name.instance_length))
            show(l, &name, (const char *)sqlite3_column_text(s, 3),
                 (uint64_t)sqlite3_column_int64(s, 4));
    }
    while (next < l->changed.count) show_changed(l, next++);
    return rc == SQLITE_ROW ? HD_OK : file_status(rc);
}

static hd_status list_rows(listing *l) {
    sqlite3_stmt *s = file_sql_get(&l->c->file, l->kind ? SQL_LIST_KIND : SQL_LIST_ALL);
    if (!s) return file_status(sqlite3_extended_errcode(l->c->file.db));
    sqlite3_bind_text(s, 1, key_bytes(l->space), (int)l->space->length, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, l->prefix, (int)l->prefix_length, SQLITE_STATIC);
    if (l->kind) sqlite3_bind_text(s, 3, l->kind, -1, SQLITE_STATIC);
    hd_status status = merge(l, s);
    sqlite3_reset(s);
    return status;
}

hd_status client_list(client *c, struct key *space, const char *kind, const char *prefix,
                      hd_list_fn fn, void *ctx) {
    listing l = { .c = c,
                  .space = space,
                  .kind = kind && *kind ? kind : NULL,
                  .prefix = prefix ? prefix : "",
                  .fn = fn,
                  .ctx = ctx };
    l.prefix_length = strlen(l.prefix);
    hd_status status = client_snapshot(c);
    if (!status) status = gather(&l);
    if (!status) status = list_rows(&l);
    vec_fini(c->env, &l.changed);
    return status;
}
