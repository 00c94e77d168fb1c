/* Replays the transcripts of docs/PROTOCOL.md against a real daemon. See transcript.h. */
#define _GNU_SOURCE
#include "tests/daemon/transcript.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "tests/daemon/harness.h"

#define MAX_CLIENTS 8
#define MAX_FD 4096

/* ---- reading the document ---- */

static void add_step(struct transcript *t, char *line, size_t number)
{
	struct step *s;
	struct err err = { 0 };

	if (line[0] == '#' || line[0] == '\0')
		return;
	if (!strchr("<>@", line[0]) || line[1] != ' ')
		die("PROTOCOL.md:%zu: a transcript has lines that start with '> ', '< ', '@ ' or '# '",
		    number);
	if (mem_grow((void **)&t->step, &t->cap, t->n_steps + 1, sizeof *t->step))
		die("out of memory");
	s = &t->step[t->n_steps++];
	*s = (struct step){ .kind = line[0], .line = number, .text = line + 2 };
	if (s->kind == '<' && json_parse("expected", s->text, strlen(s->text), &s->expected, &err))
		die("PROTOCOL.md:%zu: %s", number, err.text);
	if (s->kind == '@' && !strncmp(s->text, "client ", 7) && strstr(s->text, " uid "))
		t->needs_root = true;
}

static struct transcript *add_transcript(struct document *d, const char *title, size_t line)
{
	struct transcript *t;

	if (mem_grow((void **)&d->transcript, &d->cap, d->n_transcripts + 1, sizeof *d->transcript))
		die("out of memory");
	t = &d->transcript[d->n_transcripts++];
	*t = (struct transcript){ 0 };
	snprintf(t->name, sizeof t->name, "PROTOCOL.md:%zu: %s", line, title);
	return t;
}

static void read_configuration(struct document *d, const char *from, size_t line)
{
	const char *end = strstr(from, "\n```");
	struct err err = { 0 };

	if (!end || json_parse("configuration", from, (size_t)(end - from), &d->configuration, &err))
		die("PROTOCOL.md:%zu: %s", line, err.text);
}

void document_read(const char *path, struct document *out)
{
	struct transcript *t = NULL;
	struct err err = { 0 };
	char title[64] = "";
	size_t len, number = 1;

	*out = (struct document){ 0 };
	if (io_read_file(path, (size_t)1 << 24, &out->text, &len, &err))
		die("%s", err.text);
	out->lines = mem_strdup(out->text);
	for (char *line = out->lines, *next; line; line = next, number++) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!strcmp(line, "```transcript")) {
			t = add_transcript(out, title, number);
		} else if (!strcmp(line, "```configuration") && next) {
			read_configuration(out, next, number);
		} else if (!strncmp(line, "```", 3)) {
			t = NULL;
		} else if (t) {
			add_step(t, line, number);
		} else if (line[0] == '#') {
			snprintf(title, sizeof title, "%s", line + strspn(line, "# "));
		}
	}
	if (!out->configuration || !out->n_transcripts)
		die("%s: has no configuration or no transcript", path);
}

void document_release(struct document *d)
{
	for (size_t i = 0; i < d->n_transcripts; i++) {
		for (size_t k = 0; k < d->transcript[i].n_steps; k++)
			json_free(d->transcript[i].step[k].expected);
		free(d->transcript[i].step);
	}
	free(d->transcript);
	free(d->text);
	free(d->lines);
	json_free(d->configuration);
	*d = (struct document){ 0 };
}

/* ---- does it match ---- */

static bool is_wild(const struct json *v)
{
	return json_type(v) == JSON_STRING && !strcmp(json_string(v, ""), "*");
}

/* The expected is a part of what came; `where` is filled with the first place where it is not. */
static bool matches(const struct json *want, const struct json *got, char *where, size_t size)
{
	size_t used = strlen(where);
	bool same = true;

	if (is_wild(want))
		return json_type(got) != JSON_ABSENT;
	if (json_type(want) != json_type(got))
		return false;
	switch (json_type(want)) {
	case JSON_BOOL: return json_bool(want, false) == json_bool(got, false);
	case JSON_NUMBER: return json_number(want, 0) == json_number(got, 0);
	case JSON_STRING: return !strcmp(json_string(want, ""), json_string(got, ""));
	case JSON_OBJECT:
		for (const struct json *m = json_first(want); m && same; m = json_next(m)) {
			snprintf(where + used, size - used, ".%s", json_key(m));
			same = matches(m, json_get(got, json_key(m)), where, size);
		}
		break;
	case JSON_ARRAY:
		if (json_size(want) == 1 && is_wild(json_first(want)))
			return true;
		same = json_size(want) == json_size(got);
		for (size_t i = 0; i < json_size(want) && same; i++) {
			snprintf(where + used, size - used, "[%zu]", i);
			same = matches(json_at(want, i), json_at(got, i), where, size);
		}
		break;
	default: break;
	}
	if (same)
		where[used] = '\0';
	return same;
}

