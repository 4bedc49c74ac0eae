// SPDX-License-Identifier: Apache-2.0

/// Reports what the broker has done since it started and what it holds now.
package struct ReportStatistics: RestorationMethod {
  package static let method = "statistics"
  package static let summary = "Reports what the broker did."
  package static let isScoped = false

  package init() {}

  package struct Reply: WireObject, Hashable {
    package var broker = BrokerVersion()
    package var pid: Int64 = 0
    package var uptimeMilliseconds: Int64 = 0
    package var counters: [String: Int64] = [:]
    package var gauges: [String: Int64] = [:]

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("broker", &broker, "The broker's program.")
      try members.required("pid", &pid, .from(1), "Process id of the broker.")
      try members.required("uptimeMilliseconds", &uptimeMilliseconds, .count, "Since it started.")
      try members.required("counters", &counters, .count, "Totals since the start, as integers; they only grow.")
      try members.required("gauges", &gauges, .count, "What there is at this moment, as integers.")
    }
  }
}
