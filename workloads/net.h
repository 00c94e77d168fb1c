/* The two networks of the Courier paper for handwritten digits, and going through them forwards and back.
 * Parameters and gradients are one flat array each, so that workers can sum and update them without knowing
 * the layers. */
#ifndef WORKLOADS_NET_H
#define WORKLOADS_NET_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "workloads/layer.h"

#define NET_MAX_LAYERS 4
#define NET_INPUTS 784 /* 28 x 28 */
#define NET_CLASSES 10

struct net {
	const char *name;
	struct layer layer[NET_MAX_LAYERS];
	size_t n_layers;
	size_t n_params;
};

/* "simplenet" (784-128-10, ReLU) or "lenet5" (convolutions of 6 and 12 channels, 100, 10, tanh). ERR_ARG
 * names the nearest. */
int net_find(const char *name, struct net *out, struct err *err);

/* Uniform in +-1/sqrt(fan_in) (LeCun et al., Efficient BackProp, 1998, in the form that Torch made usual). */
void net_first_params(const struct net *net, uint64_t seed, float *out_param);

/* Room for going through a network with up to `max` records at a time. */
struct net_room {
	size_t max;
	float *input;                    /* the caller puts records here: [max][NET_INPUTS] */
	float *out[NET_MAX_LAYERS];
	uint8_t *choice[NET_MAX_LAYERS];
	float *scratch[NET_MAX_LAYERS];
	float *d[2];                     /* derivatives by the output of a layer, in turns */
};
int net_room_init(struct net_room *room, const struct net *net, size_t max, struct err *err);
void net_room_release(struct net_room *room);

/* What n records gave: sums over records. */
struct net_score {
	double loss;
	size_t correct;
};
void net_test(const struct net *net, const float *param, struct net_room *room, const uint8_t *label,
              size_t n,
              struct net_score *out);
/* And the gradient of the sum of losses times `scale`, written over grad (n = 0: all zero). */
void net_train(const struct net *net, const float *param, struct net_room *room, const uint8_t *label,
               size_t n,
               float scale, float *grad, struct net_score *out);

/* ---- loss.c: log-softmax and negative log likelihood as one: their derivative together is simple ---- */
/* score[n][classes] becomes the derivative of the loss by the scores, times `scale`. Returns the sum of the
 * losses, unscaled; *out_correct counts the records whose label has the highest score (ties: the first). */
double loss_back(float *score, const uint8_t *label, size_t n, size_t classes, float scale,
                 size_t *out_correct);

#endif
