/* hosts.c -- going on to the next host.
 *
 * libpq tries the hosts of an address in order, and goes on from one that refuses. It does not go on from one that is
 * silent: the caller has the clock. So the next attempt begins with another host. */
#include "store/postgres/hosts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *const hosts_names[HOSTS_LISTS] = { "host", "hostaddr", "port" };

static unsigned elements(const char *list) {
    unsigned n = *list != '\0';
    for (; *list; list++) n += *list == ',';
    return n;
}

void hosts_take(hosts *h, const char *keyword, const char *value) {
    for (int i = 0; i < HOSTS_LISTS; i++)
        if (!strcmp(keyword, hosts_names[i])) snprintf(h->lists[i], HOSTS_SIZE, "%s", value);
}

void hosts_taken(hosts *h) {
    h->count = 0;
    for (int i = 0; i < HOSTS_LISTS; i++) {
        unsigned n = elements(h->lists[i]);
        if (strlen(h->lists[i]) + 1 == HOSTS_SIZE) { /* it may have been cut */
            h->count = 0;
            return;
        }
        if (n > h->count) h->count = n;
    }
}

void hosts_turn(hosts *h) {
    if (h->count) h->first = (h->first + 1) % h->count;
}

/* The elements from the first one to try on, and then those before it. A port alone is that of all hosts. */
void hosts_list(const hosts *h, int which, char out[HOSTS_SIZE]) {
    const char *list = h->lists[which], *from = list;
    size_t length = strlen(list);
    *out = '\0';
    if (h->count < 2) return;
    assert(h->first < h->count && length < HOSTS_SIZE);
    bool turns = elements(list) == h->count;
    for (unsigned i = 0; turns && i < h->first; i++) from = strchr(from, ',') + 1;
    size_t before = (size_t)(from - list), rest = length - before;
    memcpy(out, from, rest);
    if (before) out[rest] = ',', memcpy(out + rest + 1, list, before - 1);
    out[length] = '\0';
}
