/* The version of the program, from the file VERSION. See version.h. */
#include "common/version.h"

const char postrider_version[] = POSTRIDER_VERSION;
const char postrider_program[] = "postrider " POSTRIDER_VERSION;
