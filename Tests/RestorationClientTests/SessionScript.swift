// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization
internal import TestSupport

/// The automatic answers of a broker under a test's control: it opens and resumes sessions, and registers objects under
/// new handles. Everything else is left to the test.
final class SessionScript: Sendable {
  struct State {
    /// The session that the broker knows.
    var token = "t1"
    var limits = Limits()
    /// What `initialize` is answered with instead, once for each.
    var refusals: [ErrorObject] = []
    /// Errors that answer the registration of these identifiers.
    var refusedObjects: [String: ErrorObject] = [:]
    /// Methods that are not answered at all.
    var silent: Set<String> = []
    var lastHandle: Int64 = 100
    /// The older state that a registration reports.
    var saved = RestorationState.none
    var paths: [Int64: [String]] = [:]
    /// Parameters of all registrations.
    var registrations: [String] = []
    var sessions = 0
  }

  private let state = Mutex(State())

  func change(_ body: @Sendable (inout State) -> Void) { state.withLock { body(&$0) } }

  /// How many were made until now.
  var connections: Int { state.withLock { $0.sessions } }

  var registrations: [String] { state.withLock { $0.registrations } }

  /// The session that the broker knows.
  var token: String { state.withLock { $0.token } }

  /// The path the object was registered under.
  func name(of handle: Int64) -> String? { path(of: handle)?.last }

  func path(of handle: Int64) -> [String]? { state.withLock { $0.paths[handle] } }

  @Sendable func answer(_ request: JSONRPC.Request) -> Outcome? {
    if request.method == Ping.method, state.withLock({ !$0.silent.contains(Ping.method) }) { return .text("{}") }
    guard case .named(let parameters) = request.parameters else { return nil }
    return state.withLock { state in
      guard !state.silent.contains(request.method) else { return nil }
      switch request.method {
      case Initialize.method: return Self.initialized(parameters, &state)
      case RegisterObjectForStateRestoration.method: return Self.registered(parameters, &state)
      default: return nil
      }
    }
  }

  private static func initialized(_ parameters: JSONSlice, _ state: inout State) -> Outcome {
    if !state.refusals.isEmpty { return .error(state.refusals.removeFirst()) }
    if state.sessions > 0, parameters["session"]?.string() != state.token { state.token += "+" }
    state.sessions += 1
    var writer = JSONWriter()
    state.limits.writeJSON(to: &writer)
    return .text(
      #"{"protocolVersion":1,"broker":{"name":"restorationd","version":"0"},"application":"a","#
        + #""session":"\#(state.token)","restoration":{"state":"none","reason":"pristine","generation":null,"#
        + #""archive":"u","coder":null},"limits":\#(JSONText(validated: writer.bytes).string)}"#
    )
  }

  private static func registered(_ parameters: JSONSlice, _ state: inout State) -> Outcome {
    state.registrations.append(parameters.compactText.string)
    let identifier = parameters["restorationIdentifier"]?.string() ?? ""
    if let refusal = state.refusedObjects[identifier] { return .error(refusal) }
    let parent = parameters["restorationParent"]
    let above = parent?.integer().flatMap { state.paths[$0] } ?? parent.flatMap { IdentifierPath($0)?.components } ?? []
    state.lastHandle += 1
    let path = above + [RestorationIdentifier.component(identifier, position: parameters["position"]?.integer())]
    state.paths[state.lastHandle] = path
    let reply = RegisterObjectForStateRestoration.Reply().with {
      $0.object = state.lastHandle
      $0.path = IdentifierPath(path)
      $0.included = true
      $0.restoration = ObjectRestoration().with { $0.state = state.saved }
    }
    var writer = JSONWriter()
    reply.writeJSON(to: &writer)
    return .result(JSONText(validated: writer.bytes))
  }
}

extension FakeBroker.Pending {
  /// Method and parameters.
  var text: String { "\(request.method) \(request.parametersText)" }

  func refuse(_ error: ErrorObject) async throws {
    try await connection.onLoop { $0.respond(to: call, with: .error(error)) }
  }

  /// Ends the connection as a broker's death does.
  func cut() async throws { try await connection.onLoop { $0.close(afterOutput: false) } }
}
