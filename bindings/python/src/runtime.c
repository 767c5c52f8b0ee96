/* runtime.c -- the type Runtime: opening, driving, closing. The methods of its other parts are in their own files. */
#include "convert.h"

#include <structmember.h>
#include <stdio.h>
#include <string.h>

/* ---- Checks ------------------------------------------------------------------------------ */

/* While a task has a transaction open, Store._guard looks whether the caller is that task. */
static bool guarded(runtime_object *self) {
    if (!is_set(self->guard) || self->guarding) return true;
    self->guarding = true;
    PyObject *guard = Py_NewRef(self->guard), *answer = PyObject_CallNoArgs(guard);
    self->guarding = false;
    Py_DECREF(guard);
    Py_XDECREF(answer);
    return answer;
}

bool runtime_is_here(const runtime_object *self) {
    return self->rt && self->forks == self->st->forks &&
           PyThread_get_thread_ident() == self->thread;
}

static PyObject *refuse_fork(runtime_object *self) {
    hd_error error = {
        .status = HD_USAGE,
        .message = "the store was opened before fork(): open it again in the child, or start "
                   "processes with the method \"spawn\""
    };
    return raise_error(self->st, HD_USAGE, &error);
}

bool runtime_usable(runtime_object *self) {
    if (!self->rt) {
        hd_error error = { .status = HD_CLOSED, .message = "the store is closed" };
        return raise_error(self->st, HD_CLOSED, &error), false;
    }
    if (self->forks != self->st->forks) return refuse_fork(self), false;
    if (PyThread_get_thread_ident() == self->thread) return guarded(self);
    hd_error error = {
        .status = HD_USAGE,
        .message =
            "a store belongs to the thread that opened it: open another one on the same file "
            "in this thread, or hand the work over with store.post"
    };
    return raise_error(self->st, HD_USAGE, &error), false;
}

bool runtime_may_wait(runtime_object *self, const char *call) {
    hd_error error = { .status = HD_USAGE };
    if (!runtime_usable(self)) return false;
    if (!self->tx) return true;
    snprintf(
        error.message, sizeof error.message,
        "%s() cannot be called inside a transaction, a computation, an effect, a sink or a handler",
        call);
    return raise_error(self->st, HD_USAGE, &error), false;
}

hd_pool *pool_enter(runtime_object *self) {
    self->pool_users++;
    return self->pool;
}

void pool_leave(runtime_object *self) {
    if (--self->pool_users == 0 && self->rt) hd_pool_clear(self->pool);
}

void runtime_woken(runtime_object *self) {
    if (!is_set(self->on_work) || self->woken) return;
    self->woken = true;
    PyObject *type, *e, *traceback; /* of a call that has failed: on_work must not see it */
    PyErr_Fetch(&type, &e, &traceback);
    PyObject *answer = PyObject_CallNoArgs(self->on_work);
    if (!answer) {
        exception_print(self, self->on_work);
        self->woken = false; /* the next call tries again: nothing else would wake the program */
    }
    Py_XDECREF(answer);
    PyErr_Restore(type, e, traceback);
}

/* ---- Callbacks --------------------------------------------------------------------------- */

callback *callback_new(runtime_object *owner, PyObject *fn, PyObject *extra, hd_cell cell) {
    callback *c = PyMem_Malloc(sizeof *c);
    if (!c) return (callback *)(void *)PyErr_NoMemory();
    *c = (callback){ .owner = owner,
                     .fn = Py_NewRef(fn),
                     .extra = Py_XNewRef(extra),
                     .cell = cell,
                     .next = owner->callbacks };
    if (c->next) c->next->prev = c;
    owner->callbacks = c;
    return c;
}

void callback_free(void *ctx) {
    callback *c = ctx;
    if (!c) return;
    hd_schema_close(c->schema);
    c->schema = NULL;
    if (c->owner->closing) return; /* close_runtime frees it: a __del__ could use the runtime */
    if (c->prev) c->prev->next = c->next;
    else c->owner->callbacks = c->next;
    if (c->next) c->next->prev = c->prev;
    Py_XDECREF(c->fn);
    Py_XDECREF(c->extra);
    Py_XDECREF(c->name);
    Py_XDECREF(c->version);
    PyMem_Free(c);
}

