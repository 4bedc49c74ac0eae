#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes Debian packages of the broker, the clients, the plugins and the documents: systemd/package.sh [OPTION]…
#
#   --from DIR     take the programs from DIR instead of building them
#   --output DIR   where to put the packages (default: here)
#
# Needs no privileges. DEBFULLNAME and DEBEMAIL, else git's user, are the maintainer. The packages are the same, byte for
# byte, where programs and sources are.
set -euo pipefail
export LC_ALL=C.UTF-8
top="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
die() { printf 'package.sh: %s\n' "$*" >&2; exit 1; }

from='' output="$PWD"
while (($#)); do
  case "$1" in
    --from) (($# > 1)) || die "$1 needs a directory"; from="$2"; shift 2 ;;
    --output) (($# > 1)) || die "$1 needs a directory"; output="$2"; shift 2 ;;
    --from=* | --output=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    -h | --help) sed -n '4,/^[^#]/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "there is no option $1; see --help" ;;
  esac
done
[[ -d $output ]] || die "--output: $output is not a directory"
[[ -w $output ]] || die "--output: $output is not writable for $(id -un)"
output="$(cd "$output" && pwd)"
# The programs run here, and dpkg-shlibdeps looks for their libraries in the packages that are installed.
"$top/Tests/packages.sh" binutils debhelper dh-python dpkg-dev gcc git gobject-introspection libgirepository1.0-dev \
  libgtk-4-dev libjansson-dev libpq5 libsqlite3-0 make pkg-config python3

# ---- The directory that debian/rules works in

work="$(mktemp -d)"
trap 'rm -rf -- "$work"' EXIT
source="$work/source"
umask 022
mkdir "$source"

if [[ -z $from ]]; then
  "$top/Tests/packages.sh" swift libjansson-dev libpq-dev libsqlite3-dev libsystemd-dev pkg-config
  from="$("$top/systemd/build.sh" restorationd restorationctl restoration-gateway)"
fi
[[ -f $from/restoration-gateway ]] || die "$from has no program restoration-gateway"
"$top/systemd/install.sh" --prefix /usr --destdir "$source/installed" --from "$from" >"$work/log" ||
  die "nothing was installed"
for program in restorationd restorationctl restoration-gateway; do
  if [[ $(ldd "$from/$program") == *libswift* ]]; then
    die "$program needs Swift's libraries, which Debian does not have; build it with systemd/build.sh"
  fi
done
mkdir "$source/gateway"
cp -L -- "$from/restoration-gateway" "$source/gateway/"
strip --strip-unneeded --remove-section=.comment "$source/gateway/restoration-gateway"
chmod 755 "$source/gateway/restoration-gateway"
# What git has: nothing that Python, editors or make have left there.
(cd "$top" && { git ls-files -z README.md Protocol 2>/dev/null || find README.md Protocol -type f -print0; }) |
  tar -C "$top" --null --files-from=- -c | tar -C "$source" -x
tar -C "$top/systemd" -c debian man | tar -C "$source" -x
cp -- "$top"/systemd/system/restoration-gateway.* "$source/debian/"

maintainer="${DEBFULLNAME:-$(git -C "$top" config user.name 2>/dev/null || echo restorationd)}"
host="$(hostname -f 2>/dev/null || hostname)"
maintainer+=" <${DEBEMAIL:-$(git -C "$top" config user.email 2>/dev/null || echo "restorationd@$host")}>"
address="$(sed -n 's/^Repository = "\(.*\)"$/\1/p' "$top/Protocol/clients/python/pyproject.toml")"
control="$(<"$source/debian/control")"
control="${control//@MAINTAINER@/"$maintainer"}"
printf '%s\n' "${control//@ADDRESS@/"$address"}" >"$source/debian/control"

# All times are that of the last commit. dpkg-deb would take 0 for the present.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || echo 1)}"
export SOURCE_DATE_EPOCH
{
  printf 'restorationd (%s) unstable; urgency=medium\n\n' "$("$source/installed/usr/bin/restorationd" --version)"
  printf '  * Built from the sources; their history is in git.\n\n'
  printf ' -- %s  %s\n' "$maintainer" "$(date -uRd "@$SOURCE_DATE_EPOCH")"
} >"$source/debian/changelog"

# ---- The packages

# What is needed was installed above, whether by dpkg or not.
(cd "$source" && DEB_RULES_REQUIRES_ROOT=no debian/rules binary) >"$work/log" 2>&1 ||
  die "$(tail -n 30 "$work/log")"
for package in "$work"/*.deb; do
  mv -- "$package" "$output/"
  printf '%s\n' "$output/${package##*/}"
done
