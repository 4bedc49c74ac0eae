// SPDX-License-Identifier: Apache-2.0

/// Adds what is missing in the completion scripts that `ArgumentParser` generates for bash and zsh; fish needs nothing.
enum CompletionScript {
  /// `nil` for any other text.
  static func completed(_ script: String) -> String? {
    if script.hasPrefix("#!/bin/bash\n") { return script + bash }
    // The last lines call or register the functions.
    guard script.hasPrefix("#compdef "), let end = script.firstRange(of: "\nif [[ ") else { return nil }
    return String(script[..<end.lowerBound]) + zsh + script[end.lowerBound...]
  }

  /// The first function replaces one that takes words one by one. The second one joins words: bash splits `Notes@2` and
  /// `--socket=/path` into three, and replaces only the last.
  private static let bash = #"""

    __restorationctl_add_completions() {
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(IFS=$'\n' compgen "${@}" -- "${cur}")
    }

    _restorationctl_joined() {
        local -a words=()
        local -i index cword=0
        local rest="${COMP_LINE}"
        for index in "${!COMP_WORDS[@]}"; do
            local word="${COMP_WORDS[index]}" trimmed="${rest#"${rest%%[![:space:]]*}"}"
            if [[ ${index} -gt 0 && -n "${rest}" && "${rest}" = "${trimmed}" ]]; then
                words[${#words[@]}-1]+="${word}"
            else
                words+=("${word}")
            fi
            rest="${trimmed#"${word}"}"
            [[ ${index} -eq ${COMP_CWORD} ]] && cword=${#words[@]}-1
        done
        local tail="${COMP_LINE:${COMP_POINT}}"
        local current="${words[cword]%"${tail%%[[:space:]]*}"}"
        local joined="${current%"${2}"}"
        local -a COMP_WORDS=("${words[@]}")
        local -i COMP_CWORD=cword
        _restorationctl "${1}" "${current}" "${words[cword - 1]}"
        # Names of files are quoted; an @ or # that is quoted is not found again in the next word.
        [[ "${COMPREPLY[*]}" = *[@#]* && ! -e "${COMPREPLY[0]}" ]] && compopt +o filenames 2>/dev/null
        # A path goes on behind its slash.
        [[ "${COMPREPLY[0]}" = */ ]] && compopt -o nospace 2>/dev/null
        COMPREPLY=("${COMPREPLY[@]#"${joined}"}")
    }

    complete -o filenames -F _restorationctl_joined restorationctl

    """#

  /// After a path's slash zsh would put a space.
  private static let zsh = #"""

    __restorationctl_custom_complete() {
        local -a found=("${(@f)"$("${command_name}" "${@}" "${command_line[@]}")"}")
        local -a ends=("${found[@]:#(| |*/)}") parents=("${(M)found[@]:#*/}")
        _describe -V '' ends -- parents -S ''
    }

    """#
}
