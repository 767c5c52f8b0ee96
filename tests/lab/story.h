/* story.h -- what happened so far, for the message of a failure. */
#ifndef HEDDLE_LAB_STORY_H
#define HEDDLE_LAB_STORY_H

#include <heddle/base.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct lab_story {
    char text[8192]; /* what comes after is left out */
} lab_story;

HD_PRINTF(2, 3) static inline void lab_tell(lab_story *s, const char *format, ...) {
    va_list arguments;
    size_t n = strlen(s->text);
    va_start(arguments, format);
    vsnprintf(s->text + n, sizeof s->text - n, format, arguments);
    va_end(arguments);
}

#endif
