/* doctor.c -- is this a good place for a store? Versions, and what the file system promises. */
#define _GNU_SOURCE
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record.h"
#include <heddle/store.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* How a file system treats a store that several processes map and lock. */
typedef struct file_system {
    unsigned long magic;
    const char *name;
    const char *warning; /* NULL: good */
} file_system;

static const char shared_memory[] =
    "locks and shared memory do not work across machines: use the store from one machine only";

static const file_system file_systems[] = {
    { 0xEF53, "ext4", NULL },
    { 0x58465342, "xfs", NULL },
    { 0x9123683E, "btrfs", NULL },
    { 0x2FC12FC1, "zfs", NULL },
    { 0xF2F52010, "f2fs", NULL },
    { 0x794C7630, "overlayfs", "a container's own layer: it goes when the container goes" },
    { 0x01021994, "tmpfs", "it is memory: nothing survives a restart of the machine" },
    { 0x6969, "nfs", shared_memory },
    { 0xFF534D42, "cifs", shared_memory },
    { 0xFE534D42, "smb2", shared_memory },
    { 0x01021997, "9p", shared_memory },
    { 0x65735546, "fuse", "whether it syncs and locks as promised depends on its program" },
    { 0x4D44, "fat", "it has no journal: power loss may damage any file" },
};

static const file_system *file_system_of(unsigned long magic) {
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
        if (file_systems[i].magic == magic) return &file_systems[i];
    return NULL;
}

typedef struct diagnosis {
    const char *file_system, *warning;
    bool reachable, writable;
    char directory[4096];
} diagnosis;

static diagnosis examine(const char *file) {
    diagnosis d = { .file_system = "unknown" };
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", file);
    snprintf(d.directory, sizeof d.directory, "%s", dirname(copy));
    struct statfs fs;
    if (statfs(d.directory, &fs)) return d;
    const file_system *known = file_system_of((unsigned long)fs.f_type & 0xFFFFFFFF);
    d.reachable = true;
    d.writable = access(d.directory, W_OK) == 0;
    if (known) d.file_system = known->name;
    if (known) d.warning = known->warning;
    return d;
}

static void print_json(const diagnosis *d) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "heddle", hd_version());
    record_text(&r, "sqlite", sqlite3_libversion());
    record_bool(&r, "sqlite_threadsafe", sqlite3_threadsafe());
    record_text(&r, "directory", d->directory);
    record_bool(&r, "writable", d->writable);
    record_text(&r, "file_system", d->file_system);
    if (d->warning) record_text(&r, "warning", d->warning);
    record_close(&r, '}');
    record_end(&r);
}

static void print_text(const diagnosis *d) {
    printf("heddle       %s\n", hd_version());
    printf("SQLite       %s%s\n", sqlite3_libversion(),
           sqlite3_threadsafe() ? "" : ", built without threads: heddle needs them");
    printf("directory    %s, %s\n", d->directory,
           d->writable ? "can be written" : "cannot be written: a store needs that, for its WAL");
    printf("file system  %s\n", d->file_system);
    if (d->warning) printf("             %s\n", d->warning);
}

static int run(cli *c) {
    diagnosis d = examine(c->operand_count ? c->operands[0] : "./any");
    if (!d.reachable)
        return cli_fail(c, CLI_NOT_FOUND, NULL, "there is no directory %s", d.directory);
    if (c->json) print_json(&d);
    else print_text(&d);
    return d.writable && sqlite3_threadsafe() ? CLI_OK : CLI_FILE;
}

const command command_doctor = {
    .name = "doctor",
    .section = "heddle itself",
    .operands = "[FILE]",
    .most = 1,
    .summary = "versions, and whether this is a good place for a store",
    .text = "Shows the versions in use and looks at the directory of FILE (default: the present "
            "one): whether it can be written, and what its file system is known for. Exit status 5 "
            "if a store cannot live there.",
    .examples = (const cli_example[]){ { "heddle doctor /srv/shop.db", "before deploying" },
                                       { NULL, NULL } },
    .run = run,
};
