/* cell.c -- the type Cell: an address, read by calling it. Inside a run or a transaction it reads and writes through
 * that; outside, a write is a transaction of its own. */
#include "convert.h"

#include <structmember.h>

static PyObject *cell_alloc(runtime_object *owner, PyTypeObject *type, hd_cell cell, PyObject *load,
                            PyObject *dump);

/* ---- Reading ----------------------------------------------------------------------------- */

static PyObject *loaded(cell_object *self, hd_value v) {
    PyObject *plain = to_python(self->owner, v, PLAIN);
    if (!plain || !is_set(self->load) || plain == Py_None) return plain;
    PyObject *out = PyObject_CallFunctionObjArgs(self->load, plain, NULL);
    Py_DECREF(plain);
    return out;
}

typedef PyObject *(*use_fn)(cell_object *self, hd_value v);

static PyObject *used(cell_object *self, hd_value v, use_fn use) {
    hd_status status = hd_value_status(v);
    return status ? raise_status(self->owner, status, NULL) : use(self, v);
}

/* The transaction that the caller reads and writes in: the open one, or that of the async run in which its task was
 * begun (runtime_object.inside). NULL: none. */
static hd_tx *tx_of(runtime_object *owner) {
    if (owner->tx || !owner->runs || !is_set(owner->inside)) return owner->tx;
    PyObject *run = PyObject_CallNoArgs(owner->inside);
    bool is_run = run && PyObject_TypeCheck(run, owner->st->run_type);
    const run_object *of = is_run ? (const run_object *)run : NULL;
    hd_tx *tx = of && of->run && of->owner == owner ? hd_run_tx(of->run) : NULL;
    Py_XDECREF(run);
    if (!run) PyErr_Clear();
    return tx;
}

/* Outside of a transaction there is nothing to depend on: a plain look will do. */
static PyObject *read_outside(cell_object *self, use_fn use) {
    PyObject *out = used(self, hd_read(self->owner->rt, pool_enter(self->owner), self->cell), use);
    pool_leave(self->owner);
    return out;
}

static PyObject *read_with(PyObject *object, unsigned flags, use_fn use) {
    cell_object *self = (cell_object *)object;
    runtime_object *owner = self->owner;
    if (!runtime_usable(owner)) return NULL;
    hd_tx *tx = tx_of(owner);
    if (!tx) return read_outside(self, use);
    return used(self, flags ? hd_tx_read(tx, self->cell, flags) : hd_tx_get(tx, self->cell), use);
}

static PyObject *cell_call(PyObject *object, PyObject *args, PyObject *kw) {
    if ((args && PyTuple_Size(args)) || (kw && PyDict_Size(kw))) {
        PyErr_SetString(PyExc_TypeError,
                        "reading a cell takes no arguments; cell.set(value) writes it");
        return NULL;
    }
    return read_with(object, 0, loaded);
}

static PyObject *cell_get(PyObject *object, PyObject *unused) {
    (void)unused;
    return read_with(object, 0, loaded);
}

static PyObject *cell_peek(PyObject *object, PyObject *unused) {
    (void)unused;
    return read_with(object, HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM, loaded);
}

static PyObject *cell_shape(PyObject *object, PyObject *unused) {
    (void)unused;
    return read_with(object, HD_READ_SHAPE, loaded);
}

static PyObject *kept(cell_object *self, hd_value v) { return value_new(self->owner, v); }

static PyObject *cell_value(PyObject *object, PyObject *unused) {
    (void)unused;
    return read_with(object, 0, kept);
}

static PyObject *plain(cell_object *self, hd_value v) { return to_python(self->owner, v, PLAIN); }

/* A link at the cell's end is returned, not followed: that needs a transaction. */
static PyObject *cell_raw(PyObject *object, PyObject *unused) {
    cell_object *self = (cell_object *)object;
    hd_tx *tx;
    (void)unused;
    if (!runtime_usable(self->owner)) return NULL;
    if (tx_of(self->owner)) return read_with(object, HD_READ_RAW, plain);
    hd_status status = hd_tx_begin_read(self->owner->rt, &tx);
    if (status) return raise_status(self->owner, status, NULL);
    PyObject *out = used(self, hd_tx_read(tx, self->cell, HD_READ_RAW), plain);
    hd_tx_abort(tx);
    return out;
}

