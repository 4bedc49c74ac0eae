// SPDX-License-Identifier: Apache-2.0

/// Lists the generations of an application's archive, by number (R16).
public struct ListGenerations: RestorationMethod {
  package static let method = "listGenerations"
  package static let summary = "Lists generations."
  package static let errors: [ErrorCode] = [.unknownApplication, .archiveUnreadable]

  public init() {}

  public struct Reply: WireObject, Hashable {
    public package(set) var generations: [GenerationDescription] = []
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("generations", &generations, "In ascending order of number.")
    }
  }
}

package struct DiffGenerations: LongMethod {
  package static let method = "diffGenerations"
  package static let summary = "Tells what differs between two generations."
  package static let errors: [ErrorCode] = [.invalidParams, .unknownApplication, .archiveUnreadable, .requestCancelled]

  package typealias Reply = GenerationDifference

  package var from: Int64 = 0
  /// `nil` compares with the head.
  package var to: Int64?
  package var reveal = false
  package var cursor: String?
  package var progressToken: ProgressToken?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("from", &from, .generation, "The generation to start from.")
    try members.optional("to", &to, .generation, "The generation to compare with.")
    try members.flag("reveal", &reveal, "Name the keys of confidential objects.")
    try members.optional("cursor", &cursor, .name, "From the previous page.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }
}

/// Copies a generation into the head and seals that as the next generation (R16).
public struct RollBack: LongMethod {
  package static let method = "rollBack"
  package static let summary = "Goes back to a generation."
  package static let errors: [ErrorCode] = [
    .invalidParams, .unknownObject, .needsForce, .unknownApplication, .limitExceeded, .archiveUnreadable,
    .requestCancelled, .storeFailed,
  ]

  public typealias Reply = RolledBackArchive

  public var generation: Int64 = 0
  public var force = false
  package var progressToken: ProgressToken?
  /// `nil` for all objects.
  public var objects: [IdentifierPath]?
  package init() {}

  public init(generation: Int64, force: Bool = false, objects: [IdentifierPath]? = nil) {
    (self.generation, self.force, self.objects) = (generation, force, objects)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "The generation to go back to.")
    try members.flag("force", &force, "Roll back even while sessions are live.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
    try members.optional("objects", &objects, "Bring back only these objects and all below them, by path.")
  }
}
