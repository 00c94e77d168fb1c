/* `postrider doctor`: is everything there that is needed, and does it work? One sentence a thing: the
 * programs, the machine, the configurations, the daemon, its model. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/io.h"
#include "common/places.h"
#include "common/text/text.h"
#include "common/version.h"
#include "scheduler/cli/client/client.h"
#include "scheduler/cli/job/own_daemon.h"
#include "scheduler/config/config.h"
#include "scheduler/process/machine.h"
#include "scheduler/process/other_load.h"

#define EXIT_INVALID 6
#define LOOK_S 0.5 /* at what other programs do */
#define LEAST_FREE_MB 200.0
#define ENOUGH_JOBS 20.0 /* to say that bounds do not hold */

enum health { WELL, NOTE, WRONG };
static const char *const health_name[] = { "well", "note", "wrong" };

struct examination {
	const struct cli *c;
	struct client_params at;
	struct strbuf text; /* of the finding under way */
	struct cli_table table;
	struct strbuf out;
	struct json_writer w;
	size_t n_wrong, n_notes;
	int exit_code; /* of the first thing that is wrong */
	double others; /* processes of other programs that want a cpu, by the daemon; NaN: not known */
};

/* The sentence is in e->text. `code`: the exit code where it is wrong. */
static void found(struct examination *e, const char *what, enum health h, int code)
{
	if (h == WRONG && !e->n_wrong++)
		e->exit_code = code;
	e->n_notes += h == NOTE;
	if (e->c->json) {
		json_open(&e->w, '{');
		json_kv_string(&e->w, "check", what);
		json_kv_string(&e->w, "state", health_name[h]);
		json_kv_string(&e->w, "text", strbuf_text(&e->text));
		json_close(&e->w, '}');
	} else if (!e->c->quiet || h == WRONG) {
		cli_table_add(&e->table, "%s", what);
		cli_table_add(&e->table, "%s", health_name[h]);
		cli_table_add(&e->table, "%s", strbuf_text(&e->text));
	}
	strbuf_reset(&e->text);
}

/* ---- this machine ---- */

static void examine_programs(struct examination *e)
{
	static const char *const name[] = { "postriderd", "postrider-supervisor", "postrider-lab",
					    "postrider-automl" };
	size_t n = sizeof name / sizeof *name;
	const char *comma = "";
	char path[PATH_MAX];

	for (size_t i = 0; i < n; i++) {
		if (place_program(name[i], path, sizeof path))
			continue;
		strbuf_printf(&e->text, "%s%s", comma, name[i]);
		comma = ", ";
	}
	if (*comma) {
		strbuf_puts(&e->text, " is not there: install again, or put it beside this program");
		found(e, "programs", WRONG, 1);
		return;
	}
	strbuf_printf(&e->text, "all of version %s, in %.*s", postrider_version,
		      (int)(strrchr(path, '/') - path), path);
	found(e, "programs", WELL, 0);
}

/* Of the folder, or the first above it that is there. */
static double free_mb(const char *folder)
{
	char path[PATH_MAX];
	struct statvfs s;

	snprintf(path, sizeof path, "%s", folder);
	while (statvfs(path, &s)) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return NAN;
		*slash = '\0';
	}
	return (double)s.f_bavail * (double)s.f_frsize / 1e6;
}

static void examine_machine(struct examination *e)
{
	double memory = machine_memory_mb();
	struct err err = { 0 };
	struct own_daemon own;
	double room = NAN;
	char a[32];

	strbuf_printf(&e->text, "%.0f %s", machine_cores(), machine_cores() > 1.0 ? "cpus" : "cpu");
	if (isfinite(memory))
		strbuf_printf(&e->text, ", %s GB of memory for jobs", cli_short(memory / 1e3, a));
	if (!own_daemon_find(&own, &err))
		room = free_mb(own.dir);
	if (!isnan(room))
		strbuf_printf(&e->text, ", %s GB free in %s", cli_short(room / 1e3, a), own.dir);
	if (err.code)
		strbuf_printf(&e->text, "; no place for a daemon of your own: %s", err.text);
	else if (room < LEAST_FREE_MB)
		strbuf_puts(&e->text, ": too little for what jobs write");
	found(e, "machine", err.code || room < LEAST_FREE_MB ? WRONG : WELL, 1);
}

