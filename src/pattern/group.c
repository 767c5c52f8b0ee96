/* group.c -- hd_build_group: the elements of a list by a key that is computed for each.
 *
 *     list ---> map "name.rows" ---> rows [key, link to the element]
 *     rows ---> chunks ---> top chunk of "name.tree": digests of what is below
 *     top chunk ---> "name" {key: [link, link, ...]}
 *
 * The node "name" reads one digest. When it runs it goes down the tree, along the chunks whose digest is another one
 * than it has seen, and so finds the rows that have changed. What it knows of rows and groups is a function of what it
 * has read last, as with the rows of a map: after a refused commit there is nothing to undo. After a restart it knows
 * nothing, and its first run reads all rows.
 *
 * A group is made of links to the elements, so that the change of an element does not change its group, and
 * maps and folds over the group know the element wherever in the group it is. */
#include "pattern/fold.h"
#include "pattern/list.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"
#include "value/object.h"
#include "value/pool.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- the rows */

typedef struct member_part {
    part part;
    hd_cell in;      /* the element; or, without fn, the key that was computed for it */
    hd_cell element; /* in the list */
    hd_derive_fn fn; /* computes the key; NULL: `in` has it */
    void *ctx;
} member_part;

static hd_status member_run(hd_tx *tx, void *ctx) {
    const member_part *m = ctx;
    assert(m->in.id && m->element.id);
    hd_pool *pool = hd_tx_pool(tx);
    hd_value key = hd_tx_get(tx, m->in);
    if (!hd_value_status(key) && m->fn) key = m->fn(tx, key, m->ctx);
    if (hd_value_status(key)) return hd_value_status(key);
    if (!hd_value_exists(key) || hd_value_kind(key) == HD_KIND_NULL)
        return hd_tx_remove(tx, m->part.output);
    hd_value both[] = { key, hd_cell_link(hd_tx_runtime(tx), pool, m->element) };
    return write_result(tx, m->part.output, hd_array_of(pool, both, 2));
}

static bool member_same(const part *p, const part *fresh) {
    const member_part *a = (const member_part *)p, *b = (const member_part *)fresh;
    return a->in.id == b->in.id && a->element.id == b->element.id && a->fn == b->fn &&
           a->ctx == b->ctx;
}

static const part_kind member_kind = { .run = member_run, .same = member_same };

static hd_cell member_row(hd_build *b, hd_cell element, const hd_each *each) {
    hd_cell in = each->build ? each->build(b, element, each->ctx) : element;
    if (!in.id && !hd_build_status(b))
        hd_build_fail(b, HD_USAGE, "the row %s has no result", b->path);
    member_part *m = part_new(b, &member_kind, sizeof *m, "");
    if (!m) return (hd_cell){ 0 };
    m->in = in;
    m->element = element;
    m->fn = each->fn;
    m->ctx = each->ctx;
    return add_computation(&m->part, &m->in, 1, NULL);
}

/* ---- the groups */

typedef struct group {
    char *name; /* owned; NULL: the slot is free */
    size_t length;
    uint32_t hash;
    VEC(fold_element *) members; /* in the order of the list, unless `rebuilt` */
    /* During a run: how often it has changed, and whether too often to change its list each time. Then members that
     * have left are still there, new ones stand at the end, and finish_group puts that right. */
    uint32_t changes;
    bool rebuilt;
} group;

#define CHANGES_FEW 4  /* of one group in one run: each changes its list */
#define GROUPS_FEW  64 /* in one run: each changes the result */

typedef struct group_part {
    part part;
    fold_part *tree;
    VEC(group) groups;     /* by slot */
    VEC(uint32_t) free;    /* slots */
    VEC(uint32_t) changed; /* slots of groups that this run has changed */
    table names;           /* -> slot */
    hd_value
        value;    /* the result of the last run; referenced; absent: there was none, or it failed */
    bool entries; /* the list is an object, and so are the groups */
} group_part;

/* A run. */
typedef struct grouping {
    group_part *g;
    hd_tx *tx;
    hd_value value; /* the result so far */
} grouping;

