/* tx.c -- transactions: the runtime has a current one, which cells read and write through. */
#include "convert.h"

PyObject *call_in(runtime_object *self, hd_tx *tx, PyObject *fn) {
    hd_tx *outer = self->tx;
    self->tx = tx;
    PyObject *out = PyObject_CallNoArgs(fn);
    self->tx = outer;
    return out;
}

PyObject *runtime_begin(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    unsigned long long group = 0;
    hd_tx *tx;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "|K", &group)) return NULL;
    hd_status status = hd_tx_begin(self->rt, &tx);
    if (!status && self->tx) { /* of an async run: the library knows of none that is on the stack */
        hd_error error = { .status = HD_USAGE,
                           .message = "a run has its own transaction: read and write in that" };
        hd_tx_abort(tx);
        return raise_error(self->st, HD_USAGE, &error);
    }
    if (!status) {
        hd_tx_set_group(tx, group);
        self->tx = tx;
    }
    return none_or_raise(self, status);
}

static void verdict(hd_status status, void *ctx) {
    callback *c = ctx;
    runtime_object *self = c->owner;
    PyObject *e = NULL;
    if (status) {
        raise_error(self->st, status, NULL);
        e = exception_take();
    }
    PyObject *answer = PyObject_CallFunctionObjArgs(c->fn, e ? e : Py_None, NULL);
    if (!answer) (void)status_of_exception(self, NULL, "verdict");
    Py_XDECREF(answer);
    Py_XDECREF(e);
    callback_free(c);
}

static PyObject *no_transaction(runtime_object *self) {
    hd_error error = { .status = HD_USAGE, .message = "there is no transaction" };
    return raise_error(self->st, HD_USAGE, &error);
}

PyObject *runtime_commit(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *told = NULL;
    callback *c = NULL;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "|O", &told)) return NULL;
    if (!self->tx) return no_transaction(self);
    if (is_set(told) && !(c = callback_new(self, told, NULL, (hd_cell){ 0 }))) return NULL;
    hd_tx *tx = self->tx;
    self->tx = NULL;
    hd_status status = hd_tx_commit(tx, c ? verdict : NULL, c);
    if (status) callback_free(c);
    runtime_woken(self);
    return none_or_raise(self, status);
}

PyObject *runtime_abort(PyObject *object, PyObject *unused) {
    runtime_object *self = (runtime_object *)object;
    (void)unused;
    if (!runtime_usable(self)) return NULL;
    if (!self->tx) return no_transaction(self);
    hd_tx *tx = self->tx;
    self->tx = NULL;
    hd_tx_abort(tx);
    Py_RETURN_NONE;
}

/* ---- Until it is stored ------------------------------------------------------------------ */

typedef struct attempt {
    runtime_object *self;
    PyObject *fn;
    PyObject *result; /* of the last try */
    PyObject *raised; /* by the function in it */
    callback *told;   /* of transact_later; else NULL */
    uint64_t group;   /* change group; 0: none */
} attempt;

/* What the function raises ends the transaction, unless it is an error that another try can mend. */
static hd_status raised(attempt *a) {
    PyObject *e = a->raised = exception_take();
    PyObject *code =
        PyObject_IsInstance(e, a->self->st->error) ? PyObject_GetAttrString(e, "code") : NULL;
    long status = code ? PyLong_AsLong(code) : HD_ABORTED;
    Py_XDECREF(code);
    PyErr_Clear();
    return status > 0 && status < HD_STATUS_COUNT_ ? (hd_status)status : HD_ABORTED;
}

static hd_status try_once(hd_tx *tx, void *ctx) {
    attempt *a = ctx;
    Py_CLEAR(a->raised);
    Py_CLEAR(a->result);
    hd_tx_set_group(tx, a->group);
    a->result = call_in(a->self, tx, a->fn);
    return a->result ? HD_OK : raised(a);
}

static PyObject *outcome(attempt *a, hd_status status) {
    PyObject *result = a->result;
    a->result = NULL;
    if (!status && result) return result;
    Py_XDECREF(result);
    if (a->raised) {
        exception_restore(a->raised);
        a->raised = NULL;
        return NULL;
    }
    return raise_status(a->self, status, NULL);
}

static void attempt_fini(attempt *a) {
    Py_XDECREF(a->result);
    Py_XDECREF(a->raised);
}

PyObject *runtime_transact(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *fn;
    unsigned long long group = 0;
    if (!runtime_may_wait(self, "transact") || !PyArg_ParseTuple(args, "O|K", &fn, &group))
        return NULL;
    attempt a = { .self = self, .fn = fn, .group = group };
    hd_status status = hd_transact(self->rt, try_once, &a);
    PyObject *out = raise_kept(self) ? NULL : outcome(&a, status);
    attempt_fini(&a);
    return out;
}

static void later_free(attempt *a) {
    attempt_fini(a);
    Py_DECREF(a->fn);
    callback_free(a->told);
    PyMem_Free(a);
}

static void later_told(hd_status status, void *ctx) {
    attempt *a = ctx;
    runtime_object *self = a->self;
    PyObject *result = outcome(a, status), *e = result ? NULL : exception_take();
    PyObject *answer =
        PyObject_CallFunctionObjArgs(a->told->fn, e ? e : Py_None, result ? result : Py_None, NULL);
    if (!answer) (void)status_of_exception(self, NULL, "transact");
    Py_XDECREF(answer);
    Py_XDECREF(result);
    Py_XDECREF(e);
    later_free(a);
}

PyObject *runtime_transact_later(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *fn, *told;
    unsigned long long group = 0;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "OO|K", &fn, &told, &group)) return NULL;
    attempt *a = PyMem_Malloc(sizeof *a);
    if (!a) return PyErr_NoMemory();
    *a = (attempt){ .self = self, .fn = Py_NewRef(fn), .group = group };
    if (!(a->told = callback_new(self, told, NULL, (hd_cell){ 0 }))) return later_free(a), NULL;
    hd_status status = hd_transact_later(self->rt, try_once, a, later_told, a);
    runtime_woken(self);
    if (!status) Py_RETURN_NONE;
    PyObject *out = outcome(a, status);
    later_free(a);
    return out;
}
