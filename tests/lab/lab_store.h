/* lab_store.h -- a world of runtimes on one store, scripted in a few lines.
 *
 *     lab *l = lab_open();
 *     lab_runtime *a = lab_runtime_open(l, "a"), *b = lab_runtime_open(l, "b");
 *     lab_write(a, "n", "3");                  main/n, visible to a
 *     lab_pump(a);                             sent and decided
 *     lab_pump(b);
 *     assert_cell(b, "n", "3");
 *     lab_close(l);
 *
 * Cells are named relative to the space main: "n" is main/n, "n#/x" a place in it, "other/n" and
 * "main@user/n" are taken as they are. Values are JSON, "-" is absent.
 *
 * Nothing happens by itself: who sends and who hears is said by lab_pump, lab_send, lab_hear, and
 * the line to the store can be cut. The store is in memory, or with HD_STORE=sqlite in the process
 * environment in a file, with HD_STORE=postgres on a server (lab_place.h).
 *
 * Each runtime keeps a mirror of what it was told by notices alone. lab_check compares it with what
 * can be read: a change that was not announced, or an announcement without a change, ends the test
 * (S7). Every lab_* call that moves a runtime checks it. */
#ifndef HEDDLE_LAB_STORE_H
#define HEDDLE_LAB_STORE_H

#include "lab.h"
#include <heddle/store.h>

struct replica;
struct lab_line;
struct lab_arrivals;

typedef struct lab lab;
typedef struct lab_runtime lab_runtime;

/* ---- The world --------------------------------------------------------------------------- */

typedef enum lab_kind { LAB_MEMORY, LAB_SQLITE } lab_kind;
typedef struct lab_options {
    lab_kind kind;
    bool load_late; /* memory: documents arrive by poll */
    lab_env *world; /* not ours to close; NULL: a new one */
    bool unchecked; /* no mirrors: for worlds whose memory runs out */
    hd_derive derive;
} lab_options;

/* HD_STORE decides where. */
lab *lab_open(void);
lab *lab_open_with(lab_options options);
/* Closes what is still open. Leaks end the test. */
void lab_close(lab *l);

/* From now on every world leaves out these (SABOTAGE_* of base/sabotage.h). False: this build
 * cannot. */
bool lab_sabotage(unsigned what);

/* What another part of the lab keeps with a world; let go of when every runtime has closed. */
void lab_attach(lab *l, void *what, void (*detach)(void *what));
void *lab_attached(const lab *l);

lab_env *lab_world(lab *l);
bool lab_is_sqlite(const lab *l); /* or on a server: not in memory */
hd_memory *lab_memory(lab *l);    /* NULL for a file */

lab_runtime *lab_runtime_open(lab *l, const char *name);
/* NULL: it failed; tells why. `principal` may be NULL. */
lab_runtime *lab_runtime_try(lab *l, const char *name, const char *principal, hd_status *status);
/* Waits for verdicts, unless the line is cut. */
void lab_runtime_close(lab_runtime *r);
/* Goes without a word: what was not sent is gone, what was sent is decided without us. */
void lab_runtime_drop(lab_runtime *r);

/* In order of opening. */
lab_runtime *lab_first(lab *l);
lab_runtime *lab_next(lab_runtime *r);

const char *lab_name(const lab_runtime *r);
hd_runtime *lab_rt(lab_runtime *r);
struct replica *lab_replica(lab_runtime *r);
struct lab_line *lab_line_of(lab_runtime *r);
hd_cell lab_cell(lab_runtime *r, const char *name);

/* ---- Doing ------------------------------------------------------------------------------- */

/* What became of a commit. Lives as long as the lab. */
typedef struct lab_fate {
    lab_runtime *runtime;
    hd_status begun;    /* what hd_tx_commit (or an operation before it) returned */
    uint64_t local_seq; /* 0: nothing was submitted */
    hd_status status;   /* the verdict; HD_PENDING: none yet */
    int told;           /* how often the verdict was told */
    size_t heard;       /* how many arrivals its runtime had heard of */
    struct lab_read *reads;
    size_t read_count;
    char *script;
} lab_fate;

/* What one read of a script saw; or a place that it wrote, which counts as read if the write changed
 * nothing. */
typedef struct lab_read {
    char *cell;
    bool shape;
    char *seen; /* JSON; "-" for absent; NULL: of a write */
} lab_read;

/* One transaction, written down: operations separated by ';'.
 *
 *     get CELL   shape CELL   look CELL (no claim)   raw CELL
 *     set CELL JSON   remove CELL   append CELL JSON   increment CELL JSON   patch CELL JSON
 *     absent CELL   equal CELL JSON   kind CELL WORD   meta CELL KEY JSON   group NUMBER */
lab_fate *lab_do(lab_runtime *r, const char *script);
/* The same as printf. */
lab_fate *lab_dof(lab_runtime *r, const char *format, ...) HD_PRINTF(2, 3);
/* The operations alone, into an open transaction; the first failure ends it. */
hd_status lab_script(lab_runtime *r, hd_tx *tx, const char *script, lab_fate *reads);

void lab_write(lab_runtime *r, const char *cell, const char *json);

/* ---- Moving ------------------------------------------------------------------------------ */

/* On a server: the next pump looks for the others' commits. Otherwise real time passes between a commit and the
 * moment at which others hear of it. */
void lab_look(lab_runtime *r);
void lab_pump(lab_runtime *r); /* sends, then hears */
void lab_send(lab_runtime *r); /* sends only: decided when it returns, not heard yet */
void lab_hear(lab_runtime *r); /* hears only */
void lab_settle(lab *l); /* everybody, until nobody has anything left; several in a file: 1 ms */

/* Commits that have arrived at the store, replays apart; in order of arrival. */
size_t lab_arrived(const lab *l);
struct lab_arrivals *lab_arrivals_of(lab *l);
/* The commit made by lab_do under this number; NULL: it was made otherwise. The runtime must be
 * open. */
lab_fate *lab_fate_of(const lab *l, const hd_runtime *rt, uint64_t local_seq);

void lab_cut(lab_runtime *r);  /* from now on requests get lost and answers do not come */
void lab_hold(lab_runtime *r); /* from now on the store is busy, and answers do not come */
void lab_mend(lab_runtime *r); /* the line is back: replays what has no verdict */

/* ---- Looking ----------------------------------------------------------------------------- */

/* As JSON, "-" for absent, "!HD_..." for a failure. Good until the fourth call after. */
const char *lab_read_cell(lab_runtime *r, const char *cell);
/* What was heard since the last call: "commit n=3; integrate n=4 m=-; revert n=3". */
const char *lab_heard(lab_runtime *r);
/* Mirror against what can be read, and the store's own invariants. */
void lab_check(lab_runtime *r);
void lab_check_all(lab *l);

/* ---- Saying what must be (need cmocka.h) -------------------------------------------------- */

#define assert_cell(r, cell, json) assert_string_equal(lab_read_cell(r, cell), json)
#define assert_heard(r, text)      assert_string_equal(lab_heard(r), text)
#define assert_status(is, expected)                                                                \
    assert_string_equal(hd_status_name(is), hd_status_name(expected))
#define assert_fate(f, expected) assert_status((f)->status, expected)

#endif
