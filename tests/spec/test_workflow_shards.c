/* test_workflow_shards.c -- several runtimes serve the same spaces: leases spread, each instance is run by one of them
 * (POSTGRES.md, "Leases": fair share, joining, leaving; decision 0261). */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

enum { RUNTIMES = 4, SPACES = 12, SHARDS = 8, FLOWS = 40, ATTEMPTS = 2 * FLOWS };

typedef struct party {
    hd_runtime *rt;
    hd_engine *engines[SPACES];
    int engine_count;
    int calls; /* of the action, here */
} party;

static hd_memory *memory;
static party parties[RUNTIMES];
static int calls;

static uint64_t tokens[ATTEMPTS]; /* of attempts at "long", which the test ends */
static hd_engine *begun_by[ATTEMPTS];
static int bears[ATTEMPTS]; /* the step's argument, if it has one: its "most" */
static int begun;

static hd_status begin_long(hd_action *a, hd_value args, void *ctx) {
    assert_in_range(begun, 0, ATTEMPTS - 1);
    begun_by[begun] = ((party *)ctx)->engines[0];
    bears[begun] = (int)hd_value_as_int(hd_value_index(args, 0), 0);
    tokens[begun++] = hd_action_token(a);
    return HD_PENDING;
}

static hd_status count(hd_action *a, hd_value args, void *ctx) {
    ((party *)ctx)->calls++;
    return hd_action_return(a, hd_int(NULL, ++calls));
}

static void register_actions(hd_engine *e) { (void)e; }

static int set_up(void **state) {
    env = lab_env_open();
    calls = begun = 0;
    memset(parties, 0, sizeof parties);
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    return 0;
}

static void part(party *p) {
    if (p->rt) assert_int_equal(hd_close(p->rt), HD_OK);
    *p = (party){ .calls = p->calls };
}

static int tear_down(void **state) {
    if (pool) hd_pool_close(pool);
    pool = NULL;
    for (int i = 0; i < RUNTIMES; i++) part(&parties[i]);
    hd_memory_close(memory);
    lab_env_close(env);
    return 0;
}

static hd_engine *serve(party *p, const char *space, uint32_t shards) {
    hd_error error = { 0 };
    hd_engine_options options = { .space = space, .shards = shards };
    hd_action_spec spec = { .name = "count", .fn = count, .ctx = p, .here = true };
    hd_action_spec slow = { .name = "long", .fn = begin_long, .ctx = p, .later = true };
    hd_options o = { .env = lab_env_of(env), .memory = memory };
    hd_engine **e = &p->engines[p->engine_count++];
    if (!p->rt && hd_open(NULL, &o, &p->rt, &error)) fail_msg("%s", error.message);
    if (hd_engine_open(p->rt, &options, e, &error)) fail_msg("%s", error.message);
    assert_int_equal(hd_action_register(*e, &spec), HD_OK);
    assert_int_equal(hd_action_register(*e, &slow), HD_OK);
    return *e;
}

static void serve_many(party *p, int spaces, uint32_t shards) {
    for (int i = 0; i < spaces; i++) {
        char space[20];
        snprintf(space, sizeof space, "space%d", i);
        serve(p, space, shards);
    }
}

static uint64_t held(const party *p) {
    uint64_t n = 0;
    for (int i = 0; i < p->engine_count; i++) {
        hd_engine_stats s;
        hd_engine_stat(p->engines[i], &s);
        n += s.shards;
    }
    return n;
}

static void pump_all(void) {
    for (int round = 0; round < 60; round++)
        for (int i = 0; i < RUNTIMES; i++) {
            if (!parties[i].rt) continue;
            assert_int_equal(hd_runtime_sync(parties[i].rt), HD_OK);
            assert_in_range(hd_runtime_pump(parties[i].rt), 0, HD_PENDING);
        }
}