static double look_around(void)
{
	struct other_load load = { 0 };
	double processes = NAN;

	for (int i = 0; i < 2; i++) {
		char *stat = NULL, *pressure = NULL;
		size_t len;

		if (i)
			usleep((useconds_t)(1e6 * LOOK_S));
		if (!io_read_file("/proc/stat", OTHER_LOAD_MAX_TEXT, &stat, &len, NULL)) {
			io_read_file("/proc/pressure/cpu", OTHER_LOAD_MAX_TEXT, &pressure, &len, NULL);
			processes = other_load_sample(&load, stat, pressure, (struct other_load_ours){ 0 },
						      LOOK_S);
		}
		free(stat);
		free(pressure);
	}
	return processes;
}

/* The daemon's own jobs are no other work, so its word counts where there is one. */
static void examine_load(struct examination *e)
{
	double others = isnan(e->others) ? look_around() : e->others;
	bool busy = others >= 0.5 * machine_cores();
	char a[32];

	if (isnan(others))
		strbuf_puts(&e->text, "what other programs do is not known: /proc/stat cannot be read");
	else if (others < OTHER_LOAD_LEAST)
		strbuf_puts(&e->text, "no other program wants a cpu");
	else
		strbuf_printf(&e->text, "other programs want %s of %.0f cpus%s", cli_short(others, a),
			      machine_cores(),
			      busy ? ": runs take longer now than on a quiet machine; measure later" : "");
	found(e, "other work", busy || isnan(others) ? NOTE : WELL, 0);
}

/* ---- configurations ---- */

struct telling {
	const char *path; /* what each thing begins with */
	struct strbuf *text; /* the first thing that is wrong, else the first note */
	bool has_error;
	size_t n;
};

static void tell(void *owner, bool is_error, const char *text)
{
	struct telling *t = owner;

	t->n++;
	if (t->text->len && (t->has_error || !is_error))
		return;
	t->has_error = is_error;
	strbuf_reset(t->text);
	if (!strncmp(text, t->path, strlen(t->path)) && !strncmp(text + strlen(t->path), ": ", 2))
		text += strlen(t->path) + 2;
	strbuf_puts(t->text, text);
}

static void examine_file(struct examination *e, const char *path)
{
	struct strbuf first = { 0 };
	struct telling t = { .path = path, .text = &first };
	struct config *config = NULL;
	struct err err = { 0 };

	if (config_read(path, &config, &err)) {
		strbuf_puts(&e->text, err.text);
		found(e, "settings", WRONG, EXIT_INVALID);
		return;
	}
	config_check(config, tell, &t);
	strbuf_printf(&e->text, "%s: %zu job %s", path, config->n_types,
		      config->n_types == 1 ? "type" : "types");
	if (t.n)
		strbuf_printf(&e->text, "; %s", strbuf_text(&first));
	if (t.n > 1)
		strbuf_printf(&e->text, "; %zu more: postrider check-config %s", t.n - 1, path);
	found(e, "settings", t.has_error ? WRONG : t.n ? NOTE : WELL, EXIT_INVALID);
	strbuf_release(&first);
	config_free(config);
}

static void examine_configurations(struct examination *e)
{
	char *path = config_find(NULL);
	struct own_daemon own;
	bool has_own = !own_daemon_find(&own, NULL) && !access(own.config, F_OK) &&
		       (!path || strcmp(path, own.config) != 0);

	if (path)
		examine_file(e, path);
	if (has_own)
		examine_file(e, own.config);
	if (!path && !has_own) {
		strbuf_puts(&e->text, "there is none, and none is needed: 'postrider run' makes its own");
		found(e, "settings", WELL, 0);
	}
	free(path);
}

