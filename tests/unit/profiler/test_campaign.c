/* scheduler/profiler/campaign: a whole experiment on small shell commands, without the verb around it. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "predictors/anova/anova.h"
#include "scheduler/profiler/campaign.h"
#include "tests/support/support.h"

struct world {
	struct profile_campaign k;
	char table[400], curves[400];
	size_t n_ticks, n_runs;
	char notes[2000];
};

static void on_tick(void *owner, double elapsed_s)
{
	struct world *w = owner;

	assert_true(elapsed_s >= 0.0);
	w->n_ticks++;
}

static void on_run(void *owner, size_t run)
{
	struct world *w = owner;

	assert_true(w->k.journal.run[run].done);
	w->n_runs++;
}

static void on_note(void *owner, const char *text)
{
	struct world *w = owner;

	snprintf(w->notes + strlen(w->notes), sizeof w->notes - strlen(w->notes), "%s\n", text);
}

/* An experiment with batch 1 and 2, njobs 2 and one replication; `script` sees $0 = batch and $1 = seed. */
static struct world *world_new(const char *name, const char *script)
{
	struct world *w = calloc(1, sizeof *w);
	char *word[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, (char *)"{batch}",
			 (char *)"{seed}" };
	struct err err = { 0 };

	assert_non_null(w);
	profile_campaign_init(&w->k);
	snprintf(w->table, sizeof w->table, "%s/%s.csv", support_temp_dir(), name);
	snprintf(w->curves, sizeof w->curves, "%s/%s-curves.csv", support_temp_dir(), name);
	snprintf(w->k.dir, sizeof w->k.dir, "%s/%s.profile", support_temp_dir(), name);
	w->k.table = w->table;
	w->k.curves = w->curves;
	w->k.owner = w;
	w->k.on_tick = on_tick;
	w->k.on_run = on_run;
	w->k.on_note = on_note;
	w->k.design.max_spread = 0.0; /* a busy machine must not make a run unstable */
	assert_int_equal(profile_design_factor(&w->k.design, "batch=1,2", &err), 0);
	assert_int_equal(profile_design_factor(&w->k.design, "njobs=2", &err), 0);
	assert_int_equal(profile_design_argv(&w->k.design, word, 5, &err), 0);
	assert_int_equal(profile_campaign_plan(&w->k, &err), 0);
	return w;
}

static int run(struct world *w, enum profile_open how, bool retry, struct err *err)
{
	int rc;

	profile_signals_hold(&w->k.signals);
	rc = profile_campaign_open(&w->k, how, retry, err);
	if (!rc)
		rc = profile_campaign_run(&w->k, err);
	profile_signals_release(&w->k.signals);
	return rc;
}

static void world_free(struct world *w)
{
	profile_campaign_release(&w->k);
	free(w);
}

static const char *text_of(const char *path)
{
	static char *text;
	size_t len;

	free(text);
	text = NULL;
	return io_read_file(path, 1 << 20, &text, &len, NULL) ? "" : text;
}

static size_t lines_of(const char *path)
{
	size_t n = 0;

	for (const char *s = text_of(path); *s; s++)
		n += *s == '\n';
	return n;
}

#define GOOD "echo \"{{\\\"epoch\\\":1,\\\"accuracy\\\":0.$0}\""

/* A command that prints no times, and two epochs at once at its end, which nobody can tell apart. */
TEST(test_epochs_have_the_times_at_which_they_were_printed)
{
	struct world *w = world_new("stamps",
				    "for e in 1 2 3; do sleep 0.4; echo \"epoch $e acc=0.5\"; done; "
				    "sleep 0.4; printf 'epoch 4 acc=0.6\\nepoch 5 acc=0.7\\n'");
	struct err err = { 0 };

	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	for (size_t k = 0; k < 2; k++) {
		const struct profile_copy *c = &w->k.journal.run[k].copy[0];

		assert_int_equal(c->n_epochs, 5);
		for (size_t i = 0; i < 3; i++) {
			double since_s = c->epoch[i].elapsed_s - (i ? c->epoch[i - 1].elapsed_s : 0.0);

			if (!(since_s > 0.37 && since_s < 2.0)) /* others use the machine */
				fail_msg("epoch %zu took %g s, not 0.4", i + 1, since_s);
		}
		assert_true(isnan(c->epoch[3].elapsed_s));
		assert_true(c->epoch[4].elapsed_s > 1.55 && c->epoch[4].elapsed_s <= c->time_s);
	}
	world_free(w);
}

