/* From options and a file's object to a request, and from a reply to an answer. See submit.h. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/client/submit.h"
#include "scheduler/cli/client/when.h"

#define MAX_BATCHES 64
#define MAX_AFTER 64 /* jobs; the daemon takes no more */
#define MAX_PARAMS 64
#define MAX_PRIORITY 100

/* ---- options ---- */

struct setting { /* one K=V of --set */
	const char *key, *value;
	size_t key_len, value_len;
};

/* All K=V of all --set, in order; SIZE_MAX: *out_bad is not one, or they are too many (*out_bad NULL). */
static size_t settings(const struct cli_list *set, struct setting *out, const char **out_bad)
{
	size_t n = 0;

	*out_bad = NULL;
	for (size_t i = 0; i < set->n; i++) {
		const char *s = set->item[i];

		for (;;) {
			size_t len = strcspn(s, ","), key_len = strcspn(s, "=");

			if (n == MAX_PARAMS)
				return SIZE_MAX;
			if (key_len == 0 || key_len + 1 >= len) {
				*out_bad = s;
				return SIZE_MAX;
			}
			out[n++] = (struct setting){ s, s + key_len + 1, key_len, len - key_len - 1 };
			if (!s[len])
				break;
			s += len + 1;
		}
	}
	return n;
}

static bool set_check(const struct cli *c, const struct cli_list *set)
{
	struct setting all[MAX_PARAMS];
	const char *bad;
	size_t n = settings(set, all, &bad);

	if (n == SIZE_MAX && bad) {
		cli_usage_error(c, "--set: '%.*s' is not K=V; write --set network=lenet5,epochs=4",
				(int)strcspn(bad, ","), bad);
		return false;
	}
	if (n == SIZE_MAX) {
		cli_usage_error(c, "--set: more than %d parameters", MAX_PARAMS);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++) {
			if (all[i].key_len == all[k].key_len &&
			    !memcmp(all[i].key, all[k].key, all[i].key_len)) {
				cli_usage_error(c, "--set: %.*s is given twice", (int)all[i].key_len,
						all[i].key);
				return false;
			}
		}
	}
	return true;
}

/* "64,128"; false: it is not such a list. */
static bool batches_parse(const char *text, double *out, size_t *out_n)
{
	const struct text_limits size = { .min = DBL_MIN, .max = DBL_MAX };

	return !text_list(text, ',', &size, MAX_BATCHES, out, out_n, NULL);
}

/* "10"; false: it is not a count. */
static bool count_parse(const char *text, double *out)
{
	return text_number(text, out) && *out >= 1.0 && *out == floor(*out);
}

/* "3..20"; false: it is not a range of counts. */
static bool range_check(const char *text)
{
	double from, to;

	return text_range(text, &from, &to) && from >= 1.0 && from == floor(from) && to == floor(to) &&
	       from <= to;
}

static bool priority_parse(const char *text, double *out)
{
	return text_number(text, out) && fabs(*out) <= MAX_PRIORITY && *out == floor(*out);
}

bool submit_array_parse(const char *text, double *out_from, double *out_to, double *out_step)
{
	char from[32], to[32], step[32] = "1";
	int n = 0, m = 0;

	if (sscanf(text, "%31[0-9]-%31[0-9]%n", from, to, &n) != 2 ||
	    (text[n] && (sscanf(text + n, ":%31[0-9]%n", step, &m) != 1 || text[n + m])))
		return false;
	return text_number(from, out_from) && text_number(to, out_to) && text_number(step, out_step) &&
	       *out_from <= *out_to && *out_step >= 1.0 &&
	       (*out_to - *out_from) / *out_step < SUBMIT_MAX_ARRAY && *out_to <= 1e9;
}

