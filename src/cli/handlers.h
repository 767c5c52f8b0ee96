/* handlers.h -- handlers of a running program, for the commands that show its nodes. */
#ifndef CLI_HANDLERS_H
#define CLI_HANDLERS_H

#include "cli/live.h"

/* The program's streams that have a handler, as "streams" answers them (docs/CLI.md). */
hd_value handlers_of(live *l);
/* The stream of this name, its handler's name, or the last part of one of them if that is enough; absent: none. */
hd_value handlers_find(hd_value handlers, const char *name);
/* The handler's name: its own, or its stream's. */
const char *handler_name(hd_value handler);
/* Adds "handler" to an answer of why or why-not that has no nodes, if a handler or its stream has this name. */
bool handlers_add(live *l, const char *name, hd_value *answer);
/* What a handler has done, and the commands that tell what its events wait for. */
void handlers_print(const cli *c, hd_value handler);

#endif