/* ---- Opening and closing ----------------------------------------------------------------- */

static bool open_runtime(runtime_object *self, const char *file, const hd_options *options) {
    hd_error error = { 0 };
    hd_status status = hd_open(file, options, &self->rt, &error);
    if (!status) status = hd_pool_open(hd_runtime_heap(self->rt), &self->pool);
    if (!status) status = errors_listen(self);
    if (!status) return true;
    raise_error(self->st, status, &error);
    if (self->rt) hd_close(self->rt);
    self->rt = NULL;
    log_threads(self);
    return false;
}

static void close_engines(runtime_object *self) {
    for (engine_object *e = self->engines; e; e = e->next) {
        hd_engine_close(e->engine);
        e->engine = NULL;
    }
    self->engines = NULL;
}

/* Whether a function that the library or a conversion has called has not returned yet. */
static bool is_at_work(const runtime_object *self) {
    return hd_runtime_is_at_work(self->rt) || self->pool_users;
}

/* hd_close runs computations and effects that are due, whose functions use the pool and make values and runs: these are
 * given up when it has returned. The pool and the values were closed with the heap.
 *
 * Callbacks that the library has not released by now are freed here: those of verdicts are released by nothing else. */
static hd_status close_runtime(runtime_object *self) {
    hd_runtime *rt = self->rt;
    if (!rt) return HD_OK;
    if (!runtime_is_here(self) || is_at_work(self))
        return HD_USAGE; /* it cannot be closed from here: its memory stays */
    (void)hd_runtime_sync(rt);
    close_engines(self);
    self->closing = true;
    hd_status status = hd_close(rt);
    self->closing = false;
    self->rt = NULL;
    self->pool = NULL;
    values_forget(self);
    runs_drop(self);
    log_threads(self);
    while (self->callbacks) callback_free(self->callbacks);
    return status;
}

static PyObject *runtime_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
    static char *names[] = { "file",         "normal",    "read_only", "must_exist",
                             "keep_history", "principal", "session",   "strict",
                             "wall_ms",      "derive",    NULL };
    const char *file = NULL, *principal = NULL, *session = NULL;
    int normal = 0, read_only = 0, must_exist = 0, keep_history = 0, strict = 1;
    int derive = HD_DERIVE_DEFAULT;
    unsigned long long wall_ms = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "|z$ppppzzpKi:Runtime", names, &file, &normal,
                                     &read_only, &must_exist, &keep_history, &principal, &session,
                                     &strict, &wall_ms, &derive))
        return NULL;
    runtime_object *self = (runtime_object *)object_alloc(type);
    if (!self) return NULL;
    self->st = PyType_GetModuleState(type);
    self->module = Py_NewRef(self->st->module);
    self->thread = PyThread_get_thread_ident();
    self->forks = self->st->forks;
    self->lines = log_lines_new();
    if (!self->lines || (wall_ms && !(self->clock = clock_new(wall_ms)))) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->env = clock_env(self);
    hd_options options = { .env = &self->env,
                           .principal = principal,
                           .session = session,
                           .durability = normal ? HD_DURABILITY_NORMAL : HD_DURABILITY_FULL,
                           .read_only = read_only,
                           .must_exist = must_exist,
                           .keep_history = keep_history,
                           .strict = strict,
                           .derive = (hd_derive)derive };
    if (open_runtime(self, file, &options)) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static int runtime_traverse(PyObject *object, visitproc visit, void *arg) {
    runtime_object *self = (runtime_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->module);
    Py_VISIT(self->failed);
    Py_VISIT(self->on_work);
    Py_VISIT(self->guard);
    Py_VISIT(self->inside);
    Py_VISIT(self->store);
    for (callback *c = self->callbacks; c; c = c->next) {
        Py_VISIT(c->fn);
        Py_VISIT(c->extra);
    }
    return 0;
}

static int runtime_clear(PyObject *object) {
    runtime_object *self = (runtime_object *)object;
    Py_CLEAR(self->failed);
    Py_CLEAR(self->on_work);
    Py_CLEAR(self->guard);
    Py_CLEAR(self->inside);
    Py_CLEAR(self->store);
    return 0;
}

