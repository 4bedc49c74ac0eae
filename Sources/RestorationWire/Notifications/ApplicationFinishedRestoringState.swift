// SPDX-License-Identifier: Apache-2.0

/// All sessions have decoded: these objects of the session are restored (R21).
public struct ApplicationFinishedRestoringState: RestorationNotification {
  package static let method = ServedMethod.applicationFinishedRestoringState
  package static let summary =
    "The restoration is over, for all sessions (R21): these objects of this session are restored."

  public package(set) var objects: [ObjectHandle] = []

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, .handle, "Handles of the objects.")
  }
}
