// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationWire

/// The contents of a file in `~/.config/restorationd/run`.
struct RunProgram: JSONWritable {
  let arguments: [String]
  let directory: String
  /// The user's `PATH`, by which the program finds others such as its interpreter. `nil` for the manager's.
  var path: String?
  /// Whether the program begins and ends with the graphical session.
  let isGraphical: Bool

  /// The user's command, in the present directory.
  init(_ command: [String], isGraphical: Bool) throws {
    do throws(OutputFile.Fault) {
      directory = try OutputFile.currentDirectory()
    } catch {
      throw Failure(ExitStatus.refused, kind: "unusable", error.message, hint: "Change to another directory.")
    }
    arguments = [try Self.find(command[0])] + command.dropFirst()
    path = Self.path.isEmpty ? nil : Self.path.joined(separator: ":")
    self.isGraphical = isGraphical
    // Invalid UTF-8 was replaced by this character at the start.
    if directory.unicodeScalars.contains("\u{fffd}") {
      throw Self.usage("'\(directory)' is not UTF-8", hint: "Change to another directory.")
    }
  }

  /// `nil` if the text is not one that `run` writes.
  init?(_ text: String) {
    guard let object = try? JSONCodec.parse(text.utf8).object, object.count == (object["path"] == nil ? 3 : 4),
      let words = object["arguments"]?.array, let directory = object["directory"]?.string,
      let isGraphical = object["graphical"]?.bool
    else { return nil }
    let arguments = words.compactMap(\.string)
    let path = object["path"]?.string
    guard object["path"] == nil || path != nil else { return nil }
    let isComplete = arguments.count == words.count && arguments.first?.hasPrefix("/") == true
    // A NUL would end an argument early.
    guard isComplete, directory.hasPrefix("/"),
      ([directory, path ?? ""] + arguments).allSatisfy({ !$0.utf8.contains(0) })
    else { return nil }
    (self.arguments, self.directory, self.path, self.isGraphical) = (arguments, directory, path, isGraphical)
  }

  func writeJSON(to writer: inout JSONWriter) { writer.object(writeMembers) }

  func writeMembers(to writer: inout JSONWriter) {
    writer.member("arguments", arguments)
    writer.member("directory", directory)
    writer.member("graphical", isGraphical)
    writer.member("path", ifPresent: path)
  }

  /// Whether both run the same program in the same directory, however its path is spelled.
  func runsTheSame(as other: RunProgram) -> Bool {
    // Byte for byte: equal strings may differ in their bytes.
    resolved.elementsEqual(other.resolved) { $0.utf8.elementsEqual($1.utf8) }
  }

  /// Directory, program and arguments. A link to the program is not resolved: many programs act by their name.
  private var resolved: [String] {
    let words = arguments[0].split(separator: "/")
    let bytes = realpath("/" + words.dropLast().joined(separator: "/"), nil)
    defer { free(bytes) }
    guard let bytes, let way = String(validatingCString: bytes) else { return [directory] + arguments }
    return [directory, "\(way)/\(words.last ?? "")"] + arguments.dropFirst()
  }

  var command: String { arguments.joined(separator: " ") }

  /// The absolute directories of `PATH`: relative ones depend on the present directory.
  private static var path: [Substring] {
    (Terminal.variable("PATH") ?? "").split(separator: ":").filter { $0.hasPrefix("/") && !$0.contains("\u{fffd}") }
  }

  /// Whether `PATH` leads to a program.
  static func isFound(_ name: String) -> Bool { (try? find(name)) != nil }

  /// Found by `PATH` unless the name has a slash.
  static func find(_ name: String) throws -> String {
    var candidates = Self.path.map { "\($0)/\(name)" }
    if name.contains("/") {
      do throws(OutputFile.Fault) {
        candidates = [try OutputFile.absolute(name)]
      } catch {
        throw usage(error.message, hint: "Give the program's whole path.")
      }
    }
    guard let path = candidates.first(where: isProgram) else {
      throw usage("'\(name)' is not an executable program", hint: "Give its path, or one that PATH leads to.")
    }
    return path
  }

  private static func isProgram(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
  }

  private static func usage(_ message: String, hint: String) -> Failure {
    Failure(ExitStatus.usage, kind: "usage", message, hint: hint)
  }
}
