/* The first day of a new user, with jobs whose truth is known (known_truth.h): a Latin hypercube of 36
 * settings with up to 4 copies each, a model trained as the README says, 39 jobs with limits around what
 * can be attained. Jobs wait for an accelerator or spin on their cpus, start up for 0 to 10 s, alone or
 * beside busy processes, which are there while it is measured and while the jobs run.
 *
 * Each case is simulated: the table, the model and the decisions are real, the machine is the truth with
 * noise. Three cases run for real, too: `postrider profile`, `postrider train`, a daemon, `postrider
 * submit`; with every time at a tenth (at 0.06 if it spins or starts up for 3 s), so that one takes about
 * two minutes. In the environment KNOWN_REAL="wait:0.5:0 spin:0:4" chooses others (work:start-up:busy),
 * KNOWN_REAL= none; KNOWN_SCALE=0.5 another scale, since the milliseconds of a start weigh more in short
 * jobs; KNOWN_SIMULATED chooses simulated cases in the same way (as if nothing were scaled); KNOWN_KEEP
 * names an empty folder in which the files of real cases stay: tables, models, lists of jobs. KNOWN_TABLES
 * says of how many tables a simulated case is made, KNOWN_POLICY under which policy instead of
 * `postrider`.
 *
 * What is printed: promised, kept, jobs that were feasible alone, refused of these, promised jobs within
 * their 90 % bound, and the accuracy gained (a miss is 0) as a share of what each job alone could have had in
 * time. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/csv.h"
#include "common/io.h"
#include "common/json/json.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "tests/bars/known_truth.h"
#include "tests/support/support.h"

#define JOBS 39
#define SETTINGS 36
#define COPIES 4
#define SLOTS 4
#define LEAST_EPOCHS 2
#define MOST_EPOCHS 8
#define TABLE_HEAD "network,cpus,njobs,batch,epochs,time_s,accuracy,processes,replication,other_load\n"
#define TABLES 20 /* simulated: each with its own settings, noise and jobs. Bounds of 5 vary by 3 points */

extern char **environ;

struct job {
	double arrival_s, slo_s;
	unsigned cpus, epochs;
	bool large;
	/* what came of it */
	bool promised, refused, met, bounded, within;
	double accuracy;
};

struct figures {
	double jobs, promised, kept, feasible, refused, bounded, within, gained, attainable;
};

static double cores(void)
{
	return 2.0; /* simulated */
}

static double batch_of(unsigned i)
{
	return KNOWN_LEAST_BATCH << i;
}

static const char *network_of(bool large)
{
	return large ? "large" : "small";
}

/* ---- jobs and what came of them ---- */

/* Jobs meet now and then, but seldom: they are judged by what each could have had alone. */
static void draw_jobs(const struct known_case *c, uint64_t seed, double on_cores, double gap, struct job *out)
{
	struct rng r = rng_stream(seed, 3);
	double now = 0.0;

	for (size_t i = 0; i < JOBS; i++) {
		struct job *j = &out[i];
		double alone;

		*j = (struct job){ .cpus = 1 + rng_below(&r, 2),
				   .epochs = LEAST_EPOCHS + rng_below(&r, MOST_EPOCHS - LEAST_EPOCHS + 1),
				   .large = rng_below(&r, 2) };
		alone = known_time_s(c, j->large, j->cpus, batch_of(rng_below(&r, KNOWN_BATCHES)), j->epochs,
				     0.0, on_cores);
		j->slo_s = alone * 0.8 * exp(log(2.2 / 0.8) * rng_uniform(&r));
		j->arrival_s = now;
		now -= gap * (c->startup_s + 5.0 * c->scale * (1.0 + 0.5 * c->spins * c->busy)) *
		       log(1.0 - rng_uniform(&r));
	}
}

/* 0: not even alone. */
static double attainable(const struct known_case *c, const struct job *j, double on_cores)
{
	double best = 0.0;

	for (unsigned b = 0; b < KNOWN_BATCHES; b++)
		if (known_time_s(c, j->large, j->cpus, batch_of(b), j->epochs, 0.0, on_cores) <= j->slo_s)
			best = fmax(best, known_accuracy(j->large, batch_of(b), j->epochs));
	return best;
}

