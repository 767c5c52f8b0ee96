/* pool.c -- threads for actions.
 *
 * An attempt crosses to a thread as text: arguments there, result back, each parsed into the heap of the side
 * that reads it. What a thread has finished comes back by hd_runtime_post, which wakes the runtime. The threads
 * are started with the first attempt that needs one and end with the engine. */
#include "workflow/engine.h"

#include "base/env.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS_MAX 256

typedef struct job {
    list_node link;
    hd_engine *e;
    hd_action_spec spec;
    uint64_t token;
    uint32_t attempt;
    char *id, *args; /* owned */
    char *result;    /* owned; NULL: it failed */
    size_t args_length, result_length;
    completion done; /* without the result */
} job;

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    list jobs;
    bool closing;
    uint32_t count, idle;
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
    hd_engine *e = rt->work.ctx;
    const hd_env *env = &rt->env;
    hd_pool *pool = NULL;
    completion *c = e ? env_new0(env, sizeof *c) : NULL;
    if (c) {
        *c = j->done;
        c->token = j->token;
        if (j->result && !hd_pool_open(rt->heap, &pool)) {
            c->result = hd_value_ref(hd_json_parse(pool, j->result, j->result_length, NULL));
            hd_pool_close(pool);
        }
        step_arrived(e, c);
    } /* without memory the step stays claimed until its timeout, or a restart */
    free_job(env, j);
}

/* ---- on a thread of the pool */

static void run_job(struct pool *p, job *j) {
    hd_heap *heap = NULL;
    hd_pool *pool = NULL;
    action a = { j->id, j->spec };
    if (hd_heap_open(&p->env, NULL, &heap) || hd_pool_open(heap, &pool)) {
        snprintf(j->done.class_name, sizeof j->done.class_name, "MemoryError");
    } else {
        hd_value args = hd_json_parse(pool, j->args, j->args_length, NULL);
        step_run(&a, j->id, j->attempt, pool, args, &j->done);
        const char *result =
            hd_json_print(pool, j->done.result, HD_JSON_COMPACT, &j->result_length);
        j->result = result ? env_new_copy(&p->env, result, j->result_length + 1) : NULL;
        if (!j->result && !j->done.class_name[0])
            snprintf(j->done.class_name, sizeof j->done.class_name, "MemoryError");
    }
    j->done.result = (hd_value){ 0 };
    hd_pool_close(pool);
    hd_heap_close(heap);
    if (hd_runtime_post(p->rt, arrive, j)) free_job(&p->env, j);
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
        pthread_mutex_unlock(&p->lock);
        run_job(p, j);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- life */

static struct pool *pool_of(hd_engine *e) {
    if (e->pool) return e->pool;
    struct pool *p = env_new0(e->env, sizeof *p);
    if (!p) return NULL;
    p->env = *e->env;
    p->rt = e->rt;
    list_init(&p->jobs);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    return e->pool = p;
}

/* A thread more, if all are busy and there may be one more. */
static void grow(hd_engine *e, struct pool *p) {
    uint32_t most = e->threads < THREADS_MAX ? e->threads : THREADS_MAX;
    if (p->idle || p->count >= most) return;
    if (!pthread_create(&p->threads[p->count], NULL, serve, p)) p->count++;
}

static job *new_job(hd_engine *e, const action *a, strand *s, const char *id) {
    hd_pool *pool;
    job *j = env_new0(e->env, sizeof *j);
    if (!j || hd_pool_open(e->heap, &pool)) return env_free(e->env, j, sizeof *j), NULL;
    *j = (job){ .e = e, .spec = a->spec, .token = s->token, .attempt = s->attempt };
    const char *args = hd_json_print(pool, s->args, HD_JSON_COMPACT, &j->args_length);
    j->args = args ? env_new_copy(e->env, args, j->args_length + 1) : NULL;
    j->id = env_new_copy(e->env, id, strlen(id) + 1);
    hd_pool_close(pool);
    if (j->args && j->id) return j;
    free_job(e->env, j);
    return NULL;
}

hd_status pool_give(hd_engine *e, const action *a, strand *s, const char *id) {
    struct pool *p = pool_of(e);
    job *j = p ? new_job(e, a, s, id) : NULL;
    if (!j) return HD_NOMEM;
    pthread_mutex_lock(&p->lock);
    list_push_back(&p->jobs, &j->link);
    grow(e, p);
    pthread_cond_signal(&p->wake);
    bool served = p->count > 0;
    pthread_mutex_unlock(&p->lock);
    return served ? HD_OK : runtime_fail(e->rt, HD_NOMEM, "no thread can be started for actions");
}

void pool_close(hd_engine *e) {
    struct pool *p = e->pool;
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < p->count; i++) pthread_join(p->threads[i], NULL);
    while (!list_empty(&p->jobs)) free_job(e->env, LIST_ENTRY(list_pop_front(&p->jobs), job, link));
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    env_free(e->env, p, sizeof *p);
    e->pool = NULL;
}
