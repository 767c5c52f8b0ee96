/* committing.c -- see the header. */
#include "committing.h"

#include <stdio.h>
#include <string.h>

void committing_init(committing *c, bench *b, hd_runtime *rt, const char *cell) {
    *c = (committing){ .b = b, .rt = rt };
    memset(c->body, 'x', sizeof c->body);
    for (int i = 0; i < COMMITTING_DOCUMENTS; i++) {
        char name[64];
        snprintf(name, sizeof name, cell, i);
        c->docs[i] = hd_cell_at(rt, name);
        hd_write_json(rt, c->docs[i], "0");
    }
    hd_runtime_sync(rt);
}

static void count_verdict(hd_status status, void *ctx) {
    committing *c = ctx;
    c->done++;
    if (status) c->wrong++;
}

static void commit_one(committing *c) {
    hd_tx *tx;
    uint64_t n = ++c->number;
    c->sent++;
    if (hd_tx_begin(c->rt, &tx)) return;
    for (uint64_t k = 1; k <= 3 && !c->one_key; k++)
        (void)hd_tx_get(tx, c->docs[(n + k * 7) % COMMITTING_DOCUMENTS]);
    if (c->one_key) {
        hd_tx_set(tx, c->docs[n % COMMITTING_DOCUMENTS], hd_int(NULL, (int64_t)n));
    } else {
        char *byte = &c->body[n % COMMITTING_BODY]; /* no two alike, as in the raw loop */
        *byte = *byte == 'z' ? 'a' : (char)(*byte + 1);
        hd_tx_set(tx, c->docs[n % COMMITTING_DOCUMENTS],
                  hd_string_n(hd_tx_pool(tx), c->body, COMMITTING_BODY));
    }
    if (hd_tx_commit(tx, count_verdict, c)) c->wrong++;
}

void commit_many(committing *c, uint64_t total, uint64_t in_flight) {
    hd_env env = hd_env_system();
    int fd = hd_runtime_fd(c->rt);
    c->sent = c->done = 0;
    while (c->done < total) {
        /* Now and then, so that the first are on their way while the others are made. */
        for (int i = 0; i < 64 && c->sent < total && c->sent - c->done < in_flight; i++)
            commit_one(c);
        hd_status status = hd_runtime_pump(c->rt);
        if (status) {
            bench_wrong(c->b, "pump: %s", hd_status_name(status));
            return;
        }
        if (c->sent - c->done >= in_flight || (c->sent == total && c->done < total))
            env.wait(fd, hd_runtime_deadline(c->rt), env.ctx);
    }
}

void commit_each(committing *c, uint64_t total) {
    c->sent = c->done = 0;
    while (c->done < total) {
        commit_one(c);
        hd_status status = hd_runtime_sync(c->rt);
        if (!status) continue;
        bench_wrong(c->b, "sync: %s", hd_status_name(status));
        return;
    }
}

void committing_close(committing *c) {
    if (c->wrong) bench_wrong(c->b, "%llu commits were refused", (unsigned long long)c->wrong);
    hd_close(c->rt);
}
