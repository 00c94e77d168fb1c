/* The table of a job's fields, and what needs nothing but the table: empty values and JSON in both
 * directions. store/rows.c makes SQL from it. */
#include "scheduler/jobs/record.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/text/text.h"
#include "scheduler/core/sched.h"

const char *const job_state_name[N_JOB_STATES + 1] = {
	[JOB_QUEUED] = "queued", [JOB_RUNNING] = "running",     [JOB_DONE] = "done",
	[JOB_FAILED] = "failed", [JOB_CANCELLED] = "cancelled", [JOB_REJECTED] = "rejected",
	[JOB_LOST] = "lost",
};
const char *const job_verdict_name[N_JOB_VERDICTS] = {
	[VERDICT_PROMISED] = "promised", [VERDICT_BEST_EFFORT] = "best_effort",
	[VERDICT_REJECTED] = "rejected", [VERDICT_CHANCE] = "chance",
	[VERDICT_WAITING] = "waiting",
};
const char *const slo_outcome_name[N_SLO_OUTCOMES] = { [SLO_MET] = "met", [SLO_MISSED] = "missed" };

/* A column of the row; `version` is the version of the store that brought it. */
#define KEPT(k, member, version)                                                                             \
	.kind = FIELD_##k, .column = #member, .since = version, .home = IN_RECORD,                           \
	.offset = offsetof(struct job_record, member)
/* In JSON alone. */
#define TIME(k, member) .kind = FIELD_##k, .home = IN_TIMES, .offset = offsetof(struct job_times, member)
#define LIVE(k, member) .kind = FIELD_##k, .home = IN_LIVE, .offset = offsetof(struct job_live, member)

