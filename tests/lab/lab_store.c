/* lab_store.c -- runtimes on one store: opening, moving, looking. */
#define _GNU_SOURCE
#include "lab_store.h"
#include "lab_line.h"
#include "lab_place.h"

#include "store/admit.h"
#include "store/memory/memory.h"
#include "store/log/authority.h"
#include "value/diff.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READS_KEPT     4     /* answers of lab_read_cell that stay good */
#define THREADS_WITHIN 2000  /* milliseconds: then the writer itself waits for the clock */
#define DECIDED_WITHIN 20000 /* turns of a millisecond: a writer that takes longer hangs */

typedef struct lab_text {
    char *bytes; /* NULL: nothing yet */
    size_t length, capacity;
} lab_text;

/* What notices have said of one document. */
typedef struct mirrored {
    place_id doc;
    const struct key *id; /* of the document then: its place may stand for another by now */
    uint32_t home;
    hd_value value; /* referenced */
} mirrored;

struct lab_runtime {
    lab *l;
    char name[16];
    hd_runtime *rt;
    lab_line *line;
    mirrored *mirror;
    size_t mirror_count, mirror_capacity;
    lab_text heard; /* since the last lab_heard */
    char *told;     /* what the last lab_heard returned */
    char *reads[READS_KEPT];
    unsigned next_read;
    struct lab_runtime *next;
};

struct lab {
    lab_options options;
    lab_env *world;
    bool owns_world;
    hd_memory *memory;
    lab_store_place place;
    lab_runtime *runtimes;
    lab_arrivals arrivals;
    lab_fate **fates;
    size_t fate_count, fate_capacity;
    void *attached;
    void (*detach)(void *attached);
};

/* ---- sabotage */

#ifndef NDEBUG
static unsigned sabotage;

bool lab_sabotage(unsigned what) {
    sabotage = what;
    return true;
}
static void sabotage_runtime(lab *l, hd_runtime *rt) {
    rt->r.sabotage = sabotage;
    if (l->memory) memory_heads(l->memory)->sabotage = sabotage;
}
#else
bool lab_sabotage(unsigned what) { return (void)what, false; }
static void sabotage_runtime(lab *l, hd_runtime *rt) { (void)l, (void)rt; }
#endif

/* ---- waiting */

/* The lab that was opened last and whose runtimes have threads; NULL: none. */
static lab *threaded;

static bool is_deciding(const lab *l) {
    for (const lab_runtime *r = l ? l->runtimes : NULL; r; r = r->next)
        if (!log_authority_decided(r->line->inner)) return true;
    return false;
}

/* The clock of the world jumps when nothing is left to wait for. A writer thread that is at work may be slow, for its
 * server is: the clock stands still meanwhile, else a busy machine would let time limits pass. */
static void wait_in_lab(int fd, uint64_t deadline_ns, void *world) {
    for (int i = 0; i < THREADS_WITHIN && is_deciding(threaded); i++)
        if (poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 1) > 0) return;
    lab_env_of(world)->wait(fd, deadline_ns, world);
}

/* ---- the world */

lab *lab_open_with(lab_options options) {
    lab *l = calloc(1, sizeof *l);
    if (!l) lab_fail("no memory for a lab");
    l->options = options;
    l->world = options.world ? options.world : lab_env_open();
    l->owns_world = !options.world;
    if (options.kind == LAB_SQLITE) {
        lab_place_make(&l->place);
        threaded = l;
        return l;
    }
    hd_status status = hd_memory_open(lab_env_of(l->world), &l->memory);
    if (status && status != HD_NOMEM) lab_fail("hd_memory_open: %s", hd_status_name(status));
    if (!status && options.load_late) hd_memory_load_late(l->memory);
    return l;
}

lab *lab_open(void) {
    const char *store = getenv("HD_STORE");
    if (store && strcmp(store, "memory") && strcmp(store, "sqlite") && !lab_on_server())
        lab_fail("HD_STORE is memory, sqlite or postgres, not %s", store);
    bool file = store && strcmp(store, "memory");
    return lab_open_with((lab_options){ .kind = file ? LAB_SQLITE : LAB_MEMORY });
}

