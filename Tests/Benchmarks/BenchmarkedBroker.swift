// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import Logging
internal import NIOCore
internal import NIOEmbedded
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire

/// The broker's service with one client, which has the object `Main`. What surrounds it does next to nothing, so that
/// what is counted is the broker's.
final class BenchmarkedBroker {
  private let loop = TestEventLoop()
  private let service: BrokerService
  private let channel: EmbeddedChannel

  init(_ makeStore: (TestEventLoop) throws -> any ArchiveStore) throws {
    let (loop, host) = (loop, MemoryHost(on: loop))
    let random = NIOLoopBoundBox<UInt64>(1, eventLoop: loop)
    service = BrokerService(
      on: loop,
      limits: Limits(),
      settings: CoreSettings(
        version: "1.0",
        systemVersion: "1",
        random: {
          random.value += 2
          return (random.value, random.value + 1)
        }
      ),
      store: try makeStore(loop),
      processes: host,
      manager: host,
      // Before the first daily copy is due, whose timer is there for five minutes of a day.
      wallMilliseconds: { 3_600_000 },
      logger: Logger(label: "benchmarks") { _ in SwiftLogNoOpLogHandler() },
      whenFatal: { preconditionFailure("fatal: \($0)") }
    )
    channel = EmbeddedChannel(loop: loop.channels)
    let process = host.process(100, unit: nil)
    let peer = PeerCredentials(pid: process.pid, uid: 1_000, gid: 1_000, process: nil)
    let settings = ConnectionSettings(limits: TransportLimits(Limits()), vocabulary: EncodedState.vocabulary)
    try settings.install(on: channel, peer: peer, delegate: service)
    try channel.connect(to: SocketAddress(unixDomainSocketPath: "/benchmarks")).wait()
    let serves = #""serves":["encodeRestorableStateWithCoder"]"#
    call(Sample.call("initialize", #"{"application":"org.example.Bench",\#(serves)}"#))
    call(Sample.call("registerObjectForStateRestoration", #"{"restorationIdentifier":"Main"}"#))
  }

  /// Sends bytes; returns what the broker sends until nothing is left to do.
  func exchange(_ bytes: ByteBuffer) -> ByteBuffer {
    channel.pipeline.fireChannelRead(bytes)
    channel.pipeline.fireChannelReadComplete()
    loop.run()
    var output = ByteBuffer()
    while let bytes = (try? channel.readOutbound(as: ByteBuffer.self)) ?? nil { output.writeImmutableBuffer(bytes) }
    return output
  }

  /// Calls when nothing is counted yet: the answer has to be a result.
  @discardableResult
  func call(_ text: String) -> String {
    let answer = String(buffer: exchange(ByteBuffer(string: text)))
    precondition(answer.hasPrefix(#"{"jsonrpc":"2.0","id":1,"result":"#), "\(text) is answered \(answer)")
    return answer
  }

  /// The handle in the answer to a registration.
  func object(of answer: String) -> Int {
    let digits = answer.split(separator: #""object":"#).last.map { $0.prefix { $0.isNumber } }
    guard let handle = digits.flatMap({ Int($0) }) else { preconditionFailure("no handle in \(answer)") }
    return handle
  }

  /// Answers the broker's call.
  ///
  /// - Parameter rest: the answer from the comma behind its id on.
  func answer(_ call: ByteBuffer, _ rest: ByteBuffer) -> ByteBuffer {
    let start = #"{"jsonrpc":"2.0","id":"#
    let bytes = call.readableBytesView
    precondition(bytes.starts(with: start.utf8), "the broker has not called: \(String(buffer: call))")
    var answer = ByteBuffer(string: start)
    answer.writeBytes(bytes.dropFirst(start.utf8.count).prefix { $0 != UInt8(ascii: ",") })
    answer.writeImmutableBuffer(rest)
    return exchange(answer)
  }
}
