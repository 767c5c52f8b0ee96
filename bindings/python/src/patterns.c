/* patterns.c -- patterns written in Python: the type Build, which a pattern's function is given, and pieces.
 *
 * The Python function of a primitive is kept as a callback, which is freed when the build stops (hd_build_on_stop). */
#include "convert.h"

#include <string.h>

typedef struct build_object {
    PyObject_HEAD runtime_object *owner;
    hd_build *b; /* NULL: the pattern's function has returned */
    PyObject *cell_class;
} build_object;

/* ---- Functions of primitives ------------------------------------------------------------- */

static hd_value result_of(callback *c, hd_tx *tx, PyObject *result) {
    hd_value v =
        result ? from_python(c->owner, hd_tx_pool(tx), result, PLAIN) : hd_failed(HD_FAILED);
    Py_XDECREF(result);
    if (!PyErr_Occurred()) return v;
    return hd_failed(status_of_exception(c->owner, tx, text_of(c->name)));
}

/* Calls the function with these values, inside the transaction. */
static hd_value call_with(callback *c, hd_tx *tx, const hd_value *in, size_t count) {
    runtime_object *self = c->owner;
    PyObject *args = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; args && i < count; i++) {
        PyObject *arg = to_python(self, in[i], PLAIN);
        if (arg) PyTuple_SetItem(args, (Py_ssize_t)i, arg);
        else Py_CLEAR(args);
    }
    hd_tx *outer = self->tx;
    self->tx = tx;
    PyObject *result = args ? PyObject_CallObject(c->fn, args) : NULL;
    self->tx = outer;
    Py_XDECREF(args);
    return result_of(c, tx, result);
}

static hd_value derive(hd_tx *tx, hd_value in, void *ctx) { return call_with(ctx, tx, &in, 1); }
static hd_value lift(hd_tx *tx, const hd_value *in, void *ctx) {
    return call_with(ctx, tx, in, ((callback *)ctx)->count);
}
static hd_value combine(hd_tx *tx, hd_value a, hd_value b, void *ctx) {
    return call_with(ctx, tx, (hd_value[]){ a, b }, 2);
}

/* Calls the function with these arguments, inside the transaction, and drops what it returns. */
static hd_status tell(hd_tx *tx, callback *c, PyObject *args) {
    runtime_object *self = c->owner;
    hd_tx *outer = self->tx;
    self->tx = tx;
    PyObject *answer = args ? PyObject_CallObject(c->fn, args) : NULL;
    self->tx = outer;
    Py_XDECREF(args);
    Py_XDECREF(answer);
    return PyErr_Occurred() ? status_of_exception(self, tx, text_of(c->name)) : HD_OK;
}

static void sink(hd_value v, void *ctx) {
    callback *c = ctx;
    PyObject *data = to_python(c->owner, v, PLAIN);
    (void)tell(NULL, c, data ? Py_BuildValue("(N)", data) : NULL);
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    callback *c = ctx;
    PyObject *data = to_python(c->owner, event->payload, PLAIN);
    return tell(tx, c, data ? Py_BuildValue("(Ns)", data, event->id) : NULL);
}

/* ---- Building ---------------------------------------------------------------------------- */

static bool usable(build_object *self) {
    if (!runtime_usable(self->owner)) return false;
    if (self->b) return true;
    PyErr_SetString(PyExc_RuntimeError,
                    "a build can be used only while its pattern's function runs");
    return false;
}

/* The cell as a Python object, or the exception of the build's failure. */
static PyObject *made(build_object *self, hd_cell cell) {
    hd_status status = hd_build_status(self->b);
    if (status) return raise_status(self->owner, status, NULL);
    return cell_wrap(self->owner, (PyTypeObject *)self->cell_class, cell);
}