/* In the order of the job object. Released lines keep their version: files of that version exist. */
const struct job_field job_field[] = {
	{ KEPT(ID, id, 1), .key = "job", .once = true },
	{ KEPT(TEXT, identity, 5) },
	{ KEPT(TEXT, key, 1), .once = true }, /* a newer job may have taken the key over */
	{ KEPT(STATE, state, 1), .key = "state", .needed = true },
	{ KEPT(TEXT, type, 1), .key = "type", .needed = true },
	{ KEPT(TEXT, mode, 1), .key = "mode", .needed = true },
	{ KEPT(JSON, params, 1), .key = "params", .needed = true },
	{ KEPT(UNSIGNED, cpus, 1), .key = "cpus", .needed = true },
	{ KEPT(UNSIGNED, gpus, 7), .key = "gpus", .needed = true },
	{ KEPT(UNSIGNED, gpus_least, 7), .needed = true },
	{ KEPT(TEXT, devices, 7), .key = "devices" },
	{ KEPT(TEXT, tag, 1), .key = "tag" },
	{ KEPT(UNSIGNED, uid, 1), .key = "uid", .needed = true },
	{ KEPT(UNSIGNED, gid, 1), .needed = true },
	{ KEPT(TEXT, tenant, 2), .key = "tenant" },
	{ KEPT(INT, priority, 2), .key = "priority", .needed = true },
	{ KEPT(FIXED, slo_s, 1), .key = "slo_s" },
	{ KEPT(FIXED, confidence, 1), .key = "confidence" },
	{ KEPT(BOOL, best_effort, 1), .key = "best_effort", .needed = true },
	{ KEPT(FIXED, chance, 4), .key = "chance" },
	{ KEPT(FIXED, value, 8), .key = "value" },
	{ KEPT(BOOL, may_stop, 2), .key = "may_stop", .needed = true },
	{ KEPT(REF, after, 6), .key = "after" },
	{ KEPT(JSON, after_more, 9), .key = "after_more" },
	{ KEPT(BOOL, after_ok, 6), .key = "after_ok", .needed = true },
	{ KEPT(INT, retry, 6), .key = "retry", .needed = true },
	{ KEPT(INT, attempt, 6), .key = "attempt", .needed = true },
	{ KEPT(NUMBER, array_index, 6), .key = "index" },
	{ KEPT(VERDICT, verdict, 1), .key = "verdict", .needed = true },
	{ KEPT(JSON, batches, 1), .key = "batches" },
	{ KEPT(FIXED, max_memory_mb, 1), .key = "max_memory_mb" },
	{ KEPT(MOMENT, submitted_ns, 1), .key = "submitted_at" },
	{ KEPT(MOMENT, started_ns, 1), .key = "started_at" },
	{ KEPT(MOMENT, ended_ns, 1), .key = "ended_at" },
	{ TIME(MOMENT, deadline_ns), .key = "deadline_at" },
	{ KEPT(NUMBER, batch, 1), .key = "batch" },
	{ KEPT(NUMBER, epochs, 2), .key = "epochs" },
	{ KEPT(NUMBER, lr, 1), .key = "lr" }, /* not rounded: a learning rate may be tiny */
	{ KEPT(JSON, steered, 11), .key = "steered" },
	{ KEPT(TEXT, steer_kept, 11) },
	{ KEPT(TEXT, policy, 1), .key = "policy" },
	{ KEPT(TEXT, model, 1), .key = "model" },
	{ KEPT(FIXED, predicted_s, 1), .key = "predicted_s" },
	{ KEPT(FIXED, upper_s, 1), .key = "upper_s" },
	{ KEPT(FIXED, predicted_accuracy, 1), .key = "predicted_accuracy" },
	{ KEPT(NUMBER, run_predicted_s, 1) },
	{ KEPT(NUMBER, run_upper_s, 1) },
	{ KEPT(NUMBER, guard_s, 3) },
	{ KEPT(NUMBER, foreseen_s, 3) },
	{ KEPT(NUMBER, model_s, 2) },
	{ KEPT(NUMBER, work_s, 1) },
	{ KEPT(NUMBER, cpu_share, 1) },
	{ KEPT(NUMBER, disk_share, 1) },
	{ LIVE(GROUP, has_estimate), .key = "estimate" },
	{ LIVE(FIXED, start_s), .key = "start_s" },
	{ LIVE(FIXED, end_s), .key = "end_s" },
	{ LIVE(FIXED, end_low_s), .key = "end_low_s" },
	{ LIVE(FIXED, end_high_s), .key = "end_high_s" },
	{ LIVE(BOOL, late), .key = "late" },
	{ .kind = FIELD_GROUP_END },
	{ LIVE(GROUP, has_waiting), .key = "waiting" },
	{ LIVE(TEXT, waiting_code), .key = "code" },
	{ LIVE(TEXT, waiting_message), .key = "message" },
	{ .kind = FIELD_GROUP_END },
	{ LIVE(GROUP, has_progress), .key = "progress" },
	{ LIVE(FIXED, epoch), .key = "epoch" },
	{ LIVE(FIXED, epochs), .key = "epochs" },
	{ LIVE(FIXED, accuracy), .key = "accuracy" },
	{ LIVE(FIXED, final_accuracy), .key = "final_accuracy" },
	{ .kind = FIELD_GROUP_END },
	{ TIME(FIXED, wait_s), .key = "wait_s" },
	{ TIME(FIXED, run_s), .key = "run_s" },
	{ TIME(FIXED, response_s), .key = "response_s" },
	{ KEPT(FIXED, accuracy, 1), .key = "accuracy" },
	{ KEPT(NUMBER, stopped_epoch, 2), .key = "stopped_epoch" },
	{ KEPT(EXIT, exit_code, 1), .key = "exit_code" },
	{ KEPT(SIGNAL, exit_signal, 1), .key = "signal" },
	{ KEPT(FIXED, max_rss_mb, 1), .key = "max_rss_mb" },
	{ KEPT(NUMBER, cpu_s, 1) },
	{ KEPT(OUTCOME, slo_outcome, 1), .key = "slo_outcome" },
	{ TIME(FIXED, slack_s), .key = "slack_s" },
	{ KEPT(TEXT, reason, 1), .key = "reason" },
	{ LIVE(SIGNAL, pid), .key = "pid" },
};
const size_t n_job_fields = sizeof job_field / sizeof *job_field;

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "FIELD_UNSIGNED");
_Static_assert(sizeof(enum job_state) == sizeof(int) && sizeof(enum slo_outcome) == sizeof(int),
	       "enum_names()");
