/* memo.c -- memos: their form, and a table of them, in which the last commit that writes or deletes a memo counts.
 *
 * An entry keeps the very item of the extra that wrote it, shared with the commit: taking a memo in
 * copies nothing. The entries of a piece are linked; the table by_piece has the first of them.
 *
 * Cost: a memo taken in one hash lookup, plus a look at its cells; the memos of a piece O(memos). */
#include "store/memo.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"
#include "value/node.h"
#include "value/object.h"
#include <string.h>

/* ---- form */

/* Most extras have memos and nothing else: then nothing else is looked for. */
memo_extra memo_extra_of(hd_value extra) {
    memo_extra x = { object_get_bytes(extra, "nodes", 5), value_absent() };
    if (object_count(extra) > value_exists(x.kept)) x.gone = object_get_bytes(extra, "gone", 4);
    return x;
}

/* `count` is MEMO_ITEMS, or GONE_ITEMS. */
static const char *item_fault(hd_value item, size_t count) {
    size_t length;
    if (!value_is_array(item) || array_count(item) != count)
        return "an item has not as many texts as it must";
    for (size_t i = 0; i < count; i++)
        if (!hd_value_text(array_get(item, i), &length))
            return "an item has something else than texts";
    const char *name = memo_text(item, MEMO_NAME, NULL);
    return memo_piece_length(name, strlen(name)) ? NULL : "a name is not \"space:piece:path\"";
}

static const char *list_fault(hd_value items, size_t count) {
    const char *fault = NULL;
    if (value_exists(items) && !value_is_array(items)) return "the items are not in a list";
    for (hd_iter it = hd_iter_of(items); !fault && hd_iter_next(&it);)
        fault = item_fault(it.value, count);
    return fault;
}

const char *memo_fault(hd_value extra) {
    if (value_is_absent(extra)) return NULL;
    if (!value_is_object(extra)) return "it is not an object";
    memo_extra x = memo_extra_of(extra);
    const char *fault = list_fault(x.kept, MEMO_ITEMS);
    return fault ? fault : list_fault(x.gone, GONE_ITEMS);
}

memo memo_of(hd_value item, hd_value seqs) {
    memo m = { .seqs = seqs };
    size_t count = array_count(item);
    assert(count == MEMO_ITEMS || count == GONE_ITEMS);
    for (size_t i = 0; i < MEMO_ITEMS; i++) m.text[i] = i < count ? memo_text(item, i, NULL) : "";
    return m;
}

bool memo_next_space(const char **cells, const char **space, size_t *length) {
    if (!**cells) return false;
    const char *at = *cells, *end = strchr(at, '\n');
    if (!end) end = at + strlen(at);
    while (*at == '?' || *at == '~' || *at == '=') at++;
    const char *slash = memchr(at, '/', (size_t)(end - at));
    const char *scope = slash ? memchr(at, '@', (size_t)(slash - at)) : NULL;
    *space = at;
    *length = slash ? (size_t)((scope ? scope : slash) - at) : 0;
    *cells = end + (*end != '\0');
    return true;
}

/* ---- names */

size_t memo_piece_length(const char *name, size_t length) {
    const char *first = memchr(name, ':', length);
    if (!first || first == name) return 0;
    size_t rest = length - (size_t)(first + 1 - name);
    const char *second = memchr(first + 1, ':', rest);
    if (!second || second == first + 1 || second + 1 == name + length) return 0;
    return (size_t)(second - name);
}

bool memo_print_space(const char *space, char *out, size_t size) {
    size_t n = 0;
    for (const char *c = space; *c; c++) {
        if (n + 4 > size) return false;
        if (*c != ':' && *c != '%') {
            out[n++] = *c;
            continue;
        }
        memcpy(out + n, *c == ':' ? "%3A" : "%25", 3);
        n += 3;
    }
    if (n >= size) return false;
    out[n] = 0;
    return true;
}

