/* look.c -- looking inside: nodes, why and why not, the graph, counters. */
#include "convert.h"

#include <heddle/inspect.h>

static PyObject *cell_text(hd_runtime *rt, hd_cell cell) {
    char name[400];
    if (!cell.id) return PyUnicode_FromString("");
    hd_cell_print(rt, cell, name, sizeof name);
    return words_to_python(name);
}

static unsigned long long number_of(hd_node node) {
    return (unsigned long long)node.generation << 32 | node.id;
}

typedef struct collector {
    runtime_object *self;
    PyObject *list;
} collector;

static bool add_node(const hd_node_info *i, void *ctx) {
    static const char *const states[] = { "never ran", "clean", "invalid" };
    collector *c = ctx;
    return list_add(
        c->list,
        Py_BuildValue(
            "{s:K,s:s,s:O,s:O,s:O,s:s,s:N,s:K,s:K,s:s,s:s,s:I}", "node", number_of(i->node), "name",
            i->name, "effect", i->effect ? Py_True : Py_False, "live", i->live ? Py_True : Py_False,
            "suspended", i->suspended ? Py_True : Py_False, "status", states[i->status], "output",
            cell_text(c->self->rt, i->output), "runs", (unsigned long long)i->runs, "failures",
            (unsigned long long)i->failures, "why_not", hd_why_not_text(i->why_not), "why_live",
            hd_why_live_text(i->why_live), "reads", i->reads));
}

PyObject *runtime_nodes(PyObject *object, PyObject *unused) {
    runtime_object *self = (runtime_object *)object;
    (void)unused;
    if (!runtime_usable(self)) return NULL;
    collector c = { self, PyList_New(0) };
    if (!c.list) return NULL;
    hd_runtime_nodes(self->rt, add_node, &c);
    return list_done(self, c.list, HD_OK);
}

static bool add_cause(const hd_cause *cause, void *ctx) {
    static const char *const origins[] = { "program", "node", "another program", "load", "revert" };
    collector *c = ctx;
    return list_add(c->list,
                    Py_BuildValue("{s:I,s:N,s:z,s:z,s:s,s:s,s:K,s:K,s:O,s:O}", "depth",
                                  cause->depth, "cell", cell_text(c->self->rt, cause->cell),
                                  "before", cause->before, "after", cause->after, "origin",
                                  origins[cause->origin], "writer", cause->writer_name, "node",
                                  number_of(cause->node), "writer_node", number_of(cause->writer),
                                  "pending", cause->pending ? Py_True : Py_False, "repeated",
                                  cause->repeated ? Py_True : Py_False));
}

PyObject *runtime_why(PyObject *object, PyObject *handle) {
    runtime_object *self = (runtime_object *)object;
    hd_node node;
    if (!runtime_usable(self) || !node_from(handle, &node)) return NULL;
    collector c = { self, PyList_New(0) };
    return c.list ? list_done(self, c.list, hd_node_why(self->rt, node, add_cause, &c)) : NULL;
}

/* (a word, a sentence) */
PyObject *runtime_why_not(PyObject *object, PyObject *handle) {
    runtime_object *self = (runtime_object *)object;
    hd_node node;
    char text[500];
    if (!runtime_usable(self) || !node_from(handle, &node)) return NULL;
    hd_why_not reason = hd_node_why_not(self->rt, node, text, sizeof text);
    return Py_BuildValue("(ss)", hd_why_not_text(reason), text);
}

PyObject *runtime_graph(PyObject *object, PyObject *unused) {
    runtime_object *self = (runtime_object *)object;
    (void)unused;
    if (!runtime_usable(self)) return NULL;
    PyObject *out = to_python(self, hd_graph_snapshot(self->rt, pool_enter(self)), PLAIN);
    pool_leave(self);
    return out;
}

PyObject *runtime_stats(PyObject *object, PyObject *unused) {
    runtime_object *self = (runtime_object *)object;
    hd_scheduler_stats s;
    hd_store_stats t;
    hd_heap_stats h;
    (void)unused;
    if (!runtime_usable(self)) return NULL;
    hd_runtime_scheduler_stats(self->rt, &s);
    hd_runtime_store_stats(self->rt, &t);
    hd_heap_stat(hd_runtime_heap(self->rt), &h);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "nodes", s.nodes, "runs",
                         s.runs, "failures", s.failures, "unsettled", s.unsettled, "documents",
                         t.documents, "commits", t.commits, "accepted", t.accepted, "rejected",
                         t.rejected, "pending", t.pending, "values", h.live_blocks);
}

PyObject *runtime_trace(PyObject *object, PyObject *on) {
    runtime_object *self = (runtime_object *)object;
    int yes = PyObject_IsTrue(on);
    if (yes < 0 || !runtime_usable(self)) return NULL;
    return none_or_raise(self, hd_trace_enable(self->rt, yes ? HD_TRACE_ALL : 0));
}

/* inspect(socket, name): the command may ask this program; returns the socket's path. */
PyObject *runtime_inspect(PyObject *object, PyObject *args) {
    runtime_object *self = (runtime_object *)object;
    hd_serve_options options = { 0 };
    if (!runtime_usable(self) || !PyArg_ParseTuple(args, "zz", &options.socket, &options.name))
        return NULL;
    hd_status status = hd_runtime_serve(self->rt, &options);
    if (status) return raise_status(self, status, NULL);
    runtime_woken(self);
    return PyUnicode_FromString(hd_runtime_socket(self->rt));
}
