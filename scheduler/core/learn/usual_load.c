/* Means of a load over several lengths of time, and forecasts that are compared with what came. See
 * usual_load.h. */
#include "scheduler/core/learn/usual_load.h"

#include <math.h>

#define LEAST_FORECASTS 3 /* that came true or not, before they are believed */

static void forecast_begin(struct usual_load *u, int k, double load)
{
	struct usual_forecast *f = &u->forecast[k];

	f->begun_s = f->sum_s = 0.0;
	f->now = log1p(load);
	f->usual = log1p(u->mean[k + 1 < USUAL_LOAD_SCALES ? k + 1 : k]);
}

void usual_load_begin(struct usual_load *u, int64_t now_ns, double load)
{
	*u = (struct usual_load){ .at_ns = now_ns };
	for (int k = 0; k < USUAL_LOAD_SCALES; k++)
		u->mean[k] = load;
	for (int k = 0; k < USUAL_LOAD_SCALES; k++)
		forecast_begin(u, k, load);
}

/* The weight of what is now. */
static double weight_of(const struct usual_forecast *f)
{
	if (f->n < LEAST_FORECASTS || !(f->spread_xx > 0.0))
		return 1.0;
	return fmin(fmax(f->spread_xy / f->spread_xx, 0.0), 1.0);
}

static double middle_of(const struct usual_forecast *f)
{
	return f->usual + weight_of(f) * (f->now - f->usual);
}

static void forecast_over(struct usual_forecast *f)
{
	double came = log1p(f->sum_s / f->begun_s), x = f->now - f->usual, y = came - f->usual;
	double error = came - middle_of(f), part;

	f->n += f->n < USUAL_LOAD_RECENT;
	part = 1.0 / (double)f->n;
	f->spread_xx += part * (x * x - f->spread_xx);
	f->spread_xy += part * (x * y - f->spread_xy);
	f->error_square += part * (error * error - f->error_square);
}

void usual_load_pass(struct usual_load *u, int64_t now_ns, double load)
{
	double s = now_ns > u->at_ns ? 1e-9 * (double)(now_ns - u->at_ns) : 0.0;

	if (!(s > 0.0))
		return;
	for (int k = 0; k < USUAL_LOAD_SCALES; k++)
		u->mean[k] += (load - u->mean[k]) * -expm1(-ldexp(s, -k));
	for (int k = 0; k < USUAL_LOAD_SCALES; k++) {
		struct usual_forecast *f = &u->forecast[k];

		f->begun_s += s;
		f->sum_s += s * load;
		if (f->begun_s < ldexp(1.0, k))
			continue;
		forecast_over(f);
		forecast_begin(u, k, load);
	}
	u->at_ns = now_ns;
}

static int scale_of(double seconds)
{
	double k = seconds > 1.0 ? ceil(log2(seconds)) : 0.0;

	return k < USUAL_LOAD_SCALES ? (int)k : USUAL_LOAD_SCALES - 1;
}

double usual_load_for(const struct usual_load *u, double seconds)
{
	return u->mean[scale_of(seconds)];
}

struct load_foreseen usual_load_foresee(const struct usual_load *u, double seconds, double load)
{
	int k = scale_of(seconds);
	struct usual_forecast f;

	/* Forecasts over so long a time may not have ended yet; shorter ones are the best there is. */
	while (k > 0 && u->forecast[k].n < LEAST_FORECASTS)
		k--;
	f = u->forecast[k];
	if (f.n < LEAST_FORECASTS)
		return (struct load_foreseen){ load, 0.0 };
	f.now = log1p(load);
	f.usual = log1p(u->mean[k + 1 < USUAL_LOAD_SCALES ? k + 1 : k]);
	return (struct load_foreseen){ fmax(expm1(middle_of(&f)), 0.0), sqrt(f.error_square) };
}
