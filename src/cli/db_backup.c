/* db_backup.c -- a copy of the whole file, made while other programs use it.
 *
 * SQLite copies page by page and starts over when another program writes meanwhile, so the copy is the
 * file at one moment. It is written under a temporary name and renamed when it is complete. */
#define _GNU_SOURCE
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/shown.h"
#include "cli/tables.h"
#include "store/sqlite/backend.h"
#include "store/sqlite/identity.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP_PAGES = 512, BUSY_MS = 5000 };

typedef struct copying {
    cli *c;
    tables from;
    sqlite3 *to;
    char partial[4096]; /* the name while it grows */
} copying;

static int copy_failed(copying *k, const char *doing) {
    int code = sqlite3_errcode(k->to) & 0xFF;
    bool full = code == SQLITE_FULL;
    return cli_fail(k->c, CLI_IO, full ? "The disk is full." : NULL, "%s: %s: %s", k->partial,
                    doing, sqlite3_errmsg(k->to));
}

static int copy_pages(copying *k) {
    sqlite3_backup *b =
        sqlite3_backup_init(k->to, "main", sqlite_connection(k->from.store), "main");
    if (!b) return copy_failed(k, "starting the copy");
    int rc = SQLITE_OK;
    while ((rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED) && !interrupted()) {
        rc = sqlite3_backup_step(b, STEP_PAGES);
        int all = sqlite3_backup_pagecount(b), left = sqlite3_backup_remaining(b);
        if (all) progress_bar(k->c, "backup", (uint64_t)(all - left), (uint64_t)all);
        if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED) wait_readable(-1, 20);
    }
    progress(k->c, "%s", "");
    sqlite3_backup_finish(b);
    if (rc != SQLITE_DONE) return interrupted() ? interrupted_status() : copy_failed(k, "copying");
    /* The programs that have the original open do not have the copy open. And its WAL is not the original's:
     * store/sqlite/identity.h. */
    if (sqlite3_exec(k->to, "delete from reader; delete from session", NULL, NULL, NULL) ||
        identity_draw(k->to))
        return copy_failed(k, "finishing the copy");
    return CLI_OK;
}

/* Makes the file with the mode of the original, before a byte is written to it: the copy must not be
 * readable by more users. */
static int create_partial(copying *k) {
    struct stat st;
    remove(k->partial);
    if (stat(k->c->operands[0], &st)) st.st_mode = S_IRUSR | S_IWUSR;
    mode_t mode = st.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    int fd = open(k->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    bool made = fd >= 0 && fchmod(fd, mode | S_IRUSR | S_IWUSR) == 0;
    int why = errno;
    if (fd >= 0) close(fd);
    return made ? CLI_OK
                : cli_fail(k->c, CLI_IO, NULL, "%s: creating: %s", k->partial, strerror(why));
}

static int copy_to_partial(copying *k) {
    int made = create_partial(k);
    if (made) return made;
    char plain[PLAIN_NAME];
    if (sqlite3_open_v2(plain_name(k->partial, plain), &k->to, SQLITE_OPEN_READWRITE, NULL)) {
        int failed = copy_failed(k, "creating");
        sqlite3_close(k->to);
        return failed;
    }
    sqlite3_busy_timeout(k->to, BUSY_MS);
    int failed = copy_pages(k);
    if (sqlite3_close(k->to) && !failed) failed = copy_failed(k, "closing");
    return failed;
}

/* Removes the WAL of the file that is replaced: SQLite would take it for the copy's. */
static bool take_place(const copying *k, const char *to) {
    static const char *const left[] = { "-wal", "-shm" };
    char beside[sizeof k->partial];
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(beside, sizeof beside, "%s%s", to, left[i]);
        if (unlink(beside) && errno != ENOENT) return false;
    }
    return rename(k->partial, to) == 0;
}

/* In WAL mode each connection keeps a lock on these bytes (https://www.sqlite.org/fileformat2.html, 1.4)
 * until it is closed; one that died keeps none. */
static struct flock shared_bytes(void) {
    return (struct flock){ .l_type = F_WRLCK, .l_start = 0x40000002, .l_len = 510 };
}

/* Whether a process has the file open. *pid is 0 if the process is in another container. */
static bool is_open(const char *file, long *pid) {
    struct flock lock = shared_bytes();
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool locked = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    if (fd >= 0) close(fd);
    *pid = locked ? (long)lock.l_pid : 0;
    return locked;
}

/* Refuses to replace a file that a program has open: the program would go on with the old file, which has
 * no name any more. */
