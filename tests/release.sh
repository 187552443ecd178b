#!/usr/bin/env bash
# A fully static, stripped binary for this architecture. With the musl target of rustup where it is installed, else
# glibc linked statically, which needs nothing that a Rust and C toolchain do not have.
set -euo pipefail
cd "$(dirname "$0")/.."
arch=$(uname -m)
target="$arch-unknown-linux-musl"
if rustc --print sysroot | xargs -I{} test -d "{}/lib/rustlib/$target" && command -v musl-gcc > /dev/null; then
    cargo build --release --target "$target"
    binary="${CARGO_TARGET_DIR:-target}/$target/release/pintle"
else
    target="$arch-unknown-linux-gnu"
    echo "no musl target here: linking glibc statically" >&2
    RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" cargo build --release --target "$target"
    binary="${CARGO_TARGET_DIR:-target}/$target/release/pintle"
fi
file "$binary" 2>/dev/null || true
ldd "$binary" 2>&1 | grep -qE "not a dynamic executable|statically linked"
echo "static: $binary, $(($(stat -c %s "$binary") / 1024)) KiB"
"$binary" version --client
