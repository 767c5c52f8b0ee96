/* guest.h -- steps of an engine in another process, as dispatch.c sees them; guest.c. */
#ifndef WORKFLOW_GUEST_H
#define WORKFLOW_GUEST_H

#include "workflow/task.h"

/* What a worker says of a guest. */
typedef struct guest_words {
    hd_value result;        /* absent: none */
    hd_value error;         /* an exception as a value; absent: none */
    const char *class_name; /* of an exception; NULL: none */
    const char *message;
    bool back; /* another process may do it */
} guest_words;

/* The next guest that the worker serves. False: there is none. */
bool guest_claim(worker *w, task_view *out);
/* HD_NOT_FOUND: the token is not that of a guest that runs. */
hd_status guest_say(struct hd_engine *e, uint64_t token, const guest_words *words);
hd_status guest_beat(struct hd_engine *e, uint64_t token);
/* The worker has left: what it had of guests is given back. */
void guest_left(const worker *w);

#endif
