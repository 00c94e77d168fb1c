/* scheduler/cli/profile_journal, and what is made of it: what was written is read back, a torn line is cut
 * off, damage and other designs are refused, verdicts and tables follow. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "scheduler/profiler/run.h"
#include "scheduler/profiler/table.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

struct fixture {
	struct profile_design d;
	struct profile_plan p;
	struct profile_journal j;
	const char *dir;
	char path[512];
	bool phases; /* its first copies tell of them */
};

static void design(struct profile_design *d, const char *batches)
{
	struct err err = { 0 };
	char *word[] = { (char[]){ "t" }, (char[]){ "{batch}" } };

	profile_design_init(d);
	d->replications = 2;
	d->tries = 2;
	assert_int_equal(profile_design_factor(d, batches, &err), 0);
	assert_int_equal(profile_design_factor(d, "njobs=2", &err), 0);
	assert_int_equal(profile_design_factor(d, "cpus=3", &err), 0);
	assert_int_equal(profile_design_argv(d, word, 2, &err), 0);
	assert_int_equal(profile_design_check(d, &err), 0);
}

static void open_as(struct fixture *f, enum profile_open how)
{
	struct err err = { 0 };

	if (profile_journal_open(&f->j, f->dir, &f->d, &f->p, how, &err))
		fail_msg("not opened: %s", err.text);
}

static void begin(struct fixture *f)
{
	struct err err = { 0 };

	*f = (struct fixture){ .j = { .file.fd = -1 }, .dir = support_temp_dir() };
	snprintf(f->path, sizeof f->path, "%s/journal.jsonl", f->dir);
	unlink(f->path);
	design(&f->d, "batch=64,512");
	assert_int_equal(profile_plan_make(&f->d, &f->p, &err), 0);
	open_as(f, PROFILE_RESUME);
}

static void end(struct fixture *f)
{
	profile_journal_close(&f->j);
	profile_plan_release(&f->p);
	profile_design_release(&f->d);
}

static void again(struct fixture *f)
{
	profile_journal_close(&f->j);
	open_as(f, PROFILE_RESUME);
}

static void add(struct fixture *f, size_t run, enum profile_status status, double a_s, double b_s)
{
	struct profile_outcome o = { .status = status,
				     .started_at = "2024-03-01T10:00:00Z",
				     .cpu_mean = 37.25,
				     .iowait_mean = NAN,
				     .other_load = 1.75,
				     .n_copies = 2 };
	struct err err = { 0 };

	o.copy = mem_calloc(2, sizeof *o.copy);
	o.copy[0] =
		(struct profile_copy){ .time_s = a_s, .accuracy = 0.9375, .max_rss_mb = 12.5, .n_epochs = 1 };
	o.copy[1] = (struct profile_copy){ .time_s = b_s, .accuracy = NAN, .exit_code = status ? 3 : 0 };
	o.copy[0].epoch = mem_calloc(1, sizeof *o.copy[0].epoch);
	o.copy[0].epoch[0] = (struct profile_epoch){ 1.0, 0.5, NAN, 0.7 };
	if (f->phases)
		o.copy[0].phases = (struct output_phases){ 1 << PHASE_FETCH | 1 << PHASE_SYNC, { 0.125 } };
	snprintf(o.why, sizeof o.why, "%s", status ? "copy 2 ended with exit code 3" : "");
	if (profile_journal_append(&f->j, run, &o, &err))
		fail_msg("not written: %s", err.text);
	assert_null(o.copy);
}

