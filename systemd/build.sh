#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds programs as they are installed, and prints the directory they are in: systemd/build.sh PRODUCT…
#
# They are smaller than those of `swift build -c release`, start faster, and take less memory. They are built apart from
# those: what is there already would not be compiled again for other flags.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch="$PWD/.build/installed"
flags=(
  -c release --static-swift-stdlib --scratch-path "$scratch"
  # Functions that nothing calls are left out.
  -Xswiftc -Xfrontend -Xswiftc -function-sections -Xswiftc -use-ld=lld
  # Whether accesses to a variable overlap is not checked at run time: that takes a tenth of a request. Tests within one
  # process check it, because debug builds do.
  -Xswiftc -enforce-exclusivity=unchecked
  # Nobody looks for our symbols.
  -Xlinker --no-export-dynamic
)
# Relocations in a form that takes a hundredth of the room; glibc reads it from 2.36 on.
glibc="$(getconf GNU_LIBC_VERSION)"
if printf '%s\n' 2.36 "${glibc#* }" | sort --check=quiet --version-sort; then
  flags+=(-Xlinker -z -Xlinker pack-relative-relocs)
fi
# Of libstdc++ the runtime of Swift uses little: if the archive is found first, the library is neither loaded nor
# relocated.
archive="$(cc -print-file-name=libstdc++.a 2>/dev/null || true)"
if [[ $archive == /* ]]; then
  mkdir -p "$scratch/archives"
  ln -sf "$archive" "$scratch/archives/"
  flags+=(-Xlinker "-L$scratch/archives")
fi

for product; do swift build "${flags[@]}" --product "$product" >&2; done
swift build "${flags[@]}" --show-bin-path
