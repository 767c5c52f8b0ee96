/* sim_service.c -- tables as sorted arrays of rows that are never changed, and a backend over them.
 *
 * A transaction copies the arrays (not the rows), works on the copy and, when it commits, puts it in the
 * place of the service's own. Rows live until the service is closed: simulations are short. */
#include "sim_service.h"

#include "base/sabotage.h"
#include "base/vec.h"
#include "store/log/backend.h"
#include "store/runtime.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 7, NUMBERS = 9, KEY_SIZE = 600, WINNERS = 4 };
typedef enum row_table {
    LOG,     /* row; hash; body */
    HEAD,    /* name; the numbers below; kind, value, meta, space, instance, id */
    LARGE,   /* doc; hash; text */
    PATCH,   /* doc and seq; seq, hash; text */
    SPACE,   /* name; seq, floor; name */
    NODE,    /* name and instance; ; texts in the order of stored_memo */
    SESSION, /* id; settled, last; id, verdicts */
    READER,  /* session; position, machine; session */
    PRESENT, /* session; the time until which it is certain to live */
    TABLES
} row_table;
enum { H_DOC, H_SEQ, H_META_SEQ, H_GUARDED, H_LARGE, H_SIZE, H_PATCHED, H_HASH, H_SCOPE };
enum { H_KIND, H_VALUE, H_META, H_SPACE, H_INSTANCE, H_ID };

typedef struct row {
    struct row *next; /* of all that the service has made */
    char key[KEY_SIZE];
    int64_t n[NUMBERS];
    row_text t[TEXTS];
} row;

typedef struct rows {
    const row **items;
    uint32_t count;
} rows;

typedef struct state {
    rows tables[TABLES];
    uint64_t numbers[LOG_NUMBERS_];
    int64_t docs; /* the last number of a head row */
} state;

struct sim_service {
    state now;
    row *made;
    uint8_t secret[64];
    hd_lab_random random;
    sim_faults faults;
    sim_line lines[SIM_MACHINES];
    bool silenced[SIM_MACHINES];
    bool optimistic; /* log_store.optimistic */
    hd_status away;  /* what a machine is told that does not reach the service: HD_IO, HD_BUSY */
    unsigned sabotage;
    uint64_t races;
    int64_t now_ms;
    bool racing;
    void (*on_race)(uint32_t machine, void *ctx);
    void *race_ctx;
};

/* A connection. */
typedef struct sim_store {
    log_store base;
    sim_service *service;
    uint32_t machine;
    state own; /* of the transaction */
    bool open, writes, appended;
    /* What came with the refusal of the last append (0550): rows behind `winners_after`, for the next attempt alone,
     * and the numbers beside them, each of which is told once. */
    const row *winners[WINNERS];
    uint32_t winner_count;
    uint64_t winners_after, beside[LOG_NUMBERS_];
    bool beside_left[LOG_NUMBERS_];
} sim_store;

static sim_store *store_of(const log_store *s) { return (sim_store *)(void *)(uintptr_t)s; }

/* ---- States -------------------------------------------------------------------------------- */

static void *must(void *block) {
    if (!block) abort();
    return block;
}

static void state_copy(state *to, const state *from) {
    *to = *from;
    for (int i = 0; i < TABLES; i++) {
        size_t size = from->tables[i].count * sizeof(row *);
        to->tables[i].items = must(malloc(size + sizeof(row *)));
        if (size) memcpy(to->tables[i].items, from->tables[i].items, size);
    }
}

static void state_free(state *s) {
    for (int i = 0; i < TABLES; i++) free(s->tables[i].items);
    *s = (state){ 0 };
}

