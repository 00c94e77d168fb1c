/* Observations on their way to the writer and in an answer: packed one behind the other, so that they can be
 * copied and handed to another thread as they are. */
#include <string.h>

#include "scheduler/store/store.h"

/* A row is a head and its values; each value is followed by its name and, where it has one, its text. */
struct head {
	uint64_t job;
	int64_t at_ns, uid;
	uint64_t n;
};

struct packed_value {
	double number;
	bool has_text;
};

size_t store_observation_put(struct strbuf *out, uint64_t job, int64_t at_ns, int64_t uid)
{
	struct head head = { job, at_ns, uid, 0 };
	size_t row = out->len;

	strbuf_add(out, &head, sizeof head);
	return row;
}

void store_observation_put_value(struct strbuf *out, size_t row, const struct observed *value)
{
	struct packed_value v;
	struct head head;

	memset(&v, 0, sizeof v); /* the gaps too: they are copied */
	v.number = value->number;
	v.has_text = value->text != NULL;
	strbuf_add(out, &v, sizeof v);
	strbuf_add(out, value->name, strlen(value->name) + 1);
	if (v.has_text)
		strbuf_add(out, value->text, strlen(value->text) + 1);
	if (out->failed)
		return;
	memcpy(&head, out->text + row, sizeof head);
	head.n++;
	memcpy(out->text + row, &head, sizeof head);
}

static const char *take_text(const char *answer, size_t *at)
{
	const char *text = answer + *at;

	*at += strlen(text) + 1;
	return text;
}

bool store_observation_next(const char *answer, size_t len, size_t *at, struct store_observation *out)
{
	struct head head;

	if (*at >= len)
		return false;
	memcpy(&head, answer + *at, sizeof head);
	*at += sizeof head;
	*out = (struct store_observation){
		.job = head.job, .at_ns = head.at_ns, .uid = head.uid, .n = head.n
	};
	for (size_t i = 0; i < head.n; i++) {
		struct packed_value v;

		memcpy(&v, answer + *at, sizeof v);
		*at += sizeof v;
		out->value[i].number = v.number;
		out->value[i].name = take_text(answer, at);
		out->value[i].text = v.has_text ? take_text(answer, at) : NULL;
	}
	return true;
}
