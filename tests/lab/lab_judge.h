/* lab_judge.h -- was it all right? A naive reading of a whole history.
 *
 * Commits take effect one after the other, in the order in which they arrived. The judge goes
 * through them again with nothing but the operations they carried and what their reads saw:
 *
 *     accepted      every read saw what was there at its turn (S2, S3: nothing was missed)
 *     refused       somebody did write near a read, or a commit below was refused (S3, S4)
 *     told          each commit once, what the judge finds possible (S5, S6)
 *     at the end    every runtime shows what the accepted operations add up to (S9, S12)
 *
 * Ends the test if not; returns false instead where `quiet`, for negative controls. */
#ifndef HEDDLE_LAB_JUDGE_H
#define HEDDLE_LAB_JUDGE_H

#include "lab_store.h"

/* The world must have settled, and every commit been made by lab_do with its reads before its
 * writes. */
bool lab_judge(lab *l, bool quiet);

#endif
