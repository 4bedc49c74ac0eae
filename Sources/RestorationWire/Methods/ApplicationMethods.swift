// SPDX-License-Identifier: Apache-2.0

/// Lists applications that have live sessions or an archive, by name.
public struct ListApplications: RestorationMethod {
  package static let method = "listApplications"
  package static let summary = "Lists applications."
  package static let isScoped = false

  public init() {}

  public struct Reply: WireObject, Hashable {
    public package(set) var applications: [ApplicationOverview] = []
    public package(set) var unreachable = false
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("applications", &applications, "In ascending order of name.")
      try members.mark(
        "unreachable",
        &unreachable,
        "Present if the fleet's store has not answered in time: what only other hosts have may be missing."
      )
    }
  }
}

package struct DescribeApplication: RestorationMethod {
  package static let method = "describeApplication"
  package static let summary = "Lists sessions and objects."
  package static let errors: [ErrorCode] = [.unknownApplication, .archiveUnreadable, .invalidParams]

  package typealias Reply = ApplicationDescription

  package var cursor: String?
  package var takeOver = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("cursor", &cursor, .name, "From the previous page.")
    try members.flag("takeOver", &takeOver, "Take the application over if another host has it (R36).")
  }
}

/// The same call for completions, which wait for the answer: reads only the paths.
package struct DescribePaths: RestorationMethod {
  package static let method = DescribeApplication.method
  package static let summary = DescribeApplication.summary
  package static let errors = DescribeApplication.errors

  package var cursor: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("cursor", &cursor, .name, "From the previous page.")
  }

  package struct Reply: WireObject {
    package var objects: [Object] = []
    package var cursor: String?
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("objects", &objects, "In the order in which they were first registered.")
      try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
    }
  }

  package struct Object: WireObject {
    package var path: IdentifierPath?
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.nullable("path", &path, "Null if its own identifier is null.")
    }
  }
}

package struct ListPathComponents: RestorationMethod {
  package static let method = "listPathComponents"
  package static let summary = "Lists the continuations of a path."
  package static let errors: [ErrorCode] = [
    .invalidParams, .unknownObject, .invalidIdentifier, .unknownApplication, .archiveUnreadable,
  ]

  /// `nil` lists first components.
  package var path: IdentifierPath?
  package var beginning: String?
  package var cursor: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("path", &path, "The path to continue; without it first components are listed.")
    try members.optional("beginning", &beginning, "List only components that begin with these bytes.")
    try members.optional("cursor", &cursor, .name, "From the previous page.")
  }

  package struct Reply: WireObject, Hashable {
    package var components: [String] = []
    package var parents: [String] = []
    package var cursor: String?
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("components", &components, "In the order in which their objects were first registered.")
      try members.required("parents", &parents, "Those of them with components below, in the same order.")
      try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
    }
  }
}

package struct ReadArchive: RestorationMethod {
  package static let method = "readArchive"
  package static let summary = "Reads the saved state."
  package static let errors: [ErrorCode] = [.invalidParams, .unknownApplication, .archiveUnreadable]

  /// `nil` reads the head.
  package var generation: Int64?
  package var cursor: String?
  package var reveal = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("generation", &generation, .generation, "The generation to read.")
    try members.optional("cursor", &cursor, .name, "From the previous page.")
    try members.flag("reveal", &reveal, "Show the states of confidential objects.")
  }

  package struct Reply: WireObject, Hashable {
    package var generation: Int64?
    package var objects: [ArchivedObject] = []
    package var cursor: String?
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.nullable("generation", &generation, .generation, "The generation; null for the head.")
      try members.required("objects", &objects, "Objects that have a path.")
      try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
    }
  }
}

/// Empties the application's head, on request also its generations (R30).
public struct DiscardApplicationState: RestorationMethod {
  package static let method = "discardApplicationState"
  package static let summary = "Empties the head."
  package static let errors: [ErrorCode] = [.needsForce, .unknownApplication, .archiveUnreadable, .storeFailed]

  public var reason: String?
  public var generations = false
  public var force = false
  package init() {}

