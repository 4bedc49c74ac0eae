// SPDX-License-Identifier: Apache-2.0

/// What one measurement has found.
package struct Figures: Sendable {
  package var latency = Histogram()
  /// Requests that were refused.
  package var failed = 0
  /// The beginning of the first refusal.
  package var failure: String?
  package var seconds = 0.0
  /// CPU time in nanoseconds; `nil` if the server's process is unknown.
  package var serverCPU: UInt64?
  package var generatorCPU: UInt64 = 0

  package init() {}

  package var requests: Int { latency.count }
  package var rate: Double { seconds > 0 ? Double(requests) / seconds : 0 }
  /// Microseconds of CPU for a request.
  package var serverCost: Double? { serverCPU.map(cost) }
  package var generatorCost: Double { cost(generatorCPU) }

  private func cost(_ nanoseconds: UInt64) -> Double {
    requests > 0 ? Double(nanoseconds) / 1_000 / Double(requests) : 0
  }
}

/// What is measured: one line of the table.
package struct Subject: Hashable, Sendable {
  package var work: String
  package var server: String
  package var clients = 1
  package var depth = 1
  /// Bytes of a state; 0 if the work has none.
  package var size = 0
  package var objects = 0
  package var framing = ""
  /// What there is more of from row to row; `nil` unless rows of this work form a curve.
  package var growth: Growth?

  package init(_ work: String, _ server: String) { (self.work, self.server) = (work, server) }

  package var shape: String { "\(clients)×\(depth)" }
}

/// How much there is of something.
package struct Growth: Hashable, Sendable {
  package let axis: String
  package let value: Int

  package init(_ axis: String, _ value: Int) { (self.axis, self.value) = (axis, value) }
}

/// A subject and what its turns have found.
package struct Row: Sendable {
  package let subject: Subject
  package let turns: [Figures]
  /// Its rate divided by that of the reference in the same turn; `nil` if it is not compared.
  package let ratio: Spread?

  package init(_ subject: Subject, _ turns: [Figures], ratio: Spread? = nil) {
    (self.subject, self.turns, self.ratio) = (subject, turns, ratio)
  }

  package var requests: Int { turns.reduce(0) { $0 + $1.requests } }
  package var failed: Int { turns.reduce(0) { $0 + $1.failed } }
  package var failure: String? { turns.lazy.compactMap(\.failure).first }
  package var rate: Spread { of(\.rate) }
  package var serverCost: Spread? { Spread(turns.compactMap(\.serverCost)) }
  package var generatorCost: Spread { of(\.generatorCost) }

  /// Microseconds.
  package func latency(_ part: Double) -> Spread { of { Double($0.latency.quantile(part)) / 1_000 } }
  package var longest: Double { of { Double($0.latency.maximum) / 1_000 }.most }

  private func of(_ value: (Figures) -> Double) -> Spread {
    Spread(turns.map(value)) ?? Spread(0)
  }
}

extension Spread {
  fileprivate init(_ value: Double) { (least, median, most) = (value, value, value) }
}
