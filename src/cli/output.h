/* output.h -- how the command speaks: results on stdout, everything else on stderr. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli/command.h"
#include <heddle/value.h>
#include <stdio.h>

/* Finds out what the terminal can do. Before this nothing is coloured. */
void output_init(cli *c);
/* Whether everything has been written: CLI_OK, CLI_PIPE or CLI_IO, the last with a message. */
int output_fini(cli *c, int status);
/* Whether the output cannot be written any more: the command stops. */
bool output_broken(void);

/* Prints text from the store (names, keys, kinds): control characters, which could drive a
 * terminal, show as "?". */
void print_plain(FILE *to, const char *text);
/* The same for a text of several lines, which stay or become one. */
void print_plain_lines(FILE *to, const char *text);
void print_one_line(FILE *to, const char *text);

/* Escape sequences, or "" where there are no colours. */
typedef enum colour {
    COLOUR_NONE,
    COLOUR_BOLD,
    COLOUR_DIM,
    COLOUR_RED,
    COLOUR_GREEN,
    COLOUR_YELLOW,
    COLOUR_CYAN
} colour;
const char *out_colour(const cli *c, colour which);
const char *err_colour(const cli *c, colour which);

/* Says what went wrong and how to go on (`hint` may be NULL); returns `status`. */
int cli_fail(cli *c, int status, const char *hint, const char *format, ...) HD_PRINTF(4, 5);
/* A remark that is no failure. */
void cli_warn(const cli *c, const char *format, ...) HD_PRINTF(2, 3);
/* Malformed text, with the line it stands in and a mark below the place. */
int cli_fail_text(cli *c, const char *what, const char *text, const char *hint,
                  const hd_error *error);

/* Which exit status a status of the library stands for. */
int exit_of(hd_status status);

/* Replaces the line on a watched stderr; an empty text clears it. */
void progress(const cli *c, const char *format, ...) HD_PRINTF(2, 3);

/* The same as a bar: `done` of `total`. A total of 0 is not known: then only what was done. */
void progress_bar(const cli *c, const char *what, uint64_t done, uint64_t total);

/* Prints text that wraps at 78 columns, indented from the second line on (the first line begins at
 * column `at`). Stops at an empty line and returns what follows it, NULL at the end. */
const char *print_wrapped(const char *text, int at, int indent);

/* Prints a value as JSON and a newline. HD_OK, or what the value failed with. */
hd_status print_value(hd_value v, hd_json_style style);

/* A size for people: "1.4 MiB". */
#define SIZE_TEXT 24
const char *size_text(uint64_t bytes, char out[SIZE_TEXT]);

/* A time for people: "830 ns", "1.25 ms", "3 s". */
#define TIME_TEXT 16
const char *time_text(double ns, char out[TIME_TEXT]);
/* Plain text in a column of this width: padded, or cut in the middle with "...". */
void print_cell(FILE *to, const char *text, int width);
/* A name, which is never cut: padded to the width; a longer one is followed by a new line, on which the next
 * column begins, `indent` further right, or with --wide by a space. */
void print_name(const cli *c, const char *text, int width, int indent);
/* Columns that a name takes. */
int name_width(const char *text);
/* Columns of the terminal; 80 if stdout is none. */
int output_width(void);
/* The same of stderr. */
int screen_width(void);
/* Columns that a line of results may take: those of the terminal. Where stdout is none, and with --wide, any number. */
int line_room(const cli *c);
/* Prints a value as JSON behind `column` columns and a gap. If the line has no room for it, it has a line of its own,
 * indented; if that has no room either, its end is cut off ("..."). */
hd_status print_value_within(const cli *c, hd_value v, const char *gap, int column, int indent);

#define OPTION_WIDE                                                                                \
    { "wide", NULL, "on a terminal: values whole, however long" }

#endif