static void write_bytes(const char *path, const char *text, size_t len, const char *how)
{
	FILE *f = fopen(path, how);

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

TEST(test_what_was_written_is_read_back)
{
	struct fixture f;
	const struct profile_outcome *o;

	begin(&f);
	assert_false(f.j.existed);
	add(&f, 2, PROFILE_OK, 1.37, 1.41);
	add(&f, 0, PROFILE_FAILED, 0.2, 0.3);
	again(&f);
	assert_true(f.j.existed);
	assert_int_equal(f.j.n_done, 2);
	assert_int_equal(f.j.n_cut, 0);
	assert_false(f.j.run[1].done);
	o = &f.j.run[2];
	assert_true(o->done && o->status == PROFILE_OK);
	assert_int_equal(o->tries, 1);
	assert_int_equal(o->n_copies, 2);
	assert_true(o->copy[0].time_s == 1.37 && o->copy[1].time_s == 1.41);
	assert_true(o->copy[0].accuracy == 0.9375 && isnan(o->copy[1].accuracy));
	assert_true(o->cpu_mean == 37.25 && isnan(o->iowait_mean) && o->other_load == 1.75);
	assert_int_equal(o->copy[0].n_epochs, 1);
	assert_true(o->copy[0].epoch[0].elapsed_s == 0.7 && isnan(o->copy[0].epoch[0].loss));
	assert_string_equal(o->started_at, "2024-03-01T10:00:00Z");
	assert_int_equal(f.j.run[0].status, PROFILE_FAILED);
	assert_string_equal(f.j.run[0].why, "copy 2 ended with exit code 3");
	end(&f);
}

/* As a version wrote it that did not measure the work of others. */
TEST(test_a_journal_without_other_work_is_resumed)
{
	struct fixture f;
	struct profile_verdict v = { 0 };
	struct strbuf table = { 0 };
	struct err err = { 0 };
	char *text, *at;
	size_t len;

	begin(&f);
	add(&f, 0, PROFILE_OK, 1.37, 1.41);
	assert_int_equal(io_read_file(f.path, 1 << 20, &text, &len, &err), 0);
	at = strstr(text, "\"other_load\":1.75,");
	assert_non_null(at);
	memmove(at, at + strlen("\"other_load\":1.75,"), strlen(at + strlen("\"other_load\":1.75,")) + 1);
	profile_journal_close(&f.j);
	write_bytes(f.path, text, strlen(text), "w");
	open_as(&f, PROFILE_RESUME);
	assert_int_equal(f.j.n_done, 1);
	assert_true(isnan(f.j.run[0].other_load));
	add(&f, 1, PROFILE_OK, 1.37, 1.41);
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	profile_put_table(&f.j, &v, &table);
	assert_non_null(strstr(strbuf_text(&table), ",0.937500,6,,37.250000,"));
	assert_non_null(strstr(strbuf_text(&table), ",0.937500,6,1.750000,37.250000,"));
	profile_verdict_release(&v);
	strbuf_release(&table);
	free(text);
	end(&f);
}

TEST(test_the_last_line_about_a_run_counts)
{
	struct fixture f;

	begin(&f);
	add(&f, 1, PROFILE_OK, 1.0, 9.0);
	add(&f, 1, PROFILE_OK, 2.5, 2.6);
	again(&f);
	assert_int_equal(f.j.n_done, 1);
	assert_int_equal(f.j.run[1].tries, 2);
	assert_true(f.j.run[1].copy[0].time_s == 2.5);
	end(&f);
}

/* Cut at every byte: what is whole is kept, the rest is measured again, and appending then works. */
TEST(test_a_journal_torn_anywhere_goes_on)
{
	struct fixture f;
	struct err err = { 0 };
	char *text;
	size_t len, header;

	begin(&f);
	add(&f, 0, PROFILE_OK, 1.37, 1.41);
	add(&f, 3, PROFILE_OK, 2.37, 2.41);
	assert_int_equal(io_read_file(f.path, 1 << 20, &text, &len, &err), 0);
	header = (size_t)(strchr(text, '\n') - text) + 1;
	for (size_t cut = 0; cut <= len; cut++) {
		size_t lines = 0;

		profile_journal_close(&f.j);
		write_bytes(f.path, text, cut, "w");
		open_as(&f, PROFILE_RESUME);
		for (size_t i = header; i < cut; i++)
			lines += text[i] == '\n';
		assert_int_equal(f.j.n_done, cut < header ? 0 : lines);
		assert_int_equal(f.j.n_cut > 0, cut > 0 && text[cut - 1] != '\n');
		add(&f, 2, PROFILE_OK, 3.0, 3.1);
		again(&f);
		assert_int_equal(f.j.n_cut, 0);
		assert_true(f.j.run[2].done);
	}
	free(text);
	end(&f);
}

static void refuses_line(const char *line, bool last, const char *want)
{
	struct fixture f;
	struct err err = { 0 };

	begin(&f);
	add(&f, 0, PROFILE_OK, 1.37, 1.41);
	profile_journal_close(&f.j);
	write_bytes(f.path, line, strlen(line), "a");
	if (!last)
		write_bytes(f.path, "{}\n", 3, "a");
	if (last) {
		open_as(&f, PROFILE_RESUME);
		assert_int_equal(f.j.n_cut, strlen(line));
		assert_int_equal(f.j.n_done, 1);
	} else {
		assert_int_equal(profile_journal_open(&f.j, f.dir, &f.d, &f.p, PROFILE_RESUME, &err),
				 -ERR_FORMAT);
		if (!strstr(err.text, want))
			fail_msg("'%s' is not in: %s", want, err.text);
	}
	end(&f);
}

TEST(test_damage_in_the_middle_is_refused_with_its_line)
{
	static const char *const bad[] = {
		"garbage\n",
		"{\"run\":0}\n",
		"{\"run\":5,\"status\":\"ok\",\"copies\":[{},{}]}\n",
		"{\"run\":1,\"status\":\"fine\",\"copies\":[{},{}]}\n",
		"{\"run\":1,\"status\":\"ok\",\"copies\":[{\"time_s\":1}]}\n",
		"{\"run\":1,\"status\":\"ok\",\"copies\":[{\"time_s\":1},{\"time_s\":null}]}\n",
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		refuses_line(bad[i], false, "journal.jsonl:3:");
		refuses_line(bad[i], true, NULL);
	}
}

TEST(test_another_design_is_refused_by_name)
{
	struct fixture f;
	struct err err = { 0 };

	begin(&f);
	add(&f, 0, PROFILE_OK, 1.37, 1.41);
	profile_journal_close(&f.j);
	profile_design_release(&f.d);
	design(&f.d, "batch=64,256");
	assert_int_equal(profile_journal_open(&f.j, f.dir, &f.d, &f.p, PROFILE_RESUME, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "factor batch was 64,512 and is 64,256"));
	profile_journal_close(&f.j);
	open_as(&f, PROFILE_RESTART);
	assert_int_equal(f.j.n_done, 0);
	assert_int_equal(access(support_path(f.dir, "journal.jsonl.old"), F_OK), 0);
	end(&f);
}

TEST(test_two_at_once_are_refused_and_a_look_is_not)
{
	struct fixture f;
	struct profile_journal other;
	struct err err = { 0 };

	begin(&f);
	add(&f, 0, PROFILE_OK, 1.37, 1.41);
	assert_int_equal(profile_journal_open(&other, f.dir, &f.d, &f.p, PROFILE_RESUME, &err), -ERR_BUSY);
	profile_journal_close(&other);
	assert_int_equal(profile_journal_open(&other, f.dir, &f.d, &f.p, PROFILE_LOOK, &err), 0);
	assert_int_equal(other.n_done, 1);
	profile_journal_close(&other);
	assert_int_equal(profile_journal_open(&other, "no/such/folder", &f.d, &f.p, PROFILE_LOOK, &err), 0);
	assert_int_equal(other.n_done, 0);
	profile_journal_close(&other);
	assert_int_equal(profile_journal_open(&other, "no/such/folder", &f.d, &f.p, PROFILE_RESUME, &err),
			 -ERR_IO);
	profile_journal_close(&other);
	end(&f);
}

/* Runs of one setting: find the two replications of setting 0. */
static void replications(const struct fixture *f, uint32_t setting, size_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < f->p.n; i++) {
		if (f->p.run[i].setting == setting)
			out[n++] = i;
	}
	assert_int_equal(n, 2);
}