static PyObject *exists(cell_object *self, hd_value v) {
    (void)self;
    return PyBool_FromLong(hd_value_exists(v));
}

static PyObject *cell_exists(PyObject *object, PyObject *unused) {
    (void)unused;
    return read_with(object, HD_READ_SHAPE, exists);
}

/* Brings what computes it up to date first, also if no live node reads it. */
static PyObject *cell_pull(PyObject *object, PyObject *unused) {
    cell_object *self = (cell_object *)object;
    runtime_object *owner = self->owner;
    (void)unused;
    if (!runtime_may_wait(owner, "pull")) return NULL;
    hd_runtime_unpark(owner->rt);
    hd_value v = hd_pull_now(owner->rt, pool_enter(owner), self->cell);
    hd_status status = hd_value_status(v);
    PyObject *out = raise_kept(owner) ? NULL
                    : status          ? raise_status(owner, status, NULL)
                                      : loaded(self, v);
    pool_leave(owner);
    return out;
}

/* ---- Writing ----------------------------------------------------------------------------- */

typedef hd_status (*write_fn)(hd_tx *tx, hd_cell cell, hd_value v);

static hd_status alone(runtime_object *owner, write_fn fn, hd_cell cell, hd_value v) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(owner->rt, &tx);
    if (status) return status;
    status = fn(tx, cell, v);
    if (status) {
        hd_tx_abort(tx);
        return status;
    }
    status = hd_tx_commit(tx, NULL, NULL);
    if (!status) runtime_woken(owner);
    return status;
}

static PyObject *dumped(cell_object *self, PyObject *v) {
    if (!is_set(self->dump) || v == Py_None) return Py_NewRef(v);
    return PyObject_CallFunctionObjArgs(self->dump, v, NULL);
}

static PyObject *name_of_cell(runtime_object *owner, hd_cell cell) {
    char small[200];
    size_t length = hd_cell_print(owner->rt, cell, small, sizeof small);
    if (length < sizeof small) return PyUnicode_FromStringAndSize(small, (Py_ssize_t)length);
    char *large = PyMem_Malloc(length + 1);
    if (!large) return PyErr_NoMemory();
    hd_cell_print(owner->rt, cell, large, length + 1);
    PyObject *out = PyUnicode_FromStringAndSize(large, (Py_ssize_t)length);
    PyMem_Free(large);
    return out;
}

/* The same error, whose text begins with the name of the cell. */
static void limit_names(runtime_object *owner, hd_cell cell) {
    PyObject *e = exception_take(), *name = name_of_cell(owner, cell);
    PyObject *text = name ? PyUnicode_FromFormat("%U: %S", name, e) : NULL;
    PyObject *args = text ? PyTuple_Pack(1, text) : NULL;
    if (args && !PyObject_SetAttrString(e, "args", args)) exception_restore(Py_NewRef(e));
    Py_XDECREF(args);
    Py_XDECREF(text);
    Py_XDECREF(name);
    Py_DECREF(e);
}

void cell_refusal_names(runtime_object *owner, hd_cell cell) {
    PyObject *type, *e, *traceback;
    if (PyErr_ExceptionMatches(owner->st->by_class[HD_CLASS_INPUT])) {
        limit_names(owner, cell);
        return;
    }
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return;
    PyErr_Fetch(&type, &e, &traceback);
    PyObject *name = name_of_cell(owner, cell);
    if (name) PyErr_Format(PyExc_TypeError, "%U: %S", name, e);
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(e);
    Py_XDECREF(traceback);
}

static PyObject *write_with(PyObject *object, PyObject *v, write_fn fn, bool whole) {
    cell_object *self = (cell_object *)object;
    runtime_object *owner = self->owner;
    if (!runtime_usable(owner)) return NULL;
    hd_pool *pool = pool_enter(owner);
    PyObject *data = whole ? dumped(self, v) : Py_NewRef(v);
    if (!data) return pool_leave(owner), NULL;
    hd_tx *tx = tx_of(owner);
    hd_value value = from_python(owner, tx ? hd_tx_pool(tx) : pool, data, PLAIN);
    Py_DECREF(data);
    hd_status status = hd_value_status(value);
    if (PyErr_Occurred()) cell_refusal_names(owner, self->cell);
    else status = tx ? fn(tx, self->cell, value) : alone(owner, fn, self->cell, value);
    pool_leave(owner);
    return PyErr_Occurred() ? NULL : none_or_raise(owner, status);
}

