/* Feeds files to a fuzz entry without a fuzzer: replay_NAME FILE_OR_FOLDER... Part of `make check`,
 * so that an input that once broke a parser is tried on every change. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REPLAY_MAX_BYTES ((size_t)64 << 20)

static int replay_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *data = NULL;
	size_t size;
	int rc = -1;

	if (!f || fstat(fileno(f), &st) != 0) {
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		goto out;
	}
	if ((size_t)st.st_size > REPLAY_MAX_BYTES) {
		fprintf(stderr, "replay: %s is larger than %zu bytes\n", path, REPLAY_MAX_BYTES);
		goto out;
	}
	/* Exactly as many bytes as there are, so that a sanitizer sees a read past the end. */
	size = (size_t)st.st_size;
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, f) != size) {
		fprintf(stderr, "replay: cannot read %s\n", path);
		goto out;
	}
	fprintf(stderr, "%s\n", path); /* the last one named is the one that crashed */
	LLVMFuzzerTestOneInput(data, size);
	(*n)++;
	rc = 0;
out:
	free(data);
	if (f)
		fclose(f);
	return rc;
}

static int not_hidden(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int replay_folder(const char *folder, size_t *n)
{
	struct dirent **entry = NULL;
	int n_entries = scandir(folder, &entry, not_hidden, alphasort), rc = 0;

	if (n_entries < 0) {
		fprintf(stderr, "replay: %s: %s\n", folder, strerror(errno));
		return -1;
	}
	for (int i = 0; i < n_entries; i++) {
		char *path = NULL;

		if (asprintf(&path, "%s/%s", folder, entry[i]->d_name) < 0)
			abort();
		if (replay_file(path, n))
			rc = -1;
		free(path);
		free(entry[i]);
	}
	free(entry);
	return rc;
}

int main(int argc, char **argv)
{
	size_t n = 0;
	int failed = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: %s FILE_OR_FOLDER...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			failed |= replay_folder(argv[i], &n) != 0;
		else
			failed |= replay_file(argv[i], &n) != 0;
	}
	printf("replayed %zu inputs\n", n);
	return failed;
}
