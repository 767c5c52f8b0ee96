/* 10_fetch.c -- fetch: what a URL names, as a cell with pending, value and error.
 *
 * Serves one page to itself, so that it runs anywhere. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static hd_cell weather(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell url = hd_build_argument(b, "url", hd_null());
    return hd_build_fetch(b, "report", url, &(hd_fetch_options){ .timeout_ms = 5000 });
}

static void show(hd_value v, void *ctx) {
    printf("%s\n", hd_json_print(ctx, v, HD_JSON_COMPACT, NULL));
}

/* A server for one request, in a process of its own; returns its port. */
static int serve_once(void) {
    static const char page[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"sky\": \"blue\"}";
    struct sockaddr_in here = { .sin_family = AF_INET };
    socklen_t size = sizeof here;
    char request[1024];
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int at = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(at, (struct sockaddr *)&here, size) || listen(at, 1)) return 0;
    getsockname(at, (struct sockaddr *)&here, &size);
    if (fork()) {
        close(at);
        return ntohs(here.sin_port);
    }
    int client = accept(at, NULL, NULL);
    if (recv(client, request, sizeof request, 0) > 0 && write(client, page, strlen(page)) < 0)
        _exit(1);
    _exit(0);
}

int main(void) {
    hd_runtime *rt;
    hd_pool *pool;
    hd_piece piece;
    char url[64];
    int port = serve_once();
    if (hd_open(NULL, NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool)) return 1;
    hd_pattern_register(rt, "weather", "1", weather, NULL);
    if (hd_piece_start(rt, &(hd_piece_spec){ .id = "w", .pattern = "weather" }, &piece, NULL))
        return 1;
    hd_sink(rt, hd_piece_result(rt, piece), show, pool);
    hd_runtime_settle(rt);

    snprintf(url, sizeof url, "\"http://127.0.0.1:%d/\"", port);
    hd_write_json(rt, hd_cell_at(rt, "main/w#/arguments/url"), url);
    hd_runtime_settle(rt); /* waits for the answer */

    hd_write_json(rt, hd_cell_at(rt, "main/w#/arguments/url"), "\"gopher://example.org/\"");
    hd_runtime_settle(rt);
    hd_pool_close(pool);
    wait(NULL);
    return hd_close(rt) != HD_OK;
}
