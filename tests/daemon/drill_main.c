/* postrider-drill: the long drills of the daemon. The tests have the same ones in short. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/text/text.h"
#include "tests/daemon/drills.h"
#include "tests/daemon/harness.h"

static void help(FILE *to)
{
	fprintf(to, "usage: BIN=build postrider-drill [options]\n"
		    "\n"
		    "Holds a real postriderd to its promises under load. Without options: everything, as "
		    "long as it takes.\n"
		    "\n"
		    "      --kills N      kill -9 of the daemon, a supervisor or a job at N random moments "
		    "(1000)\n"
		    "      --cycles N     SIGTERM and start, SIGHUP with bad and good configurations, N "
		    "times (200)\n"
		    "      --queued N     starting with N queued jobs (10000)\n"
		    "      --jobs N       memory and descriptors over N advised jobs (100000)\n"
		    "      --real N       ... and so many that the daemon runs (2000)\n"
		    "      --engine N     N rounds beside an engine that is away and lies (5)\n"
		    "      --no-model     with a fixed batch instead of a model\n"
		    "      --seed N       of every random choice (1)\n"
		    "  -h, --help         this text\n"
		    "\n"
		    "A drill that is given 0 is left out; with any of --kills, --cycles, --queued, --jobs, "
		    "--engine "
		    "the others are.\n"
		    "Exit codes: 0 every promise was kept, 1 one was not, 2 usage.\n");
}

enum { KILLS = 256, CYCLES, QUEUED, JOBS, ENGINE, REAL, NO_MODEL, SEED };

int main(int argc, char **argv)
{
	static const struct option option[] = {
		{ "kills", required_argument, NULL, KILLS },
		{ "cycles", required_argument, NULL, CYCLES },
		{ "queued", required_argument, NULL, QUEUED },
		{ "jobs", required_argument, NULL, JOBS },
		{ "engine", required_argument, NULL, ENGINE },
		{ "real", required_argument, NULL, REAL },
		{ "no-model", no_argument, NULL, NO_MODEL },
		{ "seed", required_argument, NULL, SEED },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct drill d = { .model = true, .seed = 1, .to = stdout };
	uint64_t all[] = { 1000, 200, 10000, 100000, 5 }, n[5] = { 0 }, real = 2000;
	bool chosen = false;
	unsigned long broken = 0;
	int c;

	while ((c = getopt_long(argc, argv, "h", option, NULL)) != -1) {
		if (c == 'h') {
			help(stdout);
			return 0;
		}
		if (c == NO_MODEL) {
			d.model = false;
		} else if (c == '?' || !text_uint64(optarg, c == SEED   ? &d.seed
							    : c == REAL ? &real
									: &n[c - KILLS])) {
			fprintf(stderr, "postrider-drill: --help says more\n");
			return 2;
		}
		chosen |= c >= KILLS && c <= ENGINE;
	}
	if (optind < argc) {
		fprintf(stderr, "postrider-drill: '%s' is no option; --help says more\n", argv[optind]);
		return 2;
	}
	for (int i = 0; i < 5 && !chosen; i++)
		n[i] = all[i];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (n[0])
		broken += drill_kills(&d, (unsigned)n[0]);
	if (n[1])
		broken += drill_signals(&d, (unsigned)n[1]);
	if (n[2])
		broken += drill_startup(&d, (unsigned)n[2]);
	if (n[3])
		broken += drill_soak(&d, (unsigned)n[3], (unsigned)real);
	if (n[4])
		broken += drill_engine(&d, (unsigned)n[4]);
	printf(broken ? "%lu promises were broken\n" : "every promise was kept\n", broken);
	return broken ? 1 : 0;
}
