/* Schedules and files of time zones from a stranger: refused with what and where, or times that rise. The first byte
 * says which of the two the rest is. */
#include "workflow/cron.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rise(const cron *c, const zone *z, int64_t from) {
    for (int i = 0; i < 20; i++) {
        int64_t next = cron_next(c, z, from);
        if (next <= from) abort();
        if (next == CRON_NEVER) return;
        from = next;
    }
}

static void try_fields(const hd_env *env, const char *text) {
    cron c;
    zone *z;
    hd_error error = { 0 };
    hd_status status = cron_parse(text, &c, &error);
    if (status && !error.message[0]) abort();
    if (status || zone_open(env, "Europe/Berlin", &z, NULL)) return;
    rise(&c, z, 1774000000);
    zone_close(z);
}

/* Spans join each other. */
static void try_file(const hd_env *env, const uint8_t *data, size_t size) {
    cron c;
    zone *z;
    if (zone_parse(env, data, size, &z)) return;
    int64_t at = 0;
    for (int i = 0; i < 50; i++) {
        zone_span s = zone_at(z, at);
        if (s.from > at || s.to <= at) abort();
        if (s.to == INT64_MAX || s.to > 100000000000) break;
        at = s.to;
    }
    if (!cron_parse("30 2 * * *", &c, NULL)) rise(&c, z, 1774000000);
    zone_close(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_env env = hd_env_system();
    char text[200];
    if (!size) return 0;
    if (data[0] == 'z') {
        try_file(&env, data + 1, size - 1);
        return 0;
    }
    if (size > sizeof text) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    try_fields(&env, text);
    return 0;
}
