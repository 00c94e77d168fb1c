/* postriderd: its flags, and what comes before the daemon. It stays in the foreground. Read daemon.h next. */
#include <cblas.h>
#include <getopt.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/text/text.h"
#include "common/version.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/verify/verify.h"

static void help(FILE *to)
{
	fprintf(to,
		"usage: postriderd [--config FILE] [options]\n"
		"\n"
		"Accepts training jobs over a Unix socket, chooses the batch size of each, runs it and keeps "
		"its promises.\n"
		"Stays in the foreground; logs on standard error.\n"
		"\n"
		"  -c, --config FILE     configuration ($POSTRIDER_CONFIG, the user's, "
		"/etc/postrider/config.json)\n"
		"      --socket PATH     instead of the configuration's\n"
		"      --state DIR       the same: the folder of the database and the jobs\n"
		"      --policy NAME     the same: courier, courier-tuned, card, postrider, greedy, naive,\n"
		"                        boost, boost-full, queueing, anova, fixed:B\n"
		"      --model FILE      the same\n"
		"      --verify DIR      makes the decisions of a state folder again from its records, "
		"compares "
		"them, and ends;\n"
		"                        --at-least SHARE, --json: see 'postrider replay --help'\n"
		"  -f, --force           start on a state folder that others may write to\n"
		"  -h, --help            this text\n"
		"      --version         the version\n"
		"\n"
		"SIGHUP reads configuration and model again and keeps the old ones if the new ones are bad.\n"
		"SIGTERM or SIGINT: accepts no more jobs, saves and exits; running jobs go on, and the next "
		"daemon\nfinds them. A second signal ends it at once.\n"
		"\n"
		"Exit codes: 0 stopped as requested, 1 failed, 2 usage, 4 no such file, 6 invalid "
		"configuration, "
		"model or\n"
		"database, 7 not permitted, 8 another daemon runs.\n");
}

enum { OPT_SOCKET = 256, OPT_STATE, OPT_POLICY, OPT_MODEL, OPT_VERSION, OPT_VERIFY, OPT_AT_LEAST, OPT_JSON };

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, struct daemon_params *p, struct verify_params *v)
{
	static const struct option option[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "socket", required_argument, NULL, OPT_SOCKET },
		{ "state", required_argument, NULL, OPT_STATE },
		{ "policy", required_argument, NULL, OPT_POLICY },
		{ "model", required_argument, NULL, OPT_MODEL },
		{ "verify", required_argument, NULL, OPT_VERIFY },
		{ "at-least", required_argument, NULL, OPT_AT_LEAST },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "force", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:fh", option, NULL)) != -1) {
		switch (c) {
		case 'c': p->config_path = optarg; break;
		case 'f': p->force = true; break;
		case OPT_SOCKET: p->socket = optarg; break;
		case OPT_STATE: p->state_dir = optarg; break;
		case OPT_POLICY: p->policy = optarg; break;
		case OPT_MODEL: p->model = optarg; break;
		case OPT_VERIFY: v->state_dir = optarg; break;
		case OPT_JSON: v->json = true; break;
		case OPT_AT_LEAST:
			if (!text_number(optarg, &v->least) || !(v->least >= 0.0 && v->least <= 1.0)) {
				fprintf(stderr, "postriderd: --at-least %s: need a share from 0 to 1\n",
					optarg);
				return 2;
			}
			break;
		case OPT_VERSION: printf("postriderd %s\n", postrider_version); return 0;
		case 'h': help(stdout); return 0;
		default: fprintf(stderr, "postriderd: --help says more\n"); return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "postriderd: what is '%s'? It takes options only; --help says more\n",
			argv[optind]);
		return 2;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct daemon_params p = { 0 };
	struct daemon *d;
	struct err err = { 0 };
	struct verify_params v = { .least = NAN };
	int code = parse(argc, argv, &p, &v);

	if (code >= 0)
		return code;
	log_set_program("postriderd");
	signal(SIGPIPE, SIG_IGN); /* a client that has gone is a failed write */
	signal(SIGXFSZ, SIG_IGN); /* so is a file-size limit */
	umask(0077); /* what others may see is given by chmod() */
	gsl_set_error_handler_off();
	openblas_set_num_threads(1);
	if (v.state_dir) {
		log_set_program("postrider");
		return verify_run(&v);
	}
	if (daemon_new(&p, &d, &err)) {
		log_error("%s", err.text);
		return err_exit_code(err.code);
	}
	code = daemon_run(d);
	daemon_free(d);
	return code;
}
