// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// What decoding an object gave.
public struct DecodedState: Hashable, Sendable {
  /// Whether there is a state, and if not why not.
  public let status: DecodingStatus
  /// Nil unless the status is `available`. References are `{"$restorable": path, "object": handle or null}` (R27).
  public let state: RestorableState?
  /// Who wrote the state; nil where there is none.
  public let origin: ReservedKeys?
  /// Selected and topmost elements, as encoded, each with `resolved`.
  public let elements: [RestorableElement]

  /// Nil where a member has another form than the protocol gives it.
  init?(_ wire: DecodeRestorableState.Reply) {
    guard let elements = RestorableElement.read(wire.elements) else { return nil }
    status = wire.status
    state = wire.state.map(RestorableState.init)
    origin = wire.coder.flatMap(ReservedKeys.init(coder:))
    self.elements = elements
    if wire.coder != nil, origin == nil { return nil }
  }
}
