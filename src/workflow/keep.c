/* keep.c -- instances that are over leave the store by themselves, where a policy says for how long, or how many, are
 * kept.
 *
 * The policy is that of the workflow ("keep" in its IR), else that of the engine's options. The commit that stores ends
 * under a policy also writes a *note*, one for each workflow: the document
 *
 *     workflow-ended/<workflow>/<time>-<serial>-<random>-<ends>      [[key, finished, due], ...]
 *
 * Every commit has notes of its own, so that commits under way do not share a document. By their names the notes of a
 * workflow are in the order of the ends. A *shelf* is what the engine remembers of the notes of one workflow: when the
 * first end is due, how many there are, and the names of the oldest. When something is due, the oldest note is read,
 * and a transaction removes its instances and shortens the note.
 *
 * The engine that has the lease of the first shard removes; it hears of notes that engines of other shards write.
 *
 * An end that is no more, because its instance was run again or removed, stays in its note until it is the oldest, and
 * does not count. When such a thing has happened, the ends are counted by their instances before more of them go.
 *
 * Cost: removing costs what is removed; a policy with a number counts the notes of the workflow once, and its ends once
 * more when there are too many after a rerun or a removal. Nothing is looked at while nothing is due. */
#include "workflow/engine.h"

#include "base/env.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NOTE_KIND "workflow.ended"
#define NOTE_MAX  256 /* ends in one note */
#define SLICE     64  /* instances that one transaction removes */
#define SEGMENTS  64  /* segments of a journal that one transaction removes */
#define NEVER     UINT64_MAX
#define AGAIN_MS  1000 /* what could not be removed is tried again after that */
#define AHEAD     64   /* notes that one listing finds */

typedef VEC(const live *) end_vec;

/* The notes of one workflow. */
typedef struct shelf {
    char *name;      /* of the workflow; owned */
    uint64_t due_ms; /* wall clock: when its oldest note is to be looked at; NEVER: not by time */
    uint64_t
        most; /* ends that are kept, by the policy of the last that came; 0: any number; good if `told` */
    bool told;
    uint64_t kept; /* ends in its notes; good if `counted` */
    bool counted;
    bool stale;   /* its notes may have ends that are no more */
    bool doubted; /* some have come since they were counted */
    end_vec ends; /* of the commit that is being made */
    /* Names of its oldest notes, without NOTE_PREFIX, owned; the oldest is the last. Empty: to be listed. */
    VEC(char *) notes;
} shelf;

static shelf *shelf_find(const hd_engine *e, const char *name) {
    for (uint32_t i = 0; i < e->shelves.count; i++)
        if (!strcmp(e->shelves.items[i]->name, name)) return e->shelves.items[i];
    return NULL;
}

static void forget_notes(hd_engine *e, shelf *s) {
    while (s->notes.count) engine_free_text(e, vec_pop(&s->notes));
}

static void shelf_free(hd_engine *e, shelf *s) {
    forget_notes(e, s);
    vec_fini(e->env, &s->notes);
    engine_free_text(e, s->name);
    vec_fini(e->env, &s->ends);
    env_free(e->env, s, sizeof *s);
}

/* NULL: no memory. */
static shelf *shelf_of(hd_engine *e, const char *name) {
    shelf *s = shelf_find(e, name);
    if (s || !(s = env_new0(e->env, sizeof *s))) return s;
    s->due_ms = NEVER;
    s->name = engine_text(e, name);
    if (s->name && vec_push(e->env, &e->shelves, s)) return s;
    shelf_free(e, s);
    return NULL;
}

static void look_at(hd_engine *e, shelf *s, uint64_t at_ms) {
    if (at_ms < s->due_ms) s->due_ms = at_ms;
    if (at_ms < e->shelf_due_ms) e->shelf_due_ms = at_ms;
}

/* ---- ends */

typedef struct policy {
    uint64_t ms, most; /* 0: no bound */
} policy;

static policy policy_of(const live *l) {
    const plan *p = l->in->p;
    if (p->keep_is_set) return (policy){ p->keep_ms, p->keep_most };
    return (policy){ l->e->keep_ms, l->e->keep_most };
}

