/* world.c -- see world.h. */
#include "expr/world.h"

typedef struct large_block {
    list_node in_world;
    size_t size; /* with this head */
    size_t spare_;
} large_block;

/* ---- Opening and closing ----------------------------------------------------------------- */

static void limits_fill(world_limits *l, const world_limits *given) {
    *l = given ? *given : (world_limits){ 0 };
    if (!l->bytes) l->bytes = (size_t)256 << 20;
    if (!l->steps) l->steps = 100 * 1000 * 1000;
    if (!l->depth || l->depth > 1000) l->depth = 200;
}

/* A text or tuple without elements, which the world itself refers to. */
static bool make_empty(world *w, ev_kind kind, size_t size, ev *out) {
    void *o = world_object(w, kind, size);
    if (!o) return false;
    *out = ev_of(o);
    world_ref(*out);
    return true;
}

hd_status world_open(const hd_env *env, const world_limits *limits, struct classes *classes,
                     world **out) {
    hd_env own = env_copy(env);
    world *w = env_new0(&own, sizeof *w);
    *out = NULL;
    if (!w) return HD_NOMEM;
    w->env = own;
    w->classes = classes;
    w->pending = ev_unbound();
    limits_fill(&w->limits, limits);
    world_begin(w);
    list_init(&w->large);
    for (uint32_t i = 0; i < WORLD_CLASSES; i++) slab_init(&w->blocks[i], &w->env, (i + 1) * 32);
    w->seed = env_random_u64(&w->env);
    if (!make_empty(w, EV_STR, sizeof(text), &w->empty_str) ||
        !make_empty(w, EV_BYTES, sizeof(text), &w->empty_bytes) ||
        !make_empty(w, EV_TUPLE, sizeof(tuple), &w->empty_tuple)) {
        world_close(w);
        return HD_NOMEM;
    }
    *out = w;
    return HD_OK;
}

void world_close(world *w) {
    if (!w) return;
    hd_env env = w->env;
    assert(!w->machine);
    for (uint32_t i = 0; i < WORLD_CLASSES; i++) slab_fini(&w->blocks[i]);
    LIST_FOR_SAFE (node, &w->large) {
        large_block *b = LIST_ENTRY(node, large_block, in_world);
        env_free(&env, b, b->size);
    }
    for (uint32_t i = 0; i < w->spare_text_count; i++)
        env_free(&env, w->spare_text[i].data, w->spare_text[i].size);
    vec_fini(&env, &w->zeroes);
    vec_fini(&env, &w->journal);
    env_free(&env, w, sizeof *w);
}

/* ---- Memory ------------------------------------------------------------------------------ */

static void *large_new(world *w, size_t size) {
    large_block *b = env_new(&w->env, sizeof *b + size);
    if (!b) return NULL;
    *b = (large_block){ .size = sizeof *b + size };
    list_push_back(&w->large, &b->in_world);
    return b + 1;
}

static void large_free(world *w, void *block) {
    large_block *b = (large_block *)block - 1;
    list_remove(&b->in_world);
    env_free(&w->env, b, b->size);
}

void *world_alloc(world *w, size_t size) {
    assert(size > 0);
    if (size > w->bytes_most || w->bytes > w->bytes_most - size) {
        w->failure = FAILURE_MEMORY;
        return NULL;
    }
    void *block =
        size <= WORLD_BLOCK_MAX ? slab_take(&w->blocks[(size - 1) / 32]) : large_new(w, size);
    if (!block) {
        w->status = HD_NOMEM;
        return NULL;
    }
    w->bytes += size;
    return block;
}

void world_free(world *w, void *block, size_t size) {
    if (!block) return;
    assert(w->bytes >= size);
    w->bytes -= size;
    if (size <= WORLD_BLOCK_MAX) slab_give(&w->blocks[(size - 1) / 32], block);
    else large_free(w, block);
}

void *world_resize(world *w, void *block, size_t old_size, size_t size) {
    if (block && size <= WORLD_BLOCK_MAX && (old_size - 1) / 32 == (size - 1) / 32) {
        w->bytes += size - old_size;
        return block;
    }
    void *fresh = world_alloc(w, size);
    if (fresh && block) {
        memcpy(fresh, block, old_size < size ? old_size : size);
        world_free(w, block, old_size);
    }
    return fresh;
}

void *world_object(world *w, ev_kind kind, size_t size) {
    /* Room in the list of zeroes for every object there is: giving up a reference cannot fail. */
    if (w->objects >= w->zeroes.capacity &&
        !vec_room(&w->env, &w->zeroes, w->objects + 1 - w->zeroes.count)) {
        w->status = HD_NOMEM;
        return NULL;
    }
    obj *o = world_alloc(w, size);
    if (!o) return NULL;
    memset(o, 0, size < sizeof(exc) ? size : sizeof(exc)); /* the largest of fixed size */
    o->kind = (uint8_t)kind;
    o->flags = OBJ_ZERO;
    w->objects++;
    w->zeroes.items[w->zeroes.count++] = o;
    return o;
}

/* ---- Freeing ----------------------------------------------------------------------------- */

static void free_entries(world *w, dict *d) {
    for (uint32_t i = 0; i < d->used; i++) {
        if (d->entries[i].key.kind == EV_UNBOUND) continue;
        world_unref(w, d->entries[i].key);
        world_unref(w, d->entries[i].value);
    }
    world_free(w, d->entries, d->capacity * sizeof *d->entries);
    world_free(w, d->index, d->index_size * sizeof *d->index);
}

