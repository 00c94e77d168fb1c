#!/bin/sh
# deb.sh: the Debian packages, for real. Builds them twice (an older and the present version), installs the older one into a clean root,
# submits a job to its daemon, upgrades, finds the job again, and purges. Needs root, debootstrap and a mirror ($DEB_MIRROR). One line a
# claim, as the scripts of tests/cli/ print them. From the environment: DEB_DIR and DEB_OLD, folders with packages of
# the present and of an older version that were built already; DEB_ROOT, a root that was made already.
#
#   tests/deb.sh --short     builds once, and runs a job with what is in the package, unpacked: no root, no mirror, no upgrade
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

short=
[ "${1:-}" = --short ] && short=1
if [ -n "$short" ] && ! command -v dh lintian dpkg-buildpackage >/dev/null; then
	echo "skipped - the Debian packages (debhelper or lintian is not installed)"
	exit 0
fi
if [ -z "$short" ] && [ "$(id -u)" != 0 ]; then
	echo "skipped - the Debian packages (needs root)"
	exit 0
fi
work=$(mktemp -d) || exit 1
root=${DEB_ROOT:-$work/root}
daemon_pid=
clean_up() {
	[ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null
	[ -n "$short" ] || umount "$root/proc" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

version=$(cat VERSION)
new=${DEB_DIR:-$work/new}
if [ -n "$short" ]; then
	new=${DEB_DIR:-$PWD/build/deb-short}
	# Our own flags instead of Debian's: a compiler cache then has every object, from the build of the tests.
	export DEB_CFLAGS_SET="-O2 -g" DEB_CPPFLAGS_SET=
fi
old=${DEB_OLD:-$work/old}
[ -n "${DEB_DIR:-}" ] || that "the packages are built" debian/make-deb.sh "$new"
# The project has no public mail address yet: that is the one thing left.
that "lintian finds no other error and no warning" lintian --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog --fail-on error,warning "$new/postrider_${version}_"*.changes
if [ -n "$short" ]; then
	that "they can be unpacked" sh -c "for p in '$new'/postrider_*.deb '$new'/python3-postrider_*.deb; do dpkg-deb -x \"\$p\" '$root'; done"
	that "the program has the version of the package" sh -c "'$root/usr/bin/postrider' version | grep -qF '$version'"
	for f in etc/postrider/README lib/systemd/system/postrider.service usr/share/man/man1/postrider.1.gz \
		usr/share/bash-completion/completions/postrider usr/share/zsh/site-functions/_postrider; do
		that "it has $f" test -s "$root/$f"
	done
	# The example, but for what a machine must have: a group, a model, and programs in /usr/bin.
	sed -e '/"socket_group"/d; /"model":/d' -e 's|"policy": "postrider"|"policy": "fixed:128"|' -e "s|\"/usr/bin|\"$root/usr/bin|; s|/run/postrider|$work|" \
		-e "s|/var/lib/postrider\"|$work/state\"|; s|/var/lib/postrider/digits\"|$work/digits\"|" "$root/etc/postrider/config.json.example" >"$work/config.json"
	that "the example, with its comments, is a good configuration" "$root/usr/bin/postrider" check-config "$work/config.json"
	that "the training job makes its data" "$root/usr/bin/postrider-train" --make-digits "$work/digits" --samples 600 --test 200 -q
	POSTRIDER_SOCKET=$work/postrider.sock
	POSTRIDER_SUPERVISOR=$root/usr/libexec/postrider/postrider-supervisor
	export POSTRIDER_SOCKET POSTRIDER_SUPERVISOR
	"$root/usr/bin/postriderd" --config "$work/config.json" >"$work/log" 2>&1 &
	daemon_pid=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		"$root/usr/bin/postrider" stats -q >/dev/null 2>&1 && break
		sleep 0.5
	done
	that "its daemon runs the job of the example" "$root/usr/bin/postrider" submit digits --set network=simplenet,epochs=1,samples=500 --wait
	that "the Python package talks to it" env PYTHONPATH="$root/usr/lib/python3/dist-packages" /usr/bin/python3 -c \
		'import postrider; assert postrider.Client().status(1).ok'
	[ "$failures" -eq 0 ]
	exit
fi
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
