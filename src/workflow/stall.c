/* stall.c -- instances that cannot go on are marked as stalled.
 *
 * An instance that cannot be read or stored is not run again and again: its document gets the status "stalled", the
 * error and the time, and stays as it is otherwise. Until that is stored the engine keeps the instance (live.stalled),
 * without anything of it that runs, among those that have changed: it goes into commits as any other does (flight.c).
 * Then those that wait are told, and the parent looks at the document. */
#include "workflow/engine.h"

#include "base/env.h"

bool stall_note(live *l, const hd_error *error) {
    hd_engine *e = l->e;
    assert(!l->stalled);
    l->stalled = env_new_copy(e->env, error, sizeof *error);
    if (l->stalled)
        env_log(e->env, HD_LOG_ERROR, "workflow instance %s cannot go on: %s", l->id,
                error->message);
    return l->stalled;
}

void stall_forget(live *l) {
    env_free(l->e->env, l->stalled, sizeof *l->stalled);
    l->stalled = NULL;
}

/* HD_KIND: the program has made a value that cannot be stored (Unsupported); all other failures are not the program's
 * (SystemError). */
static hd_value why_of(hd_pool *pool, const hd_error *error) {
    const char *class_name = error->status == HD_KIND ? "Unsupported" : "SystemError";
    hd_value why = hd_object_set(pool, hd_object(), "$error", hd_string(pool, class_name));
    return hd_object_set(pool, why, "message", hd_string(pool, error->message));
}

hd_status stall_write(hd_pool *pool, const live *l, const doc_writer *out) {
    static const char *const keys[] = { "error", "finished", "status" };
    hd_value values[] = { why_of(pool, l->stalled), hd_int(pool, (int64_t)env_wall_ms(l->e->env)),
                          hd_string(pool, "stalled") };
    hd_status status = HD_OK;
    for (size_t i = 0; i < 3 && !status; i++) {
        status = hd_value_status(values[i]);
        if (!status) status = out->write(out->ctx, DOC_SET, &keys[i], 1, values[i]);
    }
    return status;
}
