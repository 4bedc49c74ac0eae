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
    guard let after else { return before + (before.isEmpty || before.hasSuffix("\n") ? "" : "\n") + text }
    return before + text + after
  }

  /// The settings without such lines.
  func removed(from settings: String) throws(Unended) -> String {
    let (before, after) = try parts(of: settings)
    return before + (after ?? "")
  }

  /// What is before and after the block; `nil` after it if there is none.
  private func parts(of settings: String) throws(Unended) -> (before: String, after: String?) {
    let lines = settings.split(separator: "\n", omittingEmptySubsequences: false)
    guard let first = lines.firstIndex(where: { $0 == begin }) else { return (settings, nil) }
    let behind = lines[(first + 1)...]
    // Lines of the user's stand behind a comment that is not ended.
    guard let last = behind.firstIndex(where: { $0 == end }), !behind[..<last].contains(begin[...]) else {
      throw Unended()
    }
    let before = lines[..<first].map { $0 + "\n" }.joined()
    return (before, lines[(last + 1)...].joined(separator: "\n"))
  }
}
