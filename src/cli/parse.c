/* parse.c -- from argv to a command, its options and its operands.
 *
 * Options may stand anywhere, as --name, --name=ARG or --name ARG; "--" ends them. A word like -5
 * or - is an operand: values are JSON, and JSON has negative numbers. */
#include "cli/parse.h"

#include "cli/nearest.h"
#include "cli/output.h"
#include "store/postgres/backend.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which command ----------------------------------------------------------------------- */

/* `words` is no command, or none of `group`. `two`: the first two words, if `words` is the first; else "". */
static int unknown_command(cli *c, const char *words, const char *group, const char *two) {
    nearest n = nearest_to(words), of_two = nearest_to(two);
    char name[64];
    for (const command *const *at = commands; *at; at++) {
        const char *word = group ? command_in_group(*at, group) : NULL;
        if (!group) nearest_offer(&n, (*at)->name), nearest_offer(&of_two, (*at)->name);
        else if (word) {
            snprintf(name, sizeof name, "%s %s", group, word);
            nearest_offer(&n, name);
        }
    }
    char hint[256];
    const char *best = *n.best ? n.best : of_two.best;
    if (*best) snprintf(hint, sizeof hint, "Did you mean \"heddle %s\"?", best);
    else snprintf(hint, sizeof hint, "\"heddle help\" lists the commands.");
    return cli_fail(c, CLI_USAGE, hint, "there is no command \"%s\"", words);
}

static int group_alone(cli *c, const char *group) {
    char hint[512] = "";
    size_t length = 0, line = 0; /* where the last line begins */
    for (const command *const *at = commands; *at; at++) {
        const char *word = command_in_group(*at, group);
        if (!word || length >= sizeof hint) continue;
        bool full = length - line + strlen(word) > 74;
        if (full) line = length;
        length += (size_t)snprintf(hint + length, sizeof hint - length, "%s%s",
                                   !length ? "Say which: "
                                   : full  ? ",\n  "
                                           : ", ",
                                   word);
    }
    return cli_fail(c, CLI_USAGE, hint, "\"heddle %s\" is a group of commands", group);
}

/* "heddle db --help" is "heddle help db". */
static bool asks_about_group(cli *c, int count, char **words) {
    static const char *const asking[] = { "help", "--help", "-h" };
    if (count != 2 || !command_is_group(words[0]) || command_named(words[0])) return false;
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        if (strcmp(words[1], asking[i])) continue;
        c->command = command_named("help");
        c->operands[c->operand_count++] = words[0];
        return true;
    }
    return false;
}

/* Finds the command in the first two words, or in the first; *used is how many. "events" is a command
 * and a group: a second word that names one of the group decides. */
static int find_command(cli *c, int count, char **words, int *used) {
    char name[64] = "";
    if (count > 1) snprintf(name, sizeof name, "%s %s", words[0], words[1]);
    *used = 2;
    if ((c->command = command_named(name)) != NULL) return CLI_OK;
    *used = 1;
    if ((c->command = command_named(words[0])) != NULL) return CLI_OK;
    if (!command_is_group(words[0])) return unknown_command(c, words[0], NULL, name);
    if (count < 2 || words[1][0] == '-') return group_alone(c, words[0]);
    return unknown_command(c, name, words[0], "");
}

/* ---- Options ----------------------------------------------------------------------------- */

typedef struct option_search {
    const char *name;
    size_t length;
    const cli_option *found;
    size_t index;
    nearest near;
} option_search;

static void match_option(void *ctx, size_t index, const cli_option *option) {
    option_search *s = ctx;
    nearest_offer(&s->near, option->name);
    if (strncmp(option->name, s->name, s->length) || option->name[s->length]) return;
    s->found = option;
    s->index = index;
}

static option_search find_option(const cli *c, const char *name) {
    option_search s = { .name = name, .length = strcspn(name, "="), .near = nearest_to(name) };
    command_options(c->command, match_option, &s);
    assert(!s.found || s.index < CLI_OPTIONS_MAX);
    return s;
}

static int unknown_option(cli *c, const option_search *s) {
    char hint[256];
    if (*s->near.best) snprintf(hint, sizeof hint, "Did you mean --%s?", s->near.best);
    else snprintf(hint, sizeof hint, "\"heddle %s --help\" lists its options.", c->command->name);
    return cli_fail(c, CLI_USAGE, hint, "there is no option --%.*s", (int)s->length, s->name);
}