static PyObject *cell_set(PyObject *object, PyObject *v) {
    return write_with(object, v, hd_tx_set, true);
}
static PyObject *cell_append(PyObject *object, PyObject *v) {
    return write_with(object, v, hd_tx_append, false);
}

static PyObject *cell_increment(PyObject *object, PyObject *args) {
    PyObject *by = NULL;
    if (!PyArg_ParseTuple(args, "|O", &by)) return NULL;
    PyObject *one = by ? Py_NewRef(by) : PyLong_FromLong(1);
    PyObject *out = one ? write_with(object, one, hd_tx_increment, false) : NULL;
    Py_XDECREF(one);
    return out;
}

static hd_status remove_it(hd_tx *tx, hd_cell cell, hd_value v) {
    (void)v;
    return hd_tx_remove(tx, cell);
}

static PyObject *cell_remove(PyObject *object, PyObject *unused) {
    (void)unused;
    return write_with(object, Py_None, remove_it, false);
}

static hd_status patch_it(hd_tx *tx, hd_cell cell, hd_value v) {
    return hd_tx_patch(tx, cell, v, NULL);
}
static PyObject *cell_patch(PyObject *object, PyObject *v) {
    return write_with(object, v, patch_it, false);
}

static hd_status absent_it(hd_tx *tx, hd_cell cell, hd_value v) {
    (void)v;
    return hd_tx_require_absent(tx, cell);
}
static PyObject *cell_require_absent(PyObject *object, PyObject *unused) {
    (void)unused;
    return write_with(object, Py_None, absent_it, false);
}
static PyObject *cell_require_equal(PyObject *object, PyObject *v) {
    return write_with(object, v, hd_tx_require_equal, true);
}

static PyObject *cell_set_volatile(PyObject *object, PyObject *unused) {
    cell_object *self = (cell_object *)object;
    (void)unused;
    if (!runtime_usable(self->owner)) return NULL;
    return none_or_raise(self->owner, hd_cell_set_volatile(self->owner->rt, self->cell));
}

/* ---- Addresses --------------------------------------------------------------------------- */

static PyObject *cell_name(PyObject *object, void *unused) {
    cell_object *self = (cell_object *)object;
    (void)unused;
    return runtime_usable(self->owner) ? name_of_cell(self->owner, self->cell) : NULL;
}

static PyObject *cell_repr(PyObject *object) {
    cell_object *self = (cell_object *)object;
    if (!self->owner->rt) return PyUnicode_FromString("<cell of a closed store>");
    if (!runtime_is_here(self->owner))
        return PyUnicode_FromString("<cell of another thread's store>");
    PyObject *name = cell_name(object, NULL);
    PyObject *out = name ? PyUnicode_FromFormat("<cell %U>", name) : NULL;
    Py_XDECREF(name);
    return out;
}

static PyObject *no_cell(runtime_object *owner) {
    return raise_status(owner, hd_runtime_error(owner->rt)->status, NULL);
}

/* A cell of the same Python class, with plain data. */
static PyObject *like(cell_object *self, hd_cell cell) {
    return cell_alloc(self->owner, Py_TYPE((PyObject *)self), cell, NULL, NULL);
}

