#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs restorationd as a service of the user: systemd/install.sh [OPTION]…
#
#   --prefix DIR    the target: programs in DIR/bin, units, manual pages and completions below DIR (default ~/.local).
#                   As root with /usr or /usr/local: for all users.
#   --from DIR      take the programs from DIR instead of building them (in the archive of a release: from its bin)
#   --destdir DIR   put DIR in front of every path, as for a package; enables nothing
#   --no-enable     only copy the files
#
# Needs no privileges, except to install Debian packages that a build lacks. Run it again to upgrade: unchanged files
# stay, a running broker is restarted, and its clients' connections survive that. systemd/uninstall.sh removes what was
# installed.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

say() { printf '%s\n' "$*"; }
die() { # MESSAGE [WHAT TO DO]…
  printf '%s: %s\n' "$script" "$1" >&2
  shift
  for line; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# ---- Options

script=install.sh action=install prefix='' from='' destdir='' enables=true
if [[ ${1-} == --uninstall ]]; then script=uninstall.sh action=uninstall; shift; fi

directory() { # OPTION DIR: an absolute path without a slash at the end
  [[ -n $2 ]] || die "$1 needs a directory"
  [[ $2 != *[[:cntrl:]\'\"\\\$]* ]] ||
    die "$1: the name has quotes, \\, \$ or control characters, which units cannot have"
  realpath -ms -- "$2"
}
while (($#)); do
  case "$1" in
    --prefix | --destdir | --from)
      (($# > 1)) || die "$1 needs a directory"
      value="$(directory "$1" "$2")"
      [[ $action == install || $1 != --from ]] || die "there is no option --from; see --help"
      case "$1" in
        --prefix) prefix="$value" ;;
        --destdir) destdir="$value" enables=false ;;
        --from) from="$value" ;;
      esac
      shift 2
      ;;
    --prefix=* | --destdir=* | --from=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --no-enable) [[ $action == install ]] || die "there is no option $1; see --help"; enables=false; shift ;;
    -h | --help)
      comment="$here/$script"
      sed -n '4,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$comment"
      exit 0
      ;;
    *) die "there is no option $1; see --help" ;;
  esac
done

home_prefix=''
[[ -z ${HOME-} ]] || home_prefix="$(realpath -ms -- "$HOME")/.local"
[[ -n $prefix || -z $home_prefix ]] || prefix="$(directory HOME "$home_prefix")"
[[ -n $prefix ]] || die "HOME is not set; use --prefix DIR"
if ((EUID == 0)) && [[ $prefix == "$home_prefix" && -z $destdir ]]; then
  die "root is asked to $action what is for one user ($prefix)" \
    "Run it as that user, without sudo, or for all users with --prefix /usr/local."
fi

case "$prefix" in
  /usr | /usr/local) units="$prefix/lib/systemd/user" catalog=lib/systemd/catalog ;;
  # The journal explains no entries for single users.
  *) units="$prefix/share/systemd/user" catalog='' ;;
esac
list="$prefix/share/restorationd/installed" # what uninstalling removes, relative to the prefix
unit_names=(restorationd.socket restorationd.service restoration-app@.service restoration-login.service
  restoration-metrics.service restoration-metrics.timer restoration-run@.service restoration-run-graphical@.service
  restorationd-forget-unused.service restorationd-forget-unused.timer)

