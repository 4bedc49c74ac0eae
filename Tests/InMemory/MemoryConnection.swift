// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOEmbedded
internal import RestorationBroker
package import RestorationTransport
internal import RestorationWire

/// A client's end of a connection to a broker in memory: bytes out, frames in.
package final class MemoryConnection {
  package let process: MemoryProcess
  /// The broker's end.
  package let connection: Connection
  /// Takes each frame that comes; else they are kept in `frames`.
  var whenReceived: ((String) -> Void)?
  /// Told when everything that came was taken; returns whether it did anything.
  var whenTaken: (() -> Bool)?
  /// `nil` as soon as it ends: then only its own end of the connection is closed.
  package private(set) weak var broker: MemoryBroker?
  private let channel: EmbeddedChannel
  private var input: [UInt8] = []
  /// What came and nothing has taken yet.
  package var frames: [String] = []

  init(of process: MemoryProcess, uid: Int64, confinement: String? = nil, to broker: MemoryBroker) {
    (self.process, self.broker) = (process, broker)
    channel = EmbeddedChannel(loop: broker.loop.channels)
    var limits = TransportLimits(broker.limits)
    // Nothing is lost where there is no kernel.
    limits.lingerSeconds = 0
    let settings = ConnectionSettings(
      limits: limits,
      vocabulary: EncodedState.vocabulary,
      pages: MetricsPage.paths
    )
    let peer = PeerCredentials(pid: process.pid, uid: UInt32(uid), gid: UInt32(uid), process: nil)
    do {
      connection = try settings.install(
        on: channel,
        peer: peer,
        confinement: confinement,
        books: broker.books,
        delegate: broker.service
      )
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/memory")).wait()
    } catch {
      preconditionFailure("a channel in memory takes every handler: \(error)")
    }
  }

  package var isOpen: Bool { channel.isActive }

  package func send(bytes: [UInt8]) {
    // A broker that has closed the connection reads nothing.
    if isOpen {
      let bytes = ByteBuffer(bytes: bytes)
      work {
        channel.pipeline.fireChannelRead(bytes)
        channel.pipeline.fireChannelReadComplete()
      }
    }
    broker?.run()
  }

  private func work(_ body: () -> Void) { if let broker { broker.work(body) } else { body() } }

  package func halfClose() {
    channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    broker?.run()
  }

  package func close() {
    cut()
    broker?.forget(self)
  }

  /// The same for a broker that is no more.
  package func cut() {
    if isOpen { work { channel.close(promise: nil) } }
    (whenReceived, whenTaken) = (nil, nil)
  }

  /// Takes what the broker has sent; returns whether there was anything.
  func takeOutput() -> Bool {
    var isNew = false
    while let bytes = (try? channel.readOutbound(as: ByteBuffer.self)) ?? nil {
      isNew = true
      input += bytes.readableBytesView
    }
    while let frame = nextFrame() {
      if let whenReceived { whenReceived(frame) } else { frames.append(frame) }
    }
    let isTaken = whenTaken?() ?? false
    if !isOpen { close() }
    return isTaken || isNew
  }

  /// The next line, or the body of the next HTTP response that has one.
  private func nextFrame() -> String? {
    while !input.isEmpty {
      guard input.starts(with: "HTTP/".utf8) else {
        guard let end = input.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        defer { input.removeSubrange(...end) }
        return String(decoding: input[..<end], as: UTF8.self)
      }
      let lines = input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      let head = lines.prefix { $0 != [UInt8(ascii: "\r")] }
      guard head.count < lines.count else { return nil }
      let begin = head.reduce(2) { $0 + $1.count + 1 }
      let length = head.lazy.map { String(decoding: $0, as: UTF8.self) }.first { $0.hasPrefix("Content-Length: ") }
      let count = length.flatMap { Int($0.dropFirst(16).dropLast()) } ?? 0
      guard input.count >= begin + count else { return nil }
      defer { input.removeSubrange(..<(begin + count)) }
      if count > 0 { return String(decoding: input[begin..<(begin + count)], as: UTF8.self) }
    }
    return nil
  }
}