/* The first row whose key is not below `key`. */
static uint32_t seek(const rows *t, const char *key) {
    uint32_t low = 0, high = t->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (strcmp(t->items[middle]->key, key) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static const row *find(const rows *t, const char *key) {
    uint32_t at = seek(t, key);
    return at < t->count && !strcmp(t->items[at]->key, key) ? t->items[at] : NULL;
}

static void remove_at(rows *t, uint32_t at) {
    memmove(&t->items[at], &t->items[at + 1], (t->count - at - 1) * sizeof *t->items);
    t->count--;
}

static void put(rows *t, const row *r) {
    uint32_t at = seek(t, r->key);
    if (at < t->count && !strcmp(t->items[at]->key, r->key)) {
        t->items[at] = r;
        return;
    }
    t->items = must(realloc(t->items, (t->count + 1) * sizeof *t->items));
    memmove(&t->items[at + 1], &t->items[at], (t->count - at) * sizeof *t->items);
    t->items[at] = r;
    t->count++;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

/* Ends with a NUL, as texts of a backend may have to. */
static row_text copy_text(row_text text) {
    char *bytes = must(malloc(text.length + 1));
    if (text.length) memcpy(bytes, text.bytes, text.length);
    bytes[text.length] = '\0';
    return (row_text){ bytes, text.length };
}

static row *new_row(sim_store *s, const char *key) {
    row *r = must(calloc(1, sizeof *r));
    assert(strlen(key) < KEY_SIZE);
    snprintf(r->key, sizeof r->key, "%s", key);
    r->next = s->service->made;
    s->service->made = r;
    return r;
}

static row *copy_row(sim_store *s, const row *from) {
    row *r = new_row(s, from->key);
    memcpy(r->n, from->n, sizeof r->n);
    for (int i = 0; i < TEXTS; i++) r->t[i] = copy_text(from->t[i]);
    return r;
}

static void free_rows(row *r) {
    for (row *next; r; r = next) {
        next = r->next;
        for (int i = 0; i < TEXTS; i++) free((void *)(uintptr_t)r->t[i].bytes);
        free(r);
    }
}

static void number_key(char key[KEY_SIZE], uint64_t n) {
    snprintf(key, KEY_SIZE, "%020" PRIu64, n);
}

static row_text row_text_of(const char *text) { return (row_text){ text, strlen(text) }; }

/* ---- Connections and transactions ---------------------------------------------------------- */

static bool draw(const sim_store *s, uint32_t one_in) {
    return one_in && hd_lab_random_once_in(&s->service->random, one_in);
}

static hd_status reach(const sim_store *s) {
    return s->service->lines[s->machine] == SIM_UP ? HD_OK : s->service->away;
}

static hd_status reach_to_read(const sim_store *s) {
    assert(s->open);
    return draw(s, s->service->faults.unread) ? HD_IO : reach(s);
}

static hd_status sim_open(const char *name, const hd_options *options, const hd_env *env,
                          log_role role, log_store **out, hd_error *error);

static void sim_rollback(log_store *base) {
    sim_store *s = store_of(base);
    if (s->open) state_free(&s->own);
    s->open = s->writes = s->appended = false;
}

static void sim_close(log_store *base) {
    sim_rollback(base);
    free(store_of(base));
}

static const char *sim_words(const log_store *s, hd_status status) {
    (void)s;
    return status == HD_IO ? "the service cannot be reached" : NULL;
}

static const char *sim_file(const log_store *s) {
    (void)s;
    return NULL;
}

static bool sim_is_lost(const log_store *s) {
    return store_of(s)->service->lines[store_of(s)->machine] == SIM_DEAD;
}

static hd_status begin(sim_store *s, bool writes, bool appends) {
    assert(!s->open);
    s->base.told_early = false;
    if (!appends) s->winner_count = 0;
    memset(s->beside_left, 0, sizeof s->beside_left);
    if (reach(s)) return reach(s);
    if (draw(s, s->service->faults.refused)) return HD_IO;
    state_copy(&s->own, &s->service->now);
    s->open = true;
    s->writes = writes;
    return HD_OK;
}

static hd_status sim_begin_read(log_store *s) { return begin(store_of(s), false, false); }

static hd_status sim_begin_write(log_store *s, log_durability durability) {
    return begin(store_of(s), true, durability == LOG_DURABLE);
}

static bool sim_in_transaction(const log_store *s) { return store_of(s)->open; }

static bool falls_silent(const sim_store *s) {
    sim_service *v = s->service;
    if (!s->appended || !v->silenced[s->machine]) return draw(s, v->faults.lost_ack);
    v->silenced[s->machine] = false;
    v->lines[s->machine] = SIM_CUT;
    return true;
}

static hd_status sim_commit(log_store *base) {
    sim_store *s = store_of(base);
    assert(s->open && s->writes);
    bool fails = reach(s) || draw(s, s->service->faults.aborted);
    bool silent = !fails && falls_silent(s);
    if (!fails) {
        state before = s->service->now;
        s->service->now = s->own;
        s->own = before;
    }
    if (fails || silent) return HD_IO; /* the caller rolls back */
    sim_rollback(base);
    return HD_OK;
}

/* ---- The log ------------------------------------------------------------------------------- */

static void let_others_race(sim_store *s) {
    sim_service *v = s->service;
    if (v->racing || !v->on_race || !draw(s, v->faults.raced)) return;
    v->racing = true;
    v->on_race(s->machine, v->race_ctx);
    v->racing = false;
}

/* The first change of a transaction: what others have committed since it began stays. */
static void take_latest(sim_store *s) {
    state_free(&s->own);
    state_copy(&s->own, &s->service->now);
}

static uint64_t last_row(const sim_service *s) {
    const rows *t = &s->now.tables[LOG];
    return t->count ? (uint64_t)t->items[t->count - 1]->n[0] : 0;
}

/* The rows that were faster than row `number`, and the numbers, as they are now: of no transaction. */
static void note_winners(sim_store *s, uint64_t number) {
    const rows *t = &s->service->now.tables[LOG];
    char key[KEY_SIZE];
    number_key(key, number);
    s->winner_count = 0;
    for (uint32_t i = seek(t, key); i < t->count && s->winner_count < WINNERS; i++)
        s->winners[s->winner_count++] = t->items[i];
    s->winners_after = number - 1;
    memcpy(s->beside, s->service->now.numbers, sizeof s->beside);
}

/* Another machine may have written since the transaction began: its row is then there already. */
static hd_status sim_append(log_store *base, uint64_t number, uint64_t hash, row_text body) {
    sim_store *s = store_of(base);
    char key[KEY_SIZE];
    number_key(key, number);
    s->winner_count = 0;
    let_others_race(s);
    if (last_row(s->service) != number - 1 && !SABOTAGED(base, LOG_LEAVE_OUT_RACE)) {
        s->service->races++;
        if (base->optimistic && base->contended) note_winners(s, number);
        return HD_RESYNC;
    }
    take_latest(s);
    row *r = new_row(s, key);
    r->n[0] = (int64_t)number;
    r->n[1] = (int64_t)hash;
    r->t[0] = copy_text(body);
    put(&s->own.tables[LOG], r);
    s->appended = true;
    return HD_OK;
}

static hd_status tell_log(const row *r, log_text_fn fn, void *ctx, bool *stop) {
    log_text text = { (uint64_t)r->n[0], (uint64_t)r->n[1], r->t[0] };
    return fn(ctx, &text, stop);
}

/* Tells the winners' rows, if they are those behind *after. False: they are all that is told. */
static bool tell_winners(sim_store *s, uint64_t *after, log_text_fn fn, void *ctx,
                         hd_status *status) {
    bool stop = false;
    uint32_t count = *after == s->winners_after ? s->winner_count : 0;
    if (!count) return true;
    s->winner_count = 0;
    s->base.told_early = true;
    for (int i = 0; i < LOG_NUMBERS_; i++) s->beside_left[i] = true;
    for (uint32_t i = 0; i < count && !stop && !*status; i++)
        *status = tell_log(s->winners[i], fn, ctx, &stop);
    *after = (uint64_t)s->winners[count - 1]->n[0];
    if (*status) memset(s->beside_left, 0, sizeof s->beside_left);
    return count == WINNERS && !stop && !*status;
}

static hd_status sim_read_after(log_store *base, uint64_t after, log_text_fn fn, void *ctx) {
    const rows *t = &store_of(base)->own.tables[LOG];
    char key[KEY_SIZE];
    bool stop = false;
    hd_status status = HD_OK;
    if (!tell_winners(store_of(base), &after, fn, ctx, &status)) return status;
    status = reach_to_read(store_of(base));
    number_key(key, after + 1);
    for (uint32_t i = seek(t, key); i < t->count && !stop && !status; i++)
        status = tell_log(t->items[i], fn, ctx, &stop);
    return status;
}

static hd_status sim_read_row(log_store *base, uint64_t number, log_text_fn fn, void *ctx) {
    char key[KEY_SIZE];
    bool stop = false;
    number_key(key, number);
    const row *r = find(&store_of(base)->own.tables[LOG], key);
    return r ? tell_log(r, fn, ctx, &stop) : HD_NOT_FOUND;
}

static hd_status sim_row_ends(log_store *s, uint64_t *first, uint64_t *last) {
    const rows *t = &store_of(s)->own.tables[LOG];
    *first = t->count ? (uint64_t)t->items[0]->n[0] : 0;
    *last = t->count ? (uint64_t)t->items[t->count - 1]->n[0] : 0;
    return HD_OK;
}

/* The last one stays: the next append is compared with it. */
static hd_status sim_delete_rows(log_store *base, uint64_t number) {
    rows *t = &store_of(base)->own.tables[LOG];
    while (t->count > 1 && (uint64_t)t->items[0]->n[0] <= number) remove_at(t, 0);
    return HD_OK;
}

static hd_status sim_get_number(log_store *base, log_number which, uint64_t *out) {
    sim_store *s = store_of(base);
    assert(s->open);
    *out = s->beside_left[which] ? s->beside[which] : s->own.numbers[which];
    if (s->beside_left[which]) s->beside_left[which] = false;
    else memset(s->beside_left, 0, sizeof s->beside_left);
    return HD_OK;
}

static hd_status sim_set_number(log_store *s, log_number which, uint64_t value) {
    store_of(s)->own.numbers[which] = value;
    return HD_OK;
}

static hd_status sim_get_secret(log_store *s, uint8_t out[64], size_t *length) {
    memcpy(out, store_of(s)->service->secret, 64);
    *length = 64;
    return HD_OK;
}

/* ---- Spaces -------------------------------------------------------------------------------- */

static void name_key(char key[KEY_SIZE], row_text name) {
    snprintf(key, KEY_SIZE, "%.*s", (int)name.length, name.bytes);
}

static hd_status sim_each_space(log_store *base, space_row_fn fn, void *ctx) {
    const rows *t = &store_of(base)->own.tables[SPACE];
    bool stop = false;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < t->count && !stop && !status; i++) {
        const row *r = t->items[i];
        status = fn(ctx, &(space_row){ r->t[0], r->n[0], r->n[1] }, &stop);
    }
    return status;
}

static row *space_for_change(sim_store *s, row_text name) {
    char key[KEY_SIZE];
    name_key(key, name);
    const row *old = find(&s->own.tables[SPACE], key);
    row *r = old ? copy_row(s, old) : new_row(s, key);
    if (!old) r->t[0] = copy_text(name);
    put(&s->own.tables[SPACE], r);
    return r;
}

static hd_status sim_get_space(log_store *s, row_text name, uint64_t *seq, uint64_t *floor) {
    char key[KEY_SIZE];
    name_key(key, name);
    const row *r = find(&store_of(s)->own.tables[SPACE], key);
    *seq = r ? (uint64_t)r->n[0] : 0;
    *floor = r ? (uint64_t)r->n[1] : 0;
    return HD_OK;
}

static hd_status sim_put_space(log_store *s, row_text name, uint64_t seq) {
    space_for_change(store_of(s), name)->n[0] = (int64_t)seq;
    return HD_OK;
}

static bool is_old_tombstone(const row *r, row_text space, int64_t seq) {
    return r->t[H_SPACE].length == space.length &&
           !memcmp(r->t[H_SPACE].bytes, space.bytes, space.length) && !r->t[H_VALUE].length &&
           !r->n[H_LARGE] && !r->t[H_META].length && !r->n[H_GUARDED] && r->n[H_SEQ] <= seq &&
           r->n[H_META_SEQ] <= seq;
}

static hd_status sim_raise_floor(log_store *base, row_text name, uint64_t seq) {
    sim_store *s = store_of(base);
    rows *heads = &s->own.tables[HEAD];
    row *space = space_for_change(s, name);
    if (space->n[1] < (int64_t)seq) space->n[1] = (int64_t)seq;
    for (uint32_t i = heads->count; i-- > 0;)
        if (is_old_tombstone(heads->items[i], name, space->n[1])) remove_at(heads, i);
    return HD_OK;
}

/* ---- Documents ----------------------------------------------------------------------------- */

/* In the order of doc_name_compare within a space. */
static void head_key(char key[KEY_SIZE], const doc_name *n) {
    snprintf(key, KEY_SIZE, "%.*s\x01%.*s\x01%s\x01%.*s", (int)n->space_length, n->space,
             (int)n->id_length, n->id, scope_word(n->scope), (int)n->instance_length, n->instance);
}

static const row *head_by_number(const sim_store *s, int64_t doc) {
    const rows *t = &s->own.tables[HEAD];
    for (uint32_t i = 0; i < t->count; i++)
        if (t->items[i]->n[H_DOC] == doc) return t->items[i];
    return NULL;
}

static head_row head_of(const row *r) {
    return (head_row){ .exists = true,
                       .doc = r->n[H_DOC],
                       .seq = r->n[H_SEQ],
                       .meta_seq = r->n[H_META_SEQ],
                       .guarded = r->n[H_GUARDED] != 0,
                       .large = r->n[H_LARGE] != 0,
                       .size = r->n[H_SIZE],
                       .patched = r->n[H_PATCHED],
                       .hash = (uint64_t)r->n[H_HASH],
                       .kind = r->t[H_KIND].bytes,
                       .value = r->t[H_VALUE],
                       .meta = r->t[H_META] };
}

static hd_status sim_read_head(log_store *s, const doc_name *name, head_row *out) {
    char key[KEY_SIZE];
    head_key(key, name);
    const row *r = find(&store_of(s)->own.tables[HEAD], key);
    *out = r ? head_of(r) : (head_row){ .kind = "" };
    return reach_to_read(store_of(s));
}

static void sim_end_head(log_store *s) { (void)s; }

static hd_status sim_put_head(log_store *base, const doc_name *name, const head_row *h,
                              int64_t *doc) {
    sim_store *s = store_of(base);
    char key[KEY_SIZE];
    head_key(key, name);
    row *r = new_row(s, key);
    *doc = h->exists ? h->doc : ++s->own.docs;
    int64_t numbers[NUMBERS] = {
        [H_DOC] = *doc,
        [H_SEQ] = h->seq,
        [H_META_SEQ] = h->meta_seq,
        [H_GUARDED] = h->guarded,
        [H_LARGE] = h->large,
        [H_SIZE] = h->size,
        [H_PATCHED] = h->patched,
        [H_HASH] = (int64_t)h->hash,
        [H_SCOPE] = (int64_t)name->scope,
    };
    memcpy(r->n, numbers, sizeof r->n);
    r->t[H_KIND] = copy_text(row_text_of(h->kind ? h->kind : ""));
    r->t[H_VALUE] = copy_text(h->value);
    r->t[H_META] = copy_text(h->meta);
    r->t[H_SPACE] = copy_text((row_text){ name->space, name->space_length });
    r->t[H_INSTANCE] = copy_text((row_text){ name->instance, name->instance_length });
    r->t[H_ID] = copy_text((row_text){ name->id, name->id_length });
    put(&s->own.tables[HEAD], r);
    return HD_OK;
}

static hd_status sim_touch_head(log_store *base, int64_t doc, uint64_t seq, uint64_t patched) {
    sim_store *s = store_of(base);
    const row *old = head_by_number(s, doc);
    if (!old) return HD_OK;
    row *r = copy_row(s, old);
    r->n[H_SEQ] = (int64_t)seq;
    r->n[H_PATCHED] = (int64_t)patched;
    put(&s->own.tables[HEAD], r);
    return HD_OK;
}

/* Removes the rows of a table whose first number is `doc`. */
static void drop_of_doc(sim_store *s, row_table which, int64_t doc) {
    rows *t = &s->own.tables[which];
    for (uint32_t i = t->count; i-- > 0;)
        if (t->items[i]->n[0] == doc) remove_at(t, i);
}

static hd_status sim_drop_head(log_store *s, int64_t doc) {
    drop_of_doc(store_of(s), HEAD, doc);
    return HD_OK;
}
static hd_status sim_drop_large(log_store *s, int64_t doc) {
    drop_of_doc(store_of(s), LARGE, doc);
    return HD_OK;
}
static hd_status sim_drop_patches(log_store *s, int64_t doc) {
    drop_of_doc(store_of(s), PATCH, doc);
    return HD_OK;
}

/* The rows of large and patch: doc, seq, hash; text. */
static void put_part(sim_store *s, row_table which, int64_t doc, const head_part *part) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "%020" PRId64 "/%020" PRId64, doc, part->seq);
    row *r = new_row(s, key);
    r->n[0] = doc;
    r->n[1] = part->seq;
    r->n[2] = (int64_t)part->hash;
    r->t[0] = copy_text(part->text);
    put(&s->own.tables[which], r);
}

