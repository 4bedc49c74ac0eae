#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Flatpak of the mail reader offline, starts it, and prints what it has saved: build.sh DIRECTORY BIN
#
# BIN has restorationd and restorationctl. Run by root on a screen, in a mount namespace of its own. This machine's /usr
# stands in the places of the runtime and the SDK, which only a network has. It also has what the manifest downloads:
# those modules are left out.
set -eu
sample=$(cd "$(dirname "$0")/../../../Protocol/examples/gtk" && pwd)
cd "$1"
bin=$2
mount -t tmpfs run /run
export HOME="$PWD" XDG_CACHE_HOME="$PWD/cache" XDG_RUNTIME_DIR=/run/user/0 FLATPAK_USER_DIR="$PWD/user"
export GDK_BACKEND=x11 GSK_RENDERER=cairo
mkdir -p "$XDG_RUNTIME_DIR/restorationd"
chmod 700 "$XDG_RUNTIME_DIR" "$XDG_RUNTIME_DIR/restorationd"
flatpak-builder --show-manifest "$sample/org.example.Mail.yaml" >whole.json
python3 - "$sample" >offline.json <<'PROGRAM'
import json
import os
import sys

with open("whole.json") as file:
    manifest = json.load(file)
modules = manifest["modules"]
manifest["modules"] = [module for module in modules if not any("url" in source for source in module["sources"])]
for module in manifest["modules"]:
    for source in module["sources"]:
        source["path"] = os.path.join(sys.argv[1], source["path"])
json.dump(manifest, sys.stdout)
PROGRAM
member() { sed -n "s/^  \"$1\" : \"\(.*\)\",\{0,1\}\$/\1/p" whole.json; }
runtime=$(member runtime) sdk=$(member sdk) branch=$(uname -m)/$(member runtime-version)

for name in "$runtime" "$sdk"; do
  mkdir -p "$name/files" "$name/usr/etc"
  # GNOME's has this variable, too.
  printf '%s\n' '[Runtime]' "name=$name" "runtime=$runtime/$branch" "sdk=$sdk/$branch" \
    '[Environment]' 'GI_TYPELIB_PATH=/app/lib/girepository-1.0' >"$name/metadata"
  # Some links in /usr lead there.
  cp -a /etc/alternatives "$name/usr/etc/"
  flatpak build-export --runtime --disable-sandbox repository "$name" "${branch#*/}"
done
flatpak --user remote-add --no-gpg-verify local repository
flatpak --user install -y --noninteractive local "$runtime/$branch" "$sdk/$branch"
for name in "$runtime" "$sdk"; do
  files=$(readlink -f "user/runtime/$name/$branch/active")/files
  mount -t overlay overlay -o "lowerdir=$files:/usr" "$files"
done

flatpak-builder --user --disable-rofiles-fuse --disable-download --state-dir=state --repo=repository \
  application offline.json
flatpak --user install -y --noninteractive local org.example.Mail

"$bin/restorationd" --archives "$PWD/archives" &
broker=$!
until [ -S "$XDG_RUNTIME_DIR/restorationd/broker.sock" ]; do :; done
flatpak run --user org.example.Mail list &
mail=$!
trap 'kill $mail $broker' EXIT
until "$bin/restorationctl" get org.example.Mail list/Window-1 2>/dev/null; do kill -0 $mail; done