/* Every lease is held once, and no runtime holds two more than another. */
static void assert_even(uint64_t all) {
    uint64_t sum = 0, least = UINT64_MAX, most = 0;
    for (int i = 0; i < RUNTIMES; i++) {
        if (!parties[i].rt) continue;
        uint64_t n = held(&parties[i]);
        sum += n;
        if (n < least) least = n;
        if (n > most) most = n;
    }
    assert_int_equal(sum, all);
    assert_in_range(most - least, 0, 1);
}

/* ---- spread */

static void spaces_spread_over_the_runtimes_that_serve_them(void **state) {
    serve_many(&parties[0], SPACES, 0);
    assert_int_equal(held(&parties[0]), SPACES);
    for (int i = 1; i < RUNTIMES; i++) {
        serve_many(&parties[i], SPACES, 0);
        pump_all();
        assert_even(SPACES);
    }
    part(&parties[1]);
    pump_all();
    assert_even(SPACES);
    part(&parties[0]);
    part(&parties[3]);
    pump_all();
    assert_int_equal(held(&parties[2]), SPACES);
}

static void shards_of_one_space_spread_too(void **state) {
    for (int i = 0; i < RUNTIMES; i++) serve(&parties[i], "main", i ? 0 : SHARDS);
    pump_all();
    assert_even(SHARDS);
    part(&parties[2]);
    pump_all();
    assert_even(SHARDS);
}

/* Only spaces that both serve are compared: what another cannot do is not its share. */
static void a_runtime_is_given_only_what_it_serves(void **state) {
    serve_many(&parties[0], SPACES, 0);
    serve(&parties[1], "space0", 0);
    serve(&parties[1], "space1", 0);
    serve(&parties[1], "space2", 0);
    pump_all();
    assert_in_range(held(&parties[1]), 1, 2);
    assert_int_equal(held(&parties[0]) + held(&parties[1]), SPACES);
}

/* A runtime alone says nothing about itself but in its lease. */
static bool count_listed(const hd_listing *entry, void *ctx) { return ++*(int *)ctx, true; }

static void members_are_documents_while_there_are_several(void **state) {
    int members = 0;
    serve(&parties[0], "main", 0);
    pump_all();
    hd_runtime_list(parties[0].rt, "main", "lease.member", NULL, count_listed, &members);
    assert_int_equal(members, 0);
    serve(&parties[1], "main", 0);
    pump_all();
    hd_runtime_list(parties[0].rt, "main", "lease.member", NULL, count_listed, &members);
    assert_int_equal(members, 1);
    part(&parties[1]);
    pump_all();
    members = 0;
    hd_runtime_list(parties[0].rt, "main", "lease.member", NULL, count_listed, &members);
    assert_int_equal(members, 0);
}

/* A lease that is given to a runtime which closes before it has heard of that is free when the runtime has closed: its
 * process may live on, and would keep it for ever. */
static void what_is_given_to_one_that_leaves_is_not_lost(void **state) {
    serve(&parties[0], "main", SHARDS);
    serve(&parties[1], "main", 0);
    assert_int_equal(hd_runtime_sync(parties[1].rt), HD_OK);
    while (held(&parties[0]) == SHARDS) {
        assert_int_equal(hd_runtime_sync(parties[0].rt), HD_OK);
        assert_in_range(hd_runtime_pump(parties[0].rt), 0, HD_PENDING);
        if (held(&parties[0]) == SHARDS) assert_int_equal(hd_runtime_sync(parties[1].rt), HD_OK);
    }
    part(&parties[1]);
    pump_all();
    assert_int_equal(held(&parties[0]), SHARDS);
}