static hd_status each_part(const sim_store *s, row_table which, int64_t doc, head_part_fn fn,
                           void *ctx, bool *found) {
    const rows *t = &s->own.tables[which];
    bool stop = false;
    hd_status status = HD_OK;
    *found = false;
    for (uint32_t i = 0; i < t->count && !stop && !status; i++) {
        const row *r = t->items[i];
        if (r->n[0] != doc) continue;
        *found = true;
        status = fn(ctx, &(head_part){ r->n[1], (uint64_t)r->n[2], r->t[0] }, &stop);
    }
    return status;
}

static hd_status sim_read_large(log_store *s, int64_t doc, head_part_fn fn, void *ctx) {
    bool found;
    hd_status status = each_part(store_of(s), LARGE, doc, fn, ctx, &found);
    return status || found ? status : HD_NOT_FOUND;
}

static hd_status sim_put_large(log_store *s, int64_t doc, uint64_t hash, row_text value) {
    put_part(store_of(s), LARGE, doc, &(head_part){ 0, hash, value });
    return HD_OK;
}

static hd_status sim_each_patch(log_store *s, int64_t doc, head_part_fn fn, void *ctx) {
    bool found;
    return each_part(store_of(s), PATCH, doc, fn, ctx, &found);
}

static hd_status sim_put_patch(log_store *s, int64_t doc, const head_part *patch) {
    put_part(store_of(s), PATCH, doc, patch);
    return HD_OK;
}

