/* Observations in an answer: packed one behind the other, so that an answer can be copied and handed to
 * another thread as it is. */
#include <string.h>

#include "scheduler/store/store.h"

/* A row is a head and its values; each value is followed by its name and, where it has one, its text. */
struct head {
	uint64_t job;
	int64_t at_ns;
	uint64_t n;
};

struct packed_value {
	double number;
	bool has_text;
};

void store_observation_put(struct strbuf *out, const struct store_observation *o)
{
	struct head head = { o->job, o->at_ns, o->n };

	strbuf_add(out, &head, sizeof head);
	for (size_t i = 0; i < o->n; i++) {
		struct packed_value v;

		memset(&v, 0, sizeof v); /* the gaps too: they are copied */
		v.number = o->value[i].number;
		v.has_text = o->value[i].text != NULL;
		strbuf_add(out, &v, sizeof v);
		strbuf_add(out, o->value[i].name, strlen(o->value[i].name) + 1);
		if (v.has_text)
			strbuf_add(out, o->value[i].text, strlen(o->value[i].text) + 1);
	}
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
	*out = (struct store_observation){ .job = head.job, .at_ns = head.at_ns, .n = head.n };
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
