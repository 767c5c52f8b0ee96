/* identity.c -- a row of `meta`. */
#include "store/sqlite/identity.h"

#include "base/hash.h"
#include <assert.h>
#include <string.h>

enum { RANDOM = IDENTITY_SIZE - (int)sizeof(uint64_t) };

static uint64_t proof_of(const unsigned char id[IDENTITY_SIZE]) {
    return hash_bytes(id, RANDOM, 0);
}

static bool is_proved(const unsigned char id[IDENTITY_SIZE]) {
    uint64_t proof = proof_of(id);
    return memcmp(id + RANDOM, &proof, sizeof proof) == 0;
}

void identity_read(sqlite3 *db, identity *out) {
    sqlite3_stmt *s = NULL;
    *out = (identity){ .known = false };
    bool found = sqlite3_prepare_v2(db, "select value from meta where key = 'file'", -1, &s,
                                    NULL) == SQLITE_OK &&
                 sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_BLOB &&
                 sqlite3_column_bytes(s, 0) == IDENTITY_SIZE;
    const void *bytes = found ? sqlite3_column_blob(s, 0) : NULL;
    if (bytes) memcpy(out->id, bytes, IDENTITY_SIZE);
    out->known = bytes && is_proved(out->id);
    sqlite3_finalize(s);
}

bool identity_differs(const identity *a, const identity *b) {
    return a->known && b->known && memcmp(a->id, b->id, IDENTITY_SIZE) != 0;
}

int identity_draw(sqlite3 *db) {
    unsigned char id[IDENTITY_SIZE];
    sqlite3_stmt *s = NULL;
    sqlite3_randomness(RANDOM, id);
    uint64_t proof = proof_of(id);
    memcpy(id + RANDOM, &proof, sizeof proof);
    int rc = sqlite3_prepare_v2(db, "replace into meta values('file', ?1)", -1, &s, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_bind_blob(s, 1, id, IDENTITY_SIZE, SQLITE_STATIC);
    if (rc == SQLITE_OK && sqlite3_step(s) != SQLITE_DONE) rc = SQLITE_ERROR;
    int end = sqlite3_finalize(s);
    return end ? end : rc;
}

/* SQLite does not write a page on which nothing changes: so there is a number that does. */
int identity_write(sqlite3 *db) {
    identity now;
    assert(!sqlite3_get_autocommit(db));
    identity_read(db, &now);
    int rc = now.known ? SQLITE_OK : identity_draw(db);
    if (rc != SQLITE_OK) return rc;
    return sqlite3_exec(db, "replace into meta values('mark', abs(random() % 1000000000))", NULL,
                        NULL, NULL);
}
