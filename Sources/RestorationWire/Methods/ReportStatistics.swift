// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Reports what the broker has done since it started and what it holds now.
package struct ReportStatistics: RestorationMethod {
  package static let method = "statistics"
  package static let summary = "Reports what the broker did."
  package static let isScoped = false

  package init() {}

  package init(_ reader: ParameterReader) throws(ErrorObject) {}

  package func writeMembers(to writer: inout JSONWriter) {}

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("broker", BrokerVersion.schema, "The broker's program."),
      .required("pid", .integer(1...), "Process id of the broker."),
      .required("uptimeMilliseconds", .count, "Since it started."),
      .required("counters", .map(.count), "Totals since the start, as integers; they only grow."),
      .required("gauges", .map(.count), "What there is at this moment, as integers."),
    ])

    package var broker: BrokerVersion
    /// Process id of the broker.
    package var pid: Int64
    package var uptimeMilliseconds: Int64
    /// Totals since the start; they only grow.
    package var counters: [String: Int64]
    /// What there is at this moment.
    package var gauges: [String: Int64]

    package init(
      broker: BrokerVersion,
      pid: Int64,
      uptimeMilliseconds: Int64,
      counters: [String: Int64],
      gauges: [String: Int64]
    ) {
      self.broker = broker
      self.pid = pid
      self.uptimeMilliseconds = uptimeMilliseconds
      self.counters = counters
      self.gauges = gauges
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.broker = try reader.value("broker") { BrokerVersion($0) }
        self.pid = try reader.integer("pid")
        self.uptimeMilliseconds = try reader.integer("uptimeMilliseconds")
        self.counters = try reader.value("counters") { Self.numbers($0) }
        self.gauges = try reader.value("gauges") { Self.numbers($0) }
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("broker", broker)
        writer.member("pid", pid)
        writer.member("uptimeMilliseconds", uptimeMilliseconds)
        writer.key("counters")
        Self.write(counters, to: &writer)
        writer.key("gauges")
        Self.write(gauges, to: &writer)
      }
    }

    private static func numbers(_ slice: JSONSlice) -> [String: Int64]? {
      guard let members = slice.members else { return nil }
      var numbers: [String: Int64] = [:]
      for (name, value) in members {
        guard let number = value.integer() else { return nil }
        numbers[name] = number
      }
      return numbers
    }

    /// Sorted by name, so that two reports can be compared by eye.
    private static func write(_ numbers: [String: Int64], to writer: inout JSONWriter) {
      writer.object { writer in
        for (name, value) in numbers.sorted(by: { $0.key < $1.key }) {
          writer.key(name)
          writer.integer(value)
        }
      }
    }
  }
}
