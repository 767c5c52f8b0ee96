/* shown.h -- names of stores as they are printed: an address of a server without its password. */
#ifndef CLI_SHOWN_H
#define CLI_SHOWN_H

#include "cli/command.h"

enum { SHOWN_SIZE = CLI_ADDRESS };

/* Whether the store is on a server. */
bool is_address(const char *name);
/* The name itself, or the address without secrets in `out`. */
const char *shown(const char *name, char out[SHOWN_SIZE]);
/* The same as a word of a shell, for commands that a person may copy: in quotes if it needs them. */
const char *shown_word(const char *name, char out[SHOWN_SIZE]);
/* The same for addresses anywhere in a text, in place. */
void hide_passwords(char *text);

#endif
