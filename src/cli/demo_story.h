/* demo_story.h -- how the demonstration is told: headings, sentences, and what heddle says of itself.
 *
 * The story's text does not contain which nodes ran, which did not, and why: that is read from the
 * runtime's traces and statistics afterwards. A check compares it with what the story claims. */
#ifndef CLI_DEMO_STORY_H
#define CLI_DEMO_STORY_H

#include "cli/command.h"
#include "shop/shop.h"

#include <heddle/introspect.h>

/* What stands above, for the empty lines between. */
typedef enum story_mark { STORY_HEADING, STORY_SAID, STORY_DREW, STORY_CHECKED } story_mark;

typedef struct story {
    cli *c;
    shop shop;
    const char *folder, *file;
    bool pauses; /* stdout is a terminal, and --fast was not given */
    int step;    /* of the heading told last */
    int broken;  /* checks that did not hold */
    int aborted; /* something failed, the rest is not told: the exit status; CLI_OK: not */
    story_mark above;
    uint64_t drawn; /* runs of the effects that print, when looked last */
} story;

/* A new heading; before it, time to read what is above. Returns false when the story is to end: the
 * reader has left, or something failed. */
bool story_step(story *s, const char *title);
/* A paragraph. */
void story_say(story *s, const char *format, ...) HD_PRINTF(2, 3);
/* A line that says what was measured, and whether the story holds. */
void story_check(story *s, bool holds, const char *format, ...) HD_PRINTF(3, 4);
/* A line to be typed into a shell. */
void story_shell(story *s, const char *format, ...) HD_PRINTF(2, 3);
/* Time to read, which Enter ends. */
void story_pause(story *s, int ms);

/* Notes a failure of the library; returns whether there is none. */
bool story_ok(story *s, hd_status status, const char *what);

/* Lets the shop settle and every commit have its verdict; then tells which nodes ran since the last
 * time, because of what, and which did not and why not. */
void story_settle(story *s);
/* The same without telling. */
void story_settle_silently(story *s);
/* Waits, for two seconds at most, until the node has run more than `runs` times. */
void story_wait_for(story *s, const char *node, uint64_t runs);
/* The causes of the last run of a node of the shop, down to the commit that began it. */
void story_why(story *s, const char *node);

/* How often a node of the shop has run: "total", "amounts/1". */
uint64_t story_runs_of(story *s, const char *node);
/* What heddle says about why it does not run. */
hd_why_not story_why_not(story *s, const char *node, char *out, size_t size);
/* The number in a cell. */
int64_t story_number(story *s, hd_cell cell);

#endif
