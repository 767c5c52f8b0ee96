/* ext.h -- what the files of the extension share: the module's state, the objects, conversion, errors.
 *
 * The extension uses CPython's stable ABI (3.11), so that one file serves every later version. It has no mutable
 * global state: types, exceptions and hooks are in the module's state, which every object points to.
 *
 * Every function here is called with the GIL held. The library waits in env.wait, and between two calls of env.pause:
 * both let the GIL go (clock.c). */
#ifndef HEDDLE_PYTHON_EXT_H
#define HEDDLE_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <heddle.h>
#include <heddle/introspect.h>
#include <heddle/pattern.h>
#include <heddle/workflow.h>
#include <pthread.h>

/* ---- The module -------------------------------------------------------------------------- */

#define KEY_CACHE 1024 /* a power of two */

typedef struct module_state {
    PyObject *module; /* borrowed: the state is part of it */
    PyTypeObject *runtime_type, *cell_type, *value_type, *engine_type, *run_type, *build_type;
    PyObject *error;                    /* heddle.Error */
    PyObject *by_class[HD_CLASS_NOMEM]; /* its subclasses, by hd_class; NULL: heddle.Error itself */
    PyObject *encode, *decode;          /* tagged forms that C does not know; see convert.h */
    PyObject *plain;                    /* an object as plain data, for cells */
    PyObject *link;                     /* the class of links */
    PyObject *log;                      /* called with (level, line) */
    PyObject *keys[KEY_CACHE];          /* str objects of keys met lately, by hash; NULL: none */
    uint64_t forks;                     /* of this process since it was loaded */
    struct lone *spare;                 /* a heap that no call uses (module.c); NULL: none */
} module_state;

module_state *state_of(PyObject *module);
/* Members that the program sets are None where there is nothing. */
static inline bool is_set(PyObject *o) { return o && o != Py_None; }

/* ---- Objects ----------------------------------------------------------------------------- */

struct value_object;

/* A runtime. `rt` is NULL when it is closed. */
typedef struct runtime_object {
    PyObject_HEAD module_state *st;
    PyObject *module; /* keeps `st` */
    hd_runtime *rt;
    hd_pool *pool; /* for values of one call; cleared when `pool_users` is 0 again */
    /* Calls that use the pool or convert values. Functions of the program may run in them: none may close the
     * runtime. */
    uint32_t pool_users;
    unsigned long thread; /* that opened it */
    uint64_t forks;       /* module_state.forks at open */
    hd_tx *tx;            /* the transaction that reads and writes go through now; NULL: none */
    struct value_object *values;   /* that refer to the heap: emptied at close */
    struct engine_object *engines; /* borrowed: those that are open, one for each space */
    PyObject *failed; /* called with (name, exception) when a callback has raised; NULL: none */
    PyObject *
        on_work; /* called when there is something to pump that the descriptor does not tell; NULL: none */
    PyObject *guard; /* called before each use, while a task has a transaction open; NULL: none */
    PyObject
        *inside; /* called for the Run in which the caller's task was begun; NULL: there are none */
    PyObject *store; /* the Python object around it; NULL: none */
    bool told;       /* the failure that the library is about to report was told to Python */
    bool building;   /* the program starts a piece: what its pattern raises is raised there */
    bool woken;      /* it was called since the last pump */
    bool guarding;   /* the guard runs: its own calls are not guarded */
    bool lost;       /* it was dropped where it cannot be closed, and that was told */
    bool closing;    /* hd_close runs: callbacks keep what they refer to until it has returned */
    struct run_object *runs; /* suspended runs that the program holds: emptied at close */
    PyObject *interrupt; /* raised inside of a callback, and by the next driving call; NULL: none */
    PyThreadState *paused;      /* while the library waits without the GIL */
    struct clock *clock;        /* virtual time; NULL: the system's */
    struct log_lines *lines;    /* of the library's threads, for log_threads */
    struct callback *callbacks; /* all that live, for the garbage collector */
    hd_env env;
} runtime_object;

typedef struct cell_object {
    PyObject_HEAD runtime_object *owner;
    hd_cell cell;
    PyObject *load, *dump; /* between plain data and what the program sees; NULL: plain data */
} cell_object;

/* A value of the store that was not converted. */
typedef struct value_object {
    PyObject_HEAD runtime_object *owner;
    hd_value v; /* referenced; absent after close */
    struct value_object *prev, *next;
} value_object;

typedef struct engine_object {
    PyObject_HEAD runtime_object *owner;
    hd_engine *engine;          /* NULL: closed */
    struct engine_object *next; /* of the runtime's */
    PyObject *begin;            /* called with (token, action, id, attempt, args) */
    PyObject *revoked;          /* called with (token, why) */
} engine_object;