/* The function lives as long as the build. */
static callback *keep(build_object *self, PyObject *fn, const char *name) {
    callback *c = callback_new(self->owner, fn, self->cell_class, (hd_cell){ 0 });
    if (!c) return NULL;
    c->name = PyUnicode_FromString(name);
    hd_build_on_stop(self->b, callback_free, c);
    if (!hd_build_status(self->b)) return c;
    return (callback *)(void *)raise_status(self->owner, hd_build_status(self->b), NULL);
}

typedef hd_cell (*value_fn)(hd_build *b, const char *name, hd_value v);

static PyObject *with_value(PyObject *object, PyObject *args, value_fn fn) {
    build_object *self = (build_object *)object;
    const char *name;
    PyObject *value = NULL;
    if (!usable(self) || !PyArg_ParseTuple(args, "s|O", &name, &value)) return NULL;
    hd_value v =
        value ? from_python(self->owner, hd_build_pool(self->b), value, PLAIN) : (hd_value){ 0 };
    return PyErr_Occurred() ? NULL : made(self, fn(self->b, name, v));
}

static PyObject *build_argument(PyObject *o, PyObject *a) {
    return with_value(o, a, hd_build_argument);
}
static PyObject *build_constant(PyObject *o, PyObject *a) {
    return with_value(o, a, hd_build_constant);
}
static PyObject *build_state(PyObject *o, PyObject *a) { return with_value(o, a, hd_build_state); }

/* lift(name, cells, fn): fn gets their values. */
static PyObject *build_lift(PyObject *object, PyObject *args) {
    build_object *self = (build_object *)object;
    const char *name;
    PyObject *cells, *fn, *out = NULL;
    hd_cell *in;
    size_t count;
    if (!usable(self) || !PyArg_ParseTuple(args, "sOO", &name, &cells, &fn) ||
        !cells_from(self->owner, cells, &in, &count))
        return NULL;
    callback *c = keep(self, fn, name);
    if (c) c->count = count;
    if (c) out = made(self, hd_build_lift(self->b, name, lift, c, in, count));
    PyMem_Free(in);
    return out;
}

/* Takes the arguments (name, cell, fn). */
static callback *with_cell(build_object *self, PyObject *args, const char **name, hd_cell *in) {
    PyObject *cell, *fn;
    if (!usable(self) || !PyArg_ParseTuple(args, "sOO", name, &cell, &fn) ||
        !cell_from(self->owner, cell, in))
        return NULL;
    return keep(self, fn, *name);
}

static PyObject *build_derive(PyObject *object, PyObject *args) {
    build_object *self = (build_object *)object;
    const char *name;
    hd_cell in;
    callback *c = with_cell(self, args, &name, &in);
    return c ? made(self, hd_build_derive(self->b, name, in, derive, c)) : NULL;
}

static PyObject *build_if_else(PyObject *object, PyObject *args) {
    build_object *self = (build_object *)object;
    const char *name;
    PyObject *cells[3];
    hd_cell in[3];
    if (!usable(self) || !PyArg_ParseTuple(args, "sOOO", &name, &cells[0], &cells[1], &cells[2]))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (!cell_from(self->owner, cells[i], &in[i])) return NULL;
    return made(self, hd_build_if_else(self->b, name, in[0], in[1], in[2]));
}

/* ---- Lists ------------------------------------------------------------------------------- */

static hd_cell build_row(hd_build *row, hd_cell element, void *ctx);

typedef hd_cell (*each_fn)(hd_build *b, const char *name, hd_cell list, const hd_each *each);

/* map(name, list, fn, key, build): fn(element) gives a value, or with build fn(row, cell) a cell. */
static PyObject *each_of(PyObject *object, PyObject *args, PyObject *kw, each_fn fn) {
    static char *names[] = { "name", "list", "fn", "key", "build", NULL };
    build_object *self = (build_object *)object;
    const char *name, *key = NULL;
    PyObject *list, *function;
    int build = 0;
    hd_cell in;
    if (!usable(self) ||
        !PyArg_ParseTupleAndKeywords(args, kw, "sOO|zp", names, &name, &list, &function, &key,
                                     &build) ||
        !cell_from(self->owner, list, &in))
        return NULL;
    callback *c = keep(self, function, name);
    if (!c) return NULL;
    hd_each each = {
        .fn = build ? NULL : derive, .build = build ? build_row : NULL, .ctx = c, .key = key
    };
    return made(self, fn(self->b, name, in, &each));
}

