// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import InMemory
internal import NIOCore
internal import NIOEmbedded
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire

/// A process's end of a connection.
protocol ConnectionUser: AnyObject {
  func received(_ bytes: ByteBuffer)
  /// The broker, or its process, has ended the connection.
  func connectionEnded()
  /// Sends what waits; returns whether there was anything.
  func sendOutput() -> Bool
}

/// A connection to the broker, and the broker's end of it.
final class SimulatedConnection {
  weak var user: (any ConnectionUser)?
  private unowned let world: World
  private let process: MemoryProcess
  private let confinement: String?
  /// The broker's end.
  private var connection: Connection
  private var channel: EmbeddedChannel
  /// What a broker that is stopping, or frozen, does not read.
  private var held: ByteBuffer?

  init(of process: MemoryProcess, confinedTo confinement: String? = nil, to world: World) {
    (self.world, self.process, self.confinement) = (world, process, confinement)
    (channel, connection) = Self.open(process, confinement, nil, to: world)
  }

  private static func open(
    _ process: MemoryProcess,
    _ confinement: String?,
    _ snapshot: ConnectionSnapshot?,
    to world: World
  ) -> (EmbeddedChannel, Connection) {
    let channel = EmbeddedChannel(loop: world.loop.channels)
    var limits = TransportLimits(world.limits)
    limits.lingerSeconds = 0
    let settings = ConnectionSettings(limits: limits, vocabulary: EncodedState.vocabulary)
    let peer = PeerCredentials(pid: process.pid, uid: 1_000, gid: 1_000, process: nil)
    do {
      let connection = try settings.install(
        on: channel,
        peer: peer,
        confinement: confinement,
        continuing: snapshot,
        books: world.books,
        delegate: world.service
      )
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/simulation")).wait()
      return (channel, connection)
    } catch {
      preconditionFailure("a channel in memory takes every handler: \(error)")
    }
  }

  var id: ConnectionID { connection.id }
  var isOpen: Bool { channel.isActive }

  func send(_ bytes: ByteBuffer) {
    guard isOpen else { return }
    guard held == nil else {
      held?.writeImmutableBuffer(bytes)
      return
    }
    channel.pipeline.fireChannelRead(bytes)
    channel.pipeline.fireChannelReadComplete()
  }

  func hold() { if isOpen, held == nil { held = ByteBuffer() } }

  func letGo() {
    let held = held
    self.held = nil
    if let held { send(held) }
  }

  // MARK: Brokers that end in order

  func drain() {
    guard isOpen else { return }
    hold()
    connection.drain()
  }

  /// What the next broker continues the connection by; `nil` if it cannot.
  func leave() -> ConnectionSnapshot? {
    guard isOpen, let snapshot = connection.leave() else { return nil }
    channel.close(promise: nil)
    return snapshot
  }

  /// By the next broker.
  func goOn(from snapshot: ConnectionSnapshot) {
    (channel, connection) = Self.open(process, confinement, snapshot, to: world)
    letGo()
  }

  // MARK: Ending

  /// The user closes it.
  func close() {
    user = nil
    if isOpen { channel.close(promise: nil) }
    world.forget(self)
  }

  /// Its broker is no more.
  func cut() {
    let user = user
    close()
    user?.connectionEnded()
  }

  /// Moves what both ends have sent; returns whether there was anything.
  func move() -> Bool {
    var isNew = user?.sendOutput() ?? false
    while let bytes = (try? channel.readOutbound(as: ByteBuffer.self)) ?? nil {
      isNew = true
      user?.received(bytes)
    }
    if !isOpen { cut() }
    return isNew
  }
}
