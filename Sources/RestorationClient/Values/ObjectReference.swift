// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// Names an object in a call: by the handle its registration gave, or by its path.
public enum ObjectReference: Hashable, Sendable {
  /// A handle: positive, below 2^53, never given out twice.
  case handle(Int64)
  /// Components from the outermost ancestor to the object; each is an identifier or `identifier#position`.
  case path([String])

  var wire: RestorationWire.ObjectReference {
    switch self {
    case .handle(let handle): .handle(handle)
    case .path(let components): .path(IdentifierPath(components))
    }
  }
}

extension ObjectReference: ExpressibleByArrayLiteral, ExpressibleByIntegerLiteral {
  /// A path: `["Main", "Editor"]`.
  public init(arrayLiteral components: String...) {
    self = .path(components)
  }

  /// A handle.
  public init(integerLiteral handle: Int64) {
    self = .handle(handle)
  }
}

extension ObjectReference: CustomStringConvertible {
  /// For people: the handle, or the components joined by `/`.
  public var description: String {
    switch self {
    case .handle(let handle): String(handle)
    case .path(let components): components.joined(separator: "/")
    }
  }
}