/* `word` begins with two dashes. Takes its argument from `next` if it has none of its own; *used
 * says so. */
static int take_option(cli *c, const char *word, const char *next, bool *used) {
    option_search s = find_option(c, word + 2);
    if (!s.found) return unknown_option(c, &s);
    const char *equals = strchr(word, '=');
    if (!s.found->argument) {
        if (equals) return cli_fail(c, CLI_USAGE, NULL, "--%s takes no argument", s.found->name);
        c->values[s.index] = "";
        c->wide |= strcmp(s.found->name, "wide") == 0;
        return CLI_OK;
    }
    if (!equals && !next)
        return cli_fail(c, CLI_USAGE, s.found->help, "--%s needs its argument %s", s.found->name,
                        s.found->argument);
    *used = !equals;
    c->values[s.index] = equals ? equals + 1 : next;
    return CLI_OK;
}

static bool is_operand(const char *word) {
    return word[0] != '-' || !word[1] || isdigit((unsigned char)word[1]);
}

static int take_words(cli *c, int count, char **words) {
    bool only_operands = false;
    for (int i = 0; i < count; i++) {
        if (only_operands || is_operand(words[i])) {
            c->operands[c->operand_count++] = words[i];
        } else if (strcmp(words[i], "--") == 0) {
            only_operands = true;
        } else {
            bool used = false;
            const char *word = strcmp(words[i], "-h") == 0 ? "--help" : words[i];
            if (word[1] != '-')
                return cli_fail(c, CLI_USAGE, "Options are written out: --json, --help.",
                                "there is no option %s", word);
            int failed = take_option(c, word, i + 1 < count ? words[i + 1] : NULL, &used);
            if (failed) return failed;
            i += used;
        }
    }
    return CLI_OK;
}

const char *option_text(const cli *c, const char *name) {
    option_search s = find_option(c, name);
    assert(s.found);
    return s.found ? c->values[s.index] : NULL;
}

int option_number(cli *c, const char *name, uint64_t *out) {
    const char *text = option_text(c, name);
    if (!text) return CLI_OK;
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno)
        return cli_fail(c, CLI_USAGE, NULL, "--%s takes a whole number, not \"%s\"", name, text);
    *out = n;
    return CLI_OK;
}

/* "1h30m", "90s", "1.5d": decimal numbers with units, the larger unit first, in milliseconds. A number without a unit
 * stands alone, and counts seconds. Below 0: the text is no span. */
static double span_ms(const char *text, bool *has_unit) {
    static const struct {
        const char *unit;
        double ms;
    } units[] = { { "w", 604800000 }, { "d", 86400000 }, { "h", 3600000 },
                  { "ms", 1 },        { "m", 60000 },    { "s", 1000 } };
    enum { UNITS = sizeof units / sizeof *units };
    double all = 0, larger = INFINITY;
    *has_unit = false;
    for (const char *at = text; at == text || *at;) {
        size_t digits = strspn(at, "0123456789."), i = 0;
        char *end, number[32];
        if (!digits || digits >= sizeof number) return -1;
        memcpy(number, at, digits);
        number[digits] = '\0';
        double n = strtod(number, &end);
        if (*end) return -1; /* two points */
        at += digits;
        if (!*at && !*has_unit) return n * 1000;
        while (i < UNITS && strncmp(at, units[i].unit, strlen(units[i].unit))) i++;
        if (i == UNITS || units[i].ms >= larger) return -1;
        *has_unit = true;
        larger = units[i].ms;
        all += n * larger;
        at += strlen(units[i].unit);
    }
    return all;
}

/* 300 years: more than any clock is asked for, and far from where milliseconds no longer fit. */
#define SPAN_MOST_MS 1e13

/* Rounded to milliseconds. */
static int take_span(cli *c, const char *name, bool needs_unit, uint64_t *ms) {
    const char *text = option_text(c, name);
    bool has_unit;
    if (!text) return CLI_OK;
    double span = span_ms(text, &has_unit);
    if (span >= SPAN_MOST_MS)
        return cli_fail(c, CLI_USAGE, NULL, "--%s: \"%s\" is longer than 300 years", name, text);
    if (span > 0 && span < 0.5)
        return cli_fail(c, CLI_USAGE, NULL, "--%s: \"%s\" is less than a millisecond", name, text);
    if (span < 0 || (needs_unit && !has_unit))
        return cli_fail(c, CLI_USAGE,
                        needs_unit
                            ? "Numbers with ms, s, m, h, d or w behind them, the larger unit\n"
                              "  first: 30d, 1h30m"
                            : "A number alone is seconds; else numbers with ms, s, m, h, d or w\n"
                              "  behind them, the larger unit first: 90s, 15m, 1h30m, 1d",
                        "--%s takes a span of time, not \"%s\"", name, text);
    *ms = (uint64_t)(span + 0.5);
    return CLI_OK;
}

