/* passed.h -- rows of others that a writer has read, on their way to its runtime.
 *
 * Where writers do not keep each other out (log_store.optimistic), a writer reads the rows of others before it can
 * append its own, and its runtime has to be told the same rows before the verdicts. They come with the outcome, so
 * that the runtime does not ask the server for them once more (decision 0650).
 *
 *     add a row       its length
 *     memory          PASSED_MAX of text; what is longer is not passed on, and the runtime reads it itself */
#ifndef STORE_LOG_PASSED_H
#define STORE_LOG_PASSED_H

#include "store/log/backend.h"
#include "value/json_write.h"

enum { PASSED_MAX = 1 << 20 };

typedef struct passed_row {
    uint64_t row, hash;
    size_t at, length; /* of the text */
} passed_row;

typedef struct passed_rows {
    VEC(passed_row) rows; /* one after the other, without a gap */
    json_buffer texts;
} passed_rows;

void passed_init(passed_rows *p, const hd_env *env);
void passed_fini(passed_rows *p, const hd_env *env);
void passed_clear(passed_rows *p);

/* Without room, or without memory, all are dropped. */
void passed_add(passed_rows *p, const hd_env *env, const log_text *text);
/* Whether all rows behind `after`, up to `until`, are there. */
bool passed_has(const passed_rows *p, uint64_t after, uint64_t until);
/* One that is there; valid as long as nothing is added. */
log_text passed_get(const passed_rows *p, uint64_t row);

#endif