static head_item item_of(const row *r, bool meta) {
    return (head_item){ .name = { .space = r->t[H_SPACE].bytes,
                                  .space_length = (uint32_t)r->t[H_SPACE].length,
                                  .instance = r->t[H_INSTANCE].bytes,
                                  .instance_length = (uint32_t)r->t[H_INSTANCE].length,
                                  .id = r->t[H_ID].bytes,
                                  .id_length = (uint32_t)r->t[H_ID].length,
                                  .scope = (hd_scope)r->n[H_SCOPE],
                                  .meta = meta },
                        .kind = r->t[H_KIND].bytes,
                        .seq = r->n[meta ? H_META_SEQ : H_SEQ],
                        .doc = r->n[H_DOC] };
}

static bool is_in_space(const row *r, row_text space) {
    return r->t[H_SPACE].length == space.length &&
           !memcmp(r->t[H_SPACE].bytes, space.bytes, space.length);
}

static bool is_listed(const row *r, row_text space, const char *kind, const char *from) {
    return is_in_space(r, space) && (r->t[H_VALUE].length || r->n[H_LARGE]) &&
           strcmp(r->t[H_ID].bytes, from) >= 0 && (!kind || !strcmp(r->t[H_KIND].bytes, kind));
}

static hd_status sim_list_heads(log_store *base, row_text space, const char *kind, const char *from,
                                head_item_fn fn, void *ctx) {
    const rows *t = &store_of(base)->own.tables[HEAD];
    bool stop = false;
    hd_status status = reach_to_read(store_of(base));
    for (uint32_t i = 0; i < t->count && !stop && !status; i++) {
        if (!is_listed(t->items[i], space, kind, from)) continue;
        head_item item = item_of(t->items[i], false);
        status = fn(ctx, &item, &stop);
    }
    return status;
}

