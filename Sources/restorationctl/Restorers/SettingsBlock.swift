// SPDX-License-Identifier: Apache-2.0

/// Lines in a file of the user's settings, between two comments by which they are found again.
struct SettingsBlock {
  struct Unended: Error {}

  /// What begins a comment in the file.
  let comment: String
  let lines: [String]

  var text: String { ([begin] + lines + [end]).joined(separator: "\n") + "\n" }

  private var begin: String { "\(comment) >>> restorationctl terminal >>>" }
  private var end: String { "\(comment) <<< restorationctl terminal <<<" }

  /// The settings with these lines: in the place of former ones, otherwise at the end.
  func added(to settings: String) throws(Unended) -> String {
    let (before, after) = try parts(of: settings)
    let isEnded = before.isEmpty || before.utf8.last == UInt8(ascii: "\n")
    guard let after else { return before + (isEnded ? "" : "\n") + text }
    return before + text + after
  }

  /// The settings without such lines.
  func removed(from settings: String) throws(Unended) -> String {
    let (before, after) = try parts(of: settings)
    return before + (after ?? "")
  }

  /// Whether a line has the word, except in a comment.
  func mentions(_ word: String, in settings: String) -> Bool {
    Self.lines(of: settings).contains { line in
      let line = " \(line.drop(while: \.isWhitespace))"
      return line[..<(line.firstRange(of: " \(comment.prefix(1))")?.lowerBound ?? line.endIndex)].contains(word)
    }
  }

  /// A line feed ends each; to a `String`, CR and LF are one character.
  private static func lines(of settings: String) -> [String] {
    settings.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
  }

  /// What is before and after the block; `nil` after it if there is none. An editor may have ended its lines by CR LF.
  private func parts(of settings: String) throws(Unended) -> (before: String, after: String?) {
    let lines = Self.lines(of: settings)
    func isBegin(_ line: String) -> Bool { [begin, "\(begin)\r"].contains(line) }
    guard let first = lines.firstIndex(where: isBegin) else { return (settings, nil) }
    let behind = lines[(first + 1)...]
    // Lines of the user's stand behind a comment that is not ended.
    let last = behind.firstIndex { [end, "\(end)\r"].contains($0) }
    guard let last, !behind[..<last].contains(where: isBegin) else { throw Unended() }
    let before = lines[..<first].map { $0 + "\n" }.joined()
    return (before, lines[(last + 1)...].joined(separator: "\n"))
  }
}
