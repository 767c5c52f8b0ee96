/* commands.h -- the subcommands, one file each. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/command.h"

extern const command command_get, command_set, command_patch, command_rm, command_ls, command_log,
    command_watch;
extern const command command_send, command_events, command_events_retry, command_events_drop,
    command_streams;
extern const command command_graph, command_why, command_why_not, command_trace, command_stats,
    command_pieces;
extern const command command_workflow_register, command_workflow_start, command_workflow_await,
    command_workflow_ls, command_workflow_show, command_workflow_journal, command_workflow_graph,
    command_workflow_explain, command_workflow_cancel, command_workflow_signal,
    command_workflow_pause, command_workflow_resume, command_workflow_rerun, command_workflow_rm,
    command_workflow_prune, command_workflow_worker, command_workflow_schedule,
    command_workflow_queues;
extern const command command_db_check, command_db_repair, command_db_stats, command_db_checkpoint,
    command_db_prune, command_db_vacuum, command_db_backup, command_db_export, command_db_import,
    command_db_init, command_leases;
extern const command command_demo, command_bench, command_doctor, command_version, command_help;

#endif