/* Only the thread that opened a store can close it. */
static void tell_lost(runtime_object *self) {
    static const char text[] = "a store was not closed by the thread that opened it: what was "
                               "written to it last may be lost";
    if (PyErr_WarnEx(PyExc_ResourceWarning, text, 1)) PyErr_WriteUnraisable((PyObject *)self);
    if (!is_set(self->st->log)) return;
    Py_XDECREF(PyObject_CallFunction(self->st->log, "ss", "warning", text));
}

/* A store that the program has not closed is closed with its object: what was written is on disk. The garbage collector
 * calls this before it takes anything apart, so functions that run once more find what they refer to. */
static void runtime_finalize(PyObject *object) {
    PyObject *type, *e, *traceback; /* that are raised already */
    PyErr_Fetch(&type, &e, &traceback);
    runtime_object *self = (runtime_object *)object;
    bool lost = self->rt && self->forks == self->st->forks && !runtime_is_here(self);
    (void)close_runtime(self);
    if (lost && !self->lost) tell_lost(self);
    self->lost = lost;
    if (PyErr_Occurred()) PyErr_WriteUnraisable(object);
    PyErr_Restore(type, e, traceback);
}

/* An object that was in no cycle has not been finalized by the collector. The functions that close_runtime may run take
 * and give back references to the object; its count of 1 keeps them from calling this function again. */
static void runtime_dealloc(PyObject *object) {
    runtime_object *self = (runtime_object *)object;
    PyObject_GC_UnTrack(object);
    Py_SET_REFCNT(object, 1);
    if (self->rt) runtime_finalize(object);
    Py_SET_REFCNT(object, 0);
    Py_CLEAR(self->failed);
    Py_CLEAR(self->on_work);
    Py_CLEAR(self->guard);
    Py_CLEAR(self->inside);
    Py_CLEAR(self->store);
    if (self->rt) return; /* threads of the library refer to the object */
    clock_free(self->clock);
    log_lines_free(self->lines);
    Py_CLEAR(self->interrupt);
    PyObject *module = self->module;
    object_free(object);
    Py_XDECREF(module);
}

static PyObject *runtime_close(PyObject *object, PyObject *unused) {
    runtime_object *self = (runtime_object *)object;
    (void)unused;
    if (!self->rt) Py_RETURN_NONE;
    if (!runtime_usable(self)) return NULL;
    hd_status status = close_runtime(self);
    if (raise_kept(self)) return NULL;
    return status ? raise_error(self->st, status, NULL) : Py_NewRef(Py_None);
}

/* ---- Driving ----------------------------------------------------------------------------- */

#define USABLE(self)                                                                               \
    runtime_object *self = (runtime_object *)object;                                               \
    (void)unused;                                                                                  \
    if (!runtime_usable(self)) return NULL

static hd_status pump(runtime_object *self) {
    hd_status status = hd_runtime_pump(self->rt);
    log_threads(self);
    return status;
}

/* True: there is more to do at once. */
static PyObject *runtime_pump(PyObject *object, PyObject *unused) {
    USABLE(self);
    self->woken = false;
    hd_status status = pump(self);
    if (raise_kept(self)) return NULL;
    if (status && status != HD_PENDING) return raise_status(self, status, NULL);
    return PyBool_FromLong(status == HD_PENDING);
}

/* Seconds until the next pump is due; 0.0: now; None: never. */
static PyObject *runtime_due(PyObject *object, PyObject *unused) {
    USABLE(self);
    uint64_t due = hd_runtime_deadline(self->rt), now = self->env.monotonic_ns(self);
    if (due == UINT64_MAX) Py_RETURN_NONE;
    return PyFloat_FromDouble(due <= now ? 0.0 : (double)(due - now) / 1e9);
}

/* Pumps once. True: settling is over, since the runtime is idle, a pump failed, or an exception is raised. */
static bool settle_step(runtime_object *self, hd_status *status) {
    *status = pump(self);
    if (raise_kept(self) || PyErr_CheckSignals() || !runtime_usable(self))
        return *status = HD_ABORTED, true;
    if (*status && *status != HD_PENDING) return true;
    return *status != HD_PENDING && hd_runtime_is_idle(self->rt);
}

