/* engine.c -- the type Engine: workflows. Values cross in tagged form. Actions are begun by one Python function,
 * which ends the attempt later by its token. */
#include "convert.h"

#include <structmember.h>
#include <string.h>

/* ---- Actions ----------------------------------------------------------------------------- */

/* An interrupt ends the program, and fails no step: it is given back, for whatever program goes on with it. */
static hd_status interrupted(hd_action *a, callback *c, PyObject *e) {
    interrupt_keep(c->owner, e);
    (void)hd_attempt_give_back(c->engine->engine, hd_action_token(a));
    return HD_PENDING;
}

static hd_status raised(hd_action *a, PyObject *e) {
    PyObject *text = PyObject_Str(e);
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(e), "__name__");
    const char *class_ = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    hd_status status =
        hd_action_raise(a, class_ ? class_ : "RuntimeError", "%s", message ? message : "");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(name);
    return status;
}

/* begin(token, action, id, attempt, heartbeat_ms, args). What it raises is raised in the workflow. */
static hd_status begin(hd_action *a, hd_value args, void *ctx) {
    callback *c = ctx;
    PyObject *data = to_python(c->owner, args, TAGGED);
    PyObject *answer =
        data ? PyObject_CallFunction(c->engine->begin, "KOsIKO",
                                     (unsigned long long)hd_action_token(a), c->name,
                                     hd_action_id(a), hd_action_attempt(a),
                                     (unsigned long long)hd_action_heartbeat_ms(a), data)
             : NULL;
    Py_XDECREF(data);
    Py_XDECREF(answer);
    if (answer) return HD_PENDING;
    PyObject *e = exception_take();
    hd_status status = exception_is_interrupt(e) ? interrupted(a, c, e) : raised(a, e);
    Py_DECREF(e);
    return status;
}

static void revoked(uint64_t token, const char *why, void *ctx) {
    engine_object *self = ctx;
    if (!is_set(self->revoked)) return;
    PyObject *answer = PyObject_CallFunction(self->revoked, "Ks", (unsigned long long)token, why);
    if (!answer) (void)status_of_exception(self->owner, NULL, "revoked");
    Py_XDECREF(answer);
}

/* Registered once for each name: the callback lives as long as the runtime. */
static PyObject *engine_action(PyObject *object, PyObject *name) {
    engine_object *self = (engine_object *)object;
    const char *chars = name_from(name);
    if (!chars || !engine_usable(self)) return NULL;
    callback *c = callback_new(self->owner, Py_None, NULL, (hd_cell){ 0 });
    if (!c) return NULL;
    c->engine = self;
    c->name = Py_NewRef(name);
    hd_action_spec spec = { .name = chars, .fn = begin, .ctx = c, .later = true };
    hd_status status = hd_action_register(self->engine, &spec);
    if (status) callback_free(c);
    runtime_woken(self->owner);
    return none_or_raise(self->owner, status);
}

typedef hd_status (*end_fn)(hd_engine *engine, uint64_t token, hd_value v);

static PyObject *end_attempt(PyObject *object, PyObject *args, end_fn fn) {
    engine_object *self = (engine_object *)object;
    unsigned long long token;
    PyObject *data;
    if (!engine_usable(self) || !PyArg_ParseTuple(args, "KO", &token, &data)) return NULL;
    hd_value v = from_python(self->owner, pool_enter(self->owner), data, TAGGED);
    hd_status status = PyErr_Occurred() ? HD_KIND : fn(self->engine, token, v);
    pool_leave(self->owner);
    if (PyErr_Occurred()) return NULL;
    runtime_woken(self->owner);
    if (status && status != HD_NOT_FOUND) return raise_status(self->owner, status, NULL);
    return PyBool_FromLong(status == HD_OK);
}

static PyObject *engine_complete(PyObject *object, PyObject *args) {
    return end_attempt(object, args, hd_attempt_return);
}
static PyObject *engine_fail(PyObject *object, PyObject *args) {
    return end_attempt(object, args, hd_attempt_raise);
}

static PyObject *say(PyObject *object, PyObject *token, hd_status (*fn)(hd_engine *, uint64_t)) {
    engine_object *self = (engine_object *)object;
    unsigned long long n = PyLong_AsUnsignedLongLong(token);
    if (PyErr_Occurred() || !engine_usable(self)) return NULL;
    hd_status status = fn(self->engine, n);
    runtime_woken(self->owner);
    return PyBool_FromLong(status == HD_OK);
}