static void free_fate(lab_fate *f) {
    for (size_t i = 0; i < f->read_count; i++) {
        free(f->reads[i].cell);
        free(f->reads[i].seen);
    }
    free(f->reads);
    free(f->script);
    free(f);
}

void lab_close(lab *l) {
    for (lab_runtime *r = l->runtimes; r; r = r->next) lab_mend(r);
    while (l->runtimes) lab_runtime_close(l->runtimes);
    if (threaded == l) threaded = NULL;
    if (l->detach) l->detach(l->attached);
    hd_memory_close(l->memory);
    if (l->options.kind == LAB_SQLITE) lab_place_remove(&l->place);
    for (size_t i = 0; i < l->fate_count; i++) free_fate(l->fates[i]);
    free(l->fates);
    lab_arrivals_free(&l->arrivals);
    if (l->owns_world) lab_env_close(l->world);
    free(l);
}

void lab_attach(lab *l, void *what, void (*detach)(void *what)) {
    l->attached = what;
    l->detach = detach;
}
void *lab_attached(const lab *l) { return l->attached; }

lab_env *lab_world(lab *l) { return l->world; }
bool lab_is_sqlite(const lab *l) { return l->options.kind == LAB_SQLITE; }
hd_memory *lab_memory(lab *l) { return l->memory; }

size_t lab_arrived(const lab *l) { return l->arrivals.count; }

struct lab_arrivals *lab_arrivals_of(lab *l) {
    return &l->arrivals;
}

lab_fate *lab_fate_of(const lab *l, const hd_runtime *rt, uint64_t local_seq) {
    for (size_t i = 0; i < l->fate_count; i++)
        if (l->fates[i]->runtime->rt == rt && l->fates[i]->local_seq == local_seq)
            return l->fates[i];
    return NULL;
}

lab_runtime *lab_first(lab *l) { return l->runtimes; }
lab_runtime *lab_next(lab_runtime *r) { return r->next; }
const char *lab_name(const lab_runtime *r) { return r->name; }

/* ---- hearing */

static void append_text(lab_text *to, const char *text) {
    size_t more = strlen(text);
    if (to->length + more + 1 > to->capacity) {
        to->capacity = 2 * (to->length + more + 1);
        to->bytes = realloc(to->bytes, to->capacity);
        if (!to->bytes) lab_fail("no memory");
    }
    memcpy(to->bytes + to->length, text, more + 1);
    to->length += more;
}

static char *json_of(hd_heap *heap, hd_value v) {
    if (!hd_value_exists(v)) {
        char text[64];
        hd_status status = hd_value_status(v);
        snprintf(text, sizeof text, "%s%s", status ? "!" : "-",
                 status ? hd_status_name(status) : "");
        return strdup(text);
    }
    hd_pool *pool;
    if (hd_pool_open(heap, &pool)) return strdup("!no memory");
    const char *json = hd_json_print(pool, v, HD_JSON_COMPACT, NULL);
    char *text = strdup(json ? json : "!no memory");
    hd_pool_close(pool);
    return text;
}

static mirrored *mirror_of(lab_runtime *r, place_id doc) {
    const place *p = place_at(&r->rt->r.places, doc);
    for (size_t i = 0; i < r->mirror_count; i++) {
        mirrored *m = &r->mirror[i];
        if (m->doc != doc) continue;
        if (m->id == p->doc.id && m->home == p->doc.home) return m;
        hd_value_unref(m->value);
        *m = r->mirror[--r->mirror_count];
        return NULL;
    }
    return NULL;
}

static mirrored *mirror_add(lab_runtime *r, place_id doc, hd_value v) {
    if (r->mirror_count == r->mirror_capacity) {
        r->mirror_capacity = r->mirror_capacity ? 2 * r->mirror_capacity : 16;
        r->mirror = realloc(r->mirror, r->mirror_capacity * sizeof *r->mirror);
        if (!r->mirror) lab_fail("no memory for a mirror");
    }
    const place *p = place_at(&r->rt->r.places, doc);
    r->mirror[r->mirror_count] = (mirrored){ doc, p->doc.id, p->doc.home, hd_value_ref(v) };
    return &r->mirror[r->mirror_count++];
}