/* False: a part of the graph does not settle. Ctrl-C ends it. */
static PyObject *runtime_settle(PyObject *object, PyObject *unused) {
    USABLE(self);
    if (!runtime_may_wait(self, "settle")) return NULL;
    hd_status status;
    hd_runtime_unpark(self->rt);
    hd_runtime_look(self->rt);
    while (!settle_step(self, &status))
        if (status != HD_PENDING)
            self->env.wait(hd_runtime_fd(self->rt), hd_runtime_deadline(self->rt), self);
    if (PyErr_Occurred()) return NULL;
    if (status) return raise_status(self, status, NULL);
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(self->rt, &stats);
    return PyBool_FromLong(stats.unsettled == 0);
}

/* Waits for the descriptor or the deadline, at most so many seconds, then pumps. Store.stop relies on this order: it
 * sets a flag and posts a function. If the turn waited after the pump that runs the function, run_forever would not
 * look at the flag before that wait has ended. */
static PyObject *runtime_turn(PyObject *object, PyObject *seconds) {
    runtime_object *self = (runtime_object *)object;
    double most = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred() || !runtime_may_wait(self, "run_forever")) return NULL;
    uint64_t due = hd_runtime_deadline(self->rt), now = self->env.monotonic_ns(self);
    uint64_t end = now + (uint64_t)(most * 1e9);
    if (due > now) self->env.wait(hd_runtime_fd(self->rt), due < end ? due : end, self);
    hd_status status = pump(self);
    if (raise_kept(self) || PyErr_CheckSignals()) return NULL;
    if (status && status != HD_PENDING) return raise_status(self, status, NULL);
    Py_RETURN_NONE;
}

static PyObject *runtime_sync(PyObject *object, PyObject *unused) {
    USABLE(self);
    if (!runtime_may_wait(self, "sync")) return NULL;
    hd_runtime_unpark(self->rt);
    hd_status status = hd_runtime_sync(self->rt);
    log_threads(self);
    return driven(self, status);
}

/* What was cut short runs again in the next pump. */
static PyObject *runtime_unpark(PyObject *object, PyObject *unused) {
    USABLE(self);
    hd_runtime_unpark(self->rt);
    runtime_woken(self);
    Py_RETURN_NONE;
}

static PyObject *runtime_fd(PyObject *object, PyObject *unused) {
    USABLE(self);
    return PyLong_FromLong(hd_runtime_fd(self->rt));
}

static PyObject *runtime_idle(PyObject *object, PyObject *unused) {
    USABLE(self);
    return PyBool_FromLong(hd_runtime_is_idle(self->rt));
}

/* ---- From other threads ------------------------------------------------------------------ */

static void posted(hd_runtime *rt, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    (void)rt;
    PyObject *answer = PyObject_CallNoArgs(c->fn);
    if (!answer) (void)status_of_exception(self, NULL, "post");
    Py_XDECREF(answer);
    callback_free(c);
}

/* The only method that other threads may call. */
static PyObject *runtime_post(PyObject *object, PyObject *fn) {
    runtime_object *self = (runtime_object *)object;
    if (!self->rt) return raise_error(self->st, HD_CLOSED, NULL);
    if (self->forks != self->st->forks) return refuse_fork(self);
    callback *c = callback_new(self, fn, NULL, (hd_cell){ 0 });
    if (!c) return NULL;
    hd_status status = hd_runtime_post(self->rt, posted, c);
    if (status) callback_free(c);
    return none_or_raise(self, status);
}

/* ---- Time -------------------------------------------------------------------------------- */

static PyObject *runtime_advance(PyObject *object, PyObject *seconds) {
    runtime_object *self = (runtime_object *)object;
    double by = PyFloat_AsDouble(seconds);
    if (!runtime_usable(self) || PyErr_Occurred()) return NULL;
    if (!self->clock) return raise_error(self->st, HD_USAGE, NULL);
    if (by > 0) clock_advance(self->clock, (uint64_t)(by * 1e9 + 0.5));
    runtime_woken(self);
    Py_RETURN_NONE;
}

