/* sqlite_stale.c -- from what has changed to the nodes that read it, to their pieces.
 *
 * Every piece says from when on its rows hold (`since` its first row, `valid` later). What has changed
 * after the oldest of these moments is asked of changes_since, for documents that some node has read;
 * for each of them `basis` names the nodes, and a node is stale if one of its reads overlaps a change
 * after its own proof. Rows of the log's tail stand beside the file's and before them. */
#include "store/sqlite_stale.h"

#include "store/admit.h"
#include "store/sqlite_basis.h"
#include "value/object.h"
#include "value/text.h"

typedef struct piece_state {
    hd_value name;         /* owned: a text */
    hd_value since, valid; /* owned: seqs by space; valid may be absent */
    hd_value seen;         /* the same, of what was read and not claimed; owned; may be absent */
    int64_t piece;         /* its number in the file; 0: it is in the tail alone */
    const basis_piece *over;
    uint64_t stale;
} piece_state;

/* A place that changed, in the list of its document. */
typedef struct doc_change {
    uint64_t seq;
    hd_path path; /* referenced */
    uint8_t flags;
    uint32_t next; /* 1-based; 0: the last */
} doc_change;

typedef struct search {
    client *c;
    hd_status status; /* of a callback that failed */
    VEC(piece_state) pieces;
    VEC(uint32_t) of_tail; /* by index of the tail's pieces: into `pieces`, 1-based; 0: not yet */
    table by_number;
    hd_value folded;       /* where the checkpoint left the spaces; owned */
    tail docs;             /* names of changed documents that somebody has read */
    VEC(uint32_t) changes; /* of each of them: the first, 1-based; 0: none */
    VEC(doc_change) all;
    table judged; /* numbers of nodes that have been looked at: by index into `nodes` */
    VEC(int64_t) nodes;
    read_set tail_reads; /* documents that rows of the tail read */
} search;

static uint64_t seq_at(hd_value seqs, const char *space, size_t length) {
    int64_t seq = hd_value_as_int(object_get_bytes(seqs, space, length), 0);
    return seq < 0 ? 0 : (uint64_t)seq;
}

/* Up to where everything the piece has is known to hold. */
static uint64_t holds_until(const piece_state *p, const char *space, size_t length) {
    uint64_t since = seq_at(p->since, space, length), valid = seq_at(p->valid, space, length);
    uint64_t until = since > valid ? since : valid;
    hd_value seen = object_get_bytes(p->seen, space, length);
    uint64_t least = value_exists(seen) ? seq_at(p->seen, space, length) : until;
    return until < least ? until : least;
}

static bool counts(const search *g, uint64_t at) { return at > g->c->checkpoint; }

/* ---- Pieces ----------------------------------------------------------------------------------- */

static hd_status column_json(const search *g, sqlite3_stmt *s, int column, hd_value *out) {
    const char *text = sqlite3_column_blob(s, column);
    *out = text ? log_json_read(g->c->r->heap, text, (size_t)sqlite3_column_bytes(s, column))
                : value_absent();
    if (!value_is_failed(*out)) return HD_OK;
    hd_status status = hd_value_status(*out);
    *out = value_absent();
    return status == HD_NOMEM ? HD_NOMEM : HD_OK;
}

static void piece_fini(piece_state *p) {
    value_unref(p->name);
    value_unref(p->since);
    value_unref(p->valid);
    value_unref(p->seen);
}

static hd_status add_piece(search *g, piece_state p) {
    bool ok = vec_room(g->c->env, &g->pieces, 1) &&
              (!p.piece || !table_insert(&g->by_number, (uint32_t)p.piece, g->pieces.count));
    if (!ok) {
        piece_fini(&p);
        return HD_NOMEM;
    }
    g->pieces.items[g->pieces.count++] = p;
    if (p.over) g->of_tail.items[p.over - g->c->rows.pieces.items] = g->pieces.count;
    return HD_OK;
}

