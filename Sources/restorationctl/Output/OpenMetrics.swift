// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// A text in the exposition format OpenMetrics 1.0, of the kinds that readers of the older Prometheus format know too.
struct OpenMetrics {
  enum Kind: String {
    case counter, gauge
  }

  /// A unit. The names of its families end with it.
  enum Unit: String {
    case bytes, seconds
  }

  struct Value: CustomStringConvertible {
    let description: String

    init(_ number: some BinaryInteger) { description = "\(number)" }

    init(milliseconds: Int64) {
      let fraction = String(milliseconds % 1_000 + 1_000).dropFirst()
      description = "\(milliseconds / 1_000).\(fraction)"
    }
  }

  private let labels: [MetricLabel]
  private var lines = ""

  /// - Parameter labels: of every sample.
  init(labels: [MetricLabel]) { self.labels = labels }

  /// The whole text.
  var text: String { lines + "# EOF\n" }

  /// Adds a family with one sample; none without a value.
  ///
  /// - Parameters:
  ///   - name: without `_total`; unique in the text.
  ///   - help: one line without backslashes.
  mutating func add(_ kind: Kind, _ name: String, in unit: Unit? = nil, _ help: String, _ value: Value?) {
    add(kind, name, in: unit, help, value.map { [([], $0)] } ?? [])
  }

  mutating func add(
    _ kind: Kind,
    _ name: String,
    in unit: Unit? = nil,
    _ help: String,
    _ samples: [(labels: [MetricLabel], value: Value)]
  ) {
    guard !samples.isEmpty else { return }
    let name = unit.map { "\(name)_\($0.rawValue)" } ?? name
    lines += "# TYPE \(name) \(kind.rawValue)\n"
    if let unit { lines += "# UNIT \(name) \(unit.rawValue)\n" }
    lines += "# HELP \(name) \(help)\n"
    for sample in samples {
      let list = (labels + sample.labels).map(\.description).joined(separator: ",")
      let suffix = kind == .counter ? "_total" : ""
      lines += "\(name)\(suffix)\(list.isEmpty ? "" : "{\(list)}") \(sample.value)\n"
    }
  }
}

/// Tells samples of one name apart: `user="me"`.
struct MetricLabel: CustomStringConvertible {
  let name: String
  let value: String

  /// As the format has it.
  var description: String {
    var escaped = ""
    for character in value.unicodeScalars {
      switch character {
      case "\\": escaped += #"\\"#
      case "\"": escaped += #"\""#
      case "\n": escaped += #"\n"#
      default: escaped.unicodeScalars.append(character)
      }
    }
    return "\(name)=\"\(escaped)\""
  }
}

extension MetricLabel {
  /// A label as people type it: `name=value`, with a name that the format allows and the tool does not use itself.
  static func read(_ argument: String) throws -> MetricLabel {
    let parts = argument.unicodeScalars.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      .map(String.init)
    guard parts.count == 2 else { throw ValidationError("'\(argument)' is no label: give name=value") }
    guard parts[0].wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) != nil, !parts[0].hasPrefix("__") else {
      throw ValidationError(
        "'\(parts[0])' names no label: use letters, digits and _, and begin neither with a digit nor with __"
      )
    }
    guard !["application", "version"].contains(parts[0]) else {
      throw ValidationError("the label '\(parts[0])' is one of the tool's own: choose another name")
    }
    return MetricLabel(name: parts[0], value: parts[1])
  }
}