/* Every member that is told is explained somewhere; names of parameters are the configuration's. */
static bool is_documented(const struct document *d, const struct json *v)
{
	for (const struct json *m = json_first(v); m; m = json_next(m)) {
		const char *key = json_type(v) == JSON_OBJECT ? json_key(m) : NULL;
		char quoted[64], marked[64];

		if (key) {
			snprintf(quoted, sizeof quoted, "\"%s\"", key);
			snprintf(marked, sizeof marked, "`%s`", key);
			if (!strstr(d->text, quoted) && !strstr(d->text, marked)) {
				printf("a reply has a member '%s', of which the document knows nothing\n",
				       key);
				return false;
			}
		}
		if ((!key || strcmp(key, "params") || json_type(m) != JSON_OBJECT) && !is_documented(d, m))
			return false;
	}
	return true;
}

/* ---- clients ---- */

struct client {
	char name[32];
	int fd; /* -1: not connected */
	bool greeted;
	char *text;
	size_t len, cap, used;
};

struct replay {
	const struct document *d;
	const struct transcript *t;
	struct fixture fixture;
	struct client client[MAX_CLIENTS];
	size_t n_clients, now; /* whose turn it is */
	struct json *settings; /* of "@ daemon" */
};

static void client_connect(struct replay *r, struct client *c, uid_t uid)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	snprintf(at.sun_path, sizeof at.sun_path, "%.107s", r->fixture.socket);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* The kernel tells the daemon who we are at this moment. */
	if (c->fd < 0 || (uid && seteuid(uid)) || connect(c->fd, (struct sockaddr *)&at, sizeof at))
		die("%s: %s", r->fixture.socket, strerror(errno));
	if (uid && seteuid(0))
		die("seteuid: %s", strerror(errno));
	c->greeted = false;
}

static void client_hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->text);
	c->fd = -1;
	c->text = NULL;
	c->len = c->cap = c->used = 0;
}

/* The next line, valid until the next call; NULL: none came, or (*out_closed) the connection has ended. */
static char *client_hear(struct client *c, bool *out_closed)
{
	double until = now_s() + PATIENCE_S;

	*out_closed = false;
	if (c->used)
		memmove(c->text, c->text + c->used, c->len - c->used);
	c->len -= c->used;
	c->used = 0;
	for (;;) {
		char *end = c->len ? memchr(c->text, '\n', c->len) : NULL;
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		ssize_t n;

		if (end) {
			*end = '\0';
			c->used = (size_t)(end - c->text) + 1;
			return c->text;
		}
		if (mem_grow((void **)&c->text, &c->cap, c->len + 65536, 1) || now_s() > until)
			return NULL;
		if (poll(&p, 1, 100) <= 0)
			continue;
		n = read(c->fd, c->text + c->len, c->cap - c->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			*out_closed = true;
			return NULL;
		}
		c->len += (size_t)n;
	}
}

static struct client *find_client(struct replay *r, const char *name, uid_t uid)
{
	size_t i = 0;

	while (i < r->n_clients && strcmp(r->client[i].name, name))
		i++;
	if (i == MAX_CLIENTS)
		die("more than %d clients in a transcript", MAX_CLIENTS);
	if (i == r->n_clients) {
		r->n_clients++;
		r->client[i] = (struct client){ .fd = -1 };
		snprintf(r->client[i].name, sizeof r->client[i].name, "%s", name);
	}
	r->now = i;
	if (r->client[i].fd < 0)
		client_connect(r, &r->client[i], uid);
	return &r->client[i];
}

static struct client *current(struct replay *r)
{
	return find_client(r, r->n_clients ? r->client[r->now].name : "first", 0);
}

/* ---- the daemon ---- */

static void put_value(struct json_writer *w, const struct json *v)
{
	enum json_type type = json_type(v);

	switch (type) {
	case JSON_BOOL: json_put_bool(w, json_bool(v, false)); break;
	case JSON_NUMBER: json_put_number(w, json_number(v, 0)); break;
	case JSON_STRING: json_put_string(w, json_string(v, "")); break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		json_open(w, type == JSON_ARRAY ? '[' : '{');
		for (const struct json *m = json_first(v); m; m = json_next(m)) {
			if (type == JSON_OBJECT)
				json_put_key(w, json_key(m));
			put_value(w, m);
		}
		json_close(w, type == JSON_ARRAY ? ']' : '}');
		break;
	default: json_put_null(w); break;
	}
}

/* Members of `v` that none of those before it has. */
static void put_members(struct json_writer *w, const struct json *v, const struct json *before,
			const struct json *first)
{
	for (const struct json *m = json_first(v); m; m = json_next(m)) {
		if (json_get(before, json_key(m)) || json_get(first, json_key(m)))
			continue;
		json_put_key(w, json_key(m));
		put_value(w, m);
	}
}

