/* url.h -- the address of a store on a server.
 *
 *     postgresql://[user[:password]@][host][:port][/database][?name=value&...]
 *
 * All of it is libpq's, but for two parameters: `schema`, the schema in which the store's tables are (default
 * "heddle"), and `answer_timeout`, after how many seconds without an answer a connection is given up (default 20; 0:
 * never). Messages show an address without its password. */
#ifndef STORE_POSTGRES_URL_H
#define STORE_POSTGRES_URL_H

#include "base/env.h"

enum {
    URL_SCHEMA_SIZE = 64, /* PostgreSQL cuts longer names */
    URL_ANSWER_S = 20,
    URL_ANSWER_MAX_S = 86400
};

typedef struct url {
    char *text; /* for libpq: without `schema` and `answer_timeout`; owned */
    size_t size;
    char schema[URL_SCHEMA_SIZE];
    uint32_t answer_s; /* answer_timeout */
    char shown[160];   /* without secrets; cut where it is long */
} url;

bool url_is_one(const char *name);
/* Whether a name that is no address was probably meant as one: it has "://" in it ("mysql://", " postgresql://"),
 * begins with "postgres" and has ":/" in it, or has "password=" in it, as libpq's other form has ("host=db
 * password=..."). */
bool url_is_misspelt(const char *name);
/* An address as it is shown: without passwords, cut where it is longer than `size` - 1. Never longer than it was. */
void url_show(const char *name, char *out, size_t size);
/* HD_USAGE: the schema has no name, too long a one, or a bad percent sign; the timeout is no whole number, or too large
 * a one; one of the two is given twice. HD_NOMEM. On failure there is nothing to free. */
hd_status url_init(url *u, const char *name, const hd_env *env, hd_error *error);
void url_fini(url *u, const hd_env *env);
/* Replaces every occurrence of the password in a text by asterisks, decoded or not. */
void url_hide(const url *u, char *text);

#endif
