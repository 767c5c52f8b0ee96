/* Addresses of stores from a stranger: taken apart or refused with a reason, and a password is never shown. The first
 * byte says what the rest is: an address behind its scheme, or a password that is written into one. */
#define _GNU_SOURCE
#include "store/postgres/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1000, SECRET_LEAST = 8 };

static void try_show(const char *name) {
    char out[300];
    for (size_t room = 1; room <= sizeof out; room = room * 3 + 1) {
        memset(out, 'x', sizeof out);
        url_show(name, out, room);
        size_t length = strnlen(out, room);
        if (length >= room || length > strlen(name)) abort();
    }
}

/* The address of a secret shows nothing of it, and neither does a message that has it, or its beginning. */
static void try_secret(const url *u, const char *secret, const char *written) {
    char message[3 * MOST + 100];
    if (strstr(u->shown, secret) || strstr(u->shown, written)) abort();
    snprintf(message, sizeof message, "no: %s, or %s", secret, written);
    url_hide(u, message);
    if (strstr(message, secret) || strstr(message, written)) abort();
    snprintf(message, strlen("no: ") + SECRET_LEAST + 1, "no: %s", secret); /* cut */
    url_hide(u, message);
    if (strncmp(message + 4, secret, SECRET_LEAST) == 0) abort();
}

static void try_name(const hd_env *env, const char *name, const char *secret, const char *written) {
    url u;
    hd_error error = { 0 };
    if (!url_is_one(name)) return;
    try_show(name);
    hd_status status = url_init(&u, name, env, &error);
    if (status && !error.message[0]) abort();
    if (secret && (strstr(error.message, secret) || strstr(error.message, written))) abort();
    if (status) return;
    if (!*u.schema || strlen(u.text) > strlen(name)) abort();
    if (secret) try_secret(&u, secret, written);
    url_fini(&u, env);
}

/* Every byte that is not a letter or digit is written with a percent sign. */
static void write_secret(const char *secret, char *out) {
    for (; *secret; secret++) {
        bool plain =
            strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *secret);
        out += snprintf(out, 4, plain ? "%c" : "%%%02X", (unsigned char)*secret);
    }
    *out = '\0';
}

/* A secret that has a part of the rest in it is no secret: one with a '*' could be made of what hides it. */
static bool is_secret(const char *secret) {
    return strlen(secret) >= SECRET_LEAST && !strchr(secret, '*') &&
           !strstr("postgresql://someone@host/db?schema=x postgres:///db?schema=x", secret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_env env = hd_env_system();
    char text[MOST], written[3 * MOST], name[4 * MOST];
    if (!size || size > sizeof text) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    write_secret(text, written);
    if (data[0] == 's' && is_secret(text)) {
        snprintf(name, sizeof name, "postgresql://someone:%s@host/db?schema=x", written);
        try_name(&env, name, text, written);
        snprintf(name, sizeof name, "postgres:///db?password=%s&schema=x", written);
        try_name(&env, name, text, written);
        return 0;
    }
    snprintf(name, sizeof name, "postgresql://%s", text);
    try_name(&env, name, NULL, NULL);
    try_name(&env, text, NULL, NULL);
    return 0;
}
