// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// What a process of the sample is for.
enum Role: String {
  case windows
  case documents

  var className: String { self == .windows ? "SourceWindow" : "SourceDocument" }

  func objects(of files: [SourceText]) -> [EditedObject] {
    switch self {
    case .documents:
      files.map { EditedObject(identifier: $0.name, parent: $0.folder, file: $0) }
    case .windows:
      Set(files.map(\.folder)).sorted().map { EditedObject(identifier: $0, parent: nil, file: nil) }
    }
  }
}

/// A window or a document, with states as they change while somebody types.
struct EditedObject {
  let identifier: String
  /// Identifier of the window, which another process has.
  let parent: String?
  let file: SourceText?
  var reference: ObjectReference = 0

  init(identifier: String, parent: String?, file: SourceText?) {
    self.identifier = identifier
    self.parent = parent
    self.file = file
  }

  var path: String { parent.map { "\($0)/\(identifier)" } ?? identifier }

  /// Where the cursor is next, what is selected, how far the text is scrolled; or where the window is.
  func nextState() -> String {
    guard let file else {
      let frame = (0..<4).map { _ in String(Int.random(in: 0...2_000)) }.joined(separator: ",")
      return #"{"title":\#(quoted(identifier)),"frame":[\#(frame)],"zoomed":\#(Bool.random())}"#
    }
    let line = file.lines.indices.randomElement() ?? 0
    let text = file.lines.isEmpty ? "" : file.lines[line]
    let column = Int.random(in: 0...text.count)
    let scroll = Double(line) / Double(max(1, file.lines.count))
    return
      #"{"cursor":{"line":\#(line + 1),"column":\#(column + 1)},"selection":\#(quoted(String(text.prefix(column)))),"#
      + #""scroll":\#(scroll),"lines":\#(file.lines.count)}"#
  }
}

/// Text as a JSON string.
private func quoted(_ text: String) -> String {
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
