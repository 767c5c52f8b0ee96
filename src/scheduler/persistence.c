/* persistence.c -- durable names, and which nodes have something to keep. */
#include "scheduler/persistence.h"

#include "base/env.h"
#include "store/basis.h"
#include "store/overlay.h"
#include "value/array.h"
#include "value/key.h"
#include "value/text.h"
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 1024
#define QUIET_NS  UINT64_C(1000000000) /* so long rows wait for a seal to go with */
#define NAME_DEEP 64                   /* parents above a node with a name */

/* ---- life */

/* Nothing outlives a store that belongs to the runtime. */
static bool is_wanted_at_all(const scheduler *s) {
    return s->r->authority->ops->basis && !s->rt->owns_memory;
}

static void on_leaving(scheduler *s, node_id id);

static void on_aged(void *ctx) { persistence_soon(ctx); }

hd_status persistence_init(scheduler *s) {
    if (!is_wanted_at_all(s)) return HD_OK;
    persistence *p = env_new0(s->env, sizeof *p);
    if (!p) return HD_NOMEM;
    table_init(&p->piece_names, s->env);
    table_init(&p->names, s->env);
    table_init(&p->gone_names, s->env);
    s->persistence = p;
    p->wanted = s->r->authority->ops->wants_derived(s->r->authority);
    s->r->observer.keep = rows_keep;
    s->r->observer.refused = rows_refused;
    s->r->observer.observed = adopt_observed;
    s->r->observer.untold = untold_add;
    s->r->observer.aged = on_aged;
    s->leaving = on_leaving;
    return HD_OK;
}

static kept_node nobody(void) {
    return (kept_node){ .name = value_absent(), .brief = value_absent(), .print = value_absent() };
}

static void kept_clear(kept_node *k) {
    value_unref(k->name);
    value_unref(k->brief);
    value_unref(k->print);
    *k = nobody();
}

void persistence_fini(scheduler *s) {
    persistence *p = s->persistence;
    if (!p) return;
    s->r->observer.observed = NULL;
    s->r->observer.untold = NULL;
    s->r->observer.aged = NULL;
    untold_fini(s);
    for (uint32_t i = 0; i < p->nodes.count; i++) kept_clear(&p->nodes.items[i]);
    for (uint32_t i = 0; i < p->pieces.count; i++) {
        resume_free(s, &p->pieces.items[i]);
        value_unref(p->pieces.items[i].name);
    }
    gone_clear(s);
    vec_fini(s->env, &p->nodes);
    vec_fini(s->env, &p->pieces);
    vec_fini(s->env, &p->due);
    vec_fini(s->env, &p->unasked);
    vec_fini(s->env, &p->unsaid);
    vec_fini(s->env, &p->text);
    vec_fini(s->env, &p->gone);
    table_fini(&p->piece_names);
    table_fini(&p->names);
    table_fini(&p->gone_names);
    env_free(s->env, p, sizeof *p);
    s->persistence = NULL;
}

/* ---- what is due */

void persistence_count_due(scheduler *s) {
    const persistence *p = s->persistence;
    s->r->due = p->due.count + p->gone.count + p->lost;
}

void persistence_soon(scheduler *s) {
    persistence *p = s->persistence;
    if (!p->due_at) p->due_at = env_now_ns(s->env) + QUIET_NS;
}

void persistence_due(scheduler *s, node_id id) {
    persistence *p = s->persistence;
    kept_node *k = kept_of(s, id);
    node_of(s, id)->flags &= ~(uint32_t)NODE_NOTED;
    if (k->flags & KEPT_DUE) return;
    if (vec_push(s->env, &p->due, id)) k->flags |= KEPT_DUE;
    else p->lost = true;
    persistence_soon(s);
    persistence_count_due(s);
}

void persistence_ran_slow(scheduler *s, node_id id) {
    kept_of(s, id)->flags &= (uint8_t)~KEPT_FAILED;
    persistence_due(s, id);
}

void persistence_failed(scheduler *s, node_id id) {
    if (!s->persistence || !kept_has_name(kept_of(s, id))) return;
    kept_of(s, id)->flags |= KEPT_FAILED;
    if (s->persistence->wanted) node_of(s, id)->flags |= NODE_NOTED;
}

void persistence_reads_changed(scheduler *s, node_id id) {
    if (s->persistence) kept_of(s, id)->flags |= KEPT_CHANGED;
}

