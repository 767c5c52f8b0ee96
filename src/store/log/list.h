/* list.h -- the documents of a space, by kind and prefix, in order of id. */
#ifndef STORE_LOG_LIST_H
#define STORE_LOG_LIST_H

#include "store/log/client.h"

hd_status client_list(client *c, struct key *space, const char *kind, const char *prefix,
                      hd_list_fn fn, void *ctx);

#endif
