#!/bin/bash
# package_life.sh SLUICE.deb FOLDER - installs, starts, upgrades, stops, removes and purges the package on an overlay
# (overlayfs) of this machine's file system, with the real dpkg. Prints what it does; the exit status is 0 if everything
# was correct.
#
# Called in separate mount and process namespaces (unshare --mount --pid --fork), so that nothing of it is left. There
# is no systemd in there: what the unit says is done manually.
set -euo pipefail
package=$1 folder=$2
fail() {
    echo "package_life: $*" >&2
    exit 1
}

mount -t tmpfs tmpfs "$folder"
mkdir "$folder"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
root=$folder/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
cp "$package" "$root/tmp/old.deb"

echo "install"
inside dpkg -i /tmp/old.deb
[ "$(stat -c %a "$root/etc/sluice/jwt.secret")" = 600 ] || fail "the secret can be read by others"
[ "$(wc -c <"$root/etc/sluice/jwt.secret")" -ge 64 ] || fail "the secret is short"
inside sluiced --version
inside sluice --version
inside filter-match --help >/dev/null
unit=$root/usr/lib/systemd/system/sluiced.service

# What systemd does for the unit: a user without privileges, its state directory, the credential.
state=/var/lib/sluice
mkdir -p "$root$state" "$root/run/credentials"
cp "$root/etc/sluice/jwt.secret" "$root/run/credentials/jwt.secret"
chown -R 61184:61184 "$root$state" "$root/run/credentials"
as_service() {
    inside setpriv --reuid=61184 --regid=61184 --clear-groups --bounding-set=-all --no-new-privs \
        env SLUICE_DATA_DIR=$state SLUICE_JWT_SECRET_FILE=/run/credentials/jwt.secret \
        SLUICE_LISTEN=127.0.0.1:0 SLUICE_WORKERS=1 "$@"
}
line_of() { sed -n "s/^$1=//p" "$unit"; }

echo "start"
mkfifo "$folder/ready"
exec {ready}<>"$folder/ready"
# shellcheck disable=SC2046 # the unit's line is words
as_service $(line_of ExecStart) --ready-fd "$ready" 2>"$folder/log" &
first=$!
read -r -t 60 -u "$ready" told || fail "it did not start: $(cat "$folder/log")"
port=$(sed -n 's/.*"port": *\([0-9]*\).*/\1/p' <<<"$told")
curl -sf "http://127.0.0.1:$port/readyz" >/dev/null || fail "not ready: $told"
as_service sluice user add ada >/dev/null
post=$(as_service sluice post --user ada 'survives an upgrade')

echo "upgrade"
echo 'log-level = debug' >>"$root/etc/sluice/sluiced.conf" # the administrator's
secret=$(cat "$root/etc/sluice/jwt.secret")
inside dpkg-deb -R /tmp/old.deb /tmp/unpacked
sed -i 's/^Version: .*/&.1/' "$root/tmp/unpacked/DEBIAN/control"
sed -i '$a # a new default' "$root/tmp/unpacked/etc/sluice/sluiced.conf"
inside dpkg-deb -b /tmp/unpacked /tmp/new.deb >/dev/null
inside dpkg --force-confold -i /tmp/new.deb
grep -q '^log-level = debug' "$root/etc/sluice/sluiced.conf" || fail "a changed setting is lost"
[ "$(cat "$root/etc/sluice/jwt.secret")" = "$secret" ] || fail "there is another secret"
# shellcheck disable=SC2046
as_service $(line_of ExecReload) 2>>"$folder/log" || fail "no takeover: $(cat "$folder/log")"
wait $first || fail "the first one ended with $?: $(cat "$folder/log")"
curl -sf "http://127.0.0.1:$port/readyz" >/dev/null || fail "the second one does not serve"
as_service sluice delete --user ada "$post" >/dev/null || fail "the data are gone"

echo "stop"
second=$(chroot "$root" pgrep -o -x sluiced) || fail "nobody serves: $(cat "$folder/log")"
kill -TERM "$second"
timeout 60 tail --pid="$second" -f /dev/null || fail "it did not stop: $(cat "$folder/log")"

echo "remove"
inside dpkg -r sluice
[ ! -e "$root/usr/sbin/sluiced" ] || fail "a program stays"
[ -e "$root/etc/sluice/sluiced.conf" ] && [ -e "$root$state/appendonlydir" ] ||
    fail "settings or data went with the programs"

echo "purge"
inside dpkg --purge sluice
left=$(cd "$folder/upper" && find . -type f -path '*sluice*')
[ -z "$left" ] || fail "left behind: $left"
