/* One job that a supervisor runs. See local_job.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/local_job.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "scheduler/daemon/exec/cpus.h"
#include "scheduler/process/identity.h"
#include "scheduler/process/run_record.h"

/* Of one job, from one word about it to the next. */
#define PROGRESS_NS INT64_C(1000000000)
#define ASKED_NS INT64_C(10000000)

int local_job_new(const struct exec_job *from, const struct executor_sink *sink, const char *boot,
		  struct local_job **out, struct err *err)
{
	struct local_job *j = mem_calloc(1, sizeof *j);
	struct strbuf record = { 0 };
	int rc;

	if (!j)
		return err_nomem(err, "job %" PRIu64, from->id);
	j->sink = sink;
	j->boot = boot;
	j->id = from->id;
	j->epochs = from->epochs;
	j->steer = from->steer;
	j->max_time_s = from->max_time_s;
	j->pidfd = j->report_fd = -1;
	j->supervisor_code = -1;
	j->dir = mem_strdup(from->dir);
	snprintf(j->identity, sizeof j->identity, "%s", from->identity ? from->identity : "");
	strbuf_printf(&record, "%s%s%s", from->dir, from->identity ? "." : "", j->identity);
	j->record = record.text;
	/* A type may be gone from the configuration by the time its job is adopted. */
	rc = job_output_init(&j->output, from->dir, from->type ? &from->type->result : NULL, from->epochs,
			     err);
	if (!rc && (!j->dir || record.failed))
		rc = err_nomem(err, "job %" PRIu64, from->id);
	if (rc) {
		local_job_free(j);
		return rc;
	}
	*out = j;
	return 0;
}

void local_job_free(struct local_job *j)
{
	if (!j)
		return;
	if (j->gone)
		event_free(j->gone);
	if (j->report)
		event_free(j->report);
	if (j->pidfd >= 0)
		close(j->pidfd);
	if (j->report_fd >= 0)
		close(j->report_fd);
	job_output_release(&j->output);
	free(j->dir);
	free(j->record);
	free(j);
}

int64_t local_job_moment(const struct local_job *j, const char *boot, int64_t real_ns, int64_t boot_ns)
{
	return j->sink->moment && !strcmp(boot, j->boot) ? j->sink->moment(j->sink->owner, boot_ns) : real_ns;
}

int64_t local_job_now_ns(const struct local_job *j)
{
	return executor_now_ns(j->sink);
}

/* ---- telling ---- */

void local_job_tell_started(struct local_job *j)
{
	j->told_started = true;
	/* A process of another machine means nothing here. */
	j->sink->started(j->sink->owner, j->id, j->started_ns, j->local ? j->pid : 0);
}

/* When the line was written is known better than when we saw it, but comes from a clock that may jump and a
 * file that is the user's: it lies between the start and now. */
static double elapsed_s(const struct local_job *j, int64_t now_boot_ns)
{
	double said_s = 1e-9 * (double)(j->output.epoch_ns - j->started_ns);
	double most_s = 1e-9 * (double)(now_boot_ns - j->started_boot_ns);

	if (j->state == LOCAL_ENDED && !isnan(j->outcome.run_s))
		most_s = j->outcome.run_s;
	return fmax(0.0, fmin(said_s, most_s));
}

bool local_job_is_due(const struct local_job *j, int64_t now_boot_ns)
{
	int64_t least_ns = j->steer && j->output.asks ? ASKED_NS : PROGRESS_NS;

	return j->state == LOCAL_RUNNING && j->output.news && now_boot_ns - j->progress_boot_ns >= least_ns;
}

void local_job_tell_progress(struct local_job *j, int64_t now_boot_ns)
{
	struct exec_progress p = { .id = j->id,
				   .epoch = j->output.epoch,
				   .epochs = isnan(j->epochs) ? j->output.told : j->epochs,
				   .accuracy = j->output.epoch_accuracy,
				   .asks = j->output.asks,
				   .batch = j->output.batch,
				   .elapsed_s = elapsed_s(j, now_boot_ns) };

	j->output.news = false;
	j->progress_boot_ns = now_boot_ns;
	j->sink->progress(j->sink->owner, &p);
}

