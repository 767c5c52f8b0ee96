/* workflow_register.c -- gives a store the IR of workflows. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/workflow.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole file with a NUL; NULL: it could not be read, and errno says why. Free it. */
static char *read_file(const char *file, size_t *length) {
    FILE *from = fopen(file, "rb");
    char *text = NULL;
    size_t capacity = 0;
    *length = 0;
    if (!from) return NULL;
    do {
        if (capacity - *length < 4096) {
            char *larger = realloc(text, capacity = capacity * 2 + 65536);
            if (!larger) break;
            text = larger;
        }
        *length += fread(text + *length, 1, capacity - *length - 1, from);
    } while (!feof(from) && !ferror(from));
    bool good = text && feof(from) && !ferror(from);
    if (good) text[*length] = '\0';
    fclose(from);
    if (!good) free(text);
    return good ? text : NULL;
}

static int read_ir(flow *f, const char *file, hd_value *ir) {
    size_t length;
    if (strcmp(file, "-") == 0) return store_json(&f->s, "stdin", "-", ir);
    char *text = read_file(file, &length);
    if (!text && interrupted()) return interrupted_status();
    if (!text)
        return cli_fail(f->s.c, errno == ENOENT ? CLI_NOT_FOUND : CLI_IO, NULL, "%s: %s", file,
                        strerror(errno));
    int failed = store_parse(&f->s, file, 0, text, length, ir);
    free(text);
    return failed;
}

static int refused(flow *f, const char *file, hd_status status, const hd_error *error) {
    const char *words = *error->message ? error->message : hd_status_text(status);
    if (*error->path)
        return cli_fail(f->s.c, CLI_INPUT, "docs/IR.md says what a workflow is made of.",
                        "%s: %s: %s", file, error->path, words);
    return cli_fail(f->s.c, exit_of(status), "docs/IR.md says what a workflow is made of.",
                    "%s: %s", file, words);
}

static void tell(const flow *f, hd_value ir, const char *version) {
    if (!f->s.c->json) {
        printf("registered %s, version %s\n", flow_text(ir, "name"), version);
        return;
    }
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "name", flow_text(ir, "name"));
    record_text(&r, "version", version);
    record_close(&r, '}');
    record_end(&r);
}

static int register_file(flow *f, const char *file, bool silent) {
    hd_value ir;
    char version[HD_ID_SIZE];
    hd_error error = { 0 };
    int failed = read_ir(f, file, &ir);
    if (failed) return failed;
    hd_status status = hd_workflow_register(f->engine, ir, version, &error);
    if (status) return refused(f, file, status, &error);
    failed = flow_sync(f, file);
    if (!failed && !silent) tell(f, ir, version);
    return failed;
}

static int register_all(cli *c, store_mode mode) {
    flow f;
    int failed = flow_open_engine(c, &f, mode);
    for (size_t i = 1; i < c->operand_count && !failed; i++)
        failed = register_file(&f, c->operands[i], mode == STORE_NOWHERE);
    return flow_close(&f, failed);
}

/* As in change.c: a command with a mistake must not leave a new file behind. */
static int run(cli *c) {
    bool makes_file = store_is_missing(c->operands[0]);
    int failed = makes_file ? register_all(c, STORE_NOWHERE) : CLI_OK;
    return failed ? failed : register_all(c, STORE_CREATE);
}

const command command_workflow_register = {
    .name = "workflow register",
    .section = FLOW_SECTION,
    .operands = "STORE FILE...",
    .least = 2,
    .most = SIZE_MAX,
    .summary = "store a workflow, for new instances",
    .text = "Reads workflows as IR (JSON; docs/IR.md) from files, or from stdin with \"-\", checks "
            "them and stores them. New instances of a workflow's name begin with the version that "
            "was registered last; instances that run stay with theirs. The store is made where it "
            "is missing.",
    .options = (const cli_option[]){ OPTION_SPACE, { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle workflow register shop.db checkout.json", "one workflow" },
                               { NULL, NULL } },
    .run = run,
};
