/* status.c -- the status table and the version.
 *
 * The table of heddle/base.h unrolled into three lookups. A number that is not in it may come from
 * a newer server or a damaged row: it reads as HD_REJECTED, so that nothing unknown is retried. */
#include <heddle/base.h>

struct status_row {
    const char *name, *text;
    hd_class class_;
};

static const struct status_row status_rows[] = {
#define STATUS_ROW(code, class_, text) [code] = { #code, text, class_ },
    HD_STATUS_TABLE(STATUS_ROW)
#undef STATUS_ROW
};

static const struct status_row *status_row_of(hd_status status) {
    bool known = (unsigned)status < HD_STATUS_COUNT_;
    return &status_rows[known ? status : HD_REJECTED];
}

const char *hd_status_name(hd_status status) { return status_row_of(status)->name; }
const char *hd_status_text(hd_status status) { return status_row_of(status)->text; }
hd_class hd_status_class(hd_status status) { return status_row_of(status)->class_; }

const char *hd_version(void) { return HD_VERSION; }