static hd_status take_piece(search *g, sqlite3_stmt *s) {
    const char *name = (const char *)sqlite3_column_text(s, 1);
    size_t length = (size_t)sqlite3_column_bytes(s, 1);
    if (!name) return HD_NOMEM;
    piece_state p = { .piece = sqlite3_column_int64(s, 0),
                      .over = basis_find_piece(&g->c->rows, name, length) };
    p.name = text_make(g->c->r->heap, TAG_STRING, name, length);
    hd_status status = value_is_failed(p.name) ? HD_NOMEM : column_json(g, s, 2, &p.since);
    p.seen = value_ref(object_get_bytes(p.since, PIECE_SEEN, strlen(PIECE_SEEN)));
    if (!status && p.over && value_exists(p.over->valid) && counts(g, p.over->at))
        p.valid = value_ref(p.over->valid);
    else if (!status) status = column_json(g, s, 3, &p.valid);
    if (!status) return add_piece(g, p);
    piece_fini(&p);
    return status;
}

static hd_status each(search *g, const char *sql, const doc_name *name,
                      hd_status (*fn)(search *, sqlite3_stmt *)) {
    file *f = &g->c->file;
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(f->db, sql, -1, &s, NULL);
    hd_status status = file_status(rc);
    if (!status && name) bind_name(s, name);
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW) status = fn(g, s);
    if (!status) status = file_status(rc);
    sqlite3_finalize(s);
    return status;
}

static hd_status take_folded(search *g, sqlite3_stmt *s) {
    hd_heap *heap = g->c->r->heap;
    struct key *space;
    const char *text = (const char *)sqlite3_column_text(s, 0);
    hd_status status =
        text ? key_make(heap, text, (size_t)sqlite3_column_bytes(s, 0), &space) : HD_NOMEM;
    if (status) return status;
    hd_value n = int_make(heap, sqlite3_column_int64(s, 1));
    hd_value next = object_set(heap, g->folded, space, n);
    value_unref(n);
    key_unref(space);
    if (value_is_failed(next)) return HD_NOMEM;
    value_unref(g->folded);
    g->folded = next;
    return HD_OK;
}

/* Pieces that no checkpoint has seen yet: all their rows were proved after the last one. */
static hd_status take_new_pieces(search *g) {
    const basis *rows = &g->c->rows;
    hd_status status = each(g, "select name, checkpoint from space", NULL, take_folded);
    for (uint32_t i = 0; i < rows->pieces.count && !status; i++) {
        const basis_piece *above = &rows->pieces.items[i];
        if (g->of_tail.items[i]) continue;
        piece_state p = { .name = value_ref(above->name),
                          .since = value_ref(g->folded),
                          .valid = value_ref(above->valid),
                          .over = above };
        status = add_piece(g, p);
    }
    return status;
}

static piece_state *piece_numbered(const search *g, int64_t number) {
    for (table_probe p = table_find(&g->by_number, (uint32_t)number);
         table_next(&g->by_number, &p);)
        if (g->pieces.items[p.index].piece == number) return &g->pieces.items[p.index];
    return NULL;
}

static piece_state *piece_of_entry(const search *g, const basis_entry *e) {
    return &g->pieces.items[g->of_tail.items[e->piece] - 1];
}

/* ---- Changes ---------------------------------------------------------------------------------- */

static uint32_t doc_number(const search *g, const doc_name *name) {
    const tail_doc *known = tail_find(&g->docs, name);
    return known ? (uint32_t)(known - g->docs.docs.items) + 1 : 0;
}

/* The same document, whoever's instance it is. */
static doc_name of_anybody(const doc_name *name) {
    doc_name any = *name;
    any.instance = "";
    any.instance_length = 0;
    return any;
}

static bool somebody_reads(search *g, const doc_name *name) {
    doc_name plain = *name;
    bool read = false;
    plain.meta = false;
    doc_name any = of_anybody(&plain);
    if (read_set_has(&g->tail_reads, &plain) || read_set_has(&g->tail_reads, &any)) return true;
    hd_status status = basis_is_read(&g->c->file, &plain, &read);
    if (status) g->status = status;
    return !status && read;
}

