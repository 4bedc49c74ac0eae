// SPDX-License-Identifier: Apache-2.0

/// One application with its sessions and its objects, without their states.
public struct ApplicationDescription: WireObject, Hashable {
  public package(set) var application = ApplicationName.blank
  public package(set) var archive: String?
  public package(set) var generation: Int64?
  public package(set) var sequence: Int64 = 0
  public package(set) var sessions: [SessionDescription] = []
  public package(set) var objects: [ObjectDescription] = []
  package var cursor: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "Its name, with the instance where there is one.")
    try members.nullable("archive", &archive, .uuid, "UUID of the archive.")
    try members.nullable("generation", &generation, .generation, "The newest.")
    try members.required("sequence", &sequence, .count, "Number of the newest write.")
    try members.required("sessions", &sessions, "Its live sessions.")
    try members.required("objects", &objects, "In the order in which they were first registered.")
    try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
  }
}