/* A stalled instance stays, so that people can look at it. */
hd_status keep_note(live *l) {
    assert(instance_is_over(l->in));
    policy kept = policy_of(l);
    if ((!kept.ms && !kept.most) || l->in->status == INSTANCE_STALLED) return HD_OK;
    shelf *s = shelf_of(l->e, l->in->p->name);
    return s && vec_push(l->e->env, &s->ends, l) ? HD_OK : HD_NOMEM;
}

static uint64_t due_of(const live *l) {
    policy kept = policy_of(l);
    return kept.ms ? l->in->now_ms + kept.ms : 0;
}

static hd_value end_value(hd_pool *pool, const live *l) {
    assert(instance_is_over(l->in) && strchr(l->id, '/'));
    hd_value fields[] = { hd_string(pool, strchr(l->id, '/') + 1),
                          hd_int(pool, (int64_t)l->in->now_ms), hd_int(pool, (int64_t)due_of(l)) };
    return hd_array_of(pool, fields, 3);
}

static hd_status set_note(hd_engine *e, hd_tx *tx, const char *name, hd_value ends) {
    place_id doc = engine_document(e, NOTE_PREFIX, name);
    if (!doc) return HD_NOMEM;
    engine_assume_absent(e, doc);
    hd_status status = hd_tx_set(tx, (hd_cell){ doc }, ends);
    if (!status) status = hd_tx_set_kind(tx, (hd_cell){ doc }, NOTE_KIND);
    place_unref(&e->rt->r.places, doc);
    return status;
}

static hd_status write_note(hd_engine *e, hd_tx *tx, const shelf *s, uint32_t from, uint32_t to) {
    char name[HD_INSTANCE_ID_SIZE + 64];
    hd_pool *pool = hd_tx_pool(tx);
    hd_value ends = hd_array();
    for (uint32_t i = from; i < to; i++)
        ends = hd_array_append(pool, ends, end_value(pool, s->ends.items[i]));
    snprintf(name, sizeof name, "%s/%012" PRIx64 "-%08" PRIx32 "-%08" PRIx32 "-%" PRIu32, s->name,
             s->ends.items[from]->in->now_ms, ++e->note_serial, (uint32_t)(e->group >> 1),
             to - from);
    return set_note(e, tx, name, ends);
}

/* The newest end says how many are kept. */
static hd_status write_shelf(hd_engine *e, hd_tx *tx, shelf *s) {
    hd_status status = HD_OK;
    if (!s->ends.count) return HD_OK;
    for (uint32_t i = 0; i < s->ends.count && !status; i += NOTE_MAX) {
        uint32_t to = s->ends.count - i < NOTE_MAX ? s->ends.count : i + NOTE_MAX;
        status = write_note(e, tx, s, i, to);
    }
    s->most = policy_of(vec_last(&s->ends)).most;
    s->told = true;
    s->kept += s->ends.count;
    for (uint32_t i = 0; i < s->ends.count; i++)
        if (due_of(s->ends.items[i])) look_at(e, s, due_of(s->ends.items[i]));
    if (s->most && (!s->counted || s->kept > s->most)) look_at(e, s, 0);
    return status;
}

hd_status keep_write(hd_engine *e, hd_tx *tx, hd_status status) {
    for (uint32_t i = 0; i < e->shelves.count; i++) {
        if (!status) status = write_shelf(e, tx, e->shelves.items[i]);
        vec_clear(&e->shelves.items[i]->ends);
    }
    return status;
}

/* A commit was refused, so its notes are not stored: the ends are counted anew. */
void keep_lost(hd_engine *e) {
    for (uint32_t i = 0; i < e->shelves.count; i++) e->shelves.items[i]->counted = false;
}

/* A listing does not find the notes of a commit under way: a shelf is counted only while none is. */
static bool must_count(const shelf *s) { return !s->counted || (s->doubted && s->kept > s->most); }

static bool may_look_beside(const shelf *s) { return (s->told && !s->most) || !must_count(s); }

bool keep_must_count(const hd_engine *e) {
    if (!e->shards->runs) return false;
    for (uint32_t i = 0; i < e->shelves.count; i++)
        if (!may_look_beside(e->shelves.items[i])) return true;
    return false;
}

