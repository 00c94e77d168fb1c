#!/bin/sh
# The engine `slurm` with programs that play Slurm, for what a real one does not do when asked: a launch that fails, a job that is out of memory,
# a node that fails before the job began. tests/slurm/ has the real one.
# shellcheck disable=SC2154,SC2034,SC2016 # variables are of the libraries, or of scripts
. tests/cli/lib.sh
mkdir "$dir/bin"
# The first job of the file `fate` meets it; all others run.
cat >"$dir/bin/sbatch" <<END
#!/bin/sh
for word in "\$@"; do case \$word in --comment=*) comment=\${word#--comment=} ;; esac; done
cat >$dir/script.\$\$
n=\$((\$(cat $dir/number 2>/dev/null || echo 0) + 1))
echo \$n >$dir/number
fate=\$(cat $dir/fate 2>/dev/null)
rm -f $dir/fate
case \$fate in
'') echo "\$n|RUNNING|\$comment|n1|None" >>$dir/queue && setsid sh $dir/script.\$\$ >/dev/null 2>&1 </dev/null & ;;
OUT_OF_MEMORY) # the kernel kills it, and Slurm says why
	echo "\$n|OUT_OF_MEMORY|\$comment|n1|OutOfMemory" >>$dir/queue
	setsid sh $dir/script.\$\$ >/dev/null 2>&1 </dev/null & ;;
*) echo "\$n|\$fate|\$comment|\$(cat $dir/node)|None" >>$dir/queue ;;
esac
echo \$n
END
printf '#!/bin/sh\ncat %s/queue\n' "$dir" >"$dir/bin/squeue"
printf '#!/bin/sh\nexit 1\n' | tee "$dir/bin/scancel" "$dir/bin/sinfo" >"$dir/bin/sacct"
chmod +x "$dir"/bin/*
: >"$dir/queue"
more_config='"executor": "slurm", "engines": {"slurm": {"bin": "'$dir/bin'", "poll_s": 0.2, "look_s": 0, "record_grace_s": 1}},'
. tests/cli/daemon_lib.sh

submitted
that "what plays Slurm runs a job" tried is_state "$id" "done"
echo n1 >"$dir/node"
echo CANCELLED >"$dir/fate"
submitted
that "a job that had a node and could not be launched is submitted again, and done" tried is_state "$id" "done"
that "as a second job of Slurm" test "$(cat "$dir/number")" = 3
that "which the log says" grep -q "job $id: slurm could not launch it, and it has not run: it is submitted again" "$dir/daemon.log"
: >"$dir/node"
echo CANCELLED >"$dir/fate"
submitted
that "one that was cancelled while it waited is cancelled" tried is_state "$id" cancelled
that "and not submitted again" test "$(cat "$dir/number")" = 4
echo OUT_OF_MEMORY >"$dir/fate"
submitted --set nap=0.5,code=999
that "one that is out of memory has failed" tried is_state "$id" failed
run status "$id"
says out "out of memory, says slurm (OUT_OF_MEMORY, OutOfMemory)" "with the reason"
echo n1 >"$dir/node"
echo BOOT_FAIL >"$dir/fate"
submitted
that "one whose node did not boot has failed: it never began" tried is_state "$id" failed
run status "$id"
says out "its node failed, says slurm (BOOT_FAIL)" "with the reason"
echo DEADLINE >"$dir/fate"
submitted
that "one that Slurm ended at its deadline has failed" tried is_state "$id" failed
run status "$id"
says out "stopped by slurm at its time limit (DEADLINE)" "with the reason"
"$postrider" replay --from-history "$dir/state" --verify --json >"$dir/verify.json"
json "$dir/verify.json" "all these decisions come out again" "d['agree'] == d['judged'] == d['jobs'] and d['jobs'] > 5"
finish
