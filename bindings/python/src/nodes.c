/* nodes.c -- computations, effects and sinks whose functions are Python's; runs that an async function suspends. */
#include "convert.h"

#include <structmember.h>

/* ---- Handles ----------------------------------------------------------------------------- */

static PyObject *node_handle(hd_node node) {
    return PyLong_FromUnsignedLongLong((unsigned long long)node.generation << 32 | node.id);
}

bool node_from(PyObject *from, hd_node *out) {
    unsigned long long n = PyLong_AsUnsignedLongLong(from);
    if (PyErr_Occurred()) return false;
    *out = (hd_node){ (uint32_t)n, (uint32_t)(n >> 32) };
    return true;
}

/* ---- Running ----------------------------------------------------------------------------- */

/* Writes what a computation has returned to its output. `dump` is of the output's cell. */
static hd_status put_result(runtime_object *self, hd_tx *tx, hd_cell output, PyObject *dump,
                            PyObject *result) {
    PyObject *data = is_set(dump) && result != Py_None
                         ? PyObject_CallFunctionObjArgs(dump, result, NULL)
                         : Py_NewRef(result);
    hd_value v = data ? from_python(self, hd_tx_pool(tx), data, PLAIN) : hd_failed(HD_KIND);
    if (data && PyErr_Occurred()) cell_refusal_names(self, output);
    Py_XDECREF(data);
    return PyErr_Occurred() ? HD_KIND : hd_tx_set(tx, output, v);
}

static hd_status run_node(hd_tx *tx, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    PyObject *result = call_in(self, tx, c->fn);
    if (!result) return status_of_exception(self, tx, text_of(c->name));
    hd_status status = HD_OK;
    if (c->cell.id) status = put_result(self, tx, c->cell, c->extra, result);
    Py_DECREF(result);
    return PyErr_Occurred() ? status_of_exception(self, tx, text_of(c->name)) : status;
}

/* ---- Suspended runs ---------------------------------------------------------------------- */

static PyObject *run_new(runtime_object *owner, hd_run *run, const callback *c) {
    PyTypeObject *type = owner->st->run_type;
    run_object *self = (run_object *)object_alloc(type);
    if (!self) return NULL;
    self->owner = (runtime_object *)Py_NewRef((PyObject *)owner);
    self->run = run;
    self->output = c->cell;
    self->dump = Py_XNewRef(c->extra);
    self->name = Py_XNewRef(c->name);
    self->next = owner->runs;
    if (self->next) self->next->prev = self;
    owner->runs = self;
    return (PyObject *)self;
}

static hd_run *run_take(run_object *self) {
    hd_run *run = self->run;
    if (!run) return NULL;
    if (self->prev) self->prev->next = self->next;
    else self->owner->runs = self->next;
    if (self->next) self->next->prev = self->prev;
    self->prev = self->next = NULL;
    self->run = NULL;
    return run;
}

void runs_drop(runtime_object *owner) {
    while (owner->runs) (void)run_take(owner->runs);
}

/* fn(run) begins the work; run.finish or run.fail ends it. */
static hd_status run_suspended(hd_tx *tx, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    hd_run *run;
    hd_status status = hd_tx_suspend(tx, &run);
    if (status) return status;
    PyObject *object = run_new(self, run, c);
    PyObject *answer = object ? PyObject_CallFunctionObjArgs(c->fn, object, NULL) : NULL;
    if (!answer && object) (void)run_take((run_object *)object);
    Py_XDECREF(object);
    if (!answer) return status_of_exception(self, tx, text_of(c->name));
    Py_DECREF(answer);
    return HD_PENDING;
}

static PyObject *run_enter(PyObject *object, PyObject *unused) {
    run_object *self = (run_object *)object;
    (void)unused;
    if (!runtime_usable(self->owner)) return NULL;
    if (!self->run) return raise_error(self->owner->st, HD_ABORTED, NULL);
    self->outer = self->owner->tx;
    self->owner->tx = hd_run_tx(self->run);
    Py_RETURN_NONE;
}

