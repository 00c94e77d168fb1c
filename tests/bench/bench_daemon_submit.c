/* Bench of durable submits: a daemon that holds 10,000 jobs takes 500 more a second, each answered when it is
 * on disk. Requests leave at times fixed beforehand, as they would from many users who know nothing of each
 * other, and each latency counts from its time: a daemon that stalls is not asked less often for it. */
#define _GNU_SOURCE
#include "tests/bench/bench_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"

#define HELD 10000
#define PER_SECOND 500.0
#define SUSTAINED 0.99 /* of the rate: the last reply comes a little after the last request */
#define CONNECTIONS 8
#define STALL_S 10.0
#define SYNCS 500

struct load { /* n requests and when they are due, in seconds from start_s */
	size_t n;
	double *due_s, *took_s;
	double start_s, end_s;
	size_t errors;
	char first_error[160];
	struct bench_client client[CONNECTIONS];
	size_t waiting[CONNECTIONS]; /* the id of the next reply of each: replies come in the order of the
		                  requests */
};

static void note_error(struct load *l, const char *reply, size_t len)
{
	if (!l->errors++)
		snprintf(l->first_error, sizeof l->first_error, "%.*s", (int)(len < 150 ? len : 150), reply);
}

/* ---- the disk ---- */

/* What the disk takes to make a few pages durable, which no daemon can beat: p50 and p99. */
static int measure_disk(const char *dir, double *out_p50_s, double *out_p99_s, struct err *err)
{
	static const char pages[16384];
	char path[512];
	double took_s[SYNCS];
	int fd, status = 0;

	snprintf(path, sizeof path, "%s/disk", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_fail(err, ERR_IO, "cannot write %s: %s", path, strerror(errno));
	for (size_t i = 0; !status && i < SYNCS; i++) {
		double start_s = bench_now_s();

		if (write(fd, pages, sizeof pages) != sizeof pages || fdatasync(fd))
			status = err_fail(err, ERR_IO, "cannot write %s: %s", path, strerror(errno));
		took_s[i] = bench_now_s() - start_s;
	}
	close(fd);
	unlink(path);
	*out_p50_s = stats_percentile(took_s, SYNCS, 50);
	*out_p99_s = stats_percentile(took_s, SYNCS, 99);
	return status;
}

/* ---- the load ---- */

static void load_release(struct load *l)
{
	for (size_t i = 0; i < CONNECTIONS; i++)
		bench_client_close(&l->client[i]);
	free(l->due_s);
	free(l->took_s);
}

static int load_make(struct load *l, const struct bench_site *s, double seconds, struct err *err)
{
	struct rng r = rng_stream(1, 0);
	double at_s = 0.0, stretch;
	int status = 0;

	*l = (struct load){ .n = (size_t)(PER_SECOND * seconds) };
	for (size_t i = 0; i < CONNECTIONS; i++) {
		l->client[i].fd = -1;
		l->waiting[i] = i;
	}
	l->due_s = mem_array(l->n, sizeof *l->due_s);
	l->took_s = mem_array(l->n, sizeof *l->took_s);
	if (!l->due_s || !l->took_s)
		status = err_fail(err, ERR_NOMEM, "no memory for %zu requests", l->n);
	for (size_t i = 0; !status && i < CONNECTIONS; i++)
		status = bench_site_connect(s, &l->client[i], err);
	if (status) {
		load_release(l);
		return status;
	}
	/* Gaps of a Poisson stream, which has bursts; the last request is due at the very end, so that the
	 * rate is what it says. */
	for (size_t i = 0; i < l->n; i++)
		l->due_s[i] = at_s += rng_exponential(&r);
	stretch = seconds / at_s;
	for (size_t i = 0; i < l->n; i++)
		l->due_s[i] *= stretch;
	return 0;
}

/* Takes what has come on one connection, and adds the number of replies to *io_done. */
static int take_replies(struct load *l, size_t which, size_t *io_done, struct err *err)
{
	struct bench_client *c = &l->client[which];
	const char *reply;
	size_t len;
	int status = bench_client_read(c, false, err);
	double now_s = bench_now_s();

	while (!status && bench_client_take(c, &reply, &len)) {
		size_t id = l->waiting[which];

		l->waiting[which] += CONNECTIONS;
		if (id >= l->n)
			return err_fail(err, ERR_FORMAT, "a reply to nothing: %.100s", reply);
		l->took_s[id] = now_s - l->start_s - l->due_s[id];
		if (!bench_is_promised(reply, len, id))
			note_error(l, reply, len);
		++*io_done;
	}
	return status;
}

/* Waits for a reply, or until the next request is due. */
static int wait_for(struct load *l, double seconds, struct pollfd *p, struct err *err)
{
	struct timespec t = { .tv_sec = (time_t)seconds,
			      .tv_nsec = (long)(1e9 * (seconds - floor(seconds))) };

	for (size_t i = 0; i < CONNECTIONS; i++)
		p[i] = (struct pollfd){ .fd = l->client[i].fd, .events = POLLIN };
	if (ppoll(p, CONNECTIONS, &t, NULL) < 0 && errno != EINTR)
		return err_fail(err, ERR_IO, "cannot wait for replies: %s", strerror(errno));
	return 0;
}

static int load_run(struct load *l, struct err *err)
{
	struct pollfd p[CONNECTIONS];
	size_t sent = 0, done = 0;
	char text[256];
	int status = 0;
	double last_s;

	l->start_s = last_s = bench_now_s();
	while (!status && done < l->n) {
		double now_s = bench_now_s();
		size_t before = done;

		for (; !status && sent < l->n && l->start_s + l->due_s[sent] <= now_s; sent++)
			status = bench_client_send(&l->client[sent % CONNECTIONS], text,
						   bench_write_submit(text, sizeof text, sent), err);
		if (status)
			break;
		now_s = bench_now_s();
		status = wait_for(l, sent < l->n ? fmax(l->start_s + l->due_s[sent] - now_s, 0.0) : STALL_S,
				  p, err);
		for (size_t i = 0; !status && i < CONNECTIONS; i++)
			if (p[i].revents)
				status = take_replies(l, i, &done, err);
		now_s = bench_now_s();
		if (done > before)
			last_s = now_s;
		else if (!status && now_s - last_s > STALL_S)
			status = err_fail(err, ERR_IO, "no reply for %g s; %zu of %zu are missing", STALL_S,
					  sent - done, sent);
	}
	l->end_s = bench_now_s();
	return status;
}

/* ---- the result ---- */

/* What a submit of Slurm's takes; it answers before the job is on disk (its state is saved seconds later).
 * Only told, so that a cluster that does not start here is no failure of ours. */
static void add_slurm(const struct bench_env *env, struct bench_result *out)
{
	char script[512];
	const char *const argv[] = { "/bin/sh", script, "200", NULL };
	struct json *answer = NULL;
	struct err err = { 0 };
	int status;

	snprintf(script, sizeof script, "%s/slurm_peer.sh", env->peers);
	bench_say("slurm: 200 held jobs by sbatch, then 200 eight at a time");
	status = bench_run_json(argv, &answer, &err);
	if (status == -ERR_NOTFOUND)
		bench_what(out, "; slurm is not installed (make bench-peers)");
	else if (status)
		bench_what(out, "; slurm did not work: %s", err.text);
	else
		bench_what(out,
			   "; slurm (not durable at once): %.0f sbatch/s one by one, %.0f/s eight at a time",
			   json_number(json_get(answer, "per_second"), NAN),
			   json_number(json_get(answer, "parallel_per_second"), NAN));
	json_free(answer);
}

static void judge(struct bench_result *out, struct load *l, const struct json *stats, double cpu_s,
		  const struct bench_site *s)
{
	double rate = (double)l->n / (l->end_s - l->start_s);
	double queued = bench_stat(stats, "jobs", "queued"), max_s = 0.0, p50_s, p99_s;
	struct statfs fs;

	for (size_t i = 0; i < l->n; i++)
		max_s = fmax(max_s, l->took_s[i]);
	p50_s = stats_percentile(l->took_s, l->n, 50);
	p99_s = stats_percentile(l->took_s, l->n, 99);
	out->ours = 1e-3 * bench_stat(stats, "submit", "p99_us");
	out->holds = out->ours <= out->bar && rate >= SUSTAINED * PER_SECOND && !l->errors &&
				     queued == HELD + (double)l->n
			     ? HOLDS_YES
			     : HOLDS_NO;
	bench_what(
		out,
		"durable submits, %.0f/s at random times over %.0f s on %d connections, %d jobs held at "
		"first and %.0f at the end, p99 of our own processing (processor time of the loop for one, "
		"without the commit); from the time each was due to its reply: p50 %.3g ms, p99 %.3g ms, max "
		"%.3g ms; %zu errors, daemon %.0f MB, %.3g ms of processor time of all threads a submit",
		rate, l->end_s - l->start_s, CONNECTIONS, HELD, queued, 1e3 * p50_s, 1e3 * p99_s, 1e3 * max_s,
		l->errors, bench_server_rss_mb(&s->server), 1e3 * cpu_s / (double)l->n);
	bench_what(out,
		   "; commits: mean %.2g ms, max %.3g ms; longest the loop was away %.3g ms, busy %.3g ms",
		   bench_stat(stats, "store", "mean_commit_ms"), bench_stat(stats, "store", "max_commit_ms"),
		   bench_stat(stats, "loop", "max_block_ms"), bench_stat(stats, "loop", "max_busy_ms"));
	if (!statfs(s->dir, &fs) && fs.f_type == TMPFS_MAGIC)
		bench_what(out, "; on tmpfs, so nothing was waited for: set TMPDIR to a disk");
	if (l->errors)
		bench_what(out, "; first error: %s", l->first_error);
}

static int measure(struct bench_site *s, double seconds, struct bench_result *out, struct err *err)
{
	struct json *stats = NULL;
	struct load load;
	double cpu_s, disk_p50_s = NAN, disk_p99_s = NAN;
	int status;

	bench_say("submitting the %d jobs that are held", HELD);
	status = bench_site_fill(s, 0, HELD + 1, err); /* the first runs */
	if (!status)
		status = measure_disk(s->dir, &disk_p50_s, &disk_p99_s, err);
	if (!status)
		status = load_make(&load, s, seconds, err);
	if (status)
		return status;
	bench_say("%.0f submits a second for %.0f s", PER_SECOND, seconds);
	cpu_s = bench_server_cpu_s(&s->server);
	status = load_run(&load, err);
	cpu_s = bench_server_cpu_s(&s->server) - cpu_s;
	if (!status)
		status = bench_site_ask(s, "{\"op\":\"stats\"}\n", &stats, err);
	if (!status) {
		judge(out, &load, stats, cpu_s, s);
		bench_what(out, "; the disk alone, 16 KiB at a time: p50 %.2g ms, p99 %.3g ms",
			   1e3 * disk_p50_s, 1e3 * disk_p99_s);
	}
	json_free(stats);
	load_release(&load);
	return status;
}

int bench_daemon_submit(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_site site;
	int status = bench_site_open(&site, env, 1, -1, err);

	out->kind = BAR_AT_MOST;
	out->bar = 1;
	out->unit = "ms";
	if (status)
		return status;
	status = measure(&site, env->submit_s, out, err);
	bench_site_close(&site);
	if (!status)
		add_slurm(env, out);
	return status;
}