static const char *short_name(const char *name) {
    return strncmp(name, "main/", 5) ? name : name + 5;
}

/* A document that arrives was not here: what its place held before was another's, and is forgotten. */
static void hear_arrival(lab_runtime *r, const hd_change *c) {
    mirrored *m = mirror_of(r, c->document.id);
    if (hd_value_exists(c->before)) lab_fail("%s: what arrived was there already", r->name);
    if (!m) return;
    hd_value_unref(m->value);
    m->value = c->before;
}

static void hear_change(lab_runtime *r, const hd_change *c) {
    char name[256];
    hd_cell_print(r->rt, c->document, name, sizeof name);
    if (hd_value_equal(c->before, c->after))
        lab_fail("%s: %s was announced without a change", r->name, name);
    mirrored *m = mirror_of(r, c->document.id);
    if (!m) m = mirror_add(r, c->document.id, c->before);
    if (!hd_value_equal(m->value, c->before))
        lab_fail("%s: %s had changed before without an announcement", r->name, name);
    hd_value_unref(m->value);
    m->value = hd_value_ref(c->after);
    char *json = json_of(hd_runtime_heap(r->rt), c->after);
    append_text(&r->heard, " ");
    append_text(&r->heard, short_name(name));
    append_text(&r->heard, "=");
    append_text(&r->heard, json);
    free(json);
}

static void hear(const hd_notice *notice, void *ctx) {
    static const char *const kinds[] = { "commit", "load", "integrate", "revert" };
    lab_runtime *r = ctx;
    if (!notice->count) lab_fail("%s: a notice without a change", r->name);
    if (r->heard.length) append_text(&r->heard, "; ");
    append_text(&r->heard, kinds[notice->kind]);
    for (size_t i = 0; i < notice->count; i++) {
        if (notice->kind == HD_CHANGE_LOAD) hear_arrival(r, &notice->changes[i]);
        hear_change(r, &notice->changes[i]);
    }
}

const char *lab_heard(lab_runtime *r) {
    free(r->told);
    r->told = r->heard.bytes ? r->heard.bytes : strdup("");
    r->heard = (lab_text){ 0 };
    return r->told;
}

static void check_doc(lab_runtime *r, place_id doc) {
    const place *p = place_at(&r->rt->r.places, doc);
    mirrored *m = mirror_of(r, doc);
    if (!m) {
        mirror_add(r, doc, p->value);
    } else if (!hd_value_equal(m->value, p->value)) {
        char name[256];
        hd_cell_print(r->rt, (hd_cell){ doc }, name, sizeof name);
        lab_fail("%s: %s changed without an announcement", r->name, name);
    }
}

/* Documents of a space that was unloaded: their places may stand for others next. */
static void forget_unknown(lab_runtime *r) {
    const places *ps = &r->rt->r.places;
    size_t kept = 0;
    for (size_t i = 0; i < r->mirror_count; i++) {
        mirrored *m = &r->mirror[i];
        bool known = ps->at[m->doc].root == m->doc && (ps->at[m->doc].doc.flags & DOC_KNOWN);
        if (known) r->mirror[kept++] = *m;
        else hd_value_unref(m->value);
    }
    r->mirror_count = kept;
}

void lab_check(lab_runtime *r) {
    if (r->l->options.unchecked) return;
    const places *ps = &r->rt->r.places;
    replica_check(&r->rt->r);
    forget_unknown(r);
    for (place_id id = 1; id < ps->count; id++)
        if (ps->at[id].root == id && (ps->at[id].doc.flags & DOC_KNOWN)) check_doc(r, id);
}

void lab_check_all(lab *l) {
    for (lab_runtime *r = l->runtimes; r; r = r->next) lab_check(r);
}

/* ---- runtimes */

