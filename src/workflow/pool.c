/* pool.c -- the worker that runs actions on threads.
 *
 * An attempt crosses to a thread as text: arguments there, result back, each parsed into the heap of the side that
 * reads it. What a thread has finished comes back as a post, which wakes the runtime. A step is claimed when a thread
 * is free for it, so that its timeout counts from there: a thread whose claim was taken back is not free until its
 * function returns. The threads are started with the first attempt that needs one and end with the engine. */
#include "workflow/engine.h"

#include "base/env.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define THREADS_MAX 256

typedef struct job {
    list_node link; /* in pool.jobs while it waits; in pool.running while a thread has it */
    post returned;  /* tells the runtime's thread; in the job, so that it needs no memory */
    hd_runtime *rt;
    hd_action_spec spec;
    uint64_t engine; /* its group: it may be closed before the job is done */
    uint64_t token;
    uint32_t attempt;
    uint64_t timeout_ms, heartbeat_ms;
    /* The engine has ended the claim while a thread ran it, or closes the pool; set by the runtime's thread. */
    _Atomic bool revoked;
    char *id, *args; /* owned */
    char *result;    /* owned; NULL: it failed */
    size_t args_length, result_length;
    char class_name[64]; /* of the exception */
    char message[400];
} job;

struct pool {
    worker w; /* first; the runtime's thread only */
    hd_engine *e;
    pthread_mutex_t lock; /* of everything below, but for `count` and `threads` */
    pthread_cond_t wake;
    list jobs, running;
    bool closing;
    uint32_t idle;
    uint32_t count; /* threads started; by the runtime's thread only */
    pthread_t threads[THREADS_MAX];
    hd_env env;
    hd_runtime *rt;
};

static void free_job(const hd_env *env, job *j) {
    if (j->id) env_free(env, j->id, strlen(j->id) + 1);
    if (j->args) env_free(env, j->args, j->args_length + 1);
    if (j->result) env_free(env, j->result, j->result_length + 1);
    env_free(env, j, sizeof *j);
}

/* ---- on the runtime's thread */

static void arrive(hd_runtime *rt, void *ctx) {
    job *j = ctx;
    hd_engine *e = engine_find(rt, j->engine);
    hd_pool *pool = NULL;
    if (e && e->pool && atomic_load(&j->revoked)) worker_hold(&e->pool->w, -1);
    if (e && (!j->result || !hd_pool_open(rt->heap, &pool))) {
        hd_value result =
            j->result ? hd_json_parse(pool, j->result, j->result_length, NULL) : (hd_value){ 0 };
        if (hd_value_exists(result)) (void)task_complete(e, j->token, result);
        else (void)task_fail(e, j->token, j->result ? "MemoryError" : j->class_name, j->message);
        hd_pool_close(pool);
    } else if (e) {
        (void)task_lost(e, j->token);
    }
    free_job(&rt->env, j);
}

typedef struct beat {
    hd_env env;
    uint64_t engine;
    uint64_t token;
} beat;

static void beat_arrives(hd_runtime *rt, void *ctx) {
    beat *b = ctx;
    hd_env env = b->env;
    hd_engine *e = engine_find(rt, b->engine);
    if (e) (void)task_heartbeat(e, b->token);
    env_free(&env, b, sizeof *b);
}

/* ---- on a thread of the pool */

void hd_action_heartbeat(hd_action *a) {
    if (!a->job) return; /* on the runtime's own thread nothing can miss it */
    const hd_env *env = &a->job->rt->env;
    beat *b = env_new(env, sizeof *b);
    if (!b) return; /* the next one counts */
    *b = (beat){ *env, a->job->engine, a->job->token };
    if (hd_runtime_post(a->job->rt, beat_arrives, b)) env_free(env, b, sizeof *b);
}

bool hd_action_is_revoked(const hd_action *a) { return a->job && atomic_load(&a->job->revoked); }

static void run_in(job *j, hd_pool *pool) {
    hd_action now = { .id = j->id,
                      .attempt = j->attempt,
                      .pool = pool,
                      .job = j,
                      .timeout_ms = j->timeout_ms,
                      .heartbeat_ms = j->heartbeat_ms };
    hd_value args = hd_json_parse(pool, j->args, j->args_length, NULL);
    bool good = here_run(&j->spec, &now, args);
    memcpy(j->class_name, now.class_name, sizeof j->class_name);
    memcpy(j->message, now.message, sizeof j->message);
    if (!good) return;
    const char *result = hd_json_print(pool, now.result, HD_JSON_COMPACT, &j->result_length);
    if (result) j->result = env_new_copy(&j->rt->env, result, j->result_length + 1);
    if (!j->result) snprintf(j->class_name, sizeof j->class_name, "MemoryError");
}

static void run_job(struct pool *p, job *j) {
    hd_heap *heap = NULL;
    hd_pool *pool = NULL;
    if (hd_heap_open(&p->env, NULL, &heap) || hd_pool_open(heap, &pool))
        snprintf(j->class_name, sizeof j->class_name, "MemoryError");
    else run_in(j, pool);
    hd_pool_close(pool);
    hd_heap_close(heap);
}

