/* A layer between SQLite and the files of the store, see store_vfs.h. The product opens files through
 * SQLite's default file system and needs to know nothing of it. */
#include "tests/support/store_vfs.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

/* Armed by tests. An unarmed counter costs one relaxed load per call. */
static atomic_ulong fail_countdown;
static atomic_bool fail_full, fail_forever, fail_happened;

static bool must_fail(void)
{
	unsigned long left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

	/* The reader and the writer may count at the same time: each takes its own number. */
	while (left > 1)
		if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
			return false;
	if (left == 0)
		return false;
	if (!atomic_load(&fail_forever) && !atomic_compare_exchange_strong(&fail_countdown, &left, 0))
		return false;
	atomic_store(&fail_happened, true);
	return true;
}

void store_fail_at(unsigned long k, bool full, bool forever)
{
	atomic_store(&fail_countdown, 0);
	atomic_store(&fail_full, full);
	atomic_store(&fail_forever, forever);
	atomic_store(&fail_happened, false);
	atomic_store(&fail_countdown, k);
}

bool store_fail_happened(void)
{
	return atomic_load(&fail_happened);
}

static atomic_ulong n_syncs[2]; /* of the file, of its log */
static atomic_bool lose_log;

void store_lose_log(bool on)
{
	atomic_store(&lose_log, on);
}

unsigned long store_syncs_of_file(void)
{
	return atomic_load(&n_syncs[0]);
}

unsigned long store_syncs_of_log(void)
{
	return atomic_load(&n_syncs[1]);
}

/* ---- one open file: ours, with SQLite's own right behind it ---- */

struct shim_file {
	sqlite3_file base;
	bool is_log;
	sqlite3_file *real;
};

static sqlite3_file *real_file(sqlite3_file *f)
{
	return ((struct shim_file *)f)->real;
}

static int shim_close(sqlite3_file *f)
{
	sqlite3_file *real = real_file(f);

	return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int shim_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	return real_file(f)->pMethods->xRead(real_file(f), to, n, at);
}

static int shim_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	sqlite3_file *real = real_file(f);

	if (must_fail()) {
		/* A write that fails may have written something: half of it is the nastiest. */
		real->pMethods->xWrite(real, from, n / 2, at);
		return atomic_load(&fail_full) ? SQLITE_FULL : SQLITE_IOERR_WRITE;
	}
	if (((struct shim_file *)f)->is_log && atomic_load(&lose_log))
		return SQLITE_OK;
	return real->pMethods->xWrite(real, from, n, at);
}

static int shim_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	if (must_fail())
		return atomic_load(&fail_full) ? SQLITE_FULL : SQLITE_IOERR_TRUNCATE;
	return real_file(f)->pMethods->xTruncate(real_file(f), size);
}

static int shim_sync(sqlite3_file *f, int flags)
{
	if (must_fail())
		return atomic_load(&fail_full) ? SQLITE_FULL : SQLITE_IOERR_FSYNC;
	atomic_fetch_add(&n_syncs[((struct shim_file *)f)->is_log], 1);
	return real_file(f)->pMethods->xSync(real_file(f), flags);
}

static int shim_file_size(sqlite3_file *f, sqlite3_int64 *out)
{
	return real_file(f)->pMethods->xFileSize(real_file(f), out);
}

static int shim_lock(sqlite3_file *f, int level)
{
	return real_file(f)->pMethods->xLock(real_file(f), level);
}

static int shim_unlock(sqlite3_file *f, int level)
{
	return real_file(f)->pMethods->xUnlock(real_file(f), level);
}

static int shim_check_reserved(sqlite3_file *f, int *out)
{
	return real_file(f)->pMethods->xCheckReservedLock(real_file(f), out);
}

static int shim_control(sqlite3_file *f, int op, void *arg)
{
	return real_file(f)->pMethods->xFileControl(real_file(f), op, arg);
}

static int shim_sector_size(sqlite3_file *f)
{
	return real_file(f)->pMethods->xSectorSize(real_file(f));
}

static int shim_characteristics(sqlite3_file *f)
{
	return real_file(f)->pMethods->xDeviceCharacteristics(real_file(f));
}

static int shim_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out)
{
	return real_file(f)->pMethods->xShmMap(real_file(f), region, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
	return real_file(f)->pMethods->xShmLock(real_file(f), offset, n, flags);
}

static void shim_shm_barrier(sqlite3_file *f)
{
	real_file(f)->pMethods->xShmBarrier(real_file(f));
}

static int shim_shm_unmap(sqlite3_file *f, int remove)
{
	return real_file(f)->pMethods->xShmUnmap(real_file(f), remove);
}

/* Version 2: the shared memory a write-ahead log needs, and no memory-mapped reading, which would let an I/O
 * error arrive as a signal. */
static const sqlite3_io_methods shim_methods = {
	.iVersion = 2,
	.xClose = shim_close,
	.xRead = shim_read,
	.xWrite = shim_write,
	.xTruncate = shim_truncate,
	.xSync = shim_sync,
	.xFileSize = shim_file_size,
	.xLock = shim_lock,
	.xUnlock = shim_unlock,
	.xCheckReservedLock = shim_check_reserved,
	.xFileControl = shim_control,
	.xSectorSize = shim_sector_size,
	.xDeviceCharacteristics = shim_characteristics,
	.xShmMap = shim_shm_map,
	.xShmLock = shim_shm_lock,
	.xShmBarrier = shim_shm_barrier,
	.xShmUnmap = shim_shm_unmap,
};

/* ---- the file system ---- */

static sqlite3_vfs *beneath, shim;

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
	struct shim_file *file = (struct shim_file *)f;
	int rc;

	(void)vfs;
	file->base.pMethods = NULL; /* tells SQLite that there is nothing to close */
	file->is_log = (flags & SQLITE_OPEN_WAL) != 0;
	file->real = (sqlite3_file *)(file + 1);
	if (must_fail())
		return atomic_load(&fail_full) ? SQLITE_FULL : SQLITE_CANTOPEN;
	memset(file->real, 0, (size_t)beneath->szOsFile);
	rc = beneath->xOpen(beneath, name, file->real, flags, out_flags);
	if (file->real->pMethods)
		file->base.pMethods = &shim_methods;
	return rc;
}

void store_vfs_use(void)
{
	if (beneath)
		return;
	beneath = sqlite3_vfs_find(NULL);
	/* A copy with another xOpen: whatever the other functions look up in their structure is in it too. */
	shim = *beneath;
	shim.pNext = NULL;
	shim.zName = "postrider-tests";
	shim.szOsFile = (int)sizeof(struct shim_file) + beneath->szOsFile;
	shim.xOpen = shim_open;
	sqlite3_vfs_register(&shim, 1);
}
