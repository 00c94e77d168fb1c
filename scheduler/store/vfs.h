/* A thin layer between SQLite and the files, through which every file of the store is opened: where a test makes the
 * k-th write, sync, truncation or opening fail (store_fail_at), as common/io does for plain files. */
#ifndef SCHEDULER_STORE_VFS_H
#define SCHEDULER_STORE_VFS_H

#define STORE_VFS "postrider"

int store_vfs_register(void); /* once a process; an SQLite code */

#endif
