/* Journals of a campaign: any bytes behind a whole first line, or (first byte '!') in the place of all of it.
 * Reading must not crash, leak or change the file; what is counted as done was measured. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/profiler/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64], path[96];
static struct profile_design design;
static struct profile_plan plan;
static char *head; /* the first line of a journal of this design */
static size_t head_len;

static void must(int claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_journal: %s\n", what);
	abort();
}

static void clean_up(void)
{
	unlink(path);
	rmdir(dir);
	free(head);
	profile_plan_release(&plan);
	profile_design_release(&design);
}

static void set_up(void)
{
	struct profile_journal j;
	struct err err = { 0 };
	char *end;

	snprintf(dir, sizeof dir, "%s/postrider-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	must(mkdtemp(dir) != NULL, "no temporary folder");
	snprintf(path, sizeof path, "%s/journal.jsonl", dir);
	profile_design_init(&design);
	must(!profile_design_factor(&design, "batch=8,16", &err) &&
		     !profile_design_factor(&design, "njobs=1,2", &err) &&
		     !profile_design_command(&design, "train {batch}", &err) &&
		     !profile_design_check(&design, &err) && !profile_plan_make(&design, &plan, &err),
	     err.text);
	must(!profile_journal_open(&j, dir, &design, &plan, PROFILE_RESUME, &err), err.text);
	profile_journal_close(&j);
	must(!io_read_file(path, PROFILE_JOURNAL_MAX, &head, &head_len, &err), err.text);
	end = strchr(head, '\n');
	must(end != NULL, "a journal without a first line");
	head_len = (size_t)(end + 1 - head);
	atexit(clean_up);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool whole = size > 0 && data[0] == '!';
	struct profile_journal j;
	struct err err = { 0 };
	size_t done = 0;
	FILE *f;

	if (!head)
		set_up();
	f = fopen(path, "w");
	must(f && (whole || fwrite(head, 1, head_len, f) == head_len) &&
		     fwrite(data + whole, 1, size - whole, f) == size - whole && !fclose(f),
	     "the journal cannot be written");
	if (profile_journal_open(&j, dir, &design, &plan, PROFILE_LOOK, &err)) {
		must(err.text[0] != 0, "a refusal without a reason");
		profile_journal_close(&j);
		return 0;
	}
	for (size_t i = 0; i < plan.n; i++)
		done += j.run[i].done;
	must(done == j.n_done, "runs are done that are not counted");
	profile_journal_close(&j);
	return 0;
}
