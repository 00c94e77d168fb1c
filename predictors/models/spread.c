/* Which settings, contexts and families a table has, as sets of hashes, and the scale of residuals for each
 * case. See spread.h. */
#include "predictors/models/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/data/features.h"

#define MAX_LOADS 64 /* levels of one feature of the load */
#define BEYOND 0.05 /* of the highest level, and of the lowest: still near it */

/* As in model files. The last two are parts of a context, too. */
enum part {
	PART_NONE,
	PART_CONTEXT,
	PART_LOAD,
	PART_CHOICE /* batch, epochs */,
	PART_CATEGORY,
	PART_CPUS,
	N_PARTS
};
#define FAMILIES_SINCE 3 /* version of model files */
#define TRUST_SINCE 4
#define STRANGERS_SINCE 6
#define FAMILIES_TOLD 3 /* so many families, held out in turn, tell what they share */
#define ASSUMED_SHARED 0.5
#define PRIOR_RUNS 4.0 /* runs of a new family vary as the model's errors do, until so many show it */

struct keys { /* a set of hashes with open addressing */
	uint64_t *slot; /* 0: free */
	size_t room, n; /* room: a power of two */
};

struct spread {
	size_t n_features;
	uint8_t *part;
	double *load; /* MAX_LOADS a feature: the levels of the load or the cpus, ascending */
	uint8_t *n_loads;
	struct keys setting, context, family; /* no family: they are not known */
	double scale[N_FAMILIARITIES], typical, shared, trust;
};

struct key { /* of a row */
	uint64_t setting, context, family;
	bool whole; /* the family is known */
	bool named; /* the names of all categories are */
};

/* ---- keys ---- */

static bool keys_has(const struct keys *k, uint64_t key)
{
	for (size_t at = key & (k->room - 1);; at = (at + 1) & (k->room - 1)) {
		if (k->slot[at] == key)
			return true;
		if (!k->slot[at])
			return false;
	}
}

static void keys_add(struct keys *k, uint64_t key)
{
	size_t at = key & (k->room - 1);

	while (k->slot[at] && k->slot[at] != key)
		at = (at + 1) & (k->room - 1);
	k->n += !k->slot[at];
	k->slot[at] = key;
}

static int keys_make(struct keys *k, size_t most, struct err *err)
{
	*k = (struct keys){ .room = 4 };
	while (k->room < 2 * most)
		k->room *= 2;
	k->slot = mem_calloc(k->room, sizeof *k->slot);
	return k->slot ? 0 : err_nomem(err, "%zu settings", most);
}

/* From behind a free place on, so that whoever adds them in this order gets the same places. There is one. */
static void keys_save(const struct keys *k, struct writer *w)
{
	size_t from = 0;

	while (from < k->room && k->slot[from])
		from++;
	write_u64(w, k->n);
	for (size_t i = 1; i <= k->room; i++) {
		uint64_t key = k->slot[(from + i) & (k->room - 1)];

		if (key)
			write_u64(w, key);
	}
}

static int keys_load(struct keys *k, struct reader *r, struct err *err)
{
	uint64_t n = read_u64(r);
	int rc;

	if (r->failed || n > read_left(r) / 8)
		return err_fail(err, ERR_FORMAT, "%llu settings announced, %zu bytes left for them",
				(unsigned long long)n, read_left(r));
	rc = keys_make(k, (size_t)n, err);
	for (uint64_t i = 0; !rc && i < n; i++) {
		uint64_t key = read_u64(r);

		if (!key || keys_has(k, key))
			rc = err_fail(err, ERR_FORMAT, "setting %llu is listed twice or empty",
				      (unsigned long long)i);
		else
			keys_add(k, key);
	}
	return rc;
}

/* ---- from features to keys ---- */

/* By the logarithm: between two levels their geometric mean divides. */
static double nearest(const double *level, size_t n, double v)
{
	size_t best = 0;

	if (!n || !(v > level[0] * (1.0 - BEYOND) && v < level[n - 1] * (1.0 + BEYOND)))
		return v; /* a load that the table never met is not near any level */
	while (best + 1 < n && v * v > level[best] * level[best + 1])
		best++;
	return level[best];
}

