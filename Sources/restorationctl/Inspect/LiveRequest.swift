// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1

/// What a request to a live page asks for.
enum LiveRequest {
  case page
  /// What is shown, as soon as it is not what was read at this time.
  case changes(since: String)
  /// Says nothing of what there is.
  case refused(HTTPResponseStatus)
}

/// Where a live page is, and who gets it. Pure: the head of a request in, what it asks for out.
package struct LiveAddress: Sendable {
  /// Where every machine can listen.
  static let usualHost = "127.0.0.1"

  let host: String
  let port: Int
  let token: String

  /// One of the addresses of this machine alone, which on Linux are all of 127.0.0.0/8. A browser keeps what a page
  /// leaves by address and port: another user who has listened there before could have left a worker for this page.
  static func newHost() -> String {
    var generator = SystemRandomNumberGenerator()
    return "127" + (0..<3).map { _ in ".\(Int.random(in: 1...254, using: &generator))" }.joined()
  }

  /// 128 random bits, which cannot be guessed.
  static func newToken() -> String {
    var generator = SystemRandomNumberGenerator()
    return (0..<32).map { _ in String(Int.random(in: 0..<16, using: &generator), radix: 16) }.joined()
  }

  package var text: String { "http://\(host):\(port)/\(token)/" }

  /// Whatever is asked for, these come first: a page of another site that leads its own name to this address names that
  /// name, and a request that another site makes says so.
  func request(_ head: HTTPRequestHead) -> LiveRequest {
    let headers = head.headers
    // Not `localhost`, which may lead to `::1` first, where anybody else can listen.
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