void persistence_wrote(scheduler *s, node_id id, uint64_t local_seq) {
    if (s->persistence) kept_of(s, id)->wrote_in = local_seq;
}

void persistence_creates(scheduler *s, node_id id) {
    if (!s->persistence || !id) return;
    kept_node *k = kept_of(s, id);
    if (k->flags & KEPT_CREATES) return;
    k->flags |= KEPT_CREATES;
    node_of(s, id)->flags &= ~(uint32_t)NODE_NOTED;
    if ((k->flags & KEPT_ROW) && kept_has_name(k)) gone_add_node(s, id);
    k->flags &= (uint8_t)~KEPT_ROW;
}

void persistence_created(scheduler *s, node_id id) {
    if (!s->persistence || !id || !kept_has_name(kept_of(s, id))) return;
    char prefix[NAME_SIZE];
    size_t length;
    kept_piece *of = &s->persistence->pieces.items[kept_of(s, id)->piece];
    int n =
        of->set ? snprintf(prefix, sizeof prefix, "%s/", kept_name(kept_of(s, id), &length)) : 0;
    if (n > 0 && (size_t)n < sizeof prefix) resume_drop_below(s, of, prefix);
}

bool persistence_is_ready(const scheduler *s) {
    const persistence *p = s->persistence;
    if (!p || !p->wanted) return false;
    if (p->refused_at && p->refused_at == s->r->rev) return false; /* it would be again */
    if (p->gone.count) return true;
    for (uint32_t i = 0; i < p->due.count; i++)
        if (rows_can_keep(s, p->due.items[i])) return true;
    return false;
}

/* ---- who wants rows */

/* Everything that has run, and that nobody has been told of. */
static void due_all(scheduler *s, bool resumed_too) {
    persistence *p = s->persistence;
    uint32_t not_yet = NODE_NEVER_RAN | (resumed_too ? 0 : NODE_RESUMED);
    p->lost = false;
    for (node_id id = 1; id < p->nodes.count; id++) {
        const node *n = &s->graph.nodes[id];
        const kept_node *k = &p->nodes.items[id];
        if ((n->flags & NODE_REMOVED) || !kept_has_name(k) || (k->flags & KEPT_CREATES)) continue;
        if (n->flags & not_yet) node_of(s, id)->flags |= NODE_NOTED;
        else if (!(n->flags & NODE_NOTED)) persistence_due(s, id);
    }
}

static void want(scheduler *s, bool resumed_too) {
    s->persistence->wanted = true;
    due_all(s, resumed_too);
}

/* Those of resumed nodes that somebody looks at by now. */
static void ask_for_all(scheduler *s) {
    persistence *p = s->persistence;
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->unasked.count; i++) {
        const node *n = &s->graph.nodes[p->unasked.items[i]];
        if (!(n->flags & NODE_RESUMED)) continue; /* it has run, and asked itself; or is gone */
        if (node_is_live(&s->graph, n)) ask_for_writers(s, n);
        else p->unasked.items[left++] = p->unasked.items[i];
    }
    p->unasked.count = left;
}

uint64_t persistence_next(const scheduler *s) {
    const persistence *p = s->persistence;
    return p && p->due_at ? p->due_at : UINT64_MAX;
}

/* Runs whose results were as before have nothing to seal: what is known of them goes alone, once things
 * are quiet. What cannot go now waits for the next run or seal. */
static void keep_alone(scheduler *s) {
    persistence *p = s->persistence;
    uint64_t now = env_now_ns(s->env);
    if (now < p->due_at) return;
    if (s->r->pending_count) { /* a verdict may bring a seal to go with */
        p->due_at = now + QUIET_NS;
        return;
    }
    untold_prove(s);
    persistence_say_again(s);
    p->due_at = 0;
    if (p->wanted && p->due.count) overlay_seal(s->r, true); /* no memory: some other time */
}

void persistence_pump(scheduler *s) {
    persistence *p = s->persistence;
    if (!p) return;
    if (p->due_at) keep_alone(s);
    if (p->unsaid.count) origin_pump(s);
    if (p->unasked.count) ask_for_all(s);
    if (p->lost) due_all(s, false);
    if (p->wanted || !s->r->authority->ops->wants_derived(s->r->authority)) return;
    want(s, false);
}

