/* save.h -- an instance and its document.
 *
 * The document of an instance (docs/WORKFLOWS.md shows one) is written by these operations alone. Where
 * they go is the caller's: the engine makes them operations of a transaction, a test applies them to a
 * value. */
#ifndef WORKFLOW_SAVE_H
#define WORKFLOW_SAVE_H

#include "workflow/instance.h"

typedef enum doc_op {
    DOC_SET,
    DOC_REMOVE,
    DOC_APPEND,
    DOC_KEEP /* an array: `value` elements at its beginning are left */
} doc_op;

/* Where operations go. `path` is a list of keys, from the document's root; `value` is borrowed. */
typedef struct doc_writer {
    void *ctx;
    hd_status (*write)(void *ctx, doc_op op, const char *const *path, uint32_t length,
                       hd_value value);
} doc_writer;

/* Writes what has changed since the last save, and frees what has ended. An instance that is over leaves
 * its status and result (or error), and nothing of how it got there. */
hd_status instance_save(instance *in, const doc_writer *out);

/* Makes an instance, without activations, what the document of one that is over has kept of it: variables and loops
 * of the first function. HD_CORRUPT, HD_NOMEM. */
hd_status instance_load_last(instance *in, hd_value document, hd_error *error);

/* Makes an instance, without activations, what its document says. HD_CORRUPT with what is wrong; HD_NOMEM. */
hd_status instance_load(instance *in, hd_value document, hd_error *error);

/* Whether an instance that is over, and not done, keeps this part of its document for a rerun at a node. */
bool save_keeps_for_rerun(const char *part);

const char *instance_status_name(instance_status status);

#endif
