/* hosts.h -- the hosts of an address with several, and with which of them the next attempt to connect begins. */
#ifndef STORE_POSTGRES_HOSTS_H
#define STORE_POSTGRES_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

enum { HOSTS_SIZE = 1024, HOSTS_LISTS = 3 };

/* Lists that belong together: the first host has the first address and the first port. */
typedef struct hosts {
    char lists[HOSTS_LISTS][HOSTS_SIZE]; /* as hosts_names; "": the address has none */
    unsigned count;                      /* of hosts; 0: none, or too many to keep */
    unsigned first;                      /* the next attempt begins with it */
} hosts;

/* libpq's keywords of the lists. */
extern const char *const hosts_names[HOSTS_LISTS];

/* Takes a value of the address; other keywords are left alone. */
void hosts_take(hosts *h, const char *keyword, const char *value);
/* After the last value. */
void hosts_taken(hosts *h);
/* The next attempt begins with the next host. */
void hosts_turn(hosts *h);
/* The list, beginning with the first host. */
void hosts_list(const hosts *h, int which, char out[HOSTS_SIZE]);

#endif
