// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// What decoding an object gave.
public struct DecodedState: Hashable, Sendable {
  /// Whether there is a state, and if not why not.
  public enum Status: String, CaseIterable, Hashable, Sendable {
    /// There is one, and it is given.
    case available
    /// There is none.
    case none
    /// There is one, of a class that the object is not (R25).
    case classMismatch
    /// It is withheld, because giving it out ended in crashes (R35).
    case quarantined
    /// It is damaged (R32).
    case unreadable

    init(_ wire: DecodeRestorableState.Status) {
      self =
        switch wire {
        case .available: .available
        case .none: .none
        case .classMismatch: .classMismatch
        case .quarantined: .quarantined
        case .unreadable: .unreadable
        }
    }
  }

  /// Whether there is a state, and if not why not.
  public let status: Status
  /// Nil unless the status is `available`. References are `{"$restorable": path, "object": handle or null}` (R27).
  public let state: RestorableState?
  /// Who wrote the state; nil where there is none.
  public let origin: StateOrigin?
  /// Selected and topmost elements, as encoded, each with `resolved`.
  public let elements: [RestorableElement]

  /// Nil where a member has another form than the protocol gives it.
  init?(_ wire: DecodeRestorableState.Reply) {
    guard let elements = RestorableElement.read(wire.elements) else { return nil }
    status = Status(wire.status)
    state = wire.state.map(RestorableState.init)
    origin = wire.coder.flatMap(StateOrigin.init)
    self.elements = elements
    if wire.coder != nil, origin == nil { return nil }
  }
}

/// How storing a state ended.
public enum EncodeOutcome: Hashable, Sendable {
  /// On disk, as the change with this number.
  case stored(sequence: Int64)
  /// This or a higher revision is stored already (R15).
  case superseded
  /// The user quit the application while this session lived; nothing is stored (R30).
  case discarded

  init(_ wire: EncodeRestorableState.Reply) {
    self =
      switch wire {
      case .stored(let sequence): .stored(sequence: sequence)
      case .superseded: .superseded
      case .discarded: .discarded
      }
  }
}