static hd_status sim_heads_since(log_store *base, row_text space, uint64_t seq, bool meta,
                                 head_item_fn fn, void *ctx) {
    const rows *t = &store_of(base)->own.tables[HEAD];
    bool stop = false;
    hd_status status = reach_to_read(store_of(base));
    for (uint32_t i = 0; i < t->count && !stop && !status; i++) {
        head_item item = item_of(t->items[i], meta);
        if (is_in_space(t->items[i], space) && item.seq > (int64_t)seq)
            status = fn(ctx, &item, &stop);
    }
    return status;
}

static hd_status sim_find_patched(log_store *base, int64_t after, head_item_fn fn, void *ctx) {
    const rows *t = &store_of(base)->own.tables[HEAD];
    const row *first = NULL;
    bool stop;
    for (uint32_t i = 0; i < t->count; i++) {
        const row *r = t->items[i];
        bool fits = r->n[H_PATCHED] > 0 && r->n[H_DOC] > after;
        if (fits && (!first || r->n[H_DOC] < first->n[H_DOC])) first = r;
    }
    if (!first) return HD_OK;
    head_item item = item_of(first, false);
    return fn(ctx, &item, &stop);
}

/* ---- Nodes --------------------------------------------------------------------------------- */

static void node_key(char key[KEY_SIZE], row_text name, row_text instance) {
    snprintf(key, KEY_SIZE, "%.*s\x01%.*s", (int)name.length, name.bytes, (int)instance.length,
             instance.bytes);
}