/* A run of a node that is suspended. `run` is NULL when it has ended. */
typedef struct run_object {
    PyObject_HEAD runtime_object *owner;
    hd_run *run;
    hd_cell output;
    PyObject *dump; /* of the output's cell; may be NULL */
    PyObject *name;
    hd_tx *outer; /* the transaction before enter() */
    struct run_object *prev, *next;
} run_object;

/* A Python function that the library calls. Freed by the library's release, or by its owner. */
typedef struct callback {
    runtime_object *owner; /* borrowed: the runtime outlives what is registered in it */
    PyObject *fn;
    PyObject *extra; /* what the kind of callback needs besides; may be NULL */
    struct engine_object
        *engine;       /* of an action, borrowed: the engine frees the callback when it ends */
    PyObject *name;    /* for messages; may be NULL */
    PyObject *version; /* of a pattern; may be NULL */
    size_t count;      /* of the inputs of a lift */
    hd_schema *schema; /* of a handler's events, owned; may be NULL */
    hd_cell cell;
    struct callback *prev, *next; /* in runtime_object.callbacks */
} callback;

callback *callback_new(runtime_object *owner, PyObject *fn, PyObject *extra, hd_cell cell);
void callback_free(void *ctx); /* an hd_release_fn */

/* ---- Checks and errors ------------------------------------------------------------------- */

/* Whether the runtime may be used here and now; else an exception is set. */
bool runtime_usable(runtime_object *self);
/* Whether the library may be called at all: the runtime is open, and this is the thread that opened it, and not in a
 * child that was forked since. Where it may not be called, its memory and that of the objects it refers to stays. */
bool runtime_is_here(const runtime_object *self);
/* The same for a call of this name that waits for the store, which nothing may that runs in a transaction. */
bool runtime_may_wait(runtime_object *self, const char *call);
/* What the library says, as a str: names in it may be cut, or not be UTF-8, as those of files. */
PyObject *words_to_python(const char *words);
/* Sets the exception for a status. `error` may be NULL. Returns NULL. */
PyObject *raise_status(runtime_object *self, hd_status status, const hd_error *error);
PyObject *raise_error(module_state *st, hd_status status, const hd_error *error);
/* None, or the exception for a status other than HD_OK, with the runtime's message. */
PyObject *none_or_raise(runtime_object *self, hd_status status);
/* Appends what was made for a list, and takes the reference. False: `made` is NULL, or there is no memory. */
bool list_add(PyObject *list, PyObject *made);
/* The list that the functions given to a call have filled, if the call and all of them have worked; else NULL. Takes
 * the reference; `list` may be NULL. */
PyObject *list_done(runtime_object *self, PyObject *list, hd_status status);
/* The status for the exception that is set, which is fetched: an error of ours keeps its own. A message goes to `tx`
 * if there is one; interrupts are kept for the driving call; everything else is told to runtime.failed. */
hd_status status_of_exception(runtime_object *self, hd_tx *tx, const char *name);
/* The exception that is set, taken: it is set no more, and the caller's. It has its traceback. */
PyObject *exception_take(void);
/* Sets it again. Takes it over. */
void exception_restore(PyObject *e);
/* Whether it is for the program as a whole (KeyboardInterrupt, SystemExit), and no failure of the function in which it
 * was raised. */
bool exception_is_interrupt(PyObject *e);
/* An interrupt is raised by the next driving call; the first one counts. */
void interrupt_keep(runtime_object *self, PyObject *e);
/* Takes the exception that is set, in a function whose caller cannot raise it: an interrupt is kept, anything else is
 * printed. `source` is what has raised it. */
void exception_print(runtime_object *self, PyObject *source);
/* NULL, and the exception set, if an interrupt was kept; else None or the exception for the status. */
PyObject *driven(runtime_object *self, hd_status status);
bool raise_kept(runtime_object *self);
/* Failures that no exception of a function was the cause of are told too. */
hd_status errors_listen(runtime_object *self);

/* There is something to pump. Called after every write of the program, and whatever else a pump acts on. */
void runtime_woken(runtime_object *self);

/* A pool for the values of one call. */
hd_pool *pool_enter(runtime_object *self);
void pool_leave(runtime_object *self);

/* ---- Parts ------------------------------------------------------------------------------- */

bool errors_init(module_state *st);
void errors_clear(module_state *st);
bool runtime_init(module_state *st);
bool cell_init(module_state *st);
bool value_init(module_state *st);
bool engine_init(module_state *st);
bool run_init(module_state *st);
bool build_init(module_state *st);
void runs_drop(runtime_object *owner);

/* A type of the module, from its spec; NULL: exception set. */
PyTypeObject *make_type(module_state *st, PyType_Spec *spec, const char *name);

/* A zeroed object of a heap type, and the end of its dealloc. */
PyObject *object_alloc(PyTypeObject *type);
void object_free(PyObject *object);

/* The characters of a name for the library, where it ends at its first NUL. A text that has one is a ValueError, since
 * it would be another name. NULL: exception set. */
const char *name_from(PyObject *text);
/* The characters of a text, for messages; "" for NULL. */
const char *text_of(PyObject *text);