bool memo_parse_space(const char *text, size_t length, char *out, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if (n + 1 >= size) return false;
        bool escaped = text[i] == '%' && length - i > 2;
        out[n++] = !escaped ? text[i] : text[i + 1] == '3' ? ':' : '%';
        if (escaped) i += 2;
    }
    out[n] = 0;
    return true;
}

/* ---- life */

void memos_init(memos *all, const hd_env *env, hd_heap *heap, bool overlay) {
    assert(env && heap);
    *all = (memos){ .env = env, .heap = heap, .overlay = overlay };
    table_init(&all->by_name, env);
    table_init(&all->by_piece, env);
}

static void entry_fini(memo_entry *e) {
    value_unref(e->item);
    value_unref(e->seqs);
}

void memos_fini(memos *all) {
    if (!all->env) return;
    for (uint32_t i = 0; i < all->entries.count; i++) entry_fini(&all->entries.items[i]);
    vec_fini(all->env, &all->entries);
    table_fini(&all->by_name);
    table_fini(&all->by_piece);
    all->env = NULL;
}

/* ---- finding */

/* The entry of a memo, and the hash of its name and instance; TABLE_NONE: there is none. */
static uint32_t find(const memos *all, const char *name, const char *instance, uint32_t *hash) {
    uint64_t h = hash_bytes(name, strlen(name), 0);
    *hash = hash_fold(*instance ? hash_bytes(instance, strlen(instance), h) : h);
    for (table_probe p = table_find(&all->by_name, *hash); table_next(&all->by_name, &p);) {
        hd_value item = all->entries.items[p.index].item;
        if (!strcmp(memo_text(item, MEMO_NAME, NULL), name) &&
            !strcmp(memo_text(item, MEMO_INSTANCE, NULL), instance))
            return p.index;
    }
    return TABLE_NONE;
}

const memo_entry *memos_find(const memos *all, const char *name, const char *instance) {
    uint32_t hash, i = find(all, name, instance, &hash);
    return i == TABLE_NONE ? NULL : &all->entries.items[i];
}

/* The first entry of a piece; TABLE_NONE. */
static uint32_t find_piece(const memos *all, uint32_t hash, const char *piece, size_t length) {
    for (table_probe p = table_find(&all->by_piece, hash); table_next(&all->by_piece, &p);) {
        size_t n;
        const char *name = memo_text(all->entries.items[p.index].item, MEMO_NAME, &n);
        if (n > length && name[length] == ':' && !memcmp(name, piece, length)) return p.index;
    }
    return TABLE_NONE;
}

/* The entry that an item [name, instance, ...] speaks of. */
static uint32_t entry_of(const memos *all, hd_value item, uint32_t *hash) {
    return find(all, memo_text(item, MEMO_NAME, NULL), memo_text(item, MEMO_INSTANCE, NULL), hash);
}

/* ---- entries */

/* Links the newest entry behind the first of its piece. */
static hd_status link_entry(memos *all, memo_entry *e, uint32_t i) {
    size_t length;
    const char *name = memo_text(e->item, MEMO_NAME, &length);
    size_t piece = memo_piece_length(name, length);
    e->piece_hash = hash_fold(hash_bytes(name, piece, 0));
    e->before = find_piece(all, e->piece_hash, name, piece);
    e->next = TABLE_NONE;
    if (e->before == TABLE_NONE) return table_insert(&all->by_piece, e->piece_hash, i);
    memo_entry *first = &all->entries.items[e->before];
    e->next = first->next;
    first->next = i;
    if (e->next != TABLE_NONE) all->entries.items[e->next].before = i;
    return HD_OK;
}

static void unlink_entry(memos *all, const memo_entry *e, uint32_t i) {
    if (e->before != TABLE_NONE) all->entries.items[e->before].next = e->next;
    else if (e->next != TABLE_NONE) table_move(&all->by_piece, e->piece_hash, i, e->next);
    else table_remove(&all->by_piece, e->piece_hash, i);
    if (e->next != TABLE_NONE) all->entries.items[e->next].before = e->before;
}