static uint64_t mixed(uint64_t key, double v)
{
	uint64_t bits;

	v = v == 0.0 ? 0.0 : v; /* -0 */
	if (isnan(v)) /* not as 0, which is the first name of a category of two */
		return rng_mix(key + 0xd1b54a32d192ed03ULL);
	memcpy(&bits, &v, sizeof bits);
	return rng_mix((key + 0x9e3779b97f4a7c15ULL) ^ bits);
}

static struct key key_of(const struct spread *s, const double *x)
{
	uint64_t context = 1, choice = 2, family = 3;
	bool whole = true, named = true;

	for (size_t f = 0; f < s->n_features; f++) {
		double level = s->n_loads[f] ? nearest(s->load + f * MAX_LOADS, s->n_loads[f], x[f]) : x[f];

		switch (s->part[f]) {
		case PART_CATEGORY: named = named && !isnan(x[f]); /* fall through */
		case PART_CPUS:
			family = mixed(family, level);
			whole = whole && (s->part[f] == PART_CATEGORY || !isnan(x[f]));
			/* fall through */
		case PART_CONTEXT: context = mixed(context, x[f]); break;
		case PART_LOAD: context = mixed(context, level); break;
		case PART_CHOICE: choice = mixed(choice, x[f]); break;
		}
	}
	return (struct key){ .context = context | 1, /* 0 is a free slot */
			     .setting = rng_mix(context ^ rng_mix(choice)) | 1,
			     .family = family | 1,
			     .whole = whole,
			     .named = named };
}

static enum part part_of(const struct dataset *d, size_t f)
{
	uint8_t role = d->role ? d->role[f] : ROLE_NONE;

	if ((d->factor && !d->factor[f]) || role == ROLE_OTHER)
		return PART_NONE;
	if (role == ROLE_BATCH || role == ROLE_EPOCHS)
		return PART_CHOICE;
	if (role == ROLE_CATEGORY || role == ROLE_CPUS)
		return role == ROLE_CPUS ? PART_CPUS : PART_CATEGORY;
	return role == ROLE_NJOBS || role == ROLE_PROCESSES ? PART_LOAD : PART_CONTEXT;
}

/* Whole numbers: a mean load of 1.4 jobs is near 1. */
static size_t find_loads(const struct dataset *d, size_t f, double *value, double *out)
{
	size_t n = 0, kept = 0, shown;

	for (size_t i = 0; i < d->n_rows; i++) {
		double v = round(d->x[i * d->n_features + f]);

		if (v >= 1.0 && isfinite(v))
			value[n++] = v;
	}
	stats_sort(value, n);
	for (size_t i = 0; i < n; i++)
		if (!i || value[i] != value[kept - 1])
			value[kept++] = value[i];
	shown = kept < MAX_LOADS ? kept : MAX_LOADS;
	for (size_t i = 0; i < shown; i++)
		out[i] = value[shown > 1 ? i * (kept - 1) / (shown - 1) : i];
	return shown;
}

static int spread_new(size_t n_features, struct spread **out, struct err *err)
{
	struct spread *s = mem_calloc(1, sizeof *s);

	if (s) {
		s->n_features = n_features;
		s->part = mem_calloc(n_features, 1);
		s->n_loads = mem_calloc(n_features, 1);
		s->load = mem_calloc(n_features * MAX_LOADS, sizeof *s->load);
	}
	if (!s || !s->part || !s->n_loads || !s->load) {
		spread_free(s);
		return err_nomem(err, "the spread of %zu features", n_features);
	}
	for (int k = 0; k < N_FAMILIARITIES; k++)
		s->scale[k] = 1.0;
	s->typical = 1.0;
	s->trust = 1.0;
	*out = s;
	return 0;
}

int spread_make(const struct dataset *d, struct spread **out, struct err *err)
{
	double *value = mem_array(d->n_rows, sizeof *value);
	struct spread *s = NULL;
	int rc = value ? spread_new(d->n_features, &s, err) : err_nomem(err, "%zu rows", d->n_rows);

	for (size_t f = 0; !rc && f < d->n_features; f++) {
		s->part[f] = (uint8_t)part_of(d, f);
		if (s->part[f] == PART_LOAD || s->part[f] == PART_CPUS)
			s->n_loads[f] = (uint8_t)find_loads(d, f, value, s->load + f * MAX_LOADS);
	}
	if (!rc)
		rc = keys_make(&s->setting, d->n_rows, err);
	if (!rc)
		rc = keys_make(&s->context, d->n_rows, err);
	if (!rc)
		rc = keys_make(&s->family, d->n_rows, err);
	for (size_t i = 0; !rc && i < d->n_rows; i++) {
		struct key k = key_of(s, d->x + i * d->n_features);

		keys_add(&s->setting, k.setting);
		keys_add(&s->context, k.context);
		keys_add(&s->family, k.family);
	}
	free(value);
	if (rc)
		spread_free(s);
	else
		*out = s;
	return rc;
}

