// SPDX-License-Identifier: Apache-2.0

#if Tracing
internal import Instrumentation
internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization
internal import TestSupport
internal import Testing

/// Calls of both sides are in the trace of the task that they belong to (package trait `Tracing`).
@Suite(.timeLimit(.minutes(2))) struct CallTraceTests {
  init() { _ = Self.instrument }

  private static let instrument: Void = InstrumentationSystem.bootstrap(FieldInstrument())
  private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
  private static let meta = #""_meta":{"traceparent":"\#(parent)","tracestate":"a=1"}"#

  private static var traced: ServiceContext {
    var context = ServiceContext.topLevel
    context[Fields.self] = ["traceparent": parent, "tracestate": "a=1"]
    return context
  }

  /// What comes to the broker of a call that is made within the trace.
  private static func sent(_ call: @escaping @Sendable () async throws -> Void) async throws -> String {
    let task = ServiceContext.withValue(traced) { Task { try await call() } }
    defer { task.cancel() }
    return try await fake.events.request().text
  }

  @Test(.session) func aCallOfASessionIsInTheTraceOfItsTask() async throws {
    let object = try await session.register(ObjectRegistration("A"))
    let decode = try await Self.sent { [session] in _ = try await session.decode(object.reference) }
    #expect(decode == #"decodeRestorableState {\#(Self.meta),"object":\#(object.handle)}"#)
    let save = try await Self.sent { [session] in _ = try await session.saveApplicationState() }
    #expect(save == #"saveApplicationState {\#(Self.meta)}"#)
    async let _ = session.decode(object.reference)
    #expect(try await fake.events.request().text == #"decodeRestorableState {"object":\#(object.handle)}"#)
  }

  @Test(.session) func aCallStaysInItsTraceOverTheNextConnection() async throws {
    async let _ = ServiceContext.withValue(Self.traced) { try await session.decode(["A"]) }
    let first = try await fake.events.request()
    try await first.cut()
    #expect(try await fake.events.request().text == first.text)
    #expect(first.text.contains(Self.meta))
  }

  @Test(.session, arguments: ["{}", #"{"_meta":{}}"#, "[1]"])
  func parametersThatTheProgramWritesStayAsTheyAre(text: String) async throws {
    let sent = try await Self.sent { [session] in _ = try await session.call("x", text) }
    #expect(sent == "x \(text)")
  }

  @Test(.connection) func aCallOfAConnectionIsInTheTraceOfItsTask() async throws {
    let sent = try await Self.sent { [broker] in _ = try await broker.call(ListGenerations(), of: "org.example.A") }
    #expect(sent == #"listGenerations {\#(Self.meta),"application":"org.example.A"}"#)
  }

  @Test(.scene) func anObjectIsAskedInTheTraceOfTheSave() async throws {
    let asked = AskedObject()
    let object = try await scene.session.register(ObjectRegistration("A"), restoring: asked)
    for meta in [Self.meta + ",", "", #""_meta":{"traceparent":"no"},"#] {
      let objects = #"{\#(meta)"round":1,"objects":[{"object":\#(object.handle),"path":["A"]}]}"#
      try await scene.call("encodeRestorableStateWithCoder", objects)
      _ = try await scene.broker.events.response()
    }
    #expect(asked.fields.withLock { $0 } == [["traceparent": Self.parent, "tracestate": "a=1"], nil, nil])
  }
}

private enum Fields: ServiceContextKey { typealias Value = [String: String] }

/// Takes a trace as it comes, as the instruments of OpenTelemetry do for W3C Trace Context.
private struct FieldInstrument: Instrument {
  private static let names = ["traceparent", "tracestate"]

  func extract<Carrier, Extract: Extractor>(
    _ carrier: Carrier,
    into context: inout ServiceContext,
    using extractor: Extract
  ) where Extract.Carrier == Carrier {
    var fields: [String: String] = [:]
    for name in Self.names { fields[name] = extractor.extract(key: name, from: carrier) }
    context[Fields.self] = fields
  }

  func inject<Carrier, Inject: Injector>(_ context: ServiceContext, into carrier: inout Carrier, using injector: Inject)
  where Inject.Carrier == Carrier {
    for (name, value) in context[Fields.self] ?? [:] { injector.inject(value, forKey: name, into: &carrier) }
  }
}

/// Notes in which trace it was asked.
private final class AskedObject: StateRestoring {
  let fields = Mutex<[[String: String]?]>([])

  func encodeRestorableState() async throws -> ObjectState {
    fields.withLock { $0.append(ServiceContext.current?[Fields.self]) }
    return ObjectState(.empty)
  }

  func decodeRestorableState(_ saved: ObjectState) async {}
}
#endif
