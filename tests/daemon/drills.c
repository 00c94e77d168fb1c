/* The drills of `make drill`: kill the daemon at random moments, restart it, count what was lost or run
 * twice. */
#include "tests/daemon/drills.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "tests/daemon/harness.h"
#include "tests/daemon/load.h"

#define START_BAR_S 1.0

/* ---- what they share ---- */

static void set_up(struct fixture *y, const struct drill *d, const char *settings)
{
	fixture_open(y);
	if (d->model)
		fixture_train(y);
	fixture_configure(y, settings, "");
}

/* Starts the daemon; returns the time until its greeting. What the two of us waited for a core is not in
 * it: that is other work's doing. */
static double start(struct fixture *y)
{
	double before = without_core_s(getpid());
	double took_s = fixture_start(y);
	double others_s = without_core_s(y->pid) + without_core_s(getpid()) - before;

	return others_s < took_s ? took_s - others_s : 0.0;
}

static int compare_numbers(const void *a_, const void *b_)
{
	double a = *(const double *)a_, b = *(const double *)b_;

	return (a > b) - (a < b);
}

static unsigned long tell_starts(const struct drill *d, double *start_s, unsigned n, const char *what)
{
	unsigned long late = 0;

	qsort(start_s, n, sizeof *start_s, compare_numbers);
	for (unsigned i = 0; i < n; i++)
		late += start_s[i] >= START_BAR_S;
	fprintf(d->to, "%s: start-up until the greeting: median %.1f ms, longest %.1f ms\n", what,
		start_s[n / 2] * 1e3, start_s[n - 1] * 1e3);
	if (late && !sanitized()) {
		fprintf(d->to, "%lu of %u starts took longer than %g s\n", late, n, START_BAR_S);
		return late;
	}
	return 0;
}

/* Every submission has its answer, every job its end; then the books are compared. */
static unsigned long settle(const struct drill *d, struct fixture *y, struct load *l, const char *what)
{
	struct load_books b;
	unsigned long broken;
	struct talk *t;

	load_finish(l);
	t = talk_open(y);
	await_idle(t, 10 * PATIENCE_S);
	talk_close(t);
	broken = fixture_stop(y, SIGTERM) != 0;
	if (broken)
		fprintf(d->to, "the last SIGTERM did not end in a clean exit\n");
	broken += load_check(l, &b, d->to);
	fprintf(d->to,
		"%s: %lu jobs acknowledged (%lu retries, %lu duplicates answered, %lu cancels): %lu done, "
		"%lu cancelled, "
		"%lu rejected, %lu failed, %lu lost; %lu promises broken\n",
		what, b.submitted, b.retried, b.duplicates, b.cancels, b.done, b.cancelled, b.rejected,
		b.failed, b.lost, broken);
	load_free(l);
	fixture_close(y);
	return broken;
}

/* ---- kill -9 ---- */

/* The command line of a process, its words with blanks between them; "": there is none. */
static void command_of(const char *pid, char *out, size_t size)
{
	char path[64];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%.20s/cmdline", pid);
	f = fopen(path, "r");
	if (f) {
		n = fread(out, 1, size - 1, f);
		fclose(f);
	}
	out[n] = 0;
	for (size_t i = 0; i + 1 < n; i++)
		out[i] = out[i] ? out[i] : ' ';
}

/* The job whose supervisor, or whose own process, has this command line; 0: it is of no job of this daemon.
 * */
static uint64_t job_of(const struct fixture *y, const char *command, bool supervisor)
{
	char mark[256];
	const char *at;

	if (!supervisor) { /* its shell: "echo B ID NAME >>FILE" */
		at = strstr(command, "echo B ");
		return at && strstr(command, y->runs) && !strstr(command, "--dir=")
			       ? strtoull(at + strlen("echo B "), NULL, 10)
			       : 0;
	}
	snprintf(mark, sizeof mark, "--dir=%.200s/jobs/", y->state);
	at = strstr(command, mark);
	return at ? strtoull(at + strlen(mark), NULL, 10) : 0;
}

/* Kills a supervisor, or a process of a job, whichever comes first behind a random place in /proc. False:
 * none was there. */
