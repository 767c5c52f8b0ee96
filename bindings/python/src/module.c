/* module.c -- the module _heddle: its state, its functions, its types. */
#include "convert.h"

module_state *state_of(PyObject *module) { return PyModule_GetState(module); }

PyTypeObject *make_type(module_state *st, PyType_Spec *spec, const char *name) {
    PyObject *type = PyType_FromModuleAndSpec(st->module, spec, NULL);
    if (type && PyModule_AddObjectRef(st->module, name, type)) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

PyObject *object_alloc(PyTypeObject *type) {
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

void object_free(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* ---- Numbers ----------------------------------------------------------------------------- */

bool ms_from(double seconds, const char *what, uint64_t *out) {
    bool good = seconds >= 0 && seconds <= 1e12;
    if (good) *out = (uint64_t)(seconds * 1000);
    else
        PyErr_Format(PyExc_ValueError, "%s is a number of seconds, at least 0 and at most 1e12",
                     what);
    return good;
}

/* ---- Functions --------------------------------------------------------------------------- */

static void replace(PyObject **slot, PyObject *with) {
    PyObject *old = *slot;
    *slot = Py_NewRef(with);
    Py_XDECREF(old);
}

/* set_hooks(encode, decode, plain, link, log) */
static PyObject *set_hooks(PyObject *module, PyObject *args) {
    module_state *st = state_of(module);
    PyObject *encode, *decode, *plain, *link, *log;
    if (!PyArg_ParseTuple(args, "OOOOO", &encode, &decode, &plain, &link, &log)) return NULL;
    replace(&st->encode, encode);
    replace(&st->decode, decode);
    replace(&st->plain, plain);
    replace(&st->link, link);
    replace(&st->log, log);
    Py_RETURN_NONE;
}

static PyObject *after_fork(PyObject *module, PyObject *unused) {
    (void)unused;
    state_of(module)->forks++;
    Py_RETURN_NONE;
}

/* ---- Looking at a workflow without an engine --------------------------------------------- */

/* A heap for one call. */
typedef struct lone {
    runtime_object self; /* only what conversion needs */
    hd_heap *heap;
} lone;

static void lone_free(lone *l) {
    if (!l) return;
    hd_pool_close(l->self.pool);
    hd_heap_close(l->heap);
    PyMem_Free(l);
}

/* One heap is kept for the next call. A call inside another, by a hook, has a second one. */
static lone *lone_open(module_state *st) {
    lone *l = st->spare;
    st->spare = NULL;
    if (l) return l;
    if (!(l = PyMem_Calloc(1, sizeof *l))) return (lone *)PyErr_NoMemory();
    l->self.st = st;
    hd_status status = hd_heap_open(NULL, NULL, &l->heap);
    if (!status) status = hd_pool_open(l->heap, &l->self.pool);
    if (!status) return l;
    lone_free(l);
    return (lone *)raise_error(st, status, NULL);
}

static void lone_close(lone *l) {
    hd_pool_clear(l->self.pool);
    if (l->self.st->spare) lone_free(l);
    else l->self.st->spare = l;
}

static PyObject *text_or_raise(lone *l, hd_value v, const hd_error *error) {
    hd_status status = hd_value_status(v);
    if (PyErr_Occurred()) return NULL;
    return status ? raise_error(l->self.st, status, error) : to_python(&l->self, v, PLAIN);
}

/* workflow_graph(ir, form, instance): form is "text", "mermaid", "dot", "svg" or "json". */
static PyObject *workflow_graph(PyObject *module, PyObject *args) {
    static const char *const forms[] = { "text", "mermaid", "dot", "svg", "json" };
    PyObject *ir, *instance = Py_None;
    const char *name;
    hd_error error = { 0 };
    int chosen = -1;
    if (!PyArg_ParseTuple(args, "Os|O", &ir, &name, &instance)) return NULL;
    for (int i = 0; i < 5; i++)
        if (!strcmp(name, forms[i])) chosen = i;
    if (chosen < 0)
        return PyErr_Format(PyExc_ValueError, "form is text, mermaid, dot, svg or json");
    lone *l = lone_open(state_of(module));
    if (!l) return NULL;
    hd_value graph = from_python(&l->self, l->self.pool, ir, PLAIN);
    hd_value at = instance == Py_None ? (hd_value){ 0 }
                                      : from_python(&l->self, l->self.pool, instance, PLAIN);
    if (!PyErr_Occurred())
        graph = hd_workflow_graph(l->self.pool, graph, (hd_graph_form)chosen, at, &error);
    PyObject *out = text_or_raise(l, graph, &error);
    lone_close(l);
    return out;
}

static PyObject *workflow_explain(PyObject *module, PyObject *ir) {
    hd_error error = { 0 };
    lone *l = lone_open(state_of(module));
    if (!l) return NULL;
    hd_value v = from_python(&l->self, l->self.pool, ir, PLAIN);
    if (!PyErr_Occurred()) v = hd_workflow_explain(l->self.pool, v, &error);
    PyObject *out = text_or_raise(l, v, &error);
    lone_close(l);
    return out;
}

/* ---- Values of messages ------------------------------------------------------------------ */

/* A value in tagged form as JSON text, and back: what workers say on their socket. */
static PyObject *dumps(PyObject *module, PyObject *value) {
    size_t length;
    PyObject *out = NULL;
    lone *l = lone_open(state_of(module));
    if (!l) return NULL;
    hd_value v = from_python(&l->self, l->self.pool, value, TAGGED);
    const char *json =
        PyErr_Occurred() ? NULL : hd_json_print(l->self.pool, v, HD_JSON_COMPACT, &length);
    if (json) out = PyBytes_FromStringAndSize(json, (Py_ssize_t)length);
    else if (!PyErr_Occurred()) PyErr_NoMemory();
    lone_close(l);
    return out;
}

static PyObject *parsed(lone *l, const char *json, size_t length) {
    hd_error error = { 0 };
    hd_value v = hd_json_parse(l->self.pool, json, length, &error);
    hd_status status = hd_value_status(v);
    PyObject *out =
        status ? raise_error(l->self.st, status, &error) : to_python(&l->self, v, TAGGED);
    hd_pool_clear(l->self.pool);
    return out;
}

static PyObject *loads(PyObject *module, PyObject *bytes) {
    char *json;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(bytes, &json, &length)) return NULL;
    lone *l = lone_open(state_of(module));
    if (!l) return NULL;
    PyObject *out = parsed(l, json, (size_t)length);
    lone_close(l);
    return out;
}

#define FRAME_HEAD 4

/* The length of the message that begins here, in network order. */
static size_t frame_length(const char *head) {
    const unsigned char *h = (const unsigned char *)head;
    return (size_t)h[0] << 24 | (size_t)h[1] << 16 | (size_t)h[2] << 8 | h[3];
}

/* The whole messages at the front of `bytes`, into a list. Returns how many bytes they take; -1: an exception. */
static Py_ssize_t take_frames(lone *l, const char *bytes, Py_ssize_t length, PyObject *list) {
    Py_ssize_t at = 0;
    while (length - at >= FRAME_HEAD) {
        size_t size = frame_length(bytes + at);
        if ((size_t)(length - at - FRAME_HEAD) < size) break;
        PyObject *message = parsed(l, bytes + at + FRAME_HEAD, size);
        if (!list_add(list, message)) return -1;
        at += FRAME_HEAD + (Py_ssize_t)size;
    }
    return at;
}

/* unframe(bytes): the whole messages at its front, and the bytes behind them. */
static PyObject *unframe(PyObject *module, PyObject *bytes) {
    char *chars;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(bytes, &chars, &length)) return NULL;
    lone *l = lone_open(state_of(module));
    PyObject *list = l ? PyList_New(0) : NULL;
    Py_ssize_t taken = list ? take_frames(l, chars, length, list) : -1;
    if (l) lone_close(l);
    PyObject *out = taken < 0 ? NULL : Py_BuildValue("(Oy#)", list, chars + taken, length - taken);
    Py_XDECREF(list);
    return out;
}

static PyMethodDef functions[] = {
    { "set_hooks", set_hooks, METH_VARARGS, "Sets what converts values that C does not know." },
    { "after_fork", after_fork, METH_NOARGS, "Stores opened before belong to the parent." },
    { "workflow_graph", workflow_graph, METH_VARARGS, "A picture of a workflow." },
    { "workflow_explain", workflow_explain, METH_O,
      "Its loops, and why they are parallel or not." },
    { "dumps", dumps, METH_O, "A value of workflows as JSON." },
    { "loads", loads, METH_O, "JSON as a value of workflows." },
    { "unframe", unframe, METH_O, "The messages of a worker's socket, and what is left." },
    { 0 },
};

/* ---- The module -------------------------------------------------------------------------- */

static int exec(PyObject *module) {
    module_state *st = state_of(module);
    st->module = module;
    if (!errors_init(st) || !runtime_init(st) || !cell_init(st) || !value_init(st) ||
        !engine_init(st) || !run_init(st) || !build_init(st))
        return -1;
    return PyModule_AddStringConstant(module, "version", hd_version());
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    module_state *st = state_of(module);
    Py_VISIT(st->encode);
    Py_VISIT(st->decode);
    Py_VISIT(st->plain);
    Py_VISIT(st->link);
    Py_VISIT(st->log);
    return 0;
}

static int clear(PyObject *module) {
    module_state *st = state_of(module);
    Py_CLEAR(st->encode);
    Py_CLEAR(st->decode);
    Py_CLEAR(st->plain);
    Py_CLEAR(st->link);
    Py_CLEAR(st->log);
    Py_CLEAR(st->runtime_type);
    Py_CLEAR(st->cell_type);
    Py_CLEAR(st->value_type);
    Py_CLEAR(st->engine_type);
    Py_CLEAR(st->run_type);
    Py_CLEAR(st->build_type);
    errors_clear(st);
    lone_free(st->spare);
    st->spare = NULL;
    for (size_t i = 0; i < KEY_CACHE; i++) Py_CLEAR(st->keys[i]);
    return 0;
}

static void free_module(void *module) { clear(module); }

static PyModuleDef_Slot slots[] = { { Py_mod_exec, exec }, { 0, NULL } };
static PyModuleDef definition = { .m_base = PyModuleDef_HEAD_INIT,
                                  .m_name = "_heddle",
                                  .m_doc = "The library, for the package heddle.",
                                  .m_size = sizeof(module_state),
                                  .m_methods = functions,
                                  .m_slots = slots,
                                  .m_traverse = traverse,
                                  .m_clear = clear,
                                  .m_free = free_module };

PyMODINIT_FUNC PyInit__heddle(void);
PyMODINIT_FUNC PyInit__heddle(void) { return PyModuleDef_Init(&definition); }
