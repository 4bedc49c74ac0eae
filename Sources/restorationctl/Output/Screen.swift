// SPDX-License-Identifier: Apache-2.0

/// Text that is shown again and again: on a terminal in place of the former one, elsewhere below it.
enum Screen {
  static func show(_ text: String) throws {
    guard Terminal.isOutput, !Terminal.isDumb else { return try Output.print(text + "\n") }
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init).dropLast()
    if let rows = Terminal.rows, lines.count >= rows {
      // The cursor needs a line as well.
      let hidden = lines.count - (rows - 2)
      lines = lines.prefix(rows - 2) + ["(\(Quantity.count(hidden, "more line")))"]
    }
    // With wrapping off, what is too long for its line would be written over the end of it.
    if let columns = Terminal.columns { lines = lines.map { $0.cut(to: columns) }[...] }
    // From the upper left corner on, without wrapping. What the former text has more of is erased first, below as well:
    // a line end comes last, as after all that is complete.
    let last = lines.popLast() ?? ""
    let others = lines.map { "\u{1b}[K\($0)\n" }.joined()
    try Output.print("\u{1b}[?7l\u{1b}[H\(others)\u{1b}[J\(last)\u{1b}[?7h\n")
  }
}
