// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// A row or item of a view that is selected or topmost (R28).
public struct RestorableElement: Hashable, Sendable {
  /// Why the element is remembered.
  public enum Role: String, CaseIterable, Hashable, Sendable {
    /// It is selected.
    case selected
    /// It is the first that can be seen.
    case topVisible
  }

  /// Why the element is remembered.
  public var role: Role
  /// Where the element is in the view: section and row, or as deep as the view nests; each at least 0.
  public var indexPath: [Int]
  /// The data source's identifier of the element's model.
  public var identifier: String?
  /// On decoding, whether `indexPath` was found from `identifier` today; nil where nobody has said.
  public var resolved: Bool?

  /// An element at this index path.
  public init(_ role: Role, at indexPath: [Int], identifier: String? = nil) {
    self.role = role
    self.indexPath = indexPath
    self.identifier = identifier
  }

  init(_ wire: Element) {
    role = wire.role == .selected ? .selected : .topVisible
    indexPath = wire.indexPath
    identifier = wire.identifier
    resolved = wire.resolved
  }

  var wire: Element {
    Element(role: role == .selected ? .selected : .topVisible, indexPath: indexPath, identifier: identifier)
  }

  /// The elements of an array; nil where the text is none.
  static func read(_ text: JSONText?) -> [RestorableElement]? {
    guard let text else { return [] }
    guard let slice = try? JSONSlice.scan(Array(text.bytes), vocabulary: EncodedState.vocabulary, limits: .ofAnswers),
      let elements = slice.elements
    else { return nil }
    let read = elements.compactMap { (try? Element(wire: $0)).map(RestorableElement.init) }
    return read.count == elements.count ? read : nil
  }
}
