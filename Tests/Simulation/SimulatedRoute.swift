// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import InMemory
internal import NIOCore
internal import NIOEmbedded
internal import RestorationBroker
internal import RestorationClient
internal import RestorationTransport
internal import SeededRandom

/// How the library reaches the broker in one process's life. Used from one thread.
final class SimulatedRoute: BrokerRoute, @unchecked Sendable {
  let path = "/simulation"
  private let process: MemoryProcess
  private unowned let world: World
  private var hasEnded = false
  /// There is no way to the broker before.
  private var awayUntil: Int64 = 0
  private var ends: [LibraryEnd] = []
  private var chance: SeededGenerator

  init(of process: MemoryProcess, in world: World) {
    (self.process, self.world) = (process, world)
    chance = SeededGenerator(seed: UInt64(process.pid))
  }

  var eventLoop: any EventLoop { world.processes }
  var pid: Int64 { Int64(process.pid) }

  /// Whether nothing that was sent can still take effect.
  var isDone: Bool { hasEnded && ends.allSatisfy { world.isDone(with: $0.connection) } }

  nonisolated(nonsending) func connect(
    _ settings: ConnectionSettings,
    delegate: any ConnectionDelegate
  ) async throws(TransportError) {
    guard !hasEnded else { throw TransportError(.refused, "the process has ended") }
    guard world.nowMilliseconds >= awayUntil else { throw TransportError(.refused, "the process is away") }
    if Int.random(in: 0..<4, using: &chance) == 0 { throw TransportError(.busy, "the broker's queue is full") }
    let end = LibraryEnd(of: world.connect(process), settings, on: world.processes)
    ends.append(end)
    end.open(settings, delegate)
  }

  func cut(forMilliseconds milliseconds: Int64 = 0) {
    awayUntil = world.nowMilliseconds + milliseconds
    for end in ends { end.connectionEnded() }
  }

  func end(isCrash: Bool) {
    hasEnded = true
    process.end(isCrash ? .signalled(signal: 11) : .exited(code: 0), isNoticed: true)
    cut()
  }
}

/// The library's end of a connection.
private final class LibraryEnd: ConnectionUser {
  let connection: SimulatedConnection
  private let channel: EmbeddedChannel

  init(of connection: SimulatedConnection, _ settings: ConnectionSettings, on loop: TestEventLoop) {
    self.connection = connection
    channel = EmbeddedChannel(loop: loop.channels)
    connection.user = self
  }

  /// May be used before this returns.
  func open(_ settings: ConnectionSettings, _ delegate: any ConnectionDelegate) {
    var settings = settings
    settings.limits.lingerSeconds = 0
    do {
      let broker = PeerCredentials(pid: 1, uid: 1_000, gid: 1_000, process: nil)
      try settings.install(on: channel, peer: broker, delegate: delegate)
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/simulation")).wait()
    } catch {
      preconditionFailure("a channel in memory takes every handler: \(error)")
    }
  }

  func received(_ bytes: ByteBuffer) {
    guard channel.isActive else { return }
    channel.pipeline.fireChannelRead(bytes)
    channel.pipeline.fireChannelReadComplete()
  }

  func connectionEnded() {
    connection.close()
    if channel.isActive { channel.close(promise: nil) }
  }

  func sendOutput() -> Bool {
    var isNew = false
    while let bytes = (try? channel.readOutbound(as: ByteBuffer.self)) ?? nil {
      isNew = true
      connection.send(bytes)
    }
    if !channel.isActive { connection.close() }
    return isNew
  }
}