static PyObject *build_map(PyObject *o, PyObject *a, PyObject *k) {
    return each_of(o, a, k, hd_build_map);
}
static PyObject *build_filter(PyObject *o, PyObject *a, PyObject *k) {
    return each_of(o, a, k, hd_build_filter);
}
static PyObject *build_flat_map(PyObject *o, PyObject *a, PyObject *k) {
    return each_of(o, a, k, hd_build_flat_map);
}
static PyObject *build_group(PyObject *o, PyObject *a, PyObject *k) {
    return each_of(o, a, k, hd_build_group);
}

static PyObject *build_gather(PyObject *object, PyObject *args) {
    build_object *self = (build_object *)object;
    const char *name;
    PyObject *list;
    hd_cell in;
    if (!usable(self) || !PyArg_ParseTuple(args, "sO", &name, &list) ||
        !cell_from(self->owner, list, &in))
        return NULL;
    return made(self, hd_build_gather(self->b, name, in));
}

/* HD_FOLD_OWN for a function, and for a name that is unknown. */
static hd_fold_kind fold_kind(PyObject *how) {
    static const char *const names[] = { "", "count", "sum", "minimum", "maximum" };
    const char *name = PyUnicode_Check(how) ? PyUnicode_AsUTF8AndSize(how, NULL) : NULL;
    for (int i = 1; name && i < 5; i++)
        if (!strcmp(name, names[i])) return (hd_fold_kind)i;
    return HD_FOLD_OWN;
}

/* fold(name, list, how, key): how is "sum", "count", "minimum", "maximum", or an associative function of two. */
static PyObject *build_fold(PyObject *object, PyObject *args) {
    build_object *self = (build_object *)object;
    const char *name, *key = NULL;
    PyObject *list, *how;
    hd_cell in;
    if (!usable(self) || !PyArg_ParseTuple(args, "sOO|z", &name, &list, &how, &key) ||
        !cell_from(self->owner, list, &in))
        return NULL;
    hd_fold fold = { .kind = fold_kind(how), .each = { .key = key } };
    if (fold.kind == HD_FOLD_OWN && !PyCallable_Check(how))
        return PyErr_Format(PyExc_ValueError, "fold by sum, count, minimum, maximum or a function");
    if (fold.kind == HD_FOLD_OWN) fold.combine = combine;
    if (fold.kind == HD_FOLD_OWN && !(fold.ctx = keep(self, how, name))) return NULL;
    return made(self, hd_build_fold(self->b, name, in, &fold));
}

/* ---- Patterns in patterns, effects, events ----------------------------------------------- */

enum { USE_MAX = 64 };

/* use(name, pattern, {argument: cell}) */
static PyObject *build_use(PyObject *object, PyObject *args) {
    build_object *self = (build_object *)object;
    const char *name, *pattern;
    PyObject *given, *key, *cell;
    hd_named_cell in[USE_MAX];
    size_t count = 0;
    Py_ssize_t at = 0;
    if (!usable(self) || !PyArg_ParseTuple(args, "ssO!", &name, &pattern, &PyDict_Type, &given))
        return NULL;
    if (PyDict_Size(given) > USE_MAX)
        return PyErr_Format(PyExc_ValueError, "a pattern is used with at most %d arguments",
                            USE_MAX);
    while (PyDict_Next(given, &at, &key, &cell)) {
        in[count].name = name_from(key);
        if (!in[count].name || !cell_from(self->owner, cell, &in[count].cell)) return NULL;
        count++;
    }
    return made(self, hd_build_use(self->b, name, pattern, in, count));
}

