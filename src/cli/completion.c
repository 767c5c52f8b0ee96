/* completion.c -- what a shell completes after "heddle": written from the table of commands.
 *
 * The first word is a command or a group, the second of a group one of its commands; words that begin with dashes are
 * options of the command, and everything else is a file. A script is printed once and installed: it runs nothing. */
#include "cli/completion.h"

#include "cli/output.h"
#include <stdio.h>
#include <string.h>

typedef void (*word_fn)(const char *word, const char *summary, void *ctx);

/* ---- The table ---------------------------------------------------------------------------- */

static bool has_group(const command *cmd, char group[64]) {
    const char *space = strchr(cmd->name, ' ');
    if (!space) return false;
    snprintf(group, 64, "%.*s", (int)(space - cmd->name), cmd->name);
    return true;
}

/* Whether an earlier command of the table has this first word. */
static bool was_named(const command *const *end, const char *word) {
    size_t length = strlen(word);
    for (const command *const *at = commands; at < end; at++)
        if (strncmp((*at)->name, word, length) == 0 && strchr(" ", (*at)->name[length]))
            return true;
    return false;
}

static void each_first_word(word_fn fn, void *ctx) {
    char group[64];
    for (const command *const *at = commands; *at; at++) {
        bool grouped = has_group(*at, group);
        const char *word = grouped ? group : (*at)->name;
        if (!was_named(at, word)) fn(word, grouped ? "a group of commands" : (*at)->summary, ctx);
    }
}

static void each_of_group(const char *group, word_fn fn, void *ctx) {
    size_t length = strlen(group);
    for (const command *const *at = commands; *at; at++)
        if (strncmp((*at)->name, group, length) == 0 && (*at)->name[length] == ' ')
            fn((*at)->name + length + 1, (*at)->summary, ctx);
}

static void each_group(word_fn fn, void *ctx) {
    char group[64];
    for (const command *const *at = commands; *at; at++) {
        bool first = has_group(*at, group);
        for (const command *const *before = commands; before < at && first; before++)
            first = !command_in_group(*before, group) || !strchr((*before)->name, ' ');
        if (first) fn(group, "", ctx);
    }
}

typedef struct options_of {
    word_fn fn;
    void *ctx;
} options_of;

static void tell_option(void *ctx, size_t index, const cli_option *option) {
    const options_of *o = ctx;
    (void)index;
    o->fn(option->name, option->help, o->ctx);
}

static void each_option(const command *cmd, word_fn fn, void *ctx) {
    options_of o = { fn, ctx };
    command_options(cmd, tell_option, &o);
}

/* In single quotes of a shell; a colon, which zsh takes for the end of a word, is left out. */
static void print_quoted(const char *text) {
    for (; *text; text++)
        if (*text == '\'') fputs("'\\''", stdout);
        else if (*text != ':' && *text != '[' && *text != ']') putchar(*text);
}

/* ---- bash --------------------------------------------------------------------------------- */

static void bash_word(const char *word, const char *summary, void *ctx) {
    (void)summary;
    printf(" %s%s", (const char *)ctx, word);
}

static void bash_group(const char *group, const char *summary, void *ctx) {
    (void)summary;
    (void)ctx;
    printf("    2,%s) words='", group);
    each_of_group(group, bash_word, "");
    puts("' ;;");
}

/* Longer names come first: "events retry" before "events". */
static void bash_options(bool grouped) {
    for (const command *const *at = commands; *at; at++) {
        if (!strchr((*at)->name, ' ') == grouped) continue;
        printf("        '%s%s'*) words='", (*at)->name, grouped ? "" : " ");
        each_option(*at, bash_word, "--");
        puts("' ;;");
    }
}

static void print_bash(void) {
    puts("# heddle in bash: made by \"heddle help --completion bash\".\n"
         "_heddle() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} first=${COMP_WORDS[1]} words=\n"
         "    case $COMP_CWORD,$first in");
    fputs("    1,*) words='", stdout);
    each_first_word(bash_word, "");
    puts("' ;;");
    each_group(bash_group, NULL);
    puts("    esac\n"
         "    if [[ $cur == -* ]]; then\n"
         "        case \"$first ${COMP_WORDS[2]}\" in");
    bash_options(true);
    bash_options(false);
    puts("        esac\n"
         "    fi\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "}\n"
         "complete -o default -F _heddle heddle");
}