/* The text of a key: of a text the text itself, of anything else its JSON. */
static const char *name_of(hd_tx *tx, hd_value key, size_t *length) {
    const char *text = hd_value_text(key, length);
    return text ? text : hd_json_print(hd_tx_pool(tx), key, HD_JSON_COMPACT, length);
}

static void group_free(group_part *g, uint32_t slot) {
    group *of = &g->groups.items[slot];
    if (!of->name) return;
    env_free(g->part.env, of->name, of->length + 1);
    vec_fini(g->part.env, &of->members);
    *of = (group){ 0 };
}

static void forget_groups(group_part *g) {
    for (uint32_t i = 0; i < g->groups.count; i++) group_free(g, i);
    vec_clear(&g->groups);
    vec_clear(&g->free);
    vec_clear(&g->changed);
    table_clear(&g->names);
    keep_value(&g->value, (hd_value){ 0 });
}

/* ---- one group */

static hd_status new_group(group_part *g, const char *name, size_t length, uint32_t hash,
                           uint32_t *slot) {
    const hd_env *env = g->part.env;
    if (!g->free.count) {
        group none = { 0 };
        if (!vec_room(env, &g->free, g->groups.count + 1) || !vec_push(env, &g->groups, none))
            return HD_NOMEM;
        g->free.items[g->free.count++] = g->groups.count - 1;
    }
    char *copy = env_new(env, length + 1);
    if (!copy) return HD_NOMEM;
    *slot = vec_last(&g->free);
    if (table_insert(&g->names, hash, *slot)) {
        env_free(env, copy, length + 1);
        return HD_NOMEM;
    }
    memcpy(copy, name, length);
    copy[length] = 0;
    g->free.count--;
    g->groups.items[*slot] = (group){ .name = copy, .length = length, .hash = hash };
    return HD_OK;
}

static hd_status find_group(grouping *u, hd_value key, uint32_t *slot) {
    size_t length;
    const char *name = name_of(u->tx, key, &length);
    if (!name) return HD_NOMEM;
    uint32_t hash = hash_fold(hash_bytes(name, length, 0));
    for (table_probe at = table_find(&u->g->names, hash); table_next(&u->g->names, &at);) {
        const group *other = &u->g->groups.items[at.index];
        *slot = at.index;
        if (other->length == length && !memcmp(other->name, name, length)) return HD_OK;
    }
    return new_group(u->g, name, length, hash, slot);
}

/* The list of a group in the result so far; an empty one if the group is new. */
static hd_value list_of(const grouping *u, const group *of) {
    hd_value links = hd_value_at_n(u->value, of->name, of->length);
    if (hd_value_exists(links)) return links;
    return u->g->entries ? hd_object() : hd_array();
}

static hd_status put_list(grouping *u, const group *of, hd_value links) {
    hd_pool *pool = hd_tx_pool(u->tx);
    if (!hd_value_status(links))
        u->value = hd_object_set_n(pool, u->value, of->name, of->length, links);
    return hd_value_status(links) ? hd_value_status(links) : hd_value_status(u->value);
}

/* The property's name of an element of an object. */
static const struct key *entry_of(const grouping *u, const fold_element *e) {
    return place_at(&u->g->part.in->all->rt->r.places, e->item.cell.id)->in.key;
}

/* The run changes the group: notes that. *each: by a change of its list. */
static hd_status note_group(grouping *u, uint32_t slot, bool *each) {
    group_part *g = u->g;
    group *of = &g->groups.items[slot];
    if (!of->changes++ && !vec_push(g->part.env, &g->changed, slot)) return HD_NOMEM;
    of->rebuilt |= of->changes > CHANGES_FEW || g->changed.count > GROUPS_FEW;
    *each = !of->rebuilt;
    return HD_OK;
}

/* Where in the group an element of the tree belongs. */
static uint32_t place_in(const group *of, const fold_element *e) {
    uint32_t from = 0, to = of->members.count;
    if (to && fold_tree_compare(vec_last(&of->members), e) < 0) return to;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (fold_tree_compare(of->members.items[middle], e) < 0) from = middle + 1;
        else to = middle;
    }
    return from;
}