static PyObject *run_leave(PyObject *object, PyObject *unused) {
    run_object *self = (run_object *)object;
    (void)unused;
    self->owner->tx = self->outer;
    self->outer = NULL;
    Py_RETURN_NONE;
}

static PyObject *run_finish(PyObject *object, PyObject *result) {
    run_object *self = (run_object *)object;
    runtime_object *owner = self->owner;
    if (!runtime_usable(owner)) return NULL;
    if (!self->run) Py_RETURN_NONE;
    hd_tx *tx = hd_run_tx(self->run);
    hd_status status =
        self->output.id ? put_result(owner, tx, self->output, self->dump, result) : HD_OK;
    if (PyErr_Occurred()) status = status_of_exception(owner, tx, text_of(self->name));
    if (status == HD_PENDING && owner->interrupt) hd_run_park(run_take(self));
    else hd_run_resume(run_take(self), status);
    runtime_woken(owner);
    Py_RETURN_NONE;
}

/* Raised by the work: reported as from any run. */
static PyObject *run_fail(PyObject *object, PyObject *e) {
    run_object *self = (run_object *)object;
    runtime_object *owner = self->owner;
    if (!runtime_usable(owner)) return NULL;
    if (!self->run) Py_RETURN_NONE;
    PyErr_SetObject((PyObject *)Py_TYPE(e), e);
    hd_status status = status_of_exception(owner, hd_run_tx(self->run), text_of(self->name));
    hd_run_resume(run_take(self), status);
    runtime_woken(owner);
    Py_RETURN_NONE;
}

/* Nothing can go on with the run now: its node runs again after the next unpark. */
static PyObject *run_park(PyObject *object, PyObject *unused) {
    run_object *self = (run_object *)object;
    (void)unused;
    if (!runtime_usable(self->owner)) return NULL;
    if (self->run) hd_run_park(run_take(self));
    Py_RETURN_NONE;
}

/* A run that is dropped unfinished, because its loop was closed, say. */
static void run_dealloc(PyObject *object) {
    run_object *self = (run_object *)object;
    bool here = runtime_is_here(self->owner);
    hd_run *run = run_take(self);
    if (run && here) hd_run_park(run);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->dump);
    Py_CLEAR(self->name);
    object_free(object);
}

static PyMethodDef run_methods[] = {
    { "enter", run_enter, METH_NOARGS, "Reads and writes go through the run until leave." },
    { "leave", run_leave, METH_NOARGS, "Ends enter." },
    { "finish", run_finish, METH_O, "Ends the run with a result." },
    { "fail", run_fail, METH_O, "Ends the run with an exception." },
    { "park", run_park, METH_NOARGS, "The run does not count; its node runs again." },
    { 0 },
};
static PyType_Slot run_slots[] = { { Py_tp_dealloc, run_dealloc },
                                   { Py_tp_methods, run_methods },
                                   { Py_tp_doc, "A run that is suspended." },
                                   { 0, NULL } };
static PyType_Spec run_spec = { .name = "_heddle.Run",
                                .basicsize = sizeof(run_object),
                                .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                .slots = run_slots };

bool run_init(module_state *st) {
    st->run_type = make_type(st, &run_spec, "Run");
    return st->run_type;
}

/* ---- Registering ------------------------------------------------------------------------- */

typedef struct cell_lists {
    hd_cell *side, *envelopes, *ignored, *reads;
} cell_lists;

static void lists_free(cell_lists *l) {
    PyMem_Free(l->side);
    PyMem_Free(l->envelopes);
    PyMem_Free(l->ignored);
    PyMem_Free(l->reads);
}

static PyObject *registered(runtime_object *self, hd_status status, hd_node node, callback *c) {
    if (status) {
        callback_free(c);
        return raise_status(self, status, NULL);
    }
    runtime_woken(self);
    return node_handle(node);
}