void local_job_tell_finished(struct local_job *j, int64_t now_boot_ns)
{
	if (j->outcome.started_ns && !j->told_started && !j->adopted)
		local_job_tell_started(j);
	if (j->output.news)
		local_job_tell_progress(j, now_boot_ns);
	j->outcome.accuracy = j->output.accuracy;
	if (isnan(j->outcome.accuracy) && j->outcome.exit_code == 0 && !j->outcome.stopped)
		log_info("job %" PRIu64
			 ": no accuracy was found in its output; \"result\" of its type says where it is",
			 j->id);
	j->sink->finished(j->sink->owner, &j->outcome);
	local_job_free(j);
}

bool local_job_has_output(const struct local_job *j)
{
	return j->state == LOCAL_RUNNING || (j->state == LOCAL_ENDED && j->outcome.started_ns);
}

/* ---- the supervisor's report ---- */

void local_job_close_report(struct local_job *j)
{
	if (j->report)
		event_free(j->report);
	j->report = NULL;
	if (j->report_fd >= 0)
		close(j->report_fd);
	j->report_fd = -1;
}

static void take_report_line(struct local_job *j, const char *line)
{
	long long at_ns, boot_ns;

	if (sscanf(line, REPORT_GO "%lld %lld", &at_ns, &boot_ns) == 2) {
		j->go_ns = at_ns;
		j->go_boot_ns = boot_ns;
	} else if (strcmp(line, REPORT_STARTED) == 0)
		j->said_started = true;
	else if (strncmp(line, REPORT_FAILED, strlen(REPORT_FAILED)) == 0)
		snprintf(j->failed, sizeof j->failed, "%s", line + strlen(REPORT_FAILED));
	else if (strncmp(line, REPORT_NOTE, strlen(REPORT_NOTE)) == 0)
		log_warn("job %" PRIu64 ": %s", j->id, line + strlen(REPORT_NOTE));
}

void local_job_take_report(struct local_job *j)
{
	ssize_t n = -1;
	char *newline;

	while (j->report_fd >= 0 && j->n_said < sizeof j->said &&
	       (n = read(j->report_fd, j->said + j->n_said, sizeof j->said - j->n_said)) > 0) {
		j->n_said += (size_t)n;
		while ((newline = memchr(j->said, '\n', j->n_said))) {
			size_t used = (size_t)(newline - j->said) + 1;

			*newline = '\0';
			take_report_line(j, j->said);
			j->n_said -= used;
			memmove(j->said, newline + 1, j->n_said);
		}
	}
	if (n == 0 || j->n_said == sizeof j->said)
		local_job_close_report(j);
}

/* ---- stopping ---- */

int local_job_send_stop(const struct local_job *j, struct err *err)
{
	siginfo_t info;
	int failed;

	memset(&info, 0, sizeof info);
	info.si_signo = SIGTERM;
	info.si_code = SI_QUEUE; /* by this the supervisor knows that it is us */
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = j->stop_grace_s < INT_MAX / 1000 ? (int)ceil(1e3 * j->stop_grace_s)
								   : INT_MAX;
	failed = j->pidfd >= 0 ? pidfd_send_signal(j->pidfd, SIGTERM, &info, 0)
			       : sigqueue(j->supervisor, SIGTERM, info.si_value);
	if (failed && errno != ESRCH)
		return err_fail(err, errno == EPERM ? ERR_PERM : ERR_IO, "cannot stop job %" PRIu64 ": %s",
				j->id, strerror(errno));
	return 0;
}

/* ---- outcomes ---- */

static struct exec_outcome blank(const struct local_job *j)
{
	return (struct exec_outcome){ .id = j->id,
				      .exit_code = -1,
				      .ended_ns = local_job_now_ns(j),
				      .run_s = NAN,
				      .accuracy = NAN,
				      .max_rss_mb = NAN,
				      .cpu_s = NAN };
}

void local_job_lost(struct local_job *j, const char *fmt, ...)
{
	va_list ap;

	j->outcome = blank(j);
	j->outcome.lost = true;
	j->outcome.started_ns = j->started_ns;
	va_start(ap, fmt);
	vsnprintf(j->outcome.reason, sizeof j->outcome.reason, fmt, ap);
	va_end(ap);
	j->state = LOCAL_ENDED;
}