TEST(test_a_campaign_measures_every_run_and_writes_both_tables)
{
	struct world *w = world_new("good", GOOD);
	struct profile_summary s = { 0 };
	struct err err = { 0 };

	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 2);
	assert_true(w->n_ticks >= 2);
	assert_string_equal(w->notes, "");
	assert_int_equal(w->k.verdict.n_ok, 2);
	assert_int_equal(lines_of(w->table), 5); /* a header, and two copies of two runs */
	assert_int_equal(lines_of(w->curves), 5); /* with one epoch each */
	assert_non_null(strstr(text_of(w->table), ",0.200000,"));
	assert_true(w->k.left_s == 0.0);
	assert_int_equal(profile_summary_make(&w->k, NULL, 1, &s, &err), 0);
	assert_int_equal(s.n_suggestions, 1);
	assert_true(isnan(s.median_cv)); /* one replication shows no noise */
	profile_summary_release(&s);
	world_free(w);
}

TEST(test_a_campaign_goes_on_where_it_stopped)
{
	struct world *w = world_new("resumed", "test ! -e stop || exit 3; " GOOD);
	struct err err = { 0 };
	size_t size;

	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	size = lines_of(w->k.journal.file.path);
	world_free(w);
	w = world_new("resumed", "test ! -e stop || exit 3; " GOOD);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 0);
	assert_int_equal(w->k.n_resumed, 2);
	assert_non_null(strstr(w->notes, "resuming: 2 of 2 runs"));
	assert_int_equal(lines_of(w->k.journal.file.path), size);
	world_free(w);
	w = world_new("resumed", "test ! -e stop || exit 3; " GOOD);
	assert_int_equal(run(w, PROFILE_RESTART, false, &err), 0);
	assert_int_equal(w->n_runs, 2);
	world_free(w);
}

TEST(test_failed_runs_stay_failed_until_they_are_measured_again)
{
	char script[600], flag[400];
	struct world *w;
	struct err err = { 0 };

	snprintf(flag, sizeof flag, "%s/mended", support_temp_dir());
	snprintf(script, sizeof script,
		 "test $0 = 1 || test -e %s || (echo broken >&2; exit 3) || exit 3; " GOOD, flag);
	w = world_new("failing", script);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->k.verdict.n_failed, 1);
	assert_non_null(strstr(text_of(w->table), "failed"));
	world_free(w);
	assert_int_equal(mkdir(flag, 0700), 0);
	w = world_new("failing", script);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 0);
	assert_int_equal(w->k.verdict.n_failed, 1);
	world_free(w);
	w = world_new("failing", script);
	assert_int_equal(run(w, PROFILE_RESUME, true, &err), 0);
	assert_int_equal(w->n_runs, 1);
	assert_int_equal(w->k.verdict.n_failed, 0);
	assert_int_equal(w->k.verdict.n_ok, 2);
	world_free(w);
}

TEST(test_a_failure_quotes_the_last_line_of_stderr)
{
	struct world *w = world_new("words", "echo first >&2; echo out of luck >&2; exit 7");
	struct err err = { 0 };

	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_non_null(strstr(w->k.journal.run[0].why, "ended with exit code 7: out of luck"));
	world_free(w);
}

TEST(test_a_table_without_a_journal_is_not_overwritten)
{
	struct world *w = world_new("precious", GOOD);
	struct err err = { 0 };
	FILE *f = fopen(w->table, "w");

	assert_non_null(f);
	fputs("precious\n", f);
	fclose(f);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "exists already"));
	assert_string_equal(text_of(w->table), "precious\n");
	assert_int_not_equal(access(w->k.dir, F_OK), 0);
	profile_journal_close(&w->k.journal);
	assert_int_equal(run(w, PROFILE_RESTART, false, &err), 0);
	assert_int_equal(lines_of(w->table), 5);
	world_free(w);
}

TEST(test_a_warm_up_is_run_and_not_measured)
{
	struct world *w = world_new("warm", "test $1 != 1 || true; " GOOD);
	struct err err = { 0 };

	w->k.design.warm_up = true;
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 2);
	assert_int_equal(lines_of(w->table), 5);
	assert_int_equal(access(support_path(w->k.dir, "logs/warm-up.copy-1.out"), F_OK), 0);
	world_free(w);
}

/* A design with cpus 1 and 2, two jobs at a time, and runs of one width beside the other; `script` sees $0 =
 * cpus and $1 = copy. */