static bool kill_other(const struct fixture *y, struct load *l, struct rng *rng, bool supervisor)
{
	char command[4096];
	pid_t found[256];
	uint64_t job[256];
	size_t n = 0, pick;
	struct dirent *e;
	DIR *proc = opendir("/proc");

	while (proc && n < 256 && (e = readdir(proc))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		command_of(e->d_name, command, sizeof command);
		job[n] = job_of(y, command, supervisor);
		found[n] = (pid_t)strtol(e->d_name, NULL, 10);
		n += job[n] != 0;
	}
	if (proc)
		closedir(proc);
	if (!n)
		return false;
	pick = rng_below(rng, (uint32_t)n);
	load_hit(l, job[pick]); /* first: it may end before we are done here */
	return kill(found[pick], SIGKILL) == 0;
}

unsigned long drill_kills(const struct drill *d, unsigned kills)
{
	const struct load_params load = {
		.clients = 6, .pause_s = 0.06, .long_share = 0.15, .cancel_share = 0.05, .seed = d->seed
	};
	struct rng rng = rng_stream(d->seed, 1000);
	double *start_s = mem_array(kills + 1, sizeof *start_s);
	unsigned n_starts = 0, early = 0, supervisors = 0, jobs = 0;
	unsigned long broken;
	struct load *l;
	struct fixture y;

	if (!start_s)
		die("out of memory");
	set_up(&y, d, "\"slots\":24,\"max_queued\":2000,\"max_finished\":500,\"kill_grace_s\":2,");
	start_s[n_starts++] = start(&y);
	l = load_start(&y, &load);
	for (unsigned i = 0; i < kills; i++) {
		double u = rng_uniform(&rng), victim = rng_uniform(&rng);

		if (victim < 0.5) {
			bool supervisor = victim < 0.25;

			sleep_s(0.1 * u);
			if (kill_other(&y, l, &rng, supervisor)) {
				supervisors += supervisor;
				jobs += !supervisor;
			} else {
				i--; /* a while later there will be one */
			}
			continue;
		}
		if (rng_uniform(&rng) <
		    0.15) { /* while it starts: the one that restored must be restorable */
			sleep_s(0.1 * u);
			fixture_stop(&y, SIGKILL);
			fixture_spawn(&y);
			sleep_s(0.04 * rng_uniform(&rng));
			early++;
		} else {
			sleep_s(0.005 + 0.7 * u * u); /* many soon after the start, where much is going on */
		}
		fixture_stop(&y, SIGKILL);
		start_s[n_starts++] = start(&y);
	}
	fprintf(d->to,
		"kill -9: %u kills: the daemon %u times (%u of them twice within a start), %u supervisors, "
		"%u "
		"jobs\n",
		kills, kills - supervisors - jobs, early, supervisors, jobs);
	broken = tell_starts(d, start_s, n_starts, "kill -9");
	broken += settle(d, &y, l, "kill -9");
	free(start_s);
	return broken;
}

/* ---- SIGTERM and SIGHUP ---- */

struct reload {
	const char *settings, *types, *policy; /* of the configuration */
	const char *complaint; /* in the log; NULL: it is a good one */
};

static const char usual[] = "\"slots\":24,\"max_queued\":2000,\"max_finished\":500,\"kill_grace_s\":2,";

/* Each kind of mistake; `slots` 7 would show if any of them took effect. */
static const struct reload bad[] = {
	{ "\"slots\":7,\"max_qeued\":3,", "", NULL, "max_queued" },
	{ "\"slots\":7,\"seed\":-1,", "", NULL, "seed" },
	{ "\"slots\":7,", ",\"x\":{\"argv\":[\"/bin/true\",\"{nonsense}\"]}", NULL, "nonsense" },
	{ "\"slots\":7,\"socket_group\":\"there-is-no-such-group\",", "", NULL, "socket_group" },
	{ "\"slots\":7,\"durability\":\"none\",", "", NULL, "durability" },
	{ "\"slots\":7,]", "", NULL, "config.json:1:" },
};
enum { N_BAD = sizeof bad / sizeof bad[0] };

static size_t count_in_log(const struct fixture *y, const char *text)
{
	char command[256], answer[32] = "";
	FILE *p;

	snprintf(command, sizeof command, "grep -c -- '%s' '%s'", text, y->log);
	p = popen(command, "r");
	if (!p || !fgets(answer, sizeof answer, p))
		answer[0] = 0;
	if (p)
		pclose(p);
	return strtoul(answer, NULL, 10);
}

