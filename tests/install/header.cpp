// header.cpp -- the public headers are C++ as well: a program in C++ keeps a sum right, and its functions
// link without mangling.
#include <heddle.h>

#include <cstring>

namespace {

struct sum {
    hd_cell items, total;
    double shown;
};

hd_status add_up(hd_tx *tx, void *ctx) {
    const sum *s = static_cast<const sum *>(ctx);
    double total = 0;
    for (hd_iter it = hd_iter_of(hd_tx_get(tx, s->items)); hd_iter_next(&it);)
        total += hd_value_number(it.value);
    return hd_tx_set_double(tx, s->total, total);
}

void show(hd_value v, void *ctx) { static_cast<sum *>(ctx)->shown = hd_value_number(v); }

bool keeps_a_sum() {
    hd_runtime *rt = nullptr;
    hd_options options = {};
    if (hd_open(nullptr, &options, &rt, nullptr)) return false;
    sum s = { hd_cell_at(rt, "main/items"), hd_cell_at(rt, "main/total"), 0 };
    hd_compute(rt, "add_up", add_up, &s, s.total);
    hd_sink(rt, s.total, show, &s);
    hd_write_json(rt, s.items, "[1, 2, 3.5]");
    hd_status status = hd_runtime_settle(rt);
    return !hd_close(rt) && !status && s.shown > 6.4 && s.shown < 6.6;
}

} // namespace

int main() {
    hd_value nothing = {};
    if (std::strcmp(hd_version(), HD_VERSION) != 0 || hd_value_exists(nothing)) return 1;
    return keeps_a_sum() ? 0 : 2;
}
