/* vfs_wal.h -- how far SQLite reads a WAL. */
#ifndef LAB_VFS_WAL_H
#define LAB_VFS_WAL_H

#include <stddef.h>
#include <stdint.h>

/* The length of header and frames up to the last one that ends a transaction and before which nothing is damaged:
 * SQLite reads no byte behind it. 0: there is no such transaction. */
size_t wal_committed(const uint8_t *wal, size_t size);

#endif