void spread_free(struct spread *s)
{
	if (!s)
		return;
	free(s->part);
	free(s->n_loads);
	free(s->load);
	free(s->setting.slot);
	free(s->context.slot);
	free(s->family.slot);
	free(s);
}

enum familiarity spread_knows(const struct spread *s, const double *x)
{
	struct key k = key_of(s, x);

	if (keys_has(&s->setting, k.setting))
		return KNOWS_SETTING;
	if (keys_has(&s->context, k.context))
		return KNOWS_CONTEXT;
	if (!s->family.n || keys_has(&s->family, k.family))
		return KNOWS_NEITHER;
	return k.named ? KNOWS_NOTHING : KNOWS_NO_NAME;
}

double spread_at(const struct spread *s, const double *x)
{
	return s ? s->scale[spread_knows(s, x)] : 1.0;
}

double spread_scale(const struct spread *s, enum familiarity knows)
{
	return s->scale[knows];
}

void spread_set(struct spread *s, const double scale[N_FAMILIARITIES], double typical, double trust)
{
	memcpy(s->scale, scale, sizeof s->scale);
	s->typical = typical;
	s->trust = trust;
}

bool spread_asks(const struct spread *s)
{
	return s && s->trust > 0.0;
}

double spread_believed(const struct spread *s, double own)
{
	if (!s || s->trust == 1.0)
		return own;
	return s->trust == 0.0 ? 1.0 : s->trust == 0.5 ? sqrt(own) : pow(own, s->trust);
}

double spread_typical(const struct spread *s)
{
	return s ? s->typical : 1.0;
}

void spread_set_shared(struct spread *s, double shared)
{
	s->shared = shared;
}

static bool share_untold(const struct spread *s)
{
	return s && !(s->shared > 0.0) && s->family.n > 0 && s->family.n < FAMILIES_TOLD;
}

double spread_shared(const struct spread *s)
{
	if (share_untold(s))
		return ASSUMED_SHARED;
	return s ? s->shared : 0.0;
}

uint64_t spread_family(const struct spread *s, const double *x)
{
	struct key k;

	if (!s || !s->family.n)
		return 0;
	k = key_of(s, x);
	return k.whole ? k.family : 0;
}

uint64_t spread_kind(const struct spread *s, const double *x)
{
	uint64_t kind = 4;

	for (size_t f = 0; s && f < s->n_features; f++) {
		if (s->part[f] != PART_CATEGORY)
			continue;
		if (isnan(x[f]))
			return 0;
		kind = mixed(kind, x[f]);
	}
	return kind | 1;
}

uint64_t spread_new_family(const struct spread *s, const double *x)
{
	uint64_t family = spread_family(s, x);

	return family && !keys_has(&s->family, family) ? family : 0;
}

struct spread_level spread_level(double shared, double n, double mean)
{
	double others = 1.0 + (n - 1.0) * shared; /* n = 0: the share that is not shared */

	if (!(n > 0.0 && shared > 0.0))
		return (struct spread_level){ .narrow = 1.0, .n = n };
	return (struct spread_level){ .shift = n * shared / others * mean,
				      .narrow = sqrt((1.0 - shared) * (1.0 + shared / others)),
				      .n = n };
}

double spread_own_left(double own, double n)
{
	return own > 1.0 && n > 0.0 ? spread_level(1.0 - 1.0 / (own * own), n, 0.0).narrow : 1.0;
}

