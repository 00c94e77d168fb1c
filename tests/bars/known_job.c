/* A job whose truth is known (known_truth.h), for real: it starts up, then waits or spins for every epoch and
 * prints its accuracy, as a training job would.
 *
 *   known_job NETWORK BATCH EPOCHS CPUS SEED STARTUP_S SCALE wait|spin
 *   known_job busy          spins until it is killed, or its parent is gone */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/rng.h"
#include "tests/bars/known_truth.h"

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_s(double s)
{
	struct timespec t = { (time_t)s, (long)(1e9 * (s - (double)(time_t)s)) };

	nanosleep(&t, NULL);
}

static void *spin(void *seconds)
{
	double end = clock_s(CLOCK_THREAD_CPUTIME_ID) + *(const double *)seconds;

	while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 10000; i++)
			;
	return NULL;
}

static void work(bool spins, unsigned cpus, double s)
{
	pthread_t other;

	if (!spins) {
		wait_s(s);
		return;
	}
	if (cpus == 2 && pthread_create(&other, NULL, spin, &s))
		exit(1);
	spin(&s);
	if (cpus == 2)
		pthread_join(other, NULL);
}

int main(int argc, char **argv)
{
	struct known_case c = { 0 };
	struct rng rng;
	double batch, epochs, noise;
	unsigned cpus;
	bool large;

	if (argc == 2 && !strcmp(argv[1], "busy")) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			spin(&(double){ 1.0 });
	}
	if (argc != 9) {
		fprintf(stderr,
			"usage: known_job NETWORK BATCH EPOCHS CPUS SEED STARTUP_S SCALE wait|spin\n");
		return 2;
	}
	large = !strcmp(argv[1], "large");
	batch = atof(argv[2]);
	epochs = atof(argv[3]);
	cpus = (unsigned)atoi(argv[4]);
	c = (struct known_case){ .startup_s = atof(argv[6]),
				 .scale = atof(argv[7]),
				 .spins = !strcmp(argv[8], "spin") };
	rng = rng_stream(strtoull(argv[5], NULL, 10), (uint64_t)batch);
	noise = exp(KNOWN_NOISE * rng_normal(&rng));
	wait_s(c.startup_s);
	for (int e = 1; e <= (int)epochs; e++) {
		work(c.spins, cpus, noise * known_epoch_s(&c, large, cpus, batch));
		printf("{\"epoch\":%d,\"accuracy\":%.4f}\n", e, known_accuracy(large, batch, e));
		fflush(stdout);
	}
	return 0;
}
