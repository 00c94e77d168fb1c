/* Submits many jobs, one per line, over one connection. Several requests are under way at a time, so that the
 * daemon is busy. A bad line is reported with its number and does not stop the others. See submit.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text/text.h"
#include "common/mem.h"
#include "scheduler/cli/client/submit.h"

#define IN_FLIGHT 64

struct lines { /* the input, a line at a time, with a limit */
	int fd;
	const char *name;
	char *buf; /* CLIENT_MAX_REQUEST + 2 */
	size_t len, at;
	unsigned long number; /* of the line last given */
	bool ended, failed;
};

struct many {
	const struct cli *c;
	const struct submit_options *o;
	struct client *client;
	const struct json *object; /* of --file; NULL */
	struct lines in;
	double index, to, step; /* the next of an array */
	unsigned long line[IN_FLIGHT]; /* of the requests under way, oldest first */
	size_t first, n_flying;
	struct strbuf out;
	unsigned long n_verdict[N_SUBMIT_VERDICTS], n_duplicates, n_bad;
	int first_error;
};

/* ---- lines ---- */

static bool has_line(const struct lines *in)
{
	return in->at < in->len && memchr(in->buf + in->at, '\n', in->len - in->at);
}

/* True where the next line will not keep us waiting while answers come in. */
static bool line_is_near(const struct lines *in)
{
	struct pollfd p = { .fd = in->fd, .events = POLLIN };

	return has_line(in) || poll(&p, 1, 0) > 0;
}

static void fill(struct lines *in)
{
	ssize_t n;

	memmove(in->buf, in->buf + in->at, in->len - in->at);
	in->len -= in->at;
	in->at = 0;
	do
		n = read(in->fd, in->buf + in->len, CLIENT_MAX_REQUEST + 1 - in->len);
	while (n < 0 && errno == EINTR && !client_interrupted());
	if (n > 0)
		in->len += (size_t)n;
	else
		in->ended = true;
	in->failed |= n < 0 && errno != EINTR;
}

/* The next line, NUL-terminated, without its end, of *out_len bytes; NULL: there is none, or (*out_long) it
 * is too long and was skipped. */
static char *next_line(struct lines *in, size_t *out_len, bool *out_long)
{
	char *end, *line;

	*out_long = false;
	while (!has_line(in) && !in->ended) {
		if (in->len - in->at > CLIENT_MAX_REQUEST) {
			*out_long = true;
			in->at = in->len; /* drop what there is, and go on to its end */
		}
		fill(in);
	}
	if (in->at == in->len && !*out_long)
		return NULL;
	in->number++;
	line = in->buf + in->at;
	end = in->at < in->len ? memchr(line, '\n', in->len - in->at) : NULL;
	if (!end)
		end = in->buf + in->len; /* the last line may lack its end; there is a byte to spare */
	in->at = (size_t)(end - in->buf) + (in->at + (size_t)(end - line) < in->len);
	*end = '\0';
	if (end > line && end[-1] == '\r')
		*--end = '\0';
	*out_len = (size_t)(end - line);
	return *out_long ? NULL : line;
}

/* ---- results ---- */

static void note_error(struct many *m, unsigned long line, const struct client_fault *f)
{
	struct json_writer w;

	m->n_bad++;
	if (!m->first_error)
		m->first_error = f->exit_code;
	fprintf(stderr, "postrider: %s%s%lu: %s\n", cli_clean(m->in.name), m->o->array ? " " : ":", line,
		cli_clean(f->text));
	if (f->hint[0])
		fprintf(stderr, "postrider: hint: %s\n", cli_clean(f->hint));
	if (!m->c->json)
		return;
	json_begin(&w, &m->out, false);
	json_open(&w, '{');
	json_kv_int(&w, m->o->array ? "index" : "line", (long long)line);
	json_kv_open(&w, "error", '{');
	json_kv_string(&w, "code", f->code[0] ? f->code : "bad_line");
	json_kv_string(&w, "message", f->text);
	json_close(&w, '}');
	json_close(&w, '}');
	strbuf_puts(&m->out, "\n");
}