static PyObject *engine_heartbeat(PyObject *object, PyObject *token) {
    return say(object, token, hd_attempt_heartbeat);
}
static PyObject *engine_give_back(PyObject *object, PyObject *token) {
    return say(object, token, hd_attempt_give_back);
}

/* ---- Workflows --------------------------------------------------------------------------- */

/* The IR is plain data. */
static PyObject *engine_register(PyObject *object, PyObject *ir) {
    engine_object *self = (engine_object *)object;
    runtime_object *owner = self->owner;
    char version[HD_ID_SIZE];
    hd_error error = { 0 };
    if (!engine_usable(self)) return NULL;
    hd_value v = from_python(owner, pool_enter(owner), ir, PLAIN);
    hd_status status =
        PyErr_Occurred() ? HD_KIND : hd_workflow_register(self->engine, v, version, &error);
    pool_leave(owner);
    if (status) return raise_status(owner, status, &error);
    runtime_woken(owner);
    return PyUnicode_FromString(version);
}

/* (id, whether it is new) */
static PyObject *engine_start(PyObject *object, PyObject *args, PyObject *kw) {
    static char *names[] = { "name", "input", "key", "priority", "queue", NULL };
    engine_object *self = (engine_object *)object;
    runtime_object *owner = self->owner;
    const char *name;
    PyObject *input;
    int priority = 0;
    hd_start_options options = { 0 };
    char id[HD_INSTANCE_ID_SIZE] = "";
    if (!engine_usable(self) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "sO|$ziz", names, &name, &input, &options.key,
                                     &priority, &options.queue))
        return NULL;
    options.priority = priority;
    hd_value v = from_python(owner, pool_enter(owner), input, TAGGED);
    hd_status status = PyErr_Occurred() ? HD_KIND
                       : owner->tx
                           ? hd_workflow_start_in(self->engine, owner->tx, name, v, &options, id)
                           : hd_workflow_start(self->engine, name, v, &options, id);
    pool_leave(owner);
    if (status && status != HD_EXISTS) return raise_status(owner, status, NULL);
    runtime_woken(owner);
    return Py_BuildValue("(sO)", id, status ? Py_False : Py_True);
}

/* then(id, fn): fn(state, value): "done", "failed", "cancelled" or "lost". */
static void ended(const char *id, hd_status status, hd_value result, void *ctx) {
    callback *c = ctx;
    runtime_object *owner = c->owner;
    const char *state = status == HD_OK        ? "done"
                        : status == HD_FAILED  ? "failed"
                        : status == HD_ABORTED ? "cancelled"
                                               : hd_status_name(status);
    (void)id;
    PyObject *value = to_python(owner, result, TAGGED);
    if (!value) (void)status_of_exception(owner, NULL, id);
    PyObject *answer = PyObject_CallFunction(c->fn, "sO", state, value ? value : Py_None);
    if (!answer) (void)status_of_exception(owner, NULL, id);
    Py_XDECREF(value);
    Py_XDECREF(answer);
    callback_free(c);
}

/* stored(fn): fn() when what was said until now is on disk. */
static void is_stored(hd_status status, void *ctx) {
    callback *c = ctx;
    PyObject *answer = PyObject_CallFunction(c->fn, "i", status == HD_OK);
    if (!answer) (void)status_of_exception(c->owner, NULL, "stored");
    Py_XDECREF(answer);
    callback_free(c);
}

static PyObject *engine_stored(PyObject *object, PyObject *fn) {
    engine_object *self = (engine_object *)object;
    if (!engine_usable(self)) return NULL;
    callback *c = callback_new(self->owner, fn, NULL, (hd_cell){ 0 });
    if (!c) return NULL;
    c->engine = self; /* freed with the engine if it is not called */
    hd_status status = hd_workflow_stored(self->engine, is_stored, c);
    if (status) callback_free(c);
    runtime_woken(self->owner);
    return none_or_raise(self->owner, status);
}

static PyObject *engine_then(PyObject *object, PyObject *args) {
    engine_object *self = (engine_object *)object;
    const char *id;
    PyObject *fn;
    if (!engine_usable(self) || !PyArg_ParseTuple(args, "sO", &id, &fn)) return NULL;
    callback *c = callback_new(self->owner, fn, NULL, (hd_cell){ 0 });
    if (!c) return NULL;
    hd_status status = hd_workflow_then(self->engine, id, ended, c);
    if (status) callback_free(c);
    runtime_woken(self->owner);
    return none_or_raise(self->owner, status);
}

typedef hd_status (*control_fn)(hd_engine *engine, const char *id);