/* Those that did not have to run are as good as proved now, too. */
void persistence_closing(scheduler *s) {
    if (s->persistence && !s->persistence->wanted) want(s, true);
}

/* ---- names */

const char *kept_name(const kept_node *k, size_t *length) { return text_of(k->name, length); }

static const char *space_of(const scheduler *s, node_id id) {
    const places *ps = &s->r->places;
    uint32_t output = graph_output(&s->graph, id, 0) & ~WRITER_ENVELOPE;
    if (!output) return NULL;
    return key_bytes(ps->homes.items[place_doc(ps, output)->doc.home].space);
}

static bool append(char *out, size_t *length, const char *text) {
    size_t more = strlen(text);
    if (*length + more >= NAME_SIZE) return false;
    memcpy(out + *length, text, more + 1);
    *length += more;
    return true;
}

/* What stands before the name of the topmost of the named parents. */
static bool begin_name(const scheduler *s, node_id id, node_id top, char *out, size_t *length) {
    const char *pattern, *space = space_of(s, id);
    piece_of(s, top, &pattern);
    if (*pattern) return true; /* the names of a piece's own nodes have it all */
    if (!space || !basis_print_space(space, out, NAME_SIZE)) return false;
    *length = strlen(out);
    return append(out, length, ":main:");
}

/* "space:piece:path", from the names of the node and those above it. False: it has none. */
static bool durable_name(const scheduler *s, node_id id, char out[NAME_SIZE]) {
    node_id way[NAME_DEEP];
    size_t depth = 0, length = 0;
    const kept_node *above = NULL;
    for (node_id at = id; at && !above; at = graph_parent(&s->graph, at)) {
        if (!node_own_name(s, at) || depth == NAME_DEEP) return false;
        if (at != id && kept_has_name(kept_of(s, at))) above = kept_of(s, at);
        else way[depth++] = at;
    }
    if (above) {
        if (!append(out, &length, kept_name(above, &(size_t){ 0 }))) return false;
    } else if (!begin_name(s, id, way[depth - 1], out, &length)) {
        return false;
    }
    for (size_t i = depth; i-- > 0;) {
        if ((above || i + 1 < depth) && !append(out, &length, "/")) return false;
        if (!append(out, &length, node_label(s, way[i]))) return false;
    }
    return true;
}

/* The part before the second ':'. */
static size_t piece_length(const char *name) {
    const char *colon = strchr(name, ':');
    const char *second = colon ? strchr(colon + 1, ':') : NULL;
    return second ? (size_t)(second - name) : 0;
}

/* ---- pieces */

node_id persistence_find(const scheduler *s, const char *name, size_t length) {
    const table *names = &s->persistence->names;
    for (table_probe at = table_find(names, kept_name_hash(name, length));
         table_next(names, &at);) {
        size_t known;
        const char *its = kept_name(kept_of(s, at.index), &known);
        if (known == length && !memcmp(its, name, length)) return at.index;
    }
    return 0;
}

/* The node has no name any more. */
static void forget(scheduler *s, node_id id) {
    kept_node *k = kept_of(s, id);
    size_t length;
    const char *name = kept_has_name(k) ? kept_name(k, &length) : NULL;
    if (name) table_remove(&s->persistence->names, kept_name_hash(name, length), id);
    kept_clear(k);
}

static kept_piece *find_piece(const persistence *p, const char *name, size_t length) {
    table_probe at = table_find(&p->piece_names, kept_name_hash(name, length));
    while (table_next(&p->piece_names, &at)) {
        size_t known;
        kept_piece *k = &p->pieces.items[at.index];
        const char *text = text_of(k->name, &known);
        if (known == length && !memcmp(text, name, length)) return k;
    }
    return NULL;
}

static bool is_plain(const char *name) {
    return !strncmp(strchr(name, ':'), ":main:", strlen(":main:"));
}

static hd_status take_piece(scheduler *s, const char *name, uint32_t *out) {
    persistence *p = s->persistence;
    size_t length = piece_length(name);
    kept_piece *known = find_piece(p, name, length);
    if (known) {
        *out = (uint32_t)(known - p->pieces.items);
        return HD_OK;
    }
    if (!p->reach) persistence_look_back(s);
    if (!vec_room(s->env, &p->pieces, 1)) return HD_NOMEM;
    hd_value text = text_string(s->r->heap, name, length);
    if (hd_value_status(text)) return hd_value_status(text);
    *out = p->pieces.count;
    hd_status status = table_insert(&p->piece_names, kept_name_hash(name, length), *out);
    if (status) value_unref(text);
    else p->pieces.items[p->pieces.count++] = (kept_piece){ .name = text, .plain = is_plain(name) };
    return status;
}

