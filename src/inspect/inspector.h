/* inspector.h -- the part of a runtime that answers requests: a listening socket, and its connections.
 *
 *     accept -> read one line -> request_parse -> answer_to, or draw over several pumps -> write -> close
 *
 * No call blocks. Each connection (an asker) has a buffer for its request and one for its answer, both
 * bounded, and a deadline for each of the two; so the worst that a client can do is to occupy one of ASKERS_MAX
 * connections until the deadline. */
#ifndef INSPECT_INSPECTOR_H
#define INSPECT_INSPECTOR_H

#include "inspect/request.h"
#include "socket/port.h"
#include "store/runtime.h"
#include "value/json_write.h"

#define ASKERS_MAX      8
#define READ_MAX        4096               /* bytes of one recv */
#define ANSWER_MAX      ((size_t)16 << 20) /* bytes */
#define GRAPH_MAX       50000              /* nodes in an answer with the graph */
#define GRAPH_PARTS_MAX (ANSWER_MAX / 24)  /* its reads and edges; each takes 24 bytes or more */
#define PIECES_MAX      50000
#define ASK_WITHIN_NS   UINT64_C(5000000000)  /* from connecting to the end of the line */
#define TAKE_WITHIN_NS  UINT64_C(30000000000) /* from the answer's start to its end */

#define GRAPH_SLICE 2000 /* nodes, reads and edges that are drawn in one pump, for all askers */

struct drawing;

typedef struct asker {
    int fd; /* -1: this entry is free */
    uint64_t deadline_ns;
    json_buffer line;   /* the part of the request that has arrived */
    json_buffer answer; /* empty: the request is not complete yet, or its picture is being drawn */
    size_t sent;        /* bytes of the answer; at most answer.length */
    struct drawing *drawing; /* owned; NULL: none */
} asker;

typedef struct inspector {
    hd_runtime *rt;
    port at;
    char name[64];
    uint64_t began_ns;
    uint64_t answered, refused;
    hd_pool *pool; /* of one answer */
    asker askers[ASKERS_MAX];
    int turn; /* index of the asker whose picture is drawn first in the next pump */
} inspector;

/* Writes the answer to a request into `out`, which is empty, as a line. Without memory, or when the answer
 * would be too long, the line is an error; if there is no memory for that either, `out` stays empty. */
void answer_line(inspector *in, const char *line, size_t length, json_buffer *out);
/* A line that says why there is no answer. */
void answer_error(hd_status status, const char *message, json_buffer *out);

/* A picture of a large graph takes longer than a pump may, so it is drawn over several pumps. Begins a
 * drawing if the line asks for one; false: the line is another request, or a wrong one. */
bool drawing_begin(inspector *in, asker *a, const char *line, size_t length);
/* Draws up to *budget nodes, reads and edges, and lowers *budget by their number. When the picture is
 * complete, or cannot be drawn, the answer of `a` is written and the drawing freed. */
void drawing_go_on(inspector *in, asker *a, uint64_t *budget);
void drawing_free(inspector *in, asker *a);
/* Appends the text that every answer begins with. False: no memory. */
bool answer_begin(json_buffer *out);
/* Appends a text. False: no memory. */
bool answer_put(json_buffer *out, const char *text);

#endif
