/* See record_bed.h. */
#include "tests/unit/sim/record_bed.h"

#include <stdlib.h>

#include "common/io.h"
#include "tests/support/support.h"

int record_bed_jobs(const struct compare_result *r, struct strbuf *out, struct err *err)
{
	const char *dir = support_temp_dir();
	int rc = record_jobs_write(dir, "jobs-of-bed.csv", r, err);
	char *text;
	size_t len;

	if (rc)
		return rc;
	rc = io_read_file(support_path(dir, "jobs-of-bed.csv"), 1 << 24, &text, &len, err);
	if (rc)
		return rc;
	strbuf_add(out, text, len);
	free(text);
	return 0;
}
