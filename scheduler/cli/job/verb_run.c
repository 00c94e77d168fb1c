/* `postrider run`: runs a user's own command with the best batch that ends in time. A daemon of that user
 * decides, runs it and learns; it is started when it is needed. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/places.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "common/text/hash.h"
#include "scheduler/cli/client/job_log.h"
#include "scheduler/cli/client/submit.h"
#include "scheduler/cli/job/job_command.h"
#include "scheduler/cli/job/job_template.h"
#include "scheduler/cli/job/own_daemon.h"
#include "scheduler/process/machine.h"

#define FIRST_MODEL_S 5.0
#define MAX_OWN 8

struct options {
	struct submit_options submit;
	struct cli_list factor;
	bool detach, alone, steer;
	const char *metric, *goal, *template;
	char typed_batch[JOB_COMMAND_TYPED], typed_epochs[64]; /* submit.batches, .epochs may point here */
	double idle_s;
	char **word;
	size_t n_words;
	char *own[MAX_OWN]; /* of submit.set: values of this run alone, which the command has */
	size_t n_own;
};

/* ---- the folder of a command ---- */

/* Is the folder of another command? One that cannot be read is not: it is for its user to say what it is. */
static bool is_of_another(const char *dir, const struct profile_design *d)
{
	char path[PATH_MAX];
	struct profile_design is;
	bool other = false;

	profile_design_init(&is);
	snprintf(path, sizeof path, "%.3900s/job.json", dir);
	if (job_folder_is(dir) && !profile_design_read(&is, path, NULL)) {
		other = is.n_command != d->n_command ||
			strcmp(is.work_dir ? is.work_dir : "", d->work_dir) != 0;
		for (size_t i = 0; !other && i < d->n_command; i++)
			other = strcmp(is.command[i], d->command[i]) != 0;
	}
	profile_design_release(&is);
	return other;
}

/* One folder for each command in each working folder. Two commands may have the same number: the second gets
 * a folder with one more behind it. */
static void dir_of_command(const struct own_daemon *own, const char *name, const struct profile_design *d,
			   char dir[PATH_MAX])
{
	uint64_t h = hash_words(hash_text(HASH_START, d->work_dir), d->command, d->n_command);

	snprintf(dir, PATH_MAX, "%.3000s/%.64s-%08x", own->dir, name, (unsigned)h);
	for (int n = 2; n < 1000 && is_of_another(dir, d); n++)
		snprintf(dir, PATH_MAX, "%.3000s/%.64s-%08x-%d", own->dir, name, (unsigned)h, n);
}

/* What the user typed into the command is the job's. An open {epochs} is what was said last, or asked for. */
static int take_typed(const struct cli *c, struct options *o, const struct job_typed *typed, struct err *err)
{
	if (typed->epochs[0] && o->submit.epochs)
		return err_fail(err, ERR_ARG,
				"the command says %s epochs, and --epochs %s; write {epochs} into the "
				"command if --epochs is meant",
				typed->epochs, o->submit.epochs);
	if (typed->batch[0] && o->submit.batches)
		return err_fail(
			err, ERR_ARG,
			"the command says the batch size %s, and --batches %s; write {batch} into the "
			"command if --batches is meant",
			typed->batch, o->submit.batches);
	if (typed->batch[0])
		cli_notice(c,
			   "the batch size %s of the command is kept; write {batch} there to have the "
			   "most accurate one in time chosen",
			   typed->batch);
	snprintf(o->typed_batch, sizeof o->typed_batch, "%s", typed->batch);
	snprintf(o->typed_epochs, sizeof o->typed_epochs, "%s", typed->epochs);
	if (typed->batch[0])
		o->submit.batches = o->typed_batch;
	if (typed->epochs[0])
		o->submit.epochs = o->typed_epochs;
	return 0;
}

static void last_epochs(const struct job_folder *f, struct options *o)
{
	size_t len = 0;
	char *text = NULL;

	if (o->submit.epochs || !job_folder_has(f->shown_epochs) ||
	    io_read_file(f->shown_epochs, sizeof o->typed_epochs - 1, &text, &len, NULL))
		return;
	snprintf(o->typed_epochs, sizeof o->typed_epochs, "%.*s", (int)strcspn(text, "\n"), text);
	if (o->typed_epochs[0])
		o->submit.epochs = o->typed_epochs;
	free(text);
}

