#!/bin/sh
# The controller is away for 20 s while jobs run, wait and are submitted: none is lost, none runs twice.
# shellcheck disable=SC2317,SC2154,SC2034 # functions are called by others; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
cluster_start
slots=100 cores=100 nap_max=600 more_config='"executor": "slurm",
 "engines": {"slurm": {"poll_s": 0.5, "look_s": 1, "time_factor": 1, "time_margin_s": "5m"}},'
cluster_daemon
marking_job
jobs=
submit() { # SECONDS HOW-MANY
	for i in $(seq "$2"); do
		submitted --set nap="$1"
		jobs="$jobs $id"
	done
}
submit 5 8   # end while it is away
first=$jobs
submit 30 8  # run all the while
submit 1 8   # wait here for slots
sleep 5      # slurmctld saves its state a few seconds late
kill "$controller"
wait "$controller" 2>/dev/null
gone=$(date +%s)
submit 1 8
# shellcheck disable=SC2086 # lists of ids are meant
{
	that "without a controller, jobs that run end by their records" within 40 all_are "done" $first
	while [ $(($(date +%s) - gone)) -lt 20 ]; do sleep 0.5; done
	that "none is lost meanwhile" test -z "$("$postrider" list -q --all --state lost,failed)"
	controller_start
	that "after 20 s without it all 32 jobs are done" within 200 all_are "done" $jobs
}
that "each ran once" each_ran_once 32
finish
