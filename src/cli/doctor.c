/* doctor.c -- is everything there that heddle needs, and is this a good place for a store?
 *
 * A report is a list of lines: what was looked at, what was found, and where that is bad, what to do. It
 * is gathered first and printed in one of two ways. */
#define _GNU_SOURCE
#include "base/system.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/place.h"
#include "cli/record.h"
#include "cli/shown.h"
#include "cli/tables.h"
#include <dlfcn.h>
#include <heddle/store.h>
#include <inttypes.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xxhash.h>

enum { FINDINGS_MAX = 40, LOW_SPACE = 256 << 20 };

typedef enum verdict { GOOD, WARNING, BAD } verdict;

typedef struct finding {
    const char *what; /* "file system" */
    verdict how;
    char text[200];
    const char *fix; /* NULL: nothing to do */
} finding;

typedef struct report {
    cli *c;
    const char *file; /* NULL: none was named */
    finding findings[FINDINGS_MAX];
    size_t count;
} report;

static void HD_PRINTF(5, 6)
    find(report *r, const char *what, verdict how, const char *fix, const char *format, ...) {
    va_list arguments;
    if (r->count == FINDINGS_MAX) return;
    finding *f = &r->findings[r->count++];
    *f = (finding){ .what = what, .how = how, .fix = fix };
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
}

/* ---- What is installed --------------------------------------------------------------------- */

/* The library stays loaded: some libraries keep state that cannot be unloaded. */
static void look_for_curl(report *r) {
    void *library = dlopen(SYSTEM_LIBRARY("curl", 4), RTLD_LAZY | RTLD_LOCAL);
    const char *(*version)(void) = NULL;
    if (library) *(void **)(void *)&version = dlsym(library, "curl_version");
    char text[64] = "";
    if (version) snprintf(text, sizeof text, "%s", version());
    text[strcspn(text, " ")] = '\0';
    if (version) find(r, "libcurl", GOOD, NULL, "%s, for hd_build_fetch", text);
    else
        find(r, "libcurl", WARNING, "Install libcurl.so.4 if programs use hd_build_fetch.",
             "not found: hd_build_fetch answers with an error, the rest works");
}

static void look_at_versions(report *r) {
    struct utsname system;
    find(r, "heddle", GOOD, NULL, "%s", hd_version());
    if (sqlite3_threadsafe())
        find(r, "SQLite", GOOD, NULL, "%s, with threads", sqlite3_libversion());
    else
        find(r, "SQLite", BAD, "Link a SQLite built with SQLITE_THREADSAFE=1.",
             "%s, built without threads", sqlite3_libversion());
    find(r, "libsodium", GOOD, NULL, "%s", sodium_version_string());
    unsigned xxh = XXH_versionNumber();
    find(r, "xxHash", GOOD, NULL, "%u.%u.%u", xxh / 10000, xxh / 100 % 100, xxh % 100);
    look_for_curl(r);
    if (!uname(&system)) find(r, "kernel", GOOD, NULL, "%s %s", system.sysname, system.release);
}

/* ---- The place ----------------------------------------------------------------------------- */

static void look_at_directory(report *r, const place *p) {
    char size[SIZE_TEXT];
    if (p->writable) find(r, "directory", GOOD, NULL, "%s, can be written", p->directory);
    else
        find(r, "directory", BAD, "A store needs that for its WAL, also for reading.",
             "%s, cannot be written%s", p->directory,
             p->read_only_mount ? ": it is mounted read-only" : "");
    find(r, "file system", p->warning ? WARNING : GOOD, p->warning, "%s", p->file_system);
    find(r, "free space", p->free_bytes < LOW_SPACE ? WARNING : GOOD,
         p->free_bytes < LOW_SPACE ? "A full disk keeps commits waiting; nothing is lost." : NULL,
         "%s", size_text(p->free_bytes, size));
}

/* An fsync faster than any disk means that a layer in between reports it too early, or keeps the file in
 * memory. */