/* The daemon took the job: the next one has as many. A folder that cannot be written remembers nothing. */
static void keep_epochs(const struct job_folder *f, const struct options *o)
{
	char text[sizeof o->typed_epochs + 1];

	if (!o->submit.epochs || strlen(o->submit.epochs) >= sizeof o->typed_epochs)
		return;
	snprintf(text, sizeof text, "%s\n", o->submit.epochs);
	io_write_file(f->shown_epochs, text, strlen(text), NULL);
}

static int default_factors(const struct options *o, struct profile_design *d, struct err *err)
{
	char *name[PROFILE_MAX_FACTORS], levels[256], text[400];
	size_t n = job_command_names(d, name, PROFILE_MAX_FACTORS);
	int rc = 0;

	for (size_t i = 0; i < o->factor.n && !rc; i++)
		rc = job_command_factor(d, o->factor.item[i], err);
	for (size_t i = 0; i < n && !rc; i++) {
		if (profile_factor_find(d, name[i]))
			continue;
		job_command_levels(d, name[i], o->word, o->n_words, levels, sizeof levels);
		if (!*levels)
			rc = err_fail(err, ERR_ARG, "which values may {%s} have? Add --factor %s=A,B,C",
				      name[i], name[i]);
		snprintf(text, sizeof text, "%s=%s", name[i], levels);
		if (!rc)
			rc = profile_design_factor(d, text, err);
	}
	if (!rc && !profile_factor_find(d, "njobs"))
		rc = profile_design_factor(d, "njobs=1,2", err);
	if (!rc && !profile_factor_find(d, "cpus"))
		rc = profile_design_factor(d, "cpus=1", err);
	job_command_names_free(name, n);
	return rc;
}

/* A value that was asked for becomes one of the job's, measured or not: else the daemon would refuse it.
 * Of cpus that the command is not told, it becomes the only one: nothing else could vary. */
static int add_level(const struct job_folder *f, const char *factor, const char *value, struct err *err)
{
	static const struct job_folder_notes nothing;
	const struct profile_factor *has;
	struct strbuf text = { 0 };
	struct profile_design d;
	double v, asked = 0.0;
	bool there = false, told = false;
	int rc;

	profile_design_init(&d);
	rc = profile_design_read(&d, f->job, err);
	has = rc ? NULL : profile_factor_find(&d, factor);
	text_number(value, &asked);
	strbuf_printf(&text, "%s=", factor);
	for (size_t i = 0; i < d.n_command; i++)
		told |= template_uses(d.command[i], factor);
	for (size_t i = 0; has && i < has->n_levels; i++) {
		there |= text_number(has->level[i], &v) && v == asked;
		if (told)
			strbuf_printf(&text, "%s,", has->level[i]);
	}
	strbuf_puts(&text, value);
	if (has && !there && text.failed)
		rc = err_nomem(err, "the values of %s", factor);
	else if (has && !there)
		rc = profile_design_factor(&d, text.text, err);
	if (has && !there && !rc)
		rc = profile_design_check(&d, err);
	if (has && !there && !rc)
		rc = job_folder_write(f, &d, &nothing, err);
	strbuf_release(&text);
	profile_design_release(&d);
	return rc;
}

/* What this run has made or changed in the folder, to be taken back where it is refused. */
struct change {
	bool made;
	char *job; /* the description as it was; NULL: it did not change */
	size_t job_len;
};

static void take_back(const struct job_folder *f, const struct change *was)
{
	if (was->made) {
		unlink(f->job);
		unlink(f->config);
		unlink(f->readme);
		rmdir(f->dir);
	} else if (was->job) {
		io_write_file(f->job, was->job, was->job_len, NULL);
	}
}

