// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// All that a run has found.
package struct Report: Sendable {
  package let command: String
  package let rows: [Row]
  /// What ratios are to; `nil` if nothing is compared.
  package var reference: String?
  /// What was left out, and why.
  package var missing: [String] = []
  package let processors: Int
  package let isPinned: Bool
  /// Runnable processes in the last minute before.
  package let load: Double

  package init(_ command: String, _ rows: [Row], processors: Int, isPinned: Bool, load: Double) {
    (self.command, self.rows) = (command, rows)
    (self.processors, self.isPinned, self.load) = (processors, isPinned, load)
  }

  package var circumstances: String {
    let pinned = isPinned ? "servers on the first, the generator on the last" : "nothing is pinned"
    return "\(processors) processors, \(pinned); load average before: \(Number.text(load, 2))"
  }

  // MARK: Text

  /// Titles of what a narrow table does without, the first one first. What tells rows apart stays.
  private static let dispensable = [
    "own CPU us", "framing", "objects", "bytes", "grown", "max us", "p99.9 us", "spread", "p99 us", "CPU us",
  ]
  private static let figures = ["own CPU us", "max us", "p99.9 us", "spread", "p99 us", "CPU us"]

  /// The figures in columns, with notes below them.
  ///
  /// - Parameter room: how wide a line may be; `nil` if it may be as wide as it gets.
  package func table(room: Int? = nil) -> String {
    var lines = cells
    var leftOut: [String] = []
    for title in Self.dispensable where Self.width(lines) > room ?? .max {
      guard let column = lines[0].firstIndex(of: title) else { continue }
      let isSame = Set(lines.dropFirst().map { $0[column] }).count < 2
      guard isSame || Self.figures.contains(title) else { continue }
      for line in lines.indices { lines[line].remove(at: column) }
      leftOut.append(title)
    }
    let widths = Self.widths(lines)
    let isText = lines[0].map { ["work", "server", "clients", "grown"].contains($0) }
    let text = lines.map { line in
      line.enumerated().map { column, cell in
        let space = String(repeating: " ", count: widths[column] - cell.count)
        return isText[column] ? cell + space : space + cell
      }.joined(separator: "  ")
    }
    let rest = leftOut.isEmpty ? [] : ["no room for \(leftOut.joined(separator: ", ")): see --json or --html"]
    return (text + rest + notes).map { $0 + "\n" }.joined()
  }

  private static func widths(_ lines: [[String]]) -> [Int] {
    lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
  }

  /// With two spaces between columns.
  private static func width(_ lines: [[String]]) -> Int {
    let widths = widths(lines)
    return widths.reduce(0, +) + 2 * (widths.count - 1)
  }

  /// The titles of the columns, and a line for each row.
  package var cells: [[String]] {
    let isCompared = reference != nil
    var lines = [
      ["work", "server", "clients", "grown", "bytes", "objects", "framing", "requests/s"]
        + (isCompared ? ["spread"] : [])
        + ["p50 us", "p99 us", "p99.9 us", "max us", "CPU us", "own CPU us"] + (reference.map { ["× \($0)"] } ?? [])
    ]
    lines += rows.map { row in
      let subject = row.subject
      let growth = subject.growth.map { "\($0.axis) \($0.value)" } ?? "–"
      let numbers = [subject.size, subject.objects].map { $0 > 0 ? "\($0)" : "–" }
      let latencies = [0.5, 0.99, 0.999].map { Number.text(row.latency($0).median) }
      let costs = [row.serverCost.map { Number.text($0.median) } ?? "–", Number.text(row.generatorCost.median)]
      let spread = "\(Number.text(row.rate.least))…\(Number.text(row.rate.most))"
      let ratio = row.ratio.map {
        "\(Number.text($0.median, 2)) [\(Number.text($0.least, 2))…\(Number.text($0.most, 2))]"
      }
      return [subject.work, subject.server, subject.shape, growth] + numbers
        + [subject.framing.isEmpty ? "–" : subject.framing, Number.text(row.rate.median)] + (isCompared ? [spread] : [])
        + latencies + [Number.text(row.longest)] + costs + (isCompared ? [ratio ?? "–"] : [])
    }
    return lines
  }

  /// What has to be known to read the figures.
  package var notes: [String] {
    [circumstances] + missing.map { "left out: \($0)" }
      + rows.filter { $0.failed > 0 }.map { row in
        "\(row.failed) of \(row.requests) requests of \(row.subject.work) \(row.subject.shape) (\(row.subject.server)) "
          + "were refused: \(row.failure ?? "")"
      }
  }

  // MARK: JSON

  package var json: String {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("command")
    writer.string(command)
    writer.key("processors")
    writer.integer(processors)
    writer.key("pinned")
    writer.bool(isPinned)
    writer.key("loadAverage")
    writer.real(load)
    writer.key("reference")
    if let reference { writer.string(reference) } else { writer.null() }
    writer.key("missing")
    writer.value(.array(missing.map(JSONValue.string)))
    writer.key("rows")
    writer.beginArray()
    for row in rows { Self.write(row, &writer) }
    writer.endArray()
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private static func write(_ row: Row, _ writer: inout JSONWriter) {
    let subject = row.subject
    writer.beginObject()
    for (name, text) in [("work", subject.work), ("server", subject.server), ("framing", subject.framing)] {
      writer.key(name)
      if text.isEmpty { writer.null() } else { writer.string(text) }
    }
    for (name, number) in [
      ("clients", subject.clients), ("depth", subject.depth), ("stateBytes", subject.size),
      ("objects", subject.objects), ("turns", row.turns.count), ("requests", row.requests), ("failed", row.failed),
    ] {
      writer.key(name)
      writer.integer(number)
    }
    writer.key("growth")
    if let growth = subject.growth {
      writer.beginObject()
      writer.key("axis")
      writer.string(growth.axis)
      writer.key("value")
      writer.integer(growth.value)
      writer.endObject()
    } else {
      writer.null()
    }
    let spreads: [(String, Spread?)] = [
      ("requestsPerSecond", row.rate), ("p50Microseconds", row.latency(0.5)), ("p99Microseconds", row.latency(0.99)),
      ("p999Microseconds", row.latency(0.999)), ("serverMicrosecondsPerRequest", row.serverCost),
      ("generatorMicrosecondsPerRequest", row.generatorCost), ("ratio", row.ratio),
    ]
    for (name, spread) in spreads {
      writer.key(name)
      guard let spread else {
        writer.null()
        continue
      }
      writer.beginObject()
      for (name, value) in [("least", spread.least), ("median", spread.median), ("most", spread.most)] {
        writer.key(name)
        writer.real(value)
      }
      writer.endObject()
    }
    writer.key("maxMicroseconds")
    writer.real(row.longest)
    writer.endObject()
  }
}

/// Numbers for people.
package enum Number {
  /// With so many digits behind the point; by itself as many as a reader needs.
  package static func text(_ value: Double, _ digits: Int? = nil) -> String {
    let digits = digits ?? (value < 10 ? 2 : value < 1_000 ? 1 : 0)
    let scale = (0..<digits).reduce(1) { scale, _ in scale * 10 }
    let scaled = Int((value * Double(scale)).rounded())
    guard digits > 0 else { return "\(scaled)" }
    let rest = "\(scaled % scale)"
    return "\(scaled / scale).\(String(repeating: "0", count: digits - rest.count))\(rest)"
  }
}
