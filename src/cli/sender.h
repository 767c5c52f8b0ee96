/* sender.h -- from a handler's commit to the event that it handled, and to the commit that sent that event. */
#ifndef CLI_SENDER_H
#define CLI_SENDER_H

#include "cli/command.h"
#include <heddle/event.h>

/* What is known of a commit of the log. */
typedef struct sender {
    char session[64];
    uint64_t local_seq;
    uint64_t from;             /* local seq of the commit that sent its event; 0: none did */
    char by[128];              /* the handler, node or "" */
    char id[HD_EVENT_ID_SIZE]; /* of the event that it handled; "": it is no handling */
    bool found;
} sender;

/* For log_query.seen, with a sender as ctx: keeps the newest handling. */
void sender_note(hd_value commit, const char *session, void *ctx);
/* Prints which event the commit handled, which commit sent that event and, if that was a handler's, the event before
 * it, and so on. Prints nothing if no handler's commit was found. */
int sender_print(cli *c, const char *file, const sender *of);

#endif