static void look_at_fsync(report *r, const place *p) {
    char time[TIME_TEXT];
    if (!p->fsync_ns) return;
    bool fast = p->fsync_ns < 20000;
    find(r, "fsync", fast ? WARNING : GOOD,
         fast ? "Too fast for a disk: memory, or a layer that does not wait. Power loss may take "
                "commits."
              : NULL,
         "%s: about %.0f commits a second, one after the other",
         time_text((double)p->fsync_ns, time), 1e9 / (double)p->fsync_ns);
}

/* How other processes' commits are heard of. */
static void look_at_notices(report *r, const place *p) {
#ifndef __linux__
    find(r, "kqueue", GOOD, NULL, "tells of other processes' commits");
    if (p->inotify_works) return;
#endif
    if (p->inotify_works)
        find(r, "inotify", GOOD, NULL,
             "works; a user has %" PRIu64 " instances, %" PRIu64 " watches", p->inotify_instances,
             p->inotify_watches);
    else
        find(r, "inotify", WARNING,
             "Other processes' commits are then seen up to 250 ms late. Raise "
             "fs.inotify.max_user_instances.",
             "does not work: no more than %" PRIu64 " instances for a user", p->inotify_instances);
}

static void look_at_place(report *r, const place *p) {
    look_at_directory(r, p);
    if (p->tried && p->wal_works) find(r, "WAL", GOOD, NULL, "works");
    else if (!p->tried && p->writable)
        find(r, "WAL", BAD, "Choose another directory.", "no file can be made there");
    else if (p->tried)
        find(r, "WAL", BAD,
             p->free_bytes ? "Put the store on a local file system." : "Make room first.",
             "does not work here: %s", p->wal_problem);
    look_at_fsync(r, p);
    look_at_notices(r, p);
}

/* ---- The file and who has it --------------------------------------------------------------- */

static void describe_program(void *ctx, const char *path, pid_t pid) {
    report *r = ctx;
    uid_t owner = 0;
    struct stat s;
    if (!stat(path, &s)) owner = s.st_uid;
    if (owner != geteuid() && geteuid() != 0)
        find(r, "program", GOOD, NULL, "process %ld of another user serves it", (long)pid);
    else
        find(r, "program", GOOD, NULL, "process %ld serves it: heddle stats, why, trace",
             (long)pid);
}

static void look_at_store(report *r) {
    hd_options options = { .read_only = true, .must_exist = true };
    hd_runtime *rt;
    hd_error error = { 0 };
    char a[SIZE_TEXT], b[SIZE_TEXT];
    hd_status status = hd_open(r->file, &options, &rt, &error);
    if (status) {
        find(r, "file", BAD, NULL, "%s", error.message);
        return;
    }
    hd_close(rt);
    find(r, "file", GOOD, NULL, "%s, and %s of WAL", size_text(file_size(r->file, ""), a),
         size_text(file_size(r->file, "-wal"), b));
}

static void look_at_file(report *r) {
    struct stat s;
    if (stat(r->file, &s)) {
        find(r, "file", GOOD, NULL, "does not exist yet");
        return;
    }
    look_at_store(r);
    bool writable = access(r->file, W_OK) == 0, readable = access(r->file, R_OK) == 0;
    find(r, "mode", writable ? GOOD : WARNING,
         writable   ? NULL
         : readable ? "Commands and programs of yours can only read it."
                    : "Commands and programs of yours can do nothing with it.",
         "%04o, owner %ld%s", (unsigned)(s.st_mode & 07777), (long)s.st_uid,
         writable   ? ""
         : readable ? ", not writable for you"
                    : ", not readable for you");
    if (s.st_mode & S_IWOTH)
        find(r, "mode", WARNING, "chmod o-w, unless every user may change it.",
             "every user can write it");
    if (!live_each(r->file, describe_program, r))
        find(r, "program", GOOD, NULL, "none that serves it (hd_runtime_serve)");
}

/* ---- Printing ------------------------------------------------------------------------------ */

static verdict worst(const report *r) {
    verdict how = GOOD;
    for (size_t i = 0; i < r->count; i++)
        if (r->findings[i].how > how) how = r->findings[i].how;
    return how;
}