/* ---- the daemon and its model ---- */

static int ask(const struct client_params *at, const char *op, struct json **out, struct client_fault *f)
{
	struct client *client = NULL;
	int rc = client_open(at, &client, f);

	if (!rc) {
		client_begin(client, op);
		rc = client_call(client, out, f);
	}
	client_close(client);
	return rc;
}

static void examine_promises(struct examination *e, const struct json *stats)
{
	const struct json *slo = json_get(stats, "slo");
	double met = cli_json_number(slo, "met"), all = met + cli_json_number(slo, "missed");

	if (!(all > 0.0))
		strbuf_puts(&e->text, "none has ended yet");
	else
		strbuf_printf(&e->text, "%.0f of %.0f kept", met, all);
	found(e, "promises", WELL, 0);
}

/* Fewer runs than stated were within their bounds, by more than chance. */
static bool bounds_fail(const struct json *c)
{
	double p = cli_json_number(c, "confidence"), n = cli_json_number(c, "n");

	return n >= ENOUGH_JOBS && cli_json_number(c, "share") < p - 2.0 * sqrt(p * (1.0 - p) / n);
}

static void examine_model(struct examination *e, const struct json *hello, const struct json *stats)
{
	const struct json *model = json_get(hello, "model"), *drift = json_path(stats, "learning.drift");
	size_t types = 0, own = 0;
	bool bad = json_bool(json_get(drift, "alarm"), false);
	char a[32];

	for (const struct json *t = json_first(json_get(hello, "types")); t; t = json_next(t), types++)
		own += json_type(json_get(t, "own_model")) == JSON_OBJECT;
	if (json_type(model) == JSON_OBJECT)
		strbuf_printf(&e->text, "%s, learnt from %.0f rows at %s",
			      json_string(json_get(model, "kind"), "?"), cli_json_number(model, "rows"),
			      json_string(json_get(model, "created"), "?"));
	else
		strbuf_puts(&e->text, "none for all types together");
	if (own)
		strbuf_printf(&e->text, "; %zu of %zu job types have their own", own, types);
	if (bad)
		strbuf_printf(&e->text, "; jobs take %s %s than predicted: 'postrider model retrain'",
			      cli_percent(0.01 * fabs(cli_json_number(drift, "shift_percent")), a),
			      json_bool(json_get(drift, "slower"), false) ? "longer" : "less");
	for (const struct json *c = json_first(json_get(stats, "coverage")); c; c = json_next(c)) {
		if (!bounds_fail(c))
			continue;
		strbuf_printf(&e->text, "; only %.0f of %.0f runs were within their %.0f %% bounds",
			      cli_json_number(c, "inside"), cli_json_number(c, "n"),
			      100.0 * cli_json_number(c, "confidence"));
		bad = true;
	}
	if (json_type(model) != JSON_OBJECT && !own && types) {
		strbuf_puts(&e->text,
			    ", and no job type has its own: nothing can be promised before the first "
			    "runs, or 'postrider profile'");
		bad = true;
	}
	found(e, "model", bad ? NOTE : WELL, 0);
}

static void examine_answer(struct examination *e, const char *socket, const struct json *hello,
			   const struct json *stats)
{
	const char *version = json_string(json_get(hello, "version"), "?");
	const struct json *queue = json_get(stats, "queue");
	bool failed = json_bool(json_path(stats, "store.failed"), false);
	bool other = strcmp(version, postrider_version) != 0,
	     drains = json_bool(json_get(stats, "draining"), false);
	char a[32];

	strbuf_printf(&e->text, "answers at %s; up %s, %.0f jobs run, %.0f wait", socket,
		      text_seconds(cli_json_number(stats, "uptime_s"), a), cli_json_number(queue, "running"),
		      cli_json_number(queue, "length"));
	if (failed)
		strbuf_puts(&e->text,
			    "; its database cannot be written, so it takes no job: is the disk full?");
	if (drains)
		strbuf_puts(&e->text, "; it is draining and takes no job: 'postrider drain --off'");
	if (other)
		strbuf_printf(&e->text, "; it is of version %s, this program of %s: start it again", version,
			      postrider_version);
	found(e, "daemon", failed ? WRONG : other || drains ? NOTE : WELL, 1);
	e->others = cli_json_number(json_get(stats, "outside"), "processes");
	examine_promises(e, stats);
	examine_model(e, hello, stats);
}

