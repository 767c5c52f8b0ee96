/* id.h -- ids from what caused them. */
#ifndef HD_VALUE_ID_H
#define HD_VALUE_ID_H

#include "value/value.h"

/* BLAKE2b-256 of the canonical JSON: equal values have equal digests in every process and version.
 * Returns the status of a value that cannot be printed, else HD_OK. */
#define ID_DIGEST_SIZE 32
hd_status id_digest(hd_value v, uint8_t out[ID_DIGEST_SIZE]);

/* What a causal id begins with. */
#define ID_MARK '~'

/* As hd_id_of, for a caller that has the canonical JSON of the cause as text. */
void id_of_text(const char *json, size_t length, char out[HD_ID_SIZE]);

#endif
