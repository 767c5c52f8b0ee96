/* lab.h -- the installed lab's environment under the short names that our own tests use.
 *
 *     lab_env *world = lab_env_open();
 *     hd_heap *heap;
 *     assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &heap), HD_OK);
 *     lab_env_advance_ms(world, 250);
 *     hd_heap_close(heap);
 *     lab_env_close(world);
 *
 * What is around it here (lab_store.h, lab_sched.h, ...) reaches inside the library: it puts a hand on
 * the line between runtime and store, leaves out parts for negative controls, mirrors every notice. */
#ifndef TESTS_LAB_H
#define TESTS_LAB_H

#include <heddle/lab.h>

#define lab_fail                    hd_lab_fail
#define lab_seed                    hd_lab_seed
#define lab_random                  hd_lab_random
#define lab_random_of               hd_lab_random_of
#define lab_random_u64              hd_lab_random_u64
#define lab_random_below            hd_lab_random_below
#define lab_random_once_in          hd_lab_random_once_in
#define lab_random_bytes            hd_lab_random_bytes
#define lab_env                     hd_lab_env
#define lab_env_open                hd_lab_env_open
#define lab_env_close               hd_lab_env_close
#define lab_env_of                  hd_lab_env_of
#define lab_env_advance_ms          hd_lab_env_advance_ms
#define lab_env_advance_ns          hd_lab_env_advance_ns
#define lab_env_set_wall_ms         hd_lab_env_set_wall_ms
#define lab_env_set_seed            hd_lab_env_set_seed
#define lab_env_fail_at             hd_lab_env_fail_at
#define lab_env_fail_from           hd_lab_env_fail_from
#define lab_env_failed              hd_lab_env_failed
#define lab_env_allocations         hd_lab_env_allocations
#define lab_env_blocks              hd_lab_env_blocks
#define lab_env_bytes               hd_lab_env_bytes
#define lab_env_log_count           hd_lab_env_log_count
#define lab_env_log_line            hd_lab_env_log_line
#define lab_env_logged              hd_lab_env_logged
#define lab_env_log_clear           hd_lab_env_log_clear
#define lab_body                    hd_lab_body_fn
#define lab_each_allocation_failure hd_lab_each_allocation_failure

#endif