/* "12", "12:ok", "12,13" or "12,13:ok"; the ids go to `out`. :ok at the end is for all of them. */
static bool after_parse(const char *text, uint64_t out[MAX_AFTER], size_t *out_n, bool *out_ok)
{
	size_t n = 0, marked = 0;
	bool last = false;

	for (const char *s = text;; s++) {
		size_t len = strcspn(s, ","), digits = strcspn(s, ",:");
		char id[32];

		last = digits < len;
		if (n == MAX_AFTER || digits >= sizeof id ||
		    (last && strncmp(s + digits, ":ok", len - digits)) || (last && len - digits != 3))
			return false;
		snprintf(id, sizeof id, "%.*s", (int)digits, s);
		if (!text_uint64(id, &out[n]) || out[n++] == 0)
			return false;
		marked += last;
		s += len;
		if (!*s)
			break;
	}
	*out_n = n;
	*out_ok = marked > 0;
	return marked == 0 || marked == n || (marked == 1 && last);
}

static bool source_check(const struct cli *c, const struct submit_options *o)
{
	if (o->file && o->jsonl)
		cli_usage_error(c, "give either --file or --jsonl");
	else if (o->array && o->jsonl)
		cli_usage_error(c, "--array and --jsonl are both many jobs; give one of them");
	else if (o->array && o->wait)
		cli_usage_error(c, "--wait works with one job; use 'postrider wait'");
	else if (o->array && o->key && !strstr(o->key, "{index}"))
		cli_usage_error(c, "--key with --array would make all of them one job; put {index} into it");
	else if (!o->file && !o->jsonl && !o->type)
		cli_usage_error(c, "add a job type: postrider submit TYPE, or use --file or --jsonl");
	else if (o->jsonl && o->wait)
		cli_usage_error(c, "--wait works with one job; use 'postrider wait' with the ids");
	else if (o->jsonl && o->key)
		cli_usage_error(
			c, "--key with --jsonl would make all lines one job; put a \"key\" into each line");
	else if (o->dry_run && o->wait)
		cli_usage_error(c, "--dry-run creates no job that --wait could wait for");
	else
		return true;
	return false;
}

bool submit_options_check(const struct cli *c, const struct submit_options *o)
{
	double batch[MAX_BATCHES], priority, epochs, from, to, step;
	uint64_t after[MAX_AFTER];
	bool ok;
	int64_t at_ns;
	size_t n;

	if (!source_check(c, o) || !set_check(c, &o->set))
		return false;
	if (!isnan(o->slo_s) && o->deadline)
		cli_usage_error(c, "give either --slo or --deadline");
	else if (o->deadline && !when_to_come(o->deadline, &at_ns))
		cli_usage_error(
			c,
			"--deadline: '%s' is not a point in time; write 18:00, \"2026-11-16 18:00\", or "
			"2026-11-16T10:05:00Z",
			cli_clean(o->deadline));
	else if (o->array && !submit_array_parse(o->array, &from, &to, &step))
		cli_usage_error(c,
				"--array: '%s' is not a range of at most %d numbers; write 1-20, or 0-100:10",
				o->array, SUBMIT_MAX_ARRAY);
	else if (o->after && !after_parse(o->after, after, &n, &ok))
		cli_usage_error(
			c,
			"--after: '%s' is no list of at most %d jobs; write 12, or 12,13, or 12,13:ok "
			"if all of them have to end well",
			o->after, MAX_AFTER);
	else if (o->mode && strcmp(o->mode, "run") && strcmp(o->mode, "advise"))
		cli_usage_error(c, "--mode: '%s' is neither run nor advise", o->mode);
	else if (o->batches && !batches_parse(o->batches, batch, &n))
		cli_usage_error(c, "--batches: '%s' is not a list of at most %d sizes; write 64,128,256",
				o->batches, MAX_BATCHES);
	else if (o->epochs && !count_parse(o->epochs, &epochs) && !range_check(o->epochs))
		cli_usage_error(c, "--epochs: '%s' is neither a range 3..20 nor a count", o->epochs);
	else if (o->priority && !priority_parse(o->priority, &priority))
		cli_usage_error(c, "--priority: '%s' is not a whole number from -%d to %d", o->priority,
				MAX_PRIORITY, MAX_PRIORITY);
	else
		return true;
	return false;
}