void local_job_never_ran(struct local_job *j, bool stopped, const char *fmt, ...)
{
	va_list ap;

	j->outcome = blank(j);
	j->outcome.stopped = stopped;
	va_start(ap, fmt);
	vsnprintf(j->outcome.reason, sizeof j->outcome.reason, fmt, ap);
	va_end(ap);
	j->state = LOCAL_ENDED;
}

static void give_reason(const struct local_job *j, const struct job_exit *x, char *out, size_t size)
{
	char duration[32], words[160];

	out[0] = '\0';
	if (!x->ran)
		snprintf(out, size, "%s", x->reason);
	else if (x->timed_out && j->max_time_s > 0.0)
		snprintf(out, size, "stopped: it ran longer than %s", text_seconds(j->max_time_s, duration));
	else if (x->timed_out)
		snprintf(out, size, "stopped: it ran longer than it may");
	else if (x->stopped)
		snprintf(out, size, "stopped on request");
	else if (x->exit_code == 0)
		return;
	else if (x->exit_signal)
		snprintf(out, size, "ended by signal %d (%s)", x->exit_signal, strsignal(x->exit_signal));
	else
		snprintf(out, size, "ended with exit code %d%s%s", x->exit_code,
			 *job_last_words(j->dir, words, sizeof words) ? ": " : "", words);
}

static void ended(struct local_job *j, const struct job_exit *x)
{
	int64_t started_ns = x->ran ? local_job_moment(j, x->boot, x->started_ns, x->started_boot_ns) : 0;
	int64_t ended_ns = x->ran ? started_ns + (x->ended_boot_ns - x->started_boot_ns)
				  : local_job_moment(j, x->boot, x->ended_ns, x->ended_boot_ns);

	j->outcome = (struct exec_outcome){ .id = j->id,
					    .exit_code = x->exit_code,
					    .exit_signal = x->exit_signal,
					    .timed_out = x->timed_out,
					    .stopped = x->stopped,
					    .started_ns = started_ns,
					    .ended_ns = ended_ns,
					    .run_s = x->ran ? x->run_s : NAN,
					    .accuracy = NAN,
					    .max_rss_mb = x->ran ? x->max_rss_mb : NAN,
					    .cpu_s = x->ran ? x->cpu_s : NAN };
	give_reason(j, x, j->outcome.reason, sizeof j->outcome.reason);
	j->terminated = strstr(x->note, NOTE_TERMINATED) != NULL;
	j->started_ns = started_ns;
	j->state = LOCAL_ENDED;
}

/* ---- the start ---- */

static void take_start(struct local_job *j, const struct job_started *s)
{
	j->supervisor = s->supervisor;
	j->pid = s->job;
	j->pid_ticks = s->job_ticks;
	j->started_ns = local_job_moment(j, s->boot, s->at_ns, s->at_boot_ns);
	/* What another machine counts from its own start is of no use here. */
	j->started_boot_ns = strcmp(s->boot, j->boot) ? clock_boot_ns() - (clock_wall_ns() - s->at_ns)
						      : s->at_boot_ns;
}

int local_job_learn_start(struct local_job *j, struct err *err)
{
	struct job_started s;
	int rc = job_started_read(j->record, j->identity, &s, err);

	if (!rc) {
		/* the record was written before it could say this */
		if (j->go_boot_ns > s.at_boot_ns) {
			s.at_ns = j->go_ns;
			s.at_boot_ns = j->go_boot_ns;
		}
		take_start(j, &s);
	}
	return rc;
}

/* ---- the end ---- */

int local_job_learn_end(struct local_job *j, struct err *err)
{
	struct job_exit x;
	int rc = job_exit_read(j->record, j->identity, &x, err);

	if (!rc)
		ended(j, &x);
	return rc;
}

