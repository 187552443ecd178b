#!/bin/sh
# Builds oracle into the user's cache and prints only its path on stdout.
# A build from nothing takes about a minute on 2 cores; a cached one costs milliseconds.
set -eu

cd "$(dirname "$0")"

fail() {
    echo "oracle/build.sh: $1" >&2
    exit 1
}

need=$(sed -n 's/^go //p' go.mod)
install="tar -C /usr/local -xzf go$need.linux-amd64.tar.gz (the official archive, this or a newer Go) and put /usr/local/go/bin first in PATH"
command -v go >/dev/null 2>&1 || fail "Go is missing: $install"
# The cheap question: `go env` starts in a few milliseconds and knows its version.
have=$(GOTOOLCHAIN=local GOWORK=off go env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//')
oldest=$(printf '%s\n%s\n' "$need" "$have" | sort -V | head -n 1)
[ "$oldest" = "$need" ] || fail "Go $have is too old: $install"

sources=$(printf '%s\n' *.go | grep -v '_test\.go$')
# shellcheck disable=SC2086 # file names without spaces, one word each
hash=$({ cat $sources go.mod go.sum build.sh; echo "$have"; } | sha256sum | cut -d ' ' -f 1)
root=${PINTLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pintle}/oracle
binary=$root/$hash/oracle
if [ -x "$binary" ]; then
    # The date of use keeps it from being deleted below.
    touch -c "$root/$hash" 2>/dev/null || true
    echo "$binary"
    exit 0
fi

mkdir -p "$root"
exec 9>"$root/lock"
flock 9
# Another caller may have built it while this one waited.
if [ -x "$binary" ]; then
    echo "$binary"
    exit 0
fi

echo "oracle: building (about a minute from nothing)" >&2
mkdir -p "$root/$hash"
trap 'rm -f "$root/$hash/oracle.new"' EXIT
GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w" \
    -o "$root/$hash/oracle.new" . >&2 || fail "the build failed"
mv "$root/$hash/oracle.new" "$binary"

# Builds of other inputs that nobody used for a week.
find "$root" -mindepth 1 -maxdepth 1 -type d -mtime +6 ! -name "$hash" -exec rm -rf {} + 2>/dev/null || true
echo "$binary"
