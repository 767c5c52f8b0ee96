/* build.c -- rounds: a building function mentions parts by name; the build keeps the parts that are the
 * same as before, and drops those that the round did not mention. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "base/hash.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/runner/surface.h"
#include "scheduler/scheduler.h"
#include "store/memo.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

bool name_is_plain(const char *name) {
    for (const char *c = name; c && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F || strchr("/:#", *c)) return false;
    return name && *name;
}

/* ---- builds */

static char *join(const hd_env *env, const char *path, const char *name) {
    size_t a = strlen(path), b = strlen(name);
    char *out = env_new(env, a + b + 2);
    if (!out) return NULL;
    memcpy(out, path, a);
    out[a] = '/';
    memcpy(out + a + 1, name, b + 1);
    return out;
}

hd_build *build_new(hd_build *up, part *owner, const char *name, uint32_t local, hd_node under) {
    assert(!owner || owner->in == up);
    assert(local <= strlen(up->path) + strlen(name) + 2);
    const hd_env *env = up->all->env;
    hd_build *b = env_new0(env, sizeof *b);
    char *path = b ? join(env, up->path, name) : NULL;
    if (!path) {
        env_free(env, b, sizeof *b);
        return NULL;
    }
    b->all = up->all;
    b->of = up->of;
    b->what = up->what;
    b->up = up;
    b->owner = owner;
    b->path = path;
    b->local = local;
    b->under = under;
    list_init(&b->children);
    list_init(&b->parts);
    list_push_back(&up->children, &b->sibling);
    return b;
}

hd_build *build_find(const hd_build *b, const char *name) {
    size_t length = strlen(b->path);
    LIST_FOR (at, &b->children) {
        hd_build *child = LIST_ENTRY(at, hd_build, sibling);
        if (!child->owner && !strcmp(child->path + length + 1, name)) return child;
    }
    return NULL;
}

static void stop_children(hd_build *b, const part *owner) {
    LIST_FOR_SAFE (at, &b->children) {
        hd_build *child = LIST_ENTRY(at, hd_build, sibling);
        if (child->owner == owner) build_stop(child);
    }
}

/* The scheduler releases the node of a part: it is gone, and so is the part. */
static void release(void *ctx) {
    part *p = ctx;
    assert(p->kind->run && (!p->in == !list_linked(&p->link)));
    if (p->in && p->in->cursor == p) p->in->cursor = NULL;
    list_discard(&p->link);
    part_free(p);
}

static void let_go(part *p) {
    assert(p->in && list_linked(&p->link));
    if (p->in->cursor == p) p->in->cursor = NULL;
    if (p->kind->drop) p->kind->drop(p);
    list_remove(&p->link);
    hd_runtime *rt = p->in->all->rt;
    hd_node handle = p->node;
    p->in = NULL;
    if (handle.id && hd_node_exists(rt, handle))
        hd_node_unregister(rt, handle); /* releases, which frees p: now, or after the node's run */
    else part_free(p);
}

static void build_free(hd_build *b) {
    const hd_env *env = b->all->env;
    assert(list_empty(&b->children));
    assert(!b->up == !list_linked(&b->sibling));
    while (!list_empty(&b->parts)) let_go(LIST_ENTRY(list_last(&b->parts), part, link));
    owned_free(b);
    list_discard(&b->sibling);
    env_free(env, b->path, strlen(b->path) + 1);
    env_free(env, b, sizeof *b);
}

/* Deepest first, without recursion: patterns may nest as deep as their data. */
static void stop(hd_build *top, bool leaves) {
    for (hd_build *b = top;;) {
        if (!list_empty(&b->children)) {
            b = LIST_ENTRY(list_last(&b->children), hd_build, sibling);
            continue;
        }
        hd_build *up = b->up;
        bool done = b == top;
        if (leaves) left_note(b);
        build_free(b);
        if (done) return;
        b = up;
    }
}

void build_stop(hd_build *b) { stop(b, false); }
void build_leave(hd_build *b) { stop(b, true); }

/* ---- rounds */

void build_begin(hd_build *b, hd_tx *tx) {
    assert(tx && !b->tx); /* rounds do not nest */
    list_node *first = list_first(&b->parts);
    b->round++;
    b->status = HD_OK;
    b->cursor = first ? LIST_ENTRY(first, part, link) : NULL;
    b->tx = tx;
}

