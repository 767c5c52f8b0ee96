/* footprint.c -- from the difference of two values to a list of touches. */
#include "store/footprint.h"

#include "base/env.h"
#include "value/array.h"
#include "value/diff.h"
#include "value/key.h"
#include "value/node.h"
#include <stdio.h>

#define FOOTPRINT_MAX 256 /* more touches than this in one document: it gets no exact footprint */
#define ELEMENTS_MAX  16  /* more than this at the end of an array become one touch */

typedef struct foot {
    replica *r;
    commit *c;
    uint32_t count;
    hd_status status;
} foot;

/* Owned; NULL: no memory. */
static struct key *key_of_index(hd_heap *heap, size_t index) {
    char text[24];
    int length = snprintf(text, sizeof text, "%zu", index);
    return key_intern(heap, text, (size_t)length);
}

static hd_status path_of_steps(hd_heap *heap, const diff_step *steps, size_t depth, hd_path *out) {
    hd_path at = path_ref(heap, HD_PATH_ROOT);
    for (size_t i = 0; i < depth; i++) {
        struct key *k = steps[i].key;
        if (k) key_ref(k);
        else k = key_of_index(heap, steps[i].index);
        hd_path next = 0;
        hd_status status = k ? path_child(heap, at, k, &next) : HD_NOMEM;
        key_unref(k);
        path_unref(heap, at);
        if (status) return status;
        at = next;
    }
    *out = at;
    return HD_OK;
}

/* Takes the path. False stops the walk. */
static bool push_path(foot *f, hd_path path, uint8_t flags) {
    assert(f->count <= FOOTPRINT_MAX);
    if (f->count++ == FOOTPRINT_MAX) { /* too many: the count says so */
        path_unref(f->r->heap, path);
        return false;
    }
    if (vec_push(f->r->env, &f->c->touches, ((touch){ path, flags }))) return true;
    path_unref(f->r->heap, path);
    f->status = HD_NOMEM;
    return false;
}

static bool push_element(foot *f, hd_path array, size_t index, uint8_t flags) {
    struct key *k = key_of_index(f->r->heap, index);
    hd_path path = 0;
    f->status = k ? path_child(f->r->heap, array, k, &path) : HD_NOMEM;
    key_unref(k);
    return !f->status && push_path(f, path, flags);
}

/* Elements that both arrays have are compared one by one (diff_walk). The others come or go: each is a touch,
 * or, if they are many, one touch stands for all from the first of them on. */
static bool push_rest(foot *f, hd_path array, hd_value before, hd_value after) {
    assert(value_is_array(before) && value_is_array(after));
    hd_value longer = array_count(before) < array_count(after) ? after : before;
    size_t to = array_count(longer), from = array_count(before) + array_count(after) - to;
    bool more = true;
    if (to - from > ELEMENTS_MAX) return push_element(f, array, from, TOUCH_REST);
    for (size_t i = from; i < to && more; i++) {
        bool leaf = value_is_leaf(array_get(longer, i));
        more = push_element(f, array, i, TOUCH_KEYS | (leaf ? TOUCH_LEAF : 0));
    }
    return more;
}

static bool add_foot(void *ctx, const diff_step *steps, size_t depth, hd_value before,
                     hd_value after) {
    foot *f = ctx;
    hd_path path;
    f->status = path_of_steps(f->r->heap, steps, depth, &path);
    if (f->status) return false;
    if (value_is_array(before) && value_is_array(after)) {
        bool more = push_rest(f, path, before, after);
        path_unref(f->r->heap, path);
        return more;
    }
    uint8_t flags = value_is_absent(before) || value_is_absent(after) ? TOUCH_KEYS : 0;
    if (value_is_leaf(before) && value_is_leaf(after)) flags |= TOUCH_LEAF;
    else if (depth == 0) flags |= TOUCH_WHOLE;
    return push_path(f, path, flags);
}

static hd_status add_exact(replica *r, commit *c, doc_write *fp, hd_value before, hd_value now) {
    foot f = { r, c, 0, HD_OK };
    hd_status status = diff_walk(r->heap, before, now, add_foot, &f);
    if (status || f.status) return HD_NOMEM;
    fp->exact = f.count <= FOOTPRINT_MAX;
    if (fp->exact) fp->touch_count = f.count;
    assert(fp->touch_count <= FOOTPRINT_MAX && c->touches.count >= fp->first_touch);
    while (c->touches.count > fp->first_touch + fp->touch_count)
        path_unref(r->heap, c->touches.items[--c->touches.count].path);
    return HD_OK;
}

/* The write without its touches; *before is what the replica shows without it, borrowed. */
static doc_write write_of(replica *r, const commit *c, place_id doc, hd_value *before) {
    assert(place_is_doc(&r->places, doc));
    assert(!c->writes.count || vec_last(&c->writes).doc != doc);
    const layer *top = replica_top(r, doc);
    hd_value confirmed = replica_confirmed(r, doc);
    *before = top ? top->after : confirmed;
    return (doc_write){ .doc = doc,
                        .basis = place_at(&r->places, doc)->doc.seq,
                        .under = top ? top->c->local_seq : 0,
                        .first_touch = c->touches.count,
                        .created = value_is_absent(confirmed) };
}

hd_status footprint_add(replica *r, commit *c, place_id doc, hd_value now, bool exact) {
    assert(!value_is_failed(now));
    hd_value before;
    doc_write fp = write_of(r, c, doc, &before);
    hd_status status = exact ? add_exact(r, c, &fp, before, now) : HD_OK;
    if (status) return status;
    return vec_push(r->env, &c->writes, fp) ? HD_OK : HD_NOMEM;
}

/* ---- by operations */

/* Whether the operation changes at most what is at its path and below it (op_plain_flags). */
static bool is_plain(const hd_heap *heap, hd_value before, const op *o) {
    hd_value there = value_get_path(heap, before, o->path);
    if (o->kind == OP_DELETE || o->kind == OP_REMOVE) return true;
    if (o->path == HD_PATH_ROOT) return !value_is_leaf(o->value);
    if (value_is_absent(there)) return false;
    return (o->kind != OP_SET && o->kind != OP_INCREMENT) || !value_is_leaf(o->value) ||
           value_is_leaf(there);
}

hd_status footprint_add_ops(replica *r, commit *c, place_id doc, uint32_t first) {
    assert(first < c->ops.count && c->ops.items[first].doc == doc);
    hd_value before;
    doc_write fp = write_of(r, c, doc, &before);
    fp.by_ops = FOOTPRINT_PLAIN;
    assert(!fp.touch_count); /* none is listed */
    for (uint32_t i = first; i < c->ops.count && fp.by_ops == FOOTPRINT_PLAIN; i++)
        if (!is_plain(r->heap, before, &c->ops.items[i])) fp.by_ops = FOOTPRINT_LOOSE;
    fp.exact = true;
    return vec_push(r->env, &c->writes, fp) ? HD_OK : HD_NOMEM;
}
