/* footprint.c -- which places a commit changes in a document. */
#include "store/footprint.h"

#include "base/env.h"
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

static bool add_foot(void *ctx, const diff_step *steps, size_t depth, hd_value before,
                     hd_value after) {
    foot *f = ctx;
    if (f->count == FOOTPRINT_MAX) {
        f->count++; /* too many: told by the count */
        return false;
    }
    hd_path path;
    f->status = path_of_steps(f->r->heap, steps, depth, &path);
    if (f->status) return false;
    bool keys = value_is_absent(before) || value_is_absent(after) ||
                (value_tag(before) == TAG_ARRAY && value_tag(after) == TAG_ARRAY);
    touched t = { path, (uint8_t)((keys ? TOUCH_KEYS : 0) | (depth == 0 ? TOUCH_WHOLE : 0)) };
    if (!vec_push(f->r->env, &f->c->paths, t)) {
        path_unref(f->r->heap, path);
        f->status = HD_NOMEM;
        return false;
    }
    f->count++;
    return true;
}

hd_status footprint_add(replica *r, commit *c, place_id doc, hd_value before, hd_value now,
                        bool wanted) {
    footprint fp = { doc, place_at(&r->places, doc)->doc.seq, c->paths.count, 0,
                     value_is_absent(replica_confirmed(r, doc)) };
    if (wanted && !replica_top(r, doc)) {
        foot f = { r, c, 0, HD_OK };
        hd_status status = diff_walk(r->heap, before, now, add_foot, &f);
        if (status || f.status) return HD_NOMEM;
        if (f.count > FOOTPRINT_MAX) {
            while (c->paths.count > fp.first_path)
                path_unref(r->heap, c->paths.items[--c->paths.count].path);
            f.count = 0;
        }
        fp.path_count = f.count;
    }
    return vec_push(r->env, &c->footprints, fp) ? HD_OK : HD_NOMEM;
}
