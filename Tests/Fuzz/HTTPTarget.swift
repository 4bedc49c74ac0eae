// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOEmbedded
internal import RestorationTransport
internal import RestorationWire

extension FuzzTarget {
  /// Requests over HTTP: headers, chunks and bodies through the connection of a real listener. However they are cut in
  /// pieces, the responses are the same.
  static let http = FuzzTarget(
    name: "http",
    seeds: {
      let call = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
      let parts = (call.prefix(5), call.dropFirst(5))
      let chunks = "Transfer-Encoding: chunked\r\n\r\n5\r\n\(parts.0)\r\n23;x=y\r\n\(parts.1)\r\n0\r\n\r\n"
      let requests = [
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(call.utf8.count)\r\n\r\n\(call)",
        "POST /rpc HTTP/1.1\r\nHost: x\r\n\(chunks)",
        "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n[]",
        "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n",
        "GET http://x/page?q HTTP/1.1\r\nHost: x\r\n\r\nHEAD /page HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
      ]
      return requests.map { [7] + Array($0.utf8) } + [[3] + Array((requests[0] + requests[1]).utf8)]
    },
    run: { input in
      guard let first = input.first else { return }
      let step = Int(first) + 1
      let whole = answers(to: input.dropFirst(), step: .max)
      let pieces = answers(to: input.dropFirst(), step: step)
      demand(whole == pieces, "\(String(decoding: pieces, as: UTF8.self))\n in pieces of \(step)")
    }
  )

  private static func answers(to input: ArraySlice<UInt8>, step: Int) -> [UInt8] {
    let loop = EmbeddedEventLoop()
    let channel = EmbeddedChannel(loop: loop)
    let settings = ConnectionSettings(limits: TransportLimits(), vocabulary: EncodedState.vocabulary, pages: ["/page"])
    let peer = PeerCredentials(pid: 1, uid: 1_000, gid: 1_000, process: nil)
    var output: [UInt8] = []
    do {
      try settings.install(on: channel, peer: peer, delegate: Echo())
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/fuzz")).wait()
      for start in stride(from: input.startIndex, to: input.endIndex, by: min(step, max(1, input.count))) {
        guard channel.isActive else { break }
        channel.pipeline.fireChannelRead(ByteBuffer(bytes: input[start...].prefix(step)))
        channel.pipeline.fireChannelReadComplete()
        loop.run()
        while let bytes = try channel.readOutbound(as: ByteBuffer.self) { output += bytes.readableBytesView }
      }
    } catch {
      preconditionFailure("a channel in memory takes every handler: \(error)")
    }
    channel.close(promise: nil)
    loop.run()
    return output
  }
}

/// Answers each request with its method's name.
private final class Echo: ConnectionDelegate {
  func connectionOpened(_ connection: Connection) {}

  func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    guard case .request(let call, let request) = delivery else { return }
    connection.respond(to: call, with: .result(JSONText(.string(request.method))))
  }

  func requested(_ page: String, _ call: Conversation.Call, from connection: Connection) {
    connection.respond(to: call, mediaType: "text/plain", page: page)
  }

  func callsAbandoned(_ callIDs: [Int], by connection: Connection) {}
  func connectionClosed(_ connection: Connection, reason: CloseReason) {}
}
