/* value.c -- the type Value: a value of the store that was not converted, to be looked into or passed on. */
#include "convert.h"

PyObject *value_new(runtime_object *owner, hd_value v) {
    if (!hd_value_exists(v)) Py_RETURN_NONE;
    PyTypeObject *type = owner->st->value_type;
    value_object *self = (value_object *)object_alloc(type);
    if (!self) return NULL;
    self->owner = (runtime_object *)Py_NewRef((PyObject *)owner);
    self->v = hd_value_ref(v);
    self->next = owner->values;
    if (self->next) self->next->prev = self;
    owner->values = self;
    return (PyObject *)self;
}

static void forget(value_object *self) {
    self->v = (hd_value){ 0 };
    if (self->prev) self->prev->next = self->next;
    else self->owner->values = self->next;
    if (self->next) self->next->prev = self->prev;
    self->prev = self->next = NULL;
}

static void drop(value_object *self) {
    if (!hd_value_exists(self->v)) return;
    hd_value_unref(self->v);
    forget(self);
}

void values_forget(runtime_object *owner) {
    while (owner->values) forget(owner->values);
}

/* Of another thread's garbage collector: a heap belongs to its thread, so the value stays until the store closes. */
static void value_dealloc(PyObject *object) {
    value_object *self = (value_object *)object;
    bool here = PyThread_get_thread_ident() == self->owner->thread;
    if (here) drop(self);
    else if (hd_value_exists(self->v)) {
        if (self->prev) self->prev->next = self->next;
        else self->owner->values = self->next;
        if (self->next) self->next->prev = self->prev;
    }
    Py_CLEAR(self->owner);
    object_free(object);
}

static bool usable(value_object *self) { return runtime_usable(self->owner); }

static PyObject *value_get(PyObject *object, PyObject *unused) {
    value_object *self = (value_object *)object;
    (void)unused;
    return usable(self) ? to_python(self->owner, self->v, PLAIN) : NULL;
}

static Py_ssize_t value_length(PyObject *object) {
    value_object *self = (value_object *)object;
    return usable(self) ? (Py_ssize_t)hd_value_count(self->v) : -1;
}

static hd_value part_of(value_object *self, PyObject *key) {
    if (PyLong_Check(key)) {
        Py_ssize_t i = PyLong_AsSsize_t(key), count = (Py_ssize_t)hd_value_count(self->v);
        if (i < 0) i += count;
        return i < 0 ? (hd_value){ 0 } : hd_value_index(self->v, (size_t)i);
    }
    Py_ssize_t length;
    const char *chars = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &length) : NULL;
    return chars ? hd_value_at_n(self->v, chars, (size_t)length) : (hd_value){ 0 };
}

/* A container is a Value again; a scalar is itself. */
static PyObject *value_subscript(PyObject *object, PyObject *key) {
    value_object *self = (value_object *)object;
    if (!usable(self)) return NULL;
    hd_value v = part_of(self, key);
    if (PyErr_Occurred()) return NULL;
    if (!hd_value_exists(v)) {
        PyErr_SetObject(PyLong_Check(key) ? PyExc_IndexError : PyExc_KeyError, key);
        return NULL;
    }
    hd_kind kind = hd_value_kind(v);
    if (kind == HD_KIND_ARRAY || kind == HD_KIND_OBJECT) return value_new(self->owner, v);
    return to_python(self->owner, v, PLAIN);
}

static PyObject *value_repr(PyObject *object) {
    value_object *self = (value_object *)object;
    return PyUnicode_FromFormat("<value %s>", hd_kind_name(hd_value_kind(self->v)));
}

static PyObject *value_compare(PyObject *a, PyObject *b, int op) {
    value_object *x = (value_object *)a, *y = (value_object *)b;
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != Py_TYPE(a) || x->owner != y->owner)
        return Py_NewRef(Py_NotImplemented);
    return PyBool_FromLong(hd_value_equal(x->v, y->v) == (op == Py_EQ));
}

static bool add_text(const char *text, size_t length, void *ctx) {
    return list_add(ctx, PyUnicode_FromStringAndSize(text, (Py_ssize_t)length));
}

static PyObject *value_json(PyObject *object, PyObject *unused) {
    value_object *self = (value_object *)object;
    (void)unused;
    if (!usable(self)) return NULL;
    PyObject *pieces = PyList_New(0), *empty = PyUnicode_FromString("");
    hd_status status =
        pieces && empty ? hd_json_write(self->v, HD_JSON_COMPACT, add_text, pieces) : HD_NOMEM;
    PyObject *out =
        status ? raise_status(self->owner, status, NULL) : PyUnicode_Join(empty, pieces);
    Py_XDECREF(pieces);
    Py_XDECREF(empty);
    return out;
}

static PyMethodDef methods[] = { { "get", value_get, METH_NOARGS,
                                   "get($self, /)\n--\n\n"
                                   "The value as Python data." },
                                 { "json", value_json, METH_NOARGS,
                                   "json($self, /)\n--\n\n"
                                   "The value as JSON text." },
                                 { 0 } };
static PyType_Slot slots[] = { { Py_tp_dealloc, value_dealloc },
                               { Py_tp_repr, value_repr },
                               { Py_tp_hash, PyObject_HashNotImplemented },
                               { Py_tp_richcompare, value_compare },
                               { Py_mp_length, value_length },
                               { Py_mp_subscript, value_subscript },
                               { Py_tp_methods, methods },
                               { Py_tp_doc, "A value of the store that was not converted." },
                               { 0, NULL } };
static PyType_Spec spec = { .name = "_heddle.Value",
                            .basicsize = sizeof(value_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

bool value_init(module_state *st) {
    st->value_type = make_type(st, &spec, "Value");
    return st->value_type;
}
