# SPDX-License-Identifier: Apache-2.0
#
# The place in a history that ended at the line `place`, which has moved if lines were removed before it, and a checksum
# of what is there, `check`. Without those, the end. It is found if it has moved by less than 10,000 lines.
function checksum(line, text, i, sum) {
  text = lines[line - 1] "\n" lines[line]
  for (i = 1; i <= length(text); i++) sum = (sum * 31 + code[substr(text, i, 1)]) % 2147483647
  return sum + 0
}
BEGIN {
  for (i = 1; i < 256; i++) code[sprintf("%c", i)] = i
  tried = check == "" ? 1 : 10000
}
place == "" || NR <= place { lines[NR] = $0; delete lines[NR - tried - 1] }
END {
  line = place == "" || place > NR ? NR : place + 0
  beyond = line - tried
  while (check != "" && line > 0 && checksum(line) != check) if (--line == beyond) line = 0
  print line, checksum(line)
}
