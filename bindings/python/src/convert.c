/* convert.c -- see convert.h. */
#include "convert.h"

#include <string.h>

/* ---- To Python --------------------------------------------------------------------------- */

/* Keys repeat: a document with a thousand rows has a thousand times the same ten. */
static PyObject *key_to_python(module_state *st, const char *key, size_t length) {
    uint32_t hash = (uint32_t)length;
    for (size_t i = 0; i < length; i++) hash = hash * 31 + (unsigned char)key[i];
    PyObject **slot = &st->keys[hash & (KEY_CACHE - 1)];
    if (*slot) {
        Py_ssize_t known_length;
        const char *known = PyUnicode_AsUTF8AndSize(*slot, &known_length);
        if (known && (size_t)known_length == length && !memcmp(known, key, length))
            return Py_NewRef(*slot);
    }
    PyObject *made = PyUnicode_FromStringAndSize(key, (Py_ssize_t)length);
    if (!made || length > 64) return made;
    PyObject *old = *slot;
    *slot = Py_NewRef(made);
    Py_XDECREF(old);
    return made;
}

static PyObject *list_to_python(runtime_object *self, hd_value v, form how) {
    PyObject *list = PyList_New((Py_ssize_t)hd_value_count(v));
    for (hd_iter it = hd_iter_of(v); list && hd_iter_next(&it);) {
        PyObject *item = to_python(self, it.value, how);
        if (item) PyList_SetItem(list, (Py_ssize_t)it.index, item);
        else Py_CLEAR(list);
    }
    return list;
}

static bool put(PyObject *dict, PyObject *key, PyObject *value) {
    bool good = key && value && !PyDict_SetItem(dict, key, value);
    Py_XDECREF(key);
    Py_XDECREF(value);
    return good;
}