static hd_status entry_new(memos *all, hd_value item, uint32_t hash, uint32_t *out) {
    uint32_t i = all->entries.count;
    if (!vec_room(all->env, &all->entries, 1) || table_insert(&all->by_name, hash, i))
        return HD_NOMEM;
    memo_entry *e = &all->entries.items[i];
    *e = (memo_entry){ .item = item, .hash = hash };
    hd_status status = link_entry(all, e, i);
    if (status) {
        table_remove(&all->by_name, hash, i);
        return status;
    }
    value_ref(item);
    all->entries.count++;
    *out = i;
    return HD_OK;
}

/* The last entry gets another index. */
static void move_last(memos *all, uint32_t to) {
    uint32_t last = all->entries.count - 1;
    const memo_entry *e = &all->entries.items[last];
    assert(to < last);
    table_move(&all->by_name, e->hash, last, to);
    if (e->before != TABLE_NONE) all->entries.items[e->before].next = to;
    else table_move(&all->by_piece, e->piece_hash, last, to);
    if (e->next != TABLE_NONE) all->entries.items[e->next].before = to;
    all->entries.items[to] = *e;
}

static void entry_drop(memos *all, uint32_t i) {
    assert(i < all->entries.count);
    memo_entry *e = &all->entries.items[i];
    unlink_entry(all, e, i);
    table_remove(&all->by_name, e->hash, i);
    entry_fini(e);
    if (i != all->entries.count - 1) move_last(all, i);
    all->entries.count--;
}

/* ---- as of when: the seqs of the spaces that a memo names */

/* Adds a space to *seqs. HD_NOMEM. */
static hd_status add_space(memos *all, const memo_point *now, const char *space, size_t length,
                           hd_value *seqs) {
    struct key *k = key_intern(all->heap, space, length);
    if (!k) return HD_NOMEM;
    hd_value seq = int_make(all->heap, (int64_t)now->seq_of(now->ctx, space, length));
    hd_value next = object_set(all->heap, *seqs, k, seq);
    value_unref(seq);
    key_unref(k);
    if (value_is_failed(next)) return HD_NOMEM;
    value_unref(*seqs);
    *seqs = next;
    return HD_OK;
}

/* Owned; failed: HD_NOMEM. Most cells are in the space of the one before. */
static hd_value seqs_of_cells(memos *all, const memo_point *now, const char *cells) {
    hd_value seqs = node_value(NULL, true);
    const char *space, *last = NULL;
    size_t length, last_length = 0;
    while (memo_next_space(&cells, &space, &length)) {
        if (length == last_length && (!length || !memcmp(space, last, length))) continue;
        last = space;
        last_length = length;
        if (!length || value_exists(object_get_bytes(seqs, space, length))) continue;
        if (!add_space(all, now, space, length, &seqs)) continue;
        value_unref(seqs);
        return value_failed(HD_NOMEM);
    }
    return seqs;
}

/* ---- taking an extra in */

/* `seqs` is taken; absent: the memo is deleted. */
static hd_status become(memos *all, hd_value item, hd_value seqs, uint64_t at) {
    uint32_t hash, i = entry_of(all, item, &hash);
    hd_status status = i == TABLE_NONE ? entry_new(all, item, hash, &i) : HD_OK;
    if (status) {
        value_unref(seqs);
        return status;
    }
    memo_entry *e = &all->entries.items[i], before = *e;
    e->item = value_ref(item);
    e->seqs = seqs;
    e->at = at;
    entry_fini(&before);
    return HD_OK;
}

/* Deletes the memo that the item [name, instance] names. HD_NOMEM. */
static hd_status apply_gone(memos *all, hd_value item, uint64_t at) {
    uint32_t hash, i = all->overlay ? TABLE_NONE : entry_of(all, item, &hash);
    if (all->overlay) return become(all, item, value_absent(), at);
    if (i != TABLE_NONE) entry_drop(all, i);
    return HD_OK;
}