/* The other way round: it has left, and the one that gives has not heard of that. */
static void nothing_is_given_to_one_that_has_left(void **state) {
    serve(&parties[0], "main", SHARDS);
    serve(&parties[1], "main", 0);
    pump_all();
    serve(&parties[2], "main", 0);
    assert_int_equal(hd_runtime_sync(parties[2].rt), HD_OK);
    for (int i = 0; i < 40; i++) {
        /* One of two gives at some time in this; the third closes in each of its states. */
        assert_in_range(hd_runtime_pump(parties[i % 2].rt), 0, HD_PENDING);
        if (i % 5 != 4) continue;
        part(&parties[2]);
        pump_all();
        assert_even(SHARDS);
        serve(&parties[2], "main", 0);
        for (int k = 0; k < i; k++)
            assert_in_range(hd_runtime_pump(parties[k % 3].rt), 0, HD_PENDING);
    }
}

/* ---- the number */

static void the_number_of_shards_is_the_stores(void **state) {
    hd_engine_stats s;
    hd_engine_stat(serve(&parties[0], "main", SHARDS), &s);
    assert_int_equal(s.shards, SHARDS);
    serve(&parties[1], "main", 3); /* another one is open: it stays */
    pump_all();
    assert_even(SHARDS);
    part(&parties[0]);
    part(&parties[1]);
    hd_engine_stat(serve(&parties[2], "main", 0), &s);
    assert_int_equal(s.shards, SHARDS);
    part(&parties[2]);
    hd_engine_stat(serve(&parties[2], "main", 3), &s);
    assert_int_equal(s.shards, 3);
    hd_engine *e;
    hd_error error;
    hd_engine_options many = { .space = "other", .shards = 5000 };
    assert_int_equal(hd_engine_open(parties[2].rt, &many, &e, &error), HD_USAGE);
    many = (hd_engine_options){ .space = "main" };
    assert_int_equal(hd_engine_open(parties[2].rt, &many, &e, &error), HD_EXISTS);
}

/* ---- instances */

static void use(party *p) {
    rt = p->rt;
    engine = p->engines[0];
    if (pool) hd_pool_close(pool);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
}

static void register_flows(void) {
    register_nodes("child",
                   "{'id':'wait','kind':'WAIT','signal':'go','into':['name','p']},"
                   "{'id':'out','kind':'RETURN','value':['name','p']}",
                   "['in','wait'],['wait','out']");
    register_nodes("w",
                   "{'id':'wait','kind':'WAIT','signal':'go','into':['name','p']},"
                   "{'id':'a','kind':'ACTION','action':'count'},"
                   "{'id':'out','kind':'RETURN','value':['name','p']}",
                   "['in','wait'],['wait','a'],['a','out']");
}

static const char *status_of(int flow) {
    char name[40];
    snprintf(name, sizeof name, "w/%d", flow);
    hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, name));
    return hd_value_as_text(hd_value_at(doc, "status"), "");
}

static void start_flows(void) {
    for (int i = 0; i < FLOWS; i++) {
        char key[20];
        snprintf(key, sizeof key, "%d", i);
        use(&parties[i % RUNTIMES]);
        assert_int_equal(
            hd_workflow_start(engine, "w", hd_object(), &(hd_start_options){ .key = key }, id),
            HD_OK);
    }
}

static void signal_flows(int from, int to) {
    for (int i = from; i < to; i++) {
        char name[40];
        snprintf(name, sizeof name, "w/%d", i);
        use(&parties[(i + 1) % RUNTIMES]);
        assert_int_equal(hd_workflow_signal(engine, name, "go", hd_int(NULL, i)), HD_OK);
    }
}

static uint64_t open_in_all(void) {
    uint64_t n = 0;
    for (int i = 0; i < RUNTIMES; i++) {
        hd_engine_stats s = { 0 };
        if (parties[i].rt) hd_engine_stat(parties[i].engines[0], &s);
        n += s.open;
    }
    return n;
}

