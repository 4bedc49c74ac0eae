// SPDX-License-Identifier: Apache-2.0

// The package trait ServiceLifecycle, which is off by default.
#if ServiceLifecycle
public import ServiceLifecycle

/// A session as a service of a `ServiceGroup`. List it before the services that encode: a group ends them in the
/// opposite order, and the session last.
extension RestorationSession: Service {
  /// Runs as long as the session.
  ///
  /// When the group shuts down, or cancels this, the session says goodbye for a restart: everything stays saved. Throws
  /// the broker's `RestorationError` if the broker has ended the session.
  public func run() async throws {
    try await withGracefulShutdownHandler {
      for await case .ended(.refused(let refusal)) in states { throw refusal }
    } onGracefulShutdown: {
      Task { await self.end(.restart) }
    }
    await end(.restart)
  }
}
#endif
