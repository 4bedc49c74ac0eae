// SPDX-License-Identifier: Apache-2.0

/// Repeated text: on a terminal it replaces the former one, elsewhere it follows below.
enum Screen {
  static func show(_ text: String) throws {
    guard Terminal.isOutput, !Terminal.isDumb else { return try Output.print(text + "\n") }
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init).dropLast()
    if let rows = Terminal.rows, lines.count >= rows {
      // The cursor needs a line as well.
      let hidden = lines.count - (rows - 2)
      lines = lines.prefix(rows - 2) + ["(\(Quantity.count(hidden, "more line")))"]
    }
    // With wrapping off, the rest of a long line would be written over its end.
    if let columns = Terminal.columns { lines = lines.map { $0.cut(to: columns) }[...] }
    // Writes from the upper left corner without wrapping. The rest of the former text is erased first; a line end
    // comes last, when the text is complete.
    let last = lines.popLast() ?? ""
    let others = lines.map { "\u{1b}[K\($0)\n" }.joined()
    try Output.print("\u{1b}[?7l\u{1b}[H\(others)\u{1b}[J\(last)\u{1b}[?7h\n")
  }
}