/* The text with the number of the job in the place of {index}. */
static const char *with_index(const struct submit_options *o, const char *text, size_t len, char *buf,
			      size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 24 < size;) {
		if (o->index && len - i >= 7 && !strncmp(text + i, "{index}", 7)) {
			n += (size_t)snprintf(buf + n, size - n, "%.0f", *o->index);
			i += 7;
		} else {
			buf[n++] = text[i++];
		}
	}
	buf[n] = '\0';
	return buf;
}

/* ---- the request ---- */

int submit_object_check(const char *where, const struct json *object, struct err *err)
{
	static const char *const known[] = { "type",     "params",     "cpus",     "slo_s",
					     "deadline", "confidence", "batches",  "best_effort",
					     "mode",     "key",        "tag",      "max_memory_mb",
					     "dry_run",  "epochs",     "priority", "may_stop",
					     "chance",   "after",      "after_ok", "retry",
					     "index",    "gpus",       "value",    NULL };

	if (json_type(object) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: a job is a JSON object with \"type\" and the like",
				where);
	return json_known_keys(object, where, known, err);
}

static void put_params(struct json_writer *w, const struct submit_options *o, const struct json *params)
{
	struct setting all[MAX_PARAMS];
	const char *bad;
	size_t n = settings(&o->set, all, &bad);
	char text[512];

	if (n == SIZE_MAX) /* submit_options_check() said so already */
		n = 0;
	if (!n && json_type(params) != JSON_ABSENT && json_type(params) != JSON_OBJECT) {
		json_put_key(w, "params"); /* the daemon will say what is wrong with it */
		cli_json_copy(w, params);
		return;
	}
	if (!n && json_type(params) == JSON_ABSENT)
		return;
	json_kv_open(w, "params", '{');
	for (const struct json *m = json_type(params) == JSON_OBJECT ? json_first(params) : NULL; m;
	     m = json_next(m)) {
		bool again = false;

		for (size_t i = 0; i < n; i++)
			again |= strlen(json_key(m)) == all[i].key_len &&
				 !memcmp(json_key(m), all[i].key, all[i].key_len);
		if (again)
			continue;
		json_put_key(w, json_key(m));
		cli_json_copy(w, m);
	}
	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof text, "%.*s", (int)all[i].key_len, all[i].key);
		json_put_key(w, text);
		/* As text, also where it looks like a number: the daemon knows the parameter's kind, we do
		 * not. */
		json_put_string(w, with_index(o, all[i].value, all[i].value_len, text, sizeof text));
	}
	json_close(w, '}');
}

static void put_batches(struct json_writer *w, const char *text)
{
	double batch[MAX_BATCHES];
	size_t n = 0;

	if (!batches_parse(text, batch, &n))
		return;
	json_kv_open(w, "batches", '[');
	for (size_t i = 0; i < n; i++)
		json_put_number(w, batch[i]);
	json_close(w, ']');
}

/* One job as before there were several, so that an older daemon understands it. */
static void put_after(struct json_writer *w, const uint64_t *id, size_t n)
{
	char text[32];

	if (n > 1)
		json_kv_open(w, "after", '[');
	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof text, "%llu", (unsigned long long)id[i]);
		if (n > 1)
			json_put_string(w, text);
		else
			json_kv_string(w, "after", text);
	}
	if (n > 1)
		json_close(w, ']');
}