static PyObject *runtime_now(PyObject *object, PyObject *unused) {
    USABLE(self);
    return PyFloat_FromDouble((double)self->env.wall_ms(self) / 1000);
}

/* ---- Documents --------------------------------------------------------------------------- */

static bool list_one(const hd_listing *entry, void *ctx) {
    static const char *const scopes[] = { "", "space", "user", "session" };
    return list_add(ctx, Py_BuildValue("(sssK)", entry->id, entry->kind, scopes[entry->scope],
                                       (unsigned long long)entry->seq));
}

static PyObject *runtime_list(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    const char *space, *kind, *prefix;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "szz", &space, &kind, &prefix))
        return NULL;
    PyObject *out = PyList_New(0);
    hd_status status = out ? hd_runtime_list(self->rt, space, kind, prefix, list_one, out) : HD_OK;
    return list_done(self, out, status);
}

static bool space_one(const char *space, void *ctx) {
    return list_add(ctx, PyUnicode_FromString(space));
}

static PyObject *runtime_spaces(PyObject *object, PyObject *unused) {
    USABLE(self);
    PyObject *out = PyList_New(0);
    hd_status status = out ? hd_runtime_spaces(self->rt, space_one, out) : HD_OK;
    return list_done(self, out, status);
}

static PyObject *runtime_follow(PyObject *object, PyObject *space) {
    runtime_object *self = (runtime_object *)object;
    const char *name = name_from(space);
    if (!name || !runtime_usable(self)) return NULL;
    return none_or_raise(self, hd_runtime_follow(self->rt, name));
}

/* ---- The type ---------------------------------------------------------------------------- */

static PyObject *get_closed(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(!((runtime_object *)object)->rt);
}

static PyObject *get_at_work(PyObject *object, void *unused) {
    runtime_object *self = (runtime_object *)object;
    (void)unused;
    return PyBool_FromLong(self->rt && is_at_work(self));
}

static PyObject *get_in_transaction(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((runtime_object *)object)->tx != NULL);
}

static PyObject *get_virtual(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((runtime_object *)object)->clock != NULL);
}

static PyGetSetDef getters[] = {
    { "closed", get_closed, NULL, "Whether it is closed.", NULL },
    { "at_work", get_at_work, NULL, "Whether a function that it has called has not returned yet.",
      NULL },
    { "in_transaction", get_in_transaction, NULL,
      "Whether reads and writes go through a transaction now.", NULL },
    { "virtual", get_virtual, NULL, "Whether its clock is a test's.", NULL },
    { 0 }
};

static PyMemberDef members[] = {
    { "failed", T_OBJECT, offsetof(runtime_object, failed), 0, "Called with (name, exception)." },
    { "store", T_OBJECT, offsetof(runtime_object, store), 0, "The object around it." },
    { "guard", T_OBJECT, offsetof(runtime_object, guard), 0,
      "Called before each use, while a task has a transaction open." },
    { "inside", T_OBJECT, offsetof(runtime_object, inside), 0,
      "Called for the Run in which the caller's task was begun." },
    { "on_work", T_OBJECT, offsetof(runtime_object, on_work), 0,
      "Called when there is something to pump." },
    { 0 }
};

