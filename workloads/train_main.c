/* postrider-train: the reference training job, its workers on one machine. program.c has the command line;
 * read train.c for the cycle, allreduce.c for how the workers meet, layer_conv.c for where the time goes. */
#include "workloads/program.h"

int main(int argc, char **argv)
{
	const struct program p = { .name = "postrider-train", .run = allreduce_run };

	return program_main(&p, argc, argv);
}
