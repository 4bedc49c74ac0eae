// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A text that is edited in the user's editor, in a file that only the user can read.
struct Draft {
  private let directory: String
  private let former: String

  var path: String { "\(directory)/state.json" }

  init(_ text: String) throws {
    // The first is in memory, and ends with the user's last session.
    let folder = Terminal.variable("XDG_RUNTIME_DIR") ?? Terminal.variable("TMPDIR") ?? "/tmp"
    directory = try OutputFile.reporting(hint: "Set TMPDIR, or make room there.") { () throws(OutputFile.Fault) in
      let directory = try OutputFile.makePrivateDirectory(in: folder)
      try OutputFile(path: "\(directory)/state.json", isChosen: false).write(text)
      return directory
    }
    former = text
  }

  var isThere: Bool { access(path, F_OK) == 0 }

  func remove() {
    // An editor may have left a copy beside it.
    for name in [path, "\(path)~"] { unlink(name) }
    rmdir(directory)
  }

  /// The text when the editor has ended.
  func edited() throws -> String {
    let editor = Terminal.variable("VISUAL") ?? Terminal.variable("EDITOR") ?? "editor"
    // The editor inherits ignored signals, but expects to be ended by this one.
    signal(SIGPIPE, SIG_DFL)
    let status = TimeLimit.suspended { system("\(editor) \(path.shellWord)") }
    signal(SIGPIPE, SIG_IGN)
    let exit = (status >> 8) & 0xff
    if status == 0 { return try text() }
    let isChanged = (try? text()) != former
    if !isChanged { remove() }
    if exit == 127 || exit == 126 {
      let hint = "Set VISUAL or EDITOR to the command of one: EDITOR=nano."
      throw Failure(ExitStatus.usage, kind: "usage", "the editor '\(editor)' cannot be run", hint: hint)
    }
    let end = status & 0x7f == 0 ? "with status \(exit)" : "by signal \(status & 0x7f)"
    let hint = isChanged ? "Your text is in \(path)." : nil
    let message = "the editor ended \(end), and nothing was stored"
    throw Failure(ExitStatus.refused, kind: "declined", message, hint: hint)
  }

  private func text() throws -> String {
    do throws(OutputFile.Fault) {
      return try OutputFile.read(path)
    } catch {
      throw Failure(ExitStatus.usage, kind: "usage", error.message, hint: "Save the text in the editor as UTF-8.")
    }
  }
}

extension String {
  /// As one word of a shell, whatever is in it; without quotes where none are needed, because people read it.
  var shellWord: String {
    !isEmpty && utf8.allSatisfy(Self.isPlain) ? self : "'" + replacing("'", with: #"'\''"#) + "'"
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-_./@:+,%".utf8.contains(byte)
    }
  }
}