lab_runtime *lab_runtime_try(lab *l, const char *name, const char *principal, hd_status *status) {
    hd_runtime *rt;
    hd_error error;
    hd_options options = { .env = lab_env_of(l->world),
                           .principal = principal,
                           .memory = l->memory,
                           .derive = l->options.derive };
    *status = HD_NOMEM;
    if (!l->memory && !lab_is_sqlite(l)) return NULL;
    *status = hd_open(l->memory ? NULL : l->place.name, &options, &rt, &error);
    if (*status) return NULL;
    lab_runtime *r = calloc(1, sizeof *r);
    if (!r) lab_fail("no memory for a runtime");
    r->l = l;
    r->rt = rt;
    snprintf(r->name, sizeof r->name, "%s", name);
    r->line = lab_line_lay(rt, &l->arrivals);
    if (lab_is_sqlite(l)) rt->env.wait = wait_in_lab;
    sabotage_runtime(l, rt);
    lab_runtime **at = &l->runtimes;
    while (*at) at = &(*at)->next;
    *at = r;
    if (!l->options.unchecked) *status = hd_runtime_listen(rt, hear, r);
    if (!*status) return r;
    lab_runtime_close(r);
    return NULL;
}

lab_runtime *lab_runtime_open(lab *l, const char *name) {
    hd_status status;
    lab_runtime *r = lab_runtime_try(l, name, NULL, &status);
    if (!r) lab_fail("%s does not open: %s", name, hd_status_name(status));
    return r;
}

static void close_runtime(lab_runtime *r) {
    lab_runtime **at = &r->l->runtimes;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    hd_runtime_unlisten(r->rt, hear, r);
    for (size_t i = 0; i < r->mirror_count; i++) hd_value_unref(r->mirror[i].value);
    hd_close(r->rt);
    free(r->mirror);
    free(r->heard.bytes);
    free(r->told);
    for (size_t i = 0; i < READS_KEPT; i++) free(r->reads[i]);
    free(r);
}

void lab_runtime_close(lab_runtime *r) {
    if (r->line->hold_requests || r->line->hold_answers) lab_fail("%s: the line is cut", r->name);
    close_runtime(r);
}

void lab_runtime_drop(lab_runtime *r) {
    lab_line_drop(r->line);
    close_runtime(r);
}

hd_runtime *lab_rt(lab_runtime *r) { return r->rt; }
replica *lab_replica(lab_runtime *r) { return &r->rt->r; }
lab_line *lab_line_of(lab_runtime *r) { return r->line; }

hd_cell lab_cell(lab_runtime *r, const char *name) {
    char full[256];
    const char *hash = strchr(name, '#'), *slash = strchr(name, '/');
    bool has_space = slash && (!hash || slash < hash);
    snprintf(full, sizeof full, "%s%s", has_space ? "" : "main/", name);
    hd_cell cell = hd_cell_at(r->rt, full);
    if (!cell.id && hd_runtime_error(r->rt)->status != HD_NOMEM)
        lab_fail("%s is no cell: %s", full, hd_runtime_error(r->rt)->message);
    return cell;
}

/* ---- moving */

/* The world's clock stands still while a writer thread works: this waits for real. */
static void wait_until_decided(lab_runtime *r) {
    authority *inner = r->line->inner;
    if (!lab_is_sqlite(r->l)) return;
    for (int i = 0; i < DECIDED_WITHIN; i++) {
        if (log_authority_decided(inner)) return;
        poll(NULL, 0, 1);
    }
    lab_fail("%s: the writer does not come to rest", r->name);
}

/* A pump of the lab's hears all that has arrived: its clock stands still, so that nothing may be put off. */
void lab_look(lab_runtime *r) {
    if (lab_is_sqlite(r->l)) log_authority_look(r->line->inner);
}

static void pump(lab_runtime *r) {
    hd_status status;
    lab_look(r);
    do status = hd_runtime_pump(r->rt);
    while (status == HD_PENDING);
    if (status && status != HD_BUSY && status != HD_NOMEM)
        lab_fail("%s: pump: %s", r->name, hd_status_name(status));
}

void lab_send(lab_runtime *r) {
    bool held = r->line->hold_answers;
    r->line->hold_answers = true;
    pump(r);
    wait_until_decided(r);
    r->line->hold_answers = held;
    lab_check(r);
}

