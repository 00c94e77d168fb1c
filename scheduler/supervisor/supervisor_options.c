/* Parses the command line and looks up the user. docs/man/postrider-supervisor.8 is the manual. See
 * supervisor.h. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SECONDS 1e9 /* 30 years: long enough, and far from overflowing */

static double seconds_arg(const char *name, const char *s)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v >= 0.0))
		give_up(SUPERVISOR_USAGE, "--%s %s: not a number of seconds", name, s);
	return v < MAX_SECONDS ? v : MAX_SECONDS;
}

static unsigned long long count_arg(const char *name, const char *s)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || errno)
		give_up(SUPERVISOR_USAGE, "--%s %s: not a number", name, s);
	return v;
}

static unsigned id_arg(const char *name, const char *s)
{
	unsigned long long v = count_arg(name, s);

	if (v >= UINT32_MAX) /* -1 means "leave it" to chown and setuid */
		give_up(SUPERVISOR_USAGE, "--%s %s: there is no such id", name, s);
	return (unsigned)v;
}

static const char *identity_arg(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	if (n == 0 || n > RECORD_MAX_IDENTITY || s[n])
		give_up(SUPERVISOR_USAGE, "--identity %s: need up to %d hexadecimal digits", s,
			RECORD_MAX_IDENTITY);
	return s;
}

static int nice_arg(const char *s)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (end == s || *end || v < -20 || v > 19)
		give_up(SUPERVISOR_USAGE, "--nice %s: need -20 to 19", s);
	return (int)v;
}

/* "0-3,8" */
bool parse_cpus(const char *s, cpu_set_t *out)
{
	CPU_ZERO(out);
	while (*s) {
		char *end;
		unsigned long from = strtoul(s, &end, 10), to = from;

		if (end == s || *s < '0' || *s > '9')
			return false;
		if (*end == '-') {
			s = end + 1;
			to = strtoul(s, &end, 10);
			if (end == s || *s < '0' || *s > '9')
				return false;
		}
		if (from > to || to >= CPU_SETSIZE || (*end && *end != ',') || (*end && !end[1]))
			return false;
		for (; from <= to; from++)
			CPU_SET(from, out);
		s = end + (*end == ',');
	}
	return CPU_COUNT(out) > 0;
}

/* Its text stays where it is when the environment is cleared. */
static void keep_variable(struct options *o, const char *name)
{
	size_t n = strlen(name);

	for (char **e = environ; e && *e; e++) {
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			o->env[o->n_env++] = *e;
	}
}

static void usage(void)
{
	static const char text[] =
		"usage: postrider-supervisor --dir DIR [options] -- COMMAND [ARGUMENT...]\n"
		"\n"
		"Runs one job of postriderd and writes DIR.started and DIR.exit; see "
		"postrider-supervisor(8).\n"
		"\n"
		"  --dir DIR          the job's folder, an absolute path; created if needed\n"
		"  --job ID           its number, for POSTRIDER_JOB\n"
		"  --identity HEX     its identity: the records are DIR.HEX.started and DIR.HEX.exit\n"
		"  --uid U --gid G    the user it runs as (default: our own)\n"
		"  --work-dir DIR     where it runs (default: its folder)\n"
		"  --env NAME=VALUE   added to its environment; may be repeated\n"
		"  --keep-env NAME    keep this variable of our own environment, if it is set; may be "
		"repeated\n"
		"  --all-env          keep all of our own environment\n"
		"  --terminal         its output goes through a pseudo-terminal, into one log\n"
		"  --start LINE       batch, learning rate and last epoch, for POSTRIDER_START\n"
		"  --steer            the same in the file POSTRIDER_NEXT, which the daemon replaces\n"
		"  --gate FILE        start it when this file exists\n"
		"  --cpus LIST        the cpus it may use, as in 0-3,8\n"
		"  --cgroup PATH      a cgroup v2 folder to create for it\n"
		"  --nice N           niceness\n"
		"  --grace SECONDS    from SIGTERM to SIGKILL (default: 30)\n"
		"  --max-time SECONDS stop it after this time (default: 0, never)\n"
		"  --max-output BYTES of each log; the middle of a longer one is removed (default: 0, any)\n"
		"  --pass-code        leave with the exit code of the job, or 128 + the signal that ended "
		"it\n"
		"  --rlimit-fsize BYTES --rlimit-as BYTES --rlimit-nofile N\n";

	fputs(text, stdout);
}

