#!/bin/sh
# Builds a container image from a Debian package:
#
#   deploy/container.sh lorgnette_0.1.0_amd64.deb [SUITE]                    the image `lorgnette`
#   deploy/container.sh --root root.tar lorgnette_0.1.0_amd64.deb [SUITE]    only its root
#   deploy/container.sh --image root.tar NAME                                the image of such a root
#
# A root needs mmdebstrap, an image buildah (or podman).
set -eu

here=$(realpath "$(dirname "$0")")

# The user of the Containerfile has its volumes. In a container, the network in front of it decides who reaches it.
make_root() {
    deb=$(realpath "$2")
    user=$(sed -n 's/^USER //p' "$here/Containerfile")
    mmdebstrap --quiet --variant=minbase --include="$deb" \
        --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount \
        --customize-hook="install -d -o ${user%:*} -g ${user#*:} -m 0700 \"\$1/var/lib/lorgnette\"" \
        --customize-hook="chown $user \"\$1/var/lib/lorgnette-models\"" \
        --customize-hook='sed -i "s/^\(web\|quic\) = \"127.0.0.1:8460\"/\1 = \"[::]:8460\"/" "$1/etc/lorgnette/config.toml"' \
        "$3" "$1"
}

if [ "$1" = --root ]; then
    make_root "$2" "$3" "${4:-bookworm}"
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=lorgnette
if [ "$1" = --image ]; then
    cp "$2" "$work/root.tar"
    name=$3
else
    make_root "$work/root.tar" "$1" "${2:-bookworm}"
fi
cp "$here/Containerfile" "$work/"
cd "$work"
if command -v buildah >/dev/null; then
    buildah build --isolation=chroot --tag="$name" .
else
    podman build --tag="$name" .
fi