/* ---- looking at notes */

typedef struct finding {
    hd_engine *e;
    shelf *s;      /* whose notes are listed; NULL: those of all workflows, until one is found */
    uint64_t ends; /* in the notes that were found */
    bool all;      /* go through all notes, to count the ends */
    VEC(place_id) docs; /* with `all`, of a shelf that is stale: the notes, referenced */
    bool any;           /* a note was found */
    bool nomem;
} finding;

static void note_name(finding *f, const char *id) {
    char *name = engine_text(f->e, id + strlen(NOTE_PREFIX));
    f->nomem = !name || !vec_push(f->e->env, &f->s->notes, name);
    if (f->nomem) engine_free_text(f->e, name);
}

static void note_doc(finding *f, const char *id) {
    place_id doc = engine_document(f->e, NOTE_PREFIX, id + strlen(NOTE_PREFIX));
    f->nomem = !doc || !vec_push(f->e->env, &f->docs, doc);
    if (f->nomem && doc) place_unref(&f->e->rt->r.places, doc);
}

/* The last number in the name of a note is the number of its ends. */
static bool note_found(const hd_listing *entry, void *ctx) {
    finding *f = ctx;
    const char *dash = strrchr(entry->id, '-');
    f->any = true;
    f->ends += dash ? strtoull(dash + 1, NULL, 10) : 0;
    if (f->s && f->s->notes.count < AHEAD) note_name(f, entry->id);
    if (f->all && f->s->stale && !f->nomem) note_doc(f, entry->id);
    return !f->nomem && (f->all || (f->s && f->s->notes.count < AHEAD));
}

/* Lists the notes; the names of the oldest are kept on the shelf. */
static hd_status find_notes(finding *f) {
    char prefix[HD_INSTANCE_ID_SIZE + 64];
    hd_engine *e = f->e;
    shelf *s = f->s;
    snprintf(prefix, sizeof prefix, NOTE_PREFIX "%s%s", s ? s->name : "", s ? "/" : "");
    if (s) forget_notes(e, s);
    hd_status status = hd_runtime_list(e->rt, e->space, NOTE_KIND, prefix, note_found, f);
    if (!status && f->nomem) status = HD_NOMEM;
    for (uint32_t i = 0; s && i < s->notes.count / 2; i++) { /* the oldest becomes the last */
        char **a = &s->notes.items[i], **b = &s->notes.items[s->notes.count - 1 - i], *kept = *a;
        *a = *b;
        *b = kept;
    }
    if (status && s) forget_notes(e, s);
    return status;
}

/* ---- removing */

typedef struct sweep {
    shelf *s;
    hd_tx *tx;
    uint64_t now_ms;
    uint64_t excess; /* ends beyond what is kept */
    hd_value left;   /* ends that stay in the note */
    uint64_t removed;
    uint64_t dropped; /* ends that are no more */
    uint64_t stuck;   /* ends that cannot be removed yet */
    uint64_t cut;     /* instances whose journal is shorter now */
} sweep;

static uint64_t due_at(hd_value end) {
    return (uint64_t)hd_value_as_int(hd_value_index(end, 2), 0);
}

static bool is_due(const sweep *w, hd_value end) {
    return (due_at(end) && due_at(end) <= w->now_ms) || w->removed + w->stuck < w->excess;
}

static void leave(sweep *w, hd_value end) {
    w->left = hd_array_append(hd_tx_pool(w->tx), w->left, end);
}

/* Whether the end of the instance is stored, but the engine has not heard the verdict yet. */
static bool is_ending(const hd_engine *e, const char *id) {
    const live *l = live_find(e, id);
    return l && (!l->in || instance_is_over(l->in));
}

/* An instance that runs again, or was removed and started anew, is not the one that the note means: its own end has a
 * note of its own. A child that its parent still waits for stays for now, and so does one with a long journal. */
