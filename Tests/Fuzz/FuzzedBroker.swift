// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import Logging
internal import NIOCore
internal import NIOEmbedded
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire

/// The broker's service with time and processes in memory. It must write nothing but JSON, and end when it is told.
final class FuzzedBroker {
  private let loop = TestEventLoop()
  private let host: MemoryHost
  private let service: BrokerService
  private var peers: [FuzzedPeer] = []
  private var lastPID: Int64 = 1

  init(limits: Limits = Limits(), store: (TestEventLoop) throws -> any ArchiveStore) {
    let (loop, numbers) = (loop, NIOLoopBoundBox<UInt64>(1, eventLoop: loop))
    host = MemoryHost(on: loop)
    do {
      service = BrokerService(
        on: loop,
        limits: limits,
        settings: CoreSettings(
          version: "1.0",
          systemVersion: "1",
          random: {
            numbers.value += 1
            return (numbers.value, numbers.value)
          }
        ),
        store: try store(loop),
        processes: host,
        manager: host,
        wallMilliseconds: { 1_700_000_000_000 + Int64(loop.now.uptimeNanoseconds / 1_000_000) },
        logger: Logger(label: "fuzz") { _ in WrittenLog() },
        whenFatal: { preconditionFailure("fatal: \($0)") }
      )
    } catch {
      preconditionFailure("no store: \(error)")
    }
  }

  /// - Parameter context: what another broker is said to have noted of the connection, which goes on.
  func connect(confinement: String? = nil, adopting context: [UInt8]? = nil) -> FuzzedPeer {
    lastPID += 1
    let delegate: any ConnectionDelegate = if let context { Adopting(context, by: service) } else { service }
    var limits = TransportLimits()
    // Nothing is lost where there is no kernel.
    limits.lingerSeconds = 0
    let settings = ConnectionSettings(limits: limits, vocabulary: EncodedState.vocabulary)
    let process = host.process(lastPID, unit: nil)
    let peer = FuzzedPeer(process, confinement: confinement, settings, delegate, on: loop)
    peers.append(peer)
    run()
    return peer
  }

  /// Runs until nothing is left to do at this moment.
  func run() { repeat { loop.run() } while peers.reduce(false) { $1.takeOutput() || $0 } }

  func advance(milliseconds: Int64) {
    let end = loop.now + .milliseconds(milliseconds)
    var isMore = true
    while isMore {
      isMore = loop.advance(to: end)
      run()
    }
  }

  func kill(_ peer: FuzzedPeer) {
    peer.close()
    peer.process.end(.unknown, isNoticed: true)
    peers.removeAll { $0 === peer }
    run()
  }

  /// Ends it in order.
  func stop() {
    let (hasStopped, loop) = (NIOLoopBoundBox(false, eventLoop: loop), loop)
    service.assumeIsolated { service in
      _ = Task {
        await withTaskExecutorPreference(loop) {
          await service.prepareToStop()
          await service.stop()
        }
        hasStopped.value = true
      }
    }
    run()
    for _ in 0..<10 where !hasStopped.value { advance(milliseconds: 10_000) }
    demand(hasStopped.value, "the broker does not end")
    for peer in peers { peer.close() }
    loop.run()
    loop.cancelTimers()
    loop.run()
  }
}

/// A process and its connection.
final class FuzzedPeer {
  let process: MemoryProcess
  /// Calls of the broker that have no answer, the oldest first.
  private(set) var calls: [Int64] = []
  /// The last message that it got.
  private(set) var last: JSONSlice?
  private let channel: EmbeddedChannel
  private var input: [UInt8] = []

  init(
    _ process: MemoryProcess,
    of uid: UInt32 = 1_000,
    confinement: String? = nil,
    _ settings: ConnectionSettings,
    _ delegate: any ConnectionDelegate,
    on loop: TestEventLoop
  ) {
    self.process = process
    channel = EmbeddedChannel(loop: loop.channels)
    let peer = PeerCredentials(pid: process.pid, uid: uid, gid: 1_000, process: nil)
    do {
      try settings.install(on: channel, peer: peer, confinement: confinement, delegate: delegate)
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/fuzz")).wait()
    } catch {
      preconditionFailure("a channel in memory takes every handler: \(error)")
    }
  }

  var isOpen: Bool { channel.isActive }

  func send(_ bytes: some Sequence<UInt8>) {
    guard isOpen else { return }
    channel.pipeline.fireChannelRead(ByteBuffer(bytes: bytes))
    channel.pipeline.fireChannelReadComplete()
  }

  func close() { if isOpen { channel.close(promise: nil) } }

  /// The oldest call of the broker, if it still has no answer.
  func takeCall() -> Int64? { calls.isEmpty ? nil : calls.removeFirst() }

  func takeOutput() -> Bool {
    var isNew = false
    while let bytes = (try? channel.readOutbound(as: ByteBuffer.self)) ?? nil {
      isNew = true
      input += bytes.readableBytesView
    }
    while let end = input.firstIndex(of: UInt8(ascii: "\n")) {
      let line = Array(input[..<end])
      input.removeSubrange(...end)
      // In the other framings there are headers, too.
      if line.first == UInt8(ascii: "{") || line.first == UInt8(ascii: "[") { take(line) }
    }
    return isNew
  }

  private func take(_ line: [UInt8]) {
    guard let slice = try? JSONSlice.scan(line, vocabulary: EncodedState.vocabulary, limits: .unframed) else {
      preconditionFailure("not JSON: \(String(decoding: line, as: UTF8.self))")
    }
    last = slice
    if slice["method"] != nil, let call = slice["id"]?.integer() { calls.append(call) }
  }
}

/// Tells the broker of each connection as of one that another broker had.
private final class Adopting: ConnectionDelegate {
  private let context: [UInt8]
  private let service: BrokerService

  init(_ context: [UInt8], by service: BrokerService) { (self.context, self.service) = (context, service) }

  func connectionOpened(_ connection: Connection) {
    service.connectionAdopted(connection, context: context, afterKill: context.count % 2 == 0)
  }

  func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    service.received(delivery, from: connection)
  }

  func callsAbandoned(_ callIDs: [Int], by connection: Connection) { service.callsAbandoned(callIDs, by: connection) }
  func hasRoomForOffers(_ connection: Connection) { service.hasRoomForOffers(connection) }
  func hasRoomForReplies(_ connection: Connection) { service.hasRoomForReplies(connection) }

  func connectionClosed(_ connection: Connection, reason: CloseReason) {
    service.connectionClosed(connection, reason: reason)
  }
}

/// Makes each message of the log and forgets it.
struct WrittenLog: LogHandler {
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.trace

  func log(event: LogEvent) { _ = "\(event.message)\(event.metadata ?? [:])" }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }
}