static PyObject *plain_dict(runtime_object *self, hd_value v) {
    PyObject *dict = PyDict_New();
    for (hd_iter it = hd_iter_of(v); dict && hd_iter_next(&it);) {
        PyObject *key = key_to_python(self->st, it.key, it.key_length);
        PyObject *value = key ? to_python(self, it.value, PLAIN) : NULL;
        if (!put(dict, key, value)) Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *link_to_python(runtime_object *self, hd_value v) {
    static const char *const scopes[] = { NULL, "space", "user", "session" };
    hd_link link;
    hd_value_link(v, &link);
    (void)pool_enter(self);
    PyObject *out = PyObject_CallFunction(self->st->link, "zzzz", link.space, scopes[link.scope],
                                          link.id, link.path);
    pool_leave(self);
    return out;
}

/* ---- Tagged forms, to Python ------------------------------------------------------------- */

/* A key of the encoding: one dollar, and what follows is no dollar. */
static bool is_tag(const char *key, size_t length) {
    return length && key[0] == '$' && !(length > 1 && key[1] == '$');
}

static bool is_keys(const char *key, size_t length) {
    return length == 5 && !memcmp(key, "$keys", 5);
}

static PyObject *name_of_key(runtime_object *self, const char *key, size_t length) {
    bool doubled = length && key[0] == '$';
    return key_to_python(self->st, key + doubled, length - doubled);
}

/* In the order of "$keys". */
static PyObject *ordered_dict(runtime_object *self, hd_value v, hd_value keys) {
    PyObject *dict = PyDict_New();
    for (hd_iter it = hd_iter_of(keys); dict && hd_iter_next(&it);) {
        size_t length;
        const char *text = hd_value_text(it.value, &length);
        char *doubled = NULL;
        if (text && length && text[0] == '$' && (doubled = PyMem_Malloc(length + 1))) {
            doubled[0] = '$';
            memcpy(doubled + 1, text, length);
        }
        hd_value item = !text     ? (hd_value){ 0 }
                        : doubled ? hd_value_at_n(v, doubled, length + 1)
                                  : hd_value_at_n(v, text, length);
        PyMem_Free(doubled);
        PyObject *key = text ? key_to_python(self->st, text, length) : NULL;
        PyObject *value = key ? to_python(self, item, TAGGED) : NULL;
        if (!put(dict, key, value)) Py_CLEAR(dict);
    }
    return dict;
}

/* The keys that are not of the encoding. */
static PyObject *names_dict(runtime_object *self, hd_value v) {
    hd_value keys = hd_value_at(v, "$keys");
    if (hd_value_exists(keys)) return ordered_dict(self, v, keys);
    PyObject *dict = PyDict_New();
    for (hd_iter it = hd_iter_of(v); dict && hd_iter_next(&it);) {
        if (is_tag(it.key, it.key_length)) continue;
        PyObject *key = name_of_key(self, it.key, it.key_length);
        PyObject *value = key ? to_python(self, it.value, TAGGED) : NULL;
        if (!put(dict, key, value)) Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *pairs_dict(runtime_object *self, hd_value pairs) {
    PyObject *dict = PyDict_New();
    for (hd_iter it = hd_iter_of(pairs); dict && hd_iter_next(&it);) {
        PyObject *key = to_python(self, hd_value_index(it.value, 0), TAGGED);
        PyObject *value = key ? to_python(self, hd_value_index(it.value, 1), TAGGED) : NULL;
        if (!put(dict, key, value)) Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *through_list(runtime_object *self, hd_value v, PyObject *(*make)(PyObject *)) {
    PyObject *list = list_to_python(self, v, TAGGED);
    PyObject *out = list ? make(list) : NULL;
    Py_XDECREF(list);
    return out;
}

static PyObject *by_hook(runtime_object *self, hd_value v, const char *tag, hd_value head) {
    PyObject *first = to_python(self, head, TAGGED);
    PyObject *body = first ? names_dict(self, v) : NULL;
    (void)pool_enter(self);
    PyObject *out = body ? PyObject_CallFunction(self->st->decode, "sOO", tag, first, body) : NULL;
    pool_leave(self);
    Py_XDECREF(first);
    Py_XDECREF(body);
    return out;
}

static PyObject *tag_to_python(runtime_object *self, hd_value v, const char *tag, hd_value head) {
    size_t count = hd_value_count(v);
    if (count == 1 && !strcmp(tag, "$tuple")) return through_list(self, head, PyList_AsTuple);
    if (count == 1 && !strcmp(tag, "$set")) return through_list(self, head, PySet_New);
    if (count == 1 && !strcmp(tag, "$dict")) return pairs_dict(self, head);
    return by_hook(self, v, tag, head);
}

static PyObject *tagged_dict(runtime_object *self, hd_value v) {
    bool ordered = false;
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        if (it.key[0] > '$') break; /* keys come in order */
        if (!is_tag(it.key, it.key_length)) continue;
        if (is_keys(it.key, it.key_length)) ordered = true;
        else return tag_to_python(self, v, it.key, it.value);
    }
    return ordered ? ordered_dict(self, v, hd_value_at(v, "$keys")) : names_dict(self, v);
}

static PyObject *container_to_python(runtime_object *self, hd_value v, form how) {
    if (Py_EnterRecursiveCall(" while converting a value")) return NULL;
    PyObject *out = hd_value_kind(v) == HD_KIND_ARRAY ? list_to_python(self, v, how)
                    : how == PLAIN                    ? plain_dict(self, v)
                                                      : tagged_dict(self, v);
    Py_LeaveRecursiveCall();
    return out;
}

PyObject *to_python(runtime_object *self, hd_value v, form how) {
    size_t length;
    const char *chars;
    switch (hd_value_kind(v)) {
    case HD_KIND_ABSENT:
    case HD_KIND_NULL: return Py_NewRef(Py_None);
    case HD_KIND_BOOL: return PyBool_FromLong(hd_value_as_bool(v, false));
    case HD_KIND_INT: return PyLong_FromLongLong(hd_value_as_int(v, 0));
    case HD_KIND_DOUBLE: return PyFloat_FromDouble(hd_value_number(v));
    case HD_KIND_STRING:
        chars = hd_value_text(v, &length);
        return PyUnicode_FromStringAndSize(chars, (Py_ssize_t)length);
    case HD_KIND_BYTES:
        chars = hd_value_bytes(v, &length);
        return PyBytes_FromStringAndSize(chars, (Py_ssize_t)length);
    case HD_KIND_ARRAY:
    case HD_KIND_OBJECT: return container_to_python(self, v, how);
    case HD_KIND_LINK: return link_to_python(self, v);
    default: return raise_status(self, hd_value_status(v), NULL);
    }
}

/* ---- From Python ------------------------------------------------------------------------- */

/* Where in the value we are, for messages. */
typedef struct step {
    const struct step *above;
    PyObject *key; /* borrowed; NULL: index */
    Py_ssize_t index;
} step;

/* The containers and objects that are being written, the innermost first. */
typedef struct open_part {
    const struct open_part *above;
    const PyObject *part;
    const step *at;
    unsigned depth;
} open_part;
#define CIRCLE_DEPTH                                                                               \
    256 /* whenever it is so many levels deeper, a value is searched for a circle */

typedef struct writer {
    runtime_object *self;
    hd_pool *pool;
    form how;
    const open_part *open;
} writer;

static hd_value write_value(const writer *w, PyObject *from, const step *at);

static PyObject *print_steps(const step *at) {
    if (!at) return PyUnicode_FromString("");
    PyObject *above = print_steps(at->above);
    PyObject *out = !above    ? NULL
                    : at->key ? PyUnicode_FromFormat("%U[%R]", above, at->key)
                              : PyUnicode_FromFormat("%U[%zd]", above, at->index);
    Py_XDECREF(above);
    return out;
}

static hd_value cannot(PyObject *from, const step *at, const char *why) {
    PyObject *place = print_steps(at);
    PyObject *type = (PyObject *)Py_TYPE(from);
    PyObject *name = place ? PyObject_GetAttrString(type, "__qualname__") : NULL;
    if (name && at) PyErr_Format(PyExc_TypeError, "%U%s at value%U", name, why, place);
    else if (name) PyErr_Format(PyExc_TypeError, "%U%s", name, why);
    Py_XDECREF(place);
    Py_XDECREF(name);
    return hd_failed(HD_KIND);
}

/* The library says no: there is no memory, or it is too deep. */
static hd_value checked(const writer *w, hd_value v) {
    hd_status status = hd_value_status(v);
    hd_error deep = { .status = HD_LIMIT,
                      .message = "the value is too large, or has more than 512 levels" };
    bool plain = status == HD_LIMIT && w->how == PLAIN;
    if (status && !PyErr_Occurred()) raise_error(w->self->st, status, plain ? &deep : NULL);
    return v;
}

static hd_value write_long(const writer *w, PyObject *from, const step *at) {
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(from, &overflow);
    if (overflow) return cannot(from, at, " beyond 64 bits cannot cross");
    if (i == -1 && PyErr_Occurred()) return hd_failed(HD_KIND);
    return checked(w, hd_int(w->pool, i));
}

static hd_value tagged(const writer *w, const char *tag, hd_value v) {
    return hd_value_status(v) ? v : checked(w, hd_object_set(w->pool, hd_object(), tag, v));
}

/* With lone surrogates: as code points. */
static hd_value write_points(const writer *w, PyObject *from) {
    hd_builder *b;
    Py_ssize_t length = PyUnicode_GetLength(from);
    PyErr_Clear();
    if (hd_builder_open(w->pool, HD_KIND_ARRAY, &b)) return checked(w, hd_failed(HD_NOMEM));
    for (Py_ssize_t i = 0; i < length; i++)
        hd_builder_add(b, hd_int(NULL, (int64_t)PyUnicode_ReadChar(from, i)));
    return tagged(w, "$str", checked(w, hd_builder_close(b)));
}

static hd_value write_text(const writer *w, PyObject *from, const step *at) {
    Py_ssize_t length;
    const char *chars = PyUnicode_AsUTF8AndSize(from, &length);
    if (chars) return checked(w, hd_string_n(w->pool, chars, (size_t)length));
    if (w->how == TAGGED) return write_points(w, from);
    PyErr_Clear();
    return cannot(from, at, " with a lone surrogate cannot be stored");
}

static hd_value write_bytes(const writer *w, PyObject *from) {
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(from, &data, &size)) return hd_failed(HD_KIND);
    return checked(w, hd_bytes(w->pool, data, (size_t)size));
}

/* ---- Containers -------------------------------------------------------------------------- */

static hd_value close_builder(const writer *w, hd_builder *b) {
    hd_value out = hd_builder_close(b);
    return PyErr_Occurred() ? hd_failed(HD_KIND) : checked(w, out);
}

static hd_value write_list(const writer *w, PyObject *from, const step *at) {
    hd_builder *b;
    bool is_list = PyList_Check(from);
    if (hd_builder_open(w->pool, HD_KIND_ARRAY, &b)) return checked(w, hd_failed(HD_NOMEM));
    /* The hooks may change the list: it is asked for its length each time. */
    for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(from) : PyTuple_Size(from)); i++) {
        step here = { at, NULL, i };
        PyObject *item = Py_NewRef(is_list ? PyList_GetItem(from, i) : PyTuple_GetItem(from, i));
        hd_value v = write_value(w, item, &here);
        Py_DECREF(item);
        hd_builder_add(b, v);
        if (hd_value_status(v)) break;
    }
    return close_builder(w, b);
}

static hd_value write_iterable(const writer *w, PyObject *from, const step *at) {
    PyObject *list = PySequence_List(from);
    hd_value out = list ? write_list(w, list, at) : hd_failed(HD_KIND);
    Py_XDECREF(list);
    return out;
}

/* Puts a key of the program: with the dollar doubled in tagged form. */
static bool put_key(const writer *w, hd_builder *b, const char *key, size_t length, hd_value v) {
    if (w->how == PLAIN || !length || key[0] != '$') {
        hd_builder_put_n(b, key, length, v);
        return true;
    }
    char *doubled = PyMem_Malloc(length + 1);
    if (!doubled) return PyErr_NoMemory(), false;
    doubled[0] = '$';
    memcpy(doubled + 1, key, length);
    hd_builder_put_n(b, doubled, length + 1, v);
    PyMem_Free(doubled);
    return true;
}

/* The entries of a dict with str keys. *sorted: they come in the byte order of their keys. */
static void put_names(const writer *w, hd_builder *b, PyObject *dict, const step *at,
                      bool *sorted) {
    Py_ssize_t position = 0, length, last_length = 0;
    PyObject *key, *item;
    PyObject *before = NULL; /* has `last`, and is referenced: a hook may remove it from the dict */
    const char *last = NULL;
    *sorted = true;
    while (!PyErr_Occurred() && PyDict_Next(dict, &position, &key, &item)) {
        step here = { at, key, 0 };
        const char *chars = PyUnicode_AsUTF8AndSize(key, &length);
        if (!chars) break;
        if (last && *sorted) {
            size_t shorter = (size_t)(length < last_length ? length : last_length);
            int order = memcmp(last, chars, shorter);
            *sorted = order < 0 || (order == 0 && last_length < length);
        }
        last = chars;
        last_length = length;
        Py_INCREF(key);
        Py_INCREF(item);
        hd_value v = write_value(w, item, &here);
        if (!hd_value_status(v)) put_key(w, b, chars, (size_t)length, v);
        Py_XDECREF(before);
        before = key;
        Py_DECREF(item);
    }
    Py_XDECREF(before);
}

/* Why the keys are no names of an object; NULL: they are. */
static const char *refused_keys(PyObject *dict) {
    Py_ssize_t position = 0, length;
    PyObject *key, *item;
    while (PyDict_Next(dict, &position, &key, &item)) {
        if (!PyUnicode_CheckExact(key)) return " with keys that are not str cannot be stored";
        if (PyUnicode_AsUTF8AndSize(key, &length)) continue;
        PyErr_Clear();
        return " with a key that has a lone surrogate cannot be stored";
    }
    return NULL;
}

static hd_value write_keys(const writer *w, PyObject *dict) {
    writer plain = { w->self, w->pool, PLAIN, w->open };
    PyObject *keys = PyDict_Keys(dict);
    hd_value out = keys ? write_list(&plain, keys, NULL) : hd_failed(HD_KIND);
    Py_XDECREF(keys);
    return out;
}

static hd_value write_pairs(const writer *w, PyObject *dict, const step *at) {
    PyObject *items = PyDict_Items(dict);
    hd_builder *b;
    if (!items || hd_builder_open(w->pool, HD_KIND_ARRAY, &b)) {
        Py_XDECREF(items);
        return checked(w, hd_failed(HD_NOMEM));
    }
    for (Py_ssize_t i = 0; i < PyList_Size(items); i++) {
        PyObject *pair = PyList_GetItem(items, i);
        step here = { at, PyTuple_GetItem(pair, 0), 0 };
        hd_value v[2] = { write_value(w, PyTuple_GetItem(pair, 0), &here), hd_null() };
        if (!hd_value_status(v[0])) v[1] = write_value(w, PyTuple_GetItem(pair, 1), &here);
        if (PyErr_Occurred()) break;
        hd_builder_add(b, hd_array_of(w->pool, v, 2));
    }
    Py_DECREF(items);
    return tagged(w, "$dict", close_builder(w, b));
}

static hd_value write_names(const writer *w, PyObject *dict, const step *at, const char *tag,
                            hd_value head) {
    hd_builder *b;
    bool sorted;
    if (hd_builder_open(w->pool, HD_KIND_OBJECT, &b)) return checked(w, hd_failed(HD_NOMEM));
    if (tag) hd_builder_put(b, tag, head);
    if (dict) put_names(w, b, dict, at, &sorted);
    if (dict && w->how == TAGGED && !sorted && !PyErr_Occurred())
        hd_builder_put(b, "$keys", write_keys(w, dict));
    return close_builder(w, b);
}

static hd_value write_dict(const writer *w, PyObject *from, const step *at) {
    const char *refused = refused_keys(from);
    if (!refused) return write_names(w, from, at, NULL, hd_null());
    return w->how == TAGGED ? write_pairs(w, from, at) : cannot(from, at, refused);
}

/* ---- Everything else --------------------------------------------------------------------- */

static hd_value write_link(const writer *w, PyObject *from) {
    hd_value out = hd_failed(HD_KIND);
    PyObject *parts = PyObject_CallMethod(from, "_parts", NULL);
    const char *space, *id, *path;
    int scope;
    if (parts && PyArg_ParseTuple(parts, "zizz", &space, &scope, &id, &path))
        out = checked(w, hd_link_make(w->pool, &(hd_link){ space, (hd_scope)scope, id, path }));
    Py_XDECREF(parts);
    return out;
}

/* The hook's answer is (tag, head, body). */
static hd_value write_by_hook(const writer *w, PyObject *from, const step *at) {
    const char *tag;
    PyObject *head, *body;
    hd_value out = hd_failed(HD_KIND);
    PyObject *answer = PyObject_CallFunctionObjArgs(w->self->st->encode, from, NULL);
    if (answer && answer == Py_None) out = cannot(from, at, " cannot cross into a workflow");
    else if (answer && PyArg_ParseTuple(answer, "sOO", &tag, &head, &body)) {
        hd_value first = write_value(w, head, at);
        if (!hd_value_status(first))
            out = write_names(w, body == Py_None ? NULL : body, at, tag, first);
    }
    Py_XDECREF(answer);
    return out;
}

static hd_value write_by_plain(const writer *w, PyObject *from, const step *at) {
    PyObject *answer = PyObject_CallFunctionObjArgs(w->self->st->plain, from, NULL);
    hd_value out = !answer          ? hd_failed(HD_KIND)
                   : answer == from ? cannot(from, at, " cannot be stored in a cell")
                                    : write_value(w, answer, at);
    Py_XDECREF(answer);
    return out;
}

static hd_value write_value_object(const writer *w, value_object *from, const step *at) {
    if (from->owner != w->self)
        return cannot((PyObject *)from, at, " of another store cannot be used");
    if (!hd_value_exists(from->v))
        return cannot((PyObject *)from, at, " of a closed store cannot be used");
    return from->v;
}

static hd_value write_other(const writer *w, PyObject *from, const step *at) {
    const module_state *st = w->self->st;
    if (Py_TYPE(from) == st->value_type) return write_value_object(w, (value_object *)from, at);
    if (Py_TYPE(from) == (PyTypeObject *)st->link) return write_link(w, from);
    return w->how == TAGGED ? write_by_hook(w, from, at) : write_by_plain(w, from, at);
}

static hd_value write_container(const writer *w, PyObject *from, const step *at) {
    if (PyList_CheckExact(from)) return write_list(w, from, at);
    if (PyDict_CheckExact(from)) return write_dict(w, from, at);
    if (PyTuple_CheckExact(from))
        return w->how == PLAIN ? write_list(w, from, at)
                               : tagged(w, "$tuple", write_list(w, from, at));
    if (w->how == TAGGED && Py_TYPE(from) == &PySet_Type)
        return tagged(w, "$set", write_iterable(w, from, at));
    return write_other(w, from, at);
}

/* The place at which the container that is being written contains itself; NULL: it does not, or not twice. */
static const step *circle(const open_part *innermost) {
    const open_part *first = innermost, *second = NULL;
    for (const open_part *p = innermost->above; p; p = p->above) {
        if (p->part != innermost->part) continue;
        second = first;
        first = p;
    }
    return second ? second->at : NULL;
}

static hd_value write_open(const writer *w, PyObject *from, const step *at) {
    open_part here = { w->open, from, at, w->open ? w->open->depth + 1 : 1 };
    const step *again = here.depth % CIRCLE_DEPTH ? NULL : circle(&here);
    if (again) return cannot(from, again, " contains itself");
    writer inside = { w->self, w->pool, w->how, &here };
    return write_container(&inside, from, at);
}

static hd_value write_value(const writer *w, PyObject *from, const step *at) {
    if (from == Py_None) return hd_null();
    if (PyUnicode_CheckExact(from)) return write_text(w, from, at);
    if (PyLong_CheckExact(from)) return write_long(w, from, at);
    if (PyFloat_CheckExact(from)) return hd_double(PyFloat_AsDouble(from));
    if (PyBool_Check(from)) return hd_bool(from == Py_True);
    if (PyBytes_CheckExact(from)) return write_bytes(w, from);
    if (Py_EnterRecursiveCall(" while converting a value")) return hd_failed(HD_KIND);
    hd_value out = write_open(w, from, at);
    Py_LeaveRecursiveCall();
    return out;
}

const char *name_from(PyObject *text) {
    Py_ssize_t length;
    const char *chars = PyUnicode_AsUTF8AndSize(text, &length);
    if (!chars || strlen(chars) == (size_t)length) return chars;
    PyErr_SetString(PyExc_ValueError, "embedded null character");
    return NULL;
}

const char *text_of(PyObject *text) {
    const char *chars = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    return chars ? chars : "";
}

hd_value from_python(runtime_object *self, hd_pool *pool, PyObject *from, form how) {
    writer w = { self, pool, how, NULL };
    (void)pool_enter(self);
    hd_value out = write_value(&w, from, NULL);
    pool_leave(self);
    if (PyErr_Occurred() && !hd_value_status(out)) return hd_failed(HD_KIND);
    return out;
}