/* From now on it is a job that asks after each epoch how to go on. */
static int add_steer(const struct job_folder *f, struct err *err)
{
	static const struct job_folder_notes nothing;
	struct profile_design d;
	bool epochs = false;
	int rc;

	profile_design_init(&d);
	rc = profile_design_read(&d, f->job, err);
	for (size_t i = 0; !rc && i < d.n_factors + d.n_fixed; i++)
		epochs |= !strcmp(profile_factor_at(&d, i)->name, "epochs");
	if (!rc && !epochs)
		rc = err_fail(err, ERR_ARG,
			      "--steer: write {epochs} into the command, or nobody knows how much "
			      "of the work is left");
	if (!rc && !d.steer) {
		d.steer = true;
		rc = profile_design_check(&d, err);
		if (!rc)
			rc = job_folder_write(f, &d, &nothing, err);
	}
	profile_design_release(&d);
	return rc;
}

/* The batches and cpus of the options. */
static int add_levels(const struct job_folder *f, const struct options *o, struct err *err)
{
	char one[64];
	int rc = 0;

	for (const char *s = o->submit.batches; s && *s && !rc;) {
		size_t len = strcspn(s, ",");

		snprintf(one, sizeof one, "%.*s", (int)len, s);
		rc = add_level(f, "batch", one, err);
		s += len + (s[len] == ',');
	}
	snprintf(one, sizeof one, "%llu", (unsigned long long)o->submit.cpus);
	if (!rc && o->submit.cpus)
		rc = add_level(f, "cpus", one, err);
	return rc;
}

/* Values that say which run it is: of this job, not of its type. */
static int take_own(struct options *o, struct profile_design *d, struct err *err)
{
	size_t room = CLI_LIST_MAX - o->submit.set.n;
	int rc = job_command_free(d, o->own, room < MAX_OWN ? room : MAX_OWN, &o->n_own, err);

	for (size_t i = 0; i < o->n_own; i++)
		o->submit.set.item[o->submit.set.n++] = o->own[i];
	return rc;
}

static int make_folder(const struct options *o, bool has_epochs, struct profile_design *d,
		       const struct job_folder *out, struct err *err)
{
	static const struct job_folder_notes nothing;
	int rc;

	d->epochs = has_epochs ? mem_strdup(o->submit.epochs) : NULL;
	if (has_epochs && !d->epochs)
		return err_nomem(err, "the epochs");
	rc = job_command_metric(d, o->metric, o->goal, err);
	if (!rc)
		rc = default_factors(o, d, err);
	d->kind = PROFILE_LHS;
	d->lhs_runs = 24;
	d->max_spread = 1.0;
	if (!rc)
		rc = profile_design_check(d, err);
	if (!rc)
		rc = own_daemon_make_folder(out->dir, err);
	return rc ? rc : job_folder_write(out, d, &nothing, err);
}

static int folder_of_command(const struct cli *c, struct options *o, struct job_folder *out,
			     struct change *was, struct err *err)
{
	char dir[PATH_MAX], name[JOB_FOLDER_NAME + 1];
	struct own_daemon own;
	struct job_typed typed;
	struct profile_design d;
	char **word = NULL;
	size_t n_words = 0;
	int rc;

	profile_design_init(&d);
	rc = place_absolute(".", &d.work_dir, err);
	if (!rc)
		rc = job_template_words(o->template, o->word, o->n_words, &word, &n_words, err);
	if (!rc)
		rc = job_command_take(&d, word, n_words, NULL, &typed, err);
	argv_free(word);
	if (!rc)
		rc = take_typed(c, o, &typed, err);
	if (!rc)
		rc = take_own(o, &d, err);
	if (!rc)
		rc = own_daemon_find(&own, err);
	if (!rc) {
		job_folder_name(o->word, o->n_words, name);
		dir_of_command(&own, name, &d, dir);
		rc = job_folder_open(out, dir, job_folder_is(dir) ? NULL : name, err);
	}
	if (!rc)
		last_epochs(out, o);
	if (!rc && typed.has_epochs && !o->submit.epochs)
		rc = err_fail(err, ERR_ARG,
			      "how many epochs? Add --epochs N, or a range to choose from: --epochs 1..10");
	if (!rc && !job_folder_is(dir)) {
		was->made = true;
		rc = make_folder(o, typed.has_epochs, &d, out, err);
	} else if (!rc) {
		rc = io_read_file(out->job, PROFILE_MAX_BYTES, &was->job, &was->job_len, err);
	}
	if (!rc)
		rc = add_levels(out, o, err);
	if (rc)
		take_back(out, was);
	profile_design_release(&d);
	return rc;
}

