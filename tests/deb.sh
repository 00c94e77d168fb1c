#!/bin/sh
# deb.sh: the Debian packages, for real. Builds them twice (an older and the present version), installs the older one into a clean root,
# submits a job to its daemon, upgrades, finds the job again, and purges. Needs root, debootstrap and a mirror ($DEB_MIRROR). One line a
# claim, as the scripts of tests/cli/ print them. From the environment: DEB_DIR and DEB_OLD, folders with packages of
# the present and of an older version that were built already; DEB_ROOT, a root that was made already.
set -u
cd "$(dirname "$0")/.." || exit 1
mirror=${DEB_MIRROR:-http://deb.debian.org/debian}
failures=0
ok() { echo "ok - $1"; }
not_ok() {
	echo "not ok - $1 ($2)"
	failures=$((failures + 1))
}
that() { # CLAIM COMMAND...
	claim=$1
	shift
	if "$@" >"$work/said" 2>&1; then ok "$claim"; else not_ok "$claim" "$(tail -n 2 "$work/said" | tr '\n' ' ')"; fi
}

if [ "$(id -u)" != 0 ]; then
	echo "skipped - the Debian packages (needs root)"
	exit 0
fi
work=$(mktemp -d) || exit 1
root=${DEB_ROOT:-$work/root}
daemon_pid=
clean_up() {
	[ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null
	umount "$root/proc" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

version=$(cat VERSION)
new=${DEB_DIR:-$work/new}
old=${DEB_OLD:-$work/old}
[ -n "${DEB_DIR:-}" ] || that "the packages are built" debian/make-deb.sh "$new"
# The project has no public mail address yet: that is the one thing left.
that "lintian finds no other error and no warning" lintian --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog --fail-on error,warning "$new/postrider_${version}_"*.changes
[ -n "${DEB_OLD:-}" ] || that "an older version is built" debian/make-deb.sh "$old" 0.0.1

[ -e "$root/bin/sh" ] || that "a clean root" debootstrap --variant=minbase bookworm "$root" "$mirror"
mount -t proc proc "$root/proc" 2>/dev/null
cp /etc/resolv.conf "$root/etc/" 2>/dev/null
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod +x "$root/usr/sbin/policy-rc.d"
in_root() { chroot "$root" /usr/bin/env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
mkdir -p "$root/packages"
cp "$old"/postrider_*.deb "$old"/python3-postrider_*.deb "$root/packages/"

that "the older one is installed, with what it needs" in_root sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends /packages/*.deb'
that "it has a user and a group" in_root sh -c 'getent passwd postrider && getent group postrider'
that "the daemon does nothing without a configuration" in_root sh -c 'test ! -e /etc/postrider/config.json && grep -q ConditionPathExists=/etc/postrider/config.json /lib/systemd/system/postrider.service'
that "the service is enabled" in_root sh -c 'test -L /etc/systemd/system/multi-user.target.wants/postrider.service || ! command -v systemctl'
that "there is an example, and what it means" in_root test -s /etc/postrider/config.json.example -a -s /etc/postrider/README
that "man pages and completions are there" in_root sh -c 'ls /usr/share/bash-completion/completions/postrider /usr/share/zsh/site-functions/_postrider'
in_root sh -c 'cat >/etc/postrider/config.json' <<'END'
{"policy": "fixed:64", "types": {"nap": {"argv": ["/bin/sh", "-c", "echo done; sleep 0.1", "sh", "{batch}"], "batches": [64]}}}
END
that "a configuration is good" in_root postrider check-config /etc/postrider/config.json

start() {
	chroot "$root" /usr/bin/postriderd >>"$work/log" 2>&1 &
	daemon_pid=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		in_root postrider stats -q >/dev/null 2>&1 && return 0
		sleep 0.5
	done
	cat "$work/log"
	return 1
}
stop() {
	kill "$daemon_pid" && wait "$daemon_pid"
	daemon_pid=
}
mkdir -p "$root/run/postrider"
start || not_ok "the daemon starts" "$(tail -n 1 "$work/log")"
that "a job is submitted and runs" in_root postrider submit nap --wait
that "the Python package talks to it" in_root python3 -c 'import postrider; c = postrider.Client(); assert c.wait(c.submit("nap").job.job, 30).ok'
stop
rm "$root/packages/"*
cp "$new"/postrider_*.deb "$new"/python3-postrider_*.deb "$root/packages/"
that "it is upgraded to the present version" in_root sh -c "dpkg -i /packages/*.deb && postrider version | grep -q '$version'"
start || not_ok "the new daemon starts" "$(tail -n 1 "$work/log")"
that "the database is kept: jobs of before are there" in_root sh -c 'test "$(postrider status -q 1)" = done && test "$(postrider status -q 2)" = done'
that "so is the configuration" in_root grep -q nap /etc/postrider/config.json
stop
that "removing keeps configuration and database" in_root sh -c 'dpkg -r postrider python3-postrider && test -e /etc/postrider/config.json && test -e /var/lib/postrider/postrider.db'
that "purging takes both" in_root sh -c 'dpkg -P postrider && test ! -e /var/lib/postrider && test ! -e /etc/postrider'
[ "$failures" -eq 0 ]
