/* identity.h -- which file a WAL belongs to.
 *
 * SQLite takes whatever lies beside a file under the name of its WAL for its own. If the file was replaced by another
 * one, a backup for instance, while the WAL of the former was left by a killed program, pages of both would be
 * mixed. So `meta` has an id of the file, and the page with that row is written into every WAL, soon after its
 * beginning. When a file is opened beside which a WAL lies, what the file alone says is compared with what both say
 * together.
 *
 * The page in the file alone may be torn by a power loss in the middle of being copied from the WAL, and then holds any
 * bytes. So the id proves itself: its second half is a hash of the first. What does not prove itself is no id, and is
 * replaced by one with the next commit.
 *
 * A copy that `heddle db backup` makes has an id of its own. One that was made by cp has that of the original. */
#ifndef STORE_SQLITE_IDENTITY_H
#define STORE_SQLITE_IDENTITY_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum { IDENTITY_SIZE = 16 };

typedef struct identity {
    unsigned char id[IDENTITY_SIZE];
    bool known; /* else there is none, or one that does not prove itself */
} identity;

void identity_read(sqlite3 *db, identity *out);
/* Whether they are of two files. */
bool identity_differs(const identity *a, const identity *b);
/* Gives the file a new id. SQLite's result. */
int identity_draw(sqlite3 *db);
/* Writes the page with the id, which is drawn if there is none, within a transaction. SQLite's result. */
int identity_write(sqlite3 *db);

#endif