static PyObject *none_or_failed(build_object *self) {
    return none_or_raise(self->owner, hd_build_status(self->b));
}

static PyObject *build_sink(PyObject *object, PyObject *args) {
    build_object *self = (build_object *)object;
    const char *name;
    hd_cell in;
    callback *c = with_cell(self, args, &name, &in);
    if (!c) return NULL;
    hd_build_sink(self->b, name, in, sink, c);
    return none_or_failed(self);
}

static PyObject *build_stream(PyObject *object, PyObject *name) {
    build_object *self = (build_object *)object;
    const char *chars = name_from(name);
    if (!chars || !usable(self)) return NULL;
    return made(self, hd_build_stream(self->b, chars));
}

/* on(stream, fn, reads): fn(payload, id). */
static PyObject *build_on(PyObject *object, PyObject *args) {
    build_object *self = (build_object *)object;
    PyObject *stream, *fn, *reads = NULL;
    hd_cell to, *in;
    size_t count;
    if (!usable(self) || !PyArg_ParseTuple(args, "OO|O", &stream, &fn, &reads) ||
        !cell_from(self->owner, stream, &to) || !cells_from(self->owner, reads, &in, &count))
        return NULL;
    callback *c = keep(self, fn, "handler");
    if (c) hd_build_handler(self->b, to, handle, c, in, count);
    PyMem_Free(in);
    return c ? none_or_failed(self) : NULL;
}

/* ---- Calling a pattern's function -------------------------------------------------------- */

static PyObject *build_new(runtime_object *owner, hd_build *b, PyObject *cell_class) {
    build_object *self = (build_object *)object_alloc(owner->st->build_type);
    if (!self) return NULL;
    self->owner = (runtime_object *)Py_NewRef((PyObject *)owner);
    self->b = b;
    self->cell_class = Py_NewRef(cell_class);
    return (PyObject *)self;
}

/* An exception while the program starts a piece is raised there; any other time it is told. */
static hd_cell failed(runtime_object *self, hd_build *b, const char *name) {
    if (self->building) {
        PyObject *e = exception_take();
        interrupt_keep(self, e);
        Py_DECREF(e);
        return hd_build_fail(b, HD_FAILED, "%s raised an exception", name);
    }
    hd_status status = status_of_exception(self, NULL, name);
    return hd_build_fail(b, status, "%s raised an exception", name);
}

static hd_cell call_build(callback *c, hd_build *b, PyObject *element) {
    runtime_object *self = c->owner;
    hd_cell out = { 0 };
    PyObject *build = build_new(self, b, c->extra);
    PyObject *result = !build    ? NULL
                       : element ? PyObject_CallFunctionObjArgs(c->fn, build, element, NULL)
                                 : PyObject_CallFunctionObjArgs(c->fn, build, NULL);
    if (build) ((build_object *)build)->b = NULL;
    bool good = result && (result == Py_None || cell_from(self, result, &out));
    Py_XDECREF(build);
    Py_XDECREF(result);
    return good ? out : failed(self, b, text_of(c->name));
}

static hd_cell build_pattern(hd_build *b, void *ctx) { return call_build(ctx, b, NULL); }

static hd_cell build_row(hd_build *row, hd_cell element, void *ctx) {
    callback *c = ctx;
    PyObject *cell = cell_wrap(c->owner, (PyTypeObject *)c->extra, element);
    hd_cell out = cell ? call_build(c, row, cell) : failed(c->owner, row, text_of(c->name));
    Py_XDECREF(cell);
    return out;
}

/* ---- Patterns and pieces of a runtime ---------------------------------------------------- */

