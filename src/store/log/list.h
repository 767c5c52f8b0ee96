/* list.h -- the documents of a space, by kind and range of ids, in order of id. */
#ifndef STORE_LOG_LIST_H
#define STORE_LOG_LIST_H

#include "store/log/client.h"

hd_status client_list(client *c, struct key *space, const list_range *range, hd_list_fn fn,
                      void *ctx);

#endif
