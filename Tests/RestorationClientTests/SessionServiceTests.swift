// SPDX-License-Identifier: Apache-2.0

#if ServiceLifecycle
internal import JSONRPC
internal import Logging
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import ServiceLifecycle
internal import TestSupport
internal import Testing

/// A session in a `ServiceGroup` (package trait `ServiceLifecycle`).
@Suite(.timeLimit(.minutes(2))) struct SessionServiceTests {
  private static func group() -> ServiceGroup {
    ServiceGroup(configuration: ServiceGroupConfiguration(services: [session], logger: Logger(label: "test")))
  }

  @Test(.session) func aSessionSaysGoodbyeForARestartWhenItsGroupShutsDown() async throws {
    let group = Self.group()
    let running = Task { try await group.run() }
    await group.triggerGracefulShutdown()
    let goodbye = try await fake.events.request()
    #expect(goodbye.text == #"goodbye {"reason":"restart"}"#)
    try await goodbye.answer("{}")
    try await running.value
    #expect(session.state == .ended(.left(isConfirmed: true)))
  }

  @Test(.session) func aSessionSaysGoodbyeForARestartWhenItsGroupIsCancelled() async throws {
    let running = Task { [session] in try await session.run() }
    running.cancel()
    #expect(try await fake.events.request().text == #"goodbye {"reason":"restart"}"#)
    try await running.value
  }

  @Test(.session) func aSessionThatTheBrokerRefusesEndsItsGroup() async throws {
    let group = Self.group()
    let running = Task { try await group.run() }
    script.change { $0.refusals = [.restoration(.alreadyServed, "p (7) is the delegate", hint: "")] }
    let call = Task { [session] in try await session.call("x") }
    try await fake.events.request().cut()
    await #expect(throws: RestorationSessionError.self) { try await call.value }
    let error = await thrownError { try await running.value } as? RestorationError
    #expect(error?.code == .alreadyServed)
  }
}
#endif