TEST(test_spread_above_the_bound_is_unstable_and_repeated)
{
	struct fixture f;
	struct profile_verdict v = { 0 };
	struct err err = { 0 };
	size_t a[2], b[2];

	begin(&f);
	replications(&f, 0, a);
	replications(&f, 1, b);
	add(&f, a[0], PROFILE_OK, 1.0, 1.1);
	add(&f, a[1], PROFILE_OK, 2.0, 2.1); /* apart from the other replication */
	add(&f, b[0], PROFILE_OK, 1.0, 2.0); /* its copies are apart */
	add(&f, b[1], PROFILE_FAILED, 1.0, 1.0);
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	assert_int_equal(v.n_unstable, 3);
	assert_int_equal(v.n_failed, 1);
	assert_int_equal(v.n_ok, 0);
	assert_int_not_equal(profile_repeat(&f.j, &v), SIZE_MAX);
	profile_verdict_release(&v);
	for (int i = 0; i < 2; i++)
		add(&f, a[i], PROFILE_OK, 1.0, 1.1);
	add(&f, b[0], PROFILE_OK, 1.0, 2.0); /* the second try of two */
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	assert_int_equal(v.status[a[0]], PROFILE_OK);
	assert_int_equal(v.status[b[0]], PROFILE_UNSTABLE);
	assert_true(profile_repeat(&f.j, &v) == SIZE_MAX);
	assert_int_equal(v.n_cv, 1);
	assert_true(v.cv[0] == 0.0);
	profile_verdict_release(&v);
	f.d.max_spread = 0.0; /* no bound */
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	assert_int_equal(v.n_unstable, 0);
	profile_verdict_release(&v);
	end(&f);
}

