/* events.c -- streams: handlers in Python, sending and posting, the outbox. */
#include "convert.h"

#include <stdio.h>

/* ---- Handlers ---------------------------------------------------------------------------- */

/* fn(payload, id, seconds, attempt, posted, missed); what it returns is the receipt. */
static PyObject *call_handler(callback *c, hd_tx *tx, const hd_event *event) {
    runtime_object *self = c->owner;
    PyObject *payload = to_python(self, event->payload, PLAIN);
    if (!payload) return NULL;
    hd_tx *outer = self->tx;
    self->tx = tx;
    PyObject *answer = PyObject_CallFunction(
        c->fn, "NsdIOK", payload, event->id, (double)event->time_ms / 1000, event->attempt,
        event->posted ? Py_True : Py_False, (unsigned long long)event->missed);
    self->tx = outer;
    return answer;
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    PyObject *answer = call_handler(c, tx, event);
    hd_status status = HD_OK;
    if (answer && answer != Py_None) {
        hd_value v = from_python(self, hd_tx_pool(tx), answer, PLAIN);
        status = PyErr_Occurred() ? HD_KIND : hd_tx_return(tx, v);
    }
    Py_XDECREF(answer);
    return PyErr_Occurred() ? status_of_exception(self, tx, text_of(c->name)) : status;
}

static hd_status compile(runtime_object *self, PyObject *from, hd_schema **out, hd_error *error) {
    *out = NULL;
    if (!is_set(from)) return HD_OK;
    hd_value v = from_python(self, pool_enter(self), from, PLAIN);
    hd_status status = hd_value_status(v);
    if (!status) status = hd_schema_compile(hd_runtime_heap(self->rt), v, out, error);
    pool_leave(self);
    return status;
}

static PyObject *register_handler(runtime_object *self, hd_handler_spec *spec, PyObject *fn,
                                  PyObject *schema) {
    hd_error error = { 0 };
    hd_schema *compiled;
    hd_handler handler;
    hd_status status = compile(self, schema, &compiled, &error);
    if (status) return raise_status(self, status, &error);
    callback *c = callback_new(self, fn, NULL, spec->stream);
    if (!c) return hd_schema_close(compiled), NULL;
    if (spec->name) c->name = PyUnicode_FromString(spec->name);
    spec->ctx = c;
    spec->release = callback_free;
    spec->event_schema = compiled;
    spec->reads_nothing = !spec->input_count && !compiled;
    status = hd_handler_register(self->rt, spec, &handler);
    if (status) {
        callback_free(c);
        hd_schema_close(compiled);
        return raise_status(self, status, NULL);
    }
    if (compiled) c->schema = compiled;
    runtime_woken(self);
    return PyLong_FromUnsignedLongLong((unsigned long long)handler.generation << 32 | handler.id);
}

PyObject *runtime_on(PyObject *object, PyObject *args, PyObject *kw) {
    static char *names[] = { "stream", "fn", "name", "reads", "schema", "one_shot", NULL };
    runtime_object *self = (runtime_object *)object;
    PyObject *stream, *fn, *reads = NULL, *schema = NULL;
    int one_shot = 0;
    hd_cell *inputs = NULL;
    hd_handler_spec spec = { .fn = handle };
    if (!runtime_usable(self) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "OO|$zOOp", names, &stream, &fn, &spec.name, &reads,
                                     &schema, &one_shot) ||
        !cell_from(self, stream, &spec.stream) ||
        !cells_from(self, reads, &inputs, &spec.input_count))
        return NULL;
    spec.inputs = inputs;
    spec.one_shot = one_shot;
    PyObject *out = register_handler(self, &spec, fn, schema);
    PyMem_Free(inputs);
    return out;
}

PyObject *runtime_off(PyObject *object, PyObject *handle_) {
    runtime_object *self = (runtime_object *)object;
    unsigned long long n = PyLong_AsUnsignedLongLong(handle_);
    if (!runtime_usable(self) || PyErr_Occurred()) return NULL;
    hd_handler_unregister(self->rt, (hd_handler){ (uint32_t)n, (uint32_t)(n >> 32) });
    Py_RETURN_NONE;
}

/* ---- Sending ----------------------------------------------------------------------------- */

/* What became of an event. Its status alone says neither which event it was nor what was not found. */
static void raise_outcome(callback *c, hd_status status) {
    char stream[160];
    hd_error error = { .status = status };
    hd_cell_print(c->owner->rt, c->cell, stream, sizeof stream);
    if (status == HD_NOT_FOUND)
        snprintf(error.message, sizeof error.message, "there is no handler for the stream %s",
                 stream);
    if (status == HD_EXISTS)
        snprintf(error.message, sizeof error.message,
                 "the event \"%.40s\" was handled already, by %s", text_of(c->name), stream);
    raise_error(c->owner->st, status, &error);
}

static void told(const char *id, hd_status status, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    PyObject *e = NULL;
    if (status) {
        raise_outcome(c, status);
        e = exception_take();
    }
    PyObject *answer = PyObject_CallFunction(c->fn, "sO", id, e ? e : Py_None);
    if (!answer) (void)status_of_exception(self, NULL, "send");
    Py_XDECREF(answer);
    Py_XDECREF(e);
    callback_free(c);
}