/* Starts and signals reach the engine that runs the instance, wherever they are made; each runs some of them. */
static void instances_run_where_their_shard_is(void **state) {
    for (int i = 0; i < RUNTIMES; i++) serve(&parties[i], "main", SHARDS);
    use(&parties[0]);
    register_flows();
    pump_all();
    start_flows();
    pump_all();
    assert_int_equal(open_in_all(), FLOWS);
    signal_flows(0, FLOWS);
    pump_all();
    assert_int_equal(open_in_all(), 0);
    assert_int_equal(calls, FLOWS);
    for (int i = 0; i < FLOWS; i++) assert_string_equal(status_of(i), "done");
    for (int i = 0; i < RUNTIMES; i++) assert_true(parties[i].calls > 0);
}

static void observe(party *p) {
    hd_engine_options observer = { .space = "main", .observer = true };
    hd_options o = { .env = lab_env_of(env), .memory = memory };
    assert_int_equal(hd_open(NULL, &o, &p->rt, NULL), HD_OK);
    assert_int_equal(hd_engine_open(p->rt, &observer, &p->engines[0], NULL), HD_OK);
    p->engine_count = 1;
}

/* Flows are started, and the engine of parties[0] leaves. The engine of parties[1], which takes its shards over, has
 * pumped `pumps` times when all flows get a signal. */
static void signal_while_a_shard_changes_hands(int first, int pumps) {
    char names[FLOWS][HD_INSTANCE_ID_SIZE];
    serve(&parties[0], "main", SHARDS);
    pump_all();
    use(&parties[2]);
    for (int i = 0; i < FLOWS; i++) {
        char key[20];
        snprintf(key, sizeof key, "%d", first + i);
        hd_start_options as = { .key = key };
        assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &as, names[i]), HD_OK);
    }
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    part(&parties[0]);
    for (int i = 0; i < pumps; i++) assert_in_range(hd_runtime_pump(parties[1].rt), 0, HD_PENDING);
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(hd_workflow_signal(engine, names[i], "go", hd_int(NULL, i)), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    pump_all();
    for (int i = 0; i < FLOWS; i++) assert_string_equal(status_of(first + i), "done");
}

/* An engine that takes a shard over may come to the message for a queued instance before it has found the instance. */
static void signals_that_come_while_a_shard_changes_hands_are_kept(void **state) {
    serve(&parties[1], "main", SHARDS);
    observe(&parties[2]);
    use(&parties[1]);
    register_flows();
    for (int pumps = 0; pumps < 10; pumps++)
        signal_while_a_shard_changes_hands(pumps * FLOWS, pumps);
}

/* A shard takes its instances, their messages and their variables with it. */
static void instances_go_on_after_their_shard_was_given_away(void **state) {
    serve(&parties[0], "main", SHARDS);
    for (int i = 1; i < RUNTIMES; i++) serve(&parties[i], "main", 0);
    use(&parties[0]);
    register_flows();
    pump_all();
    part(&parties[3]);
    pump_all();
    serve(&parties[3], "main", 0);
    start_flows();
    pump_all();
    signal_flows(0, 10);
    pump_all();
    for (int gone = 0; gone < RUNTIMES; gone++) {
        part(&parties[gone]);
        use(&parties[(gone + 1) % RUNTIMES]);
        pump_all();
        assert_int_equal(open_in_all(), FLOWS - 10);
        serve(&parties[gone], "main", 0);
        pump_all();
        assert_even(SHARDS);
        assert_int_equal(open_in_all(), FLOWS - 10);
    }
    signal_flows(10, FLOWS);
    pump_all();
    assert_int_equal(calls, FLOWS);
    for (int i = 0; i < FLOWS; i++) assert_string_equal(status_of(i), "done");
}

