/* random_flow.h -- random workflows, written with the builder, for tests that interrupt them.
 *
 * A workflow of a seed is the same in every process. It ends always: loops are over ranges, and its actions are the
 * two below, which return a function of their arguments. So a result is a function of the seed (W4), however often it
 * was interrupted. */
#ifndef HEDDLE_RANDOM_FLOW_H
#define HEDDLE_RANDOM_FLOW_H

#include "lab.h"
#include <heddle/workflow.h>
#include <heddle/workflow_build.h>
#include <stdio.h>

/* What a test wants to know of every call; NULL: nothing. */
static void (*random_flow_called)(const char *step);

static hd_status random_flow_step(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    int64_t n = hd_value_as_int(hd_value_at(args, "n"), 0);
    if (random_flow_called) random_flow_called(hd_action_id(a));
    return hd_action_return(a, hd_int(hd_action_pool(a), (n * 31 + 7) % 1009));
}

static hd_status random_flow_fussy(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    int64_t n = hd_value_as_int(hd_value_at(args, "n"), 0);
    if (random_flow_called) random_flow_called(hd_action_id(a));
    if (n % 3 == 0) return hd_action_raise(a, "ValueError", "%lld", (long long)n);
    return hd_action_return(a, hd_int(hd_action_pool(a), n + 1));
}

static hd_status random_flow_actions(hd_engine *engine, bool here) {
    hd_status status = hd_action_register(
        engine, &(hd_action_spec){ .name = "step", .fn = random_flow_step, .here = here });
    if (status) return status;
    return hd_action_register(
        engine, &(hd_action_spec){ .name = "fussy", .fn = random_flow_fussy, .here = here });
}

static void random_flow_block(hd_flow *f, lab_random *r, int depth, bool in_branch);

/* Two branches: what they give is dropped, so that nothing is evaluated behind them, or before. */
static void random_flow_gather(hd_flow *f, lab_random *r, int depth) {
    hd_flow_gather(f);
    for (int i = 0; i < 2; i++) {
        hd_flow_branch(f);
        random_flow_block(f, r, depth - 1, true);
    }
    hd_flow_join(f, NULL, NULL);
}

/* Leaves the loop, or goes to its next turn, out of a block that may not raise at all. */
static void random_flow_leave(hd_flow *f, lab_random *r) {
    hd_flow_if(f, "x % 4 == 1");
    hd_flow_try(f);
    if (lab_random_below(r, 2)) hd_flow_action(f, "x", "step", "n=x");
    if (lab_random_below(r, 2)) hd_flow_break(f);
    else hd_flow_continue(f);
    if (lab_random_below(r, 2)) {
        hd_flow_except(f, NULL, NULL);
        hd_flow_do(f, "x = x + 1");
    } else {
        hd_flow_finally(f);
        hd_flow_action(f, "x", "step", "n=x");
    }
    hd_flow_end(f);
    hd_flow_end(f);
}

static void random_flow_loop(hd_flow *f, lab_random *r, int depth, bool in_branch) {
    char target[8], over[24];
    const char *form = lab_random_below(r, 2) ? "[2, 0, 1][:%d]" : "range(%d)";
    snprintf(target, sizeof target, "i%d", depth);
    snprintf(over, sizeof over, form, (int)lab_random_below(r, 4));
    hd_flow_for(f, target, over);
    random_flow_block(f, r, depth - 1, in_branch);
    if (lab_random_below(r, 3) == 0) {
        hd_flow_if(f, "x % 5 == 2");
        if (lab_random_below(r, 2)) hd_flow_break(f);
        else hd_flow_continue(f);
        hd_flow_end(f);
    }
    if (lab_random_below(r, 3) == 0) random_flow_leave(f, r);
    hd_flow_do(f, "x = (x + 1) % 1009");
    if (lab_random_below(r, 2)) hd_flow_action(f, NULL, "step", "n=x");
    hd_flow_end(f);
    if (lab_random_below(r, 2)) random_flow_gather(f, r, depth);
}

static void random_flow_try(hd_flow *f, lab_random *r, int depth, bool in_branch) {
    hd_flow_try(f);
    random_flow_block(f, r, depth - 1, in_branch);
    hd_flow_action(f, "x", "fussy", "n=x");
    if (lab_random_below(r, 2)) hd_flow_retried(f, &(hd_flow_retry){ .attempts = 2 });
    if (lab_random_below(r, 4)) {
        hd_flow_except(f, "ValueError", "e");
        hd_flow_do(f, "x = x + 100 + len(str(e)); e.n = x % 9; e.d = k.d; k = e");
    } else {
        hd_flow_except(f, NULL, NULL);
        hd_flow_action(f, "x", "step", "n=x");
    }
    if (lab_random_below(r, 3) == 0) {
        hd_flow_finally(f);
        hd_flow_action(f, "x", "step", "n=x + 5");
    }
    hd_flow_end(f);
}

