#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the last commit, and makes its packages, in a bare Debian 12: Tests/bare.sh [PROGRAMS]
#
# Nothing of this machine can help there: neither a package that no script asks for, nor a file that is not in git. Only
# Swift is this machine's, read only, because Debian has none; and what it has fetched is copied. PROGRAMS is a directory
# with built programs; without it they are compiled, which takes minutes. The packages are put in .build/bare. Needs root
# and a mirror of Debian.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
((EUID == 0)) || { printf 'Only root can install packages in a root of Debian.\n' >&2; exit 1; }

if [[ ${1-} == --inside ]]; then # called below, with the path of the root
  git clone --quiet . "$2/restorationd"
  mkdir -p "$2/programs" "$2/output" "$2$toolchain" "$2/restorationd/.build/installed"
  if [[ -e .build/installed/workspace-state.json ]]; then
    cp -a .build/installed/{checkouts,repositories,workspace-state.json} "$2/restorationd/.build/installed/"
  fi
  [[ -z $programs ]] || cp -- "$programs"/restoration{d,ctl,-gateway} "$2/programs/"
  mount --bind "$toolchain" "$2$toolchain"
  mount -o remount,bind,ro "$2$toolchain"
  chroot "$2" env -i HOME=/root LANG=C.UTF-8 PATH="/usr/sbin:/usr/bin:/sbin:/bin:$toolchain/usr/bin" \
    /restorationd/systemd/package.sh --output /output ${programs:+--from /programs}
  cp -- "$2"/output/*.deb .build/bare/
  exit
fi

Tests/packages.sh swift mmdebstrap
toolchain="$(swiftc -print-target-info | sed -n 's|.*"runtimeResourcePath": "\(.*\)/usr/lib/swift".*|\1|p')"
if [[ -z $toolchain ]]; then # its directory is the system's own, of which a bare Debian must have nothing
  printf '%s belongs to no directory of a toolchain. Install Swift in one of its own, such as /opt/swift.\n' \
    "$(command -v swiftc)" >&2
  exit 1
fi
export toolchain programs="${1:+$(realpath "$1")}"
rm -rf .build/bare
mkdir -p .build/bare
# In a namespace of its own: the root is removed afterwards, and the toolchain must not be mounted in it then.
mmdebstrap --variant=apt --customize-hook="unshare --mount '$PWD/Tests/bare.sh' --inside \"\$1\"" bookworm /dev/null