static hd_status sweep_end(hd_engine *e, sweep *w, hd_value end) {
    char id[HD_INSTANCE_ID_SIZE];
    bool gone = true;
    uint64_t finished = (uint64_t)hd_value_as_int(hd_value_index(end, 1), 0);
    snprintf(id, sizeof id, "%s/%s", w->s->name, hd_value_as_text(hd_value_index(end, 0), ""));
    hd_status status =
        is_ending(e, id) ? HD_BUSY : remove_some(w->tx, e, id, finished, SEGMENTS, &gone);
    if (status == HD_BUSY || (!status && !gone)) {
        w->stuck += status == HD_BUSY;
        w->cut += !status;
        leave(w, end);
        return HD_OK;
    }
    bool is_no_more = status == HD_NOT_FOUND || status == HD_USAGE;
    w->removed += !is_no_more;
    w->dropped += is_no_more;
    return is_no_more ? HD_OK : status;
}

/* Rows of the log hold hundreds of instances, and a load parses the whole row. Where the first of the note is read from
 * there, the others are too, which ended with it: the log is folded first, which reads each row once. */
static void prepare_loads(hd_engine *e, const sweep *w, hd_value first) {
    authority *a = e->rt->r.authority;
    char id[HD_INSTANCE_ID_SIZE];
    if (!a->ops->is_in_log || !hd_value_exists(first) || !is_due(w, first)) return;
    snprintf(id, sizeof id, "%s/%s", w->s->name, hd_value_as_text(hd_value_index(first, 0), ""));
    place_id doc = engine_document(e, INSTANCE_PREFIX, id);
    if (!doc) return; /* no memory: removing says so */
    bool costly = a->ops->is_in_log(a, doc);
    place_unref(&e->rt->r.places, doc);
    if (costly && a->ops->expect_loads) a->ops->expect_loads(a);
}

/* Nothing of the note was due, or could be removed: sets when to look again. */
static void rest(sweep *w, hd_value first) {
    uint64_t due = due_at(first);
    if (w->stuck || !hd_value_exists(first)) w->s->due_ms = w->now_ms + AGAIN_MS;
    else w->s->due_ms = due ? due : NEVER;
}

static hd_status sweep_note(hd_engine *e, sweep *w, hd_value ends) {
    hd_status status = HD_OK;
    size_t i = 0, count = hd_value_count(ends);
    prepare_loads(e, w, hd_value_index(ends, 0));
    for (; i < count && i < SLICE && !w->cut && !status && is_due(w, hd_value_index(ends, i)); i++)
        status = sweep_end(e, w, hd_value_index(ends, i));
    for (; i < count; i++) leave(w, hd_value_index(ends, i));
    if (!w->removed && !w->dropped && !w->cut) rest(w, hd_value_index(ends, 0));
    return status ? status : hd_value_status(w->left);
}

/* Replaces the note by one with the ends that are left. Its name ends with their number, and has the same place in the
 * order. */
static hd_status shorten(hd_engine *e, sweep *w, place_id doc) {
    char next[HD_INSTANCE_ID_SIZE + 64];
    size_t left = hd_value_count(w->left);
    char *name = vec_pop(&w->s->notes), *dash = strrchr(name, '-');
    snprintf(next, sizeof next, "%.*s-%zu", (int)(dash ? dash - name : 0), name, left);
    engine_free_text(e, name);
    hd_status status = hd_tx_remove(w->tx, (hd_cell){ doc });
    if (status || !left) return status;
    name = engine_text(e, next);
    if (!name) return HD_NOMEM;
    (void)vec_push(e->env, &w->s->notes, name); /* there is room: one has left */
    return set_note(e, w->tx, next, w->left);
}

/* Called in a pump. If the commit is refused, another one has changed something that it removes. */
static void verdict(hd_status status, void *ctx) {
    hd_engine *e = ctx;
    shelf *s = e->swept;
    e->swept = NULL;
    e->sweeps--;
    if (e->orphan) {
        engine_free_orphan(e);
        return;
    }
    if (!status) e->stats.removed += e->swept_count;
    if (!s) return;
    look_at(e, s, status ? env_wall_ms(e->env) + AGAIN_MS : 0);
    if (status) s->counted = false, forget_notes(e, s);
    else s->kept -= e->swept_count < s->kept ? e->swept_count : s->kept;
}

