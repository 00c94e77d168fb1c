/* postrider-bench [NAME...]: our speed and the peers', in one run and one table. The names and the JSON
 * of -o are a promise to scripts: [{"name","what","ours","peer","unit","ratio","bar","holds"}].
 * Exit code 0: no bar was missed; 1: some bar was missed or some bench failed; 2: usage. */
#define _GNU_SOURCE
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/io.h"
#include "common/text/text.h"
#include "tests/bench/bench.h"

static const struct bench {
	const char *name;
	bench_fn *run;
} bench_all[] = {
	{ "forest.fit.absolute", bench_fit_absolute },
	{ "forest.fit.squared", bench_fit_squared },
	{ "forest.grid", bench_grid },
	{ "decision.default", bench_decision_default },
	{ "decision.table", bench_decision_table },
	{ "decision.trees", bench_decision_trees },
	{ "hybrid.decision", bench_hybrid_decision },
	{ "forest.large", bench_large },
	{ "forest.scaling", bench_scaling },
	{ "lookahead.1000", bench_lookahead },
	{ "decision.busy", bench_decision_busy },
	{ "events", bench_events },
	{ "training.epoch.simplenet", bench_training_simplenet },
	{ "training.epoch.lenet5", bench_training_lenet5 },
	{ "automl.campaign", bench_automl_campaign },
	{ "daemon.submit", bench_daemon_submit },
	{ "daemon.submit.held", bench_daemon_held },
	{ "daemon.list", bench_daemon_list },
	{ "daemon.crowd", bench_daemon_crowd },
	{ "daemon.predict", bench_daemon_predict },
	{ "daemon.pipelined", bench_daemon_pipelined },
	{ "replay.million", bench_replay_million },
	{ "replay.cluster", bench_replay_cluster },
	{ "train.policy", bench_train_policy },
	{ "metrics.scrape", bench_metrics_scrape },
	{ "python.predict", bench_python_predict },
	{ "page.update", bench_page_update },
};
enum { N_BENCHES = sizeof bench_all / sizeof bench_all[0] };

static struct bench_env env = { .peers = "tests/bench/peers", .large_rows = 1000000, .submit_s = 60.0 };

/* ---- the temporary folder ---- */

/* Calls only what a signal handler may call; a daemon's folder has a tree of files, which rm knows best. */
static void remove_dir(void)
{
	pid_t child;

	if (!env.dir[0])
		return;
	child = _Fork();
	if (child == 0) {
		execl("/bin/rm", "rm", "-rf", "--", env.dir, (char *)NULL);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	env.dir[0] = '\0';
}

static void on_signal(int number)
{
	if (bench_child > 0)
		kill(bench_child, SIGTERM);
	for (size_t i = 0; i < BENCH_MAX_SERVERS; i++)
		if (bench_servers[i] > 0)
			kill(bench_servers[i], SIGKILL);
	remove_dir();
	_exit(128 + number);
}

static int make_dir(struct err *err)
{
	const char *base = getenv("TMPDIR");
	char dir[sizeof env.dir];
	int n = snprintf(dir, sizeof dir, "%s/postrider-bench.XXXXXX", base && *base ? base : "/tmp");

	if (n < 0 || (size_t)n >= sizeof dir || !mkdtemp(dir))
		return err_fail(err, ERR_IO, "cannot make a temporary folder in %s",
				base && *base ? base : "/tmp");
	memcpy(env.dir, dir, sizeof dir);
	atexit(remove_dir);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	snprintf(env.small_csv, sizeof env.small_csv, "%s/small.csv", env.dir);
	return bench_small_write(env.small_csv, err);
}

/* ---- results ---- */

static const char *number(double v, const char *unit, char *buf, size_t size)
{
	const char *blank = *unit ? " " : "";

	if (isnan(v))
		snprintf(buf, size, "-");
	else if (v > 0.0 && v < 0.001)
		snprintf(buf, size, "%.3g%s%s", v, blank, unit);
	else
		snprintf(buf, size, "%.*f%s%s", v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 4, v, blank, unit);
	return buf;
}

static void print_header(void)
{
	printf("%-20s %12s %12s %10s %12s %-5s  %s\n", "name", "ours", "peer", "ratio", "bar", "holds",
	       "what");
	fflush(stdout);
}

static void print_row(const char *name, const struct bench_result *r)
{
	static const char *const holds[] = { [HOLDS_NO] = "NO", [HOLDS_YES] = "yes", [HOLDS_UNKNOWN] = "-" };
	char ours[32], peer[32], ratio[32], bar[48];

	snprintf(bar, sizeof bar, "%s %g%s%s", r->kind == BAR_RATIO ? ">=" : "<=", r->bar,
		 r->kind == BAR_RATIO ? "" : " ", r->kind == BAR_RATIO ? "x" : r->unit);
	printf("%-20s %12s %12s %10s %12s %-5s  %s\n", name, number(r->ours, r->unit, ours, sizeof ours),
	       number(r->peer, r->unit, peer, sizeof peer), number(r->ratio, "", ratio, sizeof ratio), bar,
	       holds[r->holds], r->what);
	fflush(stdout);
}

static void put_json(struct json_writer *w, const char *name, const struct bench_result *r)
{
	json_open(w, '{');
	json_kv_string(w, "name", name);
	json_kv_string(w, "what", r->what);
	json_kv_number(w, "ours", r->ours);
	json_kv_number(w, "peer", r->peer);
	json_kv_string(w, "unit", r->unit);
	json_kv_number(w, "ratio", r->ratio);
	json_kv_number(w, "bar", r->bar);
	json_put_key(w, "holds");
	if (r->holds == HOLDS_UNKNOWN)
		json_put_null(w);
	else
		json_put_bool(w, r->holds == HOLDS_YES);
	json_close(w, '}');
}

/* False: the bench failed or its bar was missed. */
static bool run_one(const struct bench *b, struct json_writer *w)
{
	struct bench_result r = { .ours = NAN, .peer = NAN, .ratio = NAN, .unit = "", .holds = HOLDS_NO };
	struct err err = { 0 };

	bench_say("%s", b->name);
	if (b->run(&env, &r, &err)) {
		bench_say("%s failed: %s", b->name, err.text);
		bench_what(&r, "%sfailed: %s", *r.what ? "; " : "", err.text);
		r.ours = r.peer = r.ratio = NAN;
		r.holds = HOLDS_NO;
	}
	print_row(b->name, &r);
	put_json(w, b->name, &r);
	return r.holds != HOLDS_NO;
}

/* Other programs on the machine slow the benches down, the longer ones more. */
static void warn_if_busy(void)
{
	double load;
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (getloadavg(&load, 1) == 1 && load > 0.25 * (double)n)
		bench_say("the machine is busy (load %.1f on %ld processors): expect noise", load, n);
}

/* ---- the command line ---- */

static void help(FILE *to)
{
	fprintf(to,
		"usage: postrider-bench [-o FILE] [--peers DIR] [--rows N] [--seconds S] [NAME...]\n"
		"\n"
		"Measures Postrider and its peers side by side. Run it from the root of the repository.\n"
		"\n"
		"  -o, --output FILE   the results as JSON\n"
		"      --peers DIR     folder of the peers' scripts (tests/bench/peers)\n"
		"      --rows N        rows of forest.large and forest.scaling (1000000), for a quick trial\n"
		"      --seconds S     length of daemon.submit (60), for a quick trial\n"
		"  -l, --list          the names\n"
		"  -h, --help          this text\n"
		"\n"
		"BENCH_FULL=1 lets the peers run their long tasks whole instead of a part scaled up.\n");
}

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "postrider-bench: %s '%s'\npostrider-bench: --help says more\n", what, value);
	return 2;
}

