# SPDX-License-Identifier: Apache-2.0
#
# Bash comes back in its directory and at its place in the history: source this in ~/.bashrc. See README.md.
# What comes back is a directory and a number. Nothing that the broker says is run.
[[ $- == *i* && -n ${XDG_RUNTIME_DIR-} ]] || return 0
[[ -v __restoration ]] || __restoration=${RESTORATION_SHELL-} # `-` after the first prompt
unset RESTORATION_SHELL                                       # a shell that is started in this one is another one
[[ ! . -ef ~ ]] || __restoration_home=1                       # what comes later in ~/.bashrc may leave it
__restoration_keeper=$(command readlink -f -- "${BASH_SOURCE[0]}")
__restoration_keeper=${__restoration_keeper%/*}/shell-keeper.bash
__restoration_files=$XDG_RUNTIME_DIR/restoration-terminal/bash.$$
if [[ ${PROMPT_COMMAND[*]-} != *__restoration_prompt* ]]; then
  # An element of its own stays if others set the variable, which is its first element.
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
    PROMPT_COMMAND[1000]=__restoration_prompt
  else
    PROMPT_COMMAND+=$'\n__restoration_prompt'
  fi
  # If there is no first prompt, the first command says so: one element has a text, and the next one is nothing.
  __restoration_lost=('restoration: PROMPT_COMMAND was set again after shell.bash, so nothing of this shell comes back.
  Source shell.bash at the end of ~/.bashrc.
') __restoration_told=0
  ! shopt -q promptvars || PS0='${__restoration_lost[__restoration_told++]-}'${PS0-}
fi

__restoration_tell() { builtin printf '%s\0' "${__restoration_taken-}$1" >|"$__restoration_files.told"; } 2>/dev/null

__restoration_keep() { # by a process beside the shell
  unset __restoration_taken # what the next one finds saved is another shell's
  command mkdir -p -m 700 -- "${__restoration_files%/*}"
  command rm -f -- "$__restoration_files".{told,wake,answer}
  command mkfifo -m 600 -- "$__restoration_files".{wake,answer}
  "$BASH" -p "$__restoration_keeper" org.gnu.bash "$__restoration_files" "${RESTORATION_WAIT:-2}" "$PWD" \
    "${HISTFILE-}" "${__restoration#-}" "${__restoration_home-}" </dev/null >/dev/null &
  __restoration_pid=$!
  disown "$!"
} 2>/dev/null

# Whether the user has typed that the shell is to end: `exit`, `logout` or Ctrl-D. Then it has left the loop that reads
# commands, and the trap runs in no other; a signal that ends Bash finds it within the loop. `set -x` shows the depth.
__restoration_is_wish() {
  [[ -t 0 && ! -v __restoration_signal ]] || return 1 # its window has gone; or it was a trap of the user's that left
  [[ $({ PS4=+ && unset BASH_XTRACEFD && set -x && :; } 2>&1) != *+++* ]] || return 1
  [[ ${TMOUT-} != [1-9]*([0-9]) ]] || ((SECONDS - __restoration_idle < TMOUT)) # nobody typed anything
}

__restoration_leave() { # before the user's own trap, which gets the same status
  local status=$?
  ! __restoration_is_wish || __restoration_tell exit
  return "$status"
}

__restoration_trap() { # the ends of the shell, around the traps that the user has at present
  local signal own before
  for signal in EXIT HUP TERM; do
    own=$(trap -p "$signal") before=__restoration_leave
    if [[ $signal != EXIT ]]; then
      before='__restoration_signal=1'
      [[ -n $own && $own != "trap -- '' "* ]] || continue # what Bash does by itself, it does best
    fi
    [[ $own != *"$before"* ]] || continue
    eval "set -- $own"
    trap -- "$before"$'\n'"${3-}" "$signal"
  done
  __restoration_traps=$(trap -p EXIT HUP TERM)
}

__restoration_prompt() {
  local status=$? there='' lines file=$__restoration_files.history
  # At the first prompt, when the history has been read; or it was killed.
  builtin kill -0 "${__restoration_pid-}" 2>/dev/null || __restoration_keep
  if [[ $__restoration != - ]]; then
    PS0=${PS0/'${__restoration_lost[__restoration_told++]-}'/}
    __restoration=- # also if Ctrl-C ends the wait: the keeper stores elsewhere what is told without a plus
    IFS= read -r -d '' -t "${RESTORATION_WAIT:-2}" there <>"$__restoration_files.answer" &&
      [[ $there == [0-9]* ]] && __restoration_taken=+
    lines=${there%% *} there=${there#* }
    if [[ -v __restoration_taken && -d $there ]]; then
      builtin cd -- "$there" # and what other shells have added since comes before what this one did last
      { command tail -n "+$((lines + 1))" -- "$HISTFILE" && command head -n "$lines" -- "$HISTFILE"; } >|"$file" &&
        history -c && history -r "$file"
      command rm -f -- "$file"
    fi
  fi 2>/dev/null
  history -a 2>/dev/null
  unset __restoration_signal
  __restoration_idle=$SECONDS
  [[ -v __restoration_traps && $(trap -p EXIT HUP TERM) == "$__restoration_traps" ]] || __restoration_trap
  __restoration_tell "$PWD"
  { builtin echo 1<>"$__restoration_files.wake"; } 2>/dev/null
  if [[ -s $__restoration_files.trouble ]]; then # what was refused, told once
    builtin printf 'restoration: %s\n' "$(<"$__restoration_files.trouble")" >/dev/tty
    command rm -f -- "$__restoration_files.trouble"
  fi
  return "$status"
}