void submit_request(struct client *client, const struct submit_options *o, const struct json *object)
{
	struct json_writer *w = client_begin(client, "submit");
	const char *ours[30] = { "params" };
	double priority, epochs;
	uint64_t after[MAX_AFTER];
	int64_t at_ns;
	char text[512];
	bool ok;
	size_t n = 1, n_after;

	if (o->type)
		json_kv_string(w, ours[n++] = "type", o->type);
	if (!isnan(o->slo_s) || o->deadline) {
		ours[n++] = "slo_s";
		ours[n++] = "deadline";
	}
	if (!isnan(o->slo_s))
		json_kv_number(w, "slo_s", o->slo_s);
	if (o->deadline && when_to_come(o->deadline, &at_ns)) /* which was checked before */
		json_kv_string(w, "deadline", text_utc(at_ns, text));
	if (!isnan(o->confidence))
		json_kv_number(w, ours[n++] = "confidence", o->confidence);
	if (o->cpus)
		json_kv_int(w, ours[n++] = "cpus", (long long)o->cpus);
	if (o->gpus)
		json_kv_int(w, ours[n++] = "gpus", (long long)o->gpus);
	if (o->max_memory_mb)
		json_kv_int(w, ours[n++] = "max_memory_mb", (long long)o->max_memory_mb);
	if (!isnan(o->chance))
		json_kv_number(w, ours[n++] = "chance", o->chance);
	if (!isnan(o->value))
		json_kv_number(w, ours[n++] = "value", o->value);
	if (o->best_effort)
		json_kv_bool(w, ours[n++] = "best_effort", true);
	if (o->dry_run)
		json_kv_bool(w, ours[n++] = "dry_run", true);
	if (o->mode)
		json_kv_string(w, ours[n++] = "mode", o->mode);
	if (o->key)
		json_kv_string(w, ours[n++] = "key",
			       with_index(o, o->key, strlen(o->key), text, sizeof text));
	if (o->tag)
		json_kv_string(w, ours[n++] = "tag",
			       with_index(o, o->tag, strlen(o->tag), text, sizeof text));
	if (o->index)
		json_kv_number(w, ours[n++] = "index", *o->index);
	if (o->retry)
		json_kv_int(w, ours[n++] = "retry", (long long)o->retry);
	if (o->after && after_parse(o->after, after, &n_after, &ok)) {
		ours[n++] = "after";
		put_after(w, after, n_after);
		json_kv_bool(w, ours[n++] = "after_ok", ok);
	}
	if (o->batches) {
		ours[n++] = "batches";
		put_batches(w, o->batches);
	}
	if (o->epochs) {
		ours[n++] = "epochs";
		if (count_parse(o->epochs, &epochs))
			json_kv_number(w, "epochs", epochs);
		else
			json_kv_string(w, "epochs", o->epochs);
	}
	if (o->priority && priority_parse(o->priority, &priority))
		json_kv_number(w, ours[n++] = "priority", priority);
	if (o->may_stop)
		json_kv_bool(w, ours[n++] = "may_stop", true);
	ours[n] = NULL;
	put_params(w, o, json_get(object, "params"));
	if (o->wait)
		json_kv_bool(w, "watch", true);
	if (object)
		cli_json_members(w, object, ours);
}

/* ---- the answer ---- */

int submit_answer_read(const struct json *reply, bool dry_run, struct submit_answer *out,
		       struct client_fault *f)
{
	const char *const *name = job_verdict_name + VERDICT_PROMISED;
	const char *verdict = json_string(json_get(reply, "verdict"), NULL);
	const struct json *decision = json_get(reply, "decision");
	size_t i = 0;

	*out = (struct submit_answer){ .duplicate = json_bool(json_get(reply, "duplicate"), false),
				       .reason = json_string(json_get(reply, "reason"), NULL),
				       .probe = json_string(json_get(reply, "probe"), NULL) };
	out->has_job = job_view_read(json_get(reply, "job"), &out->job);
	if (!out->has_job && !dry_run)
		return client_bad_reply(f, "there is no job object in it");
	out->after_more = json_get(json_get(reply, "job"), "after_more");
	if (!verdict && out->has_job) /* an old job's, found by its key */
		verdict = job_verdict_name[out->job.r.verdict];
	while (i < N_SUBMIT_VERDICTS && verdict && strcmp(name[i], verdict))
		i++;
	if (i == N_SUBMIT_VERDICTS || !verdict)
		return client_bad_reply(
			f, "its verdict is none of promised, best_effort, rejected, chance, waiting");
	out->verdict = (enum submit_verdict)i;
	out->has_decision = decision_view_read(decision, &out->decision);
	if (!out->has_decision && json_type(decision) == JSON_OBJECT)
		return client_bad_reply(f, "its decision lacks the candidates");
	return 0;
}
