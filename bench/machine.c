/* machine.c -- the processor, the memory, the system and the compiler, as the machine tells them. */
#define _GNU_SOURCE
#include "machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The text after "model name : " of the first processor; "" where the system has no such file. */
static void processor(char *out, size_t size) {
    char line[256];
    FILE *in = fopen("/proc/cpuinfo", "r");
    out[0] = '\0';
    while (in && !out[0] && fgets(line, sizeof line, in)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value) continue;
        value += 1 + strspn(value + 1, " ");
        snprintf(out, size, "%.*s, ", (int)strcspn(value, "\n"), value);
    }
    if (in) fclose(in);
}

static const char *compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

void machine_describe(char *out, size_t size) {
    char model[160];
    struct utsname system;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    processor(model, sizeof model);
    if (uname(&system)) strcpy(system.sysname, "?"), strcpy(system.release, "?");
    snprintf(out, size, "%s%ld cores, %.0f GiB, %s %s, %s", model, sysconf(_SC_NPROCESSORS_ONLN),
             (double)pages * (double)page / (1 << 30), system.sysname, system.release, compiler());
}