static PyObject *cell_child(PyObject *object, PyObject *key) {
    cell_object *self = (cell_object *)object;
    if (!runtime_usable(self->owner)) return NULL;
    PyObject *text = PyUnicode_Check(key) || PyLong_CheckExact(key) ? PyObject_Str(key) : NULL;
    if (!text && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a part of a cell is named by a str or an int");
    const char *chars = text ? name_from(text) : NULL;
    if (chars && *chars == '-' && PyLong_CheckExact(key)) {
        PyErr_SetString(PyExc_IndexError, "a cell counts elements from the front: read the list, "
                                          "and take the element from that: cell()[-1]");
        chars = NULL;
    }
    PyObject *out = chars ? like(self, hd_cell_child(self->owner->rt, self->cell, chars)) : NULL;
    Py_XDECREF(text);
    return out;
}

static PyObject *cell_link(PyObject *object, PyObject *unused) {
    cell_object *self = (cell_object *)object;
    (void)unused;
    if (!runtime_usable(self->owner)) return NULL;
    hd_value v = hd_cell_link(self->owner->rt, pool_enter(self->owner), self->cell);
    PyObject *out = to_python(self->owner, v, PLAIN);
    pool_leave(self->owner);
    return out;
}

/* The cell that a link points at, seen from this one. */
static PyObject *cell_at_link(PyObject *object, PyObject *link) {
    cell_object *self = (cell_object *)object;
    if (!runtime_usable(self->owner)) return NULL;
    hd_value v = from_python(self->owner, pool_enter(self->owner), link, PLAIN);
    PyObject *out =
        hd_value_status(v) ? NULL : like(self, hd_cell_of_link(self->owner->rt, self->cell, v));
    pool_leave(self->owner);
    return out;
}

static PyObject *cell_with_schema(PyObject *object, PyObject *schema) {
    cell_object *self = (cell_object *)object;
    runtime_object *owner = self->owner;
    hd_schema *compiled = NULL;
    hd_error error = { 0 };
    if (!runtime_usable(owner)) return NULL;
    hd_value v = from_python(owner, pool_enter(owner), schema, PLAIN);
    hd_status status = hd_value_status(v);
    if (!status) status = hd_schema_compile(hd_runtime_heap(owner->rt), v, &compiled, &error);
    hd_cell cell = status ? (hd_cell){ 0 } : hd_cell_with_schema(owner->rt, self->cell, compiled);
    hd_schema_close(compiled);
    pool_leave(owner);
    if (status) return raise_status(owner, status, &error);
    return like(self, cell);
}

/* ---- Metadata ---------------------------------------------------------------------------- */

static PyObject *cell_meta(PyObject *object, PyObject *key) {
    cell_object *self = (cell_object *)object;
    runtime_object *owner = self->owner;
    const char *name = name_from(key);
    if (!name || !runtime_usable(owner)) return NULL;
    hd_tx *of = tx_of(owner), *tx = of;
    hd_status status = tx ? HD_OK : hd_tx_begin_read(owner->rt, &tx);
    if (status) return raise_status(owner, status, NULL);
    PyObject *out = to_python(owner, hd_tx_get_meta(tx, self->cell, name), PLAIN);
    if (!of) hd_tx_abort(tx);
    return out;
}

/* Its metadata lives with the transaction: outside of one it has one of its own. */
static PyObject *cell_set_meta(PyObject *object, PyObject *args) {
    cell_object *self = (cell_object *)object;
    runtime_object *owner = self->owner;
    const char *name;
    PyObject *v;
    if (!runtime_usable(owner) || !PyArg_ParseTuple(args, "sO", &name, &v)) return NULL;
    hd_tx *of = tx_of(owner), *tx = of;
    hd_status status = tx ? HD_OK : hd_tx_begin(owner->rt, &tx);
    if (status) return raise_status(owner, status, NULL);
    hd_value value = from_python(owner, hd_tx_pool(tx), v, PLAIN);
    status = hd_value_status(value);
    if (!status) status = hd_tx_set_meta(tx, self->cell, name, value);
    if (!of && status) hd_tx_abort(tx);
    else if (!of) status = hd_tx_commit(tx, NULL, NULL);
    runtime_woken(owner);
    return PyErr_Occurred() ? NULL : none_or_raise(owner, status);
}

static PyObject *cell_set_kind(PyObject *object, PyObject *kind) {
    cell_object *self = (cell_object *)object;
    const char *name = name_from(kind);
    if (!name || !runtime_usable(self->owner)) return NULL;
    hd_tx *tx = tx_of(self->owner);
    if (!tx) {
        hd_error error = { .status = HD_USAGE, .message = "set_kind belongs to a transaction" };
        return raise_error(self->owner->st, HD_USAGE, &error);
    }
    return none_or_raise(self->owner, hd_tx_set_kind(tx, self->cell, name));
}

/* ---- Making ------------------------------------------------------------------------------ */

static hd_cell named(runtime_object *owner, PyObject *name) {
    const char *chars = name_from(name);
    hd_cell cell = chars ? hd_cell_at(owner->rt, chars) : (hd_cell){ 0 };
    if (chars && !cell.id) no_cell(owner);
    return cell;
}

bool cell_from(runtime_object *owner, PyObject *from, hd_cell *out) {
    if (PyUnicode_Check(from)) return *out = named(owner, from), out->id;
    if (!PyObject_TypeCheck(from, owner->st->cell_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a cell, or its name");
        return false;
    }
    cell_object *cell = (cell_object *)from;
    if (cell->owner != owner) {
        PyErr_SetString(PyExc_ValueError, "the cell belongs to another store");
        return false;
    }
    *out = cell->cell;
    return true;
}

bool cells_from(runtime_object *owner, PyObject *from, hd_cell **out, size_t *count) {
    *out = NULL;
    *count = 0;
    if (!is_set(from)) return true;
    PyObject *list = PySequence_List(from);
    Py_ssize_t n = list ? PyList_Size(list) : 0;
    bool good = list != NULL;
    if (n && !(*out = PyMem_Malloc((size_t)n * sizeof **out))) good = PyErr_NoMemory() != NULL;
    for (Py_ssize_t i = 0; good && i < n; i++)
        good = cell_from(owner, PyList_GetItem(list, i), &(*out)[i]);
    Py_XDECREF(list);
    if (!good) PyMem_Free(*out), *out = NULL;
    else *count = (size_t)n;
    return good;
}

/* Cells are made here only, so that each has a runtime. `type` is Cell or a subclass. */
static PyObject *cell_alloc(runtime_object *owner, PyTypeObject *type, hd_cell cell, PyObject *load,
                            PyObject *dump) {
    if (!cell.id) return no_cell(owner);
    cell_object *self = (cell_object *)object_alloc(type);
    if (!self) return NULL;
    self->owner = (runtime_object *)Py_NewRef((PyObject *)owner);
    self->cell = cell;
    self->load = Py_XNewRef(load);
    self->dump = Py_XNewRef(dump);
    return (PyObject *)self;
}

PyObject *cell_wrap(runtime_object *owner, PyTypeObject *type, hd_cell cell) {
    return cell_alloc(owner, type, cell, NULL, NULL);
}

/* runtime.cell(cls, name or cell, load, dump) */
PyObject *runtime_cell(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *type, *name, *load = NULL, *dump = NULL;
    hd_cell cell;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "OO|OO", &type, &name, &load, &dump))
        return NULL;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, self->st->cell_type))
        return PyErr_Format(PyExc_TypeError, "expected Cell or a subclass");
    if (!cell_from(self, name, &cell)) return NULL;
    return cell_alloc(self, (PyTypeObject *)type, cell, load, dump);
}

