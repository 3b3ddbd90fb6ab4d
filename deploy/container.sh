#!/bin/sh
# Builds a container image from a Debian package: deploy/container.sh lorgnette_0.1.0_amd64.deb [SUITE]
# Needs mmdebstrap and buildah (or podman).
set -eu

deb=$(realpath "$1")
suite=${2:-bookworm}
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The user of the Containerfile. In a container, the network in front of it decides who reaches it.
mmdebstrap --quiet --variant=minbase --include="$deb" \
    --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount \
    --customize-hook='install -d -o 65532 -g 65532 -m 0700 "$1/var/lib/lorgnette"' \
    --customize-hook='chown 65532:65532 "$1/var/lib/lorgnette-models"' \
    --customize-hook='sed -i "s/^\(web\|quic\) = \"127.0.0.1:8460\"/\1 = \"[::]:8460\"/" "$1/etc/lorgnette/config.toml"' \
    "$suite" "$work/root.tar"
cp "$here/Containerfile" "$work/"
cd "$work"
if command -v buildah >/dev/null; then
    buildah build --isolation=chroot --tag=lorgnette .
else
    podman build --tag=lorgnette .
fi