static bool await_log(const struct fixture *y, const char *text, size_t more_than)
{
	double until = now_s() + PATIENCE_S;

	while (now_s() < until) {
		if (count_in_log(y, text) > more_than)
			return true;
		sleep_s(0.005);
	}
	return false;
}

static unsigned long hang_up_badly(const struct drill *d, struct fixture *y, const struct reload *r)
{
	size_t before = count_in_log(y, "stays as it was");
	struct talk *t;
	double slots;

	fixture_configure(y, r->settings, r->types);
	kill(y->pid, SIGHUP);
	if (!await_log(y, "stays as it was", before)) {
		fprintf(d->to, "a bad configuration (%s) was not refused in the log\n", r->complaint);
		return 1;
	}
	t = talk_open(y);
	slots = stat_of(t, "queue.slots");
	talk_close(t);
	if (slots == 7.0 || !fixture_logged(y, r->complaint)) {
		fprintf(d->to, "a bad configuration (%s): %s\n", r->complaint,
			slots == 7.0 ? "took effect" : "the log does not say why");
		return 1;
	}
	return 0;
}

static unsigned long hang_up_well(const struct drill *d, struct fixture *y, unsigned slots)
{
	size_t before = count_in_log(y, "reloaded: ");
	char settings[160];
	struct talk *t;
	double now;

	snprintf(settings, sizeof settings,
		 "\"slots\":%u,\"max_queued\":2000,\"max_finished\":500,\"kill_grace_s\":2,", slots);
	fixture_configure(y, settings, "");
	kill(y->pid, SIGHUP);
	if (!await_log(y, "reloaded: ", before)) {
		fprintf(d->to, "a good configuration was not taken\n");
		return 1;
	}
	t = talk_open(y);
	now = stat_of(t, "queue.slots");
	talk_close(t);
	if (now != slots)
		fprintf(d->to, "a good configuration was taken, and there are %g slots, not %u\n", now,
			slots);
	return now != slots;
}

unsigned long drill_signals(const struct drill *d, unsigned cycles)
{
	const struct load_params load = {
		.clients = 4, .pause_s = 0.06, .long_share = 0.15, .cancel_share = 0.05, .seed = d->seed
	};
	struct rng rng = rng_stream(d->seed, 2000);
	double *start_s = mem_array(cycles + 1, sizeof *start_s);
	unsigned long broken = 0, unclean = 0;
	unsigned n_starts = 0;
	struct load *l;
	struct fixture y;
	int code;

	if (!start_s)
		die("out of memory");
	set_up(&y, d, usual);
	start_s[n_starts++] = start(&y);
	l = load_start(&y, &load);
	for (unsigned i = 0; i < cycles; i++) {
		sleep_s(0.15 * rng_uniform(&rng));
		broken += hang_up_badly(d, &y, &bad[i % N_BAD]);
		broken += hang_up_well(d, &y, 20 + i % 5);
		sleep_s(0.15 * rng_uniform(&rng));
		if (i % 4 ==
		    3) /* one that is leaving hears it a second time; in its last moment that may end it */
			kill(y.pid, SIGTERM);
		code = fixture_stop(&y, SIGTERM);
		unclean += code != 0 && !(code == -SIGTERM && i % 4 == 3);
		start_s[n_starts++] = start(&y);
	}
	if (unclean)
		fprintf(d->to, "SIGTERM: %lu exits were not clean\n", unclean);
	fprintf(d->to, "SIGTERM and SIGHUP: %u cycles, each with a bad and a good configuration\n", cycles);
	broken += unclean + tell_starts(d, start_s, n_starts, "SIGTERM");
	broken += settle(d, &y, l, "SIGTERM and SIGHUP");
	free(start_s);
	return broken;
}

/* ---- starting with many jobs ---- */

static void submit_many(struct talk *t, unsigned jobs)
{
	unsigned said = 0, heard = 0;

	while (heard < jobs) {
		struct json *v;

		for (; said < jobs && said < heard + 200; said++) {
			if (!talk_say(t,
				      "{\"op\":\"submit\",\"type\":\"line\",\"key\":\"s-%u\",\"params\":{"
				      "\"seconds\":30}}",
				      said))
				die("the daemon went away after %u jobs", heard);
		}
		v = talk_hear_json(t, PATIENCE_S);
		if (!v || !is_ok(v))
			die("submission %u: %s", heard, v ? text_at(v, "error.message") : "no answer");
		json_free(v);
		heard++;
	}
}

