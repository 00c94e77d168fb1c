/* Runs a campaign: measures what the journal lacks and keeps the tables up to date. See campaign.h. */
#include "scheduler/profiler/campaign.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/text/text.h"

void profile_campaign_init(struct profile_campaign *k)
{
	*k = (struct profile_campaign){ .journal = { .file.fd = -1 }, .at = SIZE_MAX, .left_s = NAN };
	profile_design_init(&k->design);
}

void profile_campaign_release(struct profile_campaign *k)
{
	profile_verdict_release(&k->verdict);
	profile_journal_close(&k->journal);
	profile_plan_release(&k->plan);
	profile_design_release(&k->design);
}

static void note(const struct profile_campaign *k, const char *text)
{
	if (k->on_note)
		k->on_note(k->owner, text);
}

int profile_campaign_plan(struct profile_campaign *k, struct err *err)
{
	int rc = profile_design_check(&k->design, err);

	return rc ? rc : profile_plan_make(&k->design, &k->plan, err);
}

/* ---- opening ---- */

/* Measurements are expensive, so a table that no journal belongs to is not overwritten. */
static int check_table_is_ours(const struct profile_campaign *k, struct err *err)
{
	char path[PATH_MAX + 16];
	struct stat st;

	snprintf(path, sizeof path, "%s/journal.jsonl", k->dir);
	if (!access(path, F_OK) || stat(k->table, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	return err_fail(
		err, ERR_ARG,
		"%s exists already and %s has no journal of it; write to another file, or add --restart",
		text_tail(k->table, 150), text_tail(k->dir, 150));
}

static void forget_bad(struct profile_campaign *k)
{
	for (size_t i = 0; i < k->plan.n; i++) {
		struct profile_outcome *o = &k->journal.run[i];

		if (o->done && k->verdict.status[i] != PROFILE_OK) {
			o->done = false;
			k->journal.n_done--;
		}
	}
}

static void estimate(struct profile_campaign *k)
{
	profile_estimate_make(&k->journal, &k->estimate);
	k->left_s = profile_estimate_left_s(&k->estimate, &k->journal);
}

int profile_campaign_open(struct profile_campaign *k, enum profile_open how, bool retry, struct err *err)
{
	char text[PATH_MAX + 128];
	int rc = how == PROFILE_RESUME ? check_table_is_ours(k, err) : 0;

	if (!rc)
		rc = profile_journal_open(&k->journal, k->dir, &k->design, &k->plan, how, err);
	if (rc)
		return rc;
	k->n_resumed = k->journal.n_done;
	if (k->journal.n_cut) {
		snprintf(
			text, sizeof text,
			"%s: the last line was torn (%zu bytes); it is cut off and its run is measured again",
			k->journal.file.path, k->journal.n_cut);
		note(k, text);
	}
	if (k->journal.existed && how != PROFILE_LOOK) {
		snprintf(text, sizeof text, "resuming: %zu of %zu runs are already in %s", k->n_resumed,
			 k->plan.n, k->journal.file.path);
		note(k, text);
	}
	rc = profile_judge(&k->journal, &k->verdict, err);
	if (!rc && retry)
		forget_bad(k);
	estimate(k);
	return rc;
}

/* ---- measuring ---- */

static int write_file(const char *path, const struct strbuf *text, struct err *err)
{
	return text->failed ? err_nomem(err, "%s", text_tail(path, 200))
			    : io_write_file(path, strbuf_text(text), text->len, err);
}

static int write_tables(struct profile_campaign *k, struct err *err)
{
	struct strbuf table = { 0 }, curves = { 0 };
	int rc;

	profile_verdict_release(&k->verdict);
	rc = profile_judge(&k->journal, &k->verdict, err);
	if (rc)
		return rc;
	profile_put_table(&k->journal, &k->verdict, &table);
	rc = write_file(k->table, &table, err);
	if (!rc && k->curves) {
		profile_put_curves(&k->journal, &k->verdict, &curves);
		rc = write_file(k->curves, &curves, err);
	}
	strbuf_release(&table);
	strbuf_release(&curves);
	estimate(k);
	return rc;
}

static int run_one(struct profile_campaign *k, size_t run, const char *name, struct profile_outcome *out,
		   struct err *err)
{
	struct profile_run_params p = { .design = &k->design,
					.point = &k->plan.run[run],
					.signals = &k->signals,
					.dir = k->dir,
					.name = name,
					.first = !k->journal.n_done,
					.cut_at_s = k->budget_s > 0.0 ? k->begun_s + k->budget_s : 0.0,
					.on_tick = k->on_tick,
					.owner = k->owner };

	return k->run ? k->run(k->runner, &p, out, &k->signal, err) : profile_run(&p, out, &k->signal, err);
}

/* After the first run, not after hours. */
static void look_for_accuracy(struct profile_campaign *k, const struct profile_outcome *o, const char *name)
{
	char text[PATH_MAX + 512];

	for (size_t i = 0; i < o->n_copies && o->status == PROFILE_OK; i++) {
		const struct profile_copy *c = &o->copy[i];

		if (isnan(c->accuracy) && !k->told_none) {
			snprintf(text, sizeof text,
				 "no accuracy was found in the output of the first run "
				 "(%s/logs/%s.copy-%zu.out), in "
				 "JSON lines or in text such as val_acc=0.93 or \"accuracy: 93%%\"; "
				 "--accuracy NAME or "
				 "--regex says where it is. Without one only times are measured",
				 k->dir, name, i + 1);
			note(k, text);
			k->told_none = true;
		}
		if (c->percent && !k->told_percent) {
			snprintf(text, sizeof text,
				 "the accuracy (%s) is above 1, so it is taken as percent: %.4g is written "
				 "for %.4g",
				 c->found, c->accuracy, 100.0 * c->accuracy);
			note(k, text);
			k->told_percent = true;
		}
	}
}

static int measure(struct profile_campaign *k, size_t run, struct err *err)
{
	struct profile_outcome outcome = { 0 };
	struct strbuf shown = { 0 };
	char name[64];
	int rc;

	snprintf(name, sizeof name, "run-%04zu.try-%zu", run + 1, k->journal.run[run].tries + 1);
	profile_describe(&k->design, &k->plan.run[run], &shown);
	snprintf(k->shown, sizeof k->shown, "%s", strbuf_text(&shown));
	strbuf_release(&shown);
	k->at = run;
	if (k->on_tick)
		k->on_tick(k->owner, 0.0);
	rc = run_one(k, run, name, &outcome, err);
	if (outcome.dropped)
		goto out;
	if (!rc && !k->signal)
		look_for_accuracy(k, &outcome, name);
	if (!rc && !k->signal)
		rc = profile_journal_append(&k->journal, run, &outcome, err);
	if (!rc && !k->signal)
		rc = write_tables(k, err);
	if (!rc && !k->signal && k->on_run)
		k->on_run(k->owner, run);
out:
	profile_outcome_release(&outcome);
	return rc;
}

static double budget_left_s(const struct profile_campaign *k)
{
	return k->begun_s + k->budget_s - clock_monotonic_s();
}

/* Nothing is repeated: what time there is goes to what is not known yet. */
static int run_within_budget(struct profile_campaign *k, struct err *err)
{
	size_t run = 0;
	int rc = 0;

	while (!rc && !k->signal && budget_left_s(k) > 0.0 &&
	       (run = profile_budget_next(k, budget_left_s(k))) != SIZE_MAX) {
		k->signal = profile_signals_pending(&k->signals);
		if (!k->signal)
			rc = measure(k, run, err);
	}
	k->spent = k->journal.n_done < k->plan.n && !k->signal;
	return rc;
}

/* The first run of a program is slower: later ones find its files in the page cache and its data prepared. */
static int warm_up(struct profile_campaign *k, struct err *err)
{
	struct profile_outcome outcome = { 0 };
	char text[300];
	int rc;

	snprintf(k->shown, sizeof k->shown, "warm-up");
	rc = run_one(k, 0, "warm-up", &outcome, err);
	if (!rc && !k->signal && outcome.status != PROFILE_OK) {
		snprintf(text, sizeof text, "the warm-up failed: %s", outcome.why);
		note(k, text);
	}
	profile_outcome_release(&outcome);
	return rc;
}

int profile_campaign_run(struct profile_campaign *k, struct err *err)
{
	size_t run;
	int rc = k->journal.n_done ? write_tables(k, err) : 0;

	k->begun_s = clock_monotonic_s();
	if (!rc && k->budget_s > 0.0)
		return run_within_budget(k, err);
	if (!rc && k->design.warm_up && k->journal.n_done < k->plan.n)
		rc = warm_up(k, err);
	for (size_t i = 0; i < k->plan.n && !rc && !k->signal; i++) {
		k->signal = profile_signals_pending(&k->signals);
		run = k->by_value ? profile_budget_next(k, INFINITY) : i;
		if (!k->signal && run != SIZE_MAX && !k->journal.run[run].done)
			rc = measure(k, run, err);
	}
	/* Unstable runs are repeated at the end: what disturbed one now may disturb the next minute, too. */
	while (!rc && !k->signal && (run = profile_repeat(&k->journal, &k->verdict)) != SIZE_MAX) {
		k->signal = profile_signals_pending(&k->signals);
		if (!k->signal)
			rc = measure(k, run, err);
	}
	return rc;
}
