// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// One thing that `doctor` has looked at.
struct Finding: JSONWritable {
  enum Verdict: String {
    case well
    /// It may be meant to be so.
    case note
    case trouble

    /// Of equal width, so that lines look the same whatever else there is.
    fileprivate var mark: TextTable.Cell {
      switch self {
      case .well: TextTable.Cell("ok  ", .green)
      case .note: TextTable.Cell("note", .yellow)
      case .trouble: TextTable.Cell("!!  ", .red)
      }
    }
  }

  let subject: String
  let verdict: Verdict
  let message: String
  /// The command that mends or explains it; `nil` if it is well.
  let command: String?

  static func well(_ subject: String, _ message: String) -> Finding {
    Finding(subject: subject, verdict: .well, message: message, command: nil)
  }

  static func note(_ subject: String, _ message: String, run command: String?) -> Finding {
    Finding(subject: subject, verdict: .note, message: message, command: command)
  }

  static func trouble(_ subject: String, _ message: String, run command: String?) -> Finding {
    Finding(subject: subject, verdict: .trouble, message: message, command: command)
  }

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("subject", subject)
      writer.member("verdict", verdict.rawValue)
      writer.member("message", message)
      writer.member("command", command)
    }
  }
}

extension [Finding] {
  var isWell: Bool { allSatisfy { $0.verdict != .trouble } }

  private static let subjectWidth = "withheld".count

  /// A line for each finding, and its command in the next line.
  func text(legend: Bool) -> String {
    var table = TextTable([TextTable.Column(""), TextTable.Column(""), TextTable.Column("", minimum: nil)])
    for finding in self {
      let subject = finding.subject + String(repeating: " ", count: Self.subjectWidth - finding.subject.count)
      table.add([finding.verdict.mark, TextTable.Cell(subject), TextTable.Cell(finding.message)])
      if let command = finding.command {
        table.add([TextTable.Cell(""), TextTable.Cell(""), TextTable.Cell("  \(command)", .bold)])
      }
    }
    // Commands are there to be copied.
    let list = table.text(header: false, width: nil)
    guard legend else { return list }
    let troubles = count { $0.verdict == .trouble }
    return list + "\n" + (troubles == 0 ? "Nothing to do.\n" : "\(Quantity.count(troubles, "thing")) to do.\n")
  }
}
