/* lab_log.h -- what the log of a file says of nodes: a second opinion on what a restart must run.
 *
 *     lab_log *log = lab_log_open("killed.db");      as the killed process left it
 *     ... another process resumes, and settles ...
 *     lab_log_follow(log);
 *     lab_log_why(log, "main:corner:prices/7")       why that node ran
 *
 * The log is replayed operation by operation: documents are what they were at each moment, and with each
 * row of a node stands what its reads gave when the row was written. If one of these reads gives something
 * else when the log is opened, that is a reason for the node to run; and so is every commit that is
 * followed and makes it give something else, for however short a time. No hash, no index and no head is
 * looked at. The log must be there from its beginning. */
#ifndef HEDDLE_LAB_LOG_H
#define HEDDLE_LAB_LOG_H

#include "lab.h"

typedef struct lab_log lab_log;

/* Everything that is in the file by now. Nobody may have it open in this process. */
lab_log *lab_log_open(const char *path);
/* What was written since then: changes count, rows do not. */
void lab_log_follow(lab_log *log);
void lab_log_close(lab_log *log);

/* Why the node has to run, for people: "has no row", "main/n was changed". NULL: there is no reason. */
const char *lab_log_why(const lab_log *log, const char *node);
/* Nodes that have no reason. */
uint32_t lab_log_holding(const lab_log *log);

#endif
