/* id.h -- telling causal ids from names. */
#ifndef HD_VALUE_ID_H
#define HD_VALUE_ID_H

#include "value/value.h"

/* What a causal id begins with. */
#define ID_MARK '~'

/* Whether the text has the form of a causal id, as hd_id_of writes it. */
bool id_is_causal(const char *id);

#endif
