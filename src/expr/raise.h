/* raise.h -- raising: the exception becomes w->pending, and the caller returns EV_FAIL or false.
 *
 * Class and message are those of CPython 3.11. Every function here returns ev_fail(), so that
 * `return raise_f(...)` is the way out. */
#ifndef EXPR_RAISE_H
#define EXPR_RAISE_H

#include "expr/class.h"
#include "expr/world.h"

/* The message is UTF-8 and cut after 1,000 bytes. */
ev raise_f(world *w, uint32_t class_, const char *format, ...) HD_PRINTF(3, 4);
/* An exception whose only argument is the value (KeyError). */
ev raise_value(world *w, uint32_t class_, ev argument);
/* An existing exception. */
ev raise_exc(world *w, ev exception);
/* MemoryError, without a message: a limit was reached. */
ev raise_memory(world *w);
/* OverflowError: an integer beyond 64 bits. */
ev raise_int_overflow(world *w);

/* Unsupported: an iterator is kept. */
ev raise_iterator(world *w);

/* A limit that was reached (of depth, memory or steps) becomes its exception. Where none was, nothing is done. */
void raise_failure(world *w);

/* Takes the pending exception back, as handlers do; EV_UNBOUND where there is none. */
ev raise_catch(world *w);

static inline bool raise_is_pending(const world *w) {
    return w->pending.kind != EV_UNBOUND || w->status != HD_OK || w->failure;
}

/* A new exception with these arguments (a tuple). */
ev exc_new(world *w, uint32_t class_, ev args);
/* What `raise v` and `raise x from v` take: an object of v if v is a class of exceptions, else v itself. */
ev exc_of(world *w, ev v);

/* Notes where a workflow has raised it. False: no memory. */
bool raise_note_place(world *w, exc *e, const char *function, const char *node);

/* The TypeError that is raised next becomes Unsupported if operators of the value's class are code of the program,
 * because CPython might have an answer. */
void raise_note_class(world *w, ev v);

/* The name of a value's class, for the message of the TypeError that is raised next; does raise_note_class. */
const char *type_name(world *w, ev v);

/* The same for a TypeError that says that `v` has no elements, length or items, or none that can be set. A member of an
 * IntEnum and the like has these if its value has them, so the engine knows, and the TypeError stays one. */
const char *type_name_whole(world *w, ev v);

/* TypeError about `v` whose message does not name its class; Unsupported under the same condition. */
ev raise_about(world *w, ev v, const char *message);

/* Unsupported: `what` ("the text", "=="), of objects of this class, is said by code of the program. */
ev raise_own(world *w, uint32_t class_, const char *what);

#endif
