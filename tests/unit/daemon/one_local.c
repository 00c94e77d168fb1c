/* The daemon of a test program. See one_local.h. */
#include "tests/unit/daemon/one_local.h"

struct local_daemon l;
struct local_client c;

int open_one(void **state)
{
	(void)state;
	local_open(&l);
	c.fd = -1;
	return 0;
}

int close_one(void **state)
{
	(void)state;
	client_close(&c);
	local_close(&l);
	return 0;
}

void start(const char *settings)
{
	l.settings = settings;
	local_start(&l);
	client_open(&c, &l);
}