static uint32_t wanted(void *ctx, const doc_name *name) {
    search *g = ctx;
    uint32_t number = g->status ? 0 : doc_number(g, name);
    if (g->status || number || !somebody_reads(g, name)) return number;
    /* Room first: each of the names has its list. After a failure none is looked for any more. */
    g->status = vec_room(g->c->env, &g->changes, 1) ? tail_add(&g->docs, name, 1, 1) : HD_NOMEM;
    if (g->status) return 0;
    g->changes.items[g->changes.count++] = 0;
    return g->docs.docs.count;
}

static bool take_change(void *ctx, uint32_t doc, uint64_t seq, hd_path path, uint8_t flags) {
    search *g = ctx;
    doc_change change = { seq, path, flags, g->changes.items[doc - 1] };
    if (!vec_push(g->c->env, &g->all, change)) {
        g->status = HD_NOMEM;
        return false;
    }
    path_ref(g->c->r->heap, path);
    g->changes.items[doc - 1] = g->all.count;
    return true;
}

static hd_status take_changes(search *g, struct key *space) {
    uint64_t after = UINT64_MAX;
    for (uint32_t i = 0; i < g->pieces.count; i++) {
        uint64_t until = holds_until(&g->pieces.items[i], key_bytes(space), space->length);
        if (until < after) after = until;
    }
    change_query q = { g->c, space, after, g, wanted, take_change };
    hd_status status = changes_since(&q);
    return status ? status : g->status;
}

/* ---- Rows ------------------------------------------------------------------------------------- */

static bool change_hits(const search *g, uint32_t doc, uint64_t until, hd_path path, bool shape) {
    for (uint32_t i = g->changes.items[doc - 1]; i; i = g->all.items[i - 1].next) {
        const doc_change *change = &g->all.items[i - 1];
        if (change->seq > until &&
            touch_overlaps(g->c->r->heap, change->path, change->flags, path, shape))
            return true;
    }
    return false;
}

/* The same place of every document that a read of this name may mean. */
static bool name_hits(const search *g, const doc_name *name, uint64_t until, hd_path path,
                      bool shape) {
    bool any = name->scope != HD_SCOPE_SPACE && !name->instance_length;
    if (!any) {
        uint32_t doc = doc_number(g, name);
        return doc && change_hits(g, doc, until, path, shape);
    }
    for (uint32_t i = 0; i < g->docs.docs.count; i++) {
        doc_name other = of_anybody(&g->docs.docs.items[i].name);
        if (doc_name_equal(&other, name) && change_hits(g, i + 1, until, path, shape)) return true;
    }
    return false;
}

static hd_status read_is_hit(const search *g, const basis_read *r, const char *instance,
                             uint64_t until, bool *hit) {
    hd_heap *heap = g->c->r->heap;
    hd_path path;
    hd_status status = path_parse(heap, r->path, r->path_length, &path, NULL);
    if (status) return status == HD_NOMEM ? HD_NOMEM : HD_OK;
    doc_name name = read_doc_name(r, instance);
    *hit = name_hits(g, &name, until, path, r->shape);
    if (!*hit && name.id_length > 1 && name.id[name.id_length - 1] == '!') {
        name.id_length--;
        name.meta = true;
        *hit = name_hits(g, &name, until, path, r->shape);
    }
    path_unref(heap, path);
    return HD_OK;
}

static hd_status row_is_stale(const search *g, const piece_state *p, const char *instance,
                              hd_value seqs, hd_value body, bool *stale) {
    hd_value reads = basis_reads_of(body);
    hd_status status = HD_OK;
    *stale = false;
    for (size_t i = 0; i < hd_value_count(reads) && !*stale && !status; i++) {
        basis_read r;
        if (!basis_read_at(reads, i, &r)) continue;
        uint64_t own = r.claimed ? seq_at(seqs, r.space, r.space_length) : r.seq;
        /* What is said of a piece nobody can say of another principal's rows, nor of reads that
         * were not claimed. */
        bool covered = !*instance && r.claimed;
        uint64_t valid = covered ? seq_at(p->valid, r.space, r.space_length) : 0;
        status = read_is_hit(g, &r, instance, own > valid ? own : valid, stale);
    }
    return status;
}

