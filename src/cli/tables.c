/* tables.c -- reading a store's own tables. */
#define _POSIX_C_SOURCE 200809L
#include "cli/tables.h"

#include "cli/output.h"
#include "cli/store.h"
#include "store/runtime.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *plain_name(const char *name, char out[PLAIN_NAME]) {
    if (strncmp(name, "file:", 5) != 0) return name;
    snprintf(out, PLAIN_NAME, "./%s", name);
    return out;
}

int tables_open(cli *c, tables *t, const char *name) {
    hd_error error = { 0 };
    hd_env env = hd_env_system();
    hd_options options = { .read_only = true, .must_exist = true };
    const log_backend *backend = runtime_backend_of(name);
    *t = (tables){ .c = c, .file = name };
    hd_status status = backend->open(name, &options, &env, LOG_ALONE, &t->store, &error);
    if (status) return store_open_failed(c, name, status, &error);
    status = backend->begin_read(t->store);
    return status ? tables_fail(t, status, "reading") : CLI_OK;
}

int tables_fail(tables *t, hd_status status, const char *doing) {
    return cli_fail(t->c, exit_of(status), NULL, "%s: %s: %s", t->store->shown, doing,
                    log_store_words(t->store, status));
}

void tables_close(tables *t) {
    if (t->store) t->store->ops->close(t->store);
    t->store = NULL;
}

uint64_t file_size(const char *name, const char *suffix) {
    char whole[4096];
    struct stat st;
    int length = snprintf(whole, sizeof whole, "%s%s", name, suffix);
    if (length < 0 || (size_t)length >= sizeof whole || stat(whole, &st)) return 0;
    return (uint64_t)st.st_size;
}
