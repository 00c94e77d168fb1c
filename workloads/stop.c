/* Catches SIGINT and SIGTERM for all processes of a job. See stop.h. */
#define _GNU_SOURCE
#include "workloads/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct stop_request {
	_Atomic int number;
};

static struct stop_request *asked;
static struct sigaction before[2];
static const int number[2] = { SIGINT, SIGTERM };
static volatile sig_atomic_t seen; /* by this process */

/* Ctrl-C reaches every process of a job: the second signal is counted in each of them apart. */
static void on_signal(int n)
{
	int none = 0;

	if (seen)
		_exit(128 + n);
	seen = 1;
	atomic_compare_exchange_strong(&asked->number, &none, n);
}

int stop_begin(struct err *err)
{
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	void *page = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return err_fail(err, ERR_NOMEM, "out of memory to share: %s", strerror(errno));
	asked = page;
	seen = 0;
	sigemptyset(&a.sa_mask);
	for (int i = 0; i < 2; i++)
		sigaction(number[i], &a, &before[i]);
	return 0;
}

void stop_end(void)
{
	for (int i = 0; i < 2; i++)
		sigaction(number[i], &before[i], NULL);
	munmap(asked, sizeof *asked);
	asked = NULL;
}

int stop_signal(void)
{
	return asked ? atomic_load(&asked->number) : 0;
}
