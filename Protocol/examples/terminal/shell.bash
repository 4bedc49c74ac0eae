# SPDX-License-Identifier: Apache-2.0
#
# Bash comes back in its directory and at its place in the history: source this in ~/.bashrc. See README.md.
# What comes back is a directory and a number. Nothing that the broker says is run.
[[ $- == *i* && -n ${XDG_RUNTIME_DIR-} ]] && command -v restorationctl >/dev/null || return 0
[[ -v __restoration ]] || __restoration=${RESTORATION_SHELL-} # `-` after the first prompt
unset RESTORATION_SHELL                                       # a shell that is started in this one is another one
__restoration_keeper=$(command readlink -f -- "${BASH_SOURCE[0]}")
__restoration_keeper=${__restoration_keeper%/*}/shell-keeper.bash
[[ ${PROMPT_COMMAND-} == *__restoration_prompt* ]] || PROMPT_COMMAND+=$'\n__restoration_prompt'
[[ -n $(trap -p EXIT) ]] || trap '[[ ! -t 0 ]] || __restoration_tell exit' EXIT # not if its window has gone

__restoration_tell() { # by a process of its own: a keeper that has gone must not take the shell along
  { (builtin printf '%s\0' "${__restoration_taken-}$1"); } 2>/dev/null >&"${RESTORATION[1]-}"
}

__restoration_prompt() {
  local status=$? wait=${RESTORATION_WAIT:-2} there='' lines file=$XDG_RUNTIME_DIR/restoration-shell/history.$$
  if [[ -z ${RESTORATION[1]-} ]]; then # the first prompt, now that the history has been read; or a keeper was killed
    unset __restoration_taken # what the next one finds saved is another shell's
    coproc RESTORATION {
      exec "$BASH" -p "$__restoration_keeper" "$wait" "$PWD" "${HISTFILE-}" "${__restoration#-}"
    }
    disown "$!"
  fi 2>/dev/null
  if [[ $__restoration != - ]]; then
    __restoration=- # also if Ctrl-C ends the wait: the keeper stores elsewhere what is told without a plus
    IFS= read -r -d '' -t "$wait" -u "${RESTORATION[0]}" there && [[ $there == [0-9]* ]] && __restoration_taken=+
    lines=${there%% *} there=${there#* }
    if [[ -v __restoration_taken && -d $there ]]; then
      builtin cd -- "$there" # and what other shells have added since comes before what this one did last
      { command tail -n "+$((lines + 1))" -- "$HISTFILE" && command head -n "$lines" -- "$HISTFILE"; } >|"$file" &&
        history -c && history -r "$file"
      command rm -f -- "$file"
    fi
  fi 2>/dev/null
  history -a 2>/dev/null
  __restoration_tell "$PWD"
  return "$status"
}
