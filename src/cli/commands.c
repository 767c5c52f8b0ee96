/* commands.c -- the list of subcommands, grouped by noun. A new one is a line here and a file. */
#include "cli/commands.h"

#include <string.h>

const cli_option common_options[] = {
    { "json", NULL, "results and errors as lines of JSON, for programs" },
    { "color", "WHEN", "always, never or auto (default; NO_COLOR counts)" },
    { "help", NULL, "show this" },
    { NULL, NULL, NULL },
};

const command *const commands[] = {
    /* cells */
    &command_get,
    &command_set,
    &command_patch,
    &command_rm,
    &command_ls,
    &command_log,
    &command_watch,
    /* events */
    &command_send,
    &command_events,
    &command_events_retry,
    &command_events_drop,
    &command_streams,
    /* workflows */
    &command_workflow_register,
    &command_workflow_start,
    &command_workflow_await,
    &command_workflow_ls,
    &command_workflow_show,
    &command_workflow_journal,
    &command_workflow_graph,
    &command_workflow_explain,
    &command_workflow_cancel,
    &command_workflow_signal,
    &command_workflow_pause,
    &command_workflow_resume,
    &command_workflow_rerun,
    &command_workflow_rm,
    &command_workflow_prune,
    &command_workflow_worker,
    &command_workflow_schedule,
    &command_workflow_queues,
    /* a running program */
    &command_graph,
    &command_why,
    &command_why_not,
    &command_trace,
    &command_stats,
    &command_pieces,
    /* db */
    &command_db_init,
    &command_db_check,
    &command_db_repair,
    &command_db_stats,
    &command_leases,
    &command_db_checkpoint,
    &command_db_prune,
    &command_db_vacuum,
    &command_db_backup,
    &command_db_export,
    &command_db_import,
    /* heddle itself */
    &command_demo,
    &command_bench,
    &command_doctor,
    &command_version,
    &command_help,
    NULL,
};

const command *command_named(const char *name) {
    for (const command *const *at = commands; *at; at++)
        if (strcmp((*at)->name, name) == 0 || ((*at)->also && strcmp((*at)->also, name) == 0))
            return *at;
    return NULL;
}

const char *command_in_group(const command *cmd, const char *group) {
    const char *names[] = { cmd->name, cmd->also };
    size_t length = strlen(group);
    for (int i = 0; i < 2; i++)
        if (names[i] && strncmp(names[i], group, length) == 0 && names[i][length] == ' ')
            return names[i] + length + 1;
    return NULL;
}

bool command_is_group(const char *word) {
    for (const command *const *at = commands; *at; at++)
        if (command_in_group(*at, word)) return true;
    return false;
}

void command_options(const command *cmd,
                     void (*fn)(void *ctx, size_t index, const cli_option *option), void *ctx) {
    size_t index = 0;
    if (cmd)
        for (const cli_option *o = cmd->options; o && o->name; o++) fn(ctx, index++, o);
    for (const cli_option *o = common_options; o->name; o++) fn(ctx, index++, o);
}
