// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1

enum LiveRequest {
  case page
  /// The next reading made after this time, as soon as there is one.
  case changes(since: String)
  /// The response has no content.
  case refused(HTTPResponseStatus)
}

/// The address of a live page and its access checks. Pure: the head of a request in, its meaning out.
package struct LiveAddress: Sendable {
  /// Every machine can listen there.
  static let usualHost = "127.0.0.1"

  let host: String
  let port: Int
  let token: String

  /// A random one of this machine's loopback addresses, which on Linux are all of 127.0.0.0/8. A browser stores a
  /// page's data by address and port: another user who had listened there before could have left a worker for this
  /// page.
  static func newHost() -> String {
    var generator = SystemRandomNumberGenerator()
    return "127" + (0..<3).map { _ in ".\(Int.random(in: 1...254, using: &generator))" }.joined()
  }

  /// 128 random bits.
  static func newToken() -> String {
    var generator = SystemRandomNumberGenerator()
    return (0..<32).map { _ in String(Int.random(in: 0..<16, using: &generator), radix: 16) }.joined()
  }

  package var text: String { "http://\(host):\(port)/\(token)/" }

  /// Checks these first: a page of another site whose name leads to this address sends that name as host, and a request
  /// of another site says so.
  func request(_ head: HTTPRequestHead) -> LiveRequest {
    let headers = head.headers
    // Not `localhost`, which may lead to `::1` first, where others can listen.
    guard headers["host"] == ["\(host):\(port)"],
      headers["sec-fetch-site"].allSatisfy({ $0 == "none" || $0 == "same-origin" })
    else { return .refused(.forbidden) }
    guard head.method == .GET else { return .refused(.methodNotAllowed) }
    guard !headers.contains(name: "content-length"), !headers.contains(name: "transfer-encoding") else {
      return .refused(.badRequest)
    }
    let parts = head.uri.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].isEmpty, isToken(parts[1]) else { return .refused(.notFound) }
    if parts[2].isEmpty { return .page }
    let changes = "changes/"
    guard parts[2].hasPrefix(changes) else { return .refused(.notFound) }
    return .changes(since: String(parts[2].dropFirst(changes.count)))
  }

  /// Takes the same time wherever the first difference is.
  private func isToken(_ text: Substring) -> Bool {
    guard text.utf8.count == token.utf8.count else { return false }
    return zip(text.utf8, token.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

/// One response; its connection is closed after it.
struct LiveResponse {
  var status = HTTPResponseStatus.ok
  var mediaType = "text/plain; charset=utf-8"
  /// `nil` if there is no content.
  var body: ByteBuffer?

  var head: HTTPResponseHead {
    var headers: HTTPHeaders = [
      "Connection": "close", "Cache-Control": "no-store",
      "Content-Security-Policy": "\(InspectPage.policy(isLive: true)); frame-ancestors 'none'",
      "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
    ]
    if body != nil { headers.add(name: "Content-Type", value: mediaType) }
    if status != .noContent { headers.add(name: "Content-Length", value: String(body?.readableBytes ?? 0)) }
    if status == .methodNotAllowed { headers.add(name: "Allow", value: "GET") }
    return HTTPResponseHead(version: .http1_1, status: status, headers: headers)
  }
}