static void send(hd_engine *e, const sweep *w) {
    e->sweeps++;
    e->swept = w->s;
    e->swept_count = w->removed;
    w->s->due_ms = NEVER; /* the verdict looks again */
    hd_status status = hd_tx_commit(w->tx, verdict, e);
    if (status) verdict(status, e);
}

/* Removes what is due of a note, or finds out when that will be. */
static hd_status sweep_doc(hd_engine *e, sweep *w, place_id doc) {
    hd_status status = engine_begin(e, &w->tx);
    if (status) return status;
    hd_value ends = hd_tx_read(w->tx, (hd_cell){ doc }, 0);
    status = engine_fence(w->tx, e->shards);
    if (!status) status = hd_value_status(ends);
    if (!status) status = sweep_note(e, w, ends);
    bool gone = !status && !hd_value_exists(ends); /* another engine has removed it */
    bool shorter = w->removed || w->dropped;
    if (!status && shorter) status = shorten(e, w, doc);
    if (status || (!shorter && !w->cut)) hd_tx_abort(w->tx);
    else send(e, w);
    if (status || gone) forget_notes(e, w->s);
    return status;
}

static hd_status sweep_oldest(hd_engine *e, shelf *s, uint64_t now) {
    finding f = { .e = e, .s = s };
    sweep w = { .s = s, .now_ms = now, .left = hd_array() };
    if (s->most && s->kept > s->most) w.excess = s->kept - s->most;
    hd_status status = s->notes.count ? HD_OK : find_notes(&f);
    if (status) return status;
    s->due_ms = NEVER;
    if (!s->notes.count) return s->kept = 0, HD_OK;
    place_id doc = engine_document(e, NOTE_PREFIX, vec_last(&s->notes));
    if (!doc) return HD_NOMEM;
    status = sweep_doc(e, &w, doc);
    place_unref(&e->rt->r.places, doc);
    return status;
}

/* ---- work */

static bool may_look(const hd_engine *e, const shelf *s) { return may_look_beside(s) || !e->waits; }

/* The notes were written by another engine, or by this one before it stood by: how many ends are kept is what the
 * workflow says now. Where there are no notes, nobody need ask. */
static hd_status ask_policy(hd_engine *e, shelf *s) {
    finding f = { .e = e, .s = s };
    plan *p = NULL;
    hd_status status = find_notes(&f);
    if (!status && s->notes.count) status = version_latest(e, s->name, &p);
    if (engine_may_pass(status)) return status;
    s->most = p && p->keep_is_set ? p->keep_most : e->keep_most;
    s->told = true;
    return HD_OK;
}

/* How many ends of the note are still those of their instances. */
static hd_status count_note(hd_engine *e, const shelf *s, hd_pool *pool, place_id doc,
                            uint64_t *sum) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_value ends = hd_read(e->rt, pool, (hd_cell){ doc });
    hd_status status = hd_value_status(ends);
    for (hd_iter it = hd_iter_of(ends); !status && hd_iter_next(&it);) {
        snprintf(id, sizeof id, "%s/%s", s->name,
                 hd_value_as_text(hd_value_index(it.value, 0), ""));
        hd_value end = engine_read(e, pool, INSTANCE_PREFIX, id);
        status = hd_value_status(end);
        int64_t finished = hd_value_as_int(hd_value_at(end, "finished"), -1);
        *sum += finished == hd_value_as_int(hd_value_index(it.value, 1), 0);
    }
    return status;
}

static hd_status count_instances(finding *f) {
    hd_pool *pool;
    uint64_t sum = 0;
    hd_status status = hd_pool_open(f->e->heap, &pool);
    if (status) return status;
    for (uint32_t i = 0; i < f->docs.count && !status; i++) {
        status = count_note(f->e, f->s, pool, f->docs.items[i], &sum);
        hd_pool_clear(pool);
    }
    hd_pool_close(pool);
    f->s->stale = sum != f->ends;
    f->ends = sum;
    return status;
}

static hd_status count(hd_engine *e, shelf *s) {
    finding f = { .e = e, .s = s, .all = true };
    hd_status status = find_notes(&f);
    if (!status && s->stale) status = count_instances(&f);
    for (uint32_t i = 0; i < f.docs.count; i++) place_unref(&e->rt->r.places, f.docs.items[i]);
    vec_fini(e->env, &f.docs);
    if (status) return status;
    s->kept = f.ends;
    s->counted = true;
    s->doubted = false;
    return HD_OK;
}

