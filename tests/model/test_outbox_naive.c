/* test_outbox_naive.c -- the outbox against a model that goes over all messages each time.
 *
 * Handlers record messages for a few channels, of which some are opened late; channels fail for a while;
 * time passes. After every step the model says which messages were handed over, each at most once while
 * the clock stands still, and how many were looked at: what waits is not.
 *
 * HD_STEPS is the number of steps; HD_SEED repeats a run. */
#include "lab.h"

#include <heddle/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { CHANNELS = 3, MESSAGES = 4000, STEPS = 2000 };

typedef struct message {
    int channel;
    bool over, known; /* delivered; looked at once */
    uint32_t failures;
    uint64_t due; /* ms */
    int handed, expected;
} message;

static const char *const names[CHANNELS] = { "mail", "print", "phone" };
static hd_runtime *rt;
static lab_random r;
static hd_cell stream;
static message messages[MESSAGES];
static int count, to_send;
static bool is_open[CHANNELS], fails[CHANNELS];
static uint64_t now; /* ms */
static long step;

static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&r, n); }

/* ---- the real ones */

static hd_status record(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_status status = HD_OK;
    (void)event, (void)ctx;
    for (int i = count - to_send; i < count && !status; i++)
        status = hd_tx_outbox(tx, names[messages[i].channel], hd_double(i));
    return status;
}

static hd_status hand_over(const char *key, hd_value v, void *ctx) {
    int channel = (int)((const char *const *)ctx - names);
    message *m = &messages[(int)hd_value_number(v)];
    (void)key;
    assert_int_equal(m->channel, channel);
    m->handed++;
    return fails[channel] ? HD_IO : HD_OK;
}

/* ---- the model */

/* 100 ms, doubling to a minute. */
static uint64_t delay_ms(uint32_t failures) {
    uint64_t ms = 100;
    while (failures-- > 1 && ms < 60000) ms *= 2;
    return ms < 60000 ? ms : 60000;
}

static uint64_t expect(void) {
    uint64_t visits = 0;
    for (int i = 0; i < count; i++) {
        message *m = &messages[i];
        m->handed = m->expected = 0;
        if (m->over) continue;
        bool due = is_open[m->channel] && now >= m->due;
        visits += due || !m->known;
        m->known = true;
        if (!due) continue;
        m->expected = 1;
        m->over = !fails[m->channel];
        m->due = now + delay_ms(++m->failures);
    }
    return visits;
}

static uint64_t visits_so_far(void) {
    hd_event_stats stats;
    hd_runtime_event_stats(rt, &stats);
    return stats.outbox_visits;
}

static void pump_and_compare(void) {
    uint64_t before = visits_so_far(), visits = expect();
    for (int i = 0; i < 4; i++) hd_runtime_pump(rt);
    for (int i = 0; i < count; i++)
        if (messages[i].handed != messages[i].expected)
            lab_fail("step %ld: message %d was handed over %d times", step, i, messages[i].handed);
    if (visits_so_far() - before != visits)
        lab_fail("step %ld: %llu were looked at, and not %llu", step,
                 (unsigned long long)(visits_so_far() - before), (unsigned long long)visits);
}

/* ---- steps */

static void send_some(void) {
    to_send = 1 + (int)below(3);
    if (count + to_send > MESSAGES) return;
    for (int i = 0; i < to_send; i++)
        messages[count++] = (message){ .channel = (int)below(CHANNELS) };
    assert_int_equal(hd_event_send(rt, stream, hd_null(), NULL), HD_OK);
}

/* Opened again it is the same; what was not looked at for want of it is looked at now. */
static void open_one(int channel) {
    hd_status status = hd_channel_register(rt, "main", names[channel], hand_over,
                                           (void *)(uintptr_t)&names[channel]);
    assert_int_equal(status, HD_OK);
    is_open[channel] = true;
}

static void act(lab_env *env) {
    int channel = (int)below(CHANNELS);
    switch (below(6)) {
    case 0:
    case 1: send_some(); break;
    case 2: fails[channel] = !fails[channel]; break;
    case 3:
        if (!below(step < 500 ? 20 : 3)) open_one(channel);
        break;
    default: {
        uint64_t ms = below(4) ? below(300) : below(100000);
        now += ms;
        lab_env_advance_ms(env, ms);
        break;
    }
    }
}

static void messages_are_handed_over_as_the_model_says(void **state) {
    lab_env *env = lab_env_open();
    const char *steps = getenv("HD_STEPS");
    hd_handler h;
    (void)state;
    r = lab_random_of(lab_seed());
    assert_int_equal(hd_open(NULL, &(hd_options){ .env = lab_env_of(env) }, &rt, NULL), HD_OK);
    stream = hd_cell_at(rt, "main/stream");
    hd_handler_spec spec = { .stream = stream, .fn = record, .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, &h), HD_OK);
    for (step = 0; step < (steps ? atol(steps) : STEPS); step++) {
        act(env);
        pump_and_compare();
    }
    hd_close(rt);
    lab_env_close(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_handed_over_as_the_model_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
