/* Schedulers by daemon and node, the loads that each daemon sees, and what it knows of jobs of others. */
#include "sim/replay/daemons.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/tournament.h"
#include "sim/replay/placement.h"

const char *const daemons_share_name[DAEMONS_SHARES + 1] = { "parts", "asked", "shared", NULL };

struct one { /* a daemon: its nodes are first, first + 1, ... */
	uint32_t first, n;
	struct placement load; /* by node, from `first` on */
	struct sched **sched; /* the same */
};

struct stay { /* a job that runs on a node, where daemons share it */
	uint64_t id;
	uint32_t daemon, cpus;
	int64_t end_ns; /* that is expected */
};

struct node {
	struct stay *stay;
	size_t n, cap;
};

struct daemons {
	struct daemons_params p;
	struct one *one;
	struct node *node; /* NULL: none is shared */
	struct sched_guest *guest; /* scratch */
	size_t guests_cap;
	struct daemons_seat now; /* of the last event */
	struct tournament overtime; /* by place_of() */
	size_t *queued, n_queued; /* by place_of(), as far as is known, and in all */
};

/* ---- making ---- */

void daemons_free(struct daemons *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; d->one && i < d->p.daemons; i++) {
		struct one *o = &d->one[i];

		for (uint32_t k = o->n; o->sched && k-- > 0;) /* the first lends to the others */
			sched_free(o->sched[k]);
		free(o->sched);
		placement_release(&o->load);
	}
	for (uint32_t i = 0; d->node && i < d->p.nodes; i++)
		free(d->node[i].stay);
	free(d->one);
	free(d->node);
	free(d->guest);
	free(d->queued);
	tournament_release(&d->overtime);
	free(d);
}

static int make_one(const struct daemons_params *p, uint32_t i, struct one *o, struct err *err)
{
	uint64_t n = p->nodes;
	int rc = 0;

	o->first = p->share == DAEMONS_SHARED ? 0 : (uint32_t)(n * i / p->daemons);
	o->n = p->share == DAEMONS_SHARED ? p->nodes : (uint32_t)(n * (i + 1) / p->daemons) - o->first;
	o->sched = mem_calloc(o->n, sizeof *o->sched);
	if (!o->sched || placement_init(&o->load, o->n))
		rc = err_nomem(err, "%u nodes", o->n);
	for (uint32_t k = 0; k < o->n && !rc; k++) {
		rc = k ? sched_new_beside(o->sched[0], &p->sched, &o->sched[k], err)
		       : sched_new(&p->sched, &o->sched[0], err);
		if (!rc)
			rc = sched_set_tenants(o->sched[k], 0, p->tenant, p->n_tenants, err);
	}
	return rc;
}

int daemons_new(const struct daemons_params *p, struct daemons **out, struct err *err)
{
	bool shared = p->share == DAEMONS_SHARED && p->daemons > 1;
	uint64_t scheds = (uint64_t)p->nodes * (shared ? p->daemons : 1);
	struct daemons *d;
	int rc = 0;

	if (!p->daemons || p->daemons > DAEMONS_MOST || (!shared && p->daemons > p->nodes) ||
	    scheds > DAEMONS_MOST_SCHEDS)
		return err_fail(
			err, ERR_ARG,
			"%u daemons on %u nodes (%s): need 1 to %d daemons, a node for each unless they "
			"share them, and at most %d nodes in all",
			p->daemons, p->nodes, daemons_share_name[p->share], DAEMONS_MOST,
			DAEMONS_MOST_SCHEDS);
	d = mem_calloc(1, sizeof *d);
	if (!d)
		return err_nomem(err, "the daemons of a cluster");
	d->p = *p;
	d->p.share = shared || p->daemons > 1 ? p->share : DAEMONS_PARTS;
	d->one = mem_calloc(p->daemons, sizeof *d->one);
	d->node = shared ? mem_calloc(p->nodes, sizeof *d->node) : NULL;
	d->queued = mem_calloc(scheds, sizeof *d->queued);
	if (!d->one || !d->queued || (shared && !d->node) ||
	    tournament_init(&d->overtime, (uint32_t)scheds, SCHED_NEVER))
		rc = err_nomem(err, "%u nodes", p->nodes);
	for (uint32_t i = 0; i < p->daemons && !rc; i++)
		rc = make_one(&d->p, i, &d->one[i], err);
	if (rc)
		daemons_free(d);
	else
		*out = d;
	return rc;
}

/* ---- who and where ---- */

struct sched *daemons_first(const struct daemons *d, uint32_t daemon)
{
	return d->one[daemon].sched[0];
}

