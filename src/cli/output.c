/* output.c -- how the command speaks: results on stdout, everything else on stderr.
 *
 * A message says what is wrong in one line and, below, how to go on. With --json it is one object on
 * one line instead, with the exit status in words. */
#define _GNU_SOURCE
#include "cli/output.h"

#include "cli/record.h"
#include "cli/shown.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_WIDTH = 78 };

/* ---- Streams ----------------------------------------------------------------------------- */

static bool takes_colours(int fd) {
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fd) && !(no && *no) && terminal && strcmp(terminal, "dumb");
}

/* Opens /dev/null for standard streams that are closed, read-only so that writing fails: else a file that is
 * opened later would get the stream's number, and output would go into it. */
static void occupy_closed_streams(void) {
    int fd;
    do fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

void output_init(cli *c) {
    occupy_closed_streams();
    c->colour_out = takes_colours(STDOUT_FILENO);
    c->colour_err = takes_colours(STDERR_FILENO);
    c->progress = isatty(STDERR_FILENO);
}

bool output_broken(void) { return ferror(stdout); }

/* Whether stdout is a pipe without a reader. errno of the write that failed is lost; the pipe's state is
 * not. */
static bool reader_is_gone(void) {
    struct pollfd out = { STDOUT_FILENO, POLLOUT, 0 };
    return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP));
}

int output_fini(cli *c, int status) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    int why = errno;
    if (why == EPIPE || reader_is_gone()) return CLI_PIPE;
    return cli_fail(c, CLI_IO, NULL, "cannot write the results: %s",
                    why ? strerror(why) : "an earlier write failed");
}

static const char *sequence(bool allowed, colour which) {
    static const char *const sequences[] = { "\033[0m",  "\033[1m",  "\033[2m", "\033[31m",
                                             "\033[32m", "\033[33m", "\033[36m" };
    return allowed ? sequences[which] : "";
}

const char *out_colour(const cli *c, colour which) { return sequence(c->colour_out, which); }
const char *err_colour(const cli *c, colour which) { return sequence(c->colour_err, which); }

/* ---- Text of others ---------------------------------------------------------------------- */

