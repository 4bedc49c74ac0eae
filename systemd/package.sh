#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a Debian package, restorationd_VERSION_ARCHITECTURE.deb: systemd/package.sh [OPTION]…
#
#   --from DIR     take the programs from DIR instead of building them
#   --output DIR   where to put the package (default: here)
#
# Needs no privileges. DEBFULLNAME and DEBEMAIL, else git's user, are the maintainer. The package is the same, byte for
# byte, where programs and sources are.
set -euo pipefail
top="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
die() { printf 'package.sh: %s\n' "$*" >&2; exit 1; }

from=() output="$PWD"
while (($#)); do
  case "$1" in
    --from) (($# > 1)) || die "$1 needs a directory"; from=(--from "$2"); shift 2 ;;
    --output) (($# > 1)) || die "$1 needs a directory"; output="$2"; shift 2 ;;
    --from=* | --output=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    -h | --help) sed -n '4,/^[^#]/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "there is no option $1; see --help" ;;
  esac
done
[[ -d $output ]] || die "--output: $output is not a directory"
[[ -w $output ]] || die "--output: $output is not writable for $(id -un)"
output="$(cd "$output" && pwd)"
"$top/Tests/packages.sh" binutils dpkg-dev

# All times are that of the last commit.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || echo 0)}"
export SOURCE_DATE_EPOCH
work="$(mktemp -d)"
trap 'rm -rf -- "$work"' EXIT
root="$work/root"
umask 022

"$top/systemd/install.sh" --prefix /usr --destdir "$root" "${from[@]}" >"$work/log" || die "nothing was installed"
version="$("$root/usr/bin/restorationd" --version)"
architecture="$(dpkg --print-architecture)"
maintainer="${DEBFULLNAME:-$(git -C "$top" config user.name 2>/dev/null || echo restorationd)}"
maintainer+=" <${DEBEMAIL:-$(git -C "$top" config user.email 2>/dev/null || echo "restorationd@$(hostname -f)")}>"

for program in restorationd restorationctl; do
  if [[ $(ldd "$root/usr/bin/$program") == *libswift* ]]; then
    die "$program needs Swift's libraries, which Debian does not have; build it with systemd/build.sh"
  fi
done

# ---- Files, where Debian has them

rm -r "$root/usr/share/restorationd"
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
gzip -9n "$root"/usr/share/man/man1/*.1
documents="$root/usr/share/doc/restorationd"
mkdir -p "$documents"
cp "$top/systemd/debian/copyright" "$documents/"
{
  printf 'restorationd (%s) unstable; urgency=medium\n\n' "$version"
  printf '  * Built from the sources; their history is in git.\n\n'
  printf ' -- %s  %s\n' "$maintainer" "$(date -uRd "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$documents/changelog.gz"
chmod 644 "$documents"/*

# ---- What dpkg reads

mkdir -p "$root/DEBIAN" "$work/debian"
# dpkg-shlibdeps wants the control file of a source package; versions are those of the symbols that are used.
printf 'Source: restorationd\n\nPackage: restorationd\nArchitecture: any\n' >"$work/debian/control"
libraries="$(cd "$work" && dpkg-shlibdeps -O -e "$root/usr/bin/restorationd" \
  -e "$root/usr/bin/restorationctl" 2>"$work/shlibdeps")" || die "$(<"$work/shlibdeps")"
# What dpkg-shlibdeps does not see. The broker opens libsystemd itself; its newest function is sd_bus_close_unref.
libraries+=', libsystemd0 (>= 241)'
if [[ $(readelf --dynamic "$root/usr/bin/restorationd") == *'(RELR)'* ]]; then libraries+=', libc6 (>= 2.36)'; fi
for script in postinst prerm postrm; do
  cp "$top/systemd/debian/$script" "$root/DEBIAN/$script"
  chmod 755 "$root/DEBIAN/$script"
done
cat >"$root/DEBIAN/control" <<END
Package: restorationd
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -k --apparent-size -s "$root/usr" | cut -f1)
Depends: ${libraries#shlibs:Depends=}
Recommends: default-dbus-session-bus | dbus-session-bus
Suggests: libnotify-bin
Section: utils
Priority: optional
Description: state restoration for applications made of many processes
 A broker on a Unix socket keeps the state of applications: their processes,
 in any language, register objects and push their state or are asked for it,
 in JSON-RPC 2.0. After a crash, a logout or an upgrade every object gets its
 state again, parents first, over all processes.
 .
 The broker runs as a service of each user, started by its socket. This
 package has the broker, the tool restorationctl and the units.
END
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root/DEBIAN/control" "$root/DEBIAN/md5sums"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

dpkg-deb --root-owner-group -Z"${DPKG_DEB_COMPRESSOR_TYPE:-xz}" --build "$root" "$output/restorationd_${version}_$architecture.deb" >/dev/null
printf '%s\n' "$output/restorationd_${version}_$architecture.deb"
