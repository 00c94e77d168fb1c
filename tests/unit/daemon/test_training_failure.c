/* scheduler/daemon/learn/training: what fails leaves the model in use and no half-written file. */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/learn/training_thread.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/training_world.h"

static const struct config_learning config = {
	.min_observations = 10, .test_jobs = 20, .significance = 0.05, .keep_versions = 2
};
static const struct world usual = { .speed = 1.0, .noise = 0.05, .seed = 1 };
static const struct world moved = { .speed = 5.0, .noise = 0.05, .seed = 2 };

static struct trainer *trainer_at(const char *folder, struct err *err)
{
	struct trainer_params p = { .learning = &config, .folder = folder, .seed = 1, .program = "test" };
	struct trainer *l = NULL;

	assert_int_equal(policy_parse("anova", &p.policy, NULL), 0);
	trainer_new(&p, &l, err);
	return l;
}

static struct training_result wait_for(struct trainer *l)
{
	struct pollfd p = { .fd = trainer_fd(l), .events = POLLIN };
	struct training_result r = { 0 };

	assert_int_equal(poll(&p, 1, 120000), 1);
	assert_true(trainer_poll(l, &r));
	return r;
}

/* Files in a folder that end so. */
static size_t count_files(const char *folder, const char *end)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	size_t n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);

		n += len >= strlen(end) && !strcmp(e->d_name + len - strlen(end), end);
	}
	closedir(d);
	return n;
}

static char *first_model(struct trainer *l)
{
	size_t len;
	char *rows = world_observations(&usual, 40, &len), *path;
	struct training_result r;

	assert_int_equal(trainer_start(l, rows, len, NULL, "first", NULL), 0);
	r = wait_for(l);
	if (!r.accepted)
		fail_msg("%s", r.err.text);
	path = r.path;
	r.path = NULL;
	training_result_release(&r);
	return path;
}

/* A training with the k-th call failing: either all is well, or the folder is as it was. True: a call did
 * fail. */
static bool try_training(struct trainer *l, const char *folder, const char *model, unsigned long k,
			 bool forever, bool of_memory)
{
	size_t files = count_files(folder, ".model"), n_before, n_after;
	struct model_version before[64], after[64];
	size_t len;
	char *rows = world_observations(&moved, 80, &len);
	struct training_result r = { 0 };
	struct err err = { 0 };
	bool failed;
	int rc;

	n_before = trainer_versions(l, before, 64);
	if (of_memory)
		mem_fail_at(k, forever);
	else
		io_fail_at(k, 28 /* ENOSPC */);
	rc = trainer_start(l, rows, len, model, "a test", &err);
	if (!rc)
		r = wait_for(l);
	failed = of_memory ? mem_failed() : io_failed();
	mem_fail_at(0, false);
	io_fail_at(0, 0);
	if (rc)
		assert_int_equal(rc, -ERR_NOMEM);
	else if (r.err.code)
		assert_true(failed && r.err.text[0] && !r.accepted && !r.model && !r.path);
	else
		assert_true(r.accepted && r.model && r.path);
	n_after = trainer_versions(l, after, 64);
	if (rc || r.err.code) {
		assert_int_equal(count_files(folder, ".model"), files);
		assert_int_equal(n_after, n_before);
	} else {
		assert_true(failed ||
			    n_after == n_before + 1); /* no memory for the list: the next one shows it */
	}
	training_result_release(&r);
	return failed;
}

TEST(test_running_out_of_memory_leaves_everything_as_it_was)
{
	const char *folder = support_path(support_temp_dir(), "memory");
	struct trainer *l = trainer_at(folder, NULL);
	char *path = first_model(l), kept[4096];

	snprintf(kept, sizeof kept, "%s.kept", path);
	assert_int_equal(rename(path, kept), 0); /* so that it is never pruned */
	for (int forever = 0; forever <= 1; forever++) {
		/* the first calls one by one, then ever larger steps: training is the same loop again and
		 * again */
		for (unsigned long k = 1; try_training(l, folder, kept, k, forever, true);
		     k += 1 + k / (sanitized() ? 6 : 25))
			;
	}
	free(path);
	trainer_free(l);
}

TEST(test_a_full_disk_leaves_everything_as_it_was)
{
	const char *folder = support_path(support_temp_dir(), "disk");
	struct trainer *l = trainer_at(folder, NULL);
	char *path = first_model(l), kept[4096];

	snprintf(kept, sizeof kept, "%s.kept", path);
	assert_int_equal(rename(path, kept), 0);
	for (unsigned long k = 1; try_training(l, folder, kept, k, false, false); k++)
		;
	assert_int_equal(count_files(folder, ".model"), 1); /* that of the last try, which met no failure */
	assert_int_equal(count_files(folder, ""),
			 2 + 3); /* . and .., it, the one kept, the journal: nothing half-made */
	free(path);
	trainer_free(l);
}

TEST(test_a_trainer_is_made_whole_or_not_at_all)
{
	const char *folder = support_path(support_temp_dir(), "new");
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		struct err err = { 0 };
		struct trainer *l;

		mem_fail_at(k, false);
		l = trainer_at(folder, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_true(failed == (l == NULL));
		assert_true(!failed || err.code == ERR_NOMEM);
		trainer_free(l);
	}
}
