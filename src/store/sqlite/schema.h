/* schema.h -- the steps that lead from an empty file to the present format.
 *
 * Step n brings a file of format n to format n + 1. Steps are never changed once released; a new
 * format adds one. */
#ifndef STORE_SQLITE_SCHEMA_H
#define STORE_SQLITE_SCHEMA_H

static const char *const schema_steps[] = {
    /* 0 -> 1 */
    "create table meta(key text primary key, value) without rowid;"
    "create table log(row integer primary key, hash integer not null, body text not null);"
    "create table space(name text primary key, checkpoint integer not null,"
    "  floor integer not null) without rowid;"
    "create table head(doc integer primary key,"
    "  space text not null, scope text not null, instance text not null, id text not null,"
    "  kind text not null, seq integer not null, meta_seq integer not null,"
    "  guarded integer not null, large integer not null, size integer not null,"
    "  patched integer not null, hash integer not null, meta text, value text);"
    "create unique index head_name on head(id, space, scope, instance);" /* ids differ early */
    "create index head_list on head(space, id);"
    "create index head_seq on head(space, seq);"
    "create index head_kind on head(space, kind, id) where kind <> '';"
    "create table large(doc integer primary key, hash integer not null, value text not null);"
    "create table patch(doc integer not null, seq integer not null, hash integer not null,"
    "  body text not null, primary key(doc, seq)) without rowid;"
    "create table session(id text primary key, pid integer not null, settled integer not null,"
    "  last integer not null, verdicts text not null) without rowid;"
    "create table reader(session text primary key, pid integer not null,"
    "  started integer not null, position integer not null) without rowid;"
    "create view document as select h.space, h.scope, h.instance, h.id, h.kind, h.seq,"
    "  case when h.large then (select l.value from large l where l.doc = h.doc) else h.value end"
    "    as value, h.meta,"
    "  (select count(*) from patch p where p.doc = h.doc) as patches"
    "  from head h where h.large or h.value is not null;"
    "insert into meta values('checkpoint', 0), ('kept', 0);",
    /* 1 -> 2: what is known about nodes */
    "create table piece(piece integer primary key, name text not null unique,"
    "  since text not null, valid text);"
    "create table node(piece integer not null, name text not null, instance text not null,"
    "  node integer not null unique, fingerprint text not null, stale integer not null,"
    "  seqs text not null, body text not null,"
    "  primary key(piece, name, instance)) without rowid;" /* a piece's rows stand together */
    "create index node_stale on node(piece) where stale;"
    "create table basis(id text not null, space text not null, scope text not null,"
    "  instance text not null, node integer not null,"
    "  primary key(id, space, scope, instance, node)) without rowid;"
    "create index head_meta on head(space, meta_seq) where meta_seq > 0;",
    /* 2 -> 3: commits in the log say whose account of what it changed does not hold */
    "",
    /* 3 -> 4: rows about nodes have hashes of what was read and written. Earlier ones go: their nodes run
     * once. The secret keys the hashes. */
    "drop table basis;"
    "drop table node;"
    "drop table piece;"
    "create table node(name text not null, instance text not null, hashes text not null,"
    "  print text not null, flags text not null, reads text not null, seqs text not null,"
    "  primary key(name, instance)) without rowid;"
    "create index head_gone on head(space, seq)"
    "  where size = 0 and meta is null and not guarded;"
    "insert into meta values('secret', randomblob(32));",
    /* 4 -> 5: in the log, a set may stand without its word, and a footprint may be "+" */
    "",
    /* 5 -> 6: in the log, the ids of a commit's documents may stand behind what they share */
    "",
};

#endif
