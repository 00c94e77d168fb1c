/* The daemon of a test program. See one_daemon.h. */
#include "tests/daemon/one_daemon.h"

struct fixture fixture;
struct talk *t;

int open_two_slots(void **state)
{
	(void)state;
	fixture_open(&fixture);
	fixture_configure(&fixture, TWO_SLOTS, "");
	come_back();
	return 0;
}

int close_one(void **state)
{
	(void)state;
	talk_close(t);
	t = NULL;
	fixture_close(&fixture);
	return 0;
}

void leave(int signal)
{
	talk_close(t);
	t = NULL;
	fixture_stop(&fixture, signal);
}

void come_back(void)
{
	fixture_start(&fixture);
	t = talk_open(&fixture);
}

double await_pid(uint64_t job)
{
	double until = now_s() + PATIENCE_S;

	while (now_s() < until) {
		struct json *v = await(t, job, "running");
		double pid = number_at(v, "job.pid");

		json_free(v);
		if (pid > 1.0)
			return pid;
		sleep_s(0.01);
	}
	die("job %llu has no process", (unsigned long long)job);
}
