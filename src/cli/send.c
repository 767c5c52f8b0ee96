/* send.c -- post an event: a program with a handler for the stream takes it, now or later. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/streams.h"
#include <heddle/event.h>
#include <stdio.h>
#include <string.h>

/* How long --wait waits in silence. */
#define REMARK_NS UINT64_C(2000000000)

typedef struct sending {
    store s;
    hd_cell stream;
    hd_send_options options;
    char id[HD_EVENT_ID_SIZE];
    bool stored, handled; /* handled: before it was sent */
    hd_status verdict;
    int64_t since_ms; /* wall clock when it was posted */
} sending;

static void note_stored(const char *id, hd_status status, void *ctx) {
    sending *w = ctx;
    (void)id;
    w->stored = true;
    w->verdict = status;
}

static int read_times(sending *w, hd_send_options *options) {
    int failed = option_time(w->s.c, "after", &options->after_ms);
    if (!failed) failed = option_time(w->s.c, "every", &options->every_ms);
    if (failed) return failed;
    if (option_given(w->s.c, "every") && !options->every_ms)
        return cli_fail(w->s.c, CLI_USAGE, NULL, "--every: the time between two events is not 0");
    if (options->after_ms / 1000 > UINT32_MAX || options->every_ms / 1000 > UINT32_MAX)
        return cli_fail(w->s.c, CLI_USAGE, NULL, "--after and --every take at most %u seconds",
                        UINT32_MAX);
    return CLI_OK;
}

static int read_options(sending *w) {
    cli *c = w->s.c;
    const char *id = option_text(c, "id");
    if (id && !*id) return cli_fail(c, CLI_USAGE, NULL, "--id: the id of an event is not empty");
    w->options = (hd_send_options){
        .id = id, .lasting = option_given(c, "lasting"), .done = note_stored, .ctx = w
    };
    return read_times(w, &w->options);
}

static int post(sending *w, hd_value payload) {
    store *s = &w->s;
    const char *name = s->c->operands[1];
    const hd_env *env = hd_runtime_env(s->rt);
    w->since_ms = (int64_t)env->wall_ms(env->ctx);
    hd_status status = hd_event_post(s->rt, w->stream, payload, &w->options, w->id);
    if (!status) status = hd_runtime_sync(s->rt);
    if (!status && w->stored) status = w->verdict;
    w->handled = status == HD_EXISTS;
    return status && !w->handled ? store_refused(s, status, name) : CLI_OK;
}

static int print_id(const sending *w) {
    if (w->handled) cli_warn(w->s.c, "the event was handled before");
    if (!w->s.c->json) {
        puts(w->id);
        return CLI_OK;
    }
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "id", w->id);
    record_bool(&r, "handled", w->handled);
    record_close(&r, '}');
    record_end(&r);
    return CLI_OK;
}

/* The space that the stream is in. */
static const char *space_of(sending *w) {
    const char *name = store_cell_name(&w->s, w->stream);
    return hd_value_as_text(hd_string_n(w->s.pool, name, strcspn(name, "@/")), "");
}

/* The event as it waits: a document of the same place as its receipt. */
static hd_cell event_beside(sending *w, hd_cell receipt) {
    const char *text = store_cell_name(&w->s, receipt);
    hd_value name = hd_string_f(w->s.pool, "%.*s/event/%s", (int)strcspn(text, "/"), text, w->id);
    return hd_cell_at(w->s.rt, hd_value_as_text(name, ""));
}

/* Whether a handler has failed since the event was posted; prints the handler's message. */
static bool failed_since(sending *w, hd_cell document, int *failed) {
    hd_tx *tx;
    store *s = &w->s;
    if (hd_tx_begin_read(s->rt, &tx)) return false;
    hd_value v = hd_tx_get_meta(tx, document, "failed");
    bool since = hd_value_as_int(hd_value_at(v, "time"), 0) >= w->since_ms;
    if (since)
        *failed = cli_fail(s->c, CLI_CONFLICT,
                           "it stays posted: heddle events retry, or the next program, tries again",
                           "%s: %s", s->c->operands[1],
                           hd_value_as_text(hd_value_at(v, "message"), "its handler failed"));
    hd_tx_abort(tx);
    return since;
}

/* The end of waiting, on the runtime's clock; UINT64_MAX: none. */
static int wait_end(sending *w, uint64_t *out) {
    const hd_env *env = hd_runtime_env(w->s.rt);
    uint64_t ms = UINT64_MAX;
    int failed = option_time(w->s.c, "timeout", &ms);
    *out =
        ms / 1000 > UINT32_MAX ? UINT64_MAX : env->monotonic_ns(env->ctx) + ms * UINT64_C(1000000);
    return failed;
}

static int give_up(const sending *w) {
    return cli_fail(w->s.c, CLI_IO, "it stays posted: heddle events shows it",
                    "%s: no program has handled the event in time", w->s.c->operands[1]);
}

/* True: the waiting is over, *failed tells how. */
static bool look_for_outcome(sending *w, hd_cell receipt, hd_cell event, int *failed) {
    store *s = &w->s;
    hd_value v = hd_read(s->rt, s->pool, receipt);
    if (!hd_value_exists(v)) return failed_since(w, event, failed);
    hd_status status = print_value(v, s->c->json ? HD_JSON_COMPACT : HD_JSON_PRETTY);
    *failed = status ? store_fail(s, status, w->id) : CLI_OK;
    return true;
}

