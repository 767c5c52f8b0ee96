/* schedules.c -- methods of the engine that are about more than one instance: queues, schedules, removing. The library
 * pumps in each of these that stores something, and returns when that is on disk. */
#include "convert.h"

#include <string.h>

bool engine_usable(engine_object *self) {
    if (!runtime_usable(self->owner)) return false;
    if (!self->engine) raise_error(self->owner->st, HD_CLOSED, NULL);
    return self->engine;
}

/* What a call that has pumped returns. */
static PyObject *stored(engine_object *self, hd_status status, const hd_error *error) {
    runtime_woken(self->owner);
    if (raise_kept(self->owner)) return NULL;
    return status ? raise_status(self->owner, status, error) : Py_NewRef(Py_None);
}

typedef hd_status (*named_fn)(hd_engine *engine, const char *name);

static PyObject *by_name(PyObject *object, PyObject *name, named_fn fn) {
    engine_object *self = (engine_object *)object;
    const char *chars = name_from(name);
    if (!chars || !engine_usable(self)) return NULL;
    return stored(self, fn(self->engine, chars), NULL);
}

PyObject *engine_remove(PyObject *o, PyObject *id) { return by_name(o, id, hd_workflow_remove); }

/* ---- Looking ----------------------------------------------------------------------------- */

typedef hd_status (*state_fn)(hd_engine *engine, const char *name, hd_pool *pool, hd_value *out);

/* The names of members are plain; inputs of a schedule are in tagged form. */
static PyObject *state_by(PyObject *object, PyObject *name, state_fn fn, form how) {
    engine_object *self = (engine_object *)object;
    const char *chars = name_from(name);
    hd_value v;
    if (!chars || !engine_usable(self)) return NULL;
    hd_status status = fn(self->engine, chars, pool_enter(self->owner), &v);
    PyObject *out =
        status ? raise_status(self->owner, status, NULL) : to_python(self->owner, v, how);
    pool_leave(self->owner);
    return out;
}

/* ---- Queues ------------------------------------------------------------------------------ */

/* queue_put(name, most, paused) */
PyObject *engine_queue_put(PyObject *object, PyObject *args) {
    engine_object *self = (engine_object *)object;
    hd_queue queue = { 0 };
    unsigned most;
    int paused;
    if (!engine_usable(self) || !PyArg_ParseTuple(args, "sIp", &queue.name, &most, &paused))
        return NULL;
    queue.most = most;
    queue.paused = paused;
    return stored(self, hd_queue_put(self->engine, &queue), NULL);
}

PyObject *engine_queue(PyObject *object, PyObject *name) {
    return state_by(object, name, hd_queue_state, PLAIN);
}

/* ---- Schedules --------------------------------------------------------------------------- */

static bool chosen(const char *word, const char *const *words, const char *what, int *out) {
    for (*out = 0; words[*out]; ++*out)
        if (!strcmp(word, words[*out])) return true;
    PyErr_Format(PyExc_ValueError, "%s is %s, %s, %s%s%s, not %s", what, words[0], words[1],
                 words[2], words[3] ? " or " : "", words[3] ? words[3] : "", word);
    return false;
}

PyObject *engine_schedule_put(PyObject *object, PyObject *args, PyObject *kw) {
    static const char *const overlaps[] = { "skip", "queue", "allow", "cancel", NULL };
    static const char *const catches[] = { "last", "all", "none", NULL };
    static char *names[] = { "name",     "workflow", "input",    "cron",   "zone",
                             "every",    "begin",    "until",    "jitter", "overlap",
                             "catch_up", "window",   "priority", NULL };
    engine_object *self = (engine_object *)object;
    runtime_object *owner = self->owner;
    hd_schedule s = { 0 };
    hd_error error = { 0 };
    PyObject *input;
    const char *overlap = "skip", *catch_up = "last";
    double begin = 0, until = 0;
    int priority = 0, which[2];
    if (!engine_usable(self) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "ssO|$zzddddssdi", names, &s.name, &s.workflow,
                                     &input, &s.cron, &s.zone, &s.every_s, &begin, &until,
                                     &s.jitter_s, &overlap, &catch_up, &s.window_s, &priority) ||
        !chosen(overlap, overlaps, "overlap", &which[0]) ||
        !chosen(catch_up, catches, "catch_up", &which[1]) || !ms_from(begin, "begin", &s.from_ms) ||
        !ms_from(until, "until", &s.until_ms))
        return NULL;
    s.overlap = (hd_overlap)which[0];
    s.catch_up = (hd_catch_up)which[1];
    s.priority = priority;
    s.input = from_python(owner, pool_enter(owner), input, TAGGED);
    hd_status status = PyErr_Occurred() ? HD_KIND : hd_schedule_put(self->engine, &s, &error);
    pool_leave(owner);
    return stored(self, status, &error);
}

PyObject *engine_schedule_remove(PyObject *o, PyObject *name) {
    return by_name(o, name, hd_schedule_remove);
}
PyObject *engine_schedule_pause(PyObject *o, PyObject *name) {
    return by_name(o, name, hd_schedule_pause);
}
PyObject *engine_schedule_resume(PyObject *o, PyObject *name) {
    return by_name(o, name, hd_schedule_resume);
}
PyObject *engine_schedule_trigger(PyObject *o, PyObject *name) {
    return by_name(o, name, hd_schedule_trigger);
}
PyObject *engine_schedule(PyObject *o, PyObject *name) {
    return state_by(o, name, hd_schedule_state, TAGGED);
}

static bool add_name(const char *name, void *ctx) {
    return list_add(ctx, PyUnicode_FromString(name));
}

PyObject *engine_schedules(PyObject *object, PyObject *unused) {
    engine_object *self = (engine_object *)object;
    (void)unused;
    if (!engine_usable(self)) return NULL;
    PyObject *out = PyList_New(0);
    hd_status status = out ? hd_schedule_list(self->engine, add_name, out) : HD_OK;
    return list_done(self->owner, out, status);
}
