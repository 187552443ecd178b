#!/usr/bin/env bash
# The installation files of systemd: the unit is well-formed and hardened (an exposure of at most 1.2), its users and
# folders can be made, and every key of pintle.yaml is one that the binary takes.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "units: $*" >&2; exit 1; }

# The binary is not installed here; everything else of the unit is checked as it stands.
sed -e 's#^ExecStart=[^ ]*#ExecStart=/bin/true#' -e 's#^ExecStartPre=[^ ]*#ExecStartPre=/bin/true#' \
    systemd/pintle.service > "$folder/pintle.service"
systemd-analyze verify --man=no "$folder/pintle.service"
systemd-analyze security --offline=true --threshold=12 --no-pager "$folder/pintle.service" | tail -n 1

# Users, groups and folders, in a root of their own. What the unit and the folders name must have been made.
mkdir -p "$folder/root/etc"
systemd-sysusers --root="$folder/root" "$PWD/systemd/sysusers.d/pintle.conf"
user=$(sed -n 's/^User=//p' systemd/pintle.service)
group=$(sed -n 's/^Group=//p' systemd/pintle.service)
grep -q "^$user:" "$folder/root/etc/passwd" || fail "sysusers.d does not make the user $user of the unit"
grep -q "^$group:" "$folder/root/etc/group" || fail "sysusers.d does not make the group $group of the unit"
if [ "$(id -u)" = 0 ]; then
    systemd-tmpfiles --root="$folder/root" --create "$PWD/systemd/tmpfiles.d/pintle.conf"
    [ "$(stat -c %a "$folder/root/var/lib/pintle")" = 2770 ] || fail "the state directory has another mode"
fi

# The credentials of the unit are those that the binary and pintle.yaml look for.
for name in kubeconfig pintle-key $(grep -oE 'credentials/pintle.service/[a-z-]+' systemd/pintle.yaml | sed 's#.*/##'); do
    grep -q "^LoadCredential=$name:" systemd/pintle.service || fail "the unit has no LoadCredential=$name"
done

# pintle.yaml as it is installed, and with every line that is commented out put in force.
cargo build --quiet --package pintle --bin pintle
pintle=${CARGO_TARGET_DIR:-target}/debug/pintle
sed -E 's/^#(  |- |[a-z])/\1/' systemd/pintle.yaml > "$folder/all.yaml"
# A build machine may have no machine id to make the agent's id from.
{ cat systemd/pintle.yaml; echo 'agent: {id: test}'; } > "$folder/installed.yaml"
for file in "$folder/installed.yaml" "$folder/all.yaml"; do
    "$pintle" --config "$file" config check > /dev/null
done
# And the other way round: every key that the binary has stands in the file, but cluster.labels, which nothing reads.
"$pintle" --config "$folder/all.yaml" config show | sed -nE 's/^( *)(- )?([a-zA-Z]+):.*/\3/p' | sort -u |
    while read -r key; do
        [ "$key" = labels ] || grep -qE "(^#? *(- )?|\{|, )$key:" systemd/pintle.yaml ||
            fail "systemd/pintle.yaml does not show the key $key"
    done