void parse_options(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "dir", 1, NULL, 'd' },        { "job", 1, NULL, 'j' },
		{ "identity", 1, NULL, 'i' },   { "uid", 1, NULL, 'u' },
		{ "gid", 1, NULL, 'g' },        { "work-dir", 1, NULL, 'w' },
		{ "env", 1, NULL, 'e' },        { "cpus", 1, NULL, 'c' },
		{ "cgroup", 1, NULL, 'G' },     { "nice", 1, NULL, 'n' },
		{ "grace", 1, NULL, 'k' },      { "max-time", 1, NULL, 't' },
		{ "max-output", 1, NULL, 'O' }, { "rlimit-fsize", 1, NULL, 'F' },
		{ "rlimit-as", 1, NULL, 'A' },  { "rlimit-nofile", 1, NULL, 'N' },
		{ "keep-env", 1, NULL, 'K' },   { "pass-code", 0, NULL, 'P' },
		{ "gate", 1, NULL, 'W' },       { "all-env", 0, NULL, 'E' },
		{ "terminal", 0, NULL, 'T' },   { "help", 0, NULL, 'h' },
		{ "start", 1, NULL, 's' },      { "steer", 0, NULL, 'S' },
		{ NULL, 0, NULL, 0 },
	};
	cpu_set_t cpus;
	int c;

	while ((c = getopt_long(argc, argv, "+h", known, NULL)) != -1) {
		switch (c) {
		case 'd': o->dir = optarg; break;
		case 'j': o->job = optarg; break;
		case 'i': o->identity = identity_arg(optarg); break;
		case 'u': o->uid = id_arg("uid", optarg); break;
		case 'g': o->gid = id_arg("gid", optarg); break;
		case 'w': o->work_dir = optarg; break;
		case 'e': o->env[o->n_env++] = optarg; break;
		case 'K': keep_variable(o, optarg); break;
		case 'W': o->gate = optarg; break;
		case 'E': o->all_env = true; break;
		case 'P': o->pass_code = true; break;
		case 'T': o->terminal = true; break;
		case 's': o->start = optarg; break;
		case 'S': o->steer = true; break;
		case 'c': o->cpus = optarg; break;
		case 'G': o->cgroup = optarg; break;
		case 'n': o->nice = nice_arg(optarg); break;
		case 'k': o->grace_s = seconds_arg("grace", optarg); break;
		case 't': o->max_time_s = seconds_arg("max-time", optarg); break;
		case 'O': o->max_output = count_arg("max-output", optarg); break;
		case 'F': o->fsize = count_arg("rlimit-fsize", optarg); break;
		case 'A': o->as = count_arg("rlimit-as", optarg); break;
		case 'N': o->nofile = count_arg("rlimit-nofile", optarg); break;
		case 'h': usage(); exit(0);
		default: give_up(SUPERVISOR_USAGE, "unknown option or missing value; see --help");
		}
	}
	o->argv = argv + optind;
	if (!o->argv[0])
		give_up(SUPERVISOR_USAGE, "there is no command to run");
	if (!o->dir || o->dir[0] != '/' || !o->dir[1])
		give_up(SUPERVISOR_USAGE, "--dir: need an absolute path");
	if (o->start && strlen(o->start) > JOB_NEXT_MAX)
		give_up(SUPERVISOR_USAGE, "--start: at most %d bytes", JOB_NEXT_MAX);
	if (strlen(o->dir) + 64 > PATH_MAX)
		give_up(SUPERVISOR_USAGE, "--dir: the path is too long");
	if (o->cpus && (strlen(o->cpus) > RECORD_MAX_CPUS || !parse_cpus(o->cpus, &cpus)))
		give_up(SUPERVISOR_USAGE, "--cpus %.100s: not a list of cpus", o->cpus);
	for (size_t i = 0; i < o->n_env; i++) {
		if (!strchr(o->env[i], '=') || o->env[i][0] == '=')
			give_up(SUPERVISOR_USAGE, "--env %.100s: need NAME=VALUE", o->env[i]);
	}
}

/* Finds the name and the home of the job's user. For our own user $HOME is enough: a lookup may need a
 * network. */
void find_user(struct options *o)
{
	const char *home = getuid() != 0 && o->uid == getuid() ? getenv("HOME") : NULL;
	struct passwd *pw = home && *home ? NULL : getpwuid(o->uid);

	if (pw) {
		o->user = strdup(pw->pw_name);
		home = pw->pw_dir;
	}
	o->home = strdup(home && *home ? home : o->dir);
	if (!o->home || (pw && !o->user))
		give_up(SUPERVISOR_TRY_AGAIN, "out of memory");
}

void options_release(struct options *o)
{
	free(o->user);
	free(o->home);
	free(o->env);
}