static void put_answer(struct many *m, unsigned long line, const struct json *reply,
		       const struct submit_answer *a)
{
	static const char *const word[] = { "promised", "best effort", "rejected", "by chance",
					    "waits for another" };
	struct json_writer w;
	char up[32];

	if (m->c->json) {
		json_begin(&w, &m->out, false);
		json_open(&w, '{');
		json_kv_int(&w, m->o->array ? "index" : "line", (long long)line);
		cli_json_members(&w, reply, (const char *const[]){ "v", "id", "ok", NULL });
		json_close(&w, '}');
		strbuf_puts(&m->out, "\n");
	} else if (m->c->quiet) {
		if (a->has_job)
			strbuf_printf(&m->out, "%s\n", a->job.id);
	} else {
		strbuf_printf(&m->out, "%s %lu: %s", m->o->array ? "index" : "line", line, word[a->verdict]);
		if (a->duplicate)
			strbuf_puts(&m->out, " before");
		strbuf_puts(&m->out, ": ");
		if (a->has_job)
			job_view_line(&a->job, 0.0, &m->out);
		if (a->verdict == SUBMIT_REJECTED && a->has_decision && a->decision.smallest_slo_s > 0.0)
			strbuf_printf(&m->out, "; could be promised: %s",
				      text_seconds_up(a->decision.smallest_slo_s, up));
		if (a->verdict == SUBMIT_REJECTED && a->has_decision && !isnan(a->decision.offer.chance))
			decision_offer(&a->decision, "; without a promise: ", &m->out);
		strbuf_puts(&m->out, "\n");
	}
}

/* What has been answered is out before the next wait, so that a reader of a pipe need not. */
static int flush(struct many *m)
{
	int code = m->out.len || m->out.failed ? cli_finish(m->c, &m->out) : 0;

	strbuf_reset(&m->out);
	return code;
}

/* ---- the loop ---- */

/* The request is made: off it goes. */
static int send(struct many *m, unsigned long line)
{
	struct client_fault f;
	int rc = client_end(m->client, &f);

	if (rc && f.code[0]) { /* too long for a request */
		note_error(m, line, &f);
		return 0;
	}
	if (rc)
		return client_say(&f);
	m->line[(m->first + m->n_flying++) % IN_FLIGHT] = line;
	return 0;
}

static int take_index(struct many *m, bool *out_done)
{
	struct submit_options one = *m->o;
	double index = m->index;

	*out_done = index > m->to;
	if (*out_done)
		return 0;
	if (client_interrupted()) {
		fprintf(stderr, "postrider: interrupted; the daemon keeps the jobs that it has answered\n");
		return CLIENT_INTERRUPTED;
	}
	m->index += m->step;
	one.index = &index;
	submit_request(m->client, &one, m->object);
	return send(m, (unsigned long)index);
}

static int send_line(struct many *m, char *text, size_t len)
{
	unsigned long line = m->in.number;
	struct client_fault f;
	struct json *v = NULL;
	struct err err = { 0 };
	char where[32];
	int rc;

	snprintf(where, sizeof where, "line %lu", line);
	rc = json_parse(where, text, len, &v, &err);
	if (!rc)
		rc = submit_object_check(where, v, &err);
	if (rc) {
		client_fail(&f, err_exit_code(err.code), "%s", err.text);
		note_error(m, line, &f);
		json_free(v);
		return 0;
	}
	submit_request(m->client, m->o, v);
	json_free(v);
	return send(m, line);
}

/* Reads a line and sends what is in it. *out_done: there are no more. */
static int take_line(struct many *m, bool *out_done)
{
	struct client_fault f;
	bool too_long;
	size_t len;
	char *text = next_line(&m->in, &len, &too_long);

	if (too_long) {
		client_fail(&f, CLIENT_USAGE, "longer than the %d bytes a request may have",
			    CLIENT_MAX_REQUEST);
		note_error(m, m->in.number, &f);
		return 0;
	}
	*out_done = !text;
	if (client_interrupted()) {
		fprintf(stderr, "postrider: interrupted; the daemon keeps the jobs that it has answered\n");
		return CLIENT_INTERRUPTED;
	}
	/* A blank line is nothing, not a mistake. */
	return text && strspn(text, " \t") < len ? send_line(m, text, len) : 0;
}

