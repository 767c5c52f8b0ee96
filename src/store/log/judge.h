/* judge.h -- one batch: judged, stored in one row, told. */
#ifndef STORE_LOG_JUDGE_H
#define STORE_LOG_JUDGE_H

#include "store/log/state.h"

/* Judges everything in `todo` and stores what is admitted. On success `todo` is empty and *out holds
 * the verdicts. On failure nothing is decided: call again. */
hd_status writer_attempt(writer *w, outcome **out);

void outcome_free(const hd_env *env, outcome *o);
void batch_free(const hd_env *env, batch *b);

#endif