static PyObject *control(PyObject *object, PyObject *id, control_fn fn) {
    engine_object *self = (engine_object *)object;
    const char *chars = name_from(id);
    if (!chars || !engine_usable(self)) return NULL;
    hd_status status = fn(self->engine, chars);
    runtime_woken(self->owner);
    return none_or_raise(self->owner, status);
}

static PyObject *engine_cancel(PyObject *o, PyObject *id) {
    return control(o, id, hd_workflow_cancel);
}
static PyObject *engine_pause(PyObject *o, PyObject *id) {
    return control(o, id, hd_workflow_pause);
}
static PyObject *engine_resume(PyObject *o, PyObject *id) {
    return control(o, id, hd_workflow_resume);
}

static PyObject *engine_signal(PyObject *object, PyObject *args) {
    engine_object *self = (engine_object *)object;
    const char *id, *name;
    PyObject *payload;
    if (!engine_usable(self) || !PyArg_ParseTuple(args, "ssO", &id, &name, &payload)) return NULL;
    hd_value v = from_python(self->owner, pool_enter(self->owner), payload, TAGGED);
    hd_status status = PyErr_Occurred() ? HD_KIND : hd_workflow_signal(self->engine, id, name, v);
    pool_leave(self->owner);
    runtime_woken(self->owner);
    return PyErr_Occurred() ? NULL : none_or_raise(self->owner, status);
}

static PyObject *engine_rerun(PyObject *object, PyObject *args) {
    engine_object *self = (engine_object *)object;
    const char *id, *node;
    if (!engine_usable(self) || !PyArg_ParseTuple(args, "sz", &id, &node)) return NULL;
    hd_status status = hd_workflow_rerun(self->engine, id, node);
    runtime_woken(self->owner);
    return none_or_raise(self->owner, status);
}

/* ---- Looking ----------------------------------------------------------------------------- */

static PyObject *engine_state(PyObject *object, PyObject *id) {
    engine_object *self = (engine_object *)object;
    const char *chars = name_from(id);
    hd_value v;
    if (!chars || !engine_usable(self)) return NULL;
    hd_status status = hd_workflow_state(self->engine, chars, pool_enter(self->owner), &v);
    PyObject *out =
        status ? raise_status(self->owner, status, NULL) : to_python(self->owner, v, PLAIN);
    pool_leave(self->owner);
    return out;
}

static bool list_one(const hd_workflow_entry *entry, void *ctx) {
    return list_add(ctx, Py_BuildValue("(ss)", entry->id, entry->status));
}

static PyObject *engine_list(PyObject *object, PyObject *args, PyObject *kw) {
    static char *names[] = { "status", "name", "after", "limit", NULL };
    engine_object *self = (engine_object *)object;
    hd_workflow_filter filter = { 0 };
    unsigned limit = 0;
    if (!engine_usable(self) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "|$zzzI", names, &filter.status, &filter.name,
                                     &filter.after, &limit))
        return NULL;
    filter.limit = limit;
    PyObject *out = PyList_New(0);
    hd_status status = out ? hd_workflow_list(self->engine, &filter, list_one, out) : HD_OK;
    return list_done(self->owner, out, status);
}

typedef struct entries {
    runtime_object *owner;
    PyObject *list;
} entries;

static bool note_entry(hd_value entry, void *ctx) {
    entries *all = ctx;
    return list_add(all->list, to_python(all->owner, entry, PLAIN));
}

static PyObject *engine_journal(PyObject *object, PyObject *id) {
    engine_object *self = (engine_object *)object;
    const char *chars = name_from(id);
    if (!chars || !engine_usable(self)) return NULL;
    entries all = { self->owner, PyList_New(0) };
    hd_status status =
        all.list ? hd_workflow_journal(self->engine, chars, note_entry, &all) : HD_OK;
    return list_done(self->owner, all.list, status);
}

static PyObject *engine_stats(PyObject *object, PyObject *unused) {
    engine_object *self = (engine_object *)object;
    hd_engine_stats s;
    (void)unused;
    if (!engine_usable(self)) return NULL;
    hd_engine_stat(self->engine, &s);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "started",
                         s.started, "finished", s.finished, "steps", s.steps, "attempts",
                         s.attempts, "retries", s.retries, "lost", s.lost, "duplicates",
                         s.duplicates, "commits", s.commits, "removed", s.removed, "ready", s.ready,
                         "running", s.running, "timers", s.timers, "open", s.open, "shards",
                         s.shards);
}

