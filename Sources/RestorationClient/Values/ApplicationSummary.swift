// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// One application, as `listApplications` shows it.
public struct ApplicationSummary: Hashable, Sendable {
  /// The name, with the instance where there is one.
  public let application: String
  /// Live sessions.
  public let sessions: Int
  /// Objects that are registered or have a saved state.
  public let objects: Int
  /// The newest generation; nil where none has been sealed.
  public let generation: Int64?
  /// Bytes of the states while sessions are live, of the archive otherwise.
  public let bytes: Int
  /// Whether there is saved state.
  public let state: StateAvailability
  /// What becomes of it when its user logs in.
  public let restoreAtLogin: LoginPolicy
  /// Units that start its processes again, the delegate's first.
  public let units: [String]
  /// What was found damaged in its archive and what was done about it, for people (R32); nil if nothing was, or a run
  /// has ended since.
  public let damaged: String?

  /// What becomes of an application when its user logs in.
  public enum LoginPolicy: String, Hashable, Sendable {
    /// Nothing.
    case never
    /// Its user is asked whether to restore it.
    case ask
    /// It is restored.
    case always
  }

  init(_ wire: ApplicationOverview) {
    application = wire.application.description
    sessions = wire.sessions
    objects = wire.objects
    generation = wire.generation
    bytes = wire.bytes
    state = StateAvailability(wire.state)
    restoreAtLogin = LoginPolicy(wire.restoreAtLogin)
    units = wire.units
    damaged = wire.damaged
  }
}

extension ApplicationSummary.LoginPolicy {
  fileprivate init(_ wire: RestorationWire.LoginPolicy) {
    switch wire {
    case .never: self = .never
    case .ask: self = .ask
    case .always: self = .always
    }
  }
}

/// One generation of an archive (R16).
public struct GenerationSummary: Hashable, Sendable {
  /// 1, 2, 3 …; a number is never used twice.
  public let generation: Int64
  /// What caused it, e.g. `startup`; later brokers know more words.
  public let kind: String
  /// When it was sealed.
  public let committed: SavedTime
  /// Objects with a state.
  public let objects: Int
  /// Bytes of those states.
  public let bytes: Int
  /// Whether the current run started from it and it is held.
  public let pinned: Bool

  init(_ wire: GenerationDescription) {
    generation = wire.generation
    kind = wire.kind
    committed = SavedTime(wire.committed)
    objects = wire.objects
    bytes = wire.bytes
    pinned = wire.pinned
  }
}
