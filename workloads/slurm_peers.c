/* Reads the lists of nodes and tasks that Slurm gives a step. See tcp.h. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/tcp.h"

#define MAX_NAME 255 /* bytes of the name of a node */
#define FIRST_PORT 20000
#define PORTS 30000

struct reader { /* one node after the other */
	const char *at;
	char before[MAX_NAME + 1], after[MAX_NAME + 1]; /* of a range: "n" and "" of n[1-3] */
	unsigned long next, last; /* next > last: no range is open */
	int width; /* of its numbers, with zeroes in front */
	bool open; /* behind [, more ranges may follow */
};

/* Up to a comma outside of brackets. False: the list is not one. */
static bool read_name(struct reader *r)
{
	size_t n = strcspn(r->at, ",[");
	const char *close;

	if (n > MAX_NAME)
		return false;
	memcpy(r->before, r->at, n);
	r->before[n] = '\0';
	r->after[0] = '\0';
	r->at += n;
	if (*r->at != '[')
		return n > 0;
	close = strchr(r->at, ']');
	n = close ? strcspn(close + 1, ",[") : 0;
	if (!close || n > MAX_NAME || close[1 + n] == '[')
		return false;
	memcpy(r->after, close + 1, n);
	r->after[n] = '\0';
	r->open = true;
	r->at++;
	return true;
}

static bool read_range(struct reader *r)
{
	char *end;

	if (!isdigit((unsigned char)*r->at))
		return false;
	r->next = strtoul(r->at, &end, 10);
	r->width = (int)(end - r->at);
	r->last = r->next;
	if (*end == '-' && isdigit((unsigned char)end[1]))
		r->last = strtoul(end + 1, &end, 10);
	if (r->width > 9 || r->last < r->next || r->last - r->next > 1000000 || (*end != ',' && *end != ']'))
		return false;
	r->open = *end == ',';
	r->at = end + 1;
	if (!r->open) /* behind the bracket is what all of them end with */
		r->at += strlen(r->after);
	return true;
}

/* 1: a node. 0: the end. -1: this is no list. */
static int next_node(struct reader *r, struct strbuf *out)
{
	bool in_range = r->next <= r->last || r->open;

	if (!in_range) {
		if (!*r->at)
			return 0;
		r->at += *r->at == ',';
		if (!read_name(r))
			return -1;
	}
	if (r->open && r->next > r->last && !read_range(r))
		return -1;
	strbuf_reset(out);
	if (r->next <= r->last)
		strbuf_printf(out, "%s%0*lu%s", r->before, r->width, r->next++, r->after);
	else
		strbuf_puts(out, r->before);
	return 1;
}

/* "2(x3),1": how many tasks the next node has; 0: this is no list. */
static unsigned long next_tasks(const char **at, unsigned long *tasks, unsigned long *again)
{
	char *end;

	if (*again) {
		--*again;
		return *tasks;
	}
	if (!isdigit((unsigned char)**at))
		return 0;
	*tasks = strtoul(*at, &end, 10);
	if (!strncmp(end, "(x", 2) && isdigit((unsigned char)end[2])) {
		*again = strtoul(end + 2, &end, 10);
		if (*end++ != ')' || !*again)
			return 0;
		--*again;
	}
	if (*end && *end != ',')
		return 0;
	*at = end + (*end == ',');
	return *tasks;
}

int slurm_peers_list(const char *nodes, const char *tasks, unsigned port, unsigned rank, struct strbuf *out,
		     unsigned *out_node, struct err *err)
{
	struct reader r = { .at = nodes, .next = 1, .last = 0 };
	struct strbuf name = { 0 };
	const char *tasks_at = tasks;
	unsigned long here = 0, again = 0;
	unsigned n = 0, node = 0;
	int got, rc = 0;

	while (!rc && (got = next_node(&r, &name)) != 0) {
		unsigned long m = got > 0 ? next_tasks(&tasks_at, &here, &again) : 0;

		if (got < 0)
			rc = err_fail(err, ERR_FORMAT, "'%.200s' is no list of Slurm's nodes", nodes);
		else if (!m)
			rc = err_fail(err, ERR_FORMAT, "'%.100s' is no list of tasks for the nodes %.100s",
				      tasks, nodes);
		else if (n + m > TCP_MAX_WORKERS)
			rc = err_fail(err, ERR_ARG, "more than %u workers", TCP_MAX_WORKERS);
		for (; m && !rc; m--, n++) {
			if (n == rank)
				*out_node = node;
			strbuf_printf(out, "%s%s:%u", n ? "," : "", strbuf_text(&name), port + n);
		}
		node++;
	}
	if (!rc && rank >= n)
		rc = err_fail(err, ERR_FORMAT, "Slurm says that this is task %u, and that there are %u", rank,
			      n);
	if (!rc && (out->failed || name.failed))
		rc = err_nomem(err, "the list of workers");
	strbuf_release(&name);
	return rc;
}

/* A variable of the step, or that of the job where srun has not set it. */
static const char *variable(const char *of_step, const char *of_job)
{
	const char *v = getenv(of_step);

	return v && *v ? v : getenv(of_job);
}

int slurm_peers(unsigned rank, struct strbuf *out, struct err *err)
{
	const char *nodes = variable("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
	const char *tasks = variable("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
	const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID"),
		   *id = getenv("SLURM_NODEID");
	unsigned long number = job ? strtoul(job, NULL, 10) : 0, part = step ? strtoul(step, NULL, 10) : 0;
	unsigned node = 0;
	int rc;

	if (!nodes || !tasks || !job)
		return err_fail(
			err, ERR_ARG,
			"--peers slurm: this is no step of Slurm (SLURM_STEP_NODELIST is not set); start "
			"it with srun");
	/* Far enough apart that two steps on one node seldom meet. */
	rc = slurm_peers_list(nodes, tasks, FIRST_PORT + (unsigned)((number * 1021 + part * 131) % PORTS),
			      rank, out, &node, err);
	if (!rc && id && strtoul(id, NULL, 10) != node)
		rc = err_fail(err, ERR_ARG,
			      "--peers slurm: task %u is not on node %u of %.100s; start it with srun "
			      "--distribution=block",
			      rank, node, nodes);
	return rc;
}