/* "space:piece"; 0: no room. */
static size_t piece_name(const char *space, const char *piece, char out[NAME_SIZE]) {
    if (!basis_print_space(space, out, NAME_SIZE)) return 0;
    size_t length = strlen(out);
    return append(out, &length, ":") && append(out, &length, piece) ? length : 0;
}

kept_piece *persistence_piece(const scheduler *s, const char *space, const char *piece) {
    char name[NAME_SIZE];
    size_t length = s->persistence ? piece_name(space, piece, name) : 0;
    return length ? find_piece(s->persistence, name, length) : NULL;
}

void persistence_stopping(scheduler *s, bool on) {
    if (!s || !s->persistence) return;
    if (on) s->persistence->stopping++;
    else s->persistence->stopping--;
}

void persistence_built(scheduler *s, const char *space, const char *piece) {
    kept_piece *of = persistence_piece(s, space, piece);
    if (of && of->set) resume_drop_unbuilt(s, of);
}

void persistence_drop_piece(scheduler *s, const char *space, const char *piece) {
    char name[NAME_SIZE];
    if (s->persistence && piece_name(space, piece, name)) resume_drop_all(s, name);
}

/* ---- registering and removing */

/* Children are told apart from those of a run by their parent alone, so whoever creates a node in a
 * run has no row. */
static hd_status enter(scheduler *s, node_id id) {
    persistence *p = s->persistence;
    while (p->nodes.count <= id)
        if (!vec_push(s->env, &p->nodes, nobody())) return HD_NOMEM;
    forget(s, id);
    if (s->running) persistence_creates(s, s->running);
    return HD_OK;
}

static bool is_volatile(const scheduler *s, uint32_t at) {
    const places *ps = &s->r->places;
    return place_doc(ps, at)->doc.flags & DOC_VOLATILE;
}

static bool has_row(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    if ((n->flags & NODE_EFFECT) || !node_own_name(s, id)) return false;
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (is_volatile(s, out & ~WRITER_ENVELOPE)) return false;
    return graph_output(&s->graph, id, 0) != 0;
}

static hd_status name_node(scheduler *s, node_id id, const hd_node_spec *spec, const char *name) {
    kept_node *k = kept_of(s, id);
    size_t length = strlen(name);
    hd_value print = fingerprint_of(s, id, spec, name), text;
    hd_status status = hd_value_status(print);
    if (status) return status;
    text = text_string(s->r->heap, name, length);
    status = hd_value_status(text);
    if (!status) status = take_piece(s, name, &k->piece);
    if (!status) status = table_insert(&s->persistence->names, kept_name_hash(name, length), id);
    if (status) {
        if (!value_is_failed(text)) value_unref(text);
        value_unref(print);
        return status;
    }
    k->name = text;
    k->print = print;
    k->flags = (uint8_t)(KEPT_CHANGED | (spec->mends ? KEPT_MENDS : 0));
    s->persistence->pieces.items[k->piece].nodes++;
    return HD_OK;
}

hd_status persistence_registered(scheduler *s, node_id id, const hd_node_spec *spec) {
    char name[NAME_SIZE];
    hd_status status = enter(s, id);
    if (status || !has_row(s, id) || !durable_name(s, id, name) || !piece_length(name))
        return status;
    status = name_node(s, id, spec, name);
    if (status) return status;
    status = resume_take(s, id);
    if (s->persistence->wanted) node_of(s, id)->flags |= NODE_NOTED;
    return status;
}

/* A row that was taken up or written goes with its node, unless that only stops. */
static void on_leaving(scheduler *s, node_id id) {
    persistence *p = s->persistence;
    if (!p || id >= p->nodes.count) return;
    kept_node *k = kept_of(s, id);
    if (!kept_has_name(k)) return;
    if ((k->flags & KEPT_ROW) && !p->stopping) gone_add_node(s, id);
    kept_piece *of = &p->pieces.items[k->piece];
    if (--of->nodes == 0) {
        resume_free(s, of);
        of->asked = false;
    }
    forget(s, id); /* what stands of it in `due` is passed over */
}