struct sched *daemons_sched(const struct daemons *d, struct daemons_seat at)
{
	return d->one[at.daemon].sched[at.node - d->one[at.daemon].first];
}

static uint32_t place_of(const struct daemons *d, struct daemons_seat at)
{
	return d->node ? at.daemon * d->p.nodes + at.node : at.node;
}

/* Calls for each scheduler of the node of the last event, that of the event first, until one says true. */
typedef bool each_fn(struct daemons *d, struct daemons_seat at, void *arg);

static bool on_node(struct daemons *d, each_fn *fn, void *arg)
{
	struct daemons_seat at = d->now;

	if (fn(d, at, arg))
		return true;
	for (at.daemon = 0; d->node && at.daemon < d->p.daemons; at.daemon++)
		if (at.daemon != d->now.daemon && fn(d, at, arg))
			return true;
	return false;
}

static void change_load(struct daemons *d, uint32_t daemon, uint32_t node, int64_t cpus)
{
	struct one *o = &d->one[daemon];

	if (o->n > 1)
		placement_change(&o->load, node - o->first, cpus);
}

/* ---- what others run ---- */

static int tell(struct daemons *d, int64_t now_ns, uint32_t daemon, uint32_t at, struct err *err)
{
	const struct node *n = &d->node[at];
	size_t k = 0;

	if (n->n > d->guests_cap) {
		struct sched_guest *more = mem_resize(d->guest, 2 * n->n, sizeof *more);

		if (!more)
			return err_nomem(err, "%zu jobs of other daemons", n->n);
		d->guest = more;
		d->guests_cap = 2 * n->n;
	}
	for (size_t i = 0; i < n->n; i++)
		if (n->stay[i].daemon != daemon)
			d->guest[k++] = (struct sched_guest){ n->stay[i].cpus, n->stay[i].end_ns };
	return sched_set_cluster(daemons_sched(d, (struct daemons_seat){ daemon, at }), now_ns,
				 d->p.sched.machine.slots, d->guest, k ? sched_fit_guests(d->guest, k, 0) : 0,
				 err);
}

/* As many cpus more, or fewer, are in use on that node. */
static int tell_others(struct daemons *d, int64_t now_ns, struct daemons_seat at, int64_t cpus,
		       struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < d->p.daemons && !rc; i++) {
		if (i == at.daemon)
			continue;
		change_load(d, i, at.node, cpus);
		rc = tell(d, now_ns, i, at.node, err);
	}
	return rc;
}

int daemons_started(struct daemons *d, int64_t now_ns, struct daemons_seat at, uint64_t id, uint32_t cpus,
		    int64_t end_ns, struct err *err)
{
	struct node *n;

	if (!d->node)
		return 0;
	n = &d->node[at.node];
	if (n->n == n->cap) {
		size_t cap = n->cap ? 2 * n->cap : 16;
		struct stay *more = mem_resize(n->stay, cap, sizeof *more);

		if (!more)
			return err_nomem(err, "the jobs of a node");
		n->stay = more;
		n->cap = cap;
	}
	n->stay[n->n++] = (struct stay){ .id = id, .daemon = at.daemon, .cpus = cpus, .end_ns = end_ns };
	return tell_others(d, now_ns, at, cpus, err);
}

/* False: it did not run. */
static bool forget(struct node *n, uint64_t id)
{
	for (size_t i = 0; i < n->n; i++) {
		if (n->stay[i].id == id) {
			n->stay[i] = n->stay[--n->n];
			return true;
		}
	}
	return false;
}

int daemons_leave(struct daemons *d, int64_t now_ns, struct daemons_seat at, uint64_t id, uint32_t cpus,
		  struct err *err)
{
	int rc = sched_remove(daemons_sched(d, at), now_ns, id, err);

	d->now = at;
	change_load(d, at.daemon, at.node, -(int64_t)cpus);
	if (!rc && d->node && forget(&d->node[at.node], id))
		rc = tell_others(d, now_ns, at, -(int64_t)cpus, err);
	return rc;
}

/* ---- arrivals ---- */

/* Offers it to nodes of one daemon, and stops at the first that promises its limit. */
static int ask(struct daemons *d, int64_t now_ns, const struct sched_request *r, const uint32_t *node,
	       uint32_t n, uint32_t daemon, struct decision *out, enum sched_verdict *verdict,
	       struct err *err)
{
	int rc = 0;