/* ---- running ---- */

/* Measuring was killed, or goes on: what it has is better than nothing. */
static void use_what_was_measured(const struct cli *c, const struct job_folder *folder)
{
	if (!job_folder_untrained(folder))
		return;
	cli_notice(c, "%s has runs that no model was trained on; training ...", cli_clean(folder->shown));
	if (job_folder_train(folder, true))
		cli_notice(c, "no model could be trained on them");
}

/* Nothing could be promised: what would help. */
static void say_unknown(const struct cli *c, const struct job_folder *folder, const struct submit_answer *a)
{
	if (!a->job.r.model && a->verdict == SUBMIT_BEST_EFFORT)
		cli_notice(c, "nothing is known about this command yet; 'postrider profile %s' measures it",
			   cli_clean(folder->shown));
}

/* Has the type a model of its own? -1: it has none, but is in training. */
static int has_model(struct client *client, const char *type)
{
	struct json *v = NULL;
	struct client_fault ignored;
	int has = 1;

	client_begin(client, "stats");
	if (client_call(client, &v, &ignored))
		return 1;
	for (const struct json *m = json_first(json_path(v, "learning.models")); m; m = json_next(m))
		if (!strcmp(json_string(json_get(m, "type"), ""), type) &&
		    !json_string(json_get(m, "model"), NULL))
			has = json_bool(json_get(m, "training"), false) ? -1 : 0;
	json_free(v);
	return has;
}

/* The first run of a command makes its first model, in a moment: a script that runs the command again at once
 * shall have the promise. So it is with the model of a command that was forgotten and returns. */
static bool await_model(struct client *client, const char *type)
{
	double until_s = clock_monotonic_s() + FIRST_MODEL_S;
	bool waited = false;

	while (has_model(client, type) < 0 && clock_monotonic_s() < until_s) {
		waited = true;
		usleep(20000);
	}
	return waited;
}

static void await_first_model(const struct cli *c, struct client *client, const char *type)
{
	if (await_model(client, type))
		cli_notice(c, "what it took is learnt: the next run can have a promise");
}

struct teller { /* what was said of a limit that could not be promised */
	const struct cli *c;
	enum job_outlook said;
};

/* Once it is clear, and again if it turns out otherwise. */
static void say_outlook(void *owner, const struct job_view *job)
{
	struct teller *t = owner;
	enum job_outlook now = job_view_outlook(job, 0.0, job_now());
	struct strbuf text = { 0 };

	if ((now != OUTLOOK_HOLDS && now != OUTLOOK_MISSED) || now == t->said)
		return;
	t->said = now;
	job_view_outlook_put(job, 0.0, job_now(), &text);
	cli_notice(t->c, "%s", strbuf_text(&text));
	strbuf_release(&text);
}

/* *out_reply: the job is in it. */
static int watch(struct client *client, const char *id, struct json **out_reply, struct job_view *out,
		 struct client_fault *f)
{
	int rc;

	json_free(*out_reply);
	*out_reply = NULL;
	json_kv_string(client_begin(client, "watch"), "job", id);
	rc = client_call(client, out_reply, f);
	if (!rc && !job_view_read(json_at(json_get(*out_reply, "jobs"), 0), out))
		rc = client_bad_reply(f, "the job to watch is not in it");
	return rc;
}

/* The daemon has gone, and the job goes on: its exit code is learnt from the next daemon, which finds it. */
static int find_again(const struct cli *c, const struct options *o, const struct job_folder *folder,
		      struct client **client, const char *id, struct client_fault *f)
{
	struct client *again = NULL;
	char type[JOB_FOLDER_NAME + 1];
	double until_s = clock_monotonic_s() + OWN_DAEMON_START_S;
	int rc;

	cli_notice(c, "your daemon has gone; job %s goes on, and is looked for", id);
	/* one that is being killed may still take a connection, and says nothing */
	while ((rc = own_daemon_open(c, folder, o->idle_s, &o->submit.at, type, &again, f)) != 0 &&
	       !client_interrupted() && clock_monotonic_s() < until_s)
		usleep(100000);
	if (rc)
		return rc;
	client_close(*client);
	*client = again;
	return 0;
}