static bool continues(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

/* How many bytes at `at` are one control character; 0: it is none. Those from U+0080 to U+009F have
 * two, and some terminals obey them. */
static size_t control_at(const char *at) {
    unsigned char a = (unsigned char)at[0], b = (unsigned char)(a ? at[1] : 0);
    if (a == 0xC2 && b >= 0x80 && b <= 0x9F) return 2;
    return a < 0x20 || a == 0x7F;
}

/* The end of a line becomes `line_end`, any other control character '?'. */
static void put_plain(FILE *to, const char *text, const char *end, char line_end) {
    while (text < end) {
        size_t control = control_at(text);
        fputc(*text == '\n' ? line_end : control ? '?' : *text, to);
        text += control ? control : 1;
    }
}

void print_plain(FILE *to, const char *text) { put_plain(to, text, text + strlen(text), '?'); }
void print_plain_lines(FILE *to, const char *text) {
    put_plain(to, text, text + strlen(text), '\n');
}
void print_one_line(FILE *to, const char *text) { put_plain(to, text, text + strlen(text), ' '); }

/* A hint is a text of this program; only what it quotes may have control characters. */
static void print_hint(const char *hint) {
    fputs("  ", stderr);
    print_plain_lines(stderr, hint);
    fputc('\n', stderr);
}

/* ---- Failures ---------------------------------------------------------------------------- */

static const char *exit_word(int status) {
    switch ((cli_exit)status) {
#define EXIT_WORD(name, number, text)                                                              \
    case name: return &#name[4]; /* without CLI_ */
        CLI_EXIT_TABLE(EXIT_WORD)
#undef EXIT_WORD
    }
    return "INTERNAL";
}

static void fail_json(const cli *c, int status, const char *hint, const char *message) {
    record r = record_to(stderr);
    record_open(&r, NULL, '{');
    if (c->command) record_text(&r, "command", c->command->name);
    record_text(&r, "error", exit_word(status));
    record_text(&r, "message", message);
    if (hint) record_text(&r, "hint", hint);
    record_close(&r, '}');
    record_end(&r);
}

int cli_fail(cli *c, int status, const char *hint, const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    hide_passwords(message);
    fflush(stdout);
    progress(c, "%s", "");
    if (c->json) {
        fail_json(c, status, hint, message);
        return status;
    }
    fprintf(stderr, "%sheddle%s%s:%s ", err_colour(c, COLOUR_RED), c->command ? " " : "",
            c->command ? c->command->name : "", err_colour(c, COLOUR_NONE));
    print_one_line(stderr, message);
    fputc('\n', stderr);
    if (hint) print_hint(hint);
    return status;
}

static void warn_json(const cli *c, const char *message) {
    record r = record_to(stderr);
    record_open(&r, NULL, '{');
    if (c->command) record_text(&r, "command", c->command->name);
    record_text(&r, "warning", message);
    record_close(&r, '}');
    record_end(&r);
}

void cli_warn(const cli *c, const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    hide_passwords(message);
    progress(c, "%s", "");
    if (c->json) {
        warn_json(c, message);
        return;
    }
    fputs("heddle: ", stderr);
    print_one_line(stderr, message);
    fputc('\n', stderr);
}

int exit_of(hd_status status) {
    if (status == HD_OK) return CLI_OK;
    if (status == HD_NOT_FOUND) return CLI_NOT_FOUND;
    if (status == HD_KIND || status == HD_RANGE) return CLI_INPUT; /* a change that does not fit */
    switch (hd_status_class(status)) {
    case HD_CLASS_STALE:
    case HD_CLASS_PERMANENT: return CLI_CONFLICT;
    case HD_CLASS_INPUT: return CLI_INPUT;
    case HD_CLASS_TRANSIENT:
    case HD_CLASS_NO_VERDICT:
    case HD_CLASS_PENDING: return CLI_IO;
    case HD_CLASS_TERMINAL:
        return status == HD_CORRUPT || status == HD_NEWER || status == HD_NOT_HEDDLE ||
                       status == HD_READ_ONLY || status == HD_REJECTED
                   ? CLI_FILE
                   : CLI_INTERNAL;
    default: return CLI_INTERNAL;
    }
}

/* ---- Text with a mark -------------------------------------------------------------------- */

/* Shows the line around `offset`, shortened to the width of a terminal, and a caret below. */
static void print_mark(const cli *c, const char *text, size_t offset) {
    size_t length = strlen(text);
    if (offset > length) offset = length;
    while (offset && !text[offset] && text[offset - 1] == '\n')
        offset--; /* the text ends too soon */
    if (!*text) return;
    size_t start = offset, end = offset;
    while (start && text[start - 1] != '\n' && offset - start < 50) start--;
    while (start < offset && continues(text[start])) start++;
    while (text[end] && text[end] != '\n' && end - start < 70) end++;
    while (end > offset && continues(text[end])) end--;
    fputs("  ", stderr);
    put_plain(stderr, text + start, text + end, '?');
    fputs("\n  ", stderr);
    for (size_t i = start; i < offset; i++)
        if (!continues(text[i])) fputc(' ', stderr);
    fprintf(stderr, "%s^%s\n", err_colour(c, COLOUR_RED), err_colour(c, COLOUR_NONE));
}

int cli_fail_text(cli *c, const char *what, const char *text, const char *hint,
                  const hd_error *error) {
    int status =
        cli_fail(c, exit_of(error->status), c->json ? hint : NULL, "%s, line %u, column %u: %s",
                 what, error->line, error->column, error->message);
    if (c->json) return status;
    print_mark(c, text, error->offset);
    if (hint) print_hint(hint);
    return status;
}

/* ---- Progress and prose ------------------------------------------------------------------ */

void progress(const cli *c, const char *format, ...) {
    if (!c->progress) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    fflush(stderr);
    va_end(arguments);
}

void progress_bar(const cli *c, const char *what, uint64_t done, uint64_t total) {
    enum { WIDTH = 40 };
    char bar[WIDTH + 1];
    if (!c->progress) return;
    if (!total) {
        progress(c, "%s %" PRIu64, what, done);
        return;
    }
    if (done > total) done = total;
    size_t filled = (size_t)((double)done / (double)total * WIDTH);
    memset(bar, '#', filled);
    memset(bar + filled, '.', WIDTH - filled);
    bar[WIDTH] = '\0';
    progress(c, "%s [%s] %3.0f %%", what, bar, 100.0 * (double)done / (double)total);
}

const char *print_wrapped(const char *text, int at, int indent) {
    int column = at;
    bool fresh = true; /* nothing on this line yet */
    while (*text && !(text[0] == '\n' && text[1] == '\n')) {
        text += strspn(text, " \n");
        int length = (int)strcspn(text, " \n");
        if (!fresh && column + 1 + length > LINE_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
            fresh = true;
        }
        if (!fresh) column += printf(" ");
        put_plain(stdout, text, text + length, '?');
        column += length;
        fresh = false;
        text += length;
    }
    putchar('\n');
    return *text ? text + 2 : NULL;
}

hd_status print_value(hd_value v, hd_json_style style) {
    hd_status status = write_json(stdout, v, style);
    putchar('\n');
    return status;
}

const char *size_text(uint64_t bytes, char out[SIZE_TEXT]) {
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1000 && unit < 4; unit++) size /= 1024;
    snprintf(out, SIZE_TEXT, unit && size < 100 ? "%.1f %s" : "%.0f %s", size, units[unit]);
    return out;
}

