# Tests and benches: a part of the Makefile. tests/unit/<layer>/ links that layer and those below it.

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

# Fuzz entries build twice, linked with the same layers: as plain programs that replay the corpus (part of `make check`) and,
# with clang, as libFuzzer targets (tests/fuzz/run.sh). So a layer that is missing here is noticed by every build.
fuzz_names  := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_replay := $(foreach n,$(fuzz_names),$B/tests/fuzz/replay_$n)
# What each stands on, where that is not the configuration.
fuzz_layer_campaign := automl
fuzz_layer_design   := profiler
fuzz_layer_journal  := profiler
fuzz_layer_request  := daemon
fuzz_layer_trace    := sim
fuzz_layer_trials   := automl
fuzz_layer_world    := sim
fuzz_needs = $(call archives,$(or $(fuzz_layer_$1),config))
fuzz_needs_observation = $(call archives,store) $(call archives,config)
# The loops of the training job are written for gcc; the entry needs none of them.
fuzz_needs_idx = $B/workloads/idx.o $(call archives,common)
fuzz_libs_campaign    := -lsvm
fuzz_libs_observation := $(SIM_LIBS)
fuzz_libs_request     := $(DAEMON_LIBS)
fuzz_libs_trace       := $(SIM_LIBS)
fuzz_libs_trials      := -lsvm
fuzz_libs_world       := $(SIM_LIBS)
define fuzz_rule
$B/tests/fuzz/replay_$1: $B/tests/fuzz/fuzz_$1.o $B/tests/fuzz/replay.o $(or $(call fuzz_needs_$1),$(call fuzz_needs,$1))
	$$(link) $(fuzz_libs_$1)
$B/tests/fuzz/libfuzzer_$1: $B/tests/fuzz/fuzz_$1.o $(or $(call fuzz_needs_$1),$(call fuzz_needs,$1))
	$$(link) -fsanitize=fuzzer $(fuzz_libs_$1)
endef
$(foreach n,$(fuzz_names),$(eval $(call fuzz_rule,$n)))

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
	@BIN=$(abspath $(BIN)) BARS=1 tests/cli/verify.sh
	@BIN=$(abspath $(BIN)) BARS=1 tests/cli/budget.sh

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
