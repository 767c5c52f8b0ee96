/* failure.c -- a line in the log for each instance that has failed. */
#include "workflow/engine.h"

#include "base/env.h"
#include <stdio.h>

/* ", at node "raise" of function helper (shop.py:12)"; nothing, if the document does not say it. */
static void write_place(char *out, size_t size, hd_value doc) {
    hd_value at = hd_value_at(doc, "failed_at");
    const char *node = hd_value_as_text(hd_value_at(at, "node"), "");
    const char *name = hd_value_as_text(hd_value_at(at, "function"), "");
    const char *source = hd_value_as_text(hd_value_at(at, "at"), "");
    *out = 0;
    if (*node)
        snprintf(out, size, ", at node \"%.80s\"%s%.80s%s%.100s%s", node,
                 *name ? " of function " : "", name, *source ? " (" : "", source,
                 *source ? ")" : "");
}

static void log_document(const live *l, hd_value doc) {
    char where_at[360];
    hd_value error = hd_value_at(doc, "error");
    const char *message = hd_value_as_text(hd_value_at(error, "message"), "");
    write_place(where_at, sizeof where_at, doc);
    env_log(l->e->env, HD_LOG_WARN, "workflow instance %s has %s%s%s%s%.300s%s", l->id,
            instance_status_name(l->in->status), hd_value_exists(error) ? ": " : "",
            hd_value_as_text(hd_value_at(error, "$error"), ""), *message ? ": " : "", message,
            where_at);
}

/* The engine does not know who waits for the instance, in this program and in others: so it says so in any case. */
void failure_log(const live *l) {
    hd_pool *pool;
    bool is_bad = l->in->status == INSTANCE_FAILED || l->in->status == INSTANCE_STALLED;
    if (!is_bad || l->depth || hd_pool_open(l->e->heap, &pool)) return;
    log_document(l, hd_read(l->e->rt, pool, (hd_cell){ l->doc }));
    hd_pool_close(pool);
}