static const struct bench *find(const char *name)
{
	for (size_t i = 0; i < N_BENCHES; i++)
		if (!strcmp(bench_all[i].name, name))
			return &bench_all[i];
	return NULL;
}

int main(int argc, char **argv)
{
	enum { OPT_PEERS = 256, OPT_ROWS, OPT_SECONDS };
	static const struct option option[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "peers", required_argument, NULL, OPT_PEERS },
		{ "rows", required_argument, NULL, OPT_ROWS },
		{ "seconds", required_argument, NULL, OPT_SECONDS },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static char self[4096];
	const char *full = getenv("BENCH_FULL"), *output = NULL;
	struct strbuf text = { 0 };
	struct json_writer w;
	struct err err = { 0 };
	uint64_t rows;
	bool all_hold = true;
	ssize_t n;
	int c;

	if (argc > 2 && !strcmp(argv[1], "--child"))
		return bench_large_child(argc - 2, argv + 2);
	while ((c = getopt_long(argc, argv, "o:lh", option, NULL)) != -1) {
		switch (c) {
		case 'o': output = optarg; break;
		case OPT_PEERS: env.peers = optarg; break;
		case OPT_ROWS:
			if (!text_uint64(optarg, &rows) || rows < 100000 || rows > 100000000)
				return usage_error("--rows needs a number from 100000 to 100000000, not",
						   optarg);
			env.large_rows = rows;
			break;
		case OPT_SECONDS:
			if (!text_number(optarg, &env.submit_s) || env.submit_s < 1.0 ||
			    env.submit_s > 3600.0)
				return usage_error("--seconds needs a number from 1 to 3600, not", optarg);
			break;
		case 'l':
			for (size_t i = 0; i < N_BENCHES; i++)
				puts(bench_all[i].name);
			return 0;
		case 'h': help(stdout); return 0;
		default: fprintf(stderr, "postrider-bench: --help says more\n"); return 2;
		}
	}
	for (int i = optind; i < argc; i++)
		if (!find(argv[i]))
			return usage_error("there is no bench called", argv[i]);
	env.full = full && *full && strcmp(full, "0") != 0;
	n = readlink("/proc/self/exe", self, sizeof self - 1);
	env.self = n > 0 ? self : argv[0];
	if (make_dir(&err))
		goto fail;

	json_begin(&w, &text, true);
	json_open(&w, '[');
	warn_if_busy();
	print_header();
	for (size_t i = 0; i < N_BENCHES && optind == argc; i++)
		all_hold &= run_one(&bench_all[i], &w);
	for (int i = optind; i < argc; i++)
		all_hold &= run_one(find(argv[i]), &w);
	json_close(&w, ']');
	strbuf_puts(&text, "\n");
	if (output && (text.failed ? err_fail(&err, ERR_NOMEM, "no memory for the results")
				   : io_write_file(output, text.text, text.len, &err)))
		goto fail;
	strbuf_release(&text);
	return all_hold ? 0 : 1;
fail:
	fprintf(stderr, "postrider-bench: %s\n", err.text);
	strbuf_release(&text);
	return 1;
}
