/* columns.h -- what backends that speak SQL have in common: the columns that they select, and names made of them. */
#ifndef STORE_LOG_COLUMNS_H
#define STORE_LOG_COLUMNS_H

#include "store/log/backend.h"

/* Of a head row, in this order; HEAD_NUMBERS are the first of them. */
#define HEAD_NUMBERS "doc, kind, seq, meta_seq, guarded, large, size, patched"
#define HEAD_COLUMNS HEAD_NUMBERS ", hash, meta, value, space, id, scope, instance"
enum {
    HEAD_DOC,
    HEAD_KIND,
    HEAD_SEQ,
    HEAD_META_SEQ,
    HEAD_IS_GUARDED,
    HEAD_IS_LARGE,
    HEAD_SIZE,
    HEAD_PATCHED,
    HEAD_HASH,
    HEAD_META,
    HEAD_VALUE,
    HEAD_SPACE,
    HEAD_ID,
    HEAD_SCOPE,
    HEAD_INSTANCE
};

/* Of a memo, in the order of stored_memo; called after what the scheduler's memos have there. */
#define MEMO_COLUMNS "name, instance, hashes, print, flags, reads, seqs"

/* The keys of log_number in `meta`. */
static inline const char *number_key(log_number which) {
    assert(which < LOG_NUMBERS_);
    return which == LOG_CHECKPOINT ? "checkpoint" : "kept";
}

/* The texts are borrowed. */
static inline doc_name name_of_texts(row_text space, row_text id, const char *scope,
                                     row_text instance, bool meta) {
    return (doc_name){ .space = space.bytes,
                       .space_length = (uint32_t)space.length,
                       .id = id.bytes,
                       .id_length = (uint32_t)id.length,
                       .instance = instance.bytes,
                       .instance_length = (uint32_t)instance.length,
                       .scope = scope_of_word(scope),
                       .meta = meta };
}

#endif
