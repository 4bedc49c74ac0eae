// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// One application with its sessions and objects, without their states.
public struct ApplicationDescription: Hashable, Sendable {
  /// One live session.
  public struct Session: Hashable, Sendable {
    /// The process role; nil where the session gave none.
    public let process: String?
    /// The process's number.
    public let pid: Int64
    /// Whether it is the application's delegate (R9).
    public let isDelegate: Bool
    /// What the broker calls and notifies it of, by the protocol's names.
    public let serves: [String]

    init(_ wire: SessionDescription) {
      process = wire.process
      pid = wire.pid
      isDelegate = wire.delegate
      serves = wire.serves.map(\.rawValue)
    }
  }

  /// One object.
  public struct Object: Hashable, Sendable {
    /// Names the object within its archive, for ever: also while nobody claims it, and where it has no path.
    public let node: Int64
    /// `node` of its restoration parent; nil for a root. Where the path begins anew (R4), only this tells what the
    /// object is below of. Objects of different pages may be of different moments: it may name none of them.
    public let parent: Int64?
    /// Its handle; nil where nobody claims it.
    public let object: Int64?
    /// Nil where its own identifier is nil (R4).
    public let path: [String]?
    /// What the object is to its application.
    public let kind: ObjectKind
    /// The class and superclasses; empty where none was given.
    public let classes: [String]
    /// Role of the process that owns it or owned it last.
    public let process: String?
    /// Number of the owner's process; nil where nobody claims it.
    public let pid: Int64?
    /// Whether a generation holds it by itself (R4, R5).
    public let included: Bool
    /// Whether its owner left without closing it (R13).
    public let orphaned: Bool
    /// Bytes of its state; 0 where there is none.
    public let bytes: Int
    /// When its state was written; nil where there is none.
    public let modified: SavedTime?
    /// Highest revision its owner has written (R15); nil where it has given none.
    public let revision: Int64?
    /// Whether its state is shown only when asked for.
    public let confidential: Bool
    /// Whether its state is withheld from its owner (R35).
    public let quarantined: Bool

    init(_ wire: ObjectDescription) {
      node = wire.node
      parent = wire.parent
      object = wire.object
      path = wire.path?.components
      kind = ObjectKind(wire.kind)
      classes = wire.classes
      process = wire.process
      pid = wire.pid
      included = wire.included
      orphaned = wire.orphaned
      bytes = wire.bytes
      modified = wire.modified.map(SavedTime.init)
      revision = wire.revision
      confidential = wire.confidential
      quarantined = wire.quarantined
    }
  }

  /// The name, with the instance where there is one.
  public let application: String
  /// The archive's UUID; nil where there is none or it cannot be read.
  public let archive: String?
  /// The newest generation; nil where none has been sealed.
  public let generation: Int64?
  /// Number of the newest write.
  public let sequence: Int64
  /// Live sessions.
  public let sessions: [Session]
  /// All objects, live and archived, in the order in which they were first registered.
  public internal(set) var objects: [Object]

  init(_ wire: DescribeApplication.Reply) {
    application = wire.application.description
    archive = wire.archive
    generation = wire.generation
    sequence = wire.sequence
    sessions = wire.sessions.map(Session.init)
    objects = wire.objects.map(Object.init)
  }
}
