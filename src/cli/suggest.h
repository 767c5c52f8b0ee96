/* suggest.h -- the node whose name is nearest to a name that no node has. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include "cli/live.h"

/* The node whose name ends with this after a colon or slash, if there is one alone; NULL: none, or several. */
const char *suggest_unique(live *l, const char *name);
/* Says that there is no such node, and names the nearest. Returns CLI_NOT_FOUND. */
int suggest_node(live *l, const char *name);

#endif
