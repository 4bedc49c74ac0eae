// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// How a save round ended (R11, R12).
public struct SaveResult: Hashable, Sendable {
  /// Whether a generation was made.
  public let saved: Bool
  /// Why none was made: `declined`, `reentrant`, `unchanged`, `restoring`, `interrupted`; later brokers know more
  /// words.
  public let reason: String?
  /// The generation that was made, or the newest there is; nil where there is none.
  public let generation: Int64?
  /// States that the whole generation holds.
  public let objects: Int
  /// Bytes of them.
  public let bytes: Int
  /// Objects that kept the state they had before.
  public let stale: [Stale]
  /// Live objects that the generation leaves out (R4, R5).
  public let excluded: [Excluded]
  /// How long the round took.
  public let duration: Duration

  /// An object whose state in a generation is an older one than the round that made it.
  public struct Stale: Hashable, Sendable {
    /// Its handle; nil where it has none any more.
    public let object: Int64?
    /// Empty for the application's own state; nil where the object's own identifier is nil (R4).
    public let path: [String]?
    /// Role of the process that owns it.
    public let process: String?
    /// That process.
    public let pid: Int64?
    /// `late`, `ended`, `disconnected`, `malformed`, `missing`, `failed`, or the kind of the error that refused the new
    /// state.
    public let why: String
    /// What the process said of it, or what is wrong with its answer; for people.
    public let message: String?
  }

  /// A live object that a generation leaves out, and what excludes it.
  public struct Excluded: Hashable, Sendable {
    /// Its handle.
    public let object: Int64
    /// Nil where the object's own identifier is nil (R4).
    public let path: [String]?
    /// Role of the process that owns it.
    public let process: String?
    /// That process.
    public let pid: Int64?
    /// The object whose identifier is nil, or that a view must not be below.
    public let by: ObjectReference
  }

  init(_ wire: SaveApplicationState.Reply) {
    saved = wire.saved
    reason = wire.reason
    generation = wire.generation
    objects = wire.objects
    bytes = wire.bytes
    stale = wire.stale.map {
      Stale(object: $0.object, path: $0.path, process: $0.process, pid: $0.pid, why: $0.why, message: $0.message)
    }
    excluded = wire.excluded.map {
      Excluded(
        object: $0.object,
        path: $0.path?.components,
        process: $0.process,
        pid: $0.pid,
        by: ObjectReference($0.by)
      )
    }
    duration = .milliseconds(wire.milliseconds)
  }
}

extension ObjectReference {
  init(_ wire: RestorationWire.ObjectReference) {
    self =
      switch wire {
      case .handle(let handle): .handle(handle)
      case .path(let path): .path(path.components)
      }
  }
}
