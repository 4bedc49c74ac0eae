// SPDX-License-Identifier: Apache-2.0

/// A row or item of a view that is selected or topmost (R28).
public struct RestorableElement: WireObject, Hashable {
  package static let sharedName: String? = "Element"
  package static let plural = "elements"

  public enum Role: String, WireWord {
    case selected
    /// It is the first visible element.
    case topVisible
  }

  /// Why an element's identifier has no current index path.
  public enum Unresolved: String, WireWord {
    /// The view has no data source now.
    case noDataSource
    /// The data source did not answer.
    case noAnswer
    /// The data source left before it answered.
    case gone
  }

  public var role = Role.selected
  /// Section and row, or as many levels as the view nests.
  public var indexPath: [Int] = []
  public var identifier: String?
  public var resolved: Bool?
  /// `nil` if it is resolved, or has no identifier.
  public var unresolved: Unresolved?
  package init() {}

  public init(_ role: Role, at indexPath: [Int], identifier: String? = nil) {
    self.init(role: role, indexPath: indexPath, identifier: identifier)
  }

  package init(role: Role, indexPath: [Int], identifier: String? = nil, resolved: Bool? = nil) {
    (self.role, self.indexPath, self.identifier, self.resolved) = (role, indexPath, identifier, resolved)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("role", &role, "Why it is listed.")
    try members.required("indexPath", &indexPath, "Index path of the element in the view.")
    try members.member("identifier", &identifier, default: nil, "The data source's identifier of the element's model.")
    try members.member(
      "resolved",
      &resolved,
      default: nil,
      "On decoding, whether a data source has given its current index path."
    )
    try members.member(
      "unresolved",
      &unresolved,
      default: nil,
      "On decoding, why the data source's identifier has not led to a current index path."
    )
  }
}