static struct world *mixed_world(const char *name, const char *script)
{
	struct world *w = world_new(name, GOOD);
	char *word[] = { (char *)"/bin/sh", (char *)"-c",     (char *)script,
			 (char *)"{cpus}",  (char *)"{copy}", (char *)"{batch}" };
	struct err err = { 0 };

	profile_plan_release(&w->k.plan);
	w->k.design.mixed = 2;
	assert_int_equal(profile_design_factor(&w->k.design, "cpus=1,2", &err), 0);
	assert_int_equal(profile_design_argv(&w->k.design, word, 6, &err), 0);
	assert_int_equal(profile_campaign_plan(&w->k, &err), 0);
	return w;
}

TEST(test_a_mixed_run_is_one_job_beside_jobs_of_another_setting)
{
	char log[400], script[600];
	struct err err = { 0 };
	struct world *w;
	size_t begun = 0;

	snprintf(log, sizeof log, "%s/mixed.log", support_temp_dir());
	snprintf(script, sizeof script, "if [ $1 = 1 ]; then sleep 0.5; else echo $0 >>%s; fi", log);
	w = mixed_world("mixed", script);
	assert_int_equal(w->k.plan.n, 6); /* 2 batches x 2 widths, and the mixed ones */
	assert_int_equal(w->k.plan.n_settings, 4);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->k.verdict.n_ok, 6);
	assert_int_equal(lines_of(w->table), 1 + 4 * 2 + 2);
	for (size_t i = 4; i < 6; i++) {
		const struct profile_point *p = &w->k.plan.run[i];

		assert_true(p->mixed && w->k.journal.run[i].n_copies == 1);
		assert_true(w->k.journal.run[i].copy[0].time_s >= 0.5);
		assert_true(profile_processes(&w->k.design, p) == 3.0); /* of any two widths */
		assert_int_equal(p->replication, 2);
	}
	assert_non_null(strstr(text_of(w->table), ",3,")); /* the column processes */
	/* those beside them end at once and come again: once in each of the four, often in the others */
	for (const char *s = text_of(log); *s; s++)
		begun += *s == '\n';
	assert_true(begun > 4 + 2 * 5);
	world_free(w);
	/* the same journal is read again */
	w = mixed_world("mixed", script);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 0);
	world_free(w);
}

/* Beside a job of another design, with its own command. */
static struct world *beside_world(const struct profile_neighbour *n, size_t n_neighbours)
{
	struct world *w = world_new("neighbours", GOOD);
	char *word[] = { (char *)"/bin/sh", (char *)"-c", (char *)"sleep 0.3; echo accuracy 0.9",
			 (char *)"{batch}" };
	struct err err = { 0 };

	profile_plan_release(&w->k.plan);
	w->k.design.neighbour = n;
	w->k.design.n_neighbours = n_neighbours;
	assert_int_equal(profile_design_factor(&w->k.design, "njobs=1,2", &err), 0);
	assert_int_equal(profile_design_argv(&w->k.design, word, 4, &err), 0);
	assert_int_equal(profile_campaign_plan(&w->k, &err), 0);
	return w;
}

static void make_neighbour(struct profile_design *d, const char *script)
{
	char *word[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, (char *)"{network}",
			 (char *)"{batch}" };
	struct err err = { 0 };

	profile_design_init(d);
	assert_int_equal(profile_design_factor(d, "network=lenet,vgg,resnet", &err), 0);
	assert_int_equal(profile_design_factor(d, "batch=8,16", &err), 0);
	assert_int_equal(profile_design_argv(d, word, 5, &err), 0);
	assert_int_equal(profile_design_check(d, &err), 0);
}

TEST(test_a_few_runs_are_beside_jobs_of_other_designs)
{
	char log[400], script[600];
	struct profile_design other;
	struct profile_neighbour n[2] = { { "loud", &other }, { "louder", &other } };
	struct err err = { 0 };
	struct world *w;

	snprintf(log, sizeof log, "%s/neighbours.log", support_temp_dir());
	snprintf(script, sizeof script, "echo $0 $1 >>%s; sleep 0.02", log);
	make_neighbour(&other, script);
	w = beside_world(n, 0);
	assert_int_equal(w->k.plan.n, 4);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_null(strstr(text_of(w->table), "beside"));
	world_free(w);
	/* one that is known later: its run is added, the others stay */
	w = beside_world(n, 1);
	assert_int_equal(w->k.plan.n, 5);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 1);
	assert_true(strstr(text_of(log), "vgg 8\nvgg 8\n") != NULL); /* started again while the run goes on */
	assert_int_equal(lines_of(w->table), 1 + 2 * 1 + 2 * 2 + 1);
	assert_non_null(strstr(text_of(w->table), ",loud network=vgg,")); /* no comma in it: no quotes */
	world_free(w);
	/* and a second one, before it: each run is found again by who was beside it */
	n[1] = n[0];
	snprintf(n[0].name, sizeof n[0].name, "new");
	w = beside_world(n, 2);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 1);
	assert_non_null(strstr(text_of(w->table), ",new network=vgg,"));
	assert_non_null(strstr(text_of(w->table), ",loud network=vgg,"));
	world_free(w);
	/* nobody is known any more: what was measured alone is as it was */
	w = beside_world(n, 0);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 0);
	assert_null(strstr(text_of(w->table), "beside"));
	world_free(w);
	profile_design_release(&other);
}

