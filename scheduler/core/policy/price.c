/* See price.h. */
#include "scheduler/core/policy/price.h"

#include <math.h>

#define WINDOW 60 /* arrivals that a mean reaches back */
/* What a process-second costs those to come, over what it costs those who are there. Chosen in the world of
 * configs/worlds/bigdl.json with other seeds than those of the bars, the loads of the bars among those looked
 * at; 4 does nearly as well (docs/MEASURED.md). */
#define AMPLIFIED 8.0
#define QUIET 8.0 /* usual gaps without an arrival, after which the price fades */
#define LULL 5.0 /* after which it is gone if none runs: random arrivals rarely leave such a gap */

static void count(struct price *p)
{
	if (!p->has_next)
		return;
	p->n += p->n < WINDOW;
	p->harm += (p->next_harm - p->harm) / p->n;
	if (p->n > 1)
		p->gap_s += (1e-9 * (double)(p->next_ns - p->last_ns) - p->gap_s) / (p->n - 1);
	p->last_ns = p->next_ns;
	p->has_next = false;
}

void price_see(struct price *p, int64_t now_ns, double harm)
{
	count(p);
	p->next_harm = harm > 0.0 && harm < INFINITY ? harm : 0.0;
	p->next_ns = now_ns;
	p->has_next = true;
}

/* As of this moment: the last arrival counts, if it was before. */
static struct price as_of(const struct price *p, int64_t now_ns)
{
	struct price then = *p;

	if (then.has_next && now_ns > then.next_ns)
		count(&then);
	return then;
}

double price_at(const struct price *p, int64_t now_ns)
{
	struct price then = as_of(p, now_ns);
	double quiet_s;

	if (!then.n || !(then.harm > 0.0))
		return 0.0;
	quiet_s = 1e-9 * (double)(now_ns - then.last_ns);
	return AMPLIFIED * then.harm * (quiet_s > QUIET * then.gap_s ? QUIET * then.gap_s / quiet_s : 1.0);
}

bool price_lull(const struct price *p, int64_t now_ns)
{
	struct price then = as_of(p, now_ns);

	return 1e-9 * (double)(now_ns - then.last_ns) > LULL * then.gap_s;
}
