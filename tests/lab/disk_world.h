/* disk_world.h -- a lab disk, new for each test: cmocka_unit_test_setup_teardown(test, new_disk, free_disk) */
#ifndef HEDDLE_DISK_WORLD_H
#define HEDDLE_DISK_WORLD_H

#include "vfs.h"

static lab_disk *disk;

static inline int new_disk(void **state) {
    (void)state;
    disk = lab_disk_new(NULL);
    return 0;
}

static inline int free_disk(void **state) {
    (void)state;
    lab_disk_free(disk);
    return 0;
}

#endif
