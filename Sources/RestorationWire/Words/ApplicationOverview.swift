// SPDX-License-Identifier: Apache-2.0

/// One application in `listApplications`.
public struct ApplicationOverview: WireObject, Hashable {
  package static let sharedName: String? = "ApplicationOverview"

  public package(set) var application = ApplicationName.blank
  public package(set) var sessions = 0
  public package(set) var objects = 0
  public package(set) var generation: Int64?
  public package(set) var bytes = 0
  public package(set) var state = RestorationState.none
  public package(set) var restoreAtLogin = LoginPolicy.ask
  public package(set) var units: [String] = []
  public package(set) var damaged: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "With the instance where there is one.")
    try members.required("sessions", &sessions, "Live sessions.")
    try members.required("objects", &objects, "Objects, live and archived.")
    try members.nullable("generation", &generation, .generation, "The newest.")
    try members.required(
      "bytes",
      &bytes,
      "Of the states at the head while sessions are live; of the archive at rest otherwise."
    )
    try members.required("state", &state, "`none`, `available`, `unreadable` or `quarantined`.")
    try members.added("restoreAtLogin", &restoreAtLogin, "What becomes of it when its user logs in.")
    try members.added("units", &units, "Units that start its processes again, the delegate's first.")
    try members.optional(
      "damaged",
      &damaged,
      "Present until a run has ended, if its archive was found damaged: what was found and done, for people (R32)."
    )
  }
}

/// What becomes of an application when its user logs in.
public enum LoginPolicy: String, WireWord {
  case never, ask, always
}
