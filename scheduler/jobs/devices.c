/* Which job has which device. See devices.h. */
#include "scheduler/jobs/devices.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static char *name_of(char *const *name, uint32_t i)
{
	struct strbuf number = { 0 };

	if (name)
		return mem_strdup(name[i]);
	strbuf_printf(&number, "%u", i);
	return number.failed ? NULL : number.text;
}

int devices_set(struct devices *d, char *const *name, uint32_t n, struct err *err)
{
	struct devices fresh = { 0 };

	if (n) {
		fresh.name = mem_calloc(n, sizeof *fresh.name);
		fresh.holder = mem_calloc(n, sizeof *fresh.holder);
	}
	for (; fresh.name && fresh.holder && fresh.n < n; fresh.n++) {
		fresh.name[fresh.n] = name_of(name, fresh.n);
		if (!fresh.name[fresh.n])
			break;
	}
	if (fresh.n < n) {
		devices_release(&fresh);
		return err_nomem(err, "the names of %u devices", n);
	}
	devices_release(d);
	*d = fresh;
	return 0;
}

void devices_release(struct devices *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		free(d->name[i]);
	free(d->name);
	free(d->holder);
	*d = (struct devices){ 0 };
}

uint32_t devices_free_count(const struct devices *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->n; i++)
		n += d->holder[i] == 0;
	return n;
}

bool devices_take(struct devices *d, uint64_t job, uint32_t wanted, struct strbuf *out)
{
	uint32_t taken = 0;

	if (devices_free_count(d) < wanted)
		return false;
	for (uint32_t i = 0; taken < wanted; i++) {
		if (d->holder[i])
			continue;
		d->holder[i] = job;
		strbuf_printf(out, "%s%s", taken++ ? "," : "", d->name[i]);
	}
	return true;
}

void devices_hold(struct devices *d, uint64_t job, const char *names)
{
	while (*names) {
		size_t len = strcspn(names, ",");

		for (uint32_t i = 0; i < d->n; i++) {
			if (strlen(d->name[i]) == len && !strncmp(d->name[i], names, len))
				d->holder[i] = job;
		}
		names += len + (names[len] == ',');
	}
}

void devices_give_back(struct devices *d, uint64_t job)
{
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->holder[i] == job)
			d->holder[i] = 0;
	}
}
