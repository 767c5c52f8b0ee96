/* sql.h -- the statements that are sent while a store is open, by name. Opening one sends others (conn.c, schema.c).
 *
 * Statements are prepared when a connection first uses them. Types of parameters: n a number (bigint), t a
 * text, b a boolean, y bytes, T an array of texts. Results come in binary form. */
#ifndef STORE_POSTGRES_SQL_H
#define STORE_POSTGRES_SQL_H

#include <stdbool.h>

typedef enum pg_sql {
    PG_BEGIN_READ,
    PG_BEGIN_SOFT,
    PG_BEGIN_HOUSEWORK,
    PG_NO_WAIT,
    PG_LOCK_HOUSE,
    PG_COMMIT,
    PG_ROLLBACK,
    PG_NOTIFY,
    PG_LOG_APPEND,
    PG_LOG_CONTEND,
    PG_LOG_WINNERS,
    PG_LOG_AFTER,
    PG_LOG_ROW,
    PG_LOG_PRUNE,
    PG_LOG_ANY,
    PG_LOG_ENDS,
    PG_NUMBERS,
    PG_NUMBER_SET,
    PG_SECRET,
    PG_DOCS_TAKE,
    PG_SPACES,
    PG_SPACE_GET,
    PG_SPACE_SET,
    PG_SPACE_FLOOR,
    PG_TOMBSTONES_DROP,
    PG_HEAD_GET,
    PG_HEADS_GET,
    PG_HEAD_ADD,
    PG_HEAD_SET,
    PG_HEAD_PATCHED,
    PG_HEAD_DROP,
    PG_LARGE_GET,
    PG_LARGE_PUT,
    PG_LARGE_DROP,
    PG_PATCH_GET,
    PG_PATCH_PUT,
    PG_PATCH_DROP,
    PG_LIST_ALL,
    PG_LIST_KIND,
    PG_HEADS_SINCE,
    PG_METAS_SINCE,
    PG_FIND_PATCHED,
    PG_HEADS_ALL,
    PG_NODE_ANY,
    PG_NODES,
    PG_NODES_ALL,
    PG_NODE_NEXT,
    PG_NODE_PUT,
    PG_NODE_DROP,
    PG_SESSIONS,
    PG_SESSION_PUT,
    PG_READERS,
    PG_READER_PUT,
    PG_READER_DROP,
    PG_SESSION_DROP,
    PG_BEAT,
    PG_LEAVE,
    PG_LASTS,
    PG_MISSING,
    PG_META_WRONG,
    PG_PARTS,
    PG_SIZES,
    PG_SQL_COUNT_
} pg_sql;

typedef struct pg_statement {
    const char *text;
    const char *types;
} pg_statement;

extern const pg_statement pg_statements[PG_SQL_COUNT_];
/* Whether it looks at more of the store the larger that is: then its answer may take long. */
extern const bool pg_is_slow[PG_SQL_COUNT_];

/* How many rows a listing fetches at once; how many rows of the log, and how many bytes before the last one; how many
 * rows an append that was refused tells of. */
#define PG_PORTION   500
#define PG_LOG_ROWS  256
#define PG_LOG_BYTES 1048576
#define PG_WINNERS   4

#endif