hd_status build_end(hd_build *b) {
    assert(b->tx && b->round);
    b->tx = NULL;
    if (b->status) return b->status;
    LIST_FOR_SAFE (at, &b->parts) {
        part *p = LIST_ENTRY(at, part, link);
        if (p->round == b->round) continue;
        stop_children(b, p);
        let_go(p);
    }
    LIST_FOR_SAFE (at, &b->children) {
        hd_build *child = LIST_ENTRY(at, hd_build, sibling);
        if (!child->owner && child->used_round != b->round) build_stop(child);
    }
    owned_let_go(b);
    return HD_OK;
}

/* ---- parts */

/* A part with an empty name writes the document of its build. A piece's document is not available for
 * that: it describes the piece. */
static bool check_name(hd_build *b, const char *name) {
    if (b->status) return false;
    if (!name || (!*name && !b->up)) hd_build_fail(b, HD_USAGE, "%s: a part has no name", b->path);
    else if (*name && !name_is_plain(name))
        hd_build_fail(b, HD_USAGE, "\"%.80s\": a name has no '/', ':', '#' or control characters",
                      name);
    else if (strlen(name) > PART_NAME_MAX)
        hd_build_fail(b, HD_LIMIT, "\"%.80s...\": a name has at most %d bytes", name,
                      PART_NAME_MAX);
    return !b->status;
}

bool check_inputs(hd_build *b, const char *name, const hd_cell *in, size_t count) {
    bool named = check_name(b, name);
    for (size_t i = 0; named && i < count; i++)
        if (!in[i].id)
            hd_build_fail(b, HD_USAGE, "%.120s/%.80s: input %zu is no cell", b->path, name, i + 1);
    return !b->status;
}

void *part_new(hd_build *b, const part_kind *kind, size_t size, const char *name) {
    assert(size >= sizeof(part));
    if (!check_name(b, name)) return NULL;
    const hd_env *env = b->all->env;
    size_t length = strlen(name) + 1;
    part *p = env_new0(env, size + length);
    if (!p) {
        hd_build_fail(b, HD_NOMEM, "%s: no memory", name);
        return NULL;
    }
    char *text = (char *)p + size;
    memcpy(text, name, length);
    p->kind = kind;
    p->env = env;
    p->in = b;
    p->name = text;
    p->size = size + length;
    return p;
}

void part_free(part *p) {
    if (!p) return;
    assert(!list_linked(&p->link));
    if (p->kind->fini) p->kind->fini(p);
    env_free(p->env, p, p->size);
}

/* Most rounds mention the same parts in the same order as the round before: so look first at the part that
 * follows the one mentioned last. */
part *find_part(const hd_build *b, const char *name) {
    assert(!b->cursor || b->cursor->in == b);
    if (b->cursor && !strcmp(b->cursor->name, name)) return b->cursor;
    LIST_FOR (at, &b->parts) {
        part *p = LIST_ENTRY(at, part, link);
        if (!strcmp(p->name, name)) return p;
    }
    return NULL;
}

static void mention(part *p) {
    hd_build *b = p->in;
    assert(list_linked(&p->link) && p->round != b->round);
    list_node *next = list_after(&b->parts, &p->link);
    p->round = b->round;
    b->cursor = next ? LIST_ENTRY(next, part, link) : NULL;
}

/* "main:corner:prices" at the top of a piece; below a list's node "3:total". */
static bool node_name(const hd_build *b, const char *name, char *out, size_t size) {
    const char *before = b->local <= strlen(b->path) ? b->path + b->local : "";
    char space[NAME_MAX_LENGTH] = "";
    if (!b->local && !memo_print_space(key_bytes(b->of->space), space, sizeof space)) return false;
    int n = snprintf(out, size, "%s%s%s%s%s", space, b->local ? "" : ":", before,
                     *before && *name ? ":" : "", name);
    for (char *c = out; *c; c++)
        if (*c == '/') *c = ':';
    return n >= 0 && (size_t)n < size;
}

/* The name of the piece that a node belongs to, for errors and log lines; *what: of its pattern. A node
 * belongs to the pattern layer if release() above releases it. */
static const char *piece_of_node(const scheduler *s, node_id id, const char **what) {
    const node *n = node_of(s, id);
    const cold *c = cold_of(s, n);
    const part *p = c && c->release == release ? n->ctx : NULL;
    if (!p || !p->in) return "main";
    *what = p->in->of->what.name;
    return p->in->of->name;
}

/* The version of the part's pattern; for a pattern without one, the build id of the library or program
 * that its function is in. */