/* pattern(name, version, fn, cell class). The callback, and with it the texts, live as long as the runtime. */
PyObject *runtime_pattern(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *name, *version, *fn, *cell_class;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "UUOO", &name, &version, &fn, &cell_class))
        return NULL;
    callback *c = callback_new(self, fn, cell_class, (hd_cell){ 0 });
    if (!c) return NULL;
    c->name = Py_NewRef(name);
    c->version = Py_NewRef(version);
    hd_status status =
        hd_pattern_register(self->rt, PyUnicode_AsUTF8AndSize(name, NULL),
                            PyUnicode_AsUTF8AndSize(version, NULL), build_pattern, c);
    if (status) callback_free(c);
    return none_or_raise(self, status);
}

static PyObject *piece_number(hd_piece piece) {
    return PyLong_FromUnsignedLongLong((unsigned long long)piece.generation << 32 | piece.id);
}

/* piece(space, id, pattern, arguments); pattern None: as its document says. */
PyObject *runtime_piece(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    hd_piece_spec spec = { 0 };
    PyObject *arguments;
    hd_piece piece;
    hd_error error = { 0 };
    if (!runtime_usable(self) ||
        !PyArg_ParseTuple(args, "sszO", &spec.space, &spec.id, &spec.pattern, &arguments))
        return NULL;
    spec.arguments = from_python(self, pool_enter(self), arguments, PLAIN);
    self->building = true;
    hd_status status = PyErr_Occurred() ? HD_KIND
                       : spec.pattern
                           ? hd_piece_start(self->rt, &spec, &piece, &error)
                           : hd_piece_open(self->rt, spec.space, spec.id, &piece, &error);
    self->building = false;
    pool_leave(self);
    if (PyErr_Occurred() || raise_kept(self)) return NULL;
    runtime_woken(self);
    return status ? raise_status(self, status, &error) : piece_number(piece);
}

static bool piece_from(PyObject *from, hd_piece *out) {
    unsigned long long n = PyLong_AsUnsignedLongLong(from);
    *out = (hd_piece){ (uint32_t)n, (uint32_t)(n >> 32) };
    return !PyErr_Occurred();
}

/* piece_cell(piece, name, cell class): its result with None, its document with "", else the cell of a name. */
PyObject *runtime_piece_cell(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *number, *cell_class;
    const char *name;
    hd_piece piece;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "OzO", &number, &name, &cell_class) ||
        !piece_from(number, &piece))
        return NULL;
    hd_cell cell = !name    ? hd_piece_result(self->rt, piece)
                   : !*name ? hd_piece_document(self->rt, piece)
                            : hd_piece_cell(self->rt, piece, name);
    if (cell.id) return cell_wrap(self, (PyTypeObject *)cell_class, cell);
    hd_error error = { .status = HD_NOT_FOUND, .message = "the piece does not run" };
    return raise_error(self->st, HD_NOT_FOUND, &error);
}

/* piece_end(piece, remove) */
PyObject *runtime_piece_end(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    PyObject *number;
    int remove = 0;
    hd_piece piece;
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "Op", &number, &remove) ||
        !piece_from(number, &piece))
        return NULL;
    if (remove) return none_or_raise(self, hd_piece_remove(self->rt, piece));
    hd_piece_stop(self->rt, piece);
    Py_RETURN_NONE;
}

/* ---- The type ---------------------------------------------------------------------------- */

static void build_dealloc(PyObject *object) {
    build_object *self = (build_object *)object;
    Py_CLEAR(self->owner);
    Py_CLEAR(self->cell_class);
    object_free(object);
}

#define KEYWORDS(fn) ((PyCFunction)(void (*)(void))(fn)), METH_VARARGS | METH_KEYWORDS

