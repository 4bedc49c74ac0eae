// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOPosix
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// A listener on a socket of its own for the time of one test.
struct ListenerFixture: Sendable {
  @TaskLocal fileprivate static var current: ListenerFixture?

  let listener: UnixListener
  let delegate: TestDelegate
  let path: SocketPath
  private let directory: SocketDirectory

  static let vocabulary = ScanVocabulary(referenceKey: "$restorable", literalKey: "$literal")

  static func settings(_ change: (inout TransportLimits) -> Void = { _ in }) -> ConnectionSettings {
    var settings = ConnectionSettings(vocabulary: vocabulary)
    change(&settings.limits)
    return settings
  }

  /// Runs `body` with a listener that answers by `ExampleMethods`, then stops it.
  static func run(
    limits: @Sendable (inout TransportLimits) -> Void = { _ in },
    users: AllowedUsers = .own,
    confining confine: @escaping PeerConfining = { _ in .success(nil) },
    answer: @escaping TestDelegate.Answer = ExampleMethods.answer,
    _ body: (ListenerFixture) async throws -> Void
  ) async throws {
    var settings = settings(limits)
    let meter = LoopMeter()
    settings.meter = meter
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: meter)
    do {
      let directory = try SocketDirectory()
      let path = try SocketPath(directory.file("b.sock"))
      let delegate = TestDelegate(answer: answer)
      let listener = try await UnixListener.start(
        ListeningSocket(binding: path, backlog: 1_024),
        on: group.any(),
        settings: settings,
        users: users,
        confining: confine,
        delegate: delegate
      )
      let fixture = ListenerFixture(listener: listener, delegate: delegate, path: path, directory: directory)
      // Its peers block while they wait.
      try await withTaskExecutorPreference(BlockingExecutor()) { try await body(fixture) }
      await listener.stop()
    } catch {
      try await group.shutdownGracefully()
      throw error
    }
    try await group.shutdownGracefully()
  }

  func connect() throws -> RawPeer { try RawPeer(connectingTo: path.path) }

  /// Runs `body` on the listener's event loop.
  func onLoop<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await listener.eventLoop.submit(body).get()
  }

  var statistics: AcceptStatistics { get async throws { try await onLoop { listener.statistics } } }
}

extension Trait where Self == ScopeTrait {
  /// Gives a test `fixture`, a listener that answers by `ExampleMethods`.
  static var listener: Self { listener() }

  static func listener(
    limits: @escaping @Sendable (inout TransportLimits) -> Void = { _ in },
    users: AllowedUsers = .own
  ) -> Self {
    Self { test in
      try await ListenerFixture.run(limits: limits, users: users) { fixture in
        try await ListenerFixture.$current.withValue(fixture, operation: test)
      }
    }
  }
}

/// The listener of a test with the trait `.listener`.
var fixture: ListenerFixture {
  guard let fixture = ListenerFixture.current else { preconditionFailure("the test has no trait .listener") }
  return fixture
}
