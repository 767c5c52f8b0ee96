/* demo_serve.c -- the shop, kept running: for looking inside from a second terminal.
 *
 * Opens the file that an earlier demonstration left, or makes one, and serves it with hd_runtime_serve
 * (heddle/inspect.h), so that the commands that ask a running program can ask this one. */
#define _POSIX_C_SOURCE 200809L
#include "cli/demo_steps.h"

#include "cli/output.h"
#include "cli/signals.h"
#include <heddle/inspect.h>

static void print_commands(story *s) {
    story_say(s, "The shop is open; Ctrl-C closes it. In a second terminal:");
    demo_print_way(s);
    story_shell(s, "heddle send shop.db main/shop/checkout '{\"item\": \"cup\", \"count\": 1}'");
    story_shell(s, "heddle set shop.db main/shop/prices#/tea 525");
    story_shell(s, "heddle why shop.db main/shop/total          # down to its commit");
    story_shell(s, "heddle why-not shop.db main:shop:best_seller");
    story_shell(s, "heddle stats shop.db                        # which nodes run most");
    story_shell(s, "heddle graph shop.db                        # who reads what");
    putchar('\n');
}

/* Serves customers and askers until a signal comes. */
static void serve(story *s) {
    const hd_env *env = hd_runtime_env(s->shop.rt);
    while (!interrupted() && !s->aborted) {
        hd_status status = hd_runtime_pump(s->shop.rt);
        fflush(stdout);
        if (!story_ok(s, status == HD_PENDING ? HD_OK : status, "serving")) return;
        uint64_t now = env->monotonic_ns(env->ctx), until = hd_runtime_deadline(s->shop.rt);
        int ms = until == UINT64_MAX ? -1 : until > now ? (int)((until - now) / 1000000) + 1 : 0;
        if (status != HD_PENDING && ms) wait_readable(hd_runtime_fd(s->shop.rt), ms);
    }
}

int demo_serve(story *s) {
    hd_serve_options options = { .name = "heddle demo" };
    bool open = demo_open_shop(s);
    /* The demonstration serves too, if it can; here nothing else is to be done. */
    if (open && !hd_runtime_socket(s->shop.rt))
        open = story_ok(s, hd_runtime_serve(s->shop.rt, &options), s->file);
    if (open) {
        print_commands(s);
        serve(s);
    }
    if (s->shop.rt) story_ok(s, shop_close(&s->shop), "closing");
    return s->aborted;
}
