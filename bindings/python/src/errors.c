/* errors.c -- statuses as exceptions, and exceptions of callbacks as statuses.
 *
 * heddle.Error has a subclass for each class of statuses, since callers branch on the class. The instance has the
 * status by name and number, and where the failure was. */
#include "ext.h"

#include <stdio.h>
#include <string.h>

static const struct {
    hd_class class_;
    const char *name, *doc;
} rows[] = {
    { HD_CLASS_STALE, "heddle.StaleError",
      "What was read has changed since: read again and retry. store.transact does that." },
    { HD_CLASS_NO_VERDICT, "heddle.NoVerdictError", "The outcome is not known yet." },
    { HD_CLASS_PERMANENT, "heddle.RefusedError", "A precondition failed: do not retry." },
    { HD_CLASS_TERMINAL, "heddle.FailedError",
      "The store refuses, or a run has failed: do not retry." },
    { HD_CLASS_TRANSIENT, "heddle.TransientError", "Busy, input or output, a full disk: retry." },
    { HD_CLASS_PENDING, "heddle.PendingError", "Not finished: it completes later." },
    { HD_CLASS_INPUT, "heddle.InputError", "The data is malformed or does not fit." },
    { HD_CLASS_USAGE, "heddle.UsageError", "The call is wrong: fix the program." },
};
#define ROWS (sizeof rows / sizeof *rows)

static bool add(module_state *st, const char *name, PyObject *type) {
    return type && !PyModule_AddObjectRef(st->module, strchr(name, '.') + 1, type);
}

bool errors_init(module_state *st) {
    st->error = PyErr_NewExceptionWithDoc(
        "heddle.Error", "What the library refuses; the base of its errors.", NULL, NULL);
    if (!add(st, "heddle.Error", st->error)) return false;
    for (size_t i = 0; i < ROWS; i++) {
        PyObject *base = rows[i].class_ == HD_CLASS_INPUT   ? PyExc_ValueError
                         : rows[i].class_ == HD_CLASS_USAGE ? PyExc_RuntimeError
                                                            : NULL;
        PyObject *bases = base ? PyTuple_Pack(2, st->error, base) : PyTuple_Pack(1, st->error);
        if (!bases) return false;
        PyObject *type = PyErr_NewExceptionWithDoc(rows[i].name, rows[i].doc, bases, NULL);
        Py_DECREF(bases);
        st->by_class[rows[i].class_] = type;
        if (!add(st, rows[i].name, type)) return false;
    }
    return true;
}

void errors_clear(module_state *st) {
    Py_CLEAR(st->error);
    for (size_t i = 0; i < HD_CLASS_NOMEM; i++) Py_CLEAR(st->by_class[i]);
}

/* ---- a status as an exception */

static bool set(PyObject *e, const char *name, PyObject *value) {
    bool good = value && !PyObject_SetAttrString(e, name, value);
    Py_XDECREF(value);
    return good;
}

PyObject *words_to_python(const char *words) {
    return PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace");
}

PyObject *raise_error(module_state *st, hd_status status, const hd_error *error) {
    hd_class class_ = hd_status_class(status);
    if (status == HD_NOMEM) return PyErr_NoMemory();
    PyObject *type =
        class_ < HD_CLASS_NOMEM && st->by_class[class_] ? st->by_class[class_] : st->error;
    bool told = error && error->status == status && *error->message;
    const char *text = told ? error->message : hd_status_text(status);
    PyObject *e = PyObject_CallFunction(type, "N", words_to_python(text));
    if (e && set(e, "status", PyUnicode_FromString(hd_status_name(status))) &&
        set(e, "code", PyLong_FromLong((long)status)) &&
        set(e, "path", words_to_python(told ? error->path : "")) &&
        set(e, "line", PyLong_FromUnsignedLong(told ? error->line : 0)))
        PyErr_SetObject(type, e);
    Py_XDECREF(e);
    return NULL;
}

PyObject *raise_status(runtime_object *self, hd_status status, const hd_error *error) {
    if (PyErr_Occurred()) return NULL;
    if (!error && self->rt) error = hd_runtime_error(self->rt);
    return raise_error(self->st, status, error);
}

PyObject *none_or_raise(runtime_object *self, hd_status status) {
    return status ? raise_status(self, status, NULL) : Py_NewRef(Py_None);
}

bool list_add(PyObject *list, PyObject *made) {
    bool good = made && !PyList_Append(list, made);
    Py_XDECREF(made);
    return good;
}