/* Says once, after a while, that no program has taken the event. Returns when to look again. */
static uint64_t remark_waiting(const sending *w, uint64_t remark) {
    const hd_env *env = hd_runtime_env(w->s.rt);
    if (env->monotonic_ns(env->ctx) < remark) return remark;
    cli_warn(w->s.c,
             "waiting: no program has handled %s yet; the event is in %s, and stays there "
             "if you press Ctrl-C",
             w->s.c->operands[1], w->s.file);
    return UINT64_MAX;
}

static int print_outcome(sending *w, uint64_t end) {
    store *s = &w->s;
    int failed;
    const hd_env *env = hd_runtime_env(s->rt);
    hd_cell receipt = hd_event_receipt(s->rt, w->stream, w->id), event = event_beside(w, receipt);
    hd_status status = hd_runtime_follow(s->rt, space_of(w));
    uint64_t remark = env->monotonic_ns(env->ctx) + REMARK_NS;
    while (!status) {
        if (look_for_outcome(w, receipt, event, &failed)) return failed;
        if (interrupted()) return interrupted_status();
        if (env->monotonic_ns(env->ctx) >= end) return give_up(w);
        remark = remark_waiting(w, remark);
        store_wait_until(s, remark < end ? remark : end);
        status = hd_runtime_pump(s->rt);
        if (status == HD_PENDING) status = HD_OK;
    }
    return store_fail(s, status, w->id);
}

/* Opens the store and parses the operands; the caller closes `w` in any case. */
static int prepare(cli *c, sending *w, store_mode mode, uint64_t *end, hd_value *payload) {
    *w = (sending){ 0 };
    int failed = store_open(c, &w->s, c->operands[0], mode);
    if (!failed) failed = wait_end(w, end);
    if (!failed) failed = read_options(w);
    if (!failed) failed = store_cell(&w->s, c->operands[1], &w->stream);
    return failed ? failed : store_json(&w->s, "the payload", c->operands[2], payload);
}

/* A stream that a running program does not handle is often a slip. Nothing is sent with --wait, which would
 * wait for ever; without it, the event may be meant for a program that is yet to be started. */
static int check_stream(sending *w) {
    cli *c = w->s.c;
    char hint[320];
    const char *name = store_cell_name(&w->s, w->stream);
    nearest near = nearest_to(name);
    bool refused = option_given(c, "wait") && !option_given(c, "timeout");
    if (streams_handled(c, w->s.file, name, &near)) return CLI_OK;
    snprintf(hint, sizeof hint,
             *near.best ? "Did you mean %s?%s" : "heddle streams lists what is.%.0s%s", near.best,
             refused ? " With --timeout it is sent, and waited for." : "");
    if (refused)
        return cli_fail(c, CLI_NOT_FOUND, hint, "no running program handles %s: nothing was sent",
                        name);
    cli_warn(c, "no running program handles %s. %s", name, hint);
    return CLI_OK;
}

/* As in change.c: a command with a mistake must not leave a new file behind. */
static int rehearse(cli *c) {
    sending w;
    hd_value payload;
    uint64_t end;
    int failed = prepare(c, &w, STORE_NOWHERE, &end, &payload);
    if (!failed) failed = check_stream(&w);
    return store_close(&w.s, failed);
}

static int run(cli *c) {
    sending w;
    hd_value payload;
    uint64_t end;
    bool makes_file = store_is_missing(c->operands[0]);
    int failed = makes_file ? rehearse(c) : CLI_OK;
    if (failed) return failed;
    failed = prepare(c, &w, STORE_CREATE, &end, &payload);
    if (!failed && !makes_file) failed = check_stream(&w);
    if (!failed) failed = post(&w, payload);
    if (!failed) failed = option_given(c, "wait") ? print_outcome(&w, end) : print_id(&w);
    return store_close(&w.s, failed);
}

const command command_send = {
    .name = "send",
    .also = "events send",
    .section = "Events",
    .operands = "FILE STREAM JSON",
    .least = 3,
    .most = 3,
    .summary = "post an event to a stream",
    .text =
        "Posts an event and returns, with its id, when it is on disk. It stays in the file until "
        "a program that has a handler for the stream has handled it; its effects are then there "
        "once, however often it is delivered. The payload - is read from stdin.\n\n"
        "With an id of your own the event can be sent again without harm, for instance after a "
        "crash: the same user, stream and id are the same event.\n\n"
        "It must be handled within 30 days by the clock of this machine (or what the program says "
        "in receipt_days), because receipts are not kept for longer; after that it shows as "
        "failed. "
        "With --lasting, or with an id of your own, it waits for as long as it takes, and its "
        "receipt is kept for 30 days after it was handled, or as long as that program says "
        "(receipt_days).\n\n"
        "With --wait the command ends when the event is handled and prints what the handler "
        "returned; if the handler fails, or the time is over, it says so, and the event stays "
        "posted.",
    .options =
        (const cli_option[]){
            { "id", "ID", "your own id of the event" },
            { "lasting", NULL, "it never expires, however late it is handled" },
            { "after", "SPAN",
              "it is delivered so much later: 90s, 1h30m; a number alone is seconds" },
            { "every", "SPAN", "a periodic event: an event in each such period" },
            { "wait", NULL, "wait until it is handled, and print the outcome" },
            { "timeout", "SPAN", "how long --wait waits; default: for ever" },
            OPTION_USER,
            { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle send shop.db main/buy '{\"item\": \"apples\"}'", "post, print the id" },
            { "heddle send shop.db main/buy '{\"item\": \"pears\"}' --id order-17 --wait",
              "safe to repeat; prints what the handler returned" },
            { NULL, NULL } },
    .run = run,
};