static PyObject *engine_cell(PyObject *object, PyObject *id) {
    engine_object *self = (engine_object *)object;
    const char *chars = name_from(id);
    char name[HD_INSTANCE_ID_SIZE + 200];
    if (!chars || !engine_usable(self)) return NULL;
    hd_cell_print(self->owner->rt, hd_workflow_cell(self->engine, chars), name, sizeof name);
    return PyUnicode_FromString(name);
}

/* ---- Workers ----------------------------------------------------------------------------- */

static PyObject *engine_serve(PyObject *object, PyObject *socket) {
    engine_object *self = (engine_object *)object;
    hd_engine_serve_options options = { 0 };
    if (!engine_usable(self)) return NULL;
    if (is_set(socket) && !(options.socket = name_from(socket))) return NULL;
    hd_status status = hd_engine_serve(self->engine, &options);
    if (status) return raise_status(self->owner, status, NULL);
    return PyUnicode_FromString(hd_engine_socket(self->engine));
}

/* ---- The type ---------------------------------------------------------------------------- */

/* The names of a tuple, with NULL behind the last; to be freed with PyMem_Free. None: NULL. */
static bool names_of(PyObject *from, const char ***out) {
    *out = NULL;
    if (!is_set(from)) return true;
    Py_ssize_t count = PyTuple_Size(from);
    if (count < 0) return false;
    *out = PyMem_Calloc((size_t)count + 1, sizeof **out);
    if (!*out) return PyErr_NoMemory(), false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!((*out)[i] = name_from(PyTuple_GetItem(from, i)))) return false;
    return true;
}

PyObject *runtime_engine(PyObject *object, PyObject *args, PyObject *kw) {
    static char *names[] = { "begin",   "revoked",   "space",  "observer", "queues",
                             "keep_ms", "keep_most", "shards", NULL };
    runtime_object *owner = (runtime_object *)object;
    PyObject *begin_, *revoked_, *queues_ = NULL;
    const char *space = NULL, **queues;
    int observer = 0;
    unsigned shards = 0;
    unsigned long long keep_ms = 0, keep_most = 0;
    hd_error error = { 0 };
    if (!runtime_usable(owner) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "OO|$zpOKKI", names, &begin_, &revoked_, &space,
                                     &observer, &queues_, &keep_ms, &keep_most, &shards))
        return NULL;
    PyTypeObject *type = owner->st->engine_type;
    engine_object *self = (engine_object *)object_alloc(type);
    if (!self) return NULL;
    self->owner = (runtime_object *)Py_NewRef(object);
    self->begin = Py_NewRef(begin_);
    self->revoked = Py_NewRef(revoked_);
    hd_status status = HD_USAGE;
    if (names_of(queues_, &queues)) {
        hd_engine_options options = { .space = space,
                                      .observer = observer,
                                      .queues = queues,
                                      .keep_ms = keep_ms,
                                      .keep_most = keep_most,
                                      .shards = shards };
        status = hd_engine_open(owner->rt, &options, &self->engine, &error);
    }
    PyMem_Free(queues);
    if (status) {
        Py_DECREF(self);
        return raise_status(owner, status, &error);
    }
    hd_engine_set_revoked(self->engine, revoked, self);
    self->next = owner->engines;
    owner->engines = self;
    return (PyObject *)self;
}

static int engine_traverse(PyObject *object, visitproc visit, void *arg) {
    engine_object *self = (engine_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->owner);
    Py_VISIT(self->begin);
    Py_VISIT(self->revoked);
    return 0;
}

/* Callbacks of its actions refer to it: they end with it. */
static void forget_callbacks(engine_object *self) {
    for (callback *c = self->owner->callbacks, *next; c; c = next) {
        next = c->next;
        if (c->engine == self) callback_free(c);
    }
}

static void engine_end(engine_object *self) {
    if (self->engine && self->owner->rt) {
        engine_object **at = &self->owner->engines;
        hd_engine_close(self->engine);
        while (*at != self) at = &(*at)->next;
        *at = self->next;
    }
    self->engine = NULL;
    forget_callbacks(self);
}

static PyObject *engine_close(PyObject *object, PyObject *unused) {
    engine_object *self = (engine_object *)object;
    (void)unused;
    if (!self->engine) Py_RETURN_NONE;
    if (!engine_usable(self)) return NULL;
    hd_error why = { .status = HD_USAGE,
                     .message = "a function that the engine calls cannot close it" };
    if (hd_runtime_is_at_work(self->owner->rt)) return raise_status(self->owner, HD_USAGE, &why);
    engine_end(self);
    Py_RETURN_NONE;
}