static unsigned long start_again(const struct drill *d, struct fixture *y, int signal, unsigned jobs)
{
	double took_s, live;
	struct talk *t;
	unsigned long broken;
	char what[64];

	fixture_stop(y, signal);
	took_s = start(y);
	t = talk_open(y);
	live = stat_of(t, "jobs.queued") + stat_of(t, "jobs.running");
	fprintf(d->to, "start-up after %s: %.0f live jobs, %.1f MB\n",
		signal == SIGKILL ? "kill -9" : "SIGTERM", live, rss_mb(y->pid));
	talk_close(t);
	snprintf(what, sizeof what, "%u queued jobs", jobs);
	broken = tell_starts(d, &took_s, 1, what);
	if (live != jobs) {
		fprintf(d->to, "%u jobs were acknowledged, and %g live after a restart\n", jobs, live);
		broken++;
	}
	return broken;
}

unsigned long drill_startup(const struct drill *d, unsigned jobs)
{
	unsigned long broken = 0;
	struct fixture y;
	struct talk *t;
	double began;

	set_up(&y, d, "\"slots\":2,\"max_queued\":20000,\"kill_grace_s\":1,");
	fixture_start(&y);
	t = talk_open(&y);
	began = now_s();
	submit_many(t, jobs);
	fprintf(d->to, "%u jobs submitted in %.2f s (%.0f a second); longest turn of the loop %.1f ms\n",
		jobs, now_s() - began, jobs / (now_s() - began), stat_of(t, "loop.max_block_ms"));
	talk_close(t);
	for (int i = 0; i < 2; i++) {
		broken += start_again(d, &y, SIGKILL, jobs);
		broken += start_again(d, &y, SIGTERM, jobs);
	}
	fixture_close(&y);
	return broken;
}

/* ---- soak ---- */

#define SOAK_WINDOW 64 /* advised jobs under way */
#define FLAT_SHARE 0.02 /* of memory, after the first fifth of 100,000 jobs */
#define FLAT_SHORT_SHARE 0.03 /* of fewer, after the first half: the heap has to see every size first */
#define LONG_SOAK 100000

struct soak {
	const struct drill *d;
	struct fixture y;
	struct talk *t;
	unsigned done, total, next_note;
	/* The memory of a part is the mean over its windows, because what is free in the heap swings by some
	 * per cent from one to the next. */
	double sum_mb;
	unsigned windows;
	double first_mb, last_mb; /* of the first part that counts, and of the last */
	size_t first_fds, last_fds;
	bool measured;
};

static void note(struct soak *s)
{
	s->last_mb = s->sum_mb / s->windows;
	s->sum_mb = s->windows = 0;
	s->last_fds = count_fds(s->y.pid);
	fprintf(s->d->to, "soak: %7u jobs: %7.2f MB, %zu descriptors, longest turn %.1f ms\n", s->done,
		s->last_mb, s->last_fds, stat_of(s->t, "loop.max_block_ms"));
	fflush(s->d->to);
	if (!s->measured && s->done >= s->total / (s->total >= LONG_SOAK ? 5 : 2)) {
		s->measured = true;
		s->first_mb = s->last_mb;
		s->first_fds = s->last_fds;
	}
}

/* A window of advised jobs: submitted, started, finished, each step pipelined. */
static void advised_window(struct soak *s, unsigned n)
{
	static const char *const op[] = { "started", "finished" };
	uint64_t id[SOAK_WINDOW];

	for (unsigned i = 0; i < n; i++) {
		if (!talk_say(s->t, "{\"op\":\"submit\",\"type\":\"advised\",\"mode\":\"advise\"}"))
			die("the daemon went away");
	}
	for (unsigned i = 0; i < n; i++) {
		struct json *v = talk_hear_json(s->t, PATIENCE_S);

		if (!v || !is_ok(v))
			die("submit: %s", v ? text_at(v, "error.message") : "no answer");
		id[i] = strtoull(text_at(v, "job.job"), NULL, 10);
		json_free(v);
	}
	for (int step = 0; step < 2; step++) {
		for (unsigned i = 0; i < n; i++) {
			if (!talk_say(s->t, "{\"op\":\"%s\",\"job\":\"%llu\"}", op[step],
				      (unsigned long long)id[i]))
				die("the daemon went away");
		}
		for (unsigned i = 0; i < n; i++) {
			struct json *v = talk_hear_json(s->t, PATIENCE_S);

			if (!v || !is_ok(v))
				die("%s: %s", op[step], v ? text_at(v, "error.message") : "no answer");
			json_free(v);
		}
	}
	s->done += n;
}