static int check_unused(cli *c, const char *to) {
    long pid;
    char who[40] = "another program";
    if (!is_open(to, &pid)) return CLI_OK;
    if (pid > 0) snprintf(who, sizeof who, "process %ld", pid);
    return cli_fail(c, CLI_IO, "End it first, or choose another name for the copy.",
                    "%s has %s open", who, to);
}

/* A lock that belongs to the descriptor. On systems without such locks it belongs to the process, and would be lost if
 * the process closed another descriptor of the file; nothing here does that while the lock is held. */
#ifdef F_OFD_SETLK
#define SET_LOCK F_OFD_SETLK
#else
#define SET_LOCK F_SETLK
#endif

/* Keeps other programs from opening the file that is to be replaced, as long as the descriptor is open: a
 * program that opens it meanwhile waits, and finds that the file has moved. -1: there is no file, or it
 * cannot be locked. */
static int keep_shut(const char *file) {
    struct flock lock = shared_bytes();
    int fd = open(file, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fcntl(fd, SET_LOCK, &lock) == 0) return fd;
    close(fd);
    return -1;
}

static int replace(copying *k, const char *to) {
    int fd = keep_shut(to), failed = fd < 0 ? check_unused(k->c, to) : CLI_OK;
    if (!failed && !take_place(k, to))
        failed = cli_fail(k->c, CLI_IO, NULL, "%s: the copy cannot get its name: %s", to,
                          strerror(errno));
    if (fd >= 0) close(fd);
    return failed;
}

static int copy(cli *c, const char *to) {
    copying k = { .c = c };
    int length = snprintf(k.partial, sizeof k.partial, "%s.partial", to);
    if (length < 0 || (size_t)length >= sizeof k.partial)
        return cli_fail(c, CLI_USAGE, NULL, "the name of the copy is too long");
    int failed = tables_open(c, &k.from, c->operands[0]);
    if (!failed) k.from.store->ops->rollback(k.from.store); /* a copy begins its own */
    if (!failed) failed = copy_to_partial(&k);
    tables_close(&k.from);
    if (!failed) failed = replace(&k, to);
    if (failed) remove(k.partial);
    return failed;
}

static void report(const cli *c, const char *to) {
    char size[SIZE_TEXT];
    if (!c->json) {
        print_plain(stdout, to);
        printf("  %s\n", size_text(file_size(to, ""), size));
        return;
    }
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "file", to);
    record_number(&r, "bytes", file_size(to, ""));
    record_close(&r, '}');
    record_end(&r);
}

static bool is_same_file(const char *a, const char *b) {
    struct stat one, other;
    return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Whether the copy may have this name. */
static int check_name(cli *c, const char *to) {
    struct stat st;
    if (!*to) return cli_fail(c, CLI_USAGE, NULL, "the copy needs a name");
    if (is_same_file(c->operands[0], to))
        return cli_fail(c, CLI_USAGE, "Choose another name for the copy.", "%s is the file itself",
                        to);
    if (stat(to, &st)) return store_home(c, to);
    if (!option_given(c, "force"))
        return cli_fail(c, CLI_CONFLICT, "Choose another name, or replace it with --force.",
                        "%s exists already", to);
    if (!S_ISREG(st.st_mode))
        return cli_fail(c, CLI_FILE, "Choose another name for the copy.", "%s is no file", to);
    return check_unused(c, to);
}

/* If `to` is a symbolic link, the file that it leads to is replaced. */
static int copy_to(cli *c, const char *to) {
    char *real = realpath(to, NULL);
    store s; /* refuses a file that is not a store, and keeps the file open while it is copied */
    int failed = store_open(c, &s, c->operands[0], STORE_READ);
    if (!failed) failed = copy(c, real ? real : to);
    free(real);
    return store_close(&s, failed);
}

static int run(cli *c) {
    const char *to = c->operands[1];
    if (is_address(c->operands[0]) || is_address(to))
        return cli_fail(
            c, CLI_USAGE,
            "Use pg_dump --schema, or copy the documents: heddle db export | heddle db import",
            "a backup is a copy of a file, and this store is on a server");
    int failed = check_name(c, to);
    if (!failed) failed = copy_to(c, to);
    if (!failed) report(c, to);
    return failed;
}

const command command_db_backup = {
    .name = "db backup",
    .section = "The file",
    .operands = "FILE COPY",
    .least = 2,
    .most = 2,
    .summary = "copy the file while programs use it",
    .text = "Makes COPY, the file as it was at one moment; programs may write meanwhile. COPY "
            "appears under its name only when it is complete. (Copying the file by cp is not safe "
            "while a program has it open.)",
    .options = (const cli_option[]){ { "force", NULL,
                                       "replace COPY if it exists and no program has it open" },
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle db backup shop.db shop-monday.db", "a backup" },
                                       { NULL, NULL } },
    .run = run,
};