static PyObject *register_node(runtime_object *self, hd_node_spec *spec, callback *c) {
    hd_node node;
    spec->ctx = c;
    spec->release = callback_free;
    hd_status status = hd_node_register(self->rt, spec, &node);
    return registered(self, status, node, c);
}

/* The output's cell knows how its model is written. */
static PyObject *dump_of(runtime_object *self, PyObject *cell) {
    bool is_cell = is_set(cell) && PyObject_TypeCheck(cell, self->st->cell_type);
    return is_cell ? ((cell_object *)cell)->dump : NULL;
}

PyObject *runtime_node(PyObject *object, PyObject *args, PyObject *kw) {
    static char *names[] = { "fn",           "name",      "output",  "effect", "suspends",
                             "side_outputs", "envelopes", "ignored", "reads",  "debounce_ms",
                             "throttle_ms",  "run_once",  "version", "group",  NULL };
    runtime_object *self = (runtime_object *)object;
    PyObject *fn, *output = NULL, *side = NULL, *envelopes = NULL, *ignored = NULL, *reads = NULL;
    const char *name = NULL, *version = NULL;
    int effect = 0, suspends = 0, run_once = 0;
    unsigned debounce = 0, throttle = 0;
    unsigned long long group = 0;
    if (!runtime_usable(self) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "O|$zOppOOOOIIpzK", names, &fn, &name, &output,
                                     &effect, &suspends, &side, &envelopes, &ignored, &reads,
                                     &debounce, &throttle, &run_once, &version, &group))
        return NULL;
    cell_lists l = { 0 };
    hd_node_spec spec = { .name = name,
                          .fn = suspends ? run_suspended : run_node,
                          .effect = effect,
                          .debounce_ms = debounce,
                          .throttle_ms = throttle,
                          .run_once = run_once,
                          .version = version,
                          .group = group };
    PyObject *out = NULL;
    callback *c = NULL;
    if ((!is_set(output) || cell_from(self, output, &spec.output)) &&
        cells_from(self, side, &l.side, &spec.side_output_count) &&
        cells_from(self, envelopes, &l.envelopes, &spec.envelope_count) &&
        cells_from(self, ignored, &l.ignored, &spec.ignored_count) &&
        cells_from(self, reads, &l.reads, &spec.read_count))
        c = callback_new(self, fn, dump_of(self, output), spec.output);
    spec.side_outputs = l.side;
    spec.envelopes = l.envelopes;
    spec.ignored = l.ignored;
    spec.reads = l.reads;
    if (c && name) c->name = PyUnicode_FromString(name);
    if (c) out = register_node(self, &spec, c);
    lists_free(&l);
    return out;
}

/* ---- Sinks ------------------------------------------------------------------------------- */

/* The value as the cell's `load` makes it; NULL: exception set. */
static PyObject *loaded(runtime_object *self, hd_value v, PyObject *load) {
    PyObject *data = to_python(self, v, PLAIN);
    if (!data || !is_set(load) || data == Py_None) return data;
    PyObject *out = PyObject_CallFunctionObjArgs(load, data, NULL);
    Py_DECREF(data);
    return out;
}

/* A sink is an effect that reads one cell. What its function writes goes through the run's transaction. */
static hd_status run_sink(hd_tx *tx, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    hd_value v = hd_tx_get(tx, c->cell);
    if (hd_value_status(v)) return hd_value_status(v);
    PyObject *data = loaded(self, v, c->extra);
    hd_tx *outer = self->tx;
    self->tx = tx;
    PyObject *answer = data ? PyObject_CallFunctionObjArgs(c->fn, data, NULL) : NULL;
    self->tx = outer;
    hd_status status = answer ? HD_OK : status_of_exception(self, tx, text_of(c->name));
    Py_XDECREF(data);
    Py_XDECREF(answer);
    return status;
}