static void count(const struct known_case *c, const struct job *job, double on_cores, struct figures *f)
{
	for (size_t i = 0; i < JOBS; i++) {
		const struct job *j = &job[i];
		double best = attainable(c, j, on_cores);

		f->jobs++;
		f->promised += j->promised;
		f->kept += j->promised && j->met;
		f->feasible += best > 0.0;
		f->refused += best > 0.0 && j->refused;
		f->bounded += j->promised && j->bounded;
		f->within += j->promised && j->within;
		f->attainable += best;
		f->gained += j->met ? j->accuracy : 0.0;
	}
}

static void print_head(void)
{
	print_message("# %-28s %5s %9s %9s %9s %9s %14s %9s\n", "case", "jobs", "promised", "kept",
		      "feasible", "refused", "bounds held", "accuracy");
}

static void print_case(const struct known_case *c, const char *how, const struct figures *f)
{
	char name[64], held[32];

	snprintf(name, sizeof name, "%s %s, %g s, %u busy", how, c->spins ? "spins" : "waits",
		 c->startup_s / c->scale, c->busy);
	snprintf(held, sizeof held, "%.0f of %.0f", f->within, f->bounded);
	print_message("# %-28s %5.0f %9.0f %9.0f %9.0f %9.0f %14s %9.3f\n", name, f->jobs, f->promised,
		      f->kept, f->feasible, f->refused, held, f->gained / f->attainable);
}

/* ---- programs ---- */

