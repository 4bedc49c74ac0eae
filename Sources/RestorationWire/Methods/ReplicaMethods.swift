// SPDX-License-Identifier: Apache-2.0

/// What the fleet's store has of the archives of this user, and what it lacks (R36).
public struct ReportReplica: RestorationMethod {
  package static let method = "reportReplica"
  package static let summary = "Reports what the fleet's store has and what it lacks."
  package static let errors: [ErrorCode] = [.invalidParams, .forbidden]
  package static let isScoped = false

  public typealias Reply = ReplicaStatus

  public var application: ApplicationName?
  package init() {}

  public init(application: ApplicationName? = nil) { self.application = application }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("application", &application, "With its instance; default all applications.")
  }
}

/// Waits until the fleet's store has what was stored before (R36).
public struct FlushReplica: RestorationMethod {
  package static let method = "flushReplica"
  package static let summary = "Waits until the fleet's store has everything."
  package static let errors: [ErrorCode] = [.invalidParams, .forbidden]
  package static let isScoped = false

  public var application: ApplicationName?
  public var milliseconds: Int64?
  package init() {}

  public init(application: ApplicationName? = nil, milliseconds: Int64? = nil) {
    (self.application, self.milliseconds) = (application, milliseconds)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("application", &application, "With its instance; default all applications.")
    try members.optional("milliseconds", &milliseconds, .range(0...600_000), "For how long; default 5,000.")
  }

  public struct Reply: WireObject, Hashable {
    public package(set) var unsent: [UnsentChanges] = []
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("unsent", &unsent, "Applications of which the store lacks something.")
    }
  }
}

/// Sends the archive to the fleet's store anew, sealed with the present key (R36).
public struct MigrateReplica: RestorationMethod {
  package static let method = "migrateReplica"
  package static let summary = "Sends an archive to the fleet's store again, with the present key and format."
  package static let errors: [ErrorCode] = [
    .invalidParams, .forbidden, .unknownApplication, .archiveUnreadable, .ownedElsewhere, .storeFailed,
  ]
  package static let isScoped = false

  public var application = ApplicationName.blank
  public var milliseconds: Int64?
  package init() {}

  public init(application: ApplicationName, milliseconds: Int64? = nil) {
    (self.application, self.milliseconds) = (application, milliseconds)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "With its instance.")
    try members.optional("milliseconds", &milliseconds, .range(0...600_000), "For how long; default 60,000.")
  }
}