  public init(reason: String? = nil, generations: Bool = false, force: Bool = false) {
    (self.reason, self.generations, self.force) = (reason, generations, force)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("reason", &reason, "For people; written to the log.")
    try members.flag("generations", &generations, "Remove the generations as well.")
    try members.flag("force", &force, "Required if `generations` is true while sessions are live.")
  }
}

/// Lists what was closed last and can be opened again (R13).
public struct ListClosedObjects: RestorationMethod {
  package static let method = "listClosedObjects"
  package static let summary = "Lists closed objects."
  package static let errors: [ErrorCode] = [.unknownApplication, .archiveUnreadable]

  public init() {}

  public struct Reply: WireObject, Hashable {
    public package(set) var objects: [ClosedObject] = []
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("objects", &objects, "The last that was closed first.")
    }
  }
}

/// The reopened objects are vacant and have their states (R13).
public struct ReopenObject: RestorationMethod {
  package static let method = "reopenObject"
  package static let summary = "Reopens closed objects."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .duplicatePath, .limitExceeded, .unknownApplication, .archiveUnreadable,
    .storeFailed,
  ]

  public typealias Reply = ReopenedObject

  /// `nil` for the last one closed.
  public var path: IdentifierPath?
  package init() {}

  public init(path: IdentifierPath? = nil) { self.path = path }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("path", &path, "The path it had; by default the last that was closed.")
  }
}

/// Removes an application with its archive; its name is free then (R13).
public struct ForgetApplication: RestorationMethod {
  package static let method = "forgetApplication"
  package static let summary = "Removes an application with its archive."
  package static let errors: [ErrorCode] = [.needsForce, .unknownApplication, .storeFailed]

  public var force = false
  public var damaged = false
  package init() {}

  public init(force: Bool = false, damaged: Bool = false) { (self.force, self.damaged) = (force, damaged) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.flag("force", &force, "Remove it even while sessions are live; they end.")
    try members.flag("damaged", &damaged, "Remove files as well that were set aside because of damage (R32).")
  }
}

package struct ListQuarantine: RestorationMethod {
  package static let method = "listQuarantine"
  package static let summary = "Lists states that are withheld after crashes."
  package static let errors: [ErrorCode] = [.invalidParams, .unknownApplication, .archiveUnreadable]

  package typealias Reply = QuarantineReport

  package var cursor: String?
  package var reveal = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("cursor", &cursor, .name, "From the previous page.")
    try members.flag("reveal", &reveal, "Show the states of confidential objects.")
  }
}

/// Ends the quarantine of one object or of all of them: their states are handed out again (R31, R35).
public struct ReleaseQuarantine: RestorationMethod {
  package static let method = "releaseQuarantine"
  package static let summary = "Releases withheld states."
  package static let errors: [ErrorCode] = [
    .invalidParams, .unknownObject, .invalidIdentifier, .unknownApplication, .archiveUnreadable, .storeFailed,
  ]

  /// `nil` releases everything, including a quarantine of the whole archive.
  public var path: IdentifierPath?
  package init() {}

  public init(path: IdentifierPath? = nil) { self.path = path }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("path", &path, "The object to release.")
  }

  public struct Reply: WireObject, Hashable {
    public package(set) var released = 0
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("released", &released, "Objects whose states are released.")
    }
  }
}

/// Clients of the socket may use this application and its instances only.
public struct OpenApplicationSocket: RestorationMethod {
  package static let method = "openApplicationSocket"
  package static let summary = "Makes a socket that leads to one application, for a sandbox."
  package static let errors: [ErrorCode] = [.invalidParams, .forbidden, .limitExceeded, .storeFailed, .shuttingDown]
  package static let isScoped = false

  public typealias Reply = ApplicationSocket

  public var application = ApplicationName.blank
  package init() {}

  public init(application: ApplicationName) { self.application = application }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "The application's name, without instance.")
  }

  package func check() throws(Misfit) {
    guard application.instance != nil || application.isSetAside else { return }
    let hint = "Give \(application.base): all instances of an application share its socket."
    throw Misfit(.unsuited("a socket is for an application with all its instances", hint: hint), at: "application")
  }
}