#define KEYWORDS(fn) ((PyCFunction)(void (*)(void))(fn)), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    { "close", runtime_close, METH_NOARGS, "Waits until everything is stored, and closes." },
    { "pump", runtime_pump, METH_NOARGS,
      "Does what there is to do now; True: call it again at once." },
    { "due", runtime_due, METH_NOARGS, "Seconds until the next pump; None: never." },
    { "settle", runtime_settle, METH_NOARGS,
      "Pumps and waits until idle; False: a part does not settle." },
    { "turn", runtime_turn, METH_O, "Pumps once, then waits for news, at most so many seconds." },
    { "unpark", runtime_unpark, METH_NOARGS, "Runs that were cut short are made again." },
    { "sync", runtime_sync, METH_NOARGS, "Waits until everything is stored." },
    { "fd", runtime_fd, METH_NOARGS, "Readable when there is something to pump." },
    { "idle", runtime_idle, METH_NOARGS, "Whether there is nothing to wait for." },
    { "post", runtime_post, METH_O, "From any thread: calls fn on the store's thread." },
    { "advance", runtime_advance, METH_O, "Moves a virtual clock by seconds." },
    { "now", runtime_now, METH_NOARGS, "The wall clock, in seconds since 1970." },
    { "list", runtime_list, METH_VARARGS, "Documents of a space: (id, kind, scope, seq)." },
    { "spaces", runtime_spaces, METH_NOARGS, "Names of the spaces." },
    { "follow", runtime_follow, METH_O, "Follow a whole space." },
    { "cell", runtime_cell, METH_VARARGS, "A cell: (class, name, load, dump)." },
    { "engine", KEYWORDS(runtime_engine), "Opens the engine for workflows." },
    { "begin", runtime_begin, METH_VARARGS,
      "Begins a transaction, of a change group if one is given." },
    { "commit", runtime_commit, METH_VARARGS,
      "Commits it; told(exception or None) hears the verdict." },
    { "abort", runtime_abort, METH_NOARGS, "Aborts it." },
    { "transact", runtime_transact, METH_VARARGS, "Runs fn in a transaction until it is stored." },
    { "transact_later", runtime_transact_later, METH_VARARGS,
      "The same; told(exception, result) hears of it." },
    { "node", KEYWORDS(runtime_node), "Registers a computation or an effect." },
    { "sink", KEYWORDS(runtime_sink), "Calls fn with the cell's value, now and when it changes." },
    { "unregister", runtime_unregister, METH_O, "Removes a node." },
    { "node_set", runtime_node_set, METH_VARARGS, "Debounce, throttle, request, promote." },
    { "hold", runtime_hold, METH_VARARGS, "Holds first runs." },
    { "end_hold", runtime_end_hold, METH_O, "Ends a hold." },
    { "on", KEYWORDS(runtime_on), "Registers an event handler." },
    { "off", runtime_off, METH_O, "Removes one." },
    { "send", KEYWORDS(runtime_send), "Sends or posts an event." },
    { "event_cancel", runtime_event_cancel, METH_VARARGS, "Takes back an event that waits." },
    { "outbox", runtime_outbox, METH_VARARGS, "Leaves a message for a channel." },
    { "channel", runtime_channel, METH_VARARGS, "Takes the messages of a channel." },
    { "mint", runtime_mint, METH_NOARGS, "An id for what a handler makes." },
    { "pattern", runtime_pattern, METH_VARARGS, "Registers a pattern." },
    { "piece", runtime_piece, METH_VARARGS, "Starts a piece." },
    { "piece_cell", runtime_piece_cell, METH_VARARGS, "A cell of a piece." },
    { "piece_end", runtime_piece_end, METH_VARARGS, "Stops a piece, or removes it." },
    { "nodes", runtime_nodes, METH_NOARGS, "Every node." },
    { "why", runtime_why, METH_O, "What caused a node's last run." },
    { "why_not", runtime_why_not, METH_O, "Why a node does not run now." },
    { "graph", runtime_graph, METH_NOARGS, "The graph as {nodes, edges}." },
    { "stats", runtime_stats, METH_NOARGS, "Counters." },
    { "inspect", runtime_inspect, METH_VARARGS, "Answers the heddle command at a socket." },
    { "trace", runtime_trace, METH_O, "Switches traces on or off." },
    { 0 },
};

static PyType_Slot slots[] = { { Py_tp_new, runtime_new },
                               { Py_tp_dealloc, runtime_dealloc },
                               { Py_tp_finalize, runtime_finalize },
                               { Py_tp_traverse, runtime_traverse },
                               { Py_tp_clear, runtime_clear },
                               { Py_tp_methods, methods },
                               { Py_tp_getset, getters },
                               { Py_tp_members, members },
                               { Py_tp_doc, "One program's view of a store." },
                               { 0, NULL } };
static PyType_Spec spec = { .name = "_heddle.Runtime",
                            .basicsize = sizeof(runtime_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                            .slots = slots };

bool runtime_init(module_state *st) {
    st->runtime_type = make_type(st, &spec, "Runtime");
    return st->runtime_type;
}