/* ---- Columns ----------------------------------------------------------------------------- */

const char *time_text(double ns, char out[TIME_TEXT]) {
    static const char *const units[] = { "ns", "us", "ms", "s" };
    size_t unit = 0;
    for (; ns >= 1000 && unit < 3; unit++) ns /= 1000;
    snprintf(out, TIME_TEXT,
             unit && ns < 10    ? "%.2f %s"
             : unit && ns < 100 ? "%.1f %s"
                                : "%.0f %s",
             ns, units[unit]);
    return out;
}

static int columns_of(const char *text_, size_t bytes) {
    int n = 0;
    for (size_t i = 0; i < bytes; i++) n += !continues(text_[i]);
    return n;
}

void print_cell(FILE *to, const char *name, int width) {
    int columns = columns_of(name, strlen(name));
    if (columns <= width) {
        print_plain(to, name);
        fprintf(to, "%*s", width - columns, "");
        return;
    }
    /* The middle is cut out: the ends of a name tell more. */
    int head = (width - 3) / 2, tail = width - 3 - head, seen = 0;
    const char *at = name;
    for (; *at && (seen < head || continues(*at)); at++) seen += !continues(*at);
    put_plain(to, name, at, '?');
    fputs("...", to);
    for (; *at && columns - seen > tail; at++) seen += !continues(*at);
    while (continues(*at)) at++;
    print_plain(to, at);
}

int name_width(const char *text) { return columns_of(text, strlen(text)); }

static int columns_on(int fd, int otherwise) {
    struct winsize size;
    if (!isatty(fd)) return otherwise;
    return ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col ? LINE_WIDTH + 2 : size.ws_col;
}

int output_width(void) { return columns_on(STDOUT_FILENO, LINE_WIDTH + 2); }
int screen_width(void) { return columns_on(STDERR_FILENO, LINE_WIDTH + 2); }
int line_room(const cli *c) { return c->wide ? INT_MAX : columns_on(STDOUT_FILENO, INT_MAX); }

/* As many bytes as take so many columns. */
static size_t bytes_of(const char *text, size_t length, int columns) {
    size_t at = 0;
    for (int n = 0; at < length; at++)
        if (!continues(text[at]) && n++ == columns) break;
    return at;
}

hd_status print_value_within(const cli *c, hd_value v, const char *gap, int column, int indent) {
    char *text = NULL;
    size_t length = 0;
    int room = line_room(c), own = room - indent > 16 ? room - indent : 16;
    FILE *to = room < INT_MAX ? open_memstream(&text, &length) : NULL;
    if (!to) return fputs(gap, stdout), write_json(stdout, v, HD_JSON_COMPACT);
    hd_status status = write_json(to, v, HD_JSON_COMPACT);
    fclose(to);
    int columns = columns_of(text, length);
    bool folds = column + (int)strlen(gap) + columns > room, cut = folds && columns > own;
    if (folds) printf("\n%*s", indent, "");
    else fputs(gap, stdout);
    fwrite(text, 1, cut ? bytes_of(text, length, own - 3) : length, stdout);
    if (cut) fputs("...", stdout);
    free(text);
    return status;
}

void print_name(const cli *c, const char *text, int width, int indent) {
    int columns = name_width(text);
    print_plain(stdout, text);
    if (columns <= width) printf("%*s", width - columns, "");
    else if (c->wide) putchar(' ');
    else printf("\n%*s", indent + width, "");
}