TEST(test_replications_beside_other_work_are_not_compared)
{
	struct fixture f;
	struct profile_verdict v = { 0 };
	struct err err = { 0 };
	size_t a[2];

	begin(&f);
	replications(&f, 0, a);
	add(&f, a[0], PROFILE_OK, 1.0, 1.1);
	add(&f, a[1], PROFILE_OK, 2.0, 2.1);
	f.j.run[a[1]].other_load = 3.75; /* two processes more than beside the first */
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	assert_true(v.n_unstable == 0 && v.n_ok == 2);
	profile_verdict_release(&v);
	f.j.run[a[1]].other_load = 2.0;
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	assert_int_equal(v.n_unstable, 2);
	profile_verdict_release(&v);
	f.j.run[a[1]].other_load = NAN; /* measured by an older version */
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	assert_int_equal(v.n_unstable, 2);
	profile_verdict_release(&v);
	end(&f);
}

TEST(test_the_table_has_a_row_a_copy_and_no_time_of_failures)
{
	struct fixture f;
	struct profile_verdict v = { 0 };
	struct strbuf table = { 0 }, curves = { 0 };
	struct err err = { 0 };

	begin(&f);
	add(&f, 0, PROFILE_OK, 1.37, 1.41);
	add(&f, 1, PROFILE_TIMEOUT, 9.0, 9.0);
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	profile_put_table(&f.j, &v, &table);
	profile_put_curves(&f.j, &v, &curves);
	assert_int_equal(strncmp(strbuf_text(&table),
				 "cpus,njobs,batch,time_s,accuracy,processes,other_load,cpu_mean,iowait_mean,"
				 "job_cpu_mean,"
				 "job_iowait_mean,max_rss_mb,replication,copy,status,started_at\n3,2,",
				 140),
			 0);
	assert_non_null(strstr(strbuf_text(&table), ",1.370000,0.937500,6,1.750000,37.250000,,0.000000,0."
						    "000000,12.500000,1,1,ok,2024-03-01T10:00:00Z\n"));
	assert_non_null(strstr(strbuf_text(&table),
			       ",,,6,1.750000,37.250000,,0.000000,0.000000,0.000000,1,2,timeout,"));
	assert_non_null(strstr(strbuf_text(&curves), ",1,1,ok,1,0.700000,,0.5\n"));
	assert_null(strstr(strbuf_text(&curves), "timeout"));
	strbuf_release(&table);
	strbuf_release(&curves);
	profile_verdict_release(&v);
	end(&f);
}

