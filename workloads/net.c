/* Builds the two networks and runs them forwards and backwards. See net.h. */
#include "workloads/net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "workloads/kernel.h"

static void net_add(struct net *net, struct layer l)
{
	net->layer[net->n_layers++] = l;
	net->n_params += l.n_params;
}

int net_find(const char *name, struct net *out, struct err *err)
{
	static const char *const known[] = { "simplenet", "lenet5", NULL };
	struct net net = { 0 };
	const char *near;

	if (!strcmp(name, known[0])) {
		net.name = known[0];
		net_add(&net, layer_dense(NET_INPUTS, 128, ACTIVATION_RELU));
		net_add(&net, layer_dense(128, NET_CLASSES, ACTIVATION_NONE));
	} else if (!strcmp(name, known[1])) {
		net.name = known[1];
		net_add(&net, layer_conv(1, 6, 28));
		net_add(&net, layer_conv(6, 12, 12));
		net_add(&net, layer_dense(192, 100, ACTIVATION_TANH));
		net_add(&net, layer_dense(100, NET_CLASSES, ACTIVATION_NONE));
	} else {
		near = text_nearest(name, known);
		return err_fail(err, ERR_ARG,
				"there is no network '%.40s'%s%s%s; the networks are simplenet and lenet5",
				name, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
	}
	*out = net;
	return 0;
}

void net_first_params(const struct net *net, uint64_t seed, float *out_param)
{
	for (size_t k = 0; k < net->n_layers; k++) {
		const struct layer *l = &net->layer[k];
		struct rng rng =
			rng_stream(seed, k); /* a stream a layer: its weights depend on nothing else */
		double bound = 1.0 / sqrt((double)l->fan_in);

		for (size_t i = 0; i < l->n_params; i++)
			*out_param++ = (float)(bound * (2.0 * rng_uniform(&rng) - 1.0));
	}
}

static float *room_for(size_t records, size_t floats)
{
	if (floats > (SIZE_MAX / sizeof(float) - KERNEL_SLACK) / (records + 1))
		return NULL;
	return mem_calloc(records * floats + KERNEL_SLACK, sizeof(float));
}

int net_room_init(struct net_room *room, const struct net *net, size_t max, struct err *err)
{
	size_t widest = 0;
	bool complete;

	*room = (struct net_room){ .max = max };
	room->input = room_for(max, NET_INPUTS);
	complete = room->input;
	for (size_t k = 0; k < net->n_layers; k++) {
		const struct layer *l = &net->layer[k];

		room->out[k] = room_for(max, l->n_out);
		room->choice[k] = mem_calloc(max + 1, l->ops->n_choices(l) + 1);
		room->scratch[k] = room_for(1, l->ops->n_scratch(l));
		complete = complete && room->out[k] && room->choice[k] && room->scratch[k];
		widest = l->n_out > widest ? l->n_out : widest;
	}
	for (int i = 0; i < 2; i++) {
		room->d[i] = room_for(max, widest);
		complete = complete && room->d[i];
	}
	if (complete)
		return 0;
	net_room_release(room);
	return err_nomem(err, "%zu records at a time", max);
}

void net_room_release(struct net_room *room)
{
	if (!room)
		return;
	free(room->input);
	for (size_t k = 0; k < NET_MAX_LAYERS; k++) {
		free(room->out[k]);
		free(room->choice[k]);
		free(room->scratch[k]);
	}
	free(room->d[0]);
	free(room->d[1]);
	*room = (struct net_room){ 0 };
}

/* n records through layer k, whose parameters begin at `param`. */
static struct layer_pass pass_of(const struct net_room *room, size_t k, const float *param, size_t n)
{
	return (struct layer_pass){ .param = param,
				    .in = k ? room->out[k - 1] : room->input,
				    .n = n,
				    .out = room->out[k],
				    .choice = room->choice[k],
				    .scratch = room->scratch[k] };
}

/* The scores of n > 0 records, the output of the last layer. */
static float *forward(const struct net *net, const float *param, struct net_room *room, size_t n)
{
	for (size_t k = 0; k < net->n_layers; k++) {
		const struct layer *l = &net->layer[k];
		struct layer_pass p = pass_of(room, k, param, n);

		l->ops->forward(l, &p);
		param += l->n_params;
	}
	return room->out[net->n_layers - 1];
}

void net_test(const struct net *net, const float *param, struct net_room *room, const uint8_t *label,
	      size_t n, struct net_score *out)
{
	*out = (struct net_score){ 0 };
	if (n)
		out->loss =
			loss_back(forward(net, param, room, n), label, n, NET_CLASSES, 1.0f, &out->correct);
}

void net_train(const struct net *net, const float *param, struct net_room *room, const uint8_t *label,
	       size_t n, float scale, float *grad, struct net_score *out)
{
	size_t last = net->n_layers - 1, turn = 0, at = net->n_params;

	*out = (struct net_score){ 0 };
	if (!n) {
		memset(grad, 0, net->n_params * sizeof *grad);
		return;
	}
	memcpy(room->d[turn], forward(net, param, room, n), n * NET_CLASSES * sizeof(float));
	out->loss = loss_back(room->d[turn], label, n, NET_CLASSES, scale, &out->correct);
	for (size_t k = last + 1; k-- > 0; turn ^= 1) {
		const struct layer *l = &net->layer[k];
		struct layer_pass p;

		at -= l->n_params;
		p = pass_of(room, k, param + at, n);
		p.d_out = room->d[turn];
		p.d_in = k ? room->d[turn ^ 1] : NULL;
		p.grad = grad + at;
		l->ops->backward(l, &p);
	}
}