_Static_assert(sizeof(pid_t) == sizeof(int), "FIELD_SIGNAL");
_Static_assert(VERDICT_CHANCE - VERDICT_PROMISED == SCHED_CHANCE - SCHED_PROMISED, "job_verdict_of()");

/* ---- enums ---- */

enum job_verdict job_verdict_of(int sched_verdict)
{
	return (enum job_verdict)(VERDICT_PROMISED + (sched_verdict - SCHED_PROMISED));
}

static const char *const *enum_names(const struct job_field *f, int *out_n)
{
	switch (f->kind) {
	case FIELD_STATE: *out_n = N_JOB_STATES; return job_state_name;
	case FIELD_VERDICT: *out_n = N_JOB_VERDICTS; return job_verdict_name;
	case FIELD_OUTCOME: *out_n = N_SLO_OUTCOMES; return slo_outcome_name;
	default: *out_n = 0; return NULL;
	}
}

const char *job_field_text(const struct job_field *f, const void *member)
{
	int n;
	const char *const *name = enum_names(f, &n);

	if (!name)
		return *(const char *const *)member;
	return *(const int *)member >= 0 && *(const int *)member < n ? name[*(const int *)member] : NULL;
}

bool job_field_named(const struct job_field *f, const char *text, void *out_member)
{
	int n;
	const char *const *name = enum_names(f, &n);

	for (int i = 0; i < n; i++) {
		if (name[i] && !strcmp(name[i], text)) {
			*(int *)out_member = i;
			return true;
		}
	}
	return false;
}

/* ---- empty values ---- */

static struct job_record blank;

static void make_blank(void)
{
	blank = (struct job_record){ .uid = (uid_t)-1, .gid = (gid_t)-1 };
	for (const struct job_field *f = job_field; f < job_field + n_job_fields; f++) {
		void *member = (char *)&blank + f->offset;

		if (f->home == IN_RECORD && (f->kind == FIELD_FIXED || f->kind == FIELD_NUMBER))
			*(double *)member = NAN;
		else if (f->kind == FIELD_EXIT)
			*(int *)member = -1;
	}
}

void job_record_init(struct job_record *out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_blank);
	*out = blank;
}

