/* backend.h -- a store on a PostgreSQL server as a backend of log/. */
#ifndef STORE_POSTGRES_BACKEND_H
#define STORE_POSTGRES_BACKEND_H

#include "store/log/backend.h"

extern const log_backend postgres_backend;

/* Whether a store's name is the address of one on a server. */
bool postgres_is_address(const char *name);
/* Refuses, with HD_USAGE, a name that looks like an address of another form, unless a file has that name. The error
 * does not show the name, since there may be a password in it. */
hd_status postgres_refuse_misspelt(const char *name, hd_error *error);

#endif