/* The document's configuration, the transcript's changes, and those of an "@ configure", each before the
 * other. */
static void configure(struct replay *r, const struct json *changes)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	struct err err = { 0 };

	json_begin(&w, &text, true);
	json_open(&w, '{');
	json_kv_string(&w, "socket", r->fixture.socket);
	json_kv_string(&w, "socket_mode", "0666");
	if (!json_get(changes, "state_dir"))
		json_kv_string(&w, "state_dir", r->fixture.state);
	if (!json_get(r->settings, "model"))
		json_kv_string(&w, "model", r->fixture.model);
	put_members(&w, changes, NULL, NULL);
	put_members(&w, r->settings, changes, NULL);
	put_members(&w, r->d->configuration, changes, r->settings);
	json_close(&w, '}');
	if (text.failed || io_write_file(r->fixture.config, text.text, text.len, &err))
		die("%s: %s", r->fixture.config, err.text);
	strbuf_release(&text);
}

static void set_limit(const struct replay *r, int what, rlim_t to)
{
	struct rlimit l;

	if (prlimit(r->fixture.pid, what, NULL, &l))
		die("prlimit: %s", strerror(errno));
	l.rlim_cur = to < l.rlim_max ? to : l.rlim_max;
	if (prlimit(r->fixture.pid, what, &l, NULL))
		die("prlimit: %s", strerror(errno));
}

/* The first descriptor that is not in use: a limit there means that none can be had. */
static rlim_t first_free_fd(pid_t pid)
{
	static bool used[MAX_FD];
	char path[64];
	struct dirent *e;
	rlim_t fd = 0;
	DIR *dir;

	memset(used, 0, sizeof used);
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] != '.' && atoi(e->d_name) < MAX_FD)
			used[atoi(e->d_name)] = true;
	}
	if (dir)
		closedir(dir);
	while (fd < MAX_FD && used[fd])
		fd++;
	return fd;
}

static void use_up_descriptors(const struct replay *r)
{
	rlim_t was = 0;

	/* The connection of whoever looked whether the daemon is up may only just be going. */
	for (int same = 0; same < 5; same++) {
		rlim_t at = first_free_fd(r->fixture.pid);

		if (at != was)
			same = 0;
		was = at;
		set_limit(r, RLIMIT_NOFILE, at);
		sleep_s(0.01);
	}
}

/* ---- steps ---- */

static bool complain(const struct replay *r, const struct step *s, const char *what, const char *got)
{
	printf("%s, line %zu: %s\n  wanted: %s\n  got:    %s\n", r->t->name, s->line, what, s->text,
	       got ? got : "nothing");
	return false;
}

/* Lines that follow each other are sent at once, as a client that pipelines does; *at becomes the last of
 * them. */
static bool say(struct replay *r, size_t *at)
{
	const struct step *s = &r->t->step[*at];
	struct strbuf lines = { 0 };
	bool good;

	for (size_t i = *at; i < r->t->n_steps && r->t->step[i].kind == '>'; i++) {
		strbuf_puts(&lines, r->t->step[i].text);
		strbuf_puts(&lines, "\n");
		*at = i;
	}
	if (lines.failed)
		die("out of memory");
	good = send_all(current(r)->fd, lines.text, lines.len);
	strbuf_release(&lines);
	return good || complain(r, s, "the connection has ended", NULL);
}

static bool expect(struct replay *r, const struct step *s)
{
	struct client *c = current(r);
	char where[512] = "", what[600];
	struct json *got = NULL;
	bool closed, good, first = !c->greeted;
	char *line = client_hear(c, &closed);

	c->greeted = true;
	if (first && line && strstr(line, "\"greeting\"") && !json_get(s->expected, "greeting"))
		line = client_hear(c, &closed);
	if (!line)
		return complain(r, s, closed ? "the connection has ended" : "nothing came", NULL);
	if (json_parse("reply", line, strlen(line), &got, NULL))
		return complain(r, s, "what came is no JSON", line);
	good = matches(s->expected, got, where, sizeof where);
	if (!good) {
		snprintf(what, sizeof what, "differs at '%s'", where);
		complain(r, s, what, line);
	}
	good = good && is_documented(r->d, got);
	json_free(got);
	return good;
}

static bool expect_closed(struct replay *r, const struct step *s)
{
	struct client *c = current(r);
	bool closed;
	char *line = client_hear(c, &closed);

	if (!closed)
		return complain(r, s, "the connection is still open", line);
	client_hang_up(c);
	return true;
}

