#!/bin/sh
# What an operator does with the package, on a clean Debian under systemd and without any network: install, models from a
# bundle, a turn, an upgrade, removal, purge. `cargo xtask dist --try` runs it in a container of its own.
set -eu
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }
# Runs a command and shows it; its output is kept in `seen`.
run() {
    printf '$ %s\n' "$*"
    "$@" >seen 2>&1 || { cat seen; journalctl --no-pager --lines=40 --unit=lorgnette; echo "FAILED: $*"; exit 1; }
    cat seen
}
# What was run last must have printed this.
expect() { grep -qi -- "$1" seen || { echo "FAILED: no “$1” in it"; exit 1; }; }
packages() { run apt-get --quiet=2 --yes --option=Dpkg::Use-Pty=0 "$@"; }
absent() { [ ! -e "$1" ] || { echo "FAILED: $1 is there"; exit 1; }; }
there() { [ -e "$1" ] || { echo "FAILED: $1 is not there"; exit 1; }; }

# The simulator speaks with the gateway's voice.
export LORGNETTE_MODELS=/var/lib/lorgnette-models
sim() { lorgnette-sim --state "$HOME/glasses" "$@"; }
turn() {
    run sim say --expect-answer --text "Hey Mentra, what is fifteen percent of eighty?"
    expect 12
}

say install
packages install --no-install-recommends ./first.deb
expect 'lorgnette models import FILE'
run lorgnette --version
run systemd-analyze verify --man=no lorgnette.service lorgnette.socket

say 'models from the bundle, and a start'
run lorgnette models import lorgnette-models.zip
run lorgnette models verify
# Programs, for the sandbox below.
sed -i '/^\[code\]/,/^\[/s/^enabled = false$/enabled = true/' /etc/lorgnette/config.toml
run lorgnette check
expect '/etc/lorgnette/config.toml is valid'
run systemctl enable --now lorgnette
run lorgnette status

say 'glasses are paired and a turn is spoken'
: >pairing
sim pair >>pairing 2>&1 &
code=
while [ -z "$code" ]; do
    kill -0 $! || { cat pairing; exit 1; }
    code=$(sed -n 's/^pairing code //p' pairing)
    sleep 0.1
done
run lorgnette devices pair "$code" --name Glasses
wait $!
turn

say 'a program in its sandbox, within the limits of the unit'
run lorgnette tools call code.run '{"code": "console.log(6 * 7)"}'
expect 42
run systemctl show lorgnette --property=MainPID,StatusText,MemoryCurrent,User,NRestarts
uid=$(stat -c %u "/proc/$(systemctl show lorgnette --property=MainPID --value)")
[ "$uid" -ge 61184 ] || { echo "FAILED: it runs as user $uid, which is not a dynamic one"; exit 1; }

say upgrade
run lorgnette tools call note.add '{"text": "kept over the upgrade"}'
before=$(systemctl show lorgnette --property=MainPID --value)
packages install ./second.deb
run journalctl --no-pager --lines=12 --unit=lorgnette
expect 'another process takes over'
[ "$(systemctl show lorgnette --property=MainPID --value)" != "$before" ] || { echo 'FAILED: not replaced'; exit 1; }
run systemctl is-active lorgnette
run lorgnette tools call note.list '{}'
expect 'kept over the upgrade'
run grep -c '^enabled = true' /etc/lorgnette/config.toml
turn

say 'removal keeps data and configuration'
packages remove lorgnette
absent /usr/bin/lorgnette
there /var/lib/private/lorgnette/store
there /var/lib/lorgnette-models
there /etc/lorgnette/config.toml

say 'installed again, it goes on'
packages install --no-install-recommends ./second.deb
run systemctl start lorgnette
run lorgnette devices list
expect Glasses
run lorgnette tools call note.list '{}'
expect 'kept over the upgrade'

say 'purge leaves nothing'
packages purge lorgnette
for path in /var/lib/lorgnette /var/lib/private/lorgnette /var/lib/lorgnette-models /etc/lorgnette /usr/bin/lorgnette; do
    absent "$path"
done
find / -xdev -iname '*lorgnette*' -not -path "$PWD/*" -not -path '/proc/*' -not -path '/etc/systemd/system/*try*' \
    -not -path '/var/log/*' -not -path "$HOME/*" >seen
cat seen
[ ! -s seen ] || { echo 'FAILED: these files were left behind'; exit 1; }
say 'all of it came through'