static int take_answer(struct many *m)
{
	unsigned long line = m->line[m->first];
	struct submit_answer a;
	struct client_fault f;
	struct json *reply = NULL;
	int rc = client_reply(m->client, &reply, &f);

	if (rc && !f.code[0]) {
		if (rc == CLIENT_INTERRUPTED)
			fprintf(stderr, "postrider: interrupted; ");
		else
			client_say(&f);
		fprintf(stderr,
			"%s:%lu and %zu lines after it were sent and not answered; the daemon may have "
			"accepted them\n",
			cli_clean(m->in.name), line, m->n_flying - 1);
		return rc;
	}
	m->first = (m->first + 1) % IN_FLIGHT;
	m->n_flying--;
	if (rc) {
		note_error(m, line, &f);
		return 0;
	}
	rc = submit_answer_read(reply, m->o->dry_run || json_type(json_get(reply, "job")) == JSON_NULL, &a,
				&f);
	if (rc) {
		note_error(m, line, &f);
	} else {
		m->n_verdict[a.verdict]++;
		m->n_duplicates += a.duplicate;
		put_answer(m, line, reply, &a);
	}
	json_free(reply);
	return 0;
}

static int run(struct many *m)
{
	bool done = false;
	int rc = 0;

	while (!rc && (!done || m->n_flying)) {
		if (!done && m->n_flying < IN_FLIGHT &&
		    (!m->n_flying || m->o->array || line_is_near(&m->in))) {
			if (!m->n_flying)
				rc = flush(m);
			if (!rc)
				rc = m->o->array ? take_index(m, &done) : take_line(m, &done);
		} else {
			rc = take_answer(m);
			if (!rc && m->out.len > 65536)
				rc = flush(m);
		}
	}
	if (flush(m) && !rc)
		rc = CLIENT_FAILED;
	return rc;
}

static void summary(const struct many *m)
{
	unsigned long n = m->n_bad;

	for (int i = 0; i < N_SUBMIT_VERDICTS; i++)
		n += m->n_verdict[i];

	if (m->c->quiet)
		return;
	fprintf(stderr, "postrider: %lu %s: %lu promised, %lu best effort, %lu rejected, %lu failed", n,
		n == 1 ? "job" : "jobs", m->n_verdict[SUBMIT_PROMISED], m->n_verdict[SUBMIT_BEST_EFFORT],
		m->n_verdict[SUBMIT_REJECTED], m->n_bad);
	if (m->n_verdict[SUBMIT_WAITING])
		fprintf(stderr, ", %lu waiting for another", m->n_verdict[SUBMIT_WAITING]);
	if (m->n_verdict[SUBMIT_CHANCE])
		fprintf(stderr, ", %lu by chance", m->n_verdict[SUBMIT_CHANCE]);
	if (m->n_duplicates)
		fprintf(stderr, "; %lu existed before", m->n_duplicates);
	fputs("\n", stderr);
}

static int submit_array(struct many *m)
{
	int rc = submit_array_parse(m->o->array, &m->index, &m->to, &m->step) ? run(m) : CLIENT_USAGE;

	summary(m);
	strbuf_release(&m->out);
	if (rc)
		return rc;
	return m->n_verdict[SUBMIT_REJECTED] ? CLIENT_REJECTED : m->first_error;
}

int submit_many(const struct cli *c, const struct submit_options *o, struct client *client,
		const struct json *object)
{
	bool from_stdin = o->jsonl && !strcmp(o->jsonl, "-");
	struct many m = { .c = c,
			  .o = o,
			  .client = client,
			  .object = object,
			  .in = { .name = from_stdin ? "stdin" : o->jsonl } };
	struct err err = { 0 };
	int rc;

	if (o->array) {
		m.in.name = "index";
		return submit_array(&m);
	}
	m.in.fd = from_stdin ? STDIN_FILENO : open(o->jsonl, O_RDONLY | O_CLOEXEC);
	if (m.in.fd < 0) {
		err_fail(&err,
			 errno == ENOENT   ? ERR_NOTFOUND
			 : errno == EACCES ? ERR_PERM
					   : ERR_IO,
			 "%s: %s", o->jsonl, strerror(errno));
		return cli_fail(&err);
	}
	m.in.buf = mem_alloc(CLIENT_MAX_REQUEST + 2);
	if (m.in.buf) {
		rc = run(&m);
		if (!rc && m.in.failed) {
			fprintf(stderr, "postrider: %s: reading failed\n", cli_clean(m.in.name));
			rc = CLIENT_FAILED;
		}
		summary(&m);
	} else {
		err_nomem(&err, NULL);
		rc = cli_fail(&err);
	}
	if (!from_stdin)
		close(m.in.fd);
	free(m.in.buf);
	strbuf_release(&m.out);
	if (rc)
		return rc;
	return m.n_verdict[SUBMIT_REJECTED] ? CLIENT_REJECTED : m.first_error;
}
