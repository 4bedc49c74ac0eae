// SPDX-License-Identifier: Apache-2.0

/// A text in the exposition format OpenMetrics 1.0, limited to kinds that readers of the older Prometheus format know.
package struct OpenMetrics {
  package enum Kind: String {
    case counter, gauge, histogram
  }

  /// The names of a unit's families end with it.
  package enum Unit: String {
    case bytes, seconds
  }

  package struct Value: CustomStringConvertible {
    package let description: String

    package init(_ number: some BinaryInteger) { description = "\(number)" }

    package init(milliseconds: Int64) {
      let fraction = String(milliseconds % 1_000 + 1_000).dropFirst()
      description = "\(milliseconds / 1_000).\(fraction)"
    }

    /// In the form that the format requires of histogram bounds: no trailing zeros except in `1.0`.
    package init(microseconds: Int64) { description = "\(Double(microseconds) / 1_000_000)" }
  }

  private let labels: [MetricLabel]
  private var lines = ""

  /// - Parameter labels: of every sample.
  package init(labels: [MetricLabel] = []) { self.labels = labels }

  package var text: String { lines + "# EOF\n" }

  /// Adds a family with one sample; adds nothing without a value.
  ///
  /// - Parameters:
  ///   - name: without `_total`; unique in the text.
  ///   - help: one line without backslashes.
  package mutating func add(_ kind: Kind, _ name: String, in unit: Unit? = nil, _ help: String, _ value: Value?) {
    add(kind, name, in: unit, help, value.map { [([], $0)] } ?? [])
  }

  package mutating func add(
    _ kind: Kind,
    _ name: String,
    in unit: Unit? = nil,
    _ help: String,
    _ samples: [(labels: [MetricLabel], value: Value)]
  ) {
    guard !samples.isEmpty else { return }
    let name = begin(kind, name, in: unit, help)
    for sample in samples { add(kind == .counter ? "\(name)_total" : name, sample.labels, sample.value) }
  }

  /// Adds a histogram in seconds.
  mutating func add(_ name: String, _ help: String, _ durations: DurationCounts) {
    add(name, help, [([], durations)])
  }

  package mutating func add(
    _ name: String,
    _ help: String,
    _ samples: [(labels: [MetricLabel], durations: DurationCounts)]
  ) {
    guard !samples.isEmpty else { return }
    let name = begin(.histogram, name, in: .seconds, help)
    for (labels, durations) in samples {
      var count: Int64 = 0
      let ends = durations.boundsMicroseconds.map { Value(microseconds: $0).description } + ["+Inf"]
      for (end, inRange) in zip(ends, durations.counts) {
        count += inRange
        add("\(name)_bucket", labels + [MetricLabel(name: "le", value: end)], Value(count))
      }
      add("\(name)_count", labels, Value(count))
      add("\(name)_sum", labels, Value(microseconds: durations.sumMicroseconds))
    }
  }

  /// Returns the family's full name.
  private mutating func begin(_ kind: Kind, _ name: String, in unit: Unit?, _ help: String) -> String {
    let name = unit.map { "\(name)_\($0.rawValue)" } ?? name
    lines += "# TYPE \(name) \(kind.rawValue)\n"
    if let unit { lines += "# UNIT \(name) \(unit.rawValue)\n" }
    lines += "# HELP \(name) \(help)\n"
    return name
  }

  private mutating func add(_ name: String, _ own: [MetricLabel], _ value: Value) {
    let list = (labels + own).map(\.description).joined(separator: ",")
    lines += "\(name)\(list.isEmpty ? "" : "{\(list)}") \(value)\n"
  }
}

/// Distinguishes samples of one name: `user="me"`.
package struct MetricLabel: CustomStringConvertible, Sendable {
  package let name: String
  /// As written in the text.
  package let description: String

  package init(name: String, value: String) {
    self.name = name
    var escaped = ""
    for character in value.unicodeScalars {
      switch character {
      case "\\": escaped += #"\\"#
      case "\"": escaped += #"\""#
      case "\n": escaped += #"\n"#
      default: escaped.unicodeScalars.append(character)
      }
    }
    description = "\(name)=\"\(escaped)\""
  }
}
