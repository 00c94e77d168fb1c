#!/bin/sh
# The accounting of a real Slurm: slurmdbd with a MariaDB of its own, all in a temporary folder. A job whose record is gone, and which Slurm's
# queue has forgotten as well, ends as sacct says: state, exit code, times.
# shellcheck disable=SC2317,SC2154,SC2034 # functions are called by others; variables are of the libraries
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/cluster.sh
for program in mariadbd mariadb-install-db mariadb slurmdbd sacct; do
	if ! command -v $program >/dev/null; then
		skipped "what sacct says of jobs without a record" "$program is not installed: apt-get install mariadb-server slurmdbd"
		finish
	fi
done
mkdir -p "$S/log" "$S/db"
books_port=$("$python" -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
me=$(id -un)

# ---- a database on a socket, without a network ----
mariadb-install-db --no-defaults --datadir="$S/db" --auth-root-authentication-method=normal --skip-test-db --user="$me" \
	>"$S/log/install" 2>&1
mariadbd --no-defaults --datadir="$S/db" --socket="$S/db.sock" --pid-file="$S/db.pid" --skip-networking --user="$me" \
	--innodb-buffer-pool-size=32M --innodb-log-file-size=16M --innodb-flush-log-at-trx-commit=0 >"$S/log/mariadb" 2>&1 &
books_pids=$!
books_stop() {
	# shellcheck disable=SC2086 # a list of numbers is meant
	kill $books_pids 2>/dev/null
	for pid in $books_pids; do wait "$pid" 2>/dev/null; done
}
trap 'cluster_stop; books_stop; rm -rf "$dir"' EXIT
database_answers() { mariadb --no-defaults --socket="$S/db.sock" --user=root -e 'SELECT 1' >/dev/null 2>&1; }
if ! within 40 database_answers; then
	skipped "what sacct says of jobs without a record" "MariaDB does not start here: $(tail -n 1 "$S/log/mariadb")"
	finish
fi
mariadb --no-defaults --socket="$S/db.sock" --user=root -e "CREATE DATABASE books; CREATE USER IF NOT EXISTS slurm@localhost;
	GRANT ALL ON books.* TO slurm@localhost" >"$S/log/grant" 2>&1

# MinJobAge: squeue forgets a job that has ended after seconds. The controller looks twice a minute.
more_slurm_conf="MinJobAge=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$books_port
AccountingStoragePass=$S/munge/socket"
# Slurm's client of MariaDB takes a socket from here.
printf '[client]\nsocket=%s\n[mysql]\nsocket=%s\n' "$S/db.sock" "$S/db.sock" >"$S/my.cnf"
cat >"$S/slurmdbd.conf" <<END
AuthType=auth/munge
AuthInfo=socket=$S/munge/socket
DbdHost=localhost
DbdPort=$books_port
SlurmUser=$me
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=books
LogFile=$S/log/slurmdbd
PidFile=$S/slurmdbd.pid
END
chmod 600 "$S/slurmdbd.conf"
before_controller=books_start
books_start() {
	MYSQL_UNIX_PORT=$S/db.sock slurmdbd -D >>"$S/log/out" 2>&1 &
	books_pids="$! $books_pids"
	within 20 timeout 5 sacctmgr -n -i show cluster >/dev/null 2>&1 || echo "slurmdbd does not answer: $(tail -n 1 "$S/log/slurmdbd")"
}
cluster_start
if ! within 20 timeout 5 sacct -n >"$dir/out" 2>&1; then
	skipped "what sacct says of jobs without a record" "no accounting here: $(tail -n 1 "$dir/out") $(tail -n 1 "$S/log/slurmdbd")"
	finish
fi
slots=20 cores=20 more_config='"executor": "slurm", "engines": {"slurm": {"poll_s": 0.5, "record_grace_s": 1, "time_factor": 1,
 "time_margin_s": "5m"}},'
cluster_daemon
trap 'cluster_leave; books_stop' EXIT
marking_job
started() { [ -n "$(find "$dir/state/jobs" -name "$1.*.started")" ]; }
ended() { [ -n "$(find "$dir/state/jobs" -name "$1.*.exit")" ]; }
submitted --set nap=3
good=$id
submitted --set nap=3,code=37
bad=$id
submitted --set nap=60
cancelled=$id
for j in $good $bad $cancelled; do within 20 started "$j"; done
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
daemon_pid=
scancel "$(sed -n 's/^id //p' "$dir/state/jobs/$cancelled".*.engine)"
for j in $good $bad $cancelled; do within 30 ended "$j"; done
that "Slurm's own books have the exit code of the job" within 20 sh -c "sacct -nXP --format=State,ExitCode | grep -qx 'FAILED|37:0'"
rm -f "$dir"/state/jobs/*.exit
forgotten() { [ -z "$(squeue -h -t all)" ]; }
that "the queue forgets them" within 90 forgotten
daemon_start
that "a job without a record that Slurm's books have as COMPLETED is done" within 30 is_state "$good" "done"
"$postrider" status "$good" --json >"$dir/out"
json "$dir/out" "with its exit code, its accuracy and its time, in whole seconds" \
	"d['exit_code'] == 0 and d['accuracy'] == 0.91 and 1.5 < d['run_s'] < 6 and 'by the accounting of slurm it is COMPLETED' in d['reason']"
that "one that failed has failed" within 30 is_state "$bad" failed
"$postrider" status "$bad" --json >"$dir/out"
json "$dir/out" "with its exit code" "d['exit_code'] == 37"
that "one that was cancelled is cancelled" within 30 is_state "$cancelled" cancelled
run status "$cancelled"
says out "cancelled at slurm, not by postrider (CANCELLED by" "with who did it"
rows=$("$python" -c "import sqlite3; print(sqlite3.connect('$dir/state/postrider.db').execute('SELECT count(*) FROM observations').fetchone()[0])")
that "nothing is learnt from whole seconds" test "$rows" = 0
finish