/* A step that takes long is not begun again because a runtime joins: its shard moves when the step is over. */
static void a_shard_with_long_steps_stays_until_they_end(void **state) {
    enum { LONG = 12 };
    serve(&parties[0], "main", 2);
    use(&parties[0]);
    register_nodes("slow",
                   "{'id':'a','kind':'ACTION','action':'long'},{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
    for (int i = 0; i < LONG; i++) {
        char key[20];
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(
            hd_workflow_start(engine, "slow", hd_object(), &(hd_start_options){ .key = key }, id),
            HD_OK);
    }
    pump_all();
    assert_int_equal(begun, LONG);
    serve(&parties[1], "main", 0);
    for (int i = 0; i < 40; i++) {
        pump_all();
        lab_env_advance_ms(env, 1000);
    }
    assert_int_equal(begun, LONG);
    assert_int_equal(held(&parties[0]), 2);
    for (int i = 0; i < LONG; i++)
        assert_int_equal(hd_attempt_return(begun_by[i], tokens[i], hd_null()), HD_OK);
    for (int i = 0; i < 600; i += 10) {
        pump_all();
        lab_env_advance_ms(env, 10000);
    }
    assert_even(2);
    assert_int_equal(open_in_all(), 0);
    assert_int_equal(begun, LONG);
}

static bool note_child(const hd_listing *entry, void *ctx) {
    return snprintf(ctx, HD_INSTANCE_ID_SIZE, "%s", entry->id + strlen("workflow/")), true;
}

/* A parent and its children are stored by one commit: they are in one shard. */
static void children_are_in_the_shard_of_their_parent(void **state) {
    for (int i = 0; i < RUNTIMES; i++) serve(&parties[i], "main", SHARDS);
    use(&parties[0]);
    register_flows();
    register_nodes("p",
                   "{'id':'a','kind':'CHILD','workflow':'child','into':['name','r']},"
                   "{'id':'out','kind':'RETURN','value':['name','r']}",
                   "['in','a'],['a','out']");
    pump_all();
    for (int i = 0; i < 10; i++) {
        char key[20], child[HD_INSTANCE_ID_SIZE] = "";
        snprintf(key, sizeof key, "%d", i);
        use(&parties[i % RUNTIMES]);
        assert_int_equal(
            hd_workflow_start(engine, "p", hd_object(), &(hd_start_options){ .key = key }, id),
            HD_OK);
        pump_all();
        assert_int_equal(open_in_all(), 2);
        hd_runtime_list(rt, "main", "workflow.running", "workflow/child/", note_child, child);
        use(&parties[(i + 1) % RUNTIMES]);
        assert_int_equal(hd_workflow_signal(engine, child, "go", hd_int(NULL, i)), HD_OK);
        pump_all();
        hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, id));
        assert_int_equal(hd_value_as_int(hd_value_at(doc, "result"), -1), i);
        assert_int_equal(open_in_all(), 0);
    }
}

/* Schedules belong to shards, too; what one starts may belong to another. */
static void a_schedule_runs_once_wherever_its_shard_is(void **state) {
    for (int i = 0; i < RUNTIMES; i++) serve(&parties[i], "main", SHARDS);
    use(&parties[0]);
    register_nodes(
        "tick",
        "{'id':'a','kind':'ACTION','action':'count'},{'id':'out','kind':'RETURN','value':7}",
        "['in','a'],['a','out']");
    pump_all();
    for (int i = 0; i < 6; i++) {
        char name[20];
        snprintf(name, sizeof name, "s%d", i);
        hd_schedule spec = { .name = name, .workflow = "tick", .every_s = 1 };
        hd_error error;
        use(&parties[i % RUNTIMES]);
        assert_int_equal(hd_schedule_put(engine, &spec, &error), HD_OK);
    }
    pump_all();
    for (int i = 0; i < 10; i++) {
        lab_env_advance_ms(env, 1000);
        pump_all();
    }
    assert_int_equal(calls, 6 * 10);
}

/* ---- bounds */

static bool ended[ATTEMPTS]; /* attempts at "long" that the test has ended */

static int running(void) {
    int n = 0;
    for (int i = 0; i < begun; i++) n += !ended[i];
    return n;
}

static void end_one(int i) {
    ended[i] = true;
    assert_int_equal(hd_attempt_return(begun_by[i], tokens[i], hd_null()), HD_OK);
}