/* The supervisor left no word. Its job should have died with it, but the job's children may not have. */
static void left_no_report(struct local_job *j)
{
	struct strbuf mark = { 0 };

	if (j->pid == 0)
		local_job_learn_start(j, NULL);
	strbuf_printf(&mark, "POSTRIDER_DIR=%s", j->dir); /* as the supervisor sets it */
	if (!mark.failed)
		proc_kill_session(j->pid, j->pid_ticks, j->seen_gone ? NULL : mark.text);
	strbuf_release(&mark);
	if (j->supervisor_code == SUPERVISOR_NO_RECORD)
		local_job_lost(j, "it ended, but its supervisor could not write %s%s: is the disk full?",
			       text_tail(j->record, 120), RECORD_EXIT);
	else
		local_job_lost(j, "supervisor %ld is gone and left no report", (long)j->supervisor);
}

int local_job_settle(struct local_job *j, struct err *err)
{
	struct err why = { 0 };
	struct job_exit x;
	int rc;

	if (j->supervisor_code == SUPERVISOR_LOST_RACE)
		return err_fail(err, ERR_BUSY, "another supervisor has job %" PRIu64, j->id);
	if (j->supervisor_code == SUPERVISOR_NOT_STARTED || j->supervisor_code == SUPERVISOR_USAGE) {
		local_job_never_ran(j, false, "%s",
				    j->failed[0] ? j->failed
						 : "its supervisor could not start it, and did not say why");
		return 0;
	}
	if (j->supervisor_code == SUPERVISOR_TRY_AGAIN && j->stop_asked) {
		local_job_never_ran(j, true, "stopped on request, before it was started");
		return 0;
	}
	if (j->supervisor_code == SUPERVISOR_TRY_AGAIN) {
		j->state = LOCAL_DELAYED;
		return 0;
	}
	rc = job_exit_read(j->record, j->identity, &x, &why);
	if (rc == -ERR_NOTFOUND)
		left_no_report(j);
	else if (rc == -ERR_FORMAT)
		local_job_lost(j, "%.250s", why.text);
	else if (rc)
		return err_fail(err, why.code, "%s", why.text);
	else
		ended(j, &x);
	return 0;
}

/* The supervisor that the record names, if it still is that process; -1 with errno ESRCH: it is gone. */
static int open_supervisor(const struct job_started *s)
{
	int fd = pidfd_open(s->supervisor, 0);

	if (fd >= 0 && !proc_lives(s->supervisor, s->supervisor_ticks)) {
		close(fd); /* after opening: now the number cannot change hands between the look and the
		              use */
		errno = ESRCH;
		return -1;
	}
	return fd;
}

/* It has a start record and, a moment ago, no end. */
static int examine_started(struct local_job *j, const struct job_started *s, const char *boot,
			   struct err *err)
{
	take_start(j, s);
	j->pinned = s->cpus[0] && cpus_parse(s->cpus, &j->cpus);
	if (strcmp(s->boot, boot) != 0) {
		local_job_lost(j, "the machine was restarted while it ran");
		return 0;
	}
	j->seen_gone = false;
	j->pidfd = open_supervisor(s);
	if (j->pidfd >= 0) {
		j->state = LOCAL_RUNNING;
		return 0;
	}
	if (errno != ESRCH)
		return err_fail(err, ERR_IO, "job %" PRIu64 ": cannot watch supervisor %ld: %s", j->id,
				(long)s->supervisor, strerror(errno));
	j->supervisor_code = -1;
	return local_job_settle(j, err); /* it may have ended between the two looks */
}

int local_job_examine(struct local_job *j, const char *boot, bool *out_unstarted, struct err *err)
{
	struct err why = { 0 };
	struct job_started s;
	struct job_exit x;
	int rc = job_exit_read(j->record, j->identity, &x, &why);

	*out_unstarted = false;
	if (!rc) {
		ended(j, &x);
		return 0;
	}
	if (rc == -ERR_NOTFOUND) {
		rc = job_started_read(j->record, j->identity, &s, &why);
		if (!rc)
			return examine_started(j, &s, boot, err);
		if (rc == -ERR_NOTFOUND) {
			*out_unstarted = true;
			return 0;
		}
	}
	if (rc != -ERR_FORMAT)
		return err_fail(err, why.code, "job %" PRIu64 ": %.400s", j->id, why.text);
	local_job_lost(j, "%.250s", why.text);
	return 0;
}