static void print_text(const report *r) {
    static const char *const marks[] = { " ", "!", "X" };
    static const colour colours[] = { COLOUR_GREEN, COLOUR_YELLOW, COLOUR_RED };
    for (size_t i = 0; i < r->count; i++) {
        const finding *f = &r->findings[i];
        printf("%s%s%s %-12s ", out_colour(r->c, colours[f->how]), marks[f->how],
               out_colour(r->c, COLOUR_NONE), f->what);
        print_wrapped(f->text, 15, 15);
        if (!f->fix) continue;
        printf("%15s", "");
        print_wrapped(f->fix, 15, 15);
    }
}

static void print_json(const report *r, const place *p) {
    static const char *const words[] = { "good", "warning", "bad" };
    record out = record_to(stdout);
    record_open(&out, NULL, '{');
    record_text(&out, "verdict", words[worst(r)]);
    record_text(&out, "heddle", hd_version());
    record_text(&out, "sqlite", sqlite3_libversion());
    record_text(&out, "directory", p->directory);
    record_bool(&out, "writable", p->writable);
    record_text(&out, "file_system", p->file_system);
    record_number(&out, "free_bytes", p->free_bytes);
    record_number(&out, "fsync_ns", p->fsync_ns);
    record_open(&out, "findings", '[');
    for (size_t i = 0; i < r->count; i++) {
        const finding *f = &r->findings[i];
        record_open(&out, NULL, '{');
        record_text(&out, "what", f->what);
        record_text(&out, "verdict", words[f->how]);
        record_text(&out, "text", f->text);
        if (f->fix) record_text(&out, "fix", f->fix);
        record_close(&out, '}');
    }
    record_close(&out, ']');
    record_close(&out, '}');
    record_end(&out);
}

/* ---- A server ------------------------------------------------------------------------------ */

static void look_for_pq(report *r) {
    if (dlopen(SYSTEM_LIBRARY("pq", 5), RTLD_LAZY | RTLD_LOCAL))
        find(r, "libpq", GOOD, NULL, "found");
    else
        find(r, "libpq", BAD, "Install libpq5.",
             "not found: stores on PostgreSQL cannot be opened, files can");
}

static int run_on_server(report *r) {
    hd_options options = { .read_only = true, .must_exist = true };
    hd_runtime *rt;
    hd_error error = { 0 };
    char name[SHOWN_SIZE];
    look_at_versions(r);
    look_for_pq(r);
    hd_status status = hd_open(r->file, &options, &rt, &error);
    if (status) find(r, "server", BAD, NULL, "%s", error.message);
    else find(r, "server", GOOD, NULL, "%s answers", shown(r->file, name));
    if (!status) hd_close(rt);
    if (r->c->json) print_json(r, &(place){ .directory = "", .file_system = "" });
    else print_text(r);
    return worst(r) == BAD ? CLI_FILE : CLI_OK;
}

static int run(cli *c) {
    report r = { .c = c, .file = c->operand_count ? c->operands[0] : NULL };
    place p;
    if (r.file && is_address(r.file)) return run_on_server(&r);
    place_examine(&p, r.file ? r.file : "./any");
    if (!p.reachable)
        return cli_fail(c, CLI_NOT_FOUND, "Make it first, with mkdir -p.",
                        "there is no directory %s", p.directory);
    look_at_versions(&r);
    look_at_place(&r, &p);
    if (r.file) look_at_file(&r);
    if (c->json) print_json(&r, &p);
    else print_text(&r);
    return worst(&r) == BAD ? CLI_FILE : CLI_OK;
}

const command command_doctor = {
    .name = "doctor",
    .section = "heddle itself",
    .operands = "[FILE]",
    .most = 1,
    .summary = "what is installed, and whether a store can live here",
    .text =
        "Shows the versions in use and looks at the directory of FILE (default: the present "
        "one): what its file system is known for, free space, whether WAL and inotify work, how "
        "long a sync takes. For that a small file is written there and removed. Of a FILE that "
        "exists also its mode, and which programs serve it.\n\n"
        "A line with ! is worth knowing, one with X keeps a store from living there: exit "
        "status 5.",
    .examples = (const cli_example[]){ { "heddle doctor", "this directory" },
                                       { "heddle doctor /srv/shop.db", "before deploying" },
                                       { NULL, NULL } },
    .run = run,
};