static const char *version_of(scheduler *s, const part *p, char *out, size_t size) {
    const pattern *what = &p->in->what;
    const char *version =
        what->version ? what->version : build_of(s, (const void *)(uintptr_t)what->fn);
    if (!p->salt) return version;
    /* The salt comes first: snprintf cuts off the end. */
    snprintf(out, size, "%s %s", p->salt, version);
    return out;
}

static hd_status register_node(part *p, hd_node_spec *spec) {
    hd_build *b = p->in;
    assert(p->kind->run && !p->node.id);
    char name[NAME_MAX_LENGTH];
    scheduler *s = scheduler_of(b->all->rt);
    if (!s) return runtime_fail(b->all->rt, HD_NOMEM, "%s", hd_status_text(HD_NOMEM));
    s->piece_of = piece_of_node;
    if (!node_name(b, p->name, name, sizeof name))
        return runtime_fail(b->all->rt, HD_LIMIT,
                            "the node's name, with the names of the builds above it, is too long");
    spec->name = name;
    spec->fn = p->kind->run;
    spec->ctx = p;
    spec->release = release;
    spec->parent = b->under;
    char version[2 * HD_ID_SIZE + 64];
    if (!spec->version) spec->version = version_of(s, p, version, sizeof version);
    hd_status status = hd_node_register(b->all->rt, spec, &p->node);
    /* Nodes of the library's patterns leave outputs absent with good reason; a node of the program is looked at. */
    if (!status && !p->kind->plain) surface_may_stay_absent(s, registry_get(s, p->node));
    return status;
}

/* The part that has this name already. In the first round a search among the nodes would cost O(parts) for
 * each part; it is left out, because the registry refuses a second node of the same name. */
static part *find_before(const hd_build *b, const char *name, bool is_node) {
    if (b->status) return NULL;
    if (b->round > 1 || !is_node) return find_part(b, name);
    LIST_FOR (at, &b->parts) {
        part *p = LIST_ENTRY(at, part, link);
        if (p->kind->run) return NULL; /* parts without a node come first */
        if (!strcmp(p->name, name)) return p;
    }
    return NULL;
}

void twice_named(hd_build *b, const char *name) {
    hd_build_fail(b, HD_USAGE, "there are two of the name \"%.80s\" in %.120s", name, b->path);
}

/* The registry has refused the part's node. */
static void not_registered(const part *fresh, hd_status status) {
    hd_build *b = fresh->in;
    const part *other = find_part(b, fresh->name);
    if (status == HD_USAGE && other && other->round == b->round) twice_named(b, fresh->name);
    else
        hd_build_fail(b, status, "%.100s/%.40s: %s", b->path, fresh->name,
                      hd_runtime_error(b->all->rt)->message);
}

part *part_add(part *fresh, hd_node_spec *spec) {
    hd_build *b = fresh->in;
    assert(b && !list_linked(&fresh->link) && !fresh->node.id);
    assert(!spec == !fresh->kind->run);
    assert(b->tx || b->status); /* during a round */
    part *old = find_before(b, fresh->name, spec);
    hd_build *used = b->status ? NULL : build_find(b, fresh->name);
    if ((old && old->round == b->round) || (used && used->used_round == b->round))
        twice_named(b, fresh->name);
    if (b->status) {
        part_free(fresh);
        return NULL;
    }
    if (old && old->kind == fresh->kind && old->kind->same && old->kind->same(old, fresh)) {
        mention(old);
        part_free(fresh);
        return old;
    }
    if (old) {
        stop_children(b, old);
        let_go(old);
    }
    hd_status status = spec ? register_node(fresh, spec) : HD_OK;
    if (status) {
        not_registered(fresh, status);
        part_free(fresh);
        return NULL;
    }
    if (spec) list_push_back(&b->parts, &fresh->link);
    else list_push_front(&b->parts, &fresh->link);
    mention(fresh);
    return fresh;
}

hd_cell add_name(hd_build *b, const part_kind *kind, const char *name) {
    part *p = part_new(b, kind, sizeof *p, name);
    if (!p) return (hd_cell){ 0 };
    p->output = hd_build_cell(b, name);
    part *old = find_part(b, name);
    if (old && old->kind == kind && old->round == b->round) {
        part_free(p);
        return old->output;
    }
    p = part_add(p, NULL);
    return p ? p->output : (hd_cell){ 0 };
}

part *add_computing_part(part *p, const hd_cell *reads, size_t count, const hd_cell *side) {
    hd_build *b = p->in;
    p->output = hd_build_cell(b, p->name);
    hd_node_spec spec = { .output = p->output,
                          .side_outputs = side,
                          .side_output_count = side ? 1 : 0,
                          .reads = reads,
                          .read_count = count };
    return part_add(p, &spec);
}