static void examine_daemon(struct examination *e)
{
	const char *named = getenv("POSTRIDER_SOCKET");
	bool asked = e->at.socket || (named && *named);
	struct json *hello = NULL, *stats = NULL;
	struct client_fault f = { 0 };
	char *socket = NULL;
	struct err err = { 0 };
	int rc;

	if (config_socket(e->at.socket, &socket, &err)) {
		strbuf_puts(&e->text, err.text);
		found(e, "daemon", asked ? WRONG : NOTE, err_exit_code(err.code));
		return;
	}
	rc = ask(&e->at, "hello", &hello, &f);
	if (!rc)
		rc = ask(&e->at, "stats", &stats, &f);
	if (!rc) {
		examine_answer(e, socket, hello, stats);
	} else if (rc == CLIENT_UNREACHABLE && !asked) {
		strbuf_puts(&e->text, "none runs now; 'postrider run' starts your own when it is needed");
		found(e, "daemon", WELL, 0);
	} else {
		strbuf_puts(&e->text, f.text);
		found(e, "daemon", WRONG, rc);
	}
	json_free(hello);
	json_free(stats);
	free(socket);
}

/* ---- the verb ---- */

static int report(struct examination *e)
{
	int code;

	if (e->c->json) {
		json_close(&e->w, ']');
		json_kv_bool(&e->w, "well", !e->n_wrong);
		json_close(&e->w, '}');
		strbuf_puts(&e->out, "\n");
	} else if (!e->c->quiet || e->n_wrong) {
		cli_table_print(&e->table, &e->out, cli_colour(e->c));
		if (e->n_wrong)
			strbuf_printf(&e->out, "\n%zu %s wrong\n", e->n_wrong,
				      e->n_wrong == 1 ? "thing is" : "things are");
		else
			strbuf_puts(&e->out, e->n_notes ? "\nnothing is wrong\n" : "\nall is well\n");
	}
	code = cli_finish(e->c, &e->out);
	return code ? code : e->exit_code;
}

int verb_doctor(int argc, char **argv)
{
	struct examination e = { .at = { .timeout_s = NAN }, .others = NAN };
	const struct cli_option option[] = { CLIENT_OPTIONS(e.at), { 0 } };
	const struct cli_usage usage = {
		.verb = "doctor",
		.synopsis = "[--json]",
		.what = "Looks whether everything is there and works: the programs, the machine, other work "
			"on it,\n"
			"the configurations, the daemon, its promises and its model. A line each: well, note "
			"or\n"
			"wrong. With -q only what is wrong. The exit code is 0 if nothing is wrong, 6 for a "
			"wrong\n"
			"configuration or model, 5 if the daemon that was named does not answer, else 1.",
		.option = option,
		.json = true,
		.examples = "  postrider doctor\n"
			    "  postrider doctor -q || mail -s 'postrider is ill' root\n",
	};
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	e.c = &c;
	cli_table_head(&e.table, "lll", "what", "state", "");
	json_begin(&e.w, &e.out, true);
	if (c.json) {
		json_open(&e.w, '{');
		json_kv_open(&e.w, "checks", '[');
	}
	client_catch_signals();
	examine_programs(&e);
	examine_machine(&e);
	examine_configurations(&e);
	examine_daemon(&e);
	examine_load(&e);
	code = report(&e);
	cli_table_release(&e.table);
	strbuf_release(&e.text);
	strbuf_release(&e.out);
	return code;
}
