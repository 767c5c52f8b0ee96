/* child_id.h -- the id of an instance that is a step of another, from what its parent's document says of that step. */
#ifndef WORKFLOW_CHILD_ID_H
#define WORKFLOW_CHILD_ID_H

#include <heddle/workflow.h>

#define SHARDS_NAME "workflow-shards" /* the document with the number of shards; absent: 1 */

typedef struct child_step {
    const char *parent;   /* the id of the instance that waits */
    const char *workflow; /* of the child */
    uint32_t strand, step;
    uint64_t tag;   /* what the id ends with, if the plain id was another's; 0: nothing */
    bool in_shards; /* the space has several: then both ids decide for the same one */
} child_step;

void child_id(const child_step *s, char out[HD_INSTANCE_ID_SIZE]);

#endif
