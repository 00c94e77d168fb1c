/* Jobs that are queued and not with the scheduler: they wait for another job to end (`after`), or their run
 * failed and is to be repeated (`retry`). They are looked at when a job has ended, not in every turn. See
 * daemon.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/daemon/admission.h"

void waiting_add(struct daemon *d, struct job *job)
{
	d->waiting.due = true;
	if (mem_grow((void **)&d->waiting.id, &d->waiting.cap, d->waiting.n + 1, sizeof *d->waiting.id)) {
		struct life_event e = carry_event(d, LIFE_CANCEL, job);

		e.text = "out of memory";
		carry_out(d, &e, NULL);
		return;
	}
	d->waiting.id[d->waiting.n++] = job->id;
	daemon_changed(d);
}

/* The jobs that have to end before this one; returns how many. */
static size_t awaited(const struct job *job, uint64_t id[WAITING_MAX])
{
	const char *s = job->row.after_more;
	size_t n = 0;

	if (job->row.verdict != VERDICT_WAITING || !job->row.after)
		return 0;
	id[n++] = job->row.after;
	while (s && *(s += strcspn(s, "0123456789")) && n < WAITING_MAX) {
		char *end;

		id[n++] = strtoull(s, &end, 10);
		s = end;
	}
	return n;
}

/* Its end is noted here: the job may be forgotten before the next turn, and before the others have ended. */
void waiting_ended(struct daemon *d, const struct job *ended)
{
	uint64_t id[WAITING_MAX];

	for (size_t i = 0; i < d->waiting.n; i++) {
		struct job *job = jobs_find(&d->jobs, d->waiting.id[i]);
		size_t n = job ? awaited(job, id) : 0;

		for (size_t k = 0; k < n; k++) {
			if (id[k] != ended->id)
				continue;
			job->after_ended |= (uint64_t)1 << k;
			d->waiting.due = true;
			if (ended->row.state != JOB_DONE && !job->after_bad) {
				job->after_bad = ended->id;
				job->after_state = ended->row.state;
			}
		}
	}
	if (d->waiting.due)
		daemon_changed(d);
}

/* How many of those it waits for have not ended; *out_first is the first of them. */
static size_t left_of(const struct daemon *d, const struct job *job, const struct job **out_first)
{
	uint64_t id[WAITING_MAX];
	size_t n = awaited(job, id), left = 0;

	*out_first = NULL;
	for (size_t k = 0; k < n; k++) {
		const struct job *one = job->after_ended >> k & 1 ? NULL : jobs_find(&d->jobs, id[k]);

		if (!one || !job_state_live(one->row.state))
			continue;
		if (!left++)
			*out_first = one;
	}
	return left;
}

/* True: nothing is in its way. */
static bool may_go(const struct daemon *d, const struct job *job)
{
	const struct job *first;

	return left_of(d, job, &first) == 0;
}

/* A job that it waited for did not end well, and that was a condition; NULL: all is well so far. */
static const char *why_not(const struct daemon *d, const struct job *job, char *buf, size_t size)
{
	unsigned long long bad = job->after_bad;
	enum job_state state = job->after_state;
	uint64_t id[WAITING_MAX];
	size_t n = job->row.after_ok ? awaited(job, id) : 0;

	for (size_t k = 0; k < n && !bad; k++) {
		const struct job *one = jobs_find(&d->jobs, id[k]);

		if (job->after_ended >> k & 1)
			continue;
		if (!one) {
			snprintf(buf, size,
				 "job %llu had to end well first, and how it ended is not known any more",
				 (unsigned long long)id[k]);
			return buf;
		}
		if (job_state_live(one->row.state) || one->row.state == JOB_DONE)
			continue;
		bad = id[k];
		state = one->row.state;
	}
	if (!n || !bad)
		return NULL;
	snprintf(buf, size, "job %llu had to end well first, and it is %s", bad, job_state_name[state]);
	return buf;
}

/* False: the scheduler has no room yet. */
static bool hand_over(struct daemon *d, struct job *job)
{
	struct life_event e = carry_event(d, LIFE_ADMITTED, job);
	struct admission a;
	struct strbuf text = { 0 };
	struct err err = { 0 };
	struct json_writer w;
	int rc = admission_decide(d, job, e.now_ns, true, &a, &err);

	if (rc == -ERR_BUSY)
		return false;
	if (rc) {
		e = carry_event(d, LIFE_CANCEL, job);
		e.text = err.text;
	} else {
		if (a.why[0])
			job_set_reason(job, a.why);
		json_begin(&w, &text, false);
		admission_json(d, job, e.now_ns, &a, &w);
		e.verdict = a.verdict;
		e.decision = &a.decision;
		e.text = strbuf_text(&text);
	}
	carry_out(d, &e, NULL);
	strbuf_release(&text);
	return true;
}

void waiting_turn(struct daemon *d)
{
	size_t kept = 0, n = d->waiting.n;
	bool busy = false;

	if (!d->waiting.due || d->store_failed)
		return;
	d->waiting.due = false;
	/* What happens here may add to the list, behind those that are looked at now. */
	for (size_t i = 0; i < n; i++) {
		uint64_t id = d->waiting.id[i];
		struct job *job = jobs_find(&d->jobs, id);
		char why[160];

		if (!job || job->row.state != JOB_QUEUED)
			continue; /* cancelled meanwhile */
		if (why_not(d, job, why, sizeof why)) {
			struct life_event e = carry_event(d, LIFE_CANCEL, job);

			e.text = why;
			carry_out(d, &e, NULL);
			continue;
		}
		if (may_go(d, job) && !busy) {
			busy = !hand_over(d, job);
			if (!busy)
				continue;
		}
		d->waiting.id[kept++] = id;
	}
	memmove(d->waiting.id + kept, d->waiting.id + n, (d->waiting.n - n) * sizeof *d->waiting.id);
	d->waiting.n -= n - kept;
	d->waiting.due |= busy; /* the next end makes room */
}

bool waiting_why(const struct daemon *d, const struct job *job, char *out, size_t size)
{
	const struct job *first;
	size_t left = left_of(d, job, &first);
	char more[48] = "";

	if (job->row.verdict != VERDICT_WAITING)
		return false;
	if (left > 1)
		snprintf(more, sizeof more, "; so %s %zu more", left > 2 ? "have" : "has", left - 1);
	snprintf(out, size, "job %llu has to end%s first, and it %s%s",
		 (unsigned long long)(first ? first->id : job->row.after), job->row.after_ok ? " well" : "",
		 !first                            ? "is not known any more"
		 : first->row.state == JOB_RUNNING ? "runs"
						   : "waits",
		 more);
	return true;
}
