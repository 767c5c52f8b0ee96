/* handler.c -- a program on a file, for events.sh: it handles what is posted to main/greet, and passes on what is
 * posted to main/relay. It serves.
 *
 *     handler FILE [SPACE]       another space than main
 *
 * The payload "fail" is refused, null gets no answer, everything else is greeted. It runs until it is
 * ended from outside. */
#include <heddle.h>
#include <heddle/inspect.h>
#include <stdio.h>
#include <string.h>

static hd_status greet(hd_tx *tx, const hd_event *event, void *ctx) {
    char text[128];
    hd_cell *count = ctx;
    const char *name = hd_value_as_text(event->payload, "nobody");
    if (!strcmp(name, "fail")) return hd_tx_fail(tx, HD_FAILED, "nobody is called fail");
    hd_status status = hd_tx_increment(tx, *count, hd_int(NULL, 1));
    if (status || hd_value_kind(event->payload) == HD_KIND_NULL) return status;
    snprintf(text, sizeof text, "hello %s", name);
    return hd_tx_return(tx, hd_string(hd_tx_pool(tx), text));
}

static hd_status relay(hd_tx *tx, const hd_event *event, void *ctx) {
    return hd_tx_send(tx, hd_cell_at(hd_tx_runtime(tx), "main/greet"), event->payload, NULL);
}

static hd_status hear(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)tx, (void)event, (void)ctx;
    return HD_OK;
}

/* An event that is sent and not posted, with an id of its sender's. */
static hd_status knock(hd_runtime *rt) {
    hd_cell door = hd_cell_at(rt, "main/knock");
    hd_handler_spec spec = { .stream = door, .fn = hear, .reads_nothing = true };
    hd_status status = hd_handler_register(rt, &spec, NULL);
    return status ? status
                  : hd_event_send(rt, door, hd_null(), &(hd_send_options){ .id = "knock-1" });
}

int main(int argc, char **argv) {
    hd_runtime *rt;
    hd_error error;
    hd_handler handler;
    char stream[1024];
    snprintf(stream, sizeof stream, "%s/greet", argc > 2 ? argv[2] : "main");
    if (argc < 2 || hd_open(argv[1], NULL, &rt, &error)) return 1;
    hd_cell count = hd_cell_at(rt, "main/greeted");
    hd_handler_spec spec = { .stream = hd_cell_at(rt, stream),
                             .fn = greet,
                             .ctx = &count,
                             .name = "greeter",
                             .reads_nothing = true };
    if (hd_handler_register(rt, &spec, &handler)) return 1;
    hd_handler_spec second = { .stream = hd_cell_at(rt, "main/relay"),
                               .fn = relay,
                               .reads_nothing = true };
    if (hd_handler_register(rt, &second, NULL)) return 1;
    if (knock(rt)) return 1;
    const char *path = strstr(argv[1], "://") ? "live.sock" : NULL;
    hd_runtime_serve(rt, &(hd_serve_options){ .socket = path, .name = "greeter" });
    return hd_runtime_run(rt) != HD_OK;
}