TEST(test_phases_are_columns_where_a_run_told_of_them)
{
	struct fixture f;
	struct profile_verdict v = { 0 };
	struct strbuf table = { 0 };
	struct err err = { 0 };

	begin(&f);
	add(&f, 0, PROFILE_OK, 1.37, 1.41);
	f.phases = true;
	add(&f, 1, PROFILE_OK, 1.37, 1.41);
	again(&f); /* as the journal has it */
	assert_int_equal(profile_judge(&f.j, &v, &err), 0);
	profile_put_table(&f.j, &v, &table);
	assert_non_null(strstr(strbuf_text(&table), ",job_iowait_mean,fetch_s,sync_s,max_rss_mb,"));
	assert_non_null(strstr(strbuf_text(&table), ",0.000000,0.000000,,,12.500000,1,1,ok,"));
	assert_non_null(strstr(strbuf_text(&table), ",0.000000,0.000000,0.125000,0.000000,12.500000,"));
	assert_non_null(strstr(strbuf_text(&table), ",0.000000,0.000000,,,0.000000,"));
	strbuf_release(&table);
	profile_verdict_release(&v);
	end(&f);
}

TEST(test_the_estimate_follows_the_levels)
{
	struct fixture f;
	struct profile_estimate e;
	size_t a[2], b[2];

	begin(&f);
	replications(&f, 0, a);
	replications(&f, 1, b);
	profile_estimate_make(&f.j, &e);
	assert_true(isnan(profile_estimate_left_s(&e, &f.j)));
	add(&f, a[0], PROFILE_OK, 1.0, 1.0);
	add(&f, b[0], PROFILE_OK, 9.0, 9.0);
	profile_estimate_make(&f.j, &e);
	/* mean of logs: 3 s; each effect log(3), halved by its single run */
	assert_true(fabs(profile_estimate_run_s(&e, &f.d, &f.p.run[a[1]]) - 3.0 / sqrt(3.0)) < 1e-12);
	assert_true(fabs(profile_estimate_left_s(&e, &f.j) - (3.0 / sqrt(3.0) + 3.0 * sqrt(3.0))) < 1e-12);
	end(&f);
}

static void result(const char *path, const char *regex, const char *text, double want, size_t n_epochs)
{
	struct profile_design d;
	struct profile_copy c = { 0 };
	struct err err = { 0 };

	profile_design_init(&d);
	assert_int_equal(profile_design_result(&d, path, regex, &err), 0);
	assert_int_equal(profile_result_parse(&d, text, strlen(text), &c, &err), 0);
	if (isnan(want) ? !isnan(c.accuracy) : c.accuracy != want)
		fail_msg("accuracy %g, not %g, of: %s", c.accuracy, want, text);
	assert_int_equal(c.n_epochs, n_epochs);
	free(c.epoch);
	profile_design_release(&d);
}

TEST(test_results_are_found_in_lines)
{
	result(NULL, NULL, "", NAN, 0);
	result(NULL, NULL, "hello\n{not json\n{\"accuracy\":\"high\"}\n", NAN, 0);
	result(NULL, NULL,
	       "{\"epoch\":1,\"accuracy\":0.5}\nnoise\n{\"epoch\":2,\"accuracy\":0.625}\n"
	       "{\"event\":\"result\",\"accuracy\":0.75,\"epoch\":2}",
	       0.75, 2);
	result("test.top1", NULL, "{\"accuracy\":0.1,\"test\":{\"top1\":0.25}}\n{\"accuracy\":0.3}\n", 0.25,
	       0);
	result("a.b", NULL, "{\"a.b\":0.5,\"a\":{\"b\":0.25}}\n", 0.5, 0);
	result(NULL, "acc[a-z]*[:=] *([0-9.]+)", "acc: 0.25, accuracy=0.5\naccuracy: much\n", 0.5, 0);
	result(NULL, "(x*)", "0.5\n", NAN, 0); /* an empty match does not loop for ever */
}
