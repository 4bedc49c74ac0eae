// SPDX-License-Identifier: Apache-2.0

public import RestorationClient

/// Kills an application repeatedly, and compares its states after each restart with the saved ones.
///
/// SIGKILL ends its process group after a random number of acknowledged writes, sometimes during its start. After the
/// restart it shows its objects: in a save round if its process serves encode and has decoded them, otherwise by
/// pushing them. At the latest it does so after one piece of work, which it gets when it has decoded everything and has
/// been silent for a third of `patience`. States that are never saved cannot be missed.
///
/// Throws a `LostStateError` that names each lost object and field, and the seed; the errors of `work`; and a
/// `TestingError` if nothing can be proven: the application does not start, opens no session, ends by itself, leaves
/// processes outside its group, or has shown nothing; `times` is less than 1; the broker is not in developer mode, does
/// not answer, or sends no events.
///
/// - Parameters:
///   - command: the program, found by `PATH` unless it has a slash, and its arguments.
///   - times: the number of kills, at least 1.
///   - changing: fields that may differ or be lost, as patterns of `path:pointer`, such as `Main/Clock:/time` or
///     `*:/pid`.
///   - allowing: fields that may change but not be lost, as such patterns, each with a check of the values before and
///     after. It is needed if work changes an application that shows its states only then.
///   - seed: decides the points, counted in writes; repeats those of a failure. `nil` takes a random one.
///   - patience: the time to show everything, from the session's start, or from that work.
///   - quiet: the time without an event after which the application counts as ready.
///   - broker: in developer mode, perhaps with saved states; `nil` starts a new one.
///   - work: does one piece of work, such as writing a line to the process, different each time. `nil`: the application
///     works by itself.
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

/// An application lost saved states.
public struct LostStateError: Error, CustomStringConvertible {
  public struct Loss: Hashable, Sendable, CustomStringConvertible {
    public let application: String
    /// The object's path, joined by `/`; empty for the application's own state.
    public let path: String
    /// JSON pointer to the field in the object's state; `nil` for the whole object.
    public let field: String?
    /// The values before and after.
    public let reason: String

    public var description: String { "\(application) \(path)\(field.map { ":\($0)" } ?? ""): \(reason)" }
  }

  public let losses: [Loss]
  /// Repeats the points of the kills.
  public let seed: UInt64
  let summary: String
  /// Whether the application has shown its states only after further work, which may have changed them.
  let isAfterWork: Bool

  public var description: String {
    let advice =
      "It pushed nothing before one more piece of work. If that changes these fields, let it push what it has decoded "
      + "first, or name them in `allowing`."
    return ([summary] + (losses.map(\.description) + (isAfterWork ? [advice] : [])).map { "  \($0)" })
      .joined(separator: "\n")
  }
}
