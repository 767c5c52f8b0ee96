/* server_post.c -- a program for tests/server/crash: posts an event for each line that it reads, with the line as its
 * id, and says when hd_runtime_sync has returned. */
#include <heddle.h>
#include <heddle/event.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    hd_runtime *rt;
    hd_error error = { 0 };
    char line[64], id[HD_EVENT_ID_SIZE];
    if (argc != 2 || hd_open(argv[1], NULL, &rt, &error)) {
        fprintf(stderr, "%s\n", argc == 2 ? error.message : "usage: server_post STORE");
        return 1;
    }
    hd_cell stream = hd_cell_at(rt, "main/orders");
    printf("open\n");
    while (fflush(stdout) == 0 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        hd_send_options options = { .id = line };
        hd_status status = hd_event_post(rt, stream, hd_null(), &options, id);
        if (!status) status = hd_runtime_sync(rt);
        printf("posted %s %s\n", line, hd_status_name(status));
    }
    return hd_close(rt) != HD_OK;
}
