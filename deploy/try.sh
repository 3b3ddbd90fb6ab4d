#!/bin/sh
# What an operator does with the package, on a clean Debian under systemd and without internet: install, setup, models from a
# bundle, glasses on another machine that find the box and are paired by the text of its picture, a turn, an upgrade while
# they talk, a backup and its restore, the sockets in systemd's hands, removal, purge. `cargo xtask dist --try` runs it in a container of its own.
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

# The glasses have a machine of their own, with a cable to this one. They speak with the gateway's voice.
export LORGNETTE_MODELS=/var/lib/lorgnette-models
BOX=192.0.2.1
sim() { ip netns exec glasses lorgnette-sim --state "$HOME/glasses" "$@"; }
turn() {
    run sim say --discover --expect-answer --wait-s 60 --text "Hey Mentra, what is fifteen percent of eighty?"
    expect '\b\(12\|twelve\)[.]'
}
# One line for each note of theirs. (The answer has them as one text, too.)
notes() { lorgnette tools call --user ann --json note.list | grep -o '{[^{}]*"taken"[^{}]*}' | grep -o '"text": *"[^"]*"' | sort; }

say 'a network with two machines'
run ip netns add glasses
run ip link add box type veth peer name glasses netns glasses
run ip address add "$BOX/24" dev box
run ip link set box up
run ip netns exec glasses ip address add 192.0.2.2/24 dev glasses
run ip netns exec glasses ip link set glasses up
run ip netns exec glasses ip link set lo up

say install
packages install --no-install-recommends ./first.deb
expect 'lorgnette models import FILE'
run lorgnette --version
run systemd-analyze verify --man=no lorgnette.service lorgnette.socket

say 'five answers, models from the bundle, and a start'
run lorgnette setup --yes --user ann --autostart yes
expect 'lorgnette.service, as it is'
run lorgnette models import lorgnette-models.zip
run lorgnette models verify
# Programs, for the sandbox below.
sed -i '/^\[code\]/,/^\[/s/^enabled = false$/enabled = true/' /etc/lorgnette/config.toml
run lorgnette check
expect '/etc/lorgnette/config.toml is valid'
run systemctl restart lorgnette
run lorgnette status
expect 'memory .* available'
run lorgnette doctor --fast

say 'glasses find the box, are invited by the text of its picture, and speak'
sim pair --discover >seen 2>&1 && { cat seen; echo 'FAILED: they took a gateway that nobody has named'; exit 1; }
cat seen
expect "wss://$BOX:8460/glasses"
: >invitation
lorgnette devices invite --user ann --name Glasses --text >>invitation 2>&1 &
inviting=$!
text=
while [ -z "$text" ]; do
    kill -0 $inviting || { cat invitation; exit 1; }
    text=$(grep '^lorgnette:pair' invitation || true)
    sleep 0.1
done
run sim pair --invite "$text"
wait $inviting
turn

say 'a program in its sandbox, within the limits of the unit'
run lorgnette tools call code.run '{"code": "console.log(6 * 7)"}'
expect '^42$'
run systemctl show lorgnette --property=MainPID,StatusText,MemoryCurrent,User,NRestarts
uid=$(stat -c %u "/proc/$(systemctl show lorgnette --property=MainPID --value)")
[ "$uid" -ge 61184 ] || { echo "FAILED: it runs as user $uid, which is not a dynamic one"; exit 1; }

say 'upgrade while they talk'
run lorgnette tools call note.add '{"text": "kept over the upgrade"}'
cat >talk <<'END'
say "Hey Mentra, take a note that the key is under the mat."
expect heard "Noted" within 60s
say "Hey Mentra, take a note that the garden needs water in the evening."
expect heard "garden" within 60s
say "Hey Mentra, take a note that the meeting was moved to Thursday."
expect heard "Thursday" within 60s
END
run sim script --discover talk
notes >once
before=$(systemctl show lorgnette --property=MainPID --value)
(while [ ! -e enough ]; do sim script --discover talk || exit 1; echo round; done) >talked 2>&1 &
talking=$!
packages install ./second.deb
: >enough
journalctl --no-pager --lines=500 --unit=lorgnette >seen
expect 'another process takes over'
[ "$(systemctl show lorgnette --property=MainPID --value)" != "$before" ] || { echo 'FAILED: not replaced'; exit 1; }
run systemctl is-active lorgnette
wait $talking || { cat talked; echo 'FAILED: they did not talk to the end'; exit 1; }
rounds=$(grep -c '^round$' talked || true)
[ "$rounds" -gt 0 ] || { echo 'FAILED: they did not talk'; exit 1; }
notes >often
# Every sentence of every round is there once, in the words of the first one.
for round in $(seq 0 "$rounds"); do cat once; done | sort >expected
diff expected often || { cat talked; echo 'FAILED: these sentences were lost, misheard or noted twice'; exit 1; }
run lorgnette tools call note.list '{}'
expect 'kept over the upgrade'
run grep -c '^enabled = true' /etc/lorgnette/config.toml
turn

say 'a backup, and a restore into an empty folder'
echo 'correct horse battery staple' >passphrase
chmod 600 passphrase
run lorgnette backup "$PWD/monday.backup" --passphrase-file passphrase
run systemctl stop lorgnette
find /var/lib/lorgnette/ -mindepth 1 -delete
run lorgnette restore "$PWD/monday.backup" --passphrase-file passphrase
run systemctl start lorgnette
run lorgnette tools call note.list '{}'
expect 'kept over the upgrade'
run lorgnette doctor --fast
turn

say "the sockets in systemd's hands"
run systemctl stop lorgnette
run systemctl enable --now lorgnette.socket
run systemctl start lorgnette
run lorgnette doctor --fast
run lorgnette tools call note.list '{}'
run systemctl stop lorgnette.socket lorgnette
run systemctl disable lorgnette.socket
run systemctl start lorgnette

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

say 'a program that refuses the configuration does not take over'
before=$(systemctl show lorgnette --property=MainPID --value)
cp /etc/lorgnette/config.toml as_it_was
sed -i '1i of_tomorrow = true' /etc/lorgnette/config.toml
run dpkg --install ./second.deb
expect 'the old one goes on'
[ "$(systemctl show lorgnette --property=MainPID --value)" = "$before" ] || { echo 'FAILED: it was replaced'; exit 1; }
cp as_it_was /etc/lorgnette/config.toml
run lorgnette tools call note.list '{}'
expect 'kept over the upgrade'
run systemctl reload lorgnette
[ "$(systemctl show lorgnette --property=MainPID --value)" != "$before" ] || { echo 'FAILED: not replaced'; exit 1; }

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