	*verdict = SCHED_REJECTED;
	for (uint32_t i = 0; i < n && *verdict != SCHED_PROMISED; i++) {
		d->now = (struct daemons_seat){ daemon, d->one[daemon].first + node[i] };
		/* a node that does not promise it has no part in it, and its price does not know of it */
		rc = sched_what_if(daemons_sched(d, d->now), now_ns, r, out, verdict, err);
		if (!rc && *verdict == SCHED_PROMISED)
			rc = sched_submit(daemons_sched(d, d->now), now_ns, r, out, verdict, err);
		if (rc == -ERR_BUSY) /* that node is full, another may not be */
			*verdict = SCHED_REJECTED;
		else if (rc)
			return rc;
	}
	return 0;
}

int daemons_submit(struct daemons *d, int64_t now_ns, struct sched_request *r, struct daemons_seat *seat,
		   struct decision *out, enum sched_verdict *out_verdict, struct err *err)
{
	uint32_t own[DAEMONS_TRIES] = { 0 }, other[DAEMONS_TRIES], first = seat->daemon;
	uint32_t most = d->p.asks && !isnan(r->slo_s) ? DAEMONS_TRIES : 1;
	uint32_t n = d->one[first].n > 1 ? placement_least(&d->one[first].load, own, most) : 1;
	bool elsewhere = d->p.share == DAEMONS_ASKED && !isnan(r->slo_s);
	int rc = 0;

	*out_verdict = SCHED_REJECTED;
	if (n > 1 || elsewhere)
		rc = ask(d, now_ns, r, own, n, first, out, out_verdict, err);
	for (uint32_t i = 1; elsewhere && i < d->p.daemons && !rc && *out_verdict != SCHED_PROMISED; i++) {
		uint32_t daemon = (first + i) % d->p.daemons;

		other[0] = 0;
		n = d->one[daemon].n > 1 ? placement_least(&d->one[daemon].load, other, most) : 1;
		rc = ask(d, now_ns, r, other, n, daemon, out, out_verdict, err);
	}
	if (!rc && *out_verdict != SCHED_PROMISED) { /* the first has the last word */
		d->now = (struct daemons_seat){ first, d->one[first].first + own[0] };
		rc = sched_submit(daemons_sched(d, d->now), now_ns, r, out, out_verdict, err);
	}
	*seat = d->now;
	if (!rc && *out_verdict != SCHED_REJECTED)
		change_load(d, d->now.daemon, d->now.node, r->cpus);
	return rc;
}

/* ---- after an event ---- */

struct start {
	int64_t now_ns;
	uint64_t *id;
	struct decision *out;
	struct daemons_seat *seat;
};

static bool start_one(struct daemons *d, struct daemons_seat at, void *arg)
{
	struct start *s = arg;

	*s->seat = at;
	return sched_next(daemons_sched(d, at), s->now_ns, s->id, s->out);
}

bool daemons_next(struct daemons *d, int64_t now_ns, uint64_t *out_id, struct decision *out,
		  struct daemons_seat *seat)
{
	struct start s = { now_ns, out_id, out, seat };

	return on_node(d, start_one, &s);
}

static bool drop_one(struct daemons *d, struct daemons_seat at, void *arg)
{
	return sched_hopeless(daemons_sched(d, at), arg);
}

bool daemons_hopeless(struct daemons *d, uint64_t *out_id)
{
	return on_node(d, drop_one, out_id);
}

/* Only those on the node of the last event can have changed. */
static bool note_overtime(struct daemons *d, struct daemons_seat at, void *arg)
{
	tournament_set(&d->overtime, place_of(d, at), sched_overtime_ns(daemons_sched(d, at), arg));
	return false;
}

int64_t daemons_overtime_ns(struct daemons *d, uint64_t *out_id)
{
	struct daemons_seat at;
	uint32_t first;

	on_node(d, note_overtime, out_id);
	first = tournament_first(&d->overtime);
	at = (struct daemons_seat){ d->node ? first / d->p.nodes : 0, d->node ? first % d->p.nodes : first };
	for (uint32_t i = 0; !d->node && i < d->p.daemons; i++)
		if (at.node >= d->one[i].first && at.node < d->one[i].first + d->one[i].n)
			at.daemon = i;
	return sched_overtime_ns(daemons_sched(d, at), out_id);
}

static bool note_queued(struct daemons *d, struct daemons_seat at, void *arg)
{
	size_t *known = &d->queued[place_of(d, at)], now = sched_queued(daemons_sched(d, at));

	(void)arg;
	d->n_queued = d->n_queued - *known + now;
	*known = now;
	return false;
}

size_t daemons_queued(struct daemons *d)
{
	on_node(d, note_queued, NULL);
	return d->n_queued;
}