static int cell_traverse(PyObject *object, visitproc visit, void *arg) {
    cell_object *self = (cell_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->owner);
    Py_VISIT(self->load);
    Py_VISIT(self->dump);
    return 0;
}

static void cell_dealloc(PyObject *object) {
    cell_object *self = (cell_object *)object;
    PyObject_GC_UnTrack(object);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->load);
    Py_CLEAR(self->dump);
    object_free(object);
}

static Py_hash_t cell_hash(PyObject *object) {
    return (Py_hash_t)((cell_object *)object)->cell.id + 1;
}

static PyObject *cell_compare(PyObject *a, PyObject *b, int op) {
    module_state *st = ((cell_object *)a)->owner->st;
    if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(b, st->cell_type))
        return Py_NewRef(Py_NotImplemented);
    cell_object *x = (cell_object *)a, *y = (cell_object *)b;
    bool same = x->owner == y->owner && x->cell.id == y->cell.id;
    return PyBool_FromLong(same == (op == Py_EQ));
}

static PyGetSetDef getters[] = { { "name", cell_name, NULL, "\"space/id#/path\"", NULL }, { 0 } };
static PyMemberDef members[] = { { "runtime", T_OBJECT, offsetof(cell_object, owner), READONLY,
                                   NULL },
                                 { "load", T_OBJECT, offsetof(cell_object, load), READONLY, NULL },
                                 { "dump", T_OBJECT, offsetof(cell_object, dump), READONLY, NULL },
                                 { 0 } };

