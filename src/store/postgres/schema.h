/* schema.h -- the steps that lead from an empty schema to the present format.
 *
 * Step n brings a store of format n to format n + 1. Steps are never changed once released; a new format adds
 * one. Texts are compared bytewise, as in a file. */
#ifndef STORE_POSTGRES_SCHEMA_H
#define STORE_POSTGRES_SCHEMA_H

#define PG_FORMAT 1
#define PG_MARK   "1214532657" /* "HdL1", as in a file */
#define PG_TEXT   "text collate \"C\" not null"

static const char *const pg_schema_steps[] = {
    /* 0 -> 1 */
    "create table meta(key " PG_TEXT " primary key, number bigint, bytes bytea);"
    /* A row is written once. What is longer than a page goes out of line as it is: compressing it costs more
     * than it saves, since the row is pruned before long. */
    "create table log(row bigint primary key, hash bigint not null, body " PG_TEXT ")"
    "  with (toast_tuple_target = 8160);"
    "alter table log alter column body set storage external;"
    "create table space(name " PG_TEXT " primary key, checkpoint bigint not null,"
    "  floor bigint not null);"
    "create table head(doc bigint primary key, space " PG_TEXT ", scope " PG_TEXT ","
    "  instance " PG_TEXT ", id " PG_TEXT ", kind " PG_TEXT ", seq bigint not null,"
    "  meta_seq bigint not null, guarded boolean not null, large boolean not null,"
    "  size bigint not null, patched bigint not null, hash bigint not null,"
    "  meta text collate \"C\", value text collate \"C\");"
    "create unique index head_name on head(space, id, scope, instance);"
    "create index head_seq on head(space, seq);"
    "create index head_kind on head(space, kind, id, scope, instance) where kind <> '';"
    "create index head_meta on head(space, meta_seq) where meta_seq > 0;"
    "create index head_gone on head(space, seq) where size = 0 and meta is null and not guarded;"
    "create index head_patched on head(doc) where patched > 0;"
    "create table large(doc bigint primary key, hash bigint not null, value " PG_TEXT ");"
    "create table patch(doc bigint not null, seq bigint not null, hash bigint not null,"
    "  body " PG_TEXT ", primary key(doc, seq));"
    "create table node(name " PG_TEXT ", instance " PG_TEXT ", hashes " PG_TEXT ", print " PG_TEXT
    ","
    "  flags " PG_TEXT ", reads " PG_TEXT ", seqs " PG_TEXT ", primary key(name, instance));"
    "create table session(id " PG_TEXT " primary key, seen timestamptz not null,"
    "  settled bigint not null, last bigint not null, verdicts " PG_TEXT ");"
    "create table reader(session " PG_TEXT " primary key, seen timestamptz not null,"
    "  position bigint not null);"
    "create table presence(session " PG_TEXT " primary key, since timestamptz not null,"
    "  expires timestamptz not null);"
    "create view document as select h.space, h.scope, h.instance, h.id, h.kind, h.seq,"
    "  case when h.large then (select l.value from large l where l.doc = h.doc) else h.value end"
    "    as value, h.meta,"
    "  (select count(*) from patch p where p.doc = h.doc) as patches"
    "  from head h where h.large or h.value is not null;"
    "insert into log values(0, 0, '');"
    "insert into meta(key, number) values('heddle', " PG_MARK "), ('format', 1), ('checkpoint', 0),"
    "  ('kept', 0), ('docs', 0);"
    "insert into meta(key, bytes) values('secret', decode(replace(gen_random_uuid()::text"
    "  || gen_random_uuid()::text, '-', ''), 'hex'));",
};

#endif