/* A confirmed sink is called between runs. Its function may stop it, which frees the callback. */
static void show_confirmed(hd_value v, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    PyObject *fn = Py_NewRef(c->fn), *load = Py_XNewRef(c->extra), *name = Py_XNewRef(c->name);
    PyObject *data = loaded(self, v, load);
    PyObject *answer = data ? PyObject_CallFunctionObjArgs(fn, data, NULL) : NULL;
    if (!answer) (void)status_of_exception(self, NULL, text_of(name));
    Py_XDECREF(data);
    Py_XDECREF(answer);
    Py_DECREF(fn);
    Py_XDECREF(load);
    Py_XDECREF(name);
}

static PyObject *register_confirmed(runtime_object *self, const hd_node_spec *of, callback *c) {
    hd_sink_spec spec = { .name = of->name,
                          .cell = c->cell,
                          .fn = show_confirmed,
                          .ctx = c,
                          .group = of->group,
                          .confirmed = true,
                          .release = callback_free };
    hd_node node;
    hd_status status = hd_sink_register(self->rt, &spec, &node);
    return registered(self, status, node, c);
}

PyObject *runtime_sink(PyObject *object, PyObject *args, PyObject *kw) {
    static char *names[] = { "cell", "fn", "name", "group", "confirmed", NULL };
    runtime_object *self = (runtime_object *)object;
    PyObject *cell, *fn;
    const char *name = NULL;
    unsigned long long group = 0;
    int confirmed = 0;
    hd_cell from;
    if (!runtime_usable(self) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "OO|$zKp", names, &cell, &fn, &name, &group,
                                     &confirmed) ||
        !cell_from(self, cell, &from))
        return NULL;
    PyObject *load =
        PyObject_TypeCheck(cell, self->st->cell_type) ? ((cell_object *)cell)->load : NULL;
    callback *c = callback_new(self, fn, load, from);
    if (!c) return NULL;
    c->name = PyUnicode_FromString(name ? name : "sink");
    hd_node_spec spec = {
        .name = name, .fn = run_sink, .effect = true, .group = group, .version = "sink"
    };
    return confirmed ? register_confirmed(self, &spec, c) : register_node(self, &spec, c);
}

PyObject *runtime_unregister(PyObject *object, PyObject *handle) {
    runtime_object *self = (runtime_object *)object;
    hd_node node;
    if (!runtime_usable(self) || !node_from(handle, &node)) return NULL;
    hd_node_unregister(self->rt, node);
    Py_RETURN_NONE;
}

/* ---- Gates and holds --------------------------------------------------------------------- */

PyObject *runtime_node_set(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *handle;
    const char *what;
    unsigned ms = 0;
    hd_node node;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "Os|I", &handle, &what, &ms) ||
        !node_from(handle, &node))
        return NULL;
    hd_status status = HD_USAGE;
    if (!strcmp(what, "debounce")) status = hd_node_set_debounce(self->rt, node, ms);
    if (!strcmp(what, "throttle")) status = hd_node_set_throttle(self->rt, node, ms);
    if (!strcmp(what, "auto_debounce")) status = hd_node_set_auto_debounce(self->rt, node, ms != 0);
    if (!strcmp(what, "request")) status = hd_node_request(self->rt, node);
    if (!strcmp(what, "promote")) status = hd_node_promote(self->rt, node);
    runtime_woken(self);
    return none_or_raise(self, status);
}

PyObject *runtime_hold(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    const char *name;
    unsigned ms;
    hd_hold hold;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "zI", &name, &ms)) return NULL;
    hd_status status = hd_hold_begin(self->rt, name, ms, &hold);
    return status ? raise_status(self, status, NULL) : PyLong_FromUnsignedLongLong(hold.id);
}

PyObject *runtime_end_hold(PyObject *object, PyObject *hold) {
    runtime_object *self = (runtime_object *)object;
    unsigned long long id = PyLong_AsUnsignedLongLong(hold);
    if (!runtime_usable(self) || PyErr_Occurred()) return NULL;
    hd_hold_end(self->rt, (hd_hold){ id });
    runtime_woken(self);
    Py_RETURN_NONE;
}