int option_span(cli *c, const char *name, uint64_t *ms) { return take_span(c, name, true, ms); }

int option_time(cli *c, const char *name, uint64_t *ms) { return take_span(c, name, false, ms); }

int option_seconds(cli *c, const char *name, double *out) {
    uint64_t ms = 0;
    int failed = take_span(c, name, false, &ms);
    if (!failed && option_given(c, name)) *out = (double)ms / 1000;
    return failed;
}

/* ---- Whole ------------------------------------------------------------------------------- */

static int take_colour(cli *c) {
    const char *when = option_text(c, "color");
    if (!when || strcmp(when, "auto") == 0) return CLI_OK;
    bool always = strcmp(when, "always") == 0;
    if (!always && strcmp(when, "never"))
        return cli_fail(c, CLI_USAGE, NULL, "--color is always, never or auto, not \"%s\"", when);
    c->colour_out = c->colour_err = always;
    return CLI_OK;
}

/* Operand number `index` of the command, from 0, as help names it: "CELL" of "FILE CELL...". One that is required
 * stands before all that are not. */
static const char *operand_name(const command *cmd, size_t index, int *length) {
    const char *at = cmd->operands;
    for (; index && *at; index--) at += strcspn(at, " ") + 1;
    *length = (int)strcspn(at, " .");
    return at;
}

static const char *how_to_write(const command *cmd, char hint[256]) {
    snprintf(hint, 256, "Write: heddle %s %s", cmd->name, cmd->operands);
    return hint;
}

int refuse_words(cli *c, size_t most) {
    char hint[256];
    if (c->operand_count <= most) return CLI_OK;
    return cli_fail(c, CLI_USAGE, how_to_write(c->command, hint), "\"%s\" is one word too many",
                    c->operands[most]);
}

int refuse_options(cli *c, const char *word, const char *const *names) {
    for (; *names; names++)
        if (option_given(c, *names))
            return cli_fail(c, CLI_USAGE, NULL, "\"%s\" has no --%s", word, *names);
    return CLI_OK;
}

static int check_operands(cli *c) {
    const command *cmd = c->command;
    int length;
    hd_error error;
    if (c->operand_count && postgres_refuse_misspelt(c->operands[0], &error))
        return cli_fail(c, CLI_USAGE, NULL, "%s", error.message);
    if (c->operand_count >= cmd->least) return refuse_words(c, cmd->most);
    char hint[256];
    const char *missing = operand_name(cmd, c->operand_count, &length);
    return cli_fail(c, CLI_USAGE, how_to_write(cmd, hint), "%.*s is missing", length, missing);
}

/* Whether --json is among the words. Looked at before they are parsed, so that an error in them is printed
 * as JSON, too. */
static bool wants_json(int count, char **words) {
    for (int i = 0; i < count && strcmp(words[i], "--"); i++)
        if (strcmp(words[i], "--json") == 0) return true;
    return false;
}

int parse(cli *c, int count, char **words) {
    c->json = wants_json(count, words);
    c->operands = calloc((size_t)count + 1, sizeof *c->operands);
    if (!c->operands) return cli_fail(c, CLI_INTERNAL, NULL, "out of memory");
    if (count == 0) {
        c->command = command_named("help");
        return CLI_OK;
    }
    if (asks_about_group(c, count, words)) return CLI_OK;
    int used = 1, failed = CLI_OK;
    const char *first = words[0];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        c->command = command_named("help");
    else if (strcmp(first, "--version") == 0) c->command = command_named("version");
    else failed = find_command(c, count, words, &used);
    if (!failed) failed = take_words(c, count - used, words + used);
    if (!failed) {
        c->json = option_given(c, "json");
        failed = take_colour(c);
    }
    if (!failed && !option_given(c, "help")) failed = check_operands(c);
    return failed;
}

void parse_fini(cli *c) {
    free(c->operands);
    free(c->input);
}
