#!/usr/bin/env bash
# A fully static, stripped binary for x86_64, in dist/pintle-x86_64-linux, tried out in an empty root.
#
# There are several ways to one; the first that this machine has is taken, and named. RELEASE_WAY=NAME takes another:
#   rustup   the musl target of rustup, linked by musl-gcc          rustup target add x86_64-unknown-linux-musl
#   zig      the musl target of rustup, linked by cargo-zigbuild    pip install ziglang cargo-zigbuild
#   cross    cross in a container (cross.toml)                      cargo install cross
#   debian   Debian's rustc-web with its own std built for musl, linked by zig; fetched into the cache, no root needed
#   glibc    glibc linked statically: needs nothing, but names are resolved only where the same glibc is installed
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-unknown-linux-musl
folder=${CARGO_TARGET_DIR:-$PWD/target}
cache=${PINTLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pintle}/musl
say() { echo "release: $*" >&2; }
has() { command -v "$1" > /dev/null 2>&1; }

has_target() { [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; }
has_container() { { has docker && docker info > /dev/null 2>&1; } || { has podman && podman info > /dev/null 2>&1; }; }
has_rustc_web() { has apt-get && apt-cache show rustc-web cargo-web rust-web-src > /dev/null 2>&1 && has python3; }

pick() {
    if has_target && has musl-gcc; then echo rustup
    elif has_target && has cargo-zigbuild; then echo zig
    elif has cross && has_container; then echo cross
    elif [ -x "$cache/root/usr/bin/rustc" ] || has_rustc_web; then echo debian
    else echo glibc; fi
}

# Unpacks the compiler, the sources of std and zig below the cache: nothing is installed.
fetch_debian() {
    [ -e "$cache/ready" ] && return
    say "fetching rustc-web and zig into $cache (about 350 MB, once)"
    rm -rf "$cache"
    mkdir -p "$cache/debs" "$cache/root"
    local packages
    packages=$(apt-get install --simulate --no-install-recommends rustc-web cargo-web rust-web-src | awk '/^Inst/ {print $2}')
    # What is installed already is not named there, and need not be fetched: it is found where it is.
    # shellcheck disable=SC2086
    (cd "$cache/debs" && apt-get download -qq $packages 2> /dev/null)
    for package in "$cache"/debs/*.deb; do dpkg-deb --extract "$package" "$cache/root"; done
    rm -rf "$cache/debs"
    python3 -m venv "$cache/zig"
    "$cache/zig/bin/pip" install --quiet --disable-pip-version-check ziglang==0.17.1 cargo-zigbuild==0.24.1
    touch "$cache/ready"
}

build() {
    local arguments=(--release --package pintle --bin pintle --target "$target")
    case $1 in
    rustup) cargo build "${arguments[@]}" ;;
    zig) cargo zigbuild "${arguments[@]}" ;;
    cross) CROSS_CONFIG=cross.toml cross build "${arguments[@]}" ;;
    debian)
        fetch_debian
        # std is built too: Debian has it for glibc only. zig brings musl and the unwinder, so rustc must not.
        local tools=$cache/root/usr
        folder=$folder/musl
        env -u RUSTUP_TOOLCHAIN PATH="$cache/zig/bin:$PATH" LD_LIBRARY_PATH="$tools/lib/x86_64-linux-gnu" \
            RUSTC="$tools/bin/rustc" CARGO="$tools/bin/cargo" RUSTC_BOOTSTRAP=1 \
            RUSTFLAGS="-C link-self-contained=no" CARGO_TARGET_DIR="$folder" \
            cargo-zigbuild zigbuild -Z build-std=std,panic_unwind "${arguments[@]}"
        ;;
    glibc)
        say "no way to musl here; glibc's resolver loads libraries of the same version when it runs:"
        say "where they are missing only /etc/hosts and plain DNS work, and a warning is printed when linking"
        target=x86_64-unknown-linux-gnu
        RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" \
            cargo build --release --package pintle --bin pintle --target "$target"
        ;;
    *) say "RELEASE_WAY=$1 is unknown"; exit 2 ;;
    esac
}

check() {
    local binary=$1 root
    # ldd ends with 1 for what is not dynamic.
    { ldd "$binary" 2>&1 || true; } | grep -qE "not a dynamic executable|statically linked" ||
        { say "it is not static"; exit 1; }
    if has file; then file "$binary" | grep -q ", stripped" || { say "it is not stripped"; exit 1; }; fi
    # An empty root: no libraries, no /etc, no /proc, no /dev.
    root=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$root'" EXIT
    mkdir -p "$root/m"
    cp "$binary" "$root/pintle"
    printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n' > "$root/m/settings.yaml"
    printf 'agent: {id: test}\nstore: {path: /state}\n' > "$root/pintle.yaml"
    local chroot unshare
    chroot=$(PATH=$PATH:/usr/sbin command -v chroot)
    unshare=$(command -v unshare)
    enter() {
        if [ "$(id -u)" = 0 ]; then env -i "$chroot" "$root" "$@"; else env -i "$unshare" --map-root-user --root "$root" "$@"; fi
    }
    enter /pintle version --client | grep -q "^pintle " || { say "version does not run in an empty root"; exit 1; }
    enter /pintle render /m | grep -q "name: settings" || { say "render does not run in an empty root"; exit 1; }
    # No cluster there: that is found and said, with the store open.
    local told
    told=$(enter /pintle --config /pintle.yaml doctor 2>&1 || true)
    grep -q "no kubeconfig is there" <<< "$told" && grep -q "store .*free on its disk" <<< "$told" ||
        { say "doctor says something else in an empty root: $told"; exit 1; }
}

way=${RELEASE_WAY:-$(pick)}
say "by way of: $way"
build "$way"
mkdir -p dist
binary=dist/pintle-x86_64-linux
cp "$folder/$target/release/pintle" "$binary"
check "$binary"
echo "$binary: $way, static, stripped, $(stat -c %s "$binary") bytes ($(($(stat -c %s "$binary") / 1024)) KiB)"
