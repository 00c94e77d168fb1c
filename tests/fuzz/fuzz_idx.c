/* IDX files: a file that is taken has as many bytes as its header says, and every record of it can be read.
 * */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workloads/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_idx: %s\n", what);
	abort();
}

static void read_all(const struct idx *f, size_t size)
{
	uint8_t *record = malloc(f->record ? f->record : 1);
	struct err err = { 0 };

	must(record != NULL, "no memory");
	must(f->header + f->n * f->record == size, "a file of another length is taken");
	for (size_t i = 0; i < f->n && i < 1000; i++)
		must(!idx_read(f, i, record, &err), err.text);
	free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[64];

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	must(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size, "no file");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	for (size_t dims = 1; dims <= IDX_MAX_DIMS; dims++) {
		struct err err = { 0 };
		struct idx f;

		if (idx_open(path, dims, false, &f, &err)) {
			must(err.text[0] != 0, "a refusal without a reason");
			continue;
		}
		read_all(&f, size);
		idx_close(&f);
	}
	return 0;
}