static hd_status enter_list(grouping *u, group *of, fold_element *e) {
    hd_pool *pool = hd_tx_pool(u->tx);
    hd_value link = hd_value_index(e->member->pair, 1), links = list_of(u, of);
    uint32_t at = place_in(of, e);
    fold_element **to = &of->members.items[at];
    memmove(to + 1, to, (of->members.count - at) * sizeof *to);
    *to = e;
    of->members.count++;
    const struct key *name = u->g->entries ? entry_of(u, e) : NULL;
    links = name ? hd_object_set_n(pool, links, key_bytes(name), name->length, link)
                 : hd_array_insert(pool, links, at, link);
    return put_list(u, of, links);
}

static hd_status enter(grouping *u, fold_element *e, hd_value pair) {
    group_part *g = u->g;
    uint32_t slot;
    bool each;
    hd_status status = find_group(u, hd_value_index(pair, 0), &slot);
    if (!status) status = note_group(u, slot, &each);
    if (status) return status;
    group *of = &g->groups.items[slot];
    if (!vec_room(g->part.env, &of->members, 1)) return HD_NOMEM;
    e->member = env_new(g->part.env, sizeof *e->member);
    if (!e->member) return HD_NOMEM;
    *e->member = (fold_member){ hd_value_ref(pair), slot };
    if (each) return enter_list(u, of, e);
    of->members.items[of->members.count++] = e;
    return HD_OK;
}

static hd_status leave_list(grouping *u, group *of, const fold_element *e) {
    hd_pool *pool = hd_tx_pool(u->tx);
    hd_value links = list_of(u, of);
    uint32_t at = 0;
    while (at < of->members.count && of->members.items[at] != e) at++;
    assert(at < of->members.count);
    vec_remove(&of->members, at);
    const struct key *name = u->g->entries ? entry_of(u, e) : NULL;
    links = name ? pool_take(pool, object_remove(pool->heap, links, name))
                 : hd_array_remove(pool, links, at);
    return put_list(u, of, links);
}

/* The element is in its group no more. One of a group that is rebuilt stays among the members without a `member`. */
static hd_status leave(grouping *u, fold_element *e) {
    uint32_t slot = e->member->group;
    bool each;
    hd_status status = note_group(u, slot, &each);
    if (!status && each) status = leave_list(u, &u->g->groups.items[slot], e);
    fold_element_leave(&u->g->tree->tree, e);
    return status;
}

/* ---- what has changed */

static hd_status take_element(grouping *u, fold_element *e, hd_value pair) {
    bool is_pair = hd_value_kind(pair) == HD_KIND_ARRAY; /* else it is in no group */
    hd_status status = HD_OK;
    if (e->member && is_pair && hd_value_equal(e->member->pair, pair)) return HD_OK;
    if (e->member) status = leave(u, e);
    return status || !is_pair ? status : enter(u, e, pair);
}

/* Reads what a chunk's members have. `again`: so that a change of them runs this node. */
static hd_status read_members(const grouping *u, const fold_chunk *c, bool again, hd_value *out) {
    hd_status late = HD_OK;
    for (uint32_t i = 0; i < c->members.count; i++) {
        hd_cell cell = c->members.items[i]->cell;
        out[i] = again ? hd_tx_get(u->tx, cell) : hd_tx_read(u->tx, cell, HD_READ_NO_DEPENDENCY);
        if (hd_value_status(out[i]) == HD_PENDING) late = HD_PENDING;
        else if (hd_value_status(out[i])) return hd_value_status(out[i]);
    }
    return late;
}

static hd_status take_chunk(grouping *u, fold_chunk *c, hd_value digest, bool *whole);

/* *whole: everything below has been taken in. */
static hd_status take_members(grouping *u, fold_chunk *c, const hd_value *values, bool *whole) {
    hd_status status = HD_OK, late = HD_OK;
    for (uint32_t i = 0; i < c->members.count && !status; i++) {
        fold_item *x = c->members.items[i];
        if (!x->height) status = take_element(u, (fold_element *)x, values[i]);
        else status = take_chunk(u, (fold_chunk *)x, values[i], whole);
        if (status == HD_PENDING) late = status, status = HD_OK;
    }
    return status ? status : late;
}