static void engine_dealloc(PyObject *object) {
    engine_object *self = (engine_object *)object;
    PyObject_GC_UnTrack(object);
    if (self->owner && self->owner->rt && !runtime_is_here(self->owner))
        return; /* the library refers to it */
    if (self->owner) engine_end(self);
    Py_CLEAR(self->begin);
    Py_CLEAR(self->revoked);
    Py_CLEAR(self->owner);
    object_free(object);
}

static PyObject *get_active(PyObject *object, void *unused) {
    engine_object *self = (engine_object *)object;
    (void)unused;
    return engine_usable(self) ? PyBool_FromLong(hd_engine_is_active(self->engine)) : NULL;
}

static PyObject *get_socket(PyObject *object, void *unused) {
    engine_object *self = (engine_object *)object;
    (void)unused;
    if (!engine_usable(self)) return NULL;
    const char *path = hd_engine_socket(self->engine);
    return path ? PyUnicode_FromString(path) : Py_NewRef(Py_None);
}

static PyGetSetDef getters[] = {
    { "active", get_active, NULL, "Whether it runs the space's instances now.", NULL },
    { "socket", get_socket, NULL, "Where workers connect; None: nowhere.", NULL },
    { 0 }
};

#define KEYWORDS(fn) ((PyCFunction)(void (*)(void))(fn)), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    { "action", engine_action, METH_O, "Attempts at the action are begun here." },
    { "complete", engine_complete, METH_VARARGS,
      "Ends an attempt with a result; False: it is late." },
    { "fail", engine_fail, METH_VARARGS, "Ends an attempt with an exception; False: it is late." },
    { "heartbeat", engine_heartbeat, METH_O, "The attempt is still at work." },
    { "give_back", engine_give_back, METH_O, "The attempt was not made." },
    { "register", engine_register, METH_O, "Registers a workflow; returns its version." },
    { "start", KEYWORDS(engine_start), "Starts an instance: (id, whether it is new)." },
    { "then", engine_then, METH_VARARGS, "Calls fn(state, value) when the instance is over." },
    { "stored", engine_stored, METH_O, "Calls fn() when what was said until now is on disk." },
    { "cancel", engine_cancel, METH_O, "Raises CancelledError where it waits." },
    { "pause", engine_pause, METH_O, "It begins no step." },
    { "resume", engine_resume, METH_O, "It goes on." },
    { "signal", engine_signal, METH_VARARGS, "Gives it a signal." },
    { "rerun", engine_rerun, METH_VARARGS, "Runs it again." },
    { "remove", engine_remove, METH_O, "Deletes an instance that is over." },
    { "queue_put", engine_queue_put, METH_VARARGS, "Stores the bounds of a queue." },
    { "queue", engine_queue, METH_O, "What a queue is and holds." },
    { "schedule_put", KEYWORDS(engine_schedule_put), "Stores a schedule." },
    { "schedule_remove", engine_schedule_remove, METH_O, "Deletes a schedule." },
    { "schedule_pause", engine_schedule_pause, METH_O, "Its times pass." },
    { "schedule_resume", engine_schedule_resume, METH_O, "Its times count again." },
    { "schedule_trigger", engine_schedule_trigger, METH_O, "A time out of turn." },
    { "schedule", engine_schedule, METH_O, "What a schedule is." },
    { "schedules", engine_schedules, METH_NOARGS, "The names of all." },
    { "state", engine_state, METH_O, "What it is and does now." },
    { "list", KEYWORDS(engine_list), "Instances: (id, status)." },
    { "journal", engine_journal, METH_O, "What it has done." },
    { "stats", engine_stats, METH_NOARGS, "Counters." },
    { "cell", engine_cell, METH_O, "The name of the instance's cell." },
    { "serve", engine_serve, METH_O, "Listens for workers; returns the socket's path." },
    { "close", engine_close, METH_NOARGS, "Closes the engine." },
    { 0 },
};

static PyType_Slot slots[] = { { Py_tp_dealloc, engine_dealloc },
                               { Py_tp_traverse, engine_traverse },
                               { Py_tp_methods, methods },
                               { Py_tp_getset, getters },
                               { Py_tp_doc, "Runs the workflows of a space." },
                               { 0, NULL } };
static PyType_Spec spec = { .name = "_heddle.Engine",
                            .basicsize = sizeof(engine_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                     Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

bool engine_init(module_state *st) {
    st->engine_type = make_type(st, &spec, "Engine");
    return st->engine_type;
}