static size_t text_size(const text *t) {
    return sizeof *t + (size_t)t->count * (text_is_wide(t) ? 4 : 1);
}

static void free_iter(world *w, iter *it) {
    world_unref(w, it->a);
    world_unref(w, it->b);
}

/* What an object refers to goes to the list of zeroes, not down the stack of C: no recursion. */
static void object_free(world *w, obj *o) {
    size_t size = 0;
    ev v = ev_of(o);
    if ((o->flags & OBJ_TRACKED) && w->freed) w->freed(w->freed_ctx, world_number(v));
    switch (o->kind) {
    case EV_STR:
    case EV_BYTES: size = text_size(v.text); break;
    case EV_TUPLE:
        for (uint32_t i = 0; i < v.tuple->count; i++) world_unref(w, v.tuple->items[i]);
        size = sizeof *v.tuple + v.tuple->count * sizeof(ev);
        break;
    case EV_RANGE: size = sizeof(range); break;
    case EV_ENUM:
        world_unref(w, v.enumer->name);
        world_unref(w, v.enumer->value);
        size = sizeof(enumer);
        break;
    case EV_EXC:
        world_unref(w, v.exc->args);
        world_unref(w, v.exc->attrs);
        world_unref(w, v.exc->cause);
        world_unref(w, v.exc->raised);
        size = sizeof(exc);
        break;
    case EV_LIST:
        for (uint32_t i = 0; i < v.list->count; i++) world_unref(w, v.list->items[i]);
        world_free(w, v.list->items, v.list->capacity * sizeof(ev));
        size = sizeof(plist);
        break;
    case EV_DICT:
    case EV_SET:
    case EV_RECORD:
        free_entries(w, v.dict);
        size = sizeof(dict);
        break;
    case EV_VIEW:
        world_unref(w, v.view->of);
        size = sizeof(view);
        break;
    case EV_ITER:
        free_iter(w, v.iter);
        w->iterators--;
        size = sizeof(iter);
        break;
    default: assert(false);
    }
    w->objects--;
    world_free(w, o, size);
}

void world_sweep_now(world *w) {
    while (w->zeroes.count) {
        obj *o = vec_pop(&w->zeroes);
        assert(o->flags & OBJ_ZERO);
        o->flags &= (uint8_t)~OBJ_ZERO;
        if (o->refs == 0) object_free(w, o);
    }
}

/* ---- Nesting ----------------------------------------------------------------------------- */

bool world_enter(world *w, const char *what) {
    if (w->depth >= w->limits.depth) {
        w->failure = FAILURE_DEPTH;
        w->failure_at = what;
        return false;
    }
    w->depth++;
    return true;
}

/* ---- Journal and loading ----------------------------------------------------------------- */

void world_note_now(world *w, ev object, change_op op, uint32_t index, ev key, ev value) {
    if (!vec_push(&w->env, &w->journal, ((change){ object, op, index, key, value }))) {
        w->status = HD_NOMEM;
        return;
    }
    world_ref(object);
    world_ref(key);
    world_ref(value);
}

void world_journal_clear(world *w) {
    for (uint32_t i = 0; i < w->journal.count; i++) {
        world_unref(w, w->journal.items[i].object);
        world_unref(w, w->journal.items[i].key);
        world_unref(w, w->journal.items[i].value);
    }
    vec_clear(&w->journal);
}

static uint32_t *number_of(ev object) {
    assert(ev_has_identity(object));
    if (object.kind == EV_EXC) return &object.exc->number;
    return object.kind == EV_LIST ? &object.list->number : &object.dict->number;
}

void world_track(ev object, uint32_t number) {
    *number_of(object) = number;
    object.o->flags |= OBJ_TRACKED;
}

uint32_t world_number(ev object) { return *number_of(object); }

ev world_stub(world *w, ev_kind kind, uint32_t class_, uint32_t number) {
    obj *o = world_object(w, kind,
                          kind == EV_LIST  ? sizeof(plist)
                          : kind == EV_EXC ? sizeof(exc)
                                           : sizeof(dict));
    if (!o) return ev_fail();
    o->class_ = (uint16_t)class_;
    o->flags |= OBJ_UNLOADED;
    world_track(ev_of(o), number);
    return ev_of(o);
}

void world_set_loader(world *w, world_load_fn load, void *ctx) {
    w->load = load;
    w->load_ctx = ctx;
}

bool world_load_now(world *w, ev object) {
    /* Filling it is no change. */
    object.o->flags &= (uint8_t) ~(OBJ_UNLOADED | OBJ_TRACKED);
    hd_status status = w->load ? w->load(w->load_ctx, w, object) : HD_NOT_FOUND;
    object.o->flags |= OBJ_TRACKED;
    if (status == HD_OK) return true;
    object.o->flags |= OBJ_UNLOADED;
    w->status = status;
    return false;
}

void world_check(const world *w) {
    assert(w->zeroes.count <= w->objects && w->zeroes.count <= w->zeroes.capacity);
    for (uint32_t i = 0; i < w->zeroes.count; i++) {
        assert(w->zeroes.items[i]->flags & OBJ_ZERO);
        assert(w->zeroes.items[i]->kind >= EV_STR && w->zeroes.items[i]->kind < EV_KINDS);
    }
    (void)w;
}
