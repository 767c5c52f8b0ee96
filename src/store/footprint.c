/* footprint.c -- which places a commit changes in a document. */
#include "store/footprint.h"

#include "base/env.h"
#include "value/array.h"
#include "value/diff.h"
#include "value/key.h"
#include <stdio.h>

#define FOOTPRINT_MAX 64 /* more places than this in one document: the operations' paths will do */

typedef struct foot {
    replica *r;
    commit *c;
    uint32_t count;
    hd_status status;
} foot;

static hd_status path_of_steps(hd_heap *heap, const diff_step *steps, size_t depth, hd_path *out) {
    hd_path at = path_ref(heap, HD_PATH_ROOT);
    for (size_t i = 0; i < depth; i++) {
        char text[24];
        struct key *k = steps[i].key;
        if (!k) {
            int length = snprintf(text, sizeof text, "%zu", steps[i].index);
            k = key_intern(heap, text, (size_t)length);
        } else {
            key_ref(k);
        }
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

static bool is_array(hd_value v) { return value_tag(v) == TAG_ARRAY; }

/* Elements that both have are told one by one; this is about the others. */
static hd_status path_of_rest(hd_heap *heap, const diff_step *steps, size_t depth, size_t common,
                              hd_path *out) {
    char text[24];
    hd_path array;
    hd_status status = path_of_steps(heap, steps, depth, &array);
    if (status) return status;
    int length = snprintf(text, sizeof text, "%zu", common);
    struct key *k = key_intern(heap, text, (size_t)length);
    status = k ? path_child(heap, array, k, out) : HD_NOMEM;
    key_unref(k);
    path_unref(heap, array);
    return status;
}

static hd_status touched_of(hd_heap *heap, const diff_step *steps, size_t depth, hd_value before,
                            hd_value after, touched *out) {
    if (is_array(before) && is_array(after)) {
        size_t a = array_count(before), b = array_count(after);
        out->flags = TOUCH_REST;
        return path_of_rest(heap, steps, depth, a < b ? a : b, &out->path);
    }
    bool keys = value_is_absent(before) || value_is_absent(after);
    out->flags = (uint8_t)((keys ? TOUCH_KEYS : 0) | (depth == 0 ? TOUCH_WHOLE : 0));
    return path_of_steps(heap, steps, depth, &out->path);
}

static bool add_foot(void *ctx, const diff_step *steps, size_t depth, hd_value before,
                     hd_value after) {
    foot *f = ctx;
    if (f->count == FOOTPRINT_MAX) {
        f->count++; /* too many: told by the count */
        return false;
    }
    touched t;
    f->status = touched_of(f->r->heap, steps, depth, before, after, &t);
    if (f->status) return false;
    if (!vec_push(f->r->env, &f->c->paths, t)) {
        path_unref(f->r->heap, t.path);
        f->status = HD_NOMEM;
        return false;
    }
    f->count++;
    return true;
}

static hd_status add_account(replica *r, commit *c, footprint *fp, hd_value before, hd_value now) {
    foot f = { r, c, 0, HD_OK };
    hd_status status = diff_walk(r->heap, before, now, add_foot, &f);
    if (status || f.status) return HD_NOMEM;
    fp->accounted = f.count <= FOOTPRINT_MAX;
    if (fp->accounted) fp->path_count = f.count;
    while (c->paths.count > fp->first_path + fp->path_count)
        path_unref(r->heap, c->paths.items[--c->paths.count].path);
    return HD_OK;
}

hd_status footprint_add(replica *r, commit *c, place_id doc, hd_value now, bool wanted) {
    const layer *top = replica_top(r, doc);
    hd_value confirmed = replica_confirmed(r, doc);
    footprint fp = { .doc = doc,
                     .basis = place_at(&r->places, doc)->doc.seq,
                     .under = top ? top->c->local_seq : 0,
                     .first_path = c->paths.count,
                     .created = value_is_absent(confirmed) };
    hd_status status = wanted ? add_account(r, c, &fp, top ? top->after : confirmed, now) : HD_OK;
    if (status) return status;
    return vec_push(r->env, &c->footprints, fp) ? HD_OK : HD_NOMEM;
}
