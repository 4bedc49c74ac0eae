// SPDX-License-Identifier: Apache-2.0

internal import TestSupport

/// Programs under callgrind, which counts the instructions that they carry out in user space. Valgrind shows each program
/// the same processor, so that the same build takes the same way everywhere.
enum Callgrind {
  /// Whether valgrind is installed; in CI it must be.
  static let isUsable = Environment.isCI || (try? ChildProcess.run(["valgrind", "--version"]).end) == .exit(0)

  static let environment: [String: String?] = ["SWIFT_DETERMINISTIC_HASHING": "1", "SWIFT_BACKTRACE": "enable=no"]

  /// A copy of a program without its debug information, which valgrind does not understand.
  static func copy(of program: String, in directory: ScratchDirectory) throws -> String {
    let copy = directory.file("program")
    let (end, _, errors) = try ChildProcess.run(["strip", "--strip-debug", "-o", copy, program])
    guard end == .exit(0) else { throw TestFailure("strip \(program): \(end) \(errors)") }
    return copy
  }

  /// Counts what is done in functions of a name, or everything.
  static func command(_ command: [String], into file: String, options: [String] = []) -> [String] {
    ["valgrind", "--quiet", "--tool=callgrind", "--combine-dumps=yes", "--callgrind-out-file=\(file)"] + options
      + command
  }

  /// The instructions of each dump in the file.
  static func counts(in file: String) throws -> [Int] {
    try Files.text(file).split(separator: "\n").compactMap { line in
      line.hasPrefix("totals: ") ? Int(line.dropFirst(8)) : nil
    }
  }
}