static int watch_to_the_end(const struct cli *c, const struct options *o, const struct job_folder *folder,
			    struct client **client, const struct submit_answer *a, const struct json *answer,
			    struct client_fault *f)
{
	struct json *last = NULL, *reply = NULL;
	struct strbuf line = { 0 };
	struct teller teller = { .c = c };
	struct job_log log;
	struct job_view job = a->job;
	int wrote = 0, rc = job_log_open(&log, *client, a->job.id, f);

	log.line = job_line_begin(c->quiet);
	log.on_news = say_outlook;
	log.owner = &teller;
	while (!rc) {
		rc = watch(*client, a->job.id, &reply, &job, f);
		if (!rc && c->json)
			rc = job_follow(*client, &job, true, &last, &job, f);
		else if (!rc)
			rc = job_log_follow(&log, *client, &job, &last, &job, f);
		if (rc != CLIENT_UNREACHABLE)
			break;
		rc = find_again(c, o, folder, client, a->job.id, f);
	}
	if (rc == CLIENT_INTERRUPTED) { /* as a command in the foreground would: Ctrl-C ends it */
		struct json *cancelled = NULL;
		struct client_fault ignored;

		fprintf(stderr, "postrider: interrupted; job %s is asked to stop\n", a->job.id);
		client_last_words();
		json_kv_string(client_begin(*client, "cancel"), "job", a->job.id);
		client_call(*client, &cancelled, &ignored);
		json_free(cancelled);
	}
	if (rc) {
		client_say(f);
	} else if (c->json) {
		wrote = submit_print_ended(
			c, answer, last ? json_get(last, "job") : json_at(json_get(reply, "jobs"), 0));
	} else if (!c->quiet) {
		job_view_line(&job, 0.0, &line);
		fprintf(stderr, "%s\n", strbuf_text(&line));
	}
	if (!rc)
		rc = job_view_exit_code(&job) ? job_view_exit_code(&job) : wrote;
	strbuf_release(&line);
	job_log_close(&log);
	json_free(last);
	json_free(reply);
	return rc;
}

static int run(const struct cli *c, const struct options *o, const struct job_folder *folder,
	       struct client **client)
{
	struct strbuf out = { 0 };
	struct submit_answer a;
	struct client_fault f;
	struct json *reply = NULL;
	int rc;

	await_model(*client, o->submit.type);
	submit_request(*client, &o->submit, NULL);
	rc = client_call(*client, &reply, &f);
	if (!rc)
		rc = submit_answer_read(reply, o->submit.dry_run, &a, &f);
	if (rc) {
		json_free(reply);
		return client_say(&f);
	}
	if (!o->submit.dry_run)
		keep_epochs(folder, o);
	say_unknown(c, folder, &a);
	submit_answer_put(&a, o->submit.dry_run, c, &out);
	if (!c->quiet && !c->json) /* standard output is the command's, if there is one */
		fputs(strbuf_text(&out), o->submit.dry_run ? stdout : stderr);
	strbuf_release(&out);
	if (c->json && (o->detach || o->submit.dry_run || a.verdict == SUBMIT_REJECTED))
		rc = job_print_reply(c, reply);
	else if (o->detach && a.verdict != SUBMIT_REJECTED)
		printf("%s\n", a.job.id);
	if (!rc && a.verdict == SUBMIT_REJECTED)
		rc = CLIENT_REJECTED;
	else if (!rc && !o->detach && !o->submit.dry_run)
		rc = watch_to_the_end(c, o, folder, client, &a, reply, &f);
	if (!rc && !o->detach && !o->submit.dry_run && !a.job.r.model && !c->quiet)
		await_first_model(c, *client, o->submit.type);
	json_free(reply);
	return rc;
}