/* Runs a job and asks the database about it: descriptors that are opened for the first use are no leak. */
static void warm_up(struct soak *s)
{
	struct json *v = talk_ask(s->t, "{\"op\":\"submit\",\"type\":\"line\"}");

	if (!is_ok(v))
		die("submit: %s", text_at(v, "error.message"));
	await_idle(s->t, 10 * PATIENCE_S);
	json_free(talk_ask(s->t, "{\"op\":\"explain\",\"job\":\"%s\"}", text_at(v, "job.job")));
	json_free(v);
}

static unsigned long soak_real(struct soak *s, unsigned real)
{
	double began = now_s(), before_mb = rss_mb(s->y.pid);
	size_t before_fds, after_fds;

	warm_up(s);
	before_fds = count_fds(s->y.pid);
	for (unsigned i = 0; i < real; i++) {
		struct json *v;

		if (i >= 200 && i % 50 == 0) {
			while (stat_of(s->t, "queue.length") > 100)
				sleep_s(0.02);
		}
		v = talk_ask(s->t, "{\"op\":\"submit\",\"type\":\"line\"}");
		if (!is_ok(v))
			die("submit: %s", text_at(v, "error.message"));
		json_free(v);
	}
	await_idle(s->t, 10 * PATIENCE_S);
	after_fds = count_fds(s->y.pid);
	fprintf(s->d->to,
		"soak: %u real processes in %.1f s: %.2f MB before, %.2f MB after; %zu descriptors before, "
		"%zu after; "
		"longest turn %.1f ms\n",
		real, now_s() - began, before_mb, rss_mb(s->y.pid), before_fds, after_fds,
		stat_of(s->t, "loop.max_block_ms"));
	return after_fds > before_fds;
}

unsigned long drill_soak(const struct drill *d, unsigned advised, unsigned real)
{
	struct soak s = { .d = d, .total = advised, .next_note = advised / 10 };
	double flat = advised >= LONG_SOAK ? FLAT_SHARE : FLAT_SHORT_SHARE;
	unsigned long broken = 0;
	double began;

	set_up(&s.y, d, "\"slots\":64,\"max_finished\":1000,\"max_queued\":1000,");
	fixture_start(&s.y);
	s.t = talk_open(&s.y);
	broken += soak_real(&s, real);
	began = now_s();
	while (s.done < advised) {
		advised_window(&s, advised - s.done < SOAK_WINDOW ? advised - s.done : SOAK_WINDOW);
		s.sum_mb += rss_mb(s.y.pid);
		s.windows++;
		if (s.done >= s.next_note) {
			note(&s);
			s.next_note += advised / 10;
		}
	}
	fprintf(d->to,
		"soak: %u advised jobs in %.1f s (%.0f a second): %+.2f %% of memory, %+ld descriptors since "
		"the first part\n",
		advised, now_s() - began, advised / (now_s() - began), (s.last_mb / s.first_mb - 1.0) * 100.0,
		(long)s.last_fds - (long)s.first_fds);
	if (s.last_fds != s.first_fds) {
		fprintf(d->to, "soak: the descriptors are not flat\n");
		broken++;
	}
	if (fabs(s.last_mb / s.first_mb - 1.0) > flat && !sanitized()) {
		fprintf(d->to, "soak: memory is not flat within %g %%\n", flat * 100.0);
		broken++;
	}
	talk_close(s.t);
	if (fixture_stop(&s.y, SIGTERM) != 0) {
		fprintf(d->to, "soak: SIGTERM did not end in a clean exit\n");
		broken++;
	}
	fixture_close(&s.y);
	return broken;
}
