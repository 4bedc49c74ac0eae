// SPDX-License-Identifier: Apache-2.0

/// How the messages of a connection are separated; decided once, by the peer's first bytes.
package enum Framing: Hashable, Sendable {
  /// One JSON text after the other; ours are one line each.
  case jsonStream
  /// Each text after a header section with its length, as in LSP.
  case contentLength
  /// Requests and responses of HTTP/1.1. Ours are responses with status 200; the others are the transport's.
  ///
  /// - Parameter keepsAlive: whether the connection is used for another request after this one.
  case http(keepsAlive: Bool)

  /// Whether the peer can get messages that it did not request.
  package var canBeCalled: Bool {
    switch self {
    case .jsonStream, .contentLength: true
    case .http: false
    }
  }

  /// Frames the text from `start` to the end of `out`.
  func enclose(_ out: inout [UInt8], from start: Int) {
    switch self {
    case .jsonStream:
      out.append(UInt8(ascii: "\n"))
    case .contentLength:
      out.insert(contentsOf: "Content-Length: \(out.count - start)\r\n\r\n".utf8, at: start)
    case .http(let keepsAlive):
      let head = Self.responseHead(status: "200 OK", length: out.count - start, keepsAlive: keepsAlive)
      out.insert(contentsOf: head.utf8, at: start)
    }
  }

  /// The head of an HTTP response with a body.
  ///
  /// - Parameter headers: further lines, each with its end.
  package static func responseHead(
    status: String,
    mediaType: String = "application/json",
    length: Int,
    keepsAlive: Bool,
    headers: String = ""
  ) -> String {
    "HTTP/1.1 \(status)\r\nContent-Type: \(mediaType)\r\nContent-Length: \(length)\r\n"
      + headers + (keepsAlive ? "\r\n" : "Connection: close\r\n\r\n")
  }

  /// Whether a media type has the charset UTF-8 or none.
  package static func isUTF8(contentType: String) -> Bool {
    for parameter in contentType.lowercased().split(separator: ";").dropFirst() {
      let parameter = parameter.filter { $0 != " " && $0 != "\t" && $0 != "\"" }
      if parameter.hasPrefix("charset="), !["charset=utf-8", "charset=utf8"].contains(parameter) { return false }
    }
    return true
  }
}

extension Framing? {
  /// Frames the text from `start` to the end of `out`. A peer whose framing is unknown gets lines.
  func enclose(_ out: inout [UInt8], from start: Int) { (self ?? .jsonStream).enclose(&out, from: start) }
}
