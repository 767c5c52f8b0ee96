/* piece_look.c -- introspection of pieces: one by its handle, and all that run. */
#include "pattern/pattern.h"

#include "value/key.h"

/* ---- one piece */

bool hd_piece_runs(const hd_runtime *rt, hd_piece handle) {
    return piece_get(patterns_get(rt), handle);
}

hd_cell hd_piece_result(const hd_runtime *rt, hd_piece handle) {
    const piece *p = piece_get(patterns_get(rt), handle);
    return p ? p->result : (hd_cell){ 0 };
}

hd_cell hd_piece_document(const hd_runtime *rt, hd_piece handle) {
    const piece *p = piece_get(patterns_get(rt), handle);
    return p ? p->document : (hd_cell){ 0 };
}

hd_cell hd_piece_cell(hd_runtime *rt, hd_piece handle, const char *name) {
    const piece *p = piece_get(patterns_get(rt), handle);
    if (!p || !p->root || !name) return (hd_cell){ 0 };
    /* An invalid name makes hd_build_cell fail the build; here it fails this call. */
    hd_status before = p->root->status;
    hd_cell cell = hd_build_cell(p->root, name);
    p->root->status = before;
    return cell;
}

/* ---- its nodes and rows */

/* The build that follows `b` in a walk of `top` and all builds below it; NULL: `b` was the last. */
static hd_build *next_build(hd_build *b, const hd_build *top) {
    if (!list_empty(&b->children)) return LIST_ENTRY(list_first(&b->children), hd_build, sibling);
    for (; b != top; b = b->up) {
        assert(b->up && list_linked(&b->sibling));
        list_node *next = list_after(&b->up->children, &b->sibling);
        if (next) return LIST_ENTRY(next, hd_build, sibling);
    }
    return NULL;
}

static hd_piece_info info_of(const piece *p) {
    hd_piece_info info = { .piece = handle_of(p),
                           .space = key_bytes(p->space),
                           .id = p->name,
                           .pattern = p->what.name,
                           .version = p->what.version,
                           .started = p->started,
                           .parent = p->parent,
                           .result = p->result };
    assert(p->id && p->started);
    for (hd_build *b = p->root; b; b = next_build(b, p->root)) {
        info.rows += b->owner && !b->owner->kind->inner;
        LIST_FOR (at, &b->parts) info.nodes += LIST_ENTRY(at, part, link)->node.id != 0;
    }
    return info;
}

hd_status hd_piece_inspect(const hd_runtime *rt, hd_piece handle, hd_piece_info *out) {
    const piece *p = piece_get(patterns_get(rt), handle);
    if (!p) return HD_NOT_FOUND;
    *out = info_of(p);
    return HD_OK;
}

static piece *first_after(const patterns *all, uint64_t order) {
    LIST_FOR (at, &all->running) {
        piece *p = LIST_ENTRY(at, piece, link);
        if (p->order > order) return p;
    }
    return NULL;
}

/* fn may stop any piece. If it stopped the next one, the walk goes on by order of start. */
void hd_runtime_pieces(const hd_runtime *rt, hd_piece_fn fn, void *ctx) {
    const patterns *all = patterns_get(rt);
    for (piece *p = all ? first_after(all, 0) : NULL; p;) {
        uint64_t order = p->order;
        list_node *after = list_after(&all->running, &p->link);
        piece *next = after ? LIST_ENTRY(after, piece, link) : NULL;
        hd_piece handle = handle_of(next);
        hd_piece_info info = info_of(p);
        if (!fn(&info, ctx)) return;
        p = !next || piece_get(all, handle) == next ? next : first_after(all, order);
    }
}
