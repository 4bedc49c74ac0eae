// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import TestSupport
internal import Testing

extension Trait where Self == ScopeTrait {
  /// Gives a test `fake`, a broker under its control.
  static var fakeBroker: Self { fakeBroker() }

  static func fakeBroker(answer: @escaping FakeBroker.Answer = { _ in nil }) -> Self {
    Self { test in try await FakeBroker.run(answer: answer) { try await Given.of(Given(fake: $0), test) } }
  }

  /// Gives a test `fake`, and `broker`, a connection to it.
  static var connection: Self { connection() }

  static func connection(
    answer: @escaping FakeBroker.Answer = { _ in nil },
    limits: @escaping @Sendable (inout TransportLimits) -> Void = { _ in }
  ) -> Self {
    Self { test in
      try await FakeBroker.run(answer: answer, limits: limits) { fake in
        try await Given.of(Given(fake: fake, broker: try await .connect(to: fake.path)), test)
      }
    }
  }

  /// Gives a test `fake`, `script`, which it follows, and a `session` there.
  static var session: Self { session() }

  static func session(
    timeout: Duration? = nil,
    limits: @escaping @Sendable (inout TransportLimits) -> Void = { _ in }
  ) -> Self {
    Self { test in
      let script = SessionScript()
      try await FakeBroker.run(answer: script.answer, limits: limits) { fake in
        let options = SessionOptions(application: "a", process: "p")
        let session = try await RestorationSession.start(options, socket: fake.path, brokerTimeout: timeout)
        try await Given.of(Given(fake: fake, session: session, script: script), test)
        await session.end(.restart, timeout: .zero)
      }
    }
  }

  /// Gives a test `scene`.
  static var scene: Self { scene() }

  /// - Parameter answersServing: Whether registrations of classes and data sources are answered on the first
  ///   connection, the second and so on; if not, the test must answer.
  static func scene(
    answersServing: @escaping @Sendable (_ connection: Int) -> Bool = { _ in true },
    limits change: @escaping @Sendable (inout Limits) -> Void = { _ in }
  ) -> Self {
    Self { test in
      let script = SessionScript()
      script.change { change(&$0.limits) }
      let served: Set = [RegisterRestorationClass.method, RegisterDataSource.method]
      let answer: FakeBroker.Answer = { request in
        served.contains(request.method) && answersServing(script.connections) ? .text("{}") : script.answer(request)
      }
      try await FakeBroker.run(answer: answer) { fake in
        let model = ServingModel()
        let delegate = ServingDelegate(model)
        let options = SessionOptions(application: "a", process: "p", answersCalls: true)
        let session = try await RestorationSession.start(options, delegate: delegate, socket: fake.path)
        let scene = ServingScene(session: session, broker: fake, script: script, model: model, delegate: delegate)
        try await scene.follow()
        try await Given.of(Given(scene: scene), test)
        await session.end(.restart, timeout: .zero)
        withExtendedLifetime(delegate) {}
      }
    }
  }
}

/// What the traits of a running test have given it.
private struct Given: Sendable {
  @TaskLocal static var current = Given()

  var fake: FakeBroker?
  var broker: BrokerConnection?
  var session: RestorationSession?
  var script: SessionScript?
  var scene: ServingScene?

  static func of(_ given: Given, _ test: @Sendable () async throws -> Void) async throws {
    try await $current.withValue(given, operation: test)
  }

  static func value<Value>(_ member: KeyPath<Given, Value?>) -> Value {
    guard let value = current[keyPath: member] else { preconditionFailure("no trait of the test gives \(member)") }
    return value
  }
}

var fake: FakeBroker { Given.value(\.fake) }
var broker: BrokerConnection { Given.value(\.broker) }
var session: RestorationSession { Given.value(\.session) }
var script: SessionScript { Given.value(\.script) }
var scene: ServingScene { Given.value(\.scene) }