static void pump_for(int seconds) {
    for (int i = 0; i < 10 * seconds; i++) {
        for (int k = 0; k < RUNTIMES; k++) {
            if (!parties[k].rt) continue;
            assert_int_equal(hd_runtime_sync(parties[k].rt), HD_OK);
            assert_in_range(hd_runtime_pump(parties[k].rt), 0, HD_PENDING);
        }
        lab_env_advance_ms(env, 100);
    }
}

static int count_documents(const char *kind) {
    int n = 0;
    hd_runtime_list(rt, "main", kind, NULL, count_listed, &n);
    return n;
}

static void start_bounded(const char *more) {
    char nodes[200];
    memset(ended, 0, sizeof ended);
    for (int i = 0; i < RUNTIMES; i++) serve(&parties[i], "main", SHARDS);
    use(&parties[0]);
    snprintf(nodes, sizeof nodes,
             "{'id':'a','kind':'ACTION','action':'long',%s},{'id':'out','kind':'RETURN'}", more);
    register_nodes("w", nodes, "['in','a'],['a','out']");
    pump_all();
}

/* As many as may run do run, whichever ends, in whichever runtime; each runtime gets its turn. */
static void assert_bounded(int most) {
    uint64_t served = 0;
    start_flows();
    for (int done = 0; done < FLOWS; done++) {
        pump_for(2);
        int left = FLOWS - done;
        assert_int_equal(running(), left < most ? left : most);
        for (int i = 0; i < begun; i++)
            for (int k = 0; k < RUNTIMES && done < FLOWS / 2; k++)
                if (begun_by[i] == parties[k].engines[0]) served |= UINT64_C(1) << k;
        int first = 0;
        while (ended[first]) first++;
        end_one(first);
    }
    pump_for(2);
    assert_int_equal(begun, FLOWS);
    assert_int_equal(served, (1 << RUNTIMES) - 1);
    for (int i = 0; i < FLOWS; i++) assert_string_equal(status_of(i), "done");
    assert_int_equal(count_documents("workflow.share"), 0);
}

static void a_limit_by_key_holds_over_all_shards(void **state) {
    start_bounded("'limit':{'key':'k','most':3}");
    assert_bounded(3);
}

static void one_at_a_time_holds_over_all_shards(void **state) {
    start_bounded("'limit':{'key':'k','most':1}");
    assert_bounded(1);
}

static void the_bound_of_a_queue_holds_over_all_shards(void **state) {
    start_bounded("'queue':'slow'");
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "slow", .most = 5 }), HD_OK);
    assert_bounded(5);
}

/* Each step is begun by its own "most": all together are three at most, and of those that bear no other there is one.
 * Every step gets its turn. */