static hd_status sim_has_memos(log_store *s, bool *out) {
    *out = store_of(s)->own.tables[NODE].count > 0;
    return HD_OK;
}

static bool is_of_piece(const row *r, const char *piece) {
    size_t length = strlen(piece);
    return !strncmp(r->t[0].bytes, piece, length) && r->t[0].bytes[length] == ':';
}

static hd_status sim_each_memo(log_store *base, const char *piece, stored_memo_fn fn, void *ctx) {
    const rows *t = &store_of(base)->own.tables[NODE];
    bool stop = false;
    hd_status status = reach_to_read(store_of(base));
    for (uint32_t i = 0; i < t->count && !stop && !status; i++) {
        const row *r = t->items[i];
        stored_memo node;
        for (int k = 0; k < MEMO_TEXTS; k++) node.text[k] = r->t[k];
        if (!piece || is_of_piece(r, piece)) status = fn(ctx, &node, &stop);
    }
    return status;
}

static hd_status sim_next_memo(log_store *base, const char *from, char *out, size_t size) {
    const rows *t = &store_of(base)->own.tables[NODE];
    *out = '\0';
    for (uint32_t i = 0; i < t->count && !*out; i++)
        if (strcmp(t->items[i]->t[0].bytes, from) >= 0)
            snprintf(out, size, "%s", t->items[i]->t[0].bytes);
    return HD_OK;
}

static hd_status sim_put_memo(log_store *base, const stored_memo *n) {
    sim_store *s = store_of(base);
    char key[KEY_SIZE];
    node_key(key, n->text[MEMO_NAME], n->text[MEMO_INSTANCE]);
    row *r = new_row(s, key);
    for (int i = 0; i < MEMO_TEXTS; i++) r->t[i] = copy_text(n->text[i]);
    put(&s->own.tables[NODE], r);
    return HD_OK;
}

static void drop_key(sim_store *s, row_table which, const char *key) {
    rows *t = &s->own.tables[which];
    uint32_t at = seek(t, key);
    if (at < t->count && !strcmp(t->items[at]->key, key)) remove_at(t, at);
}

static hd_status sim_drop_memo(log_store *s, row_text name, row_text instance) {
    char key[KEY_SIZE];
    node_key(key, name, instance);
    drop_key(store_of(s), NODE, key);
    return HD_OK;
}

