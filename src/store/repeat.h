/* repeat.h -- transactions that are run again until they are accepted (hd_transact). */
#ifndef STORE_REPEAT_H
#define STORE_REPEAT_H

#include "store/runtime.h"

typedef struct repeat repeat;

/* Makes the attempts that are due. Called where nothing is half done: they begin transactions. */
void repeat_pump(hd_runtime *rt);
/* When the next attempt is due; UINT64_MAX: none waits. */
uint64_t repeat_next(const hd_runtime *rt);
/* Tells those that wait for another attempt why the last one did not count. Those under way have been told
 * by replica_tell_undecided. */
void repeat_close(hd_runtime *rt);

#endif
