// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport

/// The files of the repository, as text.
struct SourceFile: Sendable, CustomStringConvertible {
  /// Relative to the repository's top directory.
  let path: String
  let lines: [String]

  var description: String { path }
  var text: String { lines.joined(separator: "\n") }
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  init(_ path: String) throws {
    self.path = path
    var text = try Files.text("\(Products.repository)/\(path)")
    if text.hasSuffix("\n") { text.removeLast() }
    lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    code = path.hasSuffix(".swift") ? lines.map(Self.code) : []
  }

  /// Lines without comments, and without the contents of strings.
  let code: [String]

  private static func code(of line: String) -> String {
    var code: [UInt8] = []
    var isString = false
    var previous: UInt8 = 0
    for byte in line.utf8 {
      if byte == UInt8(ascii: "\""), previous != UInt8(ascii: "\\") { isString.toggle() }
      if !isString, byte == UInt8(ascii: "/"), previous == byte {
        code.removeLast()
        break
      }
      if !isString { code.append(byte) }
      previous = byte
    }
    return String(decoding: code, as: UTF8.self)
  }

  /// Swift of the product, and of its tests.
  static let sources = Result { try all("Sources", ".swift") }
  static let tests = Result { try all("Tests", ".swift") }

  /// Files below a directory with one of these endings.
  static func all(_ directory: String, _ endings: String...) throws -> [SourceFile] {
    let top = "\(Products.repository)/\(directory)"
    return try Files.tree(top).filter { path in endings.contains { path.hasSuffix($0) } }
      .map { try SourceFile(directory.isEmpty ? $0 : "\(directory)/\($0)") }
  }
}

extension String {
  /// As `contains`, of which a hundred thousand lines would take seconds where tests are not optimised.
  func has(_ word: String) -> Bool { strstr(self, word) != nil }
}