/* ---- Runtimes ------------------------------------------------------------------------------ */

static hd_status sim_each_session(log_store *base, session_row_fn fn, void *ctx) {
    const rows *t = &store_of(base)->own.tables[SESSION];
    bool stop = false;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < t->count && !stop && !status; i++) {
        const row *r = t->items[i];
        status = fn(ctx, &(session_row){ r->t[0], r->n[0], r->n[1], r->t[1] }, &stop);
    }
    return status;
}

static hd_status sim_put_session(log_store *base, const session_row *session) {
    sim_store *s = store_of(base);
    row *r = new_row(s, session->id.bytes);
    r->n[0] = session->settled;
    r->n[1] = session->last;
    r->t[0] = copy_text(session->id);
    r->t[1] = copy_text(session->verdicts);
    put(&s->own.tables[SESSION], r);
    return HD_OK;
}

/* The service takes a machine that it cannot hear for dead, as a lease that has run out does. */
static hd_status sim_each_reader(log_store *base, reader_row_fn fn, void *ctx) {
    const sim_store *s = store_of(base);
    assert(s->open);
    const rows *t = &s->own.tables[READER];
    bool stop = false;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < t->count && !stop && !status; i++) {
        const row *r = t->items[i];
        bool lives = s->service->lines[r->n[1]] == SIM_UP;
        status = fn(ctx, &(reader_row){ r->t[0].bytes, (uint64_t)r->n[0], lives }, &stop);
    }
    return status;
}

static hd_status sim_put_reader(log_store *base, const char *session, uint64_t position) {
    sim_store *s = store_of(base);
    row *r = new_row(s, session);
    r->n[0] = (int64_t)position;
    r->n[1] = s->machine;
    r->t[0] = copy_text(row_text_of(session));
    put(&s->own.tables[READER], r);
    return HD_OK;
}

static hd_status sim_move_reader(log_store *base, const char *session, uint64_t position) {
    return find(&store_of(base)->own.tables[READER], session)
               ? sim_put_reader(base, session, position)
               : HD_OK;
}

static hd_status sim_drop_runtime(log_store *s, const char *session) {
    drop_key(store_of(s), READER, session);
    drop_key(store_of(s), SESSION, session);
    return HD_OK;
}

/* Outside of a transaction, too. */
static hd_status sim_lasts(log_store *base, const char *session, uint32_t *ms) {
    const sim_store *s = store_of(base);
    const row *r = find(&s->service->now.tables[PRESENT], session);
    int64_t left = r ? r->n[0] - s->service->now_ms : 0;
    *ms = left > 0 ? (uint32_t)left : 0;
    return reach(s);
}

static hd_status sim_beat(log_store *base, const char *session, uint32_t ms, log_life *others,
                          uint32_t count, uint64_t *last) {
    sim_store *s = store_of(base);
    hd_status status = sim_begin_write(base, LOG_SOFT);
    if (status) return status;
    row *r = new_row(s, session);
    r->n[0] = s->service->now_ms + ms;
    put(&s->own.tables[PRESENT], r);
    status = sim_commit(base);
    if (status) sim_rollback(base);
    for (uint32_t i = 0; i < count && !status; i++)
        status = sim_lasts(base, others[i].session, &others[i].ms);
    if (!status) *last = last_row(s->service);
    return status;
}

static hd_status sim_leave(log_store *base, const char *session) {
    drop_key(store_of(base), PRESENT, session);
    return HD_OK;
}

/* ---- The rest ------------------------------------------------------------------------------ */

static bool sim_has_work(const log_store *s) {
    (void)s;
    return false;
}
static void sim_work(log_store *s) { (void)s; }
static hd_status sim_vacuum(log_store *s) {
    (void)s;
    return HD_OK;
}
static int sim_notify_fd(log_store *s) {
    (void)s;
    return -1;
}
static bool sim_notify_arm(log_store *s) {
    (void)s;
    return false;
}
static uint64_t sim_notify_take(log_store *s) {
    (void)s;
    return UINT64_MAX;
}
static bool sim_is_being_written(log_store *s) {
    (void)s;
    return false;
}