static hd_status look(hd_engine *e, shelf *s, uint64_t now) {
    hd_status status = s->told ? HD_OK : ask_policy(e, s);
    if (!status && s->most && must_count(s)) status = count(e, s);
    return status ? status : sweep_oldest(e, s, now);
}

static void find_next_due(hd_engine *e) {
    e->shelf_due_ms = NEVER;
    for (uint32_t i = 0; i < e->shelves.count; i++)
        if (e->shelves.items[i]->due_ms < e->shelf_due_ms)
            e->shelf_due_ms = e->shelves.items[i]->due_ms;
}

bool keep_work(hd_engine *e) {
    bool any = false;
    if (!e->shelves.count || e->shelf_due_ms == NEVER) return false;
    uint64_t now = env_wall_ms(e->env);
    if (e->shelf_due_ms > now) return false;
    for (uint32_t i = 0; i < e->shelves.count && !e->sweeps && !e->rt->open; i++) {
        shelf *s = e->shelves.items[i];
        if (s->due_ms > now || !may_look(e, s)) continue;
        hd_status status = look(e, s, now);
        if (status) s->due_ms = now + AGAIN_MS;
        any = any || !status;
    }
    find_next_due(e);
    return any;
}

/* Whether a shelf that is due can be looked at now, and does not wait for the verdict of a commit. */
static bool may_look_at_any(const hd_engine *e, uint64_t now) {
    for (uint32_t i = 0; i < e->shelves.count; i++)
        if (e->shelves.items[i]->due_ms <= now && may_look(e, e->shelves.items[i])) return true;
    return false;
}

uint64_t keep_deadline(const hd_engine *e) {
    if (e->sweeps || !e->shelves.count || e->shelf_due_ms == NEVER) return UINT64_MAX;
    uint64_t now = env_wall_ms(e->env);
    if (e->shelf_due_ms > now) return env_ns_at(e->env, now, e->shelf_due_ms);
    return may_look_at_any(e, now) ? 0 : UINT64_MAX;
}

/* ---- life */

static bool shelf_found(const hd_listing *entry, void *ctx) {
    finding *f = ctx;
    f->nomem = !shelf_of(f->e, entry->id + strlen(NAME_PREFIX));
    return !f->nomem;
}

/* Where there are notes, each workflow may have some. The engine may have removed instances before, and another engine
 * since then: so everything is counted anew. */
hd_status keep_recover(hd_engine *e) {
    finding f = { .e = e };
    hd_status status = find_notes(&f);
    if (!status && f.any)
        status = hd_runtime_list(e->rt, e->space, "workflow.name", NAME_PREFIX, shelf_found, &f);
    if (!status && f.nomem) status = HD_NOMEM;
    for (uint32_t i = 0; i < e->shelves.count; i++) {
        e->shelves.items[i]->counted = e->shelves.items[i]->told = false;
        e->shelves.items[i]->stale = true;
        forget_notes(e, e->shelves.items[i]);
        look_at(e, e->shelves.items[i], 0);
    }
    return status;
}

/* Another engine has written a note of the workflow. */
hd_status keep_heard(hd_engine *e, const char *name) {
    char workflow[HD_INSTANCE_ID_SIZE];
    snprintf(workflow, sizeof workflow, "%.*s", (int)strcspn(name, "/"), name);
    shelf *s = shelf_of(e, workflow);
    if (!s) return HD_NOMEM;
    s->counted = s->told = false;
    look_at(e, s, 0);
    return HD_OK;
}

void keep_doubt(hd_engine *e, const char *id) {
    char workflow[HD_INSTANCE_ID_SIZE];
    snprintf(workflow, sizeof workflow, "%.*s", (int)strcspn(id, "/"), id);
    shelf *s = shelf_find(e, workflow);
    if (s) s->stale = s->doubted = true;
}

void keep_fini(hd_engine *e) {
    e->swept = NULL;
    while (e->shelves.count) shelf_free(e, vec_pop(&e->shelves));
    vec_fini(e->env, &e->shelves);
}
