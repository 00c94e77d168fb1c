/* Handing out cpus. See cpus.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/cpus.h"

#include <stdio.h>
#include <stdlib.h>

void cpus_init(struct cpus *c)
{
	CPU_ZERO(&c->taken);
	if (sched_getaffinity(0, sizeof c->all, &c->all))
		CPU_ZERO(&c->all);
}

bool cpus_take(struct cpus *c, uint32_t n, cpu_set_t *out)
{
	uint32_t found = 0;

	CPU_ZERO(out);
	for (int i = 0; i < CPU_SETSIZE && found < n; i++) {
		if (CPU_ISSET(i, &c->all) && !CPU_ISSET(i, &c->taken)) {
			CPU_SET(i, out);
			found++;
		}
	}
	if (found < n || n == 0) {
		CPU_ZERO(out);
		return false;
	}
	CPU_OR(&c->taken, &c->taken, out);
	return true;
}

void cpus_mark(struct cpus *c, const cpu_set_t *set)
{
	CPU_OR(&c->taken, &c->taken, set);
}

void cpus_give_back(struct cpus *c, const cpu_set_t *set)
{
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, set))
			CPU_CLR(i, &c->taken);
	}
}

bool cpus_format(const cpu_set_t *set, char *buf, size_t size)
{
	size_t at = 0;

	if (size == 0)
		return false;
	buf[0] = '\0';
	for (int i = 0; i < CPU_SETSIZE; i++) {
		int from = i, n;

		if (!CPU_ISSET(i, set))
			continue;
		while (i + 1 < CPU_SETSIZE && CPU_ISSET(i + 1, set))
			i++;
		if (i > from)
			n = snprintf(buf + at, size - at, "%s%d-%d", at ? "," : "", from, i);
		else
			n = snprintf(buf + at, size - at, "%s%d", at ? "," : "", i);
		if (n < 0 || (size_t)n >= size - at)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* Digits alone: strtoul() would take blanks and signs as well. */
static bool parse_cpu(const char **s, unsigned *out)
{
	unsigned v = 0;
	const char *at = *s;

	for (; *at >= '0' && *at <= '9'; at++) {
		v = v * 10 + (unsigned)(*at - '0');
		if (v >= CPU_SETSIZE)
			return false;
	}
	if (at == *s)
		return false;
	*s = at;
	*out = v;
	return true;
}

bool cpus_parse(const char *list, cpu_set_t *out)
{
	CPU_ZERO(out);
	for (const char *s = list;; s++) {
		unsigned from, to;

		if (!parse_cpu(&s, &from))
			return false;
		to = from;
		if (*s == '-') {
			s++;
			if (!parse_cpu(&s, &to) || to < from)
				return false;
		}
		for (; from <= to; from++)
			CPU_SET(from, out);
		if (*s != ',')
			return *s == '\0';
	}
}