static const log_backend sim_backend = {
    .open = sim_open,
    .close = sim_close,
    .words = sim_words,
    .file = sim_file,
    .is_lost = sim_is_lost,
    .begin_read = sim_begin_read,
    .begin_write = sim_begin_write,
    .commit = sim_commit,
    .rollback = sim_rollback,
    .in_transaction = sim_in_transaction,
    .append = sim_append,
    .read_after = sim_read_after,
    .read_row = sim_read_row,
    .row_ends = sim_row_ends,
    .delete_rows = sim_delete_rows,
    .get_number = sim_get_number,
    .set_number = sim_set_number,
    .get_secret = sim_get_secret,
    .each_space = sim_each_space,
    .get_space = sim_get_space,
    .put_space = sim_put_space,
    .raise_floor = sim_raise_floor,
    .find_head = sim_read_head,
    .read_head = sim_read_head,
    .end_head = sim_end_head,
    .put_head = sim_put_head,
    .touch_head = sim_touch_head,
    .drop_head = sim_drop_head,
    .read_large = sim_read_large,
    .put_large = sim_put_large,
    .drop_large = sim_drop_large,
    .each_patch = sim_each_patch,
    .put_patch = sim_put_patch,
    .drop_patches = sim_drop_patches,
    .list_heads = sim_list_heads,
    .heads_since = sim_heads_since,
    .find_patched = sim_find_patched,
    .has_memos = sim_has_memos,
    .each_memo = sim_each_memo,
    .next_memo = sim_next_memo,
    .put_memo = sim_put_memo,
    .drop_memo = sim_drop_memo,
    .each_session = sim_each_session,
    .put_session = sim_put_session,
    .each_reader = sim_each_reader,
    .put_reader = sim_put_reader,
    .move_reader = sim_move_reader,
    .drop_runtime = sim_drop_runtime,
    .beat = sim_beat,
    .leave = sim_leave,
    .lasts = sim_lasts,
    .has_work = sim_has_work,
    .work = sim_work,
    .vacuum = sim_vacuum,
    .notify_fd = sim_notify_fd,
    .notify_arm = sim_notify_arm,
    .notify_take = sim_notify_take,
    .is_being_written = sim_is_being_written,
};

/* ---- The service --------------------------------------------------------------------------- */

/* `options->context` is the service, and the name is the machine's number: sim_service_runtime. */
static hd_status sim_open(const char *name, const hd_options *options, const hd_env *env,
                          log_role role, log_store **out, hd_error *error) {
    (void)role;
    (void)error;
    *out = NULL;
    sim_store *s = must(calloc(1, sizeof *s));
    log_store_init(&s->base, &sim_backend, env, name);
    s->base.text_max = (size_t)1 << 20;
    s->base.stepped = true;
    s->base.look_ns = UINT64_MAX;
    s->service = options->context;
    s->base.optimistic = s->service->optimistic;
    s->base.patient = s->service->away == HD_BUSY;
    s->machine = (uint32_t)atoi(name);
    if (reach(s)) {
        free(s);
        return HD_IO;
    }
#ifndef NDEBUG
    s->base.sabotage = s->service->sabotage & SIM_OF_LOG;
#endif
    *out = &s->base;
    return HD_OK;
}

sim_service *sim_service_open(uint64_t seed) {
    sim_service *s = must(calloc(1, sizeof *s));
    s->random = hd_lab_random_of(seed);
    hd_lab_random_bytes(&s->random, s->secret, sizeof s->secret);
    s->optimistic = hd_lab_random_once_in(&s->random, 2);
    s->away = HD_IO;
    return s;
}

void sim_service_close(sim_service *s) {
    state_free(&s->now);
    free_rows(s->made);
    free(s);
}

hd_status sim_service_runtime(sim_service *s, uint32_t machine, const hd_env *env, hd_runtime **out,
                              hd_error *error) {
    char name[12];
    snprintf(name, sizeof name, "%u", machine);
    hd_options options = { .env = env, .context = s, .strict = true };
    hd_status status = runtime_open_with(&sim_backend, name, &options, out, error);
#ifndef NDEBUG
    if (!status) (*out)->r.sabotage = s->sabotage >> SIM_OF_RUNTIME;
#endif
    return status;
}

void sim_service_set_faults(sim_service *s, sim_faults faults) {
    s->faults = faults;
    memset(s->silenced, 0, sizeof s->silenced);
}
void sim_service_silence(sim_service *s, uint32_t machine) { s->silenced[machine] = true; }
void sim_service_be_patient(sim_service *s) { s->away = HD_BUSY; }

void sim_service_set_line(sim_service *s, uint32_t machine, sim_line line) {
    s->lines[machine] = line;
}
void sim_service_sabotage(sim_service *s, unsigned what) { s->sabotage = what; }
void sim_service_on_race(sim_service *s, void (*fn)(uint32_t machine, void *ctx), void *ctx) {
    s->on_race = fn;
    s->race_ctx = ctx;
}

void sim_service_advance_ms(sim_service *s, uint64_t ms) { s->now_ms += (int64_t)ms; }

uint64_t sim_service_rows(const sim_service *s) { return last_row(s); }
uint64_t sim_service_races(const sim_service *s) { return s->races; }
uint64_t sim_service_digest(const sim_service *s) {
    uint64_t digest = 0;
    for (const row *r = s->made; r; r = r->next)
        digest = digest * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)r->n[0] + r->t[0].length;
    return digest;
}