void lab_hear(lab_runtime *r) {
    bool held = r->line->hold_requests;
    r->line->hold_requests = true;
    pump(r);
    r->line->hold_requests = held;
    lab_check(r);
}

void lab_pump(lab_runtime *r) {
    lab_send(r);
    pump(r);
    lab_check(r);
}

static bool at_rest(lab *l) {
    for (lab_runtime *r = l->runtimes; r; r = r->next)
        if (r->rt->r.pending_count || hd_runtime_deadline(r->rt) == 0) return false;
    return true;
}

static void come_to_rest(lab *l) {
    for (int turn = 0; turn < 2 || !at_rest(l); turn++) {
        if (turn == 1000) lab_fail("the world does not come to rest");
        for (lab_runtime *r = l->runtimes; r; r = r->next) lab_pump(r);
    }
}

/* In a file, a runtime looks for the others' commits a moment after its own: let that pass. */
void lab_settle(lab *l) {
    come_to_rest(l);
    if (!lab_is_sqlite(l) || !l->runtimes || !l->runtimes->next) return;
    lab_env_advance_ms(l->world, 1);
    come_to_rest(l);
}

void lab_cut(lab_runtime *r) { r->line->lose_requests = r->line->hold_answers = true; }
void lab_hold(lab_runtime *r) { r->line->hold_requests = r->line->hold_answers = true; }
void lab_mend(lab_runtime *r) {
    lab_line_mend(r->line);
    wait_until_decided(r);
}

/* ---- looking and doing */

const char *lab_read_cell(lab_runtime *r, const char *name) {
    hd_pool *pool;
    if (hd_pool_open(hd_runtime_heap(r->rt), &pool)) return "!HD_NOMEM";
    char **kept = &r->reads[r->next_read++ % READS_KEPT];
    free(*kept);
    *kept = json_of(hd_runtime_heap(r->rt), hd_read(r->rt, pool, lab_cell(r, name)));
    hd_pool_close(pool);
    return *kept;
}

void lab_write(lab_runtime *r, const char *cell, const char *json) {
    hd_status status = hd_write_json(r->rt, lab_cell(r, cell), json);
    if (status)
        lab_fail("%s: set %s %s: %s", r->name, cell, json, hd_runtime_error(r->rt)->message);
    lab_check(r);
}

static void tell_fate(hd_status status, void *ctx) {
    lab_fate *f = ctx;
    f->status = status;
    f->told++;
}

static lab_fate *new_fate(lab_runtime *r, const char *script) {
    lab *l = r->l;
    if (l->fate_count == l->fate_capacity) {
        l->fate_capacity = l->fate_capacity ? 2 * l->fate_capacity : 32;
        l->fates = realloc(l->fates, l->fate_capacity * sizeof *l->fates);
    }
    lab_fate *f = calloc(1, sizeof *f);
    if (!f || !l->fates) lab_fail("no memory for a fate");
    f->runtime = r;
    f->status = HD_PENDING;
    f->script = strdup(script);
    f->heard = r->line->heard;
    return l->fates[l->fate_count++] = f;
}

lab_fate *lab_do(lab_runtime *r, const char *script) {
    lab_fate *f = new_fate(r, script);
    hd_tx *tx;
    f->begun = hd_tx_begin(r->rt, &tx);
    if (f->begun) return f;
    f->begun = lab_script(r, tx, script, f);
    uint64_t next = r->rt->r.next_local;
    if (f->begun) hd_tx_abort(tx);
    else f->begun = hd_tx_commit(tx, tell_fate, f);
    if (r->rt->r.next_local > next) f->local_seq = r->rt->r.next_local - 1;
    if (f->begun && f->local_seq)
        lab_fail("%s: \"%s\" failed and was made all the same", r->name, script);
    if (f->begun) f->status = f->begun;
    lab_check(r);
    return f;
}

lab_fate *lab_dof(lab_runtime *r, const char *format, ...) {
    char script[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(script, sizeof script, format, arguments);
    va_end(arguments);
    return lab_do(r, script);
}