/* Whether it is the first time that this node is met. */
static hd_status first_time(search *g, int64_t node, bool *first) {
    *first = false;
    for (table_probe p = table_find(&g->judged, (uint32_t)node); table_next(&g->judged, &p);)
        if (g->nodes.items[p.index] == node) return HD_OK;
    if (!vec_push(g->c->env, &g->nodes, node)) return HD_NOMEM;
    *first = true;
    return table_insert(&g->judged, (uint32_t)node, g->nodes.count - 1);
}

static const basis_entry *entry_of(const search *g, sqlite3_stmt *s) {
    const char *name = (const char *)sqlite3_column_text(s, 2);
    const char *instance = (const char *)sqlite3_column_text(s, 3);
    if (!name || !instance) return NULL;
    const basis_entry *e = basis_find(&g->c->rows, name, strlen(name), instance, strlen(instance));
    if (!e || !counts(g, e->at)) return NULL;
    if (e->flags & (ROW_WHOLE | ROW_GONE)) return e;
    const char *fingerprint = (const char *)sqlite3_column_text(s, 7);
    bool meant =
        fingerprint && basis_is_meant(e->row, fingerprint, (size_t)sqlite3_column_bytes(s, 7));
    return meant ? e : NULL;
}

static hd_status seqs_of(const search *g, const basis_entry *e, hd_value *out) {
    hd_value seqs = basis_seqs_of(&g->c->rows, e);
    *out = value_is_failed(seqs) ? value_absent() : seqs;
    return hd_value_status(seqs);
}

/* node, piece, name, instance, stale, seqs, body, fingerprint. One that the tail knows is judged there, unless the
 * tail only knows that it was proved anew. */
static hd_status judge_stored(search *g, sqlite3_stmt *s) {
    const basis_entry *e = entry_of(g, s);
    piece_state *p = piece_numbered(g, sqlite3_column_int64(s, 1));
    bool first, stale = false;
    hd_status status = first_time(g, sqlite3_column_int64(s, 0), &first);
    if (status || !first || !p || (e && (e->flags & (ROW_WHOLE | ROW_GONE)))) return status;
    bool said = p->over && value_exists(p->over->valid) && counts(g, p->over->at);
    if (e) stale = e->flags & ROW_STALE;
    else if (said) stale = basis_names_stale(p->over, (const char *)sqlite3_column_text(s, 2));
    else stale = sqlite3_column_int(s, 4) != 0;
    hd_value seqs = value_absent(), body = value_absent();
    if (!stale) status = column_json(g, s, 6, &body);
    if (!stale && !status) status = e ? seqs_of(g, e, &seqs) : column_json(g, s, 5, &seqs);
    if (!stale && !status)
        status = row_is_stale(g, p, (const char *)sqlite3_column_text(s, 3), seqs, body, &stale);
    value_unref(seqs);
    value_unref(body);
    p->stale += !status && stale;
    return status;
}

#define NODE_COLUMNS                                                                               \
    "select n.node, n.piece, n.name, n.instance, n.stale, n.seqs, n.body, n.fingerprint from "

/* Those whom a change may concern; those that were stale already; those that a piece named since. */
static hd_status judge_file(search *g) {
    hd_status status = g->c->file.format < 2
                           ? HD_OK
                           : each(g, NODE_COLUMNS "node n indexed by node_stale where n.stale",
                                  NULL, judge_stored);
    for (uint32_t i = 0; i < g->docs.docs.count && !status && g->c->file.format >= 2; i++)
        status = each(g,
                      NODE_COLUMNS "basis b join node n using(node) where b.space = ?1 and"
                                   " b.id = ?2 and b.scope = ?3 and b.instance in (?4, '')",
                      &g->docs.docs.items[i].name, judge_stored);
    for (uint32_t i = 0; i < g->pieces.count && !status; i++) {
        const piece_state *p = &g->pieces.items[i];
        if (!p->piece || !p->over || !counts(g, p->over->at)) continue;
        for (hd_iter it = hd_iter_of(p->over->stale); !status && hd_iter_next(&it);) {
            doc_name named = { .space = "", .id = hd_value_as_text(it.value, "") };
            named.id_length = (uint32_t)strlen(named.id);
            named.instance = hd_value_as_text(p->name, "");
            named.instance_length = (uint32_t)strlen(named.instance);
            status = each(g,
                          NODE_COLUMNS "piece p join node n using(piece) where p.name = ?4 and"
                                       " n.name = ?2 and ?1 = '' and ?3 = 'space'",
                          &named, judge_stored);
        }
    }
    return status;
}