static void different_limits_hold_over_all_shards(void **state) {
    start_bounded("'args':[3],'limit':{'key':'k','most':3}");
    start_flows();
    pump_for(1);
    assert_int_equal(running(), 3);
    register_nodes("v",
                   "{'id':'a','kind':'ACTION','action':'long','args':[1],"
                   "'limit':{'key':'k','most':1}},{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
    for (int i = 0; i < FLOWS; i++) {
        use(&parties[i % RUNTIMES]);
        pump_for(1);
        assert_int_equal(hd_workflow_start(engine, "v", hd_object(), NULL, id), HD_OK);
    }
    for (int done = 0; done < 2 * FLOWS; done++) {
        int alone = 0, first = 0;
        pump_for(2);
        for (int i = 0; i < begun; i++) alone += !ended[i] && bears[i] == 1;
        assert_in_range(running(), 1, 3);
        assert_in_range(alone, 0, 1);
        while (ended[first]) first++;
        end_one(first);
    }
    pump_for(2);
    assert_int_equal(begun, 2 * FLOWS);
    assert_int_equal(count_documents("workflow.share"), 0);
}

/* The slots of a runtime that closes are free. */
static void slots_of_one_that_leaves_are_free(void **state) {
    start_bounded("'limit':{'key':'k','most':2}");
    start_flows();
    pump_for(2);
    assert_int_equal(running(), 2);
    for (int i = 0; i < RUNTIMES; i++)
        if (parties[i].engines[0] == begun_by[0]) part(&parties[i]);
    for (int i = 0; i < begun; i++) ended[i] = ended[i] || begun_by[i] == begun_by[0];
    pump_for(20); /* the steps are begun anew elsewhere */
    assert_int_equal(running(), 2);
}

static int instances(void) {
    int found = 0;
    assert_int_equal(
        hd_runtime_list(parties[0].rt, "main", NULL, "workflow/kept/", count_listed, &found),
        HD_OK);
    return found;
}

static void run_kept(int *key) {
    for (int i = 0; i < 10; i++) {
        char text[16];
        hd_start_options o = { .key = text };
        snprintf(text, sizeof text, "%06d", ++*key);
        assert_int_equal(hd_workflow_start(engine, "kept", hd_object(), &o, id), HD_OK);
        lab_env_advance_ms(env, 1);
        pump_all();
    }
    for (int i = 0; i < 5; i++) {
        lab_env_advance_ms(env, 1000);
        pump_all();
    }
}

/* For a while another engine removes instances. What the first engine knew of those that have ended is out of date
 * then. */
static void as_many_are_kept_as_the_policy_says_whichever_engine_removes(void **state) {
    int key = 0;
    engine = serve(&parties[0], "main", SHARDS);
    assert_int_equal(hd_pool_open(hd_runtime_heap(parties[0].rt), &pool), HD_OK);
    register_ir("{'heddle':1,'name':'kept','keep':{'most':5},'functions':[{'name':'run','nodes':"
                "[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],"
                "'edges':[['in','out']]}]}");
    run_kept(&key);
    assert_int_equal(instances(), 5);
    for (int round = 0; round < 8; round++) {
        for (int i = 1; i <= 1 + round % 3; i++) serve(&parties[i], "main", 0);
        for (int i = 0; i < 5; i++) pump_all(), lab_env_advance_ms(env, 1000);
        run_kept(&key);
        assert_int_equal(instances(), 5);
        for (int i = 1; i < RUNTIMES; i++) part(&parties[i]);
        run_kept(&key);
        assert_int_equal(instances(), 5);
    }
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(spaces_spread_over_the_runtimes_that_serve_them),
        IN_A_WORLD(shards_of_one_space_spread_too),
        IN_A_WORLD(a_runtime_is_given_only_what_it_serves),
        IN_A_WORLD(members_are_documents_while_there_are_several),
        IN_A_WORLD(what_is_given_to_one_that_leaves_is_not_lost),
        IN_A_WORLD(nothing_is_given_to_one_that_has_left),
        IN_A_WORLD(the_number_of_shards_is_the_stores),
        IN_A_WORLD(instances_run_where_their_shard_is),
        IN_A_WORLD(signals_that_come_while_a_shard_changes_hands_are_kept),
        IN_A_WORLD(instances_go_on_after_their_shard_was_given_away),
        IN_A_WORLD(a_shard_with_long_steps_stays_until_they_end),
        IN_A_WORLD(children_are_in_the_shard_of_their_parent),
        IN_A_WORLD(a_schedule_runs_once_wherever_its_shard_is),
        IN_A_WORLD(a_limit_by_key_holds_over_all_shards),
        IN_A_WORLD(different_limits_hold_over_all_shards),
        IN_A_WORLD(one_at_a_time_holds_over_all_shards),
        IN_A_WORLD(the_bound_of_a_queue_holds_over_all_shards),
        IN_A_WORLD(slots_of_one_that_leaves_are_free),
        IN_A_WORLD(as_many_are_kept_as_the_policy_says_whichever_engine_removes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
