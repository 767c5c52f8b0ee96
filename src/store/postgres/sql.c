/* sql.c -- the texts of the statements. Plain SQL, without functions, triggers or advisory locks of the server. */
#include "store/postgres/sql.h"

#include "store/log/columns.h"

#define TEXT_OF(x) #x
#define NUMBER(x)  TEXT_OF(x)
/* A reader or session that has not been heard of for this long is gone. */
#define READER_LIVES  "interval '30 seconds'"
#define SESSION_LIVES "interval '1 day'"

/* True; and the transaction of the statement, which is alone in it, does not wait for the disk. */
#define SOFTLY "set_config('synchronous_commit', 'off', true) <> ''"

const pg_statement pg_statements[PG_SQL_COUNT_] = {
    [PG_BEGIN_READ] = { "begin isolation level repeatable read read only", "" },
    [PG_BEGIN_SOFT] = { "begin isolation level read committed", "" },
    [PG_BEGIN_HOUSEWORK] = { "begin isolation level repeatable read", "" },
    [PG_NO_WAIT] = { "set local synchronous_commit to off", "" },
    [PG_LOCK_HOUSE] = { "select 1 from meta where key = 'checkpoint' for update nowait", "" },
    [PG_COMMIT] = { "commit", "" },
    [PG_ROLLBACK] = { "rollback", "" },
    [PG_NOTIFY] = { "select pg_notify($1, $2) where " SOFTLY, "tt" },

    /* The primary key decides which writer has the row. The row before it must still be there, and stays while
     * this statement runs: a writer that slept while others appended, folded and pruned must not begin a
     * second log behind the first. Pruning never deletes the last row. */
    [PG_LOG_APPEND] = { "insert into log(row, hash, body) select $1, $2, $3 from log where row = "
                        "$1 - 1"
                        " for key share on conflict (row) do nothing",
                        "nnt" },
    /* The same where other processes append, too. The lock of the row before is written to the WAL, so that a writer
     * which has added nothing would wait for the disk: here only a row that was added is waited for, as $4 says. */
    [PG_LOG_CONTEND] = { "insert into log(row, hash, body) select $1, $2, $3 from log where row = "
                         "$1 - 1 and " SOFTLY " for key share on conflict (row) do nothing"
                         " returning set_config('synchronous_commit', $4, true)",
                         "nntt" },
    /* Sent behind it: if the row was another writer's, that row and those after it, with the numbers. The writer has
     * to read them before it judges again. */
    [PG_LOG_WINNERS] = { "select row, hash, body,"
                         " coalesce((select number from meta where key = 'checkpoint'), -1),"
                         " coalesce((select number from meta where key = 'kept'), -1)"
                         " from log where row >= $1 and (row > $1 or hash <> $2)"
                         " order by row limit " NUMBER(PG_WINNERS),
                         "nn" },
    /* About a slice of a checkpoint, but at least one row. */
    [PG_LOG_AFTER] = { "select row, hash, body from (select row, hash, body,"
                       " sum(octet_length(body)) over (order by row) - octet_length(body) as before"
                       " from (select * from log where row > $1 order by row limit " NUMBER(
                           PG_LOG_ROWS) ") first) sized"
                                        " where before < " NUMBER(PG_LOG_BYTES) " order by row",
                       "n" },
    [PG_LOG_ROW] = { "select row, hash, body from log where row = $1", "n" },
    [PG_LOG_PRUNE] = { "delete from log where row <= $1 and row < (select max(row) from log)",
                       "n" },
    [PG_LOG_ENDS] = { "select (select coalesce(min(row), 0) from log where row > 0),"
                      " (select coalesce(max(row), 0) from log)",
                      "" },
    [PG_LOG_ANY] = { "select 1::bigint from log where row > $1 limit 1", "n" },

    [PG_NUMBERS] = { "select key, number from meta where key in ('checkpoint', 'kept')", "" },
    [PG_NUMBER_SET] = { "update meta set number = $2 where key = $1", "tn" },
    [PG_SECRET] = { "select bytes from meta where key = 'secret'", "" },
    [PG_DOCS_TAKE] = { "update meta set number = number + $1 where key = 'docs' returning number",
                       "n" },

    [PG_SPACES] = { "select name, checkpoint, floor from space order by name", "" },
    [PG_SPACE_GET] = { "select checkpoint, floor from space where name = $1", "t" },
    [PG_SPACE_SET] = { "insert into space(name, checkpoint, floor) values($1, $2, 0)"
                       " on conflict (name) do update set checkpoint = $2",
                       "tn" },
    [PG_SPACE_FLOOR] = { "update space set floor = $2 where name = $1 and floor < $2", "tn" },
    [PG_TOMBSTONES_DROP] = { "delete from head where space = $1 and seq <= $2 and size = 0"
                             " and meta is null and not guarded and meta_seq <= $2",
                             "tn" },

    [PG_HEAD_GET] = { "select " HEAD_COLUMNS " from head"
                      " where space = $1 and id = $2 and scope = $3 and instance = $4",
                      "tttt" },
    [PG_HEADS_GET] = { "select " HEAD_COLUMNS " from head where (space, id, scope, instance) in"
                       " (select * from unnest($1, $2, $3, $4))",
                       "TTTT" },
    /* A number that another document has is an error, and never that document's end. */
    [PG_HEAD_ADD] = { "insert into head(" HEAD_COLUMNS ")"
                      " values($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
                      "ntnnbbnnntttttt" },
    [PG_HEAD_SET] = { "update head set kind = $2, seq = $3, meta_seq = $4, guarded = $5,"
                      " large = $6, size = $7, patched = $8, hash = $9, meta = $10, value = $11"
                      " where doc = $1",
                      "ntnnbbnnntt" },
    [PG_HEAD_PATCHED] = { "update head set seq = $2, patched = $3 where doc = $1", "nnn" },
    [PG_HEAD_DROP] = { "delete from head where doc = $1", "n" },
    [PG_LARGE_GET] = { "select 0::bigint, hash, value from large where doc = $1", "n" },
    [PG_LARGE_PUT] = { "insert into large(doc, hash, value) values($1, $2, $3)"
                       " on conflict (doc) do update set hash = $2, value = $3",
                       "nnt" },
    [PG_LARGE_DROP] = { "delete from large where doc = $1", "n" },
    [PG_PATCH_GET] = { "select seq, hash, body from patch where doc = $1 order by seq", "n" },
    [PG_PATCH_PUT] = { "insert into patch(doc, seq, hash, body) values($1, $2, $3, $4)"
                       " on conflict (doc, seq) do update set hash = $3, body = $4",
                       "nnnt" },
    [PG_PATCH_DROP] = { "delete from patch where doc = $1", "n" },

    [PG_LIST_ALL] = { "select id, scope, instance, kind, seq from head where space = $1"
                      " and (id, scope, instance) > ($2, $3, $4) and (large or value is not null)"
                      " order by id, scope, instance limit " NUMBER(PG_PORTION),
                      "tttt" },
    [PG_LIST_KIND] = { "select id, scope, instance, kind, seq from head where space = $1"
                       " and (id, scope, instance) > ($2, $3, $4) and kind = $5 and kind <> ''"
                       " and (large or value is not null)"
                       " order by id, scope, instance limit " NUMBER(PG_PORTION),
                       "ttttt" },
    [PG_HEADS_SINCE] = { "select id, scope, instance, '', seq from head where space = $1 and seq > "
                         "$2",
                         "tn" },
    [PG_METAS_SINCE] = { "select id, scope, instance, '', meta_seq from head"
                         " where space = $1 and meta_seq > $2 and meta_seq > 0",
                         "tn" },
    [PG_FIND_PATCHED] = { "select id, scope, instance, '', seq, doc, space from head"
                          " where patched > 0 and doc > $1 order by doc limit 1",
                          "n" },

    [PG_HEADS_ALL] = { "select " HEAD_COLUMNS
                       " from head where doc > $1 order by doc limit " NUMBER(PG_PORTION),
                       "n" },

    [PG_NODE_ANY] = { "select 1::bigint from node limit 1", "" },
    /* Names of a piece begin with it and a ':'; ';' follows ':'. */
    [PG_NODES] = { "select " MEMO_COLUMNS " from node"
                   " where name >= $1 || ':' and name < $1 || ';' order by name, instance",
                   "t" },
    [PG_NODES_ALL] = { "select " MEMO_COLUMNS " from node"
                       " order by name, instance",
                       "" },
    [PG_NODE_NEXT] = { "select name from node where name >= $1 order by name limit 1", "t" },
    [PG_NODE_PUT] = { "insert into node(" MEMO_COLUMNS ")"
                      " values($1, $2, $3, $4, $5, $6, $7) on conflict (name, instance) do update"
                      " set hashes = $3, print = $4, flags = $5, reads = $6, seqs = $7",
                      "ttttttt" },
    [PG_NODE_DROP] = { "delete from node where name = $1 and instance = $2", "tt" },

    /* clock_timestamp: now() is when the transaction began. */
    [PG_BEAT] = { "with me as (insert into presence(session, since, expires) select $1,"
                  " clock_timestamp(), clock_timestamp() + $2 * interval '1 millisecond'"
                  " where " SOFTLY
                  " on conflict (session) do update set expires = excluded.expires)"
                  " select '', (select max(row) from log) union all select session,"
                  " (extract(epoch from expires - clock_timestamp()) * 1000)::bigint from presence"
                  " where session = any(string_to_array($3, ',')) and expires > clock_timestamp()",
                  "tnt" },
    [PG_LEAVE] = { "delete from presence where session = $1"
                   " or expires < clock_timestamp() - " SESSION_LIVES,
                   "t" },
    [PG_LASTS] = { "select (extract(epoch from expires - clock_timestamp()) * 1000)::bigint"
                   " from presence where session = $1 and expires > clock_timestamp()",
                   "t" },
    /* Tables and indexes by name, as schema.h makes them. The primary key of the log decides which writer has a row. */
    [PG_MISSING] = { "select 'the table or index ' || name || ' is missing' from (values ('head'), "
                     "('head_gone'), ('head_kind'), "
                     "('head_meta'),"
                     " ('head_name'), ('head_patched'), ('head_pkey'), ('head_seq'), ('large'),"
                     " ('large_pkey'), ('log'), ('log_pkey'), ('meta'), ('meta_pkey'), ('node'),"
                     " ('node_pkey'), ('patch'), ('patch_pkey'), ('presence'), ('presence_pkey'),"
                     " ('reader'), ('reader_pkey'), ('session'), ('session_pkey'), ('space'),"
                     " ('space_pkey')) made(name) where to_regclass(name) is null",
                     "" },
    /* The checkpoint is asked for by itself. New head rows are numbered from 'docs' on. */
    [PG_META_WRONG] = { "select 'meta: there is no ' || key from (values ('format'), ('kept'),"
                        " ('docs'), ('secret')) made(key) where not exists (select from meta"
                        " where meta.key = made.key and coalesce(number::text, bytes::text) <> '')"
                        " union all select 'meta: docs is ' || number || ', but a row of head has"
                        " the number ' || doc from meta, (select max(doc) as doc from head) last"
                        " where key = 'docs' and number < doc",
                        "" },
    /* With no head row, or one that has no large value. */
    [PG_PARTS] = { "select 'large', doc from large where doc not in (select doc from head where "
                   "large)"
                   " union all select 'patch', doc from patch"
                   " where doc not in (select doc from head where large)",
                   "" },
    [PG_SIZES] = { "select (select number from meta where key = 'format'),"
                   " (select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class "
                   "c"
                   "  join pg_namespace n on n.oid = c.relnamespace"
                   "  where n.nspname = current_schema() and c.relkind = 'r'),"
                   " (select count(*) from log where row > 0),"
                   " (select coalesce(sum(octet_length(body)), 0)::bigint from log where row > 0),"
                   " (select coalesce(min(row), 0) from log where row > 0),"
                   " (select max(row) from log), point,"
                   " (select count(*) from log where row > point),"
                   " (select coalesce(sum(octet_length(body)), 0)::bigint from log where row > "
                   "point),"
                   " (select count(*) from large),"
                   " (select count(*) from head where value is null and not large),"
                   " (select count(*) from node),"
                   " (select count(*) from session where seen > now() - " READER_LIVES "),"
                   " (select count(*) from reader where seen > now() - " READER_LIVES ")"
                   " from (select number as point from meta where key = 'checkpoint') m",
                   "" },

    [PG_SESSIONS] = { "select id, settled, last, verdicts from session", "" },
    [PG_SESSION_PUT] = { "insert into session(id, seen, settled, last, verdicts)"
                         " values($1, now(), $2, $3, $4) on conflict (id) do update"
                         " set seen = now(), settled = $2, last = $3, verdicts = $4",
                         "tnnt" },
    [PG_READERS] = { "select session, position, seen > now() - " READER_LIVES " from reader", "" },
    [PG_READER_PUT] = { "insert into reader(session, seen, position) values($1, now(), $2)"
                        " on conflict (session) do update set seen = now(), position = $2",
                        "tn" },
    [PG_READER_DROP] = { "delete from reader where session = $1", "t" },
    /* A runtime that lost its connection while it committed finds its verdicts here when it comes back. */
    [PG_SESSION_DROP] = { "delete from session where seen < now() - " SESSION_LIVES, "" },
};

const bool pg_is_slow[PG_SQL_COUNT_] = {
    [PG_LOG_PRUNE] = true,   [PG_TOMBSTONES_DROP] = true, [PG_HEADS_SINCE] = true,
    [PG_METAS_SINCE] = true, [PG_NODES_ALL] = true,       [PG_PARTS] = true,
    [PG_SIZES] = true
};
