/* inspector.h -- who answers: a listening socket, and a few who ask.
 *
 *     accept -> read one line -> request_parse -> answer_to, or draw over several pumps -> write -> close
 *
 * Nothing blocks. Each asker has a buffer for its line and one for its answer, both bounded, and a
 * time until which it must have got on; so the worst that one can do is to take one of ASKERS_MAX
 * seats for that long. */
#ifndef INSPECT_INSPECTOR_H
#define INSPECT_INSPECTOR_H

#include "inspect/address.h"
#include "inspect/request.h"
#include "store/runtime.h"
#include "value/json_write.h"

#define ASKERS_MAX      8
#define READ_MAX        4096               /* bytes at once */
#define ANSWER_MAX      ((size_t)16 << 20) /* bytes */
#define GRAPH_MAX       50000              /* nodes, in a picture of the graph */
#define GRAPH_PARTS_MAX (ANSWER_MAX / 24)  /* reads and edges: none takes fewer bytes */
#define PIECES_MAX      50000
#define ASK_WITHIN_NS   UINT64_C(5000000000)  /* from connecting to the end of the line */
#define TAKE_WITHIN_NS  UINT64_C(30000000000) /* from the answer's start to its end */
#define ACCEPT_PAUSE_NS UINT64_C(1000000000)  /* when there are no descriptors left */

#define GRAPH_SLICE 2000 /* nodes, reads and edges that are drawn in one pump, for all askers */

struct drawing;

typedef struct asker {
    int fd; /* -1: the seat is free */
    uint64_t deadline_ns;
    json_buffer line;   /* so much of it as has come */
    json_buffer answer; /* empty: it has not asked yet, or its picture is being drawn */
    size_t sent;
    struct drawing *drawing; /* owned; NULL: none */
} asker;

typedef struct inspector {
    hd_runtime *rt;
    int epoll_fd;  /* the sockets below; itself in the runtime's own */
    int listen_fd; /* in epoll_fd unless paused */
    pid_t pid;     /* whoever else has this memory, after a fork, removes no socket */
    char path[ADDRESS_MAX];
    char name[64];
    uint64_t began_ns;
    uint64_t paused_until_ns; /* 0: not */
    uint64_t answered, refused;
    hd_pool *pool; /* of one answer */
    asker askers[ASKERS_MAX];
    int turn; /* whose picture is drawn first in the next pump */
} inspector;

/* Puts the answer to a request into `out`, as a line. Never fails: without memory, or when it would be
 * too long, the line says that; if not even that is possible `out` stays empty. */
void answer_line(inspector *in, const char *line, size_t length, json_buffer *out);
/* A line that says why there is no answer. */
void answer_error(hd_status status, const char *message, json_buffer *out);

/* A picture of a large graph takes longer than a pump may: it is drawn over several. Begins one if that is
 * what the line asks for; false: it asks for something else, or not well. */
bool drawing_begin(inspector *in, asker *a, const char *line, size_t length);
/* Draws on, for up to *budget nodes, reads and edges, which it lowers. When all of it is there, or when it
 * cannot be drawn, the asker's answer says so, and the drawing is gone. */
void drawing_go_on(inspector *in, asker *a, uint64_t *budget);
void drawing_free(inspector *in, asker *a);
/* Puts the text that stands before an answer into `out`. */
bool answer_begin(json_buffer *out);

/* What is answered. A failed value: `error` says why. */
hd_value answer_to(inspector *in, const request *r, hd_error *error);

#endif