/* ---- a budget ---- */

#define EPOCH_S 0.1 /* of the job below, whose time is in proportion to its epochs */

/* tells: it prints its epochs. */
static struct world *budget_world(const char *name, bool tells, double budget_s)
{
	struct world *w = world_new(name, GOOD);
	char *word[] = { (char *)"/bin/sh", (char *)"-c",
			 (char *)(tells ? "i=1; while [ $i -le $0 ]; do sleep 0.1; "
					  "echo epoch $i: val_acc=0.$((50 + i)); i=$((i + 1)); done"
					: "i=1; while [ $i -le $0 ]; do sleep 0.1; i=$((i + 1)); done"),
			 (char *)"{epochs}", (char *)"{batch}" };
	struct err err = { 0 };

	profile_plan_release(&w->k.plan);
	w->k.budget_s = budget_s;
	assert_int_equal(profile_design_factor(&w->k.design, "njobs=2,1", &err), 0);
	assert_int_equal(profile_design_factor(&w->k.design, "batch=8,16,32", &err), 0);
	assert_int_equal(profile_design_factor(&w->k.design, "epochs=600,1,2", &err), 0);
	assert_int_equal(profile_design_argv(&w->k.design, word, 5, &err), 0);
	assert_int_equal(profile_campaign_plan(&w->k, &err), 0);
	return w;
}

/* The settings that were measured, in the order in which they were. */
static const char *journal_of(const struct world *w)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof path, "%s/journal.jsonl", w->k.dir);
	return text_of(path);
}

TEST(test_a_budget_ends_a_campaign_and_takes_what_tells_most_first)
{
	struct world *w = budget_world("budget", true, 3.0);
	struct err err = { 0 };
	double from_s = clock_monotonic_s();
	const struct profile_copy *cut = NULL;
	const char *order;

	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_true(clock_monotonic_s() - from_s < 3.0 + 1.5); /* an epoch, on a busy machine */
	assert_true(w->k.spent);
	order = strstr(journal_of(w), "\"run\"");
	order = strstr(order, "\"setting\":\"");
	assert_int_equal(strncmp(order + 11, "batch=16 njobs=1 epochs=2\"", 26), 0); /* 1 tells no start */
	for (size_t i = 0; i < w->k.plan.n; i++) {
		const struct profile_outcome *o = &w->k.journal.run[i];

		if (o->done && profile_outcome_cut(o))
			cut = &o->copy[0];
	}
	/* the longest one has the second half, and is used for the epochs that it had */
	assert_non_null(cut);
	assert_true(cut->cut_epochs >= 3.0 && cut->cut_epochs < 30.0);
	assert_true(cut->time_s >= EPOCH_S * cut->cut_epochs && cut->time_s < 3.0);
	assert_int_equal(cut->n_epochs, (size_t)cut->cut_epochs);
	assert_true(cut->accuracy == cut->epoch[cut->n_epochs - 1].accuracy);
	assert_null(strstr(text_of(w->table), ",600,"));
	assert_null(strstr(text_of(w->curves), ",600,"));
	world_free(w);
	/* it is in the journal as it was */
	w = budget_world("budget", true, 0.001);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->n_runs, 0);
	assert_null(strstr(text_of(w->table), ",600,"));
	assert_int_equal(w->k.verdict.n_unstable, 0);
	world_free(w);
}

/* An epoch takes 1.2 s x 16 / batch. Two of the middle batch take 2.4 of 4.3 s, and batch 8 would take as
 * long and buy nothing: larger batches come first, and what is left shows more epochs of the middle one. */