int job_identity_draw(char out[JOB_IDENTITY + 1], struct err *err)
{
	unsigned char byte[JOB_IDENTITY / 2];

	if (getrandom(byte, sizeof byte, 0) != (ssize_t)sizeof byte)
		return err_fail(err, ERR_IO, "the system gives no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof byte; i++)
		snprintf(out + 2 * i, 3, "%02x", byte[i]);
	return 0;
}

void job_identity_next(char *identity)
{
	char *tail = identity + JOB_IDENTITY - 8;
	unsigned n = (unsigned)strtoul(tail, NULL, 16);

	snprintf(tail, 9, "%08x", n + 1);
}

/* ---- the scheduler's decision ---- */

void record_take_candidate(struct job_record *r, const struct candidate *c, double lr)
{
	r->batch = c->decision;
	r->lr = lr;
	r->epochs = c->epochs;
	r->model_s = c->model_s;
	r->run_predicted_s = c->time_s;
	r->guard_s = c->guard_s;
	r->run_upper_s = c->upper_s;
	r->work_s = c->work_s;
	r->cpu_share = c->cpu_share;
	r->disk_share = c->disk_share;
	r->gpus = c->devices;
}

void record_take_promise(struct job_record *r, const struct candidate *c, double lr)
{
	record_take_candidate(r, c, lr);
	r->predicted_s = c->wait_s + c->time_s;
	r->upper_s = c->wait_upper_s + c->upper_s;
	r->predicted_accuracy = c->accuracy;
}

struct candidate record_candidate(const struct job_record *r)
{
	return (struct candidate){
		.decision = r->batch,
		.epochs = r->epochs,
		.time_s = r->run_predicted_s,
		.spread = NAN, /* the guard tells it */
		/* A row of an older version has no guard. */
		.guard_s = isnan(r->guard_s) ? r->run_upper_s : r->guard_s,
		.upper_s = r->run_upper_s,
		.model_s = r->model_s,
		.accuracy = r->predicted_accuracy,
		.memory_mb = NAN,
		.work_s = r->work_s,
		.cpu_share = r->cpu_share,
		.disk_share = r->disk_share,
		.devices = r->gpus,
		.start_share = NAN, /* its first report will tell little */
	};
}

/* ---- what follows from a record ---- */

/* Seconds between two moments; NaN where one of them has not come. */
static double span_s(int64_t from_ns, int64_t to_ns)
{
	int64_t ns;

	if (!from_ns || !to_ns || __builtin_sub_overflow(to_ns, from_ns, &ns))
		return NAN;
	return (double)ns / 1e9;
}

static int64_t deadline_ns(const struct job_record *r)
{
	double left_ns = r->slo_s * 1e9;
	int64_t at;

	if (!r->submitted_ns || !(fabs(left_ns) < 9e18) ||
	    __builtin_add_overflow(r->submitted_ns, (int64_t)left_ns, &at))
		return 0;
	return at;
}

struct job_times job_times(const struct job_record *r)
{
	double response_s = span_s(r->submitted_ns, r->ended_ns);

	return (struct job_times){
		.deadline_ns = deadline_ns(r),
		.wait_s = span_s(r->submitted_ns, r->started_ns),
		.run_s = span_s(r->started_ns, r->ended_ns),
		.response_s = response_s,
		/* A job that failed at once has nothing to spare. */
		.slack_s = r->slo_outcome && r->state == JOB_DONE ? r->slo_s - response_s : NAN,
	};
}

/* ---- JSON out ---- */

void json_kv_moment(struct json_writer *w, const char *key, int64_t at_ns)
{
	char buf[40];

	json_kv_string(w, key, at_ns ? text_utc(at_ns, buf) : NULL);
}

void json_put_raw(struct json_writer *w, const char *text)
{
	if (!text) {
		json_put_null(w);
		return;
	}
	if (!w->after_key && w->need_comma)
		strbuf_add(w->out, ",", 1);
	while (*text) {
		size_t n = strcspn(text, "\r\n");

		strbuf_add(w->out, text, n);
		text += n;
		if (*text) {
			strbuf_add(w->out, " ", 1);
			text++;
		}
	}
	w->after_key = false;
	w->need_comma = true;
}

static void kv_int_or_null(struct json_writer *w, const char *key, int v, int unknown)
{
	json_put_key(w, key);
	if (v == unknown)
		json_put_null(w);
	else
		json_put_int(w, v);
}

static void put_field(struct json_writer *w, const struct job_field *f, const void *member)
{
	char id[24];

	switch (f->kind) {
	case FIELD_REF:
		if (!*(const uint64_t *)member) {
			json_kv_string(w, f->key, NULL);
			break;
		}
		/* fall through */
	case FIELD_ID:
		snprintf(id, sizeof id, "%llu", (unsigned long long)*(const uint64_t *)member);
		json_kv_string(w, f->key, id);
		break;
	case FIELD_TEXT:
	case FIELD_STATE:
	case FIELD_VERDICT:
	case FIELD_OUTCOME: json_kv_string(w, f->key, job_field_text(f, member)); break;
	case FIELD_JSON:
		json_put_key(w, f->key);
		json_put_raw(w, *(const char *const *)member);
		break;
	case FIELD_FIXED: json_kv_fixed(w, f->key, *(const double *)member, 6); break;
	case FIELD_NUMBER: json_kv_number(w, f->key, *(const double *)member); break;
	case FIELD_MOMENT: json_kv_moment(w, f->key, *(const int64_t *)member); break;
	case FIELD_UNSIGNED: json_kv_int(w, f->key, *(const uint32_t *)member); break;
	case FIELD_BOOL: json_kv_bool(w, f->key, *(const bool *)member); break;
	case FIELD_INT: json_kv_int(w, f->key, *(const int *)member); break;
	case FIELD_EXIT: kv_int_or_null(w, f->key, *(const int *)member, -1); break;
	case FIELD_SIGNAL: kv_int_or_null(w, f->key, *(const int *)member, 0); break;
	case FIELD_GROUP:
	case FIELD_GROUP_END: break;
	}
}

static const struct job_field *group_end(const struct job_field *f)
{
	while (f->kind != FIELD_GROUP_END)
		f++;
	return f;
}

void job_json(struct json_writer *w, const struct job_record *r, const struct job_live *given)
{
	struct job_live live = given ? *given : (struct job_live){ 0 };
	struct job_times times = job_times(r);
	const void *const home[] = { [IN_RECORD] = r, [IN_TIMES] = &times, [IN_LIVE] = &live };

	live.has_waiting = live.waiting_code != NULL;
	json_open(w, '{');
	for (const struct job_field *f = job_field; f < job_field + n_job_fields; f++) {
		const void *member = (const char *)home[f->home] + f->offset;

		if (f->kind == FIELD_GROUP_END) {
			json_close(w, '}');
		} else if (f->kind == FIELD_GROUP) {
			json_put_key(w, f->key);
			if (*(const bool *)member) {
				json_open(w, '{');
			} else {
				json_put_null(w);
				f = group_end(f);
			}
		} else if (f->key) {
			put_field(w, f, member);
			if (member == &r->id)
				json_kv_int(w, "number", (long long)r->id);
		}
	}
	json_close(w, '}');
}

/* ---- JSON in ---- */

/* A whole number from least to most; false: v is none. */
static bool whole(const struct json *v, double least, double most, double *out)
{
	*out = json_number(v, NAN);
	return *out >= least && *out <= most && *out == floor(*out);
}

static bool read_id(const char *text, uint64_t *out)
{
	size_t n = strspn(text, "0123456789");

	*out = strtoull(text, NULL, 10); /* too large: ULLONG_MAX, which never is an id */
	return n > 0 && n <= 20 && !text[n];
}

/* False: the object cannot be used without this. */
static bool read_field(const struct job_field *f, const struct json *v, void *member)
{
	const char *text = json_string(v, NULL);
	double n;

	switch (f->kind) {
	case FIELD_ID: return text && read_id(text, member);
	case FIELD_REF:
		if (text)
			read_id(text, member);
		break;
	case FIELD_STATE: return text && job_field_named(f, text, member);
	case FIELD_VERDICT:
	case FIELD_OUTCOME:
		if (text)
			job_field_named(f, text, member);
		break;
	case FIELD_TEXT: *(const char **)member = text; break;
	case FIELD_FIXED:
	case FIELD_NUMBER: *(double *)member = json_number(v, NAN); break;
	case FIELD_MOMENT:
		if (text)
			text_utc_parse(text, member);
		break;
	case FIELD_UNSIGNED:
		if (whole(v, 0, UINT32_MAX, &n))
			*(uint32_t *)member = (uint32_t)n;
		break;
	case FIELD_BOOL: *(bool *)member = json_bool(v, false); break;
	case FIELD_INT:
	case FIELD_EXIT:
	case FIELD_SIGNAL:
		if (whole(v, INT32_MIN, INT32_MAX, &n))
			*(int *)member = (int)n;
		break;
	case FIELD_GROUP: *(bool *)member = json_type(v) == JSON_OBJECT; break;
	case FIELD_JSON:
	case FIELD_GROUP_END: break;
	}
	return true;
}

bool job_json_read(const struct json *v, struct job_record *out, struct job_times *out_times,
		   struct job_live *out_live)
{
	void *const home[] = { [IN_RECORD] = out, [IN_TIMES] = out_times, [IN_LIVE] = out_live };
	const struct json *object = v;

	job_record_init(out);
	*out_times = (struct job_times){ 0 };
	*out_live = (struct job_live){ 0 };
	for (const struct job_field *f = job_field; f < job_field + n_job_fields; f++) {
		const struct json *value = f->key ? json_get(object, f->key) : NULL;

		if (f->key && !read_field(f, value, (char *)home[f->home] + f->offset))
			return false;
		if (f->kind == FIELD_GROUP)
			object = value;
		else if (f->kind == FIELD_GROUP_END)
			object = v;
	}
	return true;
}