PyObject *list_done(runtime_object *self, PyObject *list, hd_status status) {
    if (list && !status && !PyErr_Occurred()) return list;
    Py_XDECREF(list);
    return raise_status(self, status, NULL);
}

/* ---- an exception of a callback as a status */

static hd_status code_of(module_state *st, PyObject *e) {
    if (!PyObject_IsInstance(e, st->error)) return HD_FAILED;
    PyObject *code = PyObject_GetAttrString(e, "code");
    long status = code ? PyLong_AsLong(code) : HD_FAILED;
    Py_XDECREF(code);
    PyErr_Clear();
    return status > 0 && status < HD_STATUS_COUNT_ ? (hd_status)status : HD_FAILED;
}

PyObject *exception_take(void) {
    PyObject *type, *e, *traceback;
    PyErr_Fetch(&type, &e, &traceback);
    PyErr_NormalizeException(&type, &e, &traceback);
    if (traceback) PyException_SetTraceback(e, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return e;
}

void exception_restore(PyObject *e) {
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(e)), e, PyException_GetTraceback(e));
}

bool exception_is_interrupt(PyObject *e) {
    return !PyErr_GivenExceptionMatches(e, PyExc_Exception);
}

void interrupt_keep(runtime_object *self, PyObject *e) {
    if (!self->interrupt) self->interrupt = Py_NewRef(e);
}

void exception_print(runtime_object *self, PyObject *source) {
    PyObject *e = exception_take();
    if (exception_is_interrupt(e)) {
        interrupt_keep(self, e);
        Py_DECREF(e);
        return;
    }
    exception_restore(e);
    PyErr_WriteUnraisable(source);
}

static void tell_failed(runtime_object *self, const char *name, PyObject *e) {
    self->told = true;
    if (!is_set(self->failed)) {
        PyErr_SetObject((PyObject *)Py_TYPE(e), e);
        PyErr_WriteUnraisable((PyObject *)self);
        return;
    }
    PyObject *answer = PyObject_CallFunction(self->failed, "sO", name, e);
    if (!answer) exception_print(self, self->failed);
    Py_XDECREF(answer);
}

static void fail_tx(hd_tx *tx, hd_status status, PyObject *e) {
    PyObject *text = PyObject_Str(e);
    PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(e), "__name__");
    const char *chars = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const char *name = type ? PyUnicode_AsUTF8AndSize(type, NULL) : NULL;
    (void)hd_tx_fail(tx, status, "%s: %s", name ? name : "exception", chars ? chars : "");
    Py_XDECREF(text);
    Py_XDECREF(type);
    PyErr_Clear();
}

/* The program is interrupted, and the function has not failed: its node or its event runs again. Takes `e`. */
static hd_status interrupted(runtime_object *self, PyObject *e) {
    interrupt_keep(self, e);
    Py_DECREF(e);
    return hd_runtime_park(self->rt) == HD_NOMEM ? HD_NOMEM : HD_PENDING;
}

hd_status status_of_exception(runtime_object *self, hd_tx *tx, const char *name) {
    PyObject *e = exception_take();
    hd_status status = code_of(self->st, e);
    hd_class class_ = hd_status_class(status);
    bool again =
        class_ == HD_CLASS_PENDING || class_ == HD_CLASS_STALE || class_ == HD_CLASS_TRANSIENT;
    if (exception_is_interrupt(e)) return interrupted(self, e);
    if (!again) tell_failed(self, name, e);
    if (tx && !again) fail_tx(tx, status, e);
    Py_DECREF(e);
    return status;
}

/* The library's own report. What a function has raised was told when it was raised. */
static void hear_failure(const hd_failure *failure, void *ctx) {
    runtime_object *self = ctx;
    if (!self->told && !self->interrupt) {
        hd_error error = { .status = failure->status };
        snprintf(error.message, sizeof error.message, "%s", failure->message);
        raise_error(self->st, failure->status, &error);
        PyObject *e = exception_take();
        tell_failed(self, failure->action, e);
        Py_DECREF(e);
    }
    self->told = false;
}

hd_status errors_listen(runtime_object *self) {
    return hd_runtime_on_error(self->rt, hear_failure, self);
}

bool raise_kept(runtime_object *self) {
    if (!self->interrupt) return false;
    exception_restore(self->interrupt);
    self->interrupt = NULL;
    return true;
}

PyObject *driven(runtime_object *self, hd_status status) {
    if (raise_kept(self)) return NULL;
    return none_or_raise(self, status);
}
