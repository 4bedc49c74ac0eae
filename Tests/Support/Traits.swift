// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import Testing

/// Runs a test within what it needs: a place at the turnstile, a directory, a broker, a user manager. The test has a
/// thread of its own, which it may block.
package struct ScopeTrait: SuiteTrait, TestTrait, TestScoping {
  package let isRecursive = true
  private let scope: @Sendable (_ test: @Sendable () async throws -> Void) async throws -> Void

  package init(_ scope: @escaping @Sendable (_ test: @Sendable () async throws -> Void) async throws -> Void) {
    self.scope = scope
  }

  package func provideScope(
    for test: Test,
    testCase: Test.Case?,
    performing function: @Sendable () async throws -> Void
  ) async throws { try await scope(function) }
}

extension Trait where Self == ScopeTrait {
  /// For tests that start no broker but keep the disk or a processor busy.
  package static var passesTurnstile: Self { Self { try await passingTurnstile($0) } }

  /// Gives a test `directory`, which is removed afterwards.
  package static var scratch: Self { scratch() }

  /// - Parameter alone: The test measures time or memory: no other one passes the turnstile meanwhile.
  package static func scratch(alone: Bool = false) -> Self {
    Self { test in
      try await withScratch(alone: alone) { directory in
        try await Scope.$current.withValue(Scope(directory: directory), operation: test)
      }
    }
  }

  /// Gives a test `broker`, the real program in a private directory, gone when the test is over. When the test fails,
  /// the broker's log goes into the failure.
  package static var broker: Self { broker() }

  /// - Parameters:
  ///   - arguments: More arguments on the command line.
  ///   - limits: Members of `limits` in the configuration file.
  ///   - wrapper: A command that starts the broker, such as strace with its flags; the broker's command line follows it.
  ///   - alone: The test measures time or memory: no other one passes the turnstile meanwhile.
  package static func broker(
    arguments: [String] = [],
    limits: JSONObject = [:],
    wrapper: [String] = [],
    alone: Bool = false
  ) -> Self {
    Self { test in
      try await withScratch(alone: alone) { directory in
        let broker = BrokerFixture(in: directory, arguments: arguments, limits: limits, wrapper: wrapper)
        do {
          try broker.start()
          try await Scope.$current.withValue(Scope(broker: broker), operation: test)
        } catch {
          let log = broker.log.suffix(4_000)
          throw log.isEmpty ? error : TestFailure("\(error)\n--- the broker's log ---\n\(log)")
        }
        try broker.finish()
      }
    }
  }

  /// Gives a test `manager`, a real user manager: `systemd --user` of a user who exists nowhere else, logged in, with
  /// the programs and units installed, removed after the test. If the test fails, the log goes into the failure.
  package static var userManager: Self { userManager() }

  package static func userManager(alone: Bool = false, installing: Bool = true) -> Self {
    Self { test in
      try await withScratch(alone: alone) { directory in
        let manager = try UserManager(in: directory)
        do {
          if installing { try manager.install() }
          try manager.login()
          try await Scope.$current.withValue(Scope(manager: manager), operation: test)
        } catch {
          let log = manager.log.suffix(4_000)
          throw log.isEmpty ? error : TestFailure("\(error)\n--- the journal ---\n\(log)")
        }
        try manager.finish()
      }
    }
  }
}

/// What the traits of a running test have given it. It is the test's own, which uses it from one thread at a time.
private struct Scope: @unchecked Sendable {
  @TaskLocal static var current = Scope()

  var directory: ScratchDirectory?
  var broker: BrokerFixture?
  var manager: UserManager?
}

/// The directory of a test with the trait `.scratch`.
package var directory: ScratchDirectory {
  guard let directory = Scope.current.directory else { preconditionFailure("the test has no trait .scratch") }
  return directory
}

/// The broker of a test with the trait `.broker`.
package var broker: BrokerFixture {
  guard let broker = Scope.current.broker else { preconditionFailure("the test has no trait .broker") }
  return broker
}

/// The user manager of a test with the trait `.userManager`.
package var manager: UserManager {
  guard let manager = Scope.current.manager else { preconditionFailure("the test has no trait .userManager") }
  return manager
}
