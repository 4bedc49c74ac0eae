// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// How JSON text is laid out for people or for programs. Values stay as they are: no number is rounded, no member
/// moved.
public enum JSONLayout: Hashable, Sendable {
  /// One line without white space.
  case compact
  /// One member a line, indented by two columns.
  case pretty

  /// Lays one JSON value out; no line feed follows it.
  ///
  /// Throws a `RestorationError` with code `parseError` where the text is not JSON.
  public func format(_ jsonText: String) throws -> String {
    let compact = try JSONInput.scan(jsonText, subject: "the text").compactText
    switch self {
    case .compact: return compact.string
    case .pretty:
      return String(decoding: JSONCodec.format(.text(compact), style: .pretty, sortKeys: false), as: UTF8.self)
    }
  }
}
