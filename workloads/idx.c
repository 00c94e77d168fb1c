/* Reads and writes IDX files, record by record. See idx.h. */
#define _GNU_SOURCE
#include "workloads/idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"

#define TYPE_BYTE 0x08
#define BLOCK                                                                                                \
	((size_t)4096) /* direct I/O wants address, offset and length to be multiples of the disk's block */
#define PATH_SHOWN 300

static const char *shown(const char *path)
{
	return text_tail(path, PATH_SHOWN);
}

static int system_error(const char *what, const char *path, struct err *err)
{
	int error = errno;

	return err_fail(err, io_code_of(error), "cannot %s %s: %s", what, shown(path), strerror(error));
}

/* Reads until n bytes are there; fewer at the end of the file. */
static ssize_t read_at(int fd, void *out, size_t n, off_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, (char *)out + done, n - done, at + (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int read_header(struct idx *f, size_t n_dims, struct err *err)
{
	uint8_t head[IDX_HEADER_MAX];
	struct stat st;
	ssize_t got;
	uint64_t should;

	f->header = 4 + 4 * n_dims;
	if (fstat(f->fd, &st) < 0)
		return system_error("look at", f->path, err);
	if (!S_ISREG(st.st_mode))
		return err_fail(err, ERR_FORMAT, "%s is not a regular file", shown(f->path));
	got = read_at(f->fd, head, f->header, 0);
	if (got < 0)
		return system_error("read", f->path, err);
	if (got >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return err_fail(err, ERR_FORMAT, "%s is compressed: run gunzip on it first", shown(f->path));
	if ((size_t)got < f->header)
		return err_fail(err, ERR_FORMAT, "%s ends at byte %zd, inside the header of %zu bytes",
				shown(f->path), got, f->header);
	if (head[0] || head[1] || head[2] != TYPE_BYTE || head[3] != n_dims)
		return err_fail(err, ERR_FORMAT,
				"%s starts with %02x %02x %02x %02x, but an IDX file of bytes in %zu "
				"dimension%s starts with 00 00 08 %02zx",
				shown(f->path), head[0], head[1], head[2], head[3], n_dims,
				n_dims == 1 ? "" : "s", n_dims);
	f->record = 1;
	for (size_t k = 0; k < n_dims; k++) {
		f->dim[k] = big_endian(head + 4 + 4 * k);
		if (k > 0 && (f->dim[k] == 0 || f->dim[k] > IDX_MAX_RECORD / f->record))
			return err_fail(err, ERR_FORMAT,
					"%s, byte %zu: a dimension of %u; a record has from 1 to %u bytes",
					shown(f->path), 4 + 4 * k, f->dim[k], IDX_MAX_RECORD);
		if (k > 0)
			f->record *= f->dim[k];
	}
	f->n = f->dim[0];
	if (f->n == 0 || f->n > IDX_MAX_RECORDS)
		return err_fail(err, ERR_FORMAT, "%s, byte 4: %zu records; from 1 to %u can be used",
				shown(f->path), f->n, IDX_MAX_RECORDS);
	should = f->header + (uint64_t)f->n * f->record;
	if ((uint64_t)st.st_size != should)
		return err_fail(err, ERR_FORMAT,
				"%s has %lld bytes, but %zu records of %zu bytes after a header of %zu make "
				"%llu: it is %s",
				shown(f->path), (long long)st.st_size, f->n, f->record, f->header,
				(unsigned long long)should,
				(uint64_t)st.st_size < should ? "cut short" : "longer than it says");
	return 0;
}

int idx_open(const char *path, size_t n_dims, bool direct, struct idx *out, struct err *err)
{
	struct idx f = { .fd = -1 };
	void *aligned = NULL;
	int rc;

	f.path = mem_strdup(path);
	if (!f.path)
		return err_nomem(err, "the name of %s", shown(path));
	f.fd = open(path,
		    O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe by that name must not block */
	rc = f.fd < 0 ? system_error("open", path, err) : read_header(&f, n_dims, err);
	if (!rc && direct) {
		/* The header was read before: direct I/O cannot read 16 bytes. */
		if (fcntl(f.fd, F_SETFL, O_DIRECT) < 0)
			rc = err_fail(err, ERR_IO, "the file system of %s does not do direct I/O: %s",
				      shown(path), strerror(errno));
		else if (posix_memalign(&aligned, BLOCK, (f.record / BLOCK + 2) * BLOCK))
			rc = err_fail(err, ERR_NOMEM, "out of memory to read %s", shown(path));
		f.aligned = aligned;
	}
	if (rc)
		idx_close(&f);
	else
		*out = f;
	return rc;
}

void idx_close(struct idx *f)
{
	if (!f)
		return;
	if (f->path && f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f->aligned);
	*f = (struct idx){ .fd = -1 };
}

int idx_read(const struct idx *f, size_t i, uint8_t *out, struct err *err)
{
	size_t at = f->header + i * f->record, from = at, n = f->record;
	uint8_t *to = out;
	ssize_t got;

	if (f->aligned) {
		from = at / BLOCK * BLOCK;
		n = (at + f->record - from + BLOCK - 1) / BLOCK * BLOCK;
		to = f->aligned;
	}
	got = f->aligned ? pread(f->fd, to, n, (off_t)from) : read_at(f->fd, to, n, (off_t)from);
	if (got < 0)
		return system_error("read", f->path, err);
	if ((size_t)got < at - from + f->record)
		return err_fail(err, ERR_FORMAT,
				"%s ends at byte %zu, inside record %zu: it was cut while open",
				shown(f->path), from + (size_t)got, i);
	if (f->aligned)
		memcpy(out, to + (at - from), f->record);
	return 0;
}

int idx_read_first(const struct idx *f, size_t n, uint8_t *out, struct err *err)
{
	ssize_t got = read_at(f->fd, out, n * f->record, (off_t)f->header);

	if (got < 0)
		return system_error("read", f->path, err);
	if ((size_t)got < n * f->record)
		return err_fail(err, ERR_FORMAT, "%s ends at byte %zu: it was cut while open", shown(f->path),
				f->header + (size_t)got);
	return 0;
}

size_t idx_put_header(uint8_t *out, const uint32_t *dim, size_t n_dims)
{
	out[0] = out[1] = 0;
	out[2] = TYPE_BYTE;
	out[3] = (uint8_t)n_dims;
	for (size_t k = 0; k < n_dims; k++)
		for (size_t b = 0; b < 4; b++)
			out[4 + 4 * k + b] = (uint8_t)(dim[k] >> (24 - 8 * b));
	return 4 + 4 * n_dims;
}
