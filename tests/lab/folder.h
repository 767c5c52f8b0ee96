/* folder.h -- a folder for real files, for tests with processes that die.
 *
 *     cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
 *     folder_file(path, sizeof path, "kill.db")    a name in it
 *     folder_remove_store(path)                    a store and what SQLite keeps beside it */
#ifndef HEDDLE_FOLDER_H
#define HEDDLE_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
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

static inline void folder_remove_store(const char *path) {
    static const char *const ends[] = { "", "-wal", "-shm" };
    char name[160];
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
    return rmdir(folder);
}

#endif
