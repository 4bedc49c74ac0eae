// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// One Swift process of a sample application, an editor of source files: restoration-sample ROLE SOCKET JOURNAL
///
/// The role `windows` has a window for each folder, other roles have a document for each file they are given. The
/// process reads its files and then commands from standard input, and reports its progress on standard output, one JSON
/// object a line; `systemd/demonstration/stage.py` describes both. The journal notes every state before it is sent,
/// after it is acknowledged and when it is restored, for comparison.
@main
struct Sample {
  static func main() async {
    let arguments = CommandLine.arguments
    guard arguments.count == 4 else {
      complain("usage: restoration-sample ROLE SOCKET JOURNAL")
      exit(64)
    }
    do {
      var files: [SourceText] = []
      while let line = readLine(), !line.isEmpty { files.append(try SourceText(line)) }
      let role = arguments[1]
      let editor = try await Editor(
        role: role,
        objects: role == "windows" ? EditedObject.windows(of: files) : files.map(EditedObject.init(document:)),
        socket: arguments[2],
        journal: try Journal(appendingTo: arguments[3])
      )
      while let line = readLine() {
        try await editor.obey(line.split(separator: "\t").map(String.init))
      }
    } catch {
      complain("\(error)")
      exit(1)
    }
  }

  private static func complain(_ message: String) {
    let bytes = Array("restoration-sample: \(message)\n".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
  }
}