/* ---- zsh ---------------------------------------------------------------------------------- */

static void zsh_word(const char *word, const char *summary, void *ctx) {
    printf(" '%s%s:", (const char *)ctx, word);
    print_quoted(summary);
    putchar('\'');
}

static void zsh_group(const char *group, const char *summary, void *ctx) {
    (void)summary;
    (void)ctx;
    printf("    (3,%s) all=(", group);
    each_of_group(group, zsh_word, "");
    puts(") ;;");
}

static void zsh_options(bool grouped) {
    for (const command *const *at = commands; *at; at++) {
        if (!strchr((*at)->name, ' ') == grouped) continue;
        printf("        ('%s%s'*) all=(", (*at)->name, grouped ? "" : " ");
        each_option(*at, zsh_word, "--");
        puts(") ;;");
    }
}

static void print_zsh(void) {
    puts("#compdef heddle\n"
         "# heddle in zsh: made by \"heddle help --completion zsh\".\n"
         "_heddle() {\n"
         "    local -a all\n"
         "    case $CURRENT,$words[2] in");
    fputs("    (2,*) all=(", stdout);
    each_first_word(zsh_word, "");
    puts(") ;;");
    each_group(zsh_group, NULL);
    puts("    esac\n"
         "    if [[ $PREFIX == -* ]]; then\n"
         "        case \"$words[2] $words[3]\" in");
    zsh_options(true);
    zsh_options(false);
    puts("        esac\n"
         "    fi\n"
         "    (( $#all )) && _describe heddle all && return\n"
         "    _files\n"
         "}\n"
         "[[ $funcstack[1] == _heddle ]] && _heddle \"$@\"\n"
         "(( $+functions[compdef] )) && compdef _heddle heddle");
}

/* ---- fish --------------------------------------------------------------------------------- */

static void fish_first(const char *word, const char *summary, void *ctx) {
    (void)ctx;
    printf("complete -c heddle -n __fish_use_subcommand -a %s -d '", word);
    print_quoted(summary);
    puts("'");
}

static void fish_second(const char *word, const char *summary, void *ctx) {
    const char *group = ctx;
    printf("complete -c heddle -n '__fish_seen_subcommand_from %s; and not "
           "__fish_seen_subcommand_from",
           group);
    each_of_group(group, bash_word, "");
    printf("' -a %s -d '", word);
    print_quoted(summary);
    puts("'");
}

static void fish_group(const char *group, const char *summary, void *ctx) {
    char word[64];
    (void)summary;
    (void)ctx;
    snprintf(word, sizeof word, "%s", group);
    each_of_group(group, fish_second, word);
}

static void fish_option(const char *word, const char *summary, void *ctx) {
    const command *cmd = ctx;
    const char *space = strchr(cmd->name, ' ');
    printf("complete -c heddle -n '__fish_seen_subcommand_from %.*s",
           space ? (int)(space - cmd->name) : (int)strlen(cmd->name), cmd->name);
    if (space) printf("; and __fish_seen_subcommand_from %s", space + 1);
    printf("' -l %s -d '", word);
    print_quoted(summary);
    puts("'");
}

static void print_fish(void) {
    puts("# heddle in fish: made by \"heddle help --completion fish\".");
    each_first_word(fish_first, NULL);
    each_group(fish_group, NULL);
    for (const command *const *at = commands; *at; at++)
        each_option(*at, fish_option, (void *)(uintptr_t)*at);
}

int completion_print(cli *c, const char *shell) {
    if (strcmp(shell, "bash") == 0) print_bash();
    else if (strcmp(shell, "zsh") == 0) print_zsh();
    else if (strcmp(shell, "fish") == 0) print_fish();
    else
        return cli_fail(c, CLI_USAGE, "bash, zsh and fish are known.",
                        "there is no completion for the shell \"%s\"", shell);
    return CLI_OK;
}
