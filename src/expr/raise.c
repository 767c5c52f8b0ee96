/* raise.c -- see raise.h. */
#include "expr/raise.h"

#include "expr/text.h"
#include "expr/tuple.h"

#include <stdio.h>

#define MESSAGE_MAX 1000

void raise_note_class(world *w, ev v) {
    if (v.kind == EV_TYPE && v.i >= CLASS_BUILTIN_COUNT) w->own_class = (uint32_t)v.i;
    if (ev_flags(w->classes, v) & CLASS_OWN) w->own_class = v.o->class_;
}

const char *type_name(world *w, ev v) {
    raise_note_class(w, v);
    return class_shown(class_of(w->classes, ev_class(v)));
}

const char *type_name_whole(world *w, ev v) {
    return ev_bare(v).kind != v.kind ? class_shown(class_of(w->classes, ev_class(v)))
                                     : type_name(w, v);
}

ev exc_new(world *w, uint32_t class_, ev args) {
    assert(args.kind == EV_TUPLE);
    exc *e = world_object(w, EV_EXC, sizeof *e);
    if (!e) return ev_fail();
    e->head.class_ = (uint16_t)class_;
    e->args = args;
    e->attrs = e->cause = e->raised = ev_none();
    world_ref(args);
    return ev_of(e);
}

ev exc_of(world *w, ev v) {
    bool is_class = v.kind == EV_TYPE && class_is(w->classes, (uint32_t)v.i, CLASS_BaseException);
    return is_class ? w->invoke(w, v, NULL, 0) : v;
}

ev raise_exc(world *w, ev exception) {
    if (ev_failed(exception) || w->status) return ev_fail();
    world_ref(exception);
    world_unref(w, w->pending);
    w->pending = exception;
    return ev_fail();
}

ev raise_value(world *w, uint32_t class_, ev argument) {
    if (ev_failed(argument)) return ev_fail();
    ev args = tuple_of(w, &argument, 1);
    return ev_failed(args) ? args : raise_exc(w, exc_new(w, class_, args));
}

/* A limit of memory may have been reached in the middle of raising; the exception itself must not run
 * into it again. */
static size_t lift_limit(world *w) {
    size_t most = w->bytes_most;
    w->bytes_most = SIZE_MAX / 2;
    return most;
}

static ev raise_message(world *w, uint32_t class_, const char *message, int length) {
    size_t size = length < 0 ? 0 : length > MESSAGE_MAX ? MESSAGE_MAX : (size_t)length;
    size_t most = lift_limit(w);
    raise_value(w, class_, text_of_utf8(w, message, size));
    w->bytes_most = most;
    return ev_fail();
}

ev raise_f(world *w, uint32_t class_, const char *format, ...) {
    char message[MESSAGE_MAX + 1];
    va_list arguments;
    uint32_t own = w->own_class;
    w->own_class = 0;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (own && class_ == CLASS_TypeError) return raise_own(w, own, message);
    return raise_message(w, class_, message, length);
}

ev raise_about(world *w, ev v, const char *message) {
    raise_note_class(w, v);
    return raise_f(w, CLASS_TypeError, "%s", message);
}

ev raise_own(world *w, uint32_t class_, const char *what) {
    char message[MESSAGE_MAX + 1];
    const char *name = class_shown(class_of(w->classes, class_));
    int length =
        snprintf(message, sizeof message,
                 "%.300s: a workflow does not know what the code of the class '%.200s' says. "
                 "Annotate the action or input that the object comes from, wrap the object in a "
                 "constructor that copies it, as Decimal(x) does, or do it in an action",
                 what, name);
    return raise_message(w, CLASS_Unsupported, message, length);
}

bool raise_note_place(world *w, exc *e, const char *function, const char *node) {
    size_t most = lift_limit(w);
    ev f = text_of_utf8(w, function, strlen(function)), n = text_of_utf8(w, node, strlen(node));
    ev place = ev_failed(f) || ev_failed(n) ? ev_fail() : tuple_pair(w, f, n);
    w->bytes_most = most;
    if (ev_failed(place)) return false;
    world_ref(place);
    world_unref(w, e->raised);
    e->raised = place;
    world_note(w, e, CHANGE_REPLACE, 0, ev_none(), ev_none());
    return true;
}

ev raise_memory(world *w) {
    size_t most = lift_limit(w);
    raise_exc(w, exc_new(w, CLASS_MemoryError, w->empty_tuple));
    w->bytes_most = most;
    return ev_fail();
}

ev raise_iterator(world *w) {
    return raise_f(
        w, CLASS_Unsupported,
        "an iterator (zip, map, filter, enumerate, reversed) that is kept: take its elements "
        "with list(...)");
}

ev raise_int_overflow(world *w) {
    return raise_f(w, CLASS_OverflowError, "integer beyond 64 bits");
}

void raise_failure(world *w) {
    uint8_t failure = w->failure;
    if (!failure) return;
    w->failure = FAILURE_NONE;
    w->depth = 0;
    if (failure == FAILURE_MEMORY) raise_memory(w);
    if (failure == FAILURE_DEPTH)
        raise_f(w, CLASS_RecursionError, "maximum recursion depth exceeded%s", w->failure_at);
    if (failure == FAILURE_STEPS)
        raise_f(w, CLASS_Unsupported, "more than %llu steps in one evaluation",
                (unsigned long long)w->limits.steps);
}

ev raise_catch(world *w) {
    ev e = w->pending;
    w->pending = ev_unbound();
    world_unref(w, e);
    return e;
}