manager_is_there() { # root enables for all users, whose managers run or not
  $enables && ((EUID != 0)) && command -v systemctl >/dev/null && systemctl --user show-environment >/dev/null 2>&1
}
property() { systemctl --user show --property="$1" --value -- "$2"; }
is_ours() { # PATH of a unit or of a link to one: it is, or leads to, what is installed here
  [[ -n $1 && $(readlink -m -- "$1") == "$(readlink -m -- "$units/${1##*/}")" ]]
}

# ---- Uninstalling

if [[ $action == uninstall ]]; then
  [[ -f $destdir$list ]] ||
    die "nothing is installed in $destdir$prefix ($destdir$list is not there)" "Was it another --prefix?"
  mapfile -t installed <"$destdir$list"
  for path in "${installed[@]}"; do
    [[ $path != /* && /$path/ != */../* ]] || die "$destdir$list names $path, which install.sh has not written"
  done
  [[ -w $destdir$list ]] || die "$destdir$prefix is not writable for $(id -un)" "Run this as who installed it."
  # Units of the same name may belong to another installation, which stays.
  ours=()
  if manager_is_there; then
    for unit in "${unit_names[@]}"; do
      loaded="$(property FragmentPath "${unit/@./@x.}")"
      if is_ours "$loaded"; then ours+=("$unit"); fi
    done
    # Applications are saved first.
    for unit in restoration-metrics.timer restorationd-forget-unused.timer restoration-login.service \
      restorationd.socket restorationd.service; do
      if [[ " ${ours[*]} " == *" $unit "* ]]; then systemctl --user stop "$unit" 2>/dev/null || true; fi
    done
    ((${#ours[@]} == 0)) || systemctl --user --quiet disable "${ours[@]}" 2>/dev/null || true
  elif $enables && ((EUID == 0)) && command -v systemctl >/dev/null; then
    for unit in "${unit_names[@]}"; do
      for link in "/etc/systemd/user/$unit" /etc/systemd/user/*/"$unit"; do
        if [[ -L $link ]] && is_ours "$link"; then ours+=("$unit"); break; fi
      done
    done
    ((${#ours[@]} == 0)) || systemctl --global --quiet disable "${ours[@]}" 2>/dev/null || true
  fi
  # Directories come last in the list; only empty ones made by this script are removed.
  for path in "${installed[@]}"; do
    case "$path" in
      */) ;;
      *) rm -f -- "$destdir$prefix/$path" ;;
    esac
  done
  rm -f -- "$destdir$list"
  for path in "${installed[@]}"; do
    [[ $path != */ ]] || rmdir -- "$(realpath -ms -- "$destdir$prefix/$path")" 2>/dev/null || true
  done
  if manager_is_there; then
    systemctl --user daemon-reload
    for unit in "${ours[@]}"; do systemctl --user reset-failed "$unit" 2>/dev/null || true; done
  fi
  say "Removed restorationd from $destdir$prefix."
  if ((EUID == 0)); then
    say "Archives are kept: in each user's \$XDG_STATE_HOME/restorationd (~/.local/state/restorationd)."
  else
    say "Archives are kept: ${XDG_STATE_HOME:-$HOME/.local/state}/restorationd"
  fi
  exit 0
fi

# ---- Obstacles, checked before anything is made

directories=("$destdir$prefix")
for directory in bin "${units#"$prefix/"}" share/man/man1 share/bash-completion/completions share/zsh/site-functions \
  share/fish/vendor_completions.d share/restorationd ${catalog:+"$catalog"}; do
  directories+=("$destdir$prefix/$directory")
done
for top in "${directories[@]}"; do
  while [[ ! -e $top && ! -L $top ]]; do top="$(dirname -- "$top")"; done
  [[ -d $top ]] || die "$top is not a directory"
  [[ -w $top && -x $top ]] ||
    die "$top is not writable for $(id -un)" "Choose another --prefix; ~/.local needs no privileges."
done

check_unit() { # UNIT: no other unit may go before the one to be installed
  local directory found
  for directory in "${unit_path[@]}"; do
    found="$directory/$1"
    if [[ $directory -ef $units || $directory == "$units" ]]; then return; fi
    [[ -e $found || -L $found ]] || continue
    if is_ours "$found"; then return; fi
    if [[ $(readlink -m -- "$found") == /dev/null || ! -s $found ]]; then
      case "$found" in
        "$XDG_RUNTIME_DIR"/*) die "$1 is masked" "systemctl --user unmask --runtime $1, and run this again." ;;
        "$HOME"/*) die "$1 is masked" "systemctl --user unmask $1, and run this again." ;;
        *) die "$1 is masked for all users by $found" "As root: systemctl --global unmask $1, and run this again." ;;
      esac
    fi
    die "$found goes before $units/$1" "Remove it, and run this again."
  done
}
if manager_is_there; then
  read -ra unit_path < <(systemctl --user show --property=UnitPath --value)
  for unit in "${unit_names[@]}"; do check_unit "$unit"; done
fi

# ---- The programs

[[ -n $from || ! -d $here/bin ]] || from="$here/bin" # of the archive of a release
if [[ -z $from ]]; then
  cd "$here/.."
  Tests/packages.sh swift libjansson-dev libsqlite3-dev libsystemd-dev pkg-config
  say "Building the programs (release), which takes minutes the first time"
  from="$(systemd/build.sh restorationd restorationctl)"
fi
[[ -d $from ]] || die "--from: $from is not a directory"
for program in restorationd restorationctl; do
  [[ -f $from/$program ]] ||
    die "$from has no program $program" "Build it, and give the directory that is printed: systemd/build.sh restorationd restorationctl"
  [[ -x $from/$program ]] || die "$from/$program is not executable"
  "$from/$program" --version >/dev/null || die "$from/$program does not run here"
done
version="$("$from/restorationd" --version)"

# ---- The files

umask 022
stage="$(mktemp -d)"
copying=false
finish() {
  # What was copied before something failed can be uninstalled.
  if $copying; then
    write_list || true
    printf '%s: not all was installed; uninstall.sh removes what was\n' "$script" >&2
  fi
  rm -rf -- "$stage"
}
trap finish EXIT
mkdir -p "$stage/bin" "$stage/${units#"$prefix/"}" "$stage/share/man/man1" "$stage/share/bash-completion/completions" \
  "$stage/share/zsh/site-functions" "$stage/share/fish/vendor_completions.d"
for program in restorationd restorationctl; do
  cp -L -- "$from/$program" "$stage/bin/$program"
  # Symbols are two thirds of a program.
  if command -v strip >/dev/null; then strip --strip-unneeded --remove-section=.comment "$stage/bin/$program"; fi
  chmod 755 "$stage/bin/$program"
  cp -- "$here/man/$program.1" "$stage/share/man/man1/"
  for shell in bash zsh fish; do
    case "$shell" in
      bash) completion="$stage/share/bash-completion/completions/$program" ;;
      zsh) completion="$stage/share/zsh/site-functions/_$program" ;;
      fish) completion="$stage/share/fish/vendor_completions.d/$program.fish" ;;
    esac
    case "$program" in
      restorationd) cp -- "$here/completions/$program.$shell" "$completion" ;;
      # The tool has many commands, and writes it itself.
      restorationctl) "$from/$program" --generate-completion-script "$shell" | sed '1{/^#!/d}' >"$completion" ;;
    esac
  done
done
# What programs of a release bring with them.
if [[ -d $from/../lib/restorationd ]]; then
  mkdir -p "$stage/lib"
  cp -RL -- "$from/../lib/restorationd" "$stage/lib/"
fi
# In a unit % stands for itself when it is doubled, and a path with spaces is quoted.
for unit in "${unit_names[@]}"; do
  text="$(<"$here/user/$unit")"
  for program in restorationd restorationctl; do
    path="${prefix//%/%%}/bin/$program"
    [[ $path != *[[:space:]]* ]] || path="\"$path\""
    text="${text//"/usr/bin/$program"/"$path"}"
  done
  printf '%s\n' "$text" >"$stage/${units#"$prefix/"}/$unit"
done
# What `restorationctl terminal install` makes the user's settings read.
restorers="$stage/share/restorationd/restorers"
mkdir -p "$restorers"
(
  # Beside this script in an archive, else in the sources.
  cd "$here/restorers" 2>/dev/null || cd "$here/../Protocol/examples"
  find terminal vim neovim emacs -type f -regex '.*\.\(awk\|bash\|el\|fish\|lua\|py\|sh\|vim\|zsh\)' \
    -exec cp --parents -t "$restorers" -- {} +
)
if [[ -n $catalog ]]; then
  mkdir -p "$stage/$catalog"
  cp -- "$here/restorationd.catalog" "$stage/$catalog/"
fi
find "$stage" -type f ! -path "$stage/bin/*" -exec chmod 644 {} +
chmod 755 "$restorers"/terminal/tmux.py "$restorers"/terminal/terminal.sh
mapfile -t files < <(cd "$stage" && find . -type f -printf '%P\n' | LC_ALL=C sort)

earlier=()
[[ ! -f $destdir$list ]] || mapfile -t earlier <"$destdir$list"
changes=() made=()
make_directory() { # the parents first; what is made is removed when uninstalling
  [[ ! -d $1 ]] || return 0
  make_directory "$(dirname -- "$1")"
  mkdir -- "$1"
  case "$1/" in
    "$destdir$prefix"/) made+=(./) ;;
    "$destdir$prefix"/*) made+=("${1#"$destdir$prefix/"}/") ;;
  esac
}
put() { # SOURCE PATH: in one step, so that a program that runs stays whole
  local to="$destdir$prefix/$2"
  if cmp -s -- "$1" "$to" && [[ $(stat -c %a -- "$1") == $(stat -c %a -- "$to") ]]; then return; fi
  make_directory "$(dirname -- "$to")"
  cp -pT -- "$1" "$to.new" || { rm -f -- "$to.new" 2>/dev/null; exit 1; }
  mv -fT -- "$to.new" "$to"
  changes+=("$2")
}
write_list() {
  {
    printf '%s\n' "${files[@]}"
    ((${#made[@]} == 0)) || printf '%s\n' "${made[@]}" | LC_ALL=C sort -ru # what is inside comes first
  } >"$stage/installed"
  if cmp -s -- "$stage/installed" "$destdir$list"; then return; fi
  cp -- "$stage/installed" "$destdir$list.new"
  mv -f -- "$destdir$list.new" "$destdir$list"
}
for path in "${files[@]}"; do
  [[ ! -d $destdir$prefix/$path ]] || die "$destdir$prefix/$path is a directory"
done
for path in "${earlier[@]}"; do
  [[ $path != */ ]] || made+=("$path")
done
copying=true
make_directory "$(dirname -- "$destdir$list")"
for path in "${files[@]}"; do put "$stage/$path" "$path"; done
removed=()
for path in "${earlier[@]}"; do
  [[ $path != */ && ! -e $stage/$path && -e $destdir$prefix/$path ]] || continue
  rm -f -- "$destdir$prefix/$path"
  removed+=("$path")
done
write_list
copying=false

if ((${#changes[@]} + ${#removed[@]})); then
  say "Installed restorationd $version in $destdir$prefix:"
  for path in "${changes[@]}"; do say "  $path"; done
  for path in "${removed[@]}"; do say "  $path is gone"; done
else
  say "restorationd $version is installed in $destdir$prefix already; no file has changed."
fi

# Otherwise it is done at the next start of the machine.
if [[ -n $catalog && -z $destdir ]] && ((EUID == 0)) && command -v journalctl >/dev/null; then
  journalctl --update-catalog || say "journalctl -x does not explain the entries of restorationd yet."
fi

# ---- The service

later() { # what somebody else has to do
  say "To enable it:"
  for line; do say "  $line"; done
}
if ! $enables; then
  [[ -n $destdir ]] || later "systemctl --user daemon-reload && systemctl --user enable --now restorationd.socket"
  exit 0
fi
if ((EUID == 0)); then
  command -v systemctl >/dev/null || die "there is no systemctl, so nothing is enabled"
  case "$units" in
    /usr/*) systemctl --global enable restorationd.socket restoration-login.service ;;
    *)
      systemctl --global link "${unit_names[@]/#/$units/}"
      systemctl --global enable restorationd.socket restoration-login.service
      ;;
  esac
  say "Enabled for all users, from their next login on. At once, as a user:"
  say "  systemctl --user daemon-reload && systemctl --user start restorationd.socket"
  exit 0
fi
if ! manager_is_there; then
  say "No systemd user manager is there to enable it (not a login session, or no \$XDG_RUNTIME_DIR)."
  later "systemctl --user daemon-reload && systemctl --user enable --now restorationd.socket"
  exit 0
fi

changed_unit=false changed_program=false
for path in "${changes[@]}" "${removed[@]}"; do
  case "$path" in
    *.service | *.socket | *.timer) changed_unit=true ;;
    bin/restorationd) changed_program=true ;;
  esac
done
if $changed_unit; then systemctl --user daemon-reload; fi
did=()
for unit in "${unit_names[@]}"; do
  loaded="$(property FragmentPath "${unit/@./@x.}")"
  if [[ -n $loaded ]] && ! is_ours "$loaded"; then
    # What it has loaded is no longer there.
    systemctl --user daemon-reload
    loaded="$(property FragmentPath "${unit/@./@x.}")"
    [[ -z $loaded ]] || is_ours "$loaded" || die "$loaded goes before $units/$unit" "Remove it, and run this again."
  fi
  # Empty: the manager does not look for units there.
  [[ -n $loaded ]] || systemctl --user --quiet link "$units/$unit"
done
for unit in restorationd.socket restoration-login.service; do
  if systemctl --user --quiet is-enabled "$unit" >/dev/null 2>&1; then continue; fi
  systemctl --user --quiet enable "$unit"
  did+=("Enabled $unit.")
done
if ! systemctl --user --quiet is-active restorationd.socket; then
  systemctl --user start restorationd.socket ||
    die "the socket does not start" "Look: systemctl --user status restorationd.socket"
  did+=("Started restorationd.socket: the broker starts with the first connection.")
fi
if { $changed_unit || $changed_program; } && systemctl --user --quiet is-active restorationd.service; then
  systemctl --user restart restorationd.service ||
    die "the broker does not start again" "Look: journalctl --user -u restorationd"
  did+=("Restarted restorationd.service; its clients stay connected.")
fi
for line in "${did[@]}"; do say "$line"; done
if ((${#did[@]})); then
  "$prefix/bin/restorationctl" --socket "$XDG_RUNTIME_DIR/restorationd/broker.sock" --timeout 20 status >/dev/null ||
    die "the broker does not answer" "Look: journalctl --user -u restorationd"
  say "The broker answers. See it: restorationctl status; journalctl --user -u restorationd"
fi
[[ :$PATH: == *":$prefix/bin:"* ]] || say "$prefix/bin is not in PATH: call the programs by their path."