static void random_flow_fan(hd_flow *f, lab_random *r, int depth) {
    char over[24], gets[16];
    snprintf(over, sizeof over, "range(%d)", (int)lab_random_below(r, 6));
    snprintf(gets, sizeof gets, "all%d", depth);
    hd_flow_each(f, "x", over);
    if (lab_random_below(r, 2)) hd_flow_window(f, 1 + (uint32_t)lab_random_below(r, 3));
    random_flow_block(f, r, depth - 1, true);
    hd_flow_join(f, gets, "x");
    char sum[40];
    snprintf(sum, sizeof sum, "x = (x + sum(%s)) %% 1009", gets);
    hd_flow_do(f, sum);
}

/* Arguments that change something when they are computed: they must be computed once. */
static const char *const random_flow_args[] = { "n=x", "n=log.append(x) or x",
                                                "n=(log or [3]).pop()",
                                                "n=len([log.insert(0, x)]) + log.pop()" };

/* Objects of the frame that change, and that several names and objects hold: lists, and the exceptions k and o. */
static void random_flow_change(hd_flow *f, lab_random *r) {
    static const char *const changes[] = {
        "log.append(x); x = x * 3 % 1009",
        "k.n = k.n + x % 7; log.append(o.n)",
        "o = k; k = KeyError(x); k.n = x % 5; k.d = o.d",
        "k.__cause__ = o; k.d = {x: k.n}",
        "log.append(k.n) if k is o else log.append(sum(k.d))",
        "held = [k, o, (k, x)]; k.held = held",
        "held[0].n = len(held) + held[2][0].n; log.append(held[1] is o)",
        "x = (x + len(str(k.__cause__)) + (k in held)) % 1009",
    };
    hd_flow_do(f, changes[lab_random_below(r, sizeof changes / sizeof *changes)]);
}

static void random_flow_one(hd_flow *f, lab_random *r, int depth, bool in_branch) {
    switch (depth > 0 ? lab_random_below(r, 9) : lab_random_below(r, 5)) {
    case 0: hd_flow_action(f, "x", "step", "n=x"); break;
    case 1: hd_flow_action(f, "x", "step", random_flow_args[lab_random_below(r, 4)]); break;
    case 2:
    case 3: random_flow_change(f, r); break;
    case 4: hd_flow_call(f, "x", "twice", "x"); break;
    case 5:
        hd_flow_if(f, "x % 2");
        random_flow_block(f, r, depth - 1, in_branch);
        if (lab_random_below(r, 2)) {
            hd_flow_else(f);
            random_flow_block(f, r, depth - 1, in_branch);
        }
        hd_flow_end(f);
        break;
    case 6: random_flow_loop(f, r, depth, in_branch); break;
    case 7: random_flow_try(f, r, depth, in_branch); break;
    default: random_flow_fan(f, r, depth); break;
    }
}

#define RANDOM_FLOW_OWN                                                                            \
    "log = []; k = ValueError('k'); k.n = 0; k.d = {1: 2}; o = k; held = [k, k, (k, 1)]"

/* In a branch nothing may be changed of the frame around it: it has objects of its own. */
static void random_flow_block(hd_flow *f, lab_random *r, int depth, bool in_branch) {
    if (in_branch) hd_flow_do(f, RANDOM_FLOW_OWN);
    for (uint64_t n = 1 + lab_random_below(r, 3); n > 0; n--)
        random_flow_one(f, r, depth, in_branch);
}

static hd_status random_flow(hd_pool *pool, const char *name, uint64_t seed, hd_value *ir,
                             hd_error *error) {
    hd_flow *f;
    lab_random r = lab_random_of(seed);
    hd_status status = hd_flow_open(pool, name, &f);
    if (status) return status;
    hd_flow_do(f, "x = 1; " RANDOM_FLOW_OWN);
    hd_flow_action(f, "x", "step", "n=x");
    random_flow_block(f, &r, 3, false);
    hd_flow_return(f, "[x, len(log), sum(log), k.n, k is o, o.n, held[0] is k]");
    hd_flow_function(f, "twice", "n");
    hd_flow_action(f, "n", "step", "n=n");
    hd_flow_return(f, "n * 2 % 1009");
    status = hd_flow_ir(f, ir, error);
    hd_flow_close(f);
    return status;
}

#endif
