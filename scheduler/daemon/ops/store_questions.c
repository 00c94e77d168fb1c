/* Questions to the store. Its reader sees only what is committed, but a client that submits a job and asks
 * about it at once must find it. So a question waits until everything collected before it is on disk, and
 * while the reader is busy. If the store has failed, the answer is what the disk has. See ops.h. */
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/daemon/ops/ops.h"

#define MAX_ASKED 20000 /* questions in line, a quarter of a kilobyte each */

struct asked {
	struct asked *next;
	uint64_t ticket; /* that must be durable first */
	enum store_question question;
	uint64_t job, token;
	struct store_filter filter;
	bool filtered;
	store_answer *fn;
	void *owner;
};

static int hand_over(struct daemon *d, const struct asked *a, struct err *err)
{
	return store_ask(d->store, a->question, a->job, a->filtered ? &a->filter : NULL, a->fn, a->owner,
			 a->token, err);
}

static bool is_due(const struct daemon *d, const struct asked *a)
{
	return d->store_failed || a->ticket <= store_durable(d->store);
}

static int wait_in_line(struct daemon *d, const struct asked *made, struct err *err)
{
	struct asked *a;

	if (d->n_asked >= MAX_ASKED)
		return err_fail(err, ERR_BUSY, "%d questions already wait for the database: ask again later",
				MAX_ASKED);
	a = mem_alloc(sizeof *a);
	if (!a)
		return err_nomem(err, "a question to the database");
	*a = *made;
	if (d->asked_last)
		d->asked_last->next = a;
	else
		d->asked_first = a;
	d->asked_last = a;
	d->n_asked++;
	return 0;
}

int ops_ask(struct daemon *d, enum store_question question, uint64_t job, const struct store_filter *f,
	    store_answer *fn, void *owner, uint64_t token, struct err *err)
{
	struct asked made = {
		.ticket = daemon_ticket(d),
		.question = question,
		.job = job,
		.token = token,
		.filtered = f != NULL,
		.fn = fn,
		.owner = owner,
	};

	if (f)
		made.filter = *f;
	if (!d->asked_first && is_due(d, &made)) {
		int rc = hand_over(d, &made, err);

		if (rc != -ERR_BUSY)
			return rc;
	}
	return wait_in_line(d, &made, err);
}

static void pop(struct daemon *d)
{
	struct asked *a = d->asked_first;

	d->asked_first = a->next;
	if (!d->asked_first)
		d->asked_last = NULL;
	d->n_asked--;
	free(a);
}

/* A client that asked always gets an answer, even if it is that there is none. */
static void fail(const struct asked *a, const struct err *err)
{
	static const struct strbuf nothing;

	a->fn(a->owner, a->token, &nothing, err);
}

void ops_ask_due(struct daemon *d)
{
	struct asked *a;

	while ((a = d->asked_first) && is_due(d, a)) {
		struct err err = { 0 };
		int rc = hand_over(d, a, &err);

		if (rc == -ERR_BUSY) /* when those before it are answered we are called again */
			return;
		if (rc)
			fail(a, &err);
		pop(d);
	}
}

void ops_ask_abandon(struct daemon *d)
{
	static const struct err leaving = { .code = ERR_BUSY,
					    .text = "the daemon is about to stop: ask again later" };

	while (d->asked_first) {
		fail(d->asked_first, &leaving);
		pop(d);
	}
}
