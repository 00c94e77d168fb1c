/* What the names of numbers in a training log usually mean. */
#ifndef SCHEDULER_PROCESS_OUTPUT_NAMES_H
#define SCHEDULER_PROCESS_OUTPUT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_NAMED 9 /* the user said that it is this one */

/* How likely a number of this name is the accuracy that is meant; 0: it is not an accuracy. "val_acc" is
 * above "accuracy", because it comes from held-out data. An accuracy of the training data does not count. */
int output_accuracy_rank(const char *name, size_t len);
/* `name` is the last word of `whole`: "Epoch" of "best Epoch". */
bool output_is_epoch(const char *whole, size_t whole_len, const char *name, size_t len);
bool output_is_training(const char *whole, size_t len); /* "Train Epoch" */
bool output_is_loss(const char *name, size_t len);

#endif
