/* heddle/inspect.h -- a running program answers the questions of the heddle command.
 *
 * The command reads documents and the log from the store's file. Only the running program knows its graph,
 * why a node ran or does not run, how often it ran and how long it took; the command asks the program through a
 * local socket beside the file. A program opens that socket only if it calls:
 *
 *     hd_runtime_serve(rt, NULL);          // from now on: heddle why shop.db main/total
 *
 * hd_runtime_fd and hd_runtime_deadline cover the socket, so it works in every loop that drives the
 * runtime; hd_runtime_pump answers requests, on the runtime's thread. A client cannot make the program
 * wait: sockets do not block, the sizes of requests and answers are bounded, at most 8 clients are
 * served at a time, and a client that is too slow is dropped.
 *
 * ACCESS. The socket's mode is 0600, and the user id of the client is checked: the user that the program
 * runs as and root are served. A client can read every value that the program can read.
 *
 * REQUESTS change nothing in the store and run no node. A client may switch the trace on
 * (hd_trace_enable), which costs some time for each run. The protocol is described in docs/CLI.md.
 */
#ifndef HEDDLE_INSPECT_H
#define HEDDLE_INSPECT_H

#include <heddle/introspect.h>
#include <heddle/pattern.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hd_serve_options {
    /* The socket's path. NULL: beside the store's file, "shop.db-live-" and the process id; the command
     * looks there. Required for a store in memory, which has no file. */
    const char *socket;
    /* The program's name in the answers; NULL: the name of the process. */
    const char *name;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_serve_options;

/* Answers from now on, until hd_runtime_stop_serving or hd_close, which remove the socket. Sockets
 * that dead programs left beside the file are removed too. HD_USAGE: the runtime serves already, or the
 * store has no file and options no path; HD_EXISTS: another program serves at this path; HD_READ_ONLY,
 * HD_LIMIT (the path is too long), HD_IO (the file system has no sockets, or no descriptor is left),
 * HD_NOMEM. On failure nothing has changed, and hd_runtime_error says what to do. */
HD_API hd_status hd_runtime_serve(hd_runtime *rt, const hd_serve_options *options);
/* Closes the connections and removes the socket. Does nothing if the runtime does not serve. */
HD_API void hd_runtime_stop_serving(hd_runtime *rt);
/* The path of the socket, borrowed until serving stops; NULL: the runtime does not serve. */
HD_API const char *hd_runtime_socket(const hd_runtime *rt);

#ifdef __cplusplus
}
#endif
#endif
