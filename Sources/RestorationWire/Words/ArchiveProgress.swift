// SPDX-License-Identifier: Apache-2.0

/// How far a call has come that asked for this by its `progressToken`.
public struct ArchiveProgress: RestorationNotification {
  package static let method = ServedMethod.progress
  package static let summary = "A call that this connection made with a `progressToken` has come so far."

  package var progressToken = ProgressToken("")
  /// What is counted is the method's matter.
  public package(set) var done: Int64 = 0
  public package(set) var total: Int64?
  public package(set) var message: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("progressToken", &progressToken, "As the call gave it, byte for byte.")
    try members.required("done", &done, .from(0), "Never goes back within a call.")
    try members.optional("total", &total, .from(0), "What `done` goes up to; absent where it is not known.")
    try members.optional("message", &message, "For people; absent where there is nothing to say.")
  }
}
