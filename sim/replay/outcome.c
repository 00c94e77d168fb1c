#include "sim/replay/outcome.h"

const char *const outcome_state_name[OUTCOME_STATES] = {
	[OUTCOME_REJECTED] = "rejected", [OUTCOME_MET] = "met",       [OUTCOME_MISSED] = "missed",
	[OUTCOME_DONE] = "done",         [OUTCOME_FAILED] = "failed", [OUTCOME_REFUSED] = "refused",
};
