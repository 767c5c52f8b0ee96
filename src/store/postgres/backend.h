/* backend.h -- a store on a PostgreSQL server as a backend of log/. */
#ifndef STORE_POSTGRES_BACKEND_H
#define STORE_POSTGRES_BACKEND_H

#include "store/log/backend.h"

extern const log_backend postgres_backend;

/* Whether a store's name is the address of one on a server. */
bool postgres_is_address(const char *name);

#endif