hd_cell add_computation(part *p, const hd_cell *reads, size_t count, const hd_cell *side) {
    p = add_computing_part(p, reads, count, side);
    return p ? p->output : (hd_cell){ 0 };
}

hd_status part_failed(hd_tx *tx, hd_status status) {
    const hd_error *last = hd_runtime_error(hd_tx_runtime(tx));
    bool said = last->status == status && last->message[0];
    return hd_tx_fail(tx, status, "%s", said ? last->message : hd_status_text(status));
}

/* ---- the public half */

hd_runtime *hd_build_runtime(const hd_build *b) { return b->all->rt; }
hd_pool *hd_build_pool(hd_build *b) {
    assert(b->tx); /* the building function is running */
    return hd_tx_pool(b->tx);
}
hd_status hd_build_status(const hd_build *b) { return b->status; }

hd_cell hd_build_fail(hd_build *b, hd_status status, const char *format, ...) {
    va_list arguments;
    if (b->status) return (hd_cell){ 0 };
    b->status = status;
    va_start(arguments, format);
    char message[256];
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    runtime_fail(b->all->rt, status, "%s", message);
    return (hd_cell){ 0 };
}

hd_cell hd_build_cell(hd_build *b, const char *name) {
    char id[NAME_MAX_LENGTH];
    if (!name) hd_build_fail(b, HD_USAGE, "%s: a document has no name", b->path);
    if (b->status) return (hd_cell){ 0 };
    int n = snprintf(id, sizeof id, "%s%s%s", b->path, *name ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof id)
        return hd_build_fail(b, HD_LIMIT, "the name %.80s... is too long", id);
    hd_cell cell = hd_cell_of(b->all->rt, key_bytes(b->of->space), HD_SCOPE_SPACE, id, "");
    if (cell.id) return cell;
    const hd_error *e = hd_runtime_error(b->all->rt);
    return hd_build_fail(b, e->status, "%s", e->message);
}

/* ---- nodes that the building function registers itself */

typedef struct raw_part {
    part part;
    hd_action_fn fn;
    void *ctx;
    hd_release_fn release;
    uint64_t rest; /* hash of the other fields of its spec */
} raw_part;

static hd_status raw_run(hd_tx *tx, void *ctx) {
    raw_part *r = ctx;
    return r->fn(tx, r->ctx);
}
static bool raw_same(const part *p, const part *fresh) {
    const raw_part *a = (const raw_part *)p, *b = (const raw_part *)fresh;
    return !a->release && !b->release && a->fn == b->fn && a->ctx == b->ctx &&
           p->output.id == fresh->output.id && a->rest == b->rest;
}

static uint64_t hash_cells(const hd_cell *cells, size_t count, uint64_t seed) {
    seed = hash_bytes(&count, sizeof count, seed);
    return count ? hash_bytes(cells, count * sizeof *cells, seed) : seed;
}
static uint64_t hash_rest(const hd_node_spec *s) {
    uint64_t more[] = { s->effect, s->no_auto_debounce, s->run_once,
                        s->group,  s->debounce_ms,      s->throttle_ms };
    uint64_t hash = hash_bytes(more, sizeof more, 0);
    hash = hash_cells(s->reads, s->read_count, hash);
    hash = hash_cells(s->side_outputs, s->side_output_count, hash);
    hash = hash_cells(s->envelopes, s->envelope_count, hash);
    hash = hash_cells(s->ignored, s->ignored_count, hash);
    return s->version ? hash_bytes(s->version, strlen(s->version), hash) : hash;
}
static void raw_fini(part *p) {
    raw_part *r = (raw_part *)p;
    if (r->release) r->release(r->ctx);
}
static const part_kind raw_kind = {
    .run = raw_run, .same = raw_same, .fini = raw_fini, .plain = true
};

hd_cell hd_build_node(hd_build *b, const hd_node_spec *spec) {
    if (!spec->fn) hd_build_fail(b, HD_USAGE, "%s: a node without a function", b->path);
    raw_part *r = part_new(b, &raw_kind, sizeof *r, spec->name ? spec->name : "");
    if (!r) {
        if (spec->release) spec->release(spec->ctx);
        return (hd_cell){ 0 };
    }
    r->fn = spec->fn;
    r->ctx = spec->ctx;
    r->release = spec->release;
    r->rest = hash_rest(spec);
    r->part.output = spec->output;
    hd_node_spec inner = *spec;
    part *p = part_add(&r->part, &inner);
    return p ? p->output : (hd_cell){ 0 };
}
