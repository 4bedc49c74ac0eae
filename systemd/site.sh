#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the project's site, a tree of static files: systemd/site.sh [OPTION]…
#
#   --output DIR     where to put it: a directory that is empty or does not exist (default: .build/site)
#   --base PATH      under which path it will be served (default: /); only the reference needs to know
#   --no-reference   leave out the reference of the Swift library, for which the library is built
#
# It has README.md, the pages of Protocol/ and those that they link to, made by Sphinx, and the reference, made by DocC.
# If a link or an anchor leads nowhere, its page is named, and nothing is written. Installs missing Debian packages (as
# root or through sudo).
set -euo pipefail
export LC_ALL=C.UTF-8
top="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
die() { printf 'site.sh: %s\n' "$*" >&2; exit 1; }
step() { printf '== %s\n' "$*"; }

output="$top/.build/site" base=/ makes_reference=true
while (($#)); do
  case "$1" in
    --output) (($# > 1)) || die "$1 needs a directory"; output="$2"; shift 2 ;;
    --base) (($# > 1)) || die "$1 needs a path"; base="$2"; shift 2 ;;
    --output=* | --base=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --no-reference) makes_reference=false; shift ;;
    -h | --help) sed -n '4,/^[^#]/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "there is no option $1; see --help" ;;
  esac
done
mkdir -p -- "$output" 2>/dev/null || die "--output: $output cannot be made by $(id -un)"
output="$(cd "$output" && pwd)"
[[ -z $(ls -A -- "$output") ]] || die "--output: $output is not empty; remove what is in it, or name another directory"
"$top/Tests/packages.sh" python3-myst-parser

work="$(mktemp -d)"
trap 'rm -rf -- "$work"' EXIT
umask 022
options=()

if $makes_reference; then
  step "Building the Swift library"
  "$top/Tests/packages.sh" swift libjansson-dev pkg-config
  build=(swift build --package-path "$top")
  "${build[@]}" --target RestorationClient
  programs="$("${build[@]}" --show-bin-path)"

  step "Making the reference"
  flags=(-I "$programs/Modules" -target "$(basename "$(dirname "$programs")")")
  # The library is loaded with all that it imports, C too.
  shopt -s nullglob
  for map in "$programs"/*.build "$top"/.build/checkouts/*/Sources/*/include "$top"/Sources/C*; do
    if [[ -f $map/module.modulemap ]]; then flags+=(-Xcc "-fmodule-map-file=$map/module.modulemap"); fi
  done
  mkdir "$work/graph"
  swift symbolgraph-extract -module-name RestorationClient -minimum-access-level public \
    -experimental-allowed-reexported-modules=RestorationWire "${flags[@]}" -output-dir "$work/graph"
  base="${base%/}"
  docc convert "$top/Sources/RestorationClient/RestorationClient.docc" --additional-symbol-graph-dir "$work/graph" \
    --fallback-bundle-identifier RestorationClient --fallback-display-name RestorationClient --ide-console-output \
    --hosting-base-path "${base#/}/swift" --output-path "$work/reference" >"$work/log" 2>&1 || die "$(<"$work/log")"
  # Comments need not describe each parameter.
  ! grep -E ': (warning|error): ' "$work/log" | grep -v ' is missing documentation' >&2 ||
    die "mend the lines above in Sources/RestorationClient"
  options+=(-t reference)
fi

step "Making the pages"
/usr/bin/sphinx-build -q -W --keep-going "${options[@]}" -c "$top/systemd/site" -d "$work/trees" "$top" "$work/site" ||
  die "mend the lines above: each names a page and the link in it that leads nowhere"
cp -- "$work/site/README.html" "$work/site/index.html"
if $makes_reference; then mv -- "$work/reference" "$work/site/swift"; fi
cp -R -- "$work/site/." "$output/"
printf '%s\n' "$output/index.html"
