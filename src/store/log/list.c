/* list.c -- head rows from an index, merged with what has changed since.
 *
 * Changed since are the documents of the tail, and those of our own commits that have no verdict yet:
 * a listing sees what its runtime sees. Both sides come in order of (id, scope, instance); where both
 * know a document the change is right. */
#include "store/log/list.h"

#include <stdlib.h>

typedef struct listed {
    doc_name name; /* of the value; texts of the tail or the replica */
    char kind[KIND_SIZE];
    uint64_t seq;
    uint32_t order; /* in which the tail and the replica have it */
    bool shown;     /* exists, and has the kind asked for */
} listed;

typedef struct listing {
    client *c;
    const struct key *space;
    const list_range *range;
    size_t prefix_length;
    VEC(listed) changed;
    uint32_t next; /* of them to be shown */
    hd_list_fn fn;
    void *ctx;
    bool stopped;
} listing;

static int by_name(const void *a, const void *b) {
    return doc_name_compare(&((const listed *)a)->name, &((const listed *)b)->name);
}

static int by_order(const void *a, const void *b) {
    const listed *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
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

static bool has_prefix(const listing *l, const doc_name *n) {
    return n->id_length >= l->prefix_length &&
           memcmp(n->id, l->range->prefix, l->prefix_length) == 0;
}

static bool concerns(const listing *l, const doc_name *n) {
    return doc_name_in_space(n, l->space) && has_prefix(l, n) &&
           strcmp(n->id, l->range->after) > 0 &&
           may_see(l->c, n->scope, n->instance, n->instance_length);
}

/* What this runtime sees there; *kept is to be released. */
static hd_status visible(client *c, const doc_name *name, hd_value *out, hd_value *kept,
                         uint64_t *seq) {
    place_id at = client_find(c, name);
    const place *p = at ? place_at(&c->r->places, at) : NULL;
    *kept = value_absent();
    if (p && (p->doc.flags & DOC_KNOWN || p->doc.over)) {
        *out = p->value;
        *seq = p->doc.seq;
        return HD_OK;
    }
    hd_status status = client_document(c, name, kept, seq);
    *out = *kept;
    return status;
}

/* A changed document as it is now. */
static hd_status look_up(listing *l, listed *item) {
    assert(!item->name.meta);
    doc_name beside = item->name;
    beside.meta = true;
    hd_value value, meta, kept[2] = { { 0 }, { 0 } };
    uint64_t ignored;
    hd_status status = visible(l->c, &item->name, &value, &kept[0], &item->seq);
    if (!status) status = visible(l->c, &beside, &meta, &kept[1], &ignored);
    if (!status) {
        const char *kind = hd_value_as_text(hd_value_at(meta, "kind"), "");
        item->kind[0] = '\0';
        strncat(item->kind, kind, sizeof item->kind - 1);
        item->shown = value_exists(value) && (!l->range->kind || strcmp(kind, l->range->kind) == 0);
    }
    value_unref(kept[0]);
    value_unref(kept[1]);
    return status;
}

static hd_status gather_name(listing *l, doc_name name) {
    if (!concerns(l, &name)) return HD_OK;
    name.meta = false; /* a change of metadata may change the kind */
    listed item = { .name = name, .order = l->changed.count };
    return vec_push(l->c->env, &l->changed, item) ? HD_OK : HD_NOMEM;
}

static hd_status gather_undecided(listing *l, const list *commits) {
    LIST_FOR (node, commits) {
        const commit *c = LIST_ENTRY(node, commit, link);
        for (uint32_t i = 0; i < c->writes.count; i++) {
            hd_status status = gather_name(l, client_name(l->c, c->writes.items[i].doc));
            if (status) return status;
        }
    }
    return HD_OK;
}

static void sort(listing *l, int (*compare)(const void *, const void *)) {
    if (l->changed.count) qsort(l->changed.items, l->changed.count, sizeof(listed), compare);
}

static void leave_out_doubles(listing *l) {
    uint32_t kept = 0;
    sort(l, by_name);
    for (uint32_t i = 0; i < l->changed.count; i++)
        if (!kept || by_name(&l->changed.items[kept - 1], &l->changed.items[i]))
            l->changed.items[kept++] = l->changed.items[i];
    l->changed.count = kept;
}

/* In the order in which they changed: documents of one row of the log are looked up one after the other, and the row
 * is parsed once. */
static hd_status look_all_up(listing *l) {
    hd_status status = HD_OK;
    sort(l, by_order);
    for (uint32_t i = 0; i < l->changed.count && !status; i++)
        status = look_up(l, &l->changed.items[i]);
    sort(l, by_name);
    return status;
}

static hd_status gather(listing *l) {
    assert(!l->changed.count);
    const tail *t = &l->c->tail;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < t->docs.count && !status; i++)
        status = gather_name(l, t->docs.items[i].name);
    if (!status) status = gather_undecided(l, &l->c->r->pending);
    if (!status) status = gather_undecided(l, &l->c->r->queued);
    if (status) return status;
    leave_out_doubles(l);
    return look_all_up(l);
}

static void show(const doc_name *name, const char *kind, uint64_t seq, listing *l) {
    if (l->stopped) return;
    hd_listing entry = { key_bytes(l->space), name->scope, name->id, kind, seq };
    l->stopped = !l->fn(&entry, l->ctx);
}

static void show_changed(listing *l, uint32_t i) {
    const listed *item = &l->changed.items[i];
    assert(!item->name.meta && i < l->changed.count);
    if (item->shown) show(&item->name, item->kind, item->seq, l);
}

/* Shows the changed documents that come before a stored one, and then that, if it has not changed. */
static hd_status merge(void *ctx, const head_item *item, bool *stop) {
    listing *l = ctx;
    int order = -1;
    if (!has_prefix(l, &item->name)) { /* beyond it: ids come in order */
        *stop = true;
        return HD_OK;
    }
    while (l->next < l->changed.count &&
           (order = doc_name_compare(&l->changed.items[l->next].name, &item->name)) < 0)
        show_changed(l, l->next++);
    bool changed = l->next < l->changed.count && order == 0; /* shown in its turn, as it is now */
    const doc_name *n = &item->name;
    if (!changed && concerns(l, n)) show(n, item->kind, (uint64_t)item->seq, l);
    *stop = l->stopped;
    return HD_OK;
}

static hd_status list_rows(listing *l) {
    log_store *s = l->c->store;
    assert(s->ops->in_transaction(s) && !l->next);
    row_text space = text_of_key(l->space);
    const list_range *r = l->range;
    const char *from = strcmp(r->after, r->prefix) > 0 ? r->after : r->prefix;
    hd_status status = s->ops->list_heads(s, space, r->kind, from, merge, l);
    while (!status && l->next < l->changed.count) show_changed(l, l->next++);
    return status;
}

hd_status client_list(client *c, struct key *space, const list_range *range, hd_list_fn fn,
                      void *ctx) {
    listing l = { .c = c,
                  .space = space,
                  .range = range,
                  .prefix_length = strlen(range->prefix),
                  .fn = fn,
                  .ctx = ctx };
    hd_status status = client_snapshot(c);
    if (!status) status = gather(&l);
    if (!status) status = list_rows(&l);
    vec_fini(c->env, &l.changed);
    return status;
}
