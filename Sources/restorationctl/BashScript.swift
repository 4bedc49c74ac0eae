// SPDX-License-Identifier: Apache-2.0

/// The completion script of bash, which `ArgumentParser` generates.
enum BashScript {
  private static let firstLine = "#!/bin/bash\n"

  /// The script with what it lacks; nil for any other text.
  static func completed(_ script: String) -> String? { script.hasPrefix(firstLine) ? script + joiningWords : nil }

  /// Bash splits `Notes@2` and `--socket=/path` into three words, and replaces only the last of them.
  private static let joiningWords = #"""

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
        COMPREPLY=("${COMPREPLY[@]#"${joined}"}")
    }

    complete -o filenames -F _restorationctl_joined restorationctl

    """#
}
