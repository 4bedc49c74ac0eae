// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// A source file, as named on standard input: `PATH<tab>WINDOW<tab>DOCUMENT`.
struct SourceText: Sendable {
  let path: String
  /// Identifiers of the window that shows the file, and of its document.
  let window: String
  let name: String
  let lines: [String]

  init(_ line: String) throws {
    let fields = line.split(separator: "\t").map(String.init)
    guard fields.count == 3 else { throw UnknownCommand(command: fields) }
    (path, window, name) = (fields[0], fields[1], fields[2])
    lines = try TextFile.lines(of: path)
  }
}

/// A window or a document, with states that change while a user types.
struct EditedObject: Sendable {
  /// Names the object in the journal, wherever it moves.
  let key: String
  let identifier: String
  /// Identifier of the window, which another process has; `nil` for a window.
  let parent: String?
  /// The file that a window shows in front, or the file of a document.
  private let file: SourceText

  var isWindow: Bool { parent == nil }

  init(document file: SourceText) {
    key = file.path
    identifier = file.name
    parent = file.window
    self.file = file
  }

  private init(windowWith file: SourceText) {
    key = file.window
    identifier = file.window
    parent = nil
    self.file = file
  }

  /// A window for each folder, with its first file in front.
  static func windows(of files: [SourceText]) -> [EditedObject] {
    var seen: Set<String> = []
    return files.filter { seen.insert($0.window).inserted }.map(EditedObject.init(windowWith:))
  }

  func nextState() -> String { isWindow ? windowState() : documentState() }

  /// Where the window is and what it shows: a reference to an object of another process.
  private func windowState() -> String {
    let frame = (0..<4).map { _ in String(Int.random(in: 0...2_000)) }.joined(separator: ",")
    let front = quoted([file.window, file.name])
    return #"{"frame":[\#(frame)],"zoomed":\#(Bool.random()),"front":{"$restorable":\#(front)}}"#
  }

  /// Where the cursor is, what is selected, how far the text is scrolled.
  private func documentState() -> String {
    let line = file.lines.indices.randomElement() ?? 0
    let text = file.lines.isEmpty ? "" : file.lines[line]
    let column = Int.random(in: 0...text.count)
    let scroll = Double(line) / Double(max(1, file.lines.count))
    return
      #"{"cursor":{"line":\#(line + 1),"column":\#(column + 1)},"selection":\#(quoted(String(text.prefix(column)))),"#
      + #""scroll":\#(scroll),"lines":\#(file.lines.count)}"#
  }
}

/// A path as JSON.
func quoted(_ path: IdentifierPath?) -> String {
  path.map { "[\($0.components.map(quoted).joined(separator: ","))]" } ?? "null"
}

/// Text as a JSON string.
func quoted(_ text: String) -> String {
  var quoted = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": quoted += "\\\""
    case "\\": quoted += "\\\\"
    case "\u{0}"..<" ":
      let digits = String(scalar.value, radix: 16)
      quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: quoted.unicodeScalars.append(scalar)
    }
  }
  return quoted + "\""
}
