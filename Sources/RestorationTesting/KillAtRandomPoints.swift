// SPDX-License-Identifier: Apache-2.0

public import RestorationClient

/// Kills an application again and again, and compares what it shows when it is back with what it had saved.
///
/// It is killed by SIGKILL, with its process group, after a random number of acknowledged writes, and now and then
/// while it starts. When it is back it shows its objects: in a save round if its process serves encode and has decoded
/// them, otherwise by pushing them again; at the latest after one piece of work, which it gets when it has decoded
/// everything and has been silent for a third of `patience`.
///
/// Throws a `LostStateError` that names each object and field which was lost, and the seed; what `work` throws; and a
/// `TestingError` if nothing can be proven: the application cannot be started, opens no session, ends by itself, leaves
/// processes outside its group, or has shown nothing; `times` is less than 1; the broker is not in developer mode, does
/// not answer, or its events do not come. What is never saved cannot be missed.
///
/// - Parameters:
///   - command: the program, found by `PATH` unless it has a slash, and its arguments.
///   - times: how often, at least once.
///   - changing: fields that need not come back as they were, as patterns of `path:pointer`, such as
///     `Main/Clock:/time` or `*:/pid`.
///   - allowing: fields that may come back changed, as such patterns, each with whether a change is right, by the
///     values before and after; what is gone is lost. It is needed for what work changes in an application that shows
///     what it has only then.
///   - seed: decides the points, counted in writes; that of a failure repeats them. nil takes another one each time.
///   - patience: the time in which everything must be back, from when the application has a session, or got that work.
///   - quiet: the time without an event after which the application counts as ready.
///   - broker: one in developer mode, in which something may be saved already; nil starts a new one.
///   - work: does one piece of work, such as writing a line to the process, and each time something else. nil: the
///     application works by itself.
public func killAtRandomPoints(
  _ command: [String],
  times kills: Int = 20,
  changing: [String] = [],
  allowing: [String: @Sendable (_ before: RestorableValue, _ after: RestorableValue) -> Bool] = [:],
  seed: UInt64? = nil,
  patience: Duration = .seconds(15),
  quiet: Duration = .milliseconds(200),
  broker: PrivateBroker? = nil,
  work: (@Sendable (TestedProcess) async throws -> Void)? = nil
) async throws {
  guard kills > 0 else {
    throw TestingError("times is \(kills), so nothing would be proven; kill the application at least once")
  }
  if let broker, !broker.developerMode {
    throw TestingError(
      "the broker of \(broker.directory) is not in developer mode: it may withhold the states of an application that "
        + "is killed (R31); make it by PrivateBroker(developerMode: true)"
    )
  }
  let used =
    if let broker { broker } else {
      try await PrivateBroker(developerMode: true, limits: ["eventBytesMax": 1 << 26])
    }
  defer { if broker == nil { used.stop() } }
  let options = Proof.Options(
    command: command,
    kills: kills,
    changing: changing,
    allowing: allowing,
    seed: seed ?? .random(in: 0..<1 << 32),
    patience: patience,
    quiet: quiet,
    work: work
  )
  let connection = try await used.connect()
  try await Proof(used, connection, options).prove()
  await connection.close()
}

/// An application did not come back with what it had saved.
public struct LostStateError: Error, CustomStringConvertible {
  /// One object or field.
  public struct Loss: Hashable, Sendable, CustomStringConvertible {
    public let application: String
    /// The object's path, joined by `/`; empty for the application's own state.
    public let path: String
    /// JSON pointer to the field in the object's state; nil if it is about the whole object.
    public let field: String?
    /// What was there, and what came back.
    public let reason: String

    public var description: String { "\(application) \(path)\(field.map { ":\($0)" } ?? ""): \(reason)" }
  }

  public let losses: [Loss]
  /// Repeats the points at which the application was killed.
  public let seed: UInt64
  let summary: String

  public var description: String {
    ([summary] + losses.map { "  \($0)" }).joined(separator: "\n")
  }
}
