/* streams.h -- which streams running programs handle. */
#ifndef CLI_STREAMS_H
#define CLI_STREAMS_H

#include "cli/command.h"
#include "cli/nearest.h"

/* Whether a running program handles the stream, or none answers; nothing is printed. The streams that are handled are
 * offered to `near`. */
bool streams_handled(cli *c, const char *file, const char *stream, nearest *near);

#endif
