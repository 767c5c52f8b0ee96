/* encode_change.c -- a change of a stored object as small operations on its content.
 *
 * How much is written for a change must not depend on how large the object is. What can be said about the stored form
 * (encode.h) in one or two small operations is; anything else is written as the whole content:
 *
 *     list                    append, set an index, delete at the end
 *     list as a queue         the same, and delete at the beginning
 *     dict, names in order    set or remove a key; add one behind all others
 *     dict with "$keys"       set a key; add one, and its name at the end of "$keys"; remove one, and leave a hole
 *     dict with "$dict"       add a pair; set the value of one; put a hole in its place
 *     set                     add; put a hole in the place of an element
 *     exception               nothing: it has few attributes
 *
 * A dict whose keys come in no order is written whole once, when the first of them comes out of order: that makes its
 * "$keys". So is a list from whose beginning an element is deleted: that makes it a queue. When more of a queue is gone
 * than is left, and when the entries of a dict close up (dict.c), they are written whole again, so that holes take no
 * more room than what is there. Changes are replayed in the order in which they happened. */
#include "expr/encode.h"

#include "expr/dict.h"
#include "expr/text.h"
#include "value/number.h"

typedef struct change_encoder {
    world *w;
    hd_pool *pool;
    encode_number_fn number_of;
    void *ctx;
    const change *c;
    encode_ops *out;
} change_encoder;

static encode_op *add_op(change_encoder *e, encode_how how, hd_value value) {
    encode_op *op = &e->out->ops[e->out->count++];
    *op = (encode_op){ .how = how, .value = value };
    return op;
}

static hd_value slot(change_encoder *e, ev v) {
    return encode_slot(e->w, e->pool, v, e->number_of, e->ctx);
}

static const char *index_text(change_encoder *e, uint32_t index) {
    char chars[NUMBER_TEXT_MAX];
    size_t length = number_print_int(index, chars);
    return hd_value_as_text(hd_string_n(e->pool, chars, length), "");
}

/* Shorter lists are no queues: writing them whole costs as little. In debug builds all are, so that random workflows,
 * whose lists are short, have queues. */
#ifdef NDEBUG
enum { QUEUE_MIN = 32 };
#else
enum { QUEUE_MIN = 1 };
#endif

/* Elements at the beginning are deleted. */
static bool change_begin(change_encoder *e, plist *l) {
    uint32_t from = l->queue - 1 + (uint32_t)e->c->key.i;
    if (!l->queue) {
        l->queue = l->count >= QUEUE_MIN;
        return false;
    }
    if (from > l->count && from > QUEUE_MIN) return false;
    encode_op *op = add_op(e, ENCODE_SET, hd_int(e->pool, from));
    op->path[op->length++] = "from";
    l->queue = from + 1;
    return true;
}

static bool delete_of_list(change_encoder *e, plist *l, uint32_t gone) {
    if (e->c->value.i != e->c->index) return !e->c->index && change_begin(e, l);
    encode_op *op = add_op(e, ENCODE_KEEP, hd_int(e->pool, (int64_t)e->c->index + gone));
    if (l->queue) op->path[op->length++] = "$list";
    return true;
}

static bool change_list(change_encoder *e, plist *l) {
    uint32_t gone = l->queue ? l->queue - 1 : 0;
    if (e->c->op == CHANGE_DELETE) return delete_of_list(e, l, gone);
    if (e->c->op != CHANGE_APPEND && e->c->op != CHANGE_SET) return false;
    bool append = e->c->op == CHANGE_APPEND;
    encode_op *op = add_op(e, append ? ENCODE_APPEND : ENCODE_SET, slot(e, e->c->value));
    if (l->queue) op->path[op->length++] = "$list";
    if (!append) op->path[op->length++] = index_text(e, e->c->index + gone);
    return true;
}

