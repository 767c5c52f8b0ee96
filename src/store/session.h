/* session.h -- the id of a session, as bytes and as text. */
#ifndef STORE_SESSION_H
#define STORE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SESSION_BYTES = 16, SESSION_TEXT = 33 }; /* the text has a NUL behind its 32 digits */

void session_text(const uint8_t id[SESSION_BYTES], char out[SESSION_TEXT]);
/* False: it is not 32 hexadecimal digits in lower case. */
bool session_of_text(const char *text, size_t length, uint8_t out[SESSION_BYTES]);

#endif
