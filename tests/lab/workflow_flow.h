/* workflow_flow.h -- workflows that a test writes with the builder, and engines one after the other. */
#ifndef HEDDLE_WORKFLOW_FLOW_H
#define HEDDLE_WORKFLOW_FLOW_H

#include "workflow_world.h"
#include <heddle/workflow_build.h>

static inline hd_flow *flow(const char *name) {
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, name, &f), HD_OK);
    return f;
}

static inline void register_flow(hd_flow *f) {
    hd_value ir;
    hd_error error = { 0 };
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
}

/* The engine ends, time passes, and another engine goes on with what is stored. */
static inline void next_engine_after(uint64_t ms) {
    hd_engine_close(engine);
    if (ms) advance(ms);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    pump();
}

static inline void next_engine(void) { next_engine_after(0); }

#endif
