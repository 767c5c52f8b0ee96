/* heddle/inspect.h -- letting others look: a running program answers the heddle command.
 *
 * What a file holds, `heddle` reads from the file. What only the program knows -- the graph, why
 * something ran or does not, how often and how long -- it asks the program, through a local socket
 * beside the file. Nothing is served unless the program says so:
 *
 *     hd_runtime_serve(rt, NULL);          // from now on: heddle why shop.db main/total
 *
 * The socket is one more thing behind hd_runtime_fd and hd_runtime_deadline, so it works in every
 * loop that drives the runtime; requests are answered inside hd_runtime_pump, on the runtime's
 * thread. Nobody can make the program wait: sockets never block, requests and answers are bounded, at
 * most 8 are under way, and one who is too slow is dropped.
 *
 * WHO MAY ASK. The socket's mode is 0600 and the asker's user id is checked: the user that the
 * program runs as, and root. An asker reads what the program reads, so it can see every value.
 *
 * WHAT CAN BE ASKED changes nothing in the store and runs nothing. The one thing an asker may switch
 * is the trace (hd_trace_enable), which costs some time for each run. The protocol is described in
 * docs/CLI.md.
 */
#ifndef HEDDLE_INSPECT_H
#define HEDDLE_INSPECT_H

#include <heddle/pattern.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hd_serve_options {
    /* The socket's path. NULL: beside the store's file, "shop.db-live-" and the process id, which is
     * where the command looks. A store in memory has no file, and needs one. */
    const char *socket;
    /* What people call the program; NULL: the name of the process. */
    const char *name;
} hd_serve_options;

/* Answers from now on, until hd_runtime_stop_serving or hd_close, which remove the socket. Sockets
 * that dead programs left beside the file are removed too. HD_USAGE: it serves already, or there is
 * no file; HD_EXISTS: somebody serves at this path; HD_READ_ONLY, HD_LIMIT (the path is too long),
 * HD_IO (the file system keeps no sockets), HD_NOMEM. Nothing has changed then, and
 * hd_runtime_error tells what to do. */
HD_API hd_status hd_runtime_serve(hd_runtime *rt, const hd_serve_options *options);
HD_API void hd_runtime_stop_serving(hd_runtime *rt);
/* The path of the socket; NULL: nothing is served. */
HD_API const char *hd_runtime_socket(const hd_runtime *rt);

#ifdef __cplusplus
}
#endif
#endif