/* The first line of a text is the signature, which help() and inspect.signature() read. */
static PyMethodDef methods[] = {
    { "argument", build_argument, METH_VARARGS,
      "argument($self, name, otherwise=None, /)\n--\n\n"
      "An argument of the piece, and what it is if it was not given. The parameters of the\n"
      "pattern's function are made by this." },
    { "constant", build_constant, METH_VARARGS,
      "constant($self, name, value, /)\n--\n\nA cell whose value does not change." },
    { "state", build_state, METH_VARARGS,
      "state($self, name, initial=None, /)\n--\n\n"
      "A document of the piece for handlers to write. `initial` counts when the piece is new." },
    { "lift", build_lift, METH_VARARGS,
      "lift($self, name, cells, fn, /)\n--\n\n"
      "A computation over several cells: fn(value, ...) gets their values." },
    { "derive", build_derive, METH_VARARGS,
      "derive($self, name, cell, fn, /)\n--\n\nA computation over one cell: fn(value)." },
    { "if_else", build_if_else, METH_VARARGS,
      "if_else($self, name, condition, then, otherwise, /)\n--\n\n"
      "The value of one of two cells; only the one that is chosen is kept up to date." },
    { "map", KEYWORDS(build_map),
      "map($self, name, list, fn, key=None, build=False)\n--\n\n"
      "A row for each element of a list: fn(element) gives its value. Only the rows of elements\n"
      "that have changed run. `key` is the path of what tells elements apart (\"/id\"), so that "
      "rows\n"
      "move with them; without it they are told apart by their place. With build=True the "
      "function\n"
      "is fn(b, cell), builds the row and returns its cell. The result is a list of links: "
      "`gather`\n"
      "has the values." },
    { "filter", KEYWORDS(build_filter),
      "filter($self, name, list, fn, key=None, build=False)\n--\n\n"
      "The elements for which fn(element) is true; `key` and `build` as in map." },
    { "flat_map", KEYWORDS(build_flat_map),
      "flat_map($self, name, list, fn, key=None, build=False)\n--\n\n"
      "The elements of the lists that fn(element) gives; `key` and `build` as in map." },
    { "group", KEYWORDS(build_group),
      "group($self, name, list, fn, key=None, build=False)\n--\n\n"
      "The elements by what fn(element) gives: {group: [link, ...]}, in the order of the list.\n"
      "An element for which it gives None is in no group. A group is a list for map, gather and\n"
      "fold, and the groups are one too: map over the result has a row for each group. `key` and\n"
      "`build` as in map." },
    { "gather", build_gather, METH_VARARGS,
      "gather($self, name, list, /)\n--\n\n"
      "The values that the links of a list lead to; of a map over groups, {group: value}. Links\n"
      "inside of a value, such as those of `group`, stay links." },
    { "fold", build_fold, METH_VARARGS,
      "fold($self, name, list, how, key=None, /)\n--\n\n"
      "One value for all elements: how is \"sum\", \"count\", \"minimum\", \"maximum\" or a "
      "function\n"
      "fn(a, b), which is called with neighbours in the list's order, in any brackets. When one of "
      "n\n"
      "elements changes, the function is called about log n times, not n times. `key` as in map." },
    { "use", build_use, METH_VARARGS,
      "use($self, name, pattern, arguments, /)\n--\n\n"
      "Another pattern, by its name, in this one. pattern(b, name, argument=cell) does the same." },
    { "sink", build_sink, METH_VARARGS,
      "sink($self, name, cell, fn, /)\n--\n\n"
      "Calls fn with the cell's value, now and whenever it changes." },
    { "stream", build_stream, METH_O,
      "stream($self, name, /)\n--\n\nAn address for events of the piece." },
    { "on", build_on, METH_VARARGS,
      "on($self, stream, fn, reads=(), /)\n--\n\n"
      "Handles the events of a stream: fn(payload, id), in a transaction for each event." },
    { 0 },
};
static PyType_Slot slots[] = { { Py_tp_dealloc, build_dealloc },
                               { Py_tp_methods, methods },
                               { Py_tp_doc, "What a pattern's function builds with." },
                               { 0, NULL } };
static PyType_Spec spec = { .name = "_heddle.Build",
                            .basicsize = sizeof(build_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

bool build_init(module_state *st) {
    st->build_type = make_type(st, &spec, "Build");
    return st->build_type;
}