/* The entry is gone from its place in the list of what is stored. */
static void put_hole(change_encoder *e, const char *entries) {
    encode_op *op = add_op(e, ENCODE_SET, ENCODE_HOLE);
    op->path[op->length++] = entries;
    op->path[op->length++] = index_text(e, e->c->index);
}

/* The order of the names says the order of the keys still: the new one stands behind the one before it. */
static bool is_in_order(change_encoder *e) {
    const dict *d = e->c->object.dict;
    const dict_entry *at = dict_find(e->w, d, e->c->key);
    if (!at) return false;
    uint32_t index = (uint32_t)(at - d->entries);
    const dict_entry *before = dict_before(d, &index);
    return !before || text_order(before->key.text, at->key.text) < 0;
}

/* The key as a path names it; NULL: it cannot, or there is no memory. */
static const char *name_of(change_encoder *e) {
    ev key = e->c->key;
    if (key.kind != EV_STR || text_has_surrogate(key.text)) return NULL;
    ev bytes = encode_name(e->w, key.text);
    if (ev_failed(bytes) || memchr(bytes.text->data, 0, bytes.text->count)) return NULL;
    const char *chars = (const char *)bytes.text->data;
    return hd_value_text(hd_string_n(e->pool, chars, bytes.text->count), NULL);
}

static bool change_name(change_encoder *e) {
    bool ordered = e->c->object.dict->form == DICT_ORDERED;
    const char *name = name_of(e);
    if (!name) return false;
    switch (e->c->op) {
    case CHANGE_APPEND:
        if (ordered && !is_in_order(e)) return false;
        if (!ordered) {
            encode_op *op = add_op(e, ENCODE_APPEND, slot(e, e->c->key));
            op->path[op->length++] = "$keys";
        }
        break;
    case CHANGE_SET: break;
    case CHANGE_DELETE:
        if (!ordered) put_hole(e, "$keys");
        break;
    default: return false;
    }
    bool gone = e->c->op == CHANGE_DELETE;
    encode_op *op =
        add_op(e, gone ? ENCODE_REMOVE : ENCODE_SET, gone ? (hd_value){ 0 } : slot(e, e->c->value));
    op->path[op->length++] = name;
    return true;
}

static bool change_pair(change_encoder *e) {
    encode_op *op;
    if (e->c->op == CHANGE_APPEND) {
        hd_value pair[] = { slot(e, e->c->key), slot(e, e->c->value) };
        op = add_op(e, ENCODE_APPEND, hd_array_of(e->pool, pair, 2));
        op->path[op->length++] = "$dict";
        return true;
    }
    if (e->c->op == CHANGE_DELETE) return put_hole(e, "$dict"), true;
    if (e->c->op != CHANGE_SET) return false;
    op = add_op(e, ENCODE_SET, slot(e, e->c->value));
    op->path[op->length++] = "$dict";
    op->path[op->length++] = index_text(e, e->c->index);
    op->path[op->length++] = "1";
    return true;
}

static bool change_set(change_encoder *e) {
    if (e->c->op == CHANGE_DELETE) return put_hole(e, "$set"), true;
    if (e->c->op != CHANGE_APPEND) return false;
    encode_op *op = add_op(e, ENCODE_APPEND, slot(e, e->c->key));
    op->path[op->length++] = "$set";
    return true;
}

bool encode_change(world *w, hd_pool *pool, const change *c, encode_number_fn number_of, void *ctx,
                   encode_ops *out) {
    change_encoder e = { w, pool, number_of, ctx, c, out };
    out->count = 0;
    if (c->object.kind == EV_LIST) return change_list(&e, c->object.list);
    if (c->object.kind == EV_EXC) return false;
    switch ((dict_form)c->object.dict->form) {
    case DICT_ORDERED:
    case DICT_KEYS: return change_name(&e);
    case DICT_PAIRS: return change_pair(&e);
    case DICT_SET: return change_set(&e);
    default: return false;
    }
}
