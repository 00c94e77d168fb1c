/* Failures of the disk on demand, and a count of what reached it, for the tests of the store. */
#ifndef TESTS_SUPPORT_STORE_VFS_H
#define TESTS_SUPPORT_STORE_VFS_H

#include <stdbool.h>

/* From now on every connection of this program is opened through it; before the first thread. */
void store_vfs_use(void);

/* The k-th write, sync, truncation or opening of a database file from now on fails with SQLITE_IOERR or
 * SQLITE_FULL (k = 0: none); `forever`: and all after it. */
void store_fail_at(unsigned long k, bool full, bool forever);
bool store_fail_happened(void); /* did the armed failure happen? */

/* While it is on, writes to the log are confirmed and do not happen: a disk that lies. */
void store_lose_log(bool on);

/* Syncs so far, of the log and of the database file. */
unsigned long store_syncs_of_log(void), store_syncs_of_file(void);

#endif