int verb_run(int argc, char **argv)
{
	struct options o = { .submit = SUBMIT_OPTIONS_NONE, .idle_s = NAN };
	const struct cli_option option[] = {
		SUBMIT_OPTIONS(o.submit),
		{ 0, "factor", CLI_LIST, "NAME=A,B",
		  "values of a placeholder, the first time a command is run", &o.factor },
		{ 0, "template", CLI_TEXT, "FILE",
		  "a file of settings with {batch} and the like in it; the word of\nthe command that "
		  "names it becomes a copy, filled in",
		  &o.template },
		{ 0, "metric", CLI_TEXT, "NAME",
		  "the number in the output that counts, such as f1 or loss, the\nfirst time a command is "
		  "run",
		  &o.metric },
		{ 0, "goal", CLI_TEXT, "min|max",
		  "min: less of it is better, the first time a command is run", &o.goal },
		{ 0, "idle", CLI_DURATION, "TIME",
		  "your daemon exits this long after its last job (default: 10m);\nlater runs keep this "
		  "setting",
		  &o.idle_s },
		{ 0, "alone", CLI_FLAG, NULL, "start no other job beside it: it has all cpus", &o.alone },
		{ 0, "steer", CLI_FLAG, NULL,
		  "it asks after each epoch how to go on, so its batch may change\nwhile it runs; later runs "
		  "keep this",
		  &o.steer },
		{ 0, "detach", CLI_FLAG, NULL, "print the id of the job and do not wait for it", &o.detach },
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "run",
		.synopsis = "FOLDER [--slo TIME] [options]\n[--slo TIME] [options] -- PROGRAM ARGUMENT...",
		.what = "Runs your own training command with the most accurate batch size that ends in time, "
			"and\n"
			"shows its output. Numbers in the command stay as they are: only {batch}, {epochs} "
			"and "
			"the like are\nfilled in. Your own daemon decides, runs it and learns from it. All "
			"your\ncommands share this daemon; it starts when it is needed and exits when it is "
			"idle. The exit code "
			"is that\n"
			"of the command; 3 if no batch size is fast enough. A command that is not known yet "
			"runs "
			"without a\n"
			"promise, with the batch in the middle; from the second run on it can have one. With "
			"--json the "
			"job\nis printed when it has ended, instead of its output.",
		.option = option,
		.json = true,
		.min_args = 0,
		.max_args = 1,
		.examples =
			"  postrider run train-postrider --slo 5m\n"
			"  postrider run --slo 5m -- ./train.py --batch-size {batch}\n"
			"  postrider run --deadline 18:00 --chance 0.5 -- ./train.py --batch-size {batch}\n"
			"  postrider run train-postrider --slo 5m --dry-run\n",
	};
	struct job_folder folder = { 0 };
	struct change was = { 0 };
	char type[JOB_FOLDER_NAME + 1] = "";
	struct client *client = NULL;
	struct client_fault f;
	struct err err = { 0 };
	struct cli c;
	int code, rc;

	argc = cli_words(argc, argv, &o.word, &o.n_words);
	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!o.n_words == !c.n_args)
		return cli_usage_error(&c, "give the folder of a job, or a command after --");
	if (c.n_args && !job_folder_is(c.arg[0]))
		return cli_usage_error(&c,
				       "%s is not the folder of a job; 'postrider init -- COMMAND' makes one",
				       cli_clean(c.arg[0]));
	o.submit.type = type;
	if (!submit_options_check(&c, &o.submit))
		return 2;
	if (c.n_args && o.template)
		return cli_usage_error(&c, "--template goes with a command; a folder has it already");
	if (o.alone && o.submit.cpus)
		return cli_usage_error(&c, "--alone is all cpus, and --cpus says how many: give one");
	if (o.alone)
		o.submit.cpus = (uint64_t)machine_cores();
	if (o.detach && o.submit.dry_run)
		return cli_usage_error(&c, "--dry-run creates no job that --detach could leave alone");
	rc = c.n_args ? job_folder_open(&folder, c.arg[0], NULL, &err)
		      : folder_of_command(&c, &o, &folder, &was, &err);
	if (!rc && o.steer) {
		rc = add_steer(&folder, &err);
		if (rc)
			take_back(&folder, &was);
	}
	if (rc)
		return cli_fail(&err);
	last_epochs(&folder, &o);
	use_what_was_measured(&c, &folder);
	client_catch_signals();
	code = own_daemon_open(&c, &folder, o.idle_s, &o.submit.at, type, &client, &f);
	if (code)
		take_back(&folder, &was);
	code = code ? client_say(&f) : run(&c, &o, &folder, &client);
	client_close(client);
	job_command_names_free(o.own, o.n_own);
	free(was.job);
	return code;
}