/* A command of the folder of programs; returns its exit code. */
__attribute__((format(printf, 1, 2))) static int postrider(const char *format, ...)
{
	const char *bin = getenv("BIN");
	struct strbuf command = { 0 };
	char words[2000];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	strbuf_printf(&command, "%s/postrider %s", bin ? bin : "build", words);
	status = system(strbuf_text(&command));
	strbuf_release(&command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void write_text(const char *path, struct strbuf *text)
{
	struct err err = { 0 };

	if (io_write_file(path, strbuf_text(text), text->len, &err))
		fail_msg("%s", err.text);
	strbuf_release(text);
}

/* The README's line, on a machine with so many cores. */
static void train(const char *dir, double on_cores)
{
	if (postrider("train %s/runs.csv -o %s/runs.model --policy postrider --set cores=%g -q >%s/train.txt "
		      "2>&1",
		      dir, dir, on_cores, dir))
		fail_msg("training failed: %s/train.txt", dir);
}

/* ---- simulated ---- */

static void put_row(struct strbuf *out, const struct known_case *c, bool large, unsigned cpus, unsigned njobs,
		    double others, unsigned batch, unsigned epochs, double noise, unsigned replication,
		    double other_load)
{
	double time = known_time_s(c, large, cpus, batch, epochs, others, cores());

	strbuf_printf(out, "%s,%u,%u,%u,%u,%.6f,%.4f,%g,%u,%.3f\n", network_of(large), cpus, njobs, batch,
		      epochs, c->startup_s + (time - c->startup_s) * noise,
		      known_accuracy(large, batch, epochs), cpus + others, replication, other_load);
}

/* The busy processes as `profile` and the daemon see them: an estimate from the kernel's counts. */
static double seen_load(const struct known_case *c, struct rng *r)
{
	return c->busy * exp(KNOWN_SEEN * rng_normal(r));
}

static void shuffle(struct rng *r, unsigned *v, unsigned n)
{
	for (unsigned i = n - 1; i; i--) {
		unsigned k = rng_below(r, i + 1), was = v[i];

		v[i] = v[k];
		v[k] = was;
	}
}

/* What `postrider profile` would have measured. */
static void write_table(const struct known_case *c, uint64_t seed, const char *path)
{
	enum { CPUS, BATCH, EPOCHS, NETWORK, NJOBS, FACTORS };
	unsigned at[FACTORS][SETTINGS];
	struct rng r = rng_stream(seed, 1), load = rng_stream(seed, 4);
	struct strbuf out = { 0 };

	for (int f = 0; f < FACTORS; f++) {
		for (unsigned i = 0; i < SETTINGS; i++)
			at[f][i] = i;
		shuffle(&r, at[f], SETTINGS);
	}
	strbuf_puts(&out, TABLE_HEAD);
	for (unsigned i = 0; i < SETTINGS; i++) {
		unsigned cpus = 1 + at[CPUS][i] * 2 / SETTINGS, njobs = 1 + at[NJOBS][i] * COPIES / SETTINGS;
		unsigned batch = (unsigned)batch_of(at[BATCH][i] * KNOWN_BATCHES / SETTINGS);
		double seen = seen_load(c, &load);

		for (unsigned k = 0; k < njobs; k++)
			put_row(&out, c, at[NETWORK][i] * 2 / SETTINGS, cpus, njobs, cpus * (njobs - 1),
				batch, 2 + 2 * (at[EPOCHS][i] * 4 / SETTINGS),
				exp(KNOWN_NOISE * rng_normal(&r)), 1, seen);
	}
	write_text(path, &out);
}

/* The truth as a table that a measured world is made of: every setting at every load, with its noise. */
static void write_truth(const struct known_case *c, const char *path)
{
	static const double noise[] = { -1.645, -0.674, 0.0, 0.674, 1.645 };
	static const unsigned others[] = { 0, 1, 2, 3, 4, 6 };
	struct strbuf out = { 0 };

	strbuf_puts(&out, TABLE_HEAD);
	for (unsigned i = 0; i < 2 * 2 * KNOWN_BATCHES; i++)
		for (unsigned e = LEAST_EPOCHS; e <= MOST_EPOCHS; e++)
			for (unsigned k = 0; k < 6 * 5 * 2; k++)
				put_row(&out, c, i % 2, 1 + i / 2 % 2, 1 + others[k % 6], others[k % 6],
					(unsigned)batch_of(i / 4), e, exp(KNOWN_NOISE * noise[k / 6 % 5]),
					1 + k / 30, c->busy);
	write_text(path, &out);
}

static void write_trace(const struct known_case *c, uint64_t seed, const struct job *job, const char *path)
{
	struct rng load = rng_stream(seed, 5);
	struct strbuf out = { 0 };

	strbuf_printf(&out, "arrival_s,slo_s,cpus,network,epochs%s\n", c->busy ? ",other_load" : "");
	for (size_t i = 0; i < JOBS; i++) {
		strbuf_printf(&out, "%.6f,%.6f,%u,%s,%u", job[i].arrival_s, job[i].slo_s, job[i].cpus,
			      network_of(job[i].large), job[i].epochs);
		if (c->busy) /* else models have no such column */
			strbuf_printf(&out, ",%.3f", seen_load(c, &load));
		strbuf_puts(&out, "\n");
	}
	write_text(path, &out);
}

static const char *cell(const struct csv *t, size_t row, const char *column)
{
	int at = csv_column(t, column);

	if (at < 0)
		fail_msg("no column %s", column);
	return csv_cell(t, row, (size_t)at);
}

static double number(const struct csv *t, size_t row, const char *column)
{
	double v;

	return text_number(cell(t, row, column), &v) ? v : NAN;
}

static void read_outcomes(const char *path, struct job *job)
{
	struct err err = { 0 };
	struct csv *t;

	if (csv_read_file(path, &t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(t->n_rows, JOBS);
	for (size_t i = 0; i < JOBS; i++) {
		struct job *j = &job[(size_t)number(t, i, "job") - 1];
		double upper = number(t, i, "promised_upper_s"), took = number(t, i, "response_s");

		j->promised = number(t, i, "promised") == 1.0;
		j->refused = !strcmp(cell(t, i, "outcome"), "rejected");
		j->met = !strcmp(cell(t, i, "outcome"), "met");
		j->bounded = !isnan(upper) && !isnan(took);
		j->within = took <= upper;
		j->accuracy = number(t, i, "accuracy");
	}
	csv_free(t);
}

static void replay(const char *dir, const char *policy, uint64_t seed)
{
	char model[300];

	snprintf(model, sizeof model, "--model %s/runs.model", dir);
	if (!strcmp(policy, "greedy-oracle")) /* which knows without one */
		model[0] = '\0';
	if (postrider("replay %s/jobs.csv --policy %s --world measured:%s/truth.csv %s --cluster "
		      "cores=%g,slots=%d "
		      "--seed %llu -o %s/replayed -q >%s/replay.txt 2>&1",
		      dir, policy, dir, model, cores(), SLOTS, (unsigned long long)seed, dir, dir))
		fail_msg("the replay failed: %s/replay.txt", dir);
}

static bool holds(const struct known_case *c, const struct figures *f)
{
	return f->gained / f->attainable >= (c->busy ? 0.8 : 0.92) && f->within >= 0.88 * f->bounded &&
	       f->refused <= 0.1 * f->feasible;
}

/* The first policy is judged by the bars; the second is there to be seen. */
static const char *const policies[] = { "postrider", "postrider:chance=0.5" };
static const char *const how[] = { "simulated", "  chance" };

static bool simulated_case(const struct known_case *c, uint64_t tables)
{
	const char *dir = support_temp_dir();
	struct figures f[2] = { { 0 } };
	struct job job[JOBS];

	for (uint64_t i = 1; i <= tables; i++) {
		uint64_t seed = support_seed(0) + i;

		draw_jobs(c, seed, cores(), c->spins ? 10.0 : 4.0, job);
		write_table(c, seed, support_path(dir, "runs.csv"));
		write_truth(c, support_path(dir, "truth.csv"));
		write_trace(c, seed, job, support_path(dir, "jobs.csv"));
		train(dir, cores());
		for (int k = 0; k < 2; k++) {
			const char *other = k ? NULL : getenv("KNOWN_POLICY");

			replay(dir, other ? other : policies[k], seed);
			read_outcomes(support_path(dir, "replayed/jobs.csv"), job);
			count(c, job, cores(), &f[k]);
		}
	}
	for (int k = 0; k < 2; k++)
		print_case(c, how[k], &f[k]);
	return holds(c, &f[0]);
}

/* "wait:0.5:0", with times that are not scaled. */
static bool parse_case(const char *text, struct known_case *out)
{
	char work[8];

	*out = (struct known_case){ .scale = 1.0 };
	if (sscanf(text, "%7[a-z]:%lf:%u", work, &out->startup_s, &out->busy) != 3 || out->busy > 8)
		return false;
	out->spins = !strcmp(work, "spin");
	return true;
}

TEST(test_simulated_first_days)
{
	const char *asked = getenv("KNOWN_TABLES"), *wanted = getenv("KNOWN_SIMULATED");
	uint64_t tables = asked ? strtoull(asked, NULL, 10) : TABLES;
	char cases[400], *rest;
	unsigned failed = 0;

	if (!tables)
		skip();
	snprintf(cases, sizeof cases, "%s", /* what waits does not mind busy processes */
		 wanted ? wanted
			: "wait:0:0 wait:0.5:0 wait:3:0 wait:10:0 spin:0:0 spin:0:2 spin:0:4 spin:0.5:0 "
			  "spin:0.5:2 spin:0.5:4 spin:3:0 spin:3:2 spin:3:4 spin:10:0 spin:10:2 spin:10:4");
	print_head();
	for (char *one = strtok_r(cases, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
		struct known_case c;

		if (!parse_case(one, &c))
			fail_msg("KNOWN_SIMULATED: %s is no case; write wait:0.5:0", one);
		failed += !simulated_case(&c, tables);
	}
	print_message("# %u cases below a bar: accuracy 0.92 (0.8 beside busy processes), 88 %% of bounds "
		      "held, a tenth of the feasible refused\n",
		      failed);
	assert_int_equal(failed, 0);
}

/* ---- for real ---- */

struct machine { /* processes that live as long as a case */
	pid_t busy[8], daemon;
	unsigned n_busy;
};

static double real_cores(void)
{
	return (double)sysconf(_SC_NPROCESSORS_ONLN);
}

static const char *known_job(void)
{
	const char *build = getenv("BUILD_DIR");

	return support_path(build ? build : "build/plain", "tests/bars/known_job");
}

static pid_t start(const char *program, const char *word, const char *log)
{
	char *const argv[] = { (char *)program, (char *)word, NULL };
	posix_spawn_file_actions_t files;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (posix_spawn(&pid, program, &files, NULL, argv, environ))
		fail_msg("%s does not start", program);
	posix_spawn_file_actions_destroy(&files);
	return pid;
}

static void end(pid_t pid, int signal)
{
	kill(pid, signal);
	waitpid(pid, NULL, 0);
}

static void machine_start(struct machine *m, unsigned busy)
{
	*m = (struct machine){ .n_busy = busy };
	for (unsigned i = 0; i < busy; i++)
		m->busy[i] = start(known_job(), "busy", "/dev/null");
}

static void machine_end(struct machine *m)
{
	for (unsigned i = 0; i < m->n_busy; i++)
		end(m->busy[i], SIGKILL);
	if (m->daemon)
		end(m->daemon, SIGTERM);
	*m = (struct machine){ 0 };
}

static void put_command(struct strbuf *out, const struct known_case *c)
{
	strbuf_printf(out,
		      "[\"%s\", \"{network}\", \"{batch}\", \"{epochs}\", \"{cpus}\", \"{seed}\", \"%g\", "
		      "\"%g\", \"%s\"]",
		      known_job(), c->startup_s, c->scale, c->spins ? "spin" : "wait");
}

static void write_design(const struct known_case *c, const char *path)
{
	struct strbuf out = { 0 };

	strbuf_printf(
		&out,
		"{\"factors\": {\"cpus\": [1, 2], \"batch\": [16, 32, 64, 128, 256], \"epochs\": [2, 4, 6, "
		"8],\n\"network\": [\"small\", \"large\"], \"njobs\": [1, 2, 3, 4]},\n\"design\": "
		"\"lhs:%d\", \"result\": {\"accuracy\": \"accuracy\"},\n\"command\": ",
		SETTINGS);
	put_command(&out, c);
	strbuf_puts(&out, "}\n");
	write_text(path, &out);
}

static void write_config(const struct known_case *c, const char *dir)
{
	struct strbuf out = { 0 };

	strbuf_printf(&out,
		      "{\"socket\": \"%s/sock\", \"state_dir\": \"%s/state\", \"model\": \"%s/runs.model\", "
		      "\"slots\": %d,\n\"types\": {\"known\": {\"argv\": ",
		      dir, dir, dir, SLOTS);
	put_command(&out, c);
	strbuf_puts(&out,
		    ",\n\"params\": {\"network\": {\"kind\": \"word\", \"required\": true}, \"epochs\": "
		    "{\"kind\": \"integer\", \"required\": true}},\n\"cpus\": {\"min\": 1, \"max\": 2}, "
		    "\"batches\": [16, 32, 64, 128, 256]}}}\n");
	write_text(support_path(dir, "config.json"), &out);
}

static void sleep_until(double at_s)
{
	struct timespec t = { (time_t)at_s, (long)(1e9 * (at_s - (double)(time_t)at_s)) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void start_daemon(struct machine *m, const char *dir)
{
	const char *bin = getenv("BIN");
	char option[400];

	setenv("POSTRIDER_SOCKET", support_path(dir, "sock"), 1);
	snprintf(option, sizeof option, "--config=%s/config.json", dir);
	m->daemon = start(support_path(bin ? bin : "build", "postriderd"), option,
			  support_path(dir, "daemon.log"));
	for (int i = 0; i < 100 && postrider("stats -q >/dev/null 2>&1"); i++)
		usleep(100000);
}

static void submit_all(const struct job *job)
{
	double begin = now_s();

	for (size_t i = 0; i < JOBS; i++) {
		sleep_until(begin + job[i].arrival_s);
		postrider("submit known --set network=%s --set epochs=%u --cpus %u --slo %.3fs -q >/dev/null "
			  "2>&1",
			  network_of(job[i].large), job[i].epochs, job[i].cpus, job[i].slo_s);
	}
	for (int i = 0; i < 600; i++) {
		if (!postrider("list -q --all --state queued,running 2>/dev/null | { ! grep -q .; }"))
			break;
		usleep(100000);
	}
}

static void read_job(const struct json *v, struct job *job)
{
	double id = json_number(json_get(v, "id"), json_number(json_get(v, "job"), NAN));
	double upper = json_number(json_get(v, "upper_s"), NAN);
	double took = json_number(json_get(v, "response_s"), NAN);
	const char *verdict = json_string(json_get(v, "verdict"), "");
	struct job *j;

	if (isnan(id))
		id = atof(json_string(json_get(v, "job"), "nan"));
	if (!(id >= 1.0 && id <= JOBS))
		fail_msg("job %g?", id);
	j = &job[(size_t)id - 1];
	j->promised = !strcmp(verdict, "promised");
	j->refused = !strcmp(json_string(json_get(v, "state"), ""), "rejected");
	j->met = !strcmp(json_string(json_get(v, "slo_outcome"), ""), "met");
	j->bounded = !isnan(upper) && !isnan(took);
	j->within = took <= upper;
	j->accuracy = json_number(json_get(v, "accuracy"), 0.0);
}

static void read_list(const char *path, struct job *job)
{
	struct err err = { 0 };
	size_t len, n = 0;
	char *text, *rest;

	if (io_read_file(path, 1 << 24, &text, &len, &err))
		fail_msg("%s", err.text);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), n++) {
		struct json *v;

		if (json_parse("list", line, strlen(line), &v, &err))
			fail_msg("%s", err.text);
		read_job(v, job);
		json_free(v);
	}
	free(text);
	assert_int_equal(n, JOBS);
}

static bool real_case(const struct known_case *c, unsigned number_of_case)
{
	const char *keep = getenv("KNOWN_KEEP");
	char dir[300];
	struct job job[JOBS];
	struct figures f = { 0 };
	struct machine m;
	double began = now_s();

	snprintf(dir, sizeof dir, "%s/%u", keep ? keep : support_temp_dir(), number_of_case);
	assert_int_equal(mkdir(dir, 0700), 0);
	draw_jobs(c, support_seed(1), real_cores(), c->spins ? 6.0 : 4.0, job);
	write_design(c, support_path(dir, "design.json"));
	write_config(c, dir);
	machine_start(&m, c->busy);
	if (postrider("profile %s/design.json -o %s/runs.csv --restart -q >%s/profile.txt 2>&1", dir, dir,
		      dir)) {
		machine_end(&m);
		fail_msg("measuring failed: %s/profile.txt", dir);
	}
	train(dir, real_cores());
	start_daemon(&m, dir);
	submit_all(job);
	postrider("list --all --jsonl >%s/list.jsonl 2>/dev/null", dir);
	machine_end(&m);
	read_list(support_path(dir, "list.jsonl"), job);
	count(c, job, real_cores(), &f);
	print_case(c, "real", &f);
	print_message("#   times at %g, %.0f s\n", c->scale, now_s() - began);
	return holds(c, &f);
}

TEST(test_real_first_days)
{
	const char *wanted = getenv("KNOWN_REAL"), *scale = getenv("KNOWN_SCALE");
	char cases[200], *rest;
	unsigned failed = 0, n = 0;

	snprintf(cases, sizeof cases, "%s", wanted ? wanted : "wait:0.5:0 wait:3:0 spin:0:2");
	print_head();
	for (char *one = strtok_r(cases, " ", &rest); one; one = strtok_r(NULL, " ", &rest), n++) {
		struct known_case c;

		if (!parse_case(one, &c))
			fail_msg("KNOWN_REAL: %s is no case; write wait:0.5:0", one);
		/* Shorter than the truth, to be done in minutes; what a start takes weighs the more. */
		c.scale = scale ? atof(scale) : c.startup_s >= 3.0 || c.spins ? 0.06 : 0.1;
		assert_true(c.scale > 0.0 && c.scale <= 1.0);
		c.startup_s *= c.scale;
		failed += !real_case(&c, n);
	}
	if (n)
		print_message("# %u of %u below a bar\n", failed, n);
	assert_int_equal(failed, 0);
}