static void *serve(void *ctx) {
    struct pool *p = ctx;
    pthread_mutex_lock(&p->lock);
    while (!p->closing) {
        if (list_empty(&p->jobs)) {
            p->idle++;
            pthread_cond_wait(&p->wake, &p->lock);
            p->idle--;
            continue;
        }
        job *j = LIST_ENTRY(list_pop_front(&p->jobs), job, link);
        list_push_back(&p->running, &j->link);
        pthread_mutex_unlock(&p->lock);
        run_job(p, j);
        pthread_mutex_lock(&p->lock);
        list_remove(&j->link);
        j->returned = (post){ .fn = arrive, .ctx = j, .lent = true };
        if (p->closing) free_job(&p->env, j);
        else runtime_post(p->rt, &j->returned);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the worker */

/* A thread more, if all are busy and there may be one more. */
static void grow(struct pool *p) {
    if (p->idle || p->count >= p->w.capacity) return;
    if (!pthread_create(&p->threads[p->count], NULL, serve, p)) p->count++;
}

static job *new_job(struct pool *p, const task_view *t) {
    hd_engine *e = p->e;
    hd_pool *pool;
    job *j = env_new0(e->env, sizeof *j);
    if (!j || hd_pool_open(e->heap, &pool)) return env_free(e->env, j, sizeof *j), NULL;
    j->rt = e->rt;
    j->spec = engine_action(e, t->action)->spec; /* it may be unregistered while a thread runs it */
    j->spec.name = NULL;
    j->engine = p->e->group;
    j->token = t->token;
    j->attempt = t->attempt;
    j->timeout_ms = t->timeout_ms;
    j->heartbeat_ms = t->heartbeat_ms;
    const char *args = hd_json_print(pool, t->args, HD_JSON_COMPACT, &j->args_length);
    j->args = args ? env_new_copy(e->env, args, j->args_length + 1) : NULL;
    j->id = env_new_copy(e->env, t->id, strlen(t->id) + 1);
    hd_pool_close(pool);
    if (j->args && j->id) return j;
    free_job(e->env, j);
    return NULL;
}

/* False: no thread can be started. */
static bool give(struct pool *p, job *j) {
    pthread_mutex_lock(&p->lock);
    grow(p);
    bool served = p->count > 0;
    if (served) list_push_back(&p->jobs, &j->link);
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    return served;
}

static void offer(worker *w) {
    struct pool *p = (struct pool *)(void *)w;
    for (task_view t; task_claim(w, &t);) {
        job *j = new_job(p, &t);
        if (j && give(p, j)) continue;
        if (j) free_job(p->e->env, j);
        (void)task_fail(p->e, t.token, j ? "RuntimeError" : "MemoryError",
                        j ? "no thread can be started for actions" : "");
    }
}

static bool revoke_in(list *jobs, uint64_t token) {
    LIST_FOR (n, jobs) {
        job *j = LIST_ENTRY(n, job, link);
        if (j->token != token) continue;
        atomic_store(&j->revoked, true);
        return true;
    }
    return false;
}

/* A job that no thread has begun need not run. One that a thread runs keeps the thread's place until it arrives. */
static void revoke(worker *w, uint64_t token, const char *why) {
    struct pool *p = (struct pool *)(void *)w;
    (void)why;
    pthread_mutex_lock(&p->lock);
    bool runs = revoke_in(&p->running, token);
    if (!runs) {
        LIST_FOR_SAFE (n, &p->jobs) {
            job *j = LIST_ENTRY(n, job, link);
            if (j->token != token) continue;
            list_remove(n);
            free_job(&p->env, j);
        }
    }
    pthread_mutex_unlock(&p->lock);
    if (runs) worker_hold(w, 1);
}

static const worker_ops ops = { .offer = offer, .revoke = revoke };

/* ---- life */

static struct pool *pool_of(hd_engine *e) {
    if (e->pool) return e->pool;
    struct pool *p = env_new0(e->env, sizeof *p);
    if (!p) return NULL;
    p->e = e;
    p->env = *e->env;
    p->rt = e->rt;
    list_init(&p->jobs);
    list_init(&p->running);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->w = (worker){ .ops = &ops, .lines = &e->served };
    p->w.capacity = e->threads < THREADS_MAX ? e->threads : THREADS_MAX;
    worker_join(e, &p->w);
    return e->pool = p;
}

hd_status pool_serve(hd_engine *e, const char *action) {
    struct pool *p = pool_of(e);
    return p ? worker_serve(&p->w, action) : HD_NOMEM;
}

void pool_close(hd_engine *e) {
    struct pool *p = e->pool;
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    LIST_FOR (n, &p->running) atomic_store(&LIST_ENTRY(n, job, link)->revoked, true);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    env_pause(e->env, true);
    for (uint32_t i = 0; i < p->count; i++) pthread_join(p->threads[i], NULL);
    env_pause(e->env, false);
    while (!list_empty(&p->jobs)) free_job(e->env, LIST_ENTRY(list_pop_front(&p->jobs), job, link));
    worker_leave(&p->w);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    env_free(e->env, p, sizeof *p);
    e->pool = NULL;
}
