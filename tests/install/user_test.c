/* user_test.c -- a user's test of a graph, with the installed lab and without a test framework. Compiled as C and as
 * C++. */
#include <heddle.h>
#include <heddle/lab.h>

static hd_status twice(hd_tx *tx, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    double n = hd_value_number(hd_tx_get(tx, hd_cell_at(rt, "main/n")));
    (void)ctx;
    return hd_tx_set_double(tx, hd_cell_at(rt, "main/twice"), 2 * n);
}

static void show(hd_value v, void *ctx) {
    (void)v;
    hd_lab_note((hd_runtime *)ctx, "show");
}

int main(void) {
    hd_lab *lab = hd_lab_open(NULL);
    hd_runtime *rt = hd_lab_runtime(lab, "a");
    hd_compute(rt, "twice", twice, NULL, hd_cell_at(rt, "main/twice"));
    hd_sink(rt, hd_cell_at(rt, "main/twice"), show, rt);
    hd_lab_set(rt, "main/n", "21");
    hd_lab_settle(lab);
    hd_lab_expect_ran(rt, "twice show");
    hd_lab_expect_cell(rt, "main/twice", "42.0");
    hd_lab_close(lab);
    return 0;
}
