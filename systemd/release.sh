#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes all files of a release, for this machine's architecture: systemd/release.sh [OPTION]…
#
#   --from DIR     take the programs from DIR instead of building them
#   --output DIR   where to put the files: a directory that is empty or does not exist (default: .build/dist)
#   --no-image     leave out the image, for which a mirror of Debian must be reachable
#
# They are: packages for Debian; an archive with the programs and all libraries but glibc; the same as a wheel,
# `restorationd-bin`; the wheel and the sdist of the client for Python; an image (OCI); a bill of materials (CycloneDX);
# SHA256SUMS. systemd/RELEASING.md says what to do with them. Needs no privileges, except to install Debian packages that
# are missing.
set -euo pipefail
export LC_ALL=C.UTF-8
top="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
parts="$top/systemd/release"
die() { printf 'release.sh: %s\n' "$*" >&2; exit 1; }
step() { printf '== %s\n' "$*"; }

from='' output="$top/.build/dist" makes_image=true
while (($#)); do
  case "$1" in
    --from) (($# > 1)) || die "$1 needs a directory"; from="$2"; shift 2 ;;
    --output) (($# > 1)) || die "$1 needs a directory"; output="$2"; shift 2 ;;
    --from=* | --output=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --no-image) makes_image=false; shift ;;
    -h | --help) sed -n '4,/^[^#]/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "there is no option $1; see --help" ;;
  esac
done
mkdir -p -- "$output" 2>/dev/null || die "--output: $output cannot be made by $(id -un)"
output="$(cd "$output" && pwd)"
[[ -z $(ls -A -- "$output") ]] || die "--output: $output is not empty; remove what is in it, or name another directory"
needed=(binutils patchelf python3)
if $makes_image; then needed+=(mmdebstrap umoci); fi
"$top/Tests/packages.sh" "${needed[@]}"

work="$(mktemp -d)"
trap 'rm -rf -- "$work"' EXIT
umask 022
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

# ---- The programs

if [[ -z $from ]]; then
  step "Building the programs (release)"
  "$top/Tests/packages.sh" swift libjansson-dev libpq-dev libsqlite3-dev libsystemd-dev pkg-config
  from="$("$top/systemd/build.sh" restorationd restorationctl restoration-gateway)"
fi
programs=("$from/restorationd" "$from/restorationctl")
for program in "${programs[@]}"; do [[ -f $program ]] || die "$from has no program ${program##*/}"; done
version="$("$from/restorationd" --version)"
machine="$(uname -m)"
name="restorationd-$version"

step "Making packages for Debian"
"$top/systemd/package.sh" --from "$from" --output "$output" >/dev/null

# ---- Programs that bring all libraries with them but glibc and GCC's, which every distribution has

step "Making an archive and wheels"
tree="$work/tree"
mkdir -p "$tree/bin" "$tree/lib/restorationd"
mapfile -t libraries < <(ldd "${programs[@]}" | sed -n 's|.* => \(/[^ ]*\) (.*|\1|p' | sort -u |
  grep -vE '/(libc|libm|libgcc_s)\.so\.')
for library in "${libraries[@]}"; do cp -L -- "$library" "$tree/lib/restorationd/"; done
# Without the packages of optional traits, which no program has.
swift package --package-path "$top" --scratch-path "$top/.build/installed" show-dependencies --format json \
  >"$work/dependencies.json"
python3 -B "$parts/bill.py" "${programs[0]}" "$work/dependencies.json" "${libraries[@]}" \
  >"$output/$name-$machine.cdx.json"
# The licenses of what is inside are those of the packages that they come from.
cp -- "$top/systemd/debian/copyright" "$tree/lib/restorationd/copyright"
mapfile -t packages < <(sed -n 's|.*"purl": "pkg:deb/debian/\([^@]*\)@.*|\1|p' "$output/$name-$machine.cdx.json")
for package in "${packages[@]}"; do
  cp -L -- "/usr/share/doc/$package/copyright" "$tree/lib/restorationd/$package.copyright"
done
for program in "${programs[@]}"; do
  cp -L -- "$program" "$tree/bin/"
  strip --strip-unneeded --remove-section=.comment "$tree/bin/${program##*/}"
  # shellcheck disable=SC2016 # the loader knows where the program is
  patchelf --set-rpath '$ORIGIN/../lib/restorationd' "$tree/bin/${program##*/}"
done
chmod 755 "$tree"/bin/*
chmod 644 "$tree"/lib/restorationd/*
# The oldest glibc that has all symbols; packed relocations are read since 2.36.
glibc="$(readelf --version-info --dynamic "$tree"/bin/* "$tree"/lib/restorationd/*.so.* |
  sed -n 's/.*(RELR) .*/2.36/p; s/.*Name: GLIBC_\(2\.[0-9]*\) .*/\1/p' | sort -uV | tail -n 1)"

archive="$name-$machine-linux-gnu"
mkdir "$work/$archive"
cp -R -- "$tree"/* "$work/$archive/"
cp -R -- "$top"/systemd/{install.sh,uninstall.sh,user,completions,restorationd.catalog} "$top/LICENSE" \
  "$work/$archive/"
mkdir "$work/$archive/restorers"
cp -R -- "$top"/Protocol/examples/{terminal,vim,neovim,emacs} "$work/$archive/restorers/"
mkdir "$work/$archive/man"
cp -- "$top"/systemd/man/*.1 "$work/$archive/man/"
cat >"$work/$archive/README" <<TEXT
restorationd $version for Linux on $machine, with glibc $glibc or later.

  ./install.sh           installs it for you, in ~/.local, as a service that its socket starts
  ./install.sh --help    says how to install it for all users, and what else there is
  bin/restorationd       is the broker, bin/restorationctl its tool: both run from here, too
  bin/restorationctl terminal install
                         lets Bash, zsh, fish, tmux, Vim, Neovim and Emacs come back;
                         without install.sh they need this directory
TEXT
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$archive" |
  gzip -n >"$output/$archive.tar.gz"

cp -R -- "$parts/wheel" "$work/wheel"
cp -R -- "$tree"/* "$work/wheel/restorationd_bin/"
sed -i "s/@VERSION@/$version/" "$work/wheel/restorationd_bin/__init__.py"
PYTHONPATH="$top/Protocol/clients/python" python3 -B - "$work/wheel" "$output" \
  "py3-none-manylinux_${glibc/./_}_$machine" <<'PROGRAM'
import pathlib
import sys

import wheel_builder

folder, output, tag = sys.argv[1:]
wheel_builder.Project(pathlib.Path(folder), tag).build_wheel(output)
wheel_builder.build_wheel(output)
wheel_builder.build_sdist(output)
PROGRAM

# ---- The image, by the commands of the Dockerfile

cp -- "$parts/Dockerfile" "$output/"
if $makes_image; then
  step "Making an image"
  suite="$(sed -n 's/^FROM debian:\(.*\)-slim$/\1/p' "$parts/Dockerfile")"
  run="$(sed -n 's/^RUN //p' "$parts/Dockerfile")"
  export run
  # shellcheck disable=SC2016 # mmdebstrap gives the root as $1
  mmdebstrap --quiet --variant=apt --customize-hook='mkdir "$1/packages"' \
    --customize-hook="cp '$output'/restorationd_*.deb '$output'/python3-restorationd_*.deb \"\$1/packages/\"" \
    --customize-hook='chroot "$1" env DEBIAN_FRONTEND=noninteractive sh -c "$run"' \
    "$suite" "$work/root.tar" >"$work/log" 2>&1 || die "$(tail -n 30 "$work/log")"
  umoci init --layout "$work/image"
  umoci new --image "$work/image:$version"
  umoci raw add-layer --image "$work/image:$version" "$work/root.tar"
  umoci config --image "$work/image:$version" --config.cmd bash \
    --config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  umoci gc --layout "$work/image"
  tar -C "$work/image" --sort=name --owner=0 --group=0 --numeric-owner -cf "$output/$name-$machine.oci.tar" .
fi

(cd "$output" && sha256sum -- * >SHA256SUMS)
printf '\n'
(cd "$output" && du -ch --apparent-size -- *)

# ---- What is not as it has to be for others

printf '\n'
ready=true
missing() { ready=false; printf 'Not to be uploaded: %s\n' "$*"; }
[[ -z $(git -C "$top" status --porcelain) ]] || missing "there are changes that are not committed; see git status"
git -C "$top" tag --points-at HEAD | grep -qx "v$version" || missing "the commit has no tag v$version; git tag v$version"
! grep -q 'example\.org' "$top/Protocol/clients/python/pyproject.toml" ||
  missing "Protocol/clients/python/pyproject.toml names example.org; write the project's address there"
! $ready || printf 'Upload what is in %s; systemd/RELEASING.md says how.\n' "$output"
