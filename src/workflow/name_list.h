/* name_list.h -- a message that ends with the names that would have been right. */
#ifndef WORKFLOW_NAME_LIST_H
#define WORKFLOW_NAME_LIST_H

#include <heddle/base.h>
#include <stdbool.h>

typedef struct name_list {
    char text[sizeof((hd_error *)0)->message]; /* the message so far */
    size_t length;
    size_t names;      /* where the names begin in `text` */
    const char *intro; /* what stands before the first name; borrowed */
    bool cut;          /* a name did not fit: the text ends with "..." */
} name_list;

/* Begins with the message; `intro` ("; it has ") is written with the first name. */
void name_list_begin(name_list *l, const char *intro, const char *format, ...) HD_PRINTF(3, 4);
/* Adds a name, in quotation marks. One that the list has already is not added again; "..." stands for those that do not
 * fit. */
void name_list_add(name_list *l, const char *name);

#endif