/* Takes in what has changed below a chunk whose result is `digest`. The digest has to be that of the members: if it is
 * not, another program has changed one of the two, and this run reads the members as its inputs. The depth of the
 * recursion is the height of the tree, at most FOLD_RANK_MAX + 2. */
static hd_status take_chunk(grouping *u, fold_chunk *c, hd_value digest, bool *whole) {
    size_t size = c->members.count * sizeof(hd_value);
    bool all = true;
    if (hd_value_exists(c->seen) && hd_value_equal(c->seen, digest)) return HD_OK;
    hd_value *values = size ? env_new(u->g->part.env, size) : NULL;
    if (size && !values) return HD_NOMEM;
    hd_status status = read_members(u, c, false, values);
    hd_value now = status ? digest : fold_digest(u->tx, values, c->members.count);
    if (status == HD_PENDING || (!status && !hd_value_equal(now, digest))) {
        all = false;
        status = read_members(u, c, true, values);
    }
    if (!status) status = take_members(u, c, values, &all);
    if (!status && all) keep_value(&c->seen, digest);
    *whole &= all && !status;
    env_free(u->g->part.env, values, size);
    return status;
}

static hd_status take_gone(grouping *u) {
    fold_tree *t = &u->g->tree->tree;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < t->gone.count && !status; i++)
        if (t->gone.items[i]->member) status = leave(u, t->gone.items[i]);
    return status;
}

/* ---- the result */

static int in_order(const void *a, const void *b) {
    return fold_tree_compare(*(fold_element *const *)a, *(fold_element *const *)b);
}

/* Drops the members that have left, and puts the others in order. */
static void sort_members(group *of, uint32_t slot) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < of->members.count; i++) {
        fold_element *e = of->members.items[i];
        if (e->member && e->member->group == slot) of->members.items[kept++] = e;
    }
    of->members.count = kept;
    bool sorted = true;
    for (uint32_t i = 1; i < kept && sorted; i++)
        sorted = in_order(&of->members.items[i - 1], &of->members.items[i]) < 0;
    if (!sorted) qsort(of->members.items, kept, sizeof *of->members.items, in_order);
    kept = 0; /* one that has left and come back stands there twice */
    for (uint32_t i = 0; i < of->members.count; i++)
        if (!kept || of->members.items[kept - 1] != of->members.items[i])
            of->members.items[kept++] = of->members.items[i];
    of->members.count = kept;
}

static hd_value list_again(const grouping *u, const group *of) {
    hd_builder *b;
    hd_kind kind = u->g->entries ? HD_KIND_OBJECT : HD_KIND_ARRAY;
    hd_status status = hd_builder_open(hd_tx_pool(u->tx), kind, &b);
    if (status) return hd_failed(status);
    for (uint32_t i = 0; i < of->members.count; i++) {
        const fold_element *e = of->members.items[i];
        const struct key *name = u->g->entries ? entry_of(u, e) : NULL;
        hd_value link = hd_value_index(e->member->pair, 1);
        if (name) hd_builder_put_n(b, key_bytes(name), name->length, link);
        else hd_builder_add(b, link);
    }
    return hd_builder_close(b);
}

static void drop_group(grouping *u, uint32_t slot) {
    group_part *g = u->g;
    group *of = &g->groups.items[slot];
    hd_pool *pool = hd_tx_pool(u->tx);
    const struct key *k = key_find(pool->heap, of->name, of->length);
    if (k) u->value = pool_take(pool, object_remove(pool->heap, u->value, k));
    table_remove(&g->names, of->hash, slot);
    group_free(g, slot);
    g->free.items[g->free.count++] = slot;
}

/* Puts the groups in order that the run has changed. */
static hd_status finish_groups(grouping *u) {
    group_part *g = u->g;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < g->changed.count && !status; i++) {
        uint32_t slot = g->changed.items[i];
        group *of = &g->groups.items[slot];
        if (of->rebuilt) sort_members(of, slot);
        if (of->rebuilt && of->members.count) status = put_list(u, of, list_again(u, of));
        of->changes = 0;
        of->rebuilt = false;
        if (!of->members.count) drop_group(u, slot);
        if (!status) status = hd_value_status(u->value);
    }
    vec_clear(&g->changed);
    return status;
}

