/* Promises and load by the minute. See history.h. */
#include "scheduler/daemon/history.h"

#include <math.h>

#define MINUTE_NS 60000000000LL
#define Z95 1.959964 /* of the normal distribution, two-sided 95 % */

static struct history_minute *at(struct history *h, int64_t ns)
{
	struct history_minute *m = &h->ring[ns / MINUTE_NS % HISTORY_MINUTES];

	if (m->minute != ns / MINUTE_NS)
		*m = (struct history_minute){ .minute = ns / MINUTE_NS };
	return m;
}

void history_ended(struct history *h, const struct job_record *row, int64_t now_ns)
{
	struct history_minute *m;

	if (row->verdict != VERDICT_PROMISED || !row->slo_outcome || row->ended_ns <= 0 ||
	    row->ended_ns > now_ns || row->ended_ns <= now_ns - HISTORY_MINUTES * MINUTE_NS)
		return;
	m = at(h, row->ended_ns);
	m->met += row->slo_outcome == SLO_MET;
	m->missed += row->slo_outcome == SLO_MISSED;
}

void history_load(struct history *h, int64_t now_ns, double slots_used, double other)
{
	struct history_minute *m = at(h, now_ns);

	m->samples++;
	m->slots += (float)slots_used;
	m->other += isnan(other) ? 0.0f : (float)other;
}

/* Wilson (1927): the interval of a share that stays inside 0 to 1, also for few jobs. */
static void put_share(struct json_writer *w, double met, double n)
{
	double p = met / n, z2 = Z95 * Z95, centre = (p + z2 / (2 * n)) / (1 + z2 / n);
	double half = Z95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));

	json_kv_fixed(w, "share", p, 6);
	json_kv_fixed(w, "low", fmax(centre - half, 0.0), 6);
	json_kv_fixed(w, "high", fmin(centre + half, 1.0), 6);
}

static void put_bin(const struct history *h, int64_t first, int64_t width, struct json_writer *w)
{
	double met = 0, missed = 0, samples = 0, slots = 0, other = 0;

	for (int64_t m = first; m < first + width; m++) {
		const struct history_minute *one = &h->ring[m % HISTORY_MINUTES];

		if (one->minute != m)
			continue;
		met += one->met;
		missed += one->missed;
		samples += one->samples;
		slots += (double)one->slots;
		other += (double)one->other;
	}
	if (met + missed + samples == 0.0)
		return;
	json_open(w, '{');
	json_kv_moment(w, "from", first * MINUTE_NS);
	json_kv_int(w, "met", (long long)met);
	json_kv_int(w, "missed", (long long)missed);
	put_share(w, met, met + missed);
	json_kv_fixed(w, "slots_used", slots / samples, 3);
	json_kv_fixed(w, "other_load", other / samples, 3);
	json_close(w, '}');
}

void history_json(const struct history *h, int64_t now_ns, struct json_writer *w)
{
	static const struct {
		const char *name;
		int64_t n, width;
	} span[] = { { "hour", 60, 1 }, { "day", 96, 15 } };

	json_kv_open(w, "history", '{');
	for (int s = 0; s < 2; s++) {
		int64_t last = now_ns / MINUTE_NS / span[s].width;

		json_kv_open(w, span[s].name, '[');
		for (int64_t i = last - span[s].n + 1; i <= last; i++)
			put_bin(h, i * span[s].width, span[s].width, w);
		json_close(w, ']');
	}
	json_close(w, '}');
}
