#!/usr/bin/env bash
# Looks for what building and testing need. What Debian has is installed when this runs as root on Debian; everything
# else is named with the one line that gets it.
set -euo pipefail

missing=()
need() { command -v "$1" > /dev/null 2>&1 || missing+=("$2"); }

need git git
need cc gcc
need make make
need systemd-analyze systemd
need kubectl kubernetes-client

if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null 2>&1; then
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" > /dev/null
    else
        echo "install first: sudo apt-get install ${missing[*]}" >&2
        exit 1
    fi
fi
command -v cargo > /dev/null 2>&1 || { echo "install Rust first: https://rustup.rs" >&2; exit 1; }