struct spread_level spread_level_of(const struct spread *s, enum familiarity knows, double n, double mean,
				    double variance)
{
	double error = spread_typical(s) * spread_typical(s), level = mean * mean, weight, varies;

	if (!(share_untold(s) || knows == KNOWS_NO_NAME) || !(n > 0.0))
		return spread_level(spread_shared(s), n, mean);
	/* the level's own square stands for the variance between families */
	weight = level > 0.0 ? level / (level + error / n) : 0.0;
	varies = (PRIOR_RUNS * error + n * variance) / ((PRIOR_RUNS + n - 1.0) * error);
	return (struct spread_level){ .shift = weight * mean,
				      .narrow = sqrt(fmax(varies, 1.0) * (1.0 + weight / n)),
				      .n = n };
}

/* The place of a key in its set is its first label; the labels are then made dense. */
size_t spread_label(const struct spread *s, const struct dataset *d, enum familiarity held_out, uint32_t *out)
{
	const struct keys *k = held_out == KNOWS_NOTHING   ? &s->family
			       : held_out == KNOWS_NEITHER ? &s->context
							   : &s->setting;
	uint32_t *dense = mem_calloc(k->room, sizeof *dense), n = 0;

	for (size_t i = 0; dense && i < d->n_rows; i++) {
		struct key of = key_of(s, d->x + i * d->n_features);
		uint64_t key = k == &s->family ? of.family : k == &s->context ? of.context : of.setting;
		size_t at;

		for (at = key & (k->room - 1); k->slot[at] && k->slot[at] != key;
		     at = (at + 1) & (k->room - 1))
			;
		if (!dense[at])
			dense[at] = ++n;
		out[i] = dense[at] - 1;
	}
	free(dense);
	return n;
}

/* ---- in a model file ---- */

void spread_save(const struct spread *s, struct writer *w)
{
	for (int k = 0; k < N_FAMILIARITIES; k++)
		write_f64(w, s->scale[k]);
	write_f64(w, s->typical);
	write_f64(w, s->shared);
	write_f64(w, s->trust);
	for (size_t f = 0; f < s->n_features; f++) {
		write_u8(w, s->part[f]);
		write_u8(w, s->n_loads[f]);
		for (size_t i = 0; i < s->n_loads[f]; i++)
			write_f64(w, s->load[f * MAX_LOADS + i]);
	}
	keys_save(&s->setting, w);
	keys_save(&s->context, w);
	keys_save(&s->family, w);
}

int spread_load(struct reader *r, size_t n_features, struct spread **out, struct err *err)
{
	struct spread *s = NULL;
	int rc = spread_new(n_features, &s, err);
	bool good = true, families = !r->version || r->version >= FAMILIES_SINCE;
	bool trusts = !r->version || r->version >= TRUST_SINCE;
	bool strangers = !r->version || r->version >= STRANGERS_SINCE;

	for (int k = 0; !rc && k < N_FAMILIARITIES; k++) {
		bool there = k == KNOWS_NO_NAME ? strangers : k != KNOWS_NOTHING || families;

		s->scale[k] = there ? read_f64(r) : s->scale[k - 1];
		good = good && s->scale[k] > 0.0 && isfinite(s->scale[k]);
	}
	if (!rc) {
		s->typical = read_f64(r);
		s->shared = families ? read_f64(r) : 0.0;
		s->trust = trusts ? read_f64(r) : 1.0;
		good = good && s->typical > 0.0 && isfinite(s->typical) && s->shared >= 0.0 &&
		       s->shared < 1.0 && s->trust >= 0.0 && s->trust <= 1.0;
	}
	for (size_t f = 0; !rc && good && f < n_features; f++) {
		s->part[f] = read_u8(r);
		s->n_loads[f] = read_u8(r);
		good = good && s->part[f] < N_PARTS && s->n_loads[f] <= MAX_LOADS;
		for (size_t i = 0; good && i < s->n_loads[f]; i++) {
			double *at = s->load + f * MAX_LOADS + i;

			*at = read_f64(r);
			good = good && *at > 0.0 && isfinite(*at) && (!i || *at > at[-1]);
		}
	}
	if (!rc && (!good || r->failed))
		rc = err_fail(err, ERR_FORMAT, "the spread of residuals is damaged");
	if (!rc)
		rc = keys_load(&s->setting, r, err);
	if (!rc)
		rc = keys_load(&s->context, r, err);
	if (!rc && families)
		rc = keys_load(&s->family, r, err);
	if (rc)
		spread_free(s);
	else
		*out = s;
	return rc;
}
