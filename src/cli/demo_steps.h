/* demo_steps.h -- the chapters of the demonstration, each on its own page of 24 lines. */
#ifndef CLI_DEMO_STEPS_H
#define CLI_DEMO_STEPS_H

#include "cli/demo_story.h"

#include <sys/types.h>

/* Opens the shop in s->file, as this process. */
bool demo_open_shop(story *s);

void demo_opening(story *s);
void demo_sale(story *s);
void demo_price(story *s);
void demo_discount(story *s);
void demo_gate(story *s);
void demo_question(story *s);
void demo_conflict(story *s);
void demo_delivered_twice(story *s);
void demo_why(story *s);

/* demo_crash.c */
void demo_crash(story *s);
/* Runs `live` in a process of its own until it has written `size` bytes of `words` to the pipe, kills it with SIGKILL,
 * and tells that. This process has no runtime open: a runtime has threads, and these do not cross. */
typedef void (*demo_life_fn)(story *s, int pipe_end);
pid_t demo_kill(story *s, demo_life_fn live, void *words, size_t size);

/* demo_delivery.c */
void demo_delivery(story *s);

/* demo_serve.c: no story, but the shop itself, until Ctrl-C. Returns an exit status. */
int demo_serve(story *s);
/* demo_end.c: the last page. */
void demo_end(story *s);
/* How the reader's shell gets to the file and to this command. */
void demo_print_way(story *s);

#endif
