# SPDX-License-Identifier: Apache-2.0
#
# The place in a history that ended at the line `place`, which has moved if lines were removed before it, and a checksum
# of what is there, `check`. Without those, the end.
function checksum(line, text, i, sum) {
  text = lines[line - 1] "\n" lines[line]
  for (i = 1; i <= length(text); i++) sum = (sum * 31 + code[substr(text, i, 1)]) % 2147483647
  return sum + 0
}
BEGIN { for (i = 1; i < 256; i++) code[sprintf("%c", i)] = i }
{ lines[NR] = $0 }
END {
  for (line = place == "" || place > NR ? NR : place + 0; line > 0 && check != "" && checksum(line) != check; line--) ;
  print line, checksum(line)
}
