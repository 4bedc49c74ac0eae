// SPDX-License-Identifier: Apache-2.0

/// The broker's activity since its start, and its present content.
public struct BrokerStatistics: WireObject, Hashable {
  public package(set) var broker = BrokerVersion()
  public package(set) var pid: Int64 = 0
  public package(set) var uptimeMilliseconds: Int64 = 0
  public package(set) var counters: [String: Int64] = [:]
  public package(set) var gauges: [String: Int64] = [:]
  /// Empty if the broker is older.
  public package(set) var durations: [String: DurationCounts] = [:]
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("broker", &broker, "The broker's program.")
    try members.required("pid", &pid, .processID, "Process id of the broker.")
    try members.required("uptimeMilliseconds", &uptimeMilliseconds, .count, "Milliseconds since it started.")
    try members.required("counters", &counters, .count, "Totals since the start, as integers; they only grow.")
    try members.required("gauges", &gauges, .count, "What there is at this moment, as integers.")
    try members.added("durations", &durations, "Histograms of durations since the start.")
  }
}

/// A histogram of durations.
public struct DurationCounts: WireObject, Hashable {
  /// The longest duration of each range but the last, which has no end; in ascending order.
  public package(set) var boundsMicroseconds: [Int64] = []
  /// The number of durations in each range: one more element than `boundsMicroseconds`.
  public package(set) var counts: [Int64] = []
  public package(set) var sumMicroseconds: Int64 = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("boundsMicroseconds", &boundsMicroseconds, .count, "The longest of each range but the last.")
    try members.required("counts", &counts, .count, "How many were in each range: one number more.")
    try members.required("sumMicroseconds", &sumMicroseconds, .count, "All of them together.")
  }
}

public struct BrokerVersion: WireObject, Hashable {
  package static let sharedName: String? = "BrokerVersion"

  public package(set) var name = ""
  public package(set) var version = ""
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("name", &name, "Of the broker's program.")
    try members.required("version", &version, "Of the broker's program.")
  }
}