static hd_status send(runtime_object *self, bool post, hd_cell stream, hd_value payload,
                      const hd_send_options *options, char id[HD_EVENT_ID_SIZE]) {
    if (self->tx && post) return hd_tx_post(self->tx, stream, payload, options, id);
    if (self->tx) return hd_tx_send(self->tx, stream, payload, options);
    if (post) return hd_event_post(self->rt, stream, payload, options, id);
    return hd_event_send(self->rt, stream, payload, options);
}

PyObject *runtime_send(PyObject *object, PyObject *args, PyObject *kw) {
    static char *names[] = { "stream", "payload", "id",    "seconds", "lasting",      "post",
                             "done",   "at",      "after", "every",   "every_missed", NULL };
    runtime_object *self = (runtime_object *)object;
    PyObject *stream_, *payload, *done = NULL;
    double seconds = 0, at = 0, after = 0, every = 0;
    int lasting = 0, post = 0, every_missed = 0;
    hd_send_options options = { 0 };
    hd_cell stream;
    char id[HD_EVENT_ID_SIZE] = "";
    if (!runtime_usable(self) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "OO|$zdppOdddp", names, &stream_, &payload,
                                     &options.id, &seconds, &lasting, &post, &done, &at, &after,
                                     &every, &every_missed) ||
        !cell_from(self, stream_, &stream) || !ms_from(seconds, "time", &options.id_time_ms) ||
        !ms_from(at, "at", &options.deliver_at_ms) || !ms_from(after, "after", &options.after_ms) ||
        !ms_from(every, "every", &options.every_ms))
        return NULL;
    options.lasting = lasting;
    options.every_missed = every_missed;
    callback *c = is_set(done) ? callback_new(self, done, NULL, stream) : NULL;
    if (is_set(done) && !c) return NULL;
    if (c) options.done = told, options.ctx = c;
    if (c && options.id && !(c->name = PyUnicode_FromString(options.id)))
        return callback_free(c), NULL;
    hd_value v = from_python(self, pool_enter(self), payload, PLAIN);
    hd_status status = PyErr_Occurred() ? HD_KIND : send(self, post, stream, v, &options, id);
    pool_leave(self);
    if (status) {
        callback_free(c);
        return raise_status(self, status, NULL);
    }
    runtime_woken(self);
    return PyUnicode_FromString(id);
}

/* event_cancel(stream, id): False: no such event waits. */
PyObject *runtime_event_cancel(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *from;
    const char *id;
    hd_cell stream;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "Os", &from, &id) ||
        !cell_from(self, from, &stream))
        return NULL;
    hd_status status =
        self->tx ? hd_tx_event_drop(self->tx, hd_event_cell(self->rt, stream, id), "cancelled")
                 : hd_event_cancel(self->rt, stream, id);
    runtime_woken(self);
    if (status && status != HD_NOT_FOUND) return raise_status(self, status, NULL);
    return PyBool_FromLong(status == HD_OK);
}

PyObject *runtime_mint(PyObject *object, PyObject *unused) {
    runtime_object *self = (runtime_object *)object;
    char id[HD_ID_SIZE];
    (void)unused;
    if (!runtime_usable(self)) return NULL;
    if (!self->tx) {
        hd_error error = { .status = HD_USAGE, .message = "ids are minted by handlers" };
        return raise_error(self->st, HD_USAGE, &error);
    }
    hd_status status = hd_tx_mint(self->tx, id);
    return status ? raise_status(self, status, NULL) : PyUnicode_FromString(id);
}

/* ---- The outbox -------------------------------------------------------------------------- */

PyObject *runtime_outbox(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    const char *channel;
    PyObject *message;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "sO", &channel, &message)) return NULL;
    if (!self->tx) {
        hd_error error = { .status = HD_USAGE,
                           .message = "only a handler has an outbox: send an event, whose "
                                      "handler puts the message there" };
        return raise_error(self->st, HD_USAGE, &error);
    }
    hd_value v = from_python(self, hd_tx_pool(self->tx), message, PLAIN);
    if (PyErr_Occurred()) return NULL;
    return none_or_raise(self, hd_tx_outbox(self->tx, channel, v));
}

/* fn(key, message); an exception: again later. */
static hd_status deliver(const char *key, hd_value message, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    PyObject *data = to_python(self, message, PLAIN);
    PyObject *answer = data ? PyObject_CallFunction(c->fn, "sO", key, data) : NULL;
    hd_status status = answer ? HD_OK : status_of_exception(self, NULL, text_of(c->name));
    Py_XDECREF(data);
    Py_XDECREF(answer);
    return status;
}

PyObject *runtime_channel(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    const char *space, *channel;
    PyObject *fn;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "ssO", &space, &channel, &fn)) return NULL;
    if (fn == Py_None) {
        hd_channel_unregister(self->rt, space, channel);
        Py_RETURN_NONE;
    }
    callback *c = callback_new(self, fn, NULL, (hd_cell){ 0 });
    if (!c) return NULL;
    c->name = PyUnicode_FromString(channel);
    hd_status status = hd_channel_register(self->rt, space, channel, deliver, c);
    if (status) callback_free(c);
    runtime_woken(self);
    return none_or_raise(self, status);
}