/* A cell of this class, Cell or a subclass; no cell: the exception that says why. */
PyObject *cell_wrap(runtime_object *owner, PyTypeObject *type, hd_cell cell);
/* The TypeError that is set refuses a value: it says which cell that was for. Other exceptions stay as they are. */
void cell_refusal_names(runtime_object *owner, hd_cell cell);
PyObject *value_new(runtime_object *owner, hd_value v);
/* No value object refers to anything any more: the heap was closed. */
void values_forget(runtime_object *owner);

/* The cell, or the exception that says why there is none. `from` is a Cell or a name. */
bool cell_from(runtime_object *owner, PyObject *from, hd_cell *out);
/* The cells of a sequence, as an array to be freed with PyMem_Free; NULL with *count 0: none. */
bool cells_from(runtime_object *owner, PyObject *from, hd_cell **out, size_t *count);

/* clock.c */
struct clock *clock_new(uint64_t wall_ms);
void clock_free(struct clock *c);
uint64_t clock_now_ns(const struct clock *c);
void clock_advance(struct clock *c, uint64_t ns);
hd_env clock_env(runtime_object *self);
struct log_lines *log_lines_new(void);
void log_lines_free(struct log_lines *all);
/* What threads of the library have logged goes to Python's logging now. */
void log_threads(runtime_object *self);

/* cell.c, nodes.c, events.c, look.c: methods of the runtime. */
PyObject *runtime_cell(PyObject *self, PyObject *args);
PyObject *runtime_node(PyObject *self, PyObject *args, PyObject *kw);
PyObject *runtime_sink(PyObject *self, PyObject *args, PyObject *kw);
PyObject *runtime_unregister(PyObject *self, PyObject *node);
PyObject *runtime_node_set(PyObject *self, PyObject *args);
PyObject *runtime_hold(PyObject *self, PyObject *args);
PyObject *runtime_end_hold(PyObject *self, PyObject *hold);
PyObject *runtime_on(PyObject *self, PyObject *args, PyObject *kw);
PyObject *runtime_off(PyObject *self, PyObject *handler);
PyObject *runtime_send(PyObject *self, PyObject *args, PyObject *kw);
PyObject *runtime_event_cancel(PyObject *self, PyObject *args);
PyObject *runtime_outbox(PyObject *self, PyObject *args);
PyObject *runtime_channel(PyObject *self, PyObject *args);
PyObject *runtime_mint(PyObject *self, PyObject *unused);
PyObject *runtime_nodes(PyObject *self, PyObject *unused);
PyObject *runtime_why(PyObject *self, PyObject *node);
PyObject *runtime_why_not(PyObject *self, PyObject *node);
PyObject *runtime_graph(PyObject *self, PyObject *unused);
PyObject *runtime_stats(PyObject *self, PyObject *unused);
PyObject *runtime_trace(PyObject *self, PyObject *on);
PyObject *runtime_inspect(PyObject *self, PyObject *args);
/* patterns.c */
PyObject *runtime_pattern(PyObject *self, PyObject *args);
PyObject *runtime_piece(PyObject *self, PyObject *args);
PyObject *runtime_piece_cell(PyObject *self, PyObject *args);
PyObject *runtime_piece_end(PyObject *self, PyObject *args);
/* tx.c */
PyObject *runtime_begin(PyObject *self, PyObject *args);
PyObject *runtime_commit(PyObject *self, PyObject *args);
PyObject *runtime_abort(PyObject *self, PyObject *unused);
PyObject *runtime_transact(PyObject *self, PyObject *args);
PyObject *runtime_transact_later(PyObject *self, PyObject *args);
/* Calls fn with no arguments inside the transaction. */
PyObject *call_in(runtime_object *self, hd_tx *tx, PyObject *fn);
PyObject *runtime_engine(PyObject *self, PyObject *args, PyObject *kw);

/* schedules.c */
bool engine_usable(engine_object *self);
PyObject *engine_remove(PyObject *self, PyObject *id);
PyObject *engine_queue_put(PyObject *self, PyObject *args);
PyObject *engine_queue(PyObject *self, PyObject *name);
PyObject *engine_schedule_put(PyObject *self, PyObject *args, PyObject *kw);
PyObject *engine_schedule_remove(PyObject *self, PyObject *name);
PyObject *engine_schedule_pause(PyObject *self, PyObject *name);
PyObject *engine_schedule_resume(PyObject *self, PyObject *name);
PyObject *engine_schedule_trigger(PyObject *self, PyObject *name);
PyObject *engine_schedule(PyObject *self, PyObject *name);
PyObject *engine_schedules(PyObject *self, PyObject *unused);

bool node_from(PyObject *from, hd_node *out);
/* Seconds in milliseconds. ValueError: they are negative, no number, or more than 30,000 years. */
bool ms_from(double seconds, const char *what, uint64_t *out);

#endif