static hd_status apply_kept(memos *all, const memo_point *now, hd_value item, uint64_t at) {
    hd_value seqs = seqs_of_cells(all, now, memo_text(item, MEMO_CELLS, NULL));
    return value_is_failed(seqs) ? HD_NOMEM : become(all, item, seqs, at);
}

hd_status memos_apply(memos *all, hd_value extra, const memo_point *now, uint64_t at) {
    assert(now && now->seq_of && value_exists(extra));
    memo_extra x = memo_extra_of(extra);
    hd_status status = HD_OK;
    if (at && at <= all->trimmed)
        all->trimmed = at - 1; /* an earlier part of the log is read again */
    for (size_t i = 0, count = array_count(x.gone); !status && i < count; i++)
        status = apply_gone(all, array_get(x.gone, i), at);
    for (size_t i = 0, count = array_count(x.kept); !status && i < count; i++)
        status = apply_kept(all, now, array_get(x.kept, i), at);
    return status;
}

static void drop_each(memos *all, hd_value items) {
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) {
        uint32_t hash, i = entry_of(all, it.value, &hash);
        if (i != TABLE_NONE) entry_drop(all, i);
    }
}

void memos_drop(memos *all, hd_value extra) {
    memo_extra x = memo_extra_of(extra);
    drop_each(all, x.kept);
    drop_each(all, x.gone);
}

void memos_trim(memos *all, uint64_t at) {
    assert(at != UINT64_MAX);
    if (at <= all->trimmed) return; /* as at most looks into a file */
    all->trimmed = at;
    for (uint32_t i = all->entries.count; i-- > 0;)
        if (all->entries.items[i].at <= at) entry_drop(all, i);
}

/* ---- telling */

bool memos_first_of(const memo_entry *e, char piece[PIECE_SIZE]) {
    size_t length;
    const char *name = memo_text(e->item, MEMO_NAME, &length);
    length = memo_piece_length(name, length);
    if (e->before != TABLE_NONE || length >= PIECE_SIZE) return false;
    memcpy(piece, name, length);
    piece[length] = '\0';
    return true;
}

void memos_tell(const memos *all, const char *piece, uint64_t from, memo_fn fn, void *ctx) {
    size_t length = strlen(piece);
    uint32_t i = find_piece(all, hash_fold(hash_bytes(piece, length, 0)), piece, length);
    for (bool more = true; more && i != TABLE_NONE; i = all->entries.items[i].next) {
        const memo_entry *e = &all->entries.items[i];
        if (memo_is_gone(e) || e->at < from) continue;
        memo m = memo_of(e->item, e->seqs);
        more = fn(ctx, &m);
    }
}

/* ---- invariants */

static void check_entry(const memos *all, uint32_t i) {
    const memo_entry *e = &all->entries.items[i];
    uint32_t hash;
    assert(!all->trimmed || e->at > all->trimmed);
    assert(entry_of(all, e->item, &hash) == i && hash == e->hash);
    assert(all->overlay || !memo_is_gone(e));
    assert(memo_is_gone(e) || (value_is_object(e->seqs) && array_count(e->item) == MEMO_ITEMS));
    assert(e->before == TABLE_NONE || all->entries.items[e->before].next == i);
    assert(e->next == TABLE_NONE || all->entries.items[e->next].before == i);
    (void)e, (void)hash;
}

void memos_check(const memos *all) {
    uint32_t pieces = 0;
    for (uint32_t i = 0; i < all->entries.count; i++) {
        check_entry(all, i);
        pieces += all->entries.items[i].before == TABLE_NONE;
    }
    assert(table_count(&all->by_name) == all->entries.count);
    assert(table_count(&all->by_piece) == pieces);
    (void)pieces;
}