/* Writes the result, and keeps the document's own value: the next run then changes values that share structure with
 * the document, so that the difference costs what has changed. */
static hd_status write_groups(grouping *u) {
    const unsigned flags = HD_READ_RAW | HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM;
    hd_status status = hd_tx_set(u->tx, u->g->part.output, u->value);
    hd_value now = status ? hd_failed(status) : hd_tx_read(u->tx, u->g->part.output, flags);
    if (!hd_value_status(now)) keep_value(&u->g->value, now);
    return hd_value_status(now);
}

static hd_status update_groups(grouping *u, hd_value digest) {
    fold_tree *t = &u->g->tree->tree;
    bool whole = true;
    hd_status status = take_gone(u), late = HD_OK;
    if (!status && t->top) status = take_chunk(u, t->top, digest, &whole);
    if (status == HD_PENDING) late = status, status = HD_OK;
    if (!status) status = finish_groups(u);
    if (!status) fold_tree_bury(t);
    if (!status) keep_value(&u->g->value, u->value);
    return status ? status : late;
}

static void begin_anew(group_part *g, bool entries) {
    forget_groups(g);
    fold_tree_forget(&g->tree->tree);
    g->entries = entries;
    keep_value(&g->value, hd_object());
}

static hd_status group_run(hd_tx *tx, void *ctx) {
    group_part *g = ctx;
    const fold_part *f = g->tree;
    hd_value digest = hd_tx_get(tx, f->part.output);
    if (hd_value_status(digest)) return hd_value_status(digest);
    if (!hd_value_exists(f->list_value) && f->tree.elements.count)
        return HD_NOMEM; /* the coordinator has failed, and runs again */
    bool entries = hd_value_kind(f->list_value) == HD_KIND_OBJECT;
    if (!hd_value_exists(g->value) || g->entries != entries) begin_anew(g, entries);
    grouping u = { .g = g, .tx = tx, .value = g->value };
    hd_status status = update_groups(&u, digest);
    if (status && status != HD_PENDING) keep_value(&g->value, (hd_value){ 0 });
    return status ? status : write_groups(&u);
}

static bool group_same(const part *p, const part *fresh) {
    return ((const group_part *)p)->tree == ((const group_part *)fresh)->tree;
}

/* The elements and what they have of groups are the tree's. */
static void group_fini(part *p) {
    group_part *g = (group_part *)p;
    forget_groups(g);
    vec_fini(p->env, &g->groups);
    vec_fini(p->env, &g->free);
    vec_fini(p->env, &g->changed);
    table_fini(&g->names);
}

static void group_check(const part *p) {
    const group_part *g = (const group_part *)p;
    uint32_t used = 0;
    assert(!g->changed.count || !hd_value_exists(g->value));
    for (uint32_t i = 0; i < g->groups.count; i++) used += g->groups.items[i].name != NULL;
    assert(used + g->free.count == g->groups.count && used == table_count(&g->names));
    assert(!hd_value_exists(g->value) || hd_value_count(g->value) == used);
    (void)used;
}

static const part_kind group_kind = {
    .run = group_run, .same = group_same, .fini = group_fini, .check = group_check
};

hd_cell hd_build_group(hd_build *b, const char *name, hd_cell items, const hd_each *each) {
    char rows[256];
    const folding how = { .digest = true };
    if (!check_inputs(b, name, &items, 1)) return (hd_cell){ 0 };
    snprintf(rows, sizeof rows, "%s.rows", name);
    hd_cell of = list_map(b, rows, items, each, member_row);
    fold_part *tree = of.id ? fold_add_tree(b, name, of, &how) : NULL;
    group_part *g = tree ? part_new(b, &group_kind, sizeof *g, name) : NULL;
    if (!g) return (hd_cell){ 0 };
    g->tree = tree;
    g->part.salt = "groups";
    table_init(&g->names, b->all->env);
    return add_computation(&g->part, &tree->part.output, 1, NULL);
}