static void do_long(struct replay *r, size_t n)
{
	char *line = mem_alloc(n + 1);

	if (!line)
		die("out of memory");
	memset(line, 'x', n);
	line[n] = '\n';
	send_all(current(r)->fd, line, n + 1);
	free(line);
}

static void do_configure(struct replay *r, const char *how)
{
	struct json *changes = NULL;
	struct err err = { 0 };

	if (!strcmp(how, "broken")) {
		if (io_write_file(r->fixture.config, "{\"slots\":", 9, &err))
			die("%s", err.text);
		return;
	}
	if (json_parse("configure", how, strlen(how), &changes, &err))
		die("%s: %s", r->t->name, err.text);
	configure(r, changes);
	json_free(changes);
}

static void do_restart(struct replay *r)
{
	for (size_t i = 0; i < r->n_clients; i++)
		client_hang_up(&r->client[i]);
	if (fixture_stop(&r->fixture, SIGTERM))
		die("%s: the daemon did not leave well", r->t->name);
	fixture_start(&r->fixture);
}

static void do_until(struct replay *r, unsigned long long job, const char *state)
{
	struct talk *t = talk_open(&r->fixture);

	if (!strcmp(state, "waiting"))
		await_reason(t, job);
	else
		json_free(await(t, job, state));
	talk_close(t);
}

static bool direct(struct replay *r, const struct step *s)
{
	unsigned long long n;
	unsigned uid = 0;
	char word[64];

	if (!strncmp(s->text, "daemon ", 7))
		return true; /* looked at before the start */
	if (sscanf(s->text, "client %31s uid %u", word, &uid) >= 1)
		find_client(r, word, uid);
	else if (sscanf(s->text, "until %llu %15s", &n, word) == 2)
		do_until(r, n, word);
	else if (!strcmp(s->text, "closed"))
		return expect_closed(r, s);
	else if (sscanf(s->text, "long %llu", &n) == 1)
		do_long(r, n);
	else if (!strncmp(s->text, "configure ", 10))
		do_configure(r, s->text + 10);
	else if (!strcmp(s->text, "restart"))
		do_restart(r);
	else if (!strncmp(s->text, "disk ", 5))
		set_limit(r, RLIMIT_FSIZE, !strcmp(s->text, "disk full") ? 0 : RLIM_INFINITY);
	else if (!strcmp(s->text, "descriptors used up"))
		use_up_descriptors(r);
	else if (!strcmp(s->text, "descriptors free"))
		set_limit(r, RLIMIT_NOFILE, RLIM_INFINITY);
	else
		die("%s, line %zu: what is '@ %s'?", r->t->name, s->line, s->text);
	return true;
}

/* Nothing came that the transcript does not show: the answer to one more question is next, events aside. */
static bool nothing_left(struct replay *r, struct client *c)
{
	static const char hello[] = "{\"op\":\"hello\",\"id\":\"the end\"}\n";
	bool closed;
	char *line;

	if (c->fd < 0 || !send_all(c->fd, hello, sizeof hello - 1))
		return true;
	do {
		line = client_hear(c, &closed);
	} while (line && (strstr(line, "\"event\":") || strstr(line, "\"greeting\":")));
	if (closed || (line && (strstr(line, "\"id\":\"the end\"") || strstr(line, "\"idle_timeout\""))))
		return true;
	printf("%s: client %s got a line that is not shown: %s\n", r->t->name, c->name,
	       line ? line : "(none)");
	return false;
}

static void read_settings(struct replay *r)
{
	const struct step *s = &r->t->step[0];
	struct err err = { 0 };

	if (s->kind == '@' && !strncmp(s->text, "daemon ", 7) &&
	    json_parse("daemon", s->text + 7, strlen(s->text + 7), &r->settings, &err))
		die("PROTOCOL.md:%zu: %s", s->line, err.text);
}

bool transcript_replay(const struct document *d, const struct transcript *t, const char *model)
{
	struct replay r = { .d = d, .t = t };
	bool good = true;

	fixture_open(&r.fixture);
	snprintf(r.fixture.model, sizeof r.fixture.model, "%s", model);
	read_settings(&r);
	configure(&r, NULL);
	fixture_start(&r.fixture);
	for (size_t i = 0; i < t->n_steps && good; i++) {
		const struct step *s = &t->step[i];

		if (s->kind == '@')
			good = direct(&r, s);
		else if (s->kind == '<')
			good = expect(&r, s);
		else
			good = say(&r, &i);
	}
	for (size_t i = 0; i < r.n_clients; i++) {
		good = good && nothing_left(&r, &r.client[i]);
		client_hang_up(&r.client[i]);
	}
	json_free(r.settings);
	if (fixture_stop(&r.fixture, SIGTERM)) { /* also by itself: a sanitizer speaks at the end */
		printf("%s: the daemon did not leave well\n", t->name);
		good = false;
	}
	fixture_close(&r.fixture);
	return good;
}
