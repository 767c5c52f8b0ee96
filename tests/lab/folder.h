/* folder.h -- a folder for real files, for tests with processes that die.
 *
 *     cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
 *     folder_file(path, sizeof path, "kill.db")    a name in it
 *     folder_store(path, sizeof path, "kill.db")   the same; HD_STORE=postgres: a schema on the server (lab_place.h)
 *     folder_remove_store(path)                    a store and what SQLite keeps beside it */
#ifndef HEDDLE_FOLDER_H
#define HEDDLE_FOLDER_H

#include "lab_place.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static inline int folder_make(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/heddle-test-XXXXXX", base ? base : P_tmpdir);
    return mkdtemp(folder) ? 0 : -1;
}

static inline void folder_file(char *path, size_t size, const char *name) {
    snprintf(path, size, "%s/%s", folder, name);
}

/* Schemas of a test begin as the folder's name ends. */
static inline const char *folder_schemas(void) { return strrchr(folder, '-') + 1; }

static inline void folder_store(char *path, size_t size, const char *name) {
    const char *server = getenv("HD_POSTGRES");
    if (!lab_on_server() || !server) folder_file(path, size, name);
    else
        snprintf(path, size, "%s%cschema=%s_%.*s", server, strchr(server, '?') ? '&' : '?',
                 folder_schemas(), (int)strcspn(name, "."), name);
}

static inline void folder_remove_store(const char *path) {
    static const char *const ends[] = { "", "-wal", "-shm" };
    char name[260];
    if (strstr(path, "://")) {
        lab_drop_schemas(strrchr(path, '=') + 1);
        return;
    }
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* With every file in it. */
static inline int folder_remove(void **state) {
    (void)state;
    char path[sizeof folder + sizeof((struct dirent *)0)->d_name];
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        folder_file(path, sizeof path, entry->d_name);
        unlink(path);
    }
    if (entries) closedir(entries);
    if (lab_on_server()) lab_drop_schemas(folder_schemas());
    return rmdir(folder);
}

#endif
