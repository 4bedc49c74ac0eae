// SPDX-License-Identifier: Apache-2.0

/// What the fleet's store has of the archives of this user, and what it lacks (R36).
package struct ReportReplica: RestorationMethod {
  package static let method = "reportReplica"
  package static let summary = "Reports what the fleet's store has and what it lacks."
  package static let errors: [ErrorCode] = [.invalidParams, .forbidden]
  package static let isScoped = false

  package typealias Reply = ReplicaStatus

  package var application: ApplicationName?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("application", &application, "With its instance; without it all are reported.")
  }
}

/// Waits until the fleet's store has what was stored before (R36).
package struct FlushReplica: RestorationMethod {
  package static let method = "flushReplica"
  package static let summary = "Waits until the fleet's store has everything."
  package static let errors: [ErrorCode] = [.invalidParams, .forbidden]
  package static let isScoped = false

  package var application: ApplicationName?
  package var milliseconds: Int64?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("application", &application, "With its instance; without it all are waited for.")
    try members.optional("milliseconds", &milliseconds, .range(0...600_000), "For how long; default 5,000.")
  }

  package struct Reply: WireObject, Hashable {
    package var unsent: [UnsentChanges] = []
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("unsent", &unsent, "Of which applications the store does not have everything.")
    }
  }
}

/// Sends the archive to the fleet's store anew, sealed with the present key (R36).
package struct MigrateReplica: RestorationMethod {
  package static let method = "migrateReplica"
  package static let summary = "Sends an archive to the fleet's store anew, with the present key and format."
  package static let errors: [ErrorCode] = [
    .invalidParams, .forbidden, .unknownApplication, .archiveUnreadable, .ownedElsewhere, .storeFailed,
  ]
  package static let isScoped = false

  package var application = ApplicationName.blank
  package var milliseconds: Int64?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "With its instance.")
    try members.optional("milliseconds", &milliseconds, .range(0...600_000), "For how long; default 60,000.")
  }
}
