// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import NIOCore
internal import NIOEmbedded
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire

/// A process's end of a connection: lines of JSON in both directions.
final class SimulatedConnection {
  var whenReceived: ((JSONValue, String) -> Void)?
  private unowned let world: World
  /// The broker's end.
  private let connection: Connection
  private let channel: EmbeddedChannel
  private var input: [UInt8] = []

  init(of process: MemoryProcess, to world: World) {
    self.world = world
    channel = EmbeddedChannel(loop: world.loop.channels)
    var limits = TransportLimits(world.limits)
    limits.lingerSeconds = 0
    let settings = ConnectionSettings(limits: limits, vocabulary: EncodedState.vocabulary)
    let peer = PeerCredentials(pid: process.pid, uid: 1_000, gid: 1_000, process: nil)
    do {
      connection = try settings.install(on: channel, peer: peer, delegate: world.service)
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/simulation")).wait()
    } catch {
      preconditionFailure("a channel in memory takes every handler: \(error)")
    }
  }

  var id: ConnectionID { connection.id }
  var isOpen: Bool { channel.isActive }

  func send(_ text: String) {
    guard isOpen else { return }
    channel.pipeline.fireChannelRead(ByteBuffer(string: text))
    channel.pipeline.fireChannelReadComplete()
  }

  func close() {
    cut()
    world.forget(self)
  }

  /// The same for a broker that is no more.
  func cut() {
    if isOpen { channel.close(promise: nil) }
    whenReceived = nil
  }

  /// Takes what the broker has sent; returns whether there was anything.
  func takeOutput() -> Bool {
    var isNew = false
    while let bytes = (try? channel.readOutbound(as: ByteBuffer.self)) ?? nil {
      isNew = true
      input += bytes.readableBytesView
    }
    while let end = input.firstIndex(of: UInt8(ascii: "\n")) {
      let line = Array(input[..<end])
      input.removeSubrange(...end)
      let text = String(decoding: line, as: UTF8.self)
      guard let value = try? JSONCodec.parse(line) else {
        world.trace.fault("not JSON: \(text.prefix(200))")
        continue
      }
      whenReceived?(value, text)
    }
    if !isOpen { close() }
    return isNew
  }
}