static PyMethodDef methods[] = {
    { "get", cell_get, METH_NOARGS,
      "get($self, /)\n--\n\n"
      "Its value; the same as calling the cell." },
    { "peek", cell_peek, METH_NOARGS,
      "peek($self, /)\n--\n\n"
      "Its value, without becoming a dependency or a claim." },
    { "shape", cell_shape, METH_NOARGS,
      "shape($self, /)\n--\n\n"
      "Its value; only changes of kind, keys, length or scalar count." },
    { "value", cell_value, METH_NOARGS,
      "value($self, /)\n--\n\n"
      "Its value, unconverted: to be passed on." },
    { "raw", cell_raw, METH_NOARGS,
      "raw($self, /)\n--\n\n"
      "Its value; a link is returned as a Link." },
    { "exists", cell_exists, METH_NOARGS,
      "exists($self, /)\n--\n\n"
      "Whether there is a value." },
    { "pull", cell_pull, METH_NOARGS,
      "pull($self, /)\n--\n\n"
      "Brings it up to date and reads it." },
    { "set", cell_set, METH_O,
      "set($self, value, /)\n--\n\n"
      "Writes it." },
    { "append", cell_append, METH_O,
      "append($self, item, /)\n--\n\n"
      "Appends to a list; two appends never conflict." },
    { "increment", cell_increment, METH_VARARGS,
      "increment($self, by=1, /)\n--\n\n"
      "Adds to a number; two increments never conflict." },
    { "remove", cell_remove, METH_NOARGS,
      "remove($self, /)\n--\n\n"
      "Removes it; of a whole document: deletes it." },
    { "patch", cell_patch, METH_O,
      "patch($self, patch, /)\n--\n\n"
      "Applies a list of {op, path, value}, or nothing of it: op is set, remove, append or\n"
      "increment, path a JSON pointer (/items/0)." },
    { "require_absent", cell_require_absent, METH_NOARGS,
      "require_absent($self, /)\n--\n\n"
      "The commit is refused if the document exists." },
    { "require_equal", cell_require_equal, METH_O,
      "require_equal($self, value, /)\n--\n\n"
      "The commit is refused if the value is another." },
    { "set_volatile", cell_set_volatile, METH_NOARGS,
      "set_volatile($self, /)\n--\n\n"
      "The document is never stored." },
    { "child", cell_child, METH_O,
      "child($self, key, /)\n--\n\n"
      "The cell of a key or an index." },
    { "link", cell_link, METH_NOARGS,
      "link($self, /)\n--\n\n"
      "A link to the cell." },
    { "at_link", cell_at_link, METH_O,
      "at_link($self, link, /)\n--\n\n"
      "The cell that a link points at, seen from here." },
    { "with_schema", cell_with_schema, METH_O,
      "with_schema($self, schema, /)\n--\n\n"
      "The same address, read through a JSON Schema." },
    { "meta", cell_meta, METH_O,
      "meta($self, key, /)\n--\n\n"
      "Metadata of the document." },
    { "set_meta", cell_set_meta, METH_VARARGS,
      "set_meta($self, key, value, /)\n--\n\n"
      "Writes metadata of the document." },
    { "set_kind", cell_set_kind, METH_O,
      "set_kind($self, kind, /)\n--\n\n"
      "The kind of the document that this transaction writes." },
    { 0 },
};

static PyType_Slot slots[] = { { Py_tp_dealloc, cell_dealloc },
                               { Py_tp_traverse, cell_traverse },
                               { Py_tp_call, cell_call },
                               { Py_tp_repr, cell_repr },
                               { Py_tp_hash, cell_hash },
                               { Py_tp_richcompare, cell_compare },
                               { Py_mp_subscript, cell_child },
                               { Py_tp_methods, methods },
                               { Py_tp_getset, getters },
                               { Py_tp_members, members },
                               { Py_tp_doc, "An address in the store; calling it reads it." },
                               { 0, NULL } };
static PyType_Spec spec = { .name = "_heddle.Cell",
                            .basicsize = sizeof(cell_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                                     Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

bool cell_init(module_state *st) {
    st->cell_type = make_type(st, &spec, "Cell");
    return st->cell_type;
}