TEST(test_a_budget_begins_no_run_of_a_batch_that_may_not_fit)
{
	struct world *w = budget_world("budget-batches", true, 4.3);
	char *word[] = { (char *)"/bin/sh", (char *)"-c",
			 (char *)"i=1; while [ $i -le $0 ]; do case $1 in 8) sleep 2.4;; 16) sleep 1.2;; *) "
				 "sleep 0.6;; esac; echo epoch $i: val_acc=0.$((50 + i)); i=$((i + 1)); done",
			 (char *)"{epochs}", (char *)"{batch}" };
	struct err err = { 0 };
	const char *table;

	profile_plan_release(&w->k.plan);
	assert_int_equal(profile_design_factor(&w->k.design, "njobs=1", &err), 0);
	assert_int_equal(profile_design_argv(&w->k.design, word, 5, &err), 0);
	assert_int_equal(profile_campaign_plan(&w->k, &err), 0);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	table = text_of(w->table);
	assert_non_null(strstr(table, "\n1,16,2,"));
	assert_non_null(strstr(table, "\n1,32,1,"));
	assert_null(strstr(table, "\n1,8,"));
	world_free(w);
}

TEST(test_a_run_that_tells_no_epochs_is_dropped_when_the_budget_ends)
{
	struct world *w = budget_world("budget-silent", false, 1.0);
	struct err err = { 0 };
	double from_s = clock_monotonic_s();

	assert_int_equal(profile_design_factor(&w->k.design, "epochs=600,500", &err), 0);
	profile_plan_release(&w->k.plan);
	assert_int_equal(profile_campaign_plan(&w->k, &err), 0);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	/* it is the first, so that an epoch was waited for as long again and half */
	assert_true(clock_monotonic_s() - from_s < 2.5 + 1.5);
	assert_int_equal(w->k.journal.n_done, 0);
	world_free(w);
}

TEST(test_nothing_beside_a_mixed_run_survives_it)
{
	char log[400], script[600];
	struct err err = { 0 };
	struct world *w;
	const char *at;

	snprintf(log, sizeof log, "%s/survivors.log", support_temp_dir());
	snprintf(script, sizeof script, "test $1 = 2 || exit 0; echo $$ >>%s; exec sleep 0.2", log);
	w = mixed_world("survivors", script);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	for (at = text_of(log); *at; at = strchr(at, '\n') + 1)
		assert_int_equal(kill(atoi(at), 0), -1);
	world_free(w);
}

TEST(test_a_job_that_fails_beside_a_mixed_run_is_named)
{
	struct world *w = mixed_world("beside", "test $1 = 2 || exec sleep 30; exit 4");
	struct err err = { 0 };

	for (size_t i = 0; i < 4; i++) /* the mixed ones alone */
		w->k.plan.run[i].mixed = true;
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->k.verdict.n_failed, 6);
	assert_non_null(
		strstr(w->k.journal.run[5].why, "copy 2 (beside the one that is measured) ended with exit"));
	world_free(w);
}

TEST(test_a_design_of_one_kind_has_no_mixed_runs)
{
	struct world *w = world_new("alike", GOOD);
	struct err err = { 0 };

	profile_plan_release(&w->k.plan);
	w->k.design.mixed = 2;
	assert_int_equal(profile_campaign_plan(&w->k, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "mixed runs need"));
	world_free(w);
}

TEST(test_a_program_that_is_not_there_ends_the_campaign)
{
	struct world *w = world_new("missing", GOOD);
	char *word[] = { (char *)"/no/such/program", (char *)"{batch}" };
	struct err err = { 0 };

	assert_int_equal(profile_design_argv(&w->k.design, word, 2, &err), 0);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), -ERR_NOTFOUND);
	assert_int_equal(w->k.journal.n_done, 0);
	world_free(w);
}

TEST(test_which_factor_matters_is_told)
{
	struct world *w = world_new("factors", "sleep 0.0$0; " GOOD);
	struct profile_summary s = { 0 };
	struct err err = { 0 };

	w->k.design.replications = 2;
	profile_plan_release(&w->k.plan);
	assert_int_equal(profile_campaign_plan(&w->k, &err), 0);
	assert_int_equal(run(w, PROFILE_RESUME, false, &err), 0);
	assert_int_equal(w->k.verdict.n_ok, 4);
	assert_int_equal(profile_summary_make(&w->k, NULL, 0, &s, &err), 0);
	assert_non_null(s.time);
	assert_string_equal(s.time->term[0].name, "batch");
	assert_true(s.max_cv >= s.median_cv);
	assert_int_equal(s.n_suggestions, 0);
	profile_summary_release(&s);
	world_free(w);
}