static hd_status judge_tail(search *g) {
    const basis *rows = &g->c->rows;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < rows->entries.count && !status; i++) {
        const basis_entry *e = &rows->entries.items[i];
        piece_state *p = piece_of_entry(g, e);
        if (!counts(g, e->at) || !(e->flags & ROW_WHOLE)) continue;
        bool stale = e->flags & ROW_STALE;
        hd_value seqs = value_absent();
        if (!stale) status = seqs_of(g, e, &seqs);
        if (!stale && !status)
            status = row_is_stale(g, p, basis_text(e, 1, NULL), seqs, array_get(e->row, 3), &stale);
        value_unref(seqs);
        p->stale += !status && stale;
    }
    return status;
}

/* ---- The whole -------------------------------------------------------------------------------- */

static hd_status take_tail_reads(search *g) {
    const basis *rows = &g->c->rows;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < rows->entries.count && !status; i++) {
        const basis_entry *e = &rows->entries.items[i];
        if (!counts(g, e->at) || !(e->flags & ROW_WHOLE)) continue;
        hd_value body = array_get(e->row, 3);
        status = read_set_add(&g->tail_reads, body, basis_text(e, 1, NULL));
        if (!status) status = reads_note_seen(g->c->r->heap, body, &piece_of_entry(g, e)->seen);
    }
    return status;
}

static hd_status look(search *g) {
    client *c = g->c;
    hd_status status = client_snapshot(c);
    for (uint32_t i = 0; i < c->rows.pieces.count && !status; i++)
        if (!vec_push(c->env, &g->of_tail, 0)) status = HD_NOMEM;
    if (!status && c->file.format >= 2)
        status =
            each(g, "select piece, name, since, valid from piece order by name", NULL, take_piece);
    if (!status) status = take_new_pieces(g);
    if (!status) status = take_tail_reads(g);
    for (uint32_t i = 0; i < c->spaces.count && !status && g->pieces.count; i++)
        status = take_changes(g, c->spaces.items[i].name);
    if (!status) status = judge_file(g);
    return status ? status : judge_tail(g);
}

static void search_fini(search *g) {
    const hd_env *env = g->c->env;
    for (uint32_t i = 0; i < g->pieces.count; i++) piece_fini(&g->pieces.items[i]);
    for (uint32_t i = 0; i < g->all.count; i++) path_unref(g->c->r->heap, g->all.items[i].path);
    value_unref(g->folded);
    vec_fini(env, &g->pieces);
    vec_fini(env, &g->of_tail);
    vec_fini(env, &g->changes);
    vec_fini(env, &g->all);
    vec_fini(env, &g->nodes);
    table_fini(&g->by_number);
    table_fini(&g->judged);
    read_set_fini(&g->tail_reads);
    tail_fini(&g->docs);
}

hd_status client_stale(client *c, basis_stale_fn fn, void *ctx) {
    search g = { .c = c, .folded = hd_object() };
    table_init(&g.by_number, c->env);
    table_init(&g.judged, c->env);
    tail_init(&g.docs, c->env);
    read_set_init(&g.tail_reads, c->env);
    hd_status status = look(&g);
    for (uint32_t i = 0; i < g.pieces.count && !status; i++) {
        const piece_state *p = &g.pieces.items[i];
        if (p->stale && !fn(ctx, hd_value_as_text(p->name, ""), p->stale)) break;
    }
    search_fini(&g);
    return status;
}
