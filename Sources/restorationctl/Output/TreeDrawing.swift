// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// A drawing of an application's objects: a line each, and a legend of the marks.
struct TreeDrawing {
  /// The lines from a parent to its children; all are two columns wide.
  struct Lines {
    let branch: String
    let lastBranch: String
    let passing: String
    let blank = "  "

    static let boxes = Lines(branch: "├─", lastBranch: "└─", passing: "│ ")
    static let ascii = Lines(branch: "|-", lastBranch: "`-", passing: "| ")
  }

  let application: ApplicationDescription
  let lines: Lines
  /// Milliseconds since 1970.
  let now: Int64

  private static let palette: [Colour] = [.green, .cyan, .yellow, .magenta, .blue, .red]

  func text(legend: Bool) -> String {
    let colours = self.colours
    var rows = [[TextTable.Cell(application.application.description, .bold)] + (1...6).map { _ in TextTable.Cell("") }]
    ObjectTree(application.objects).walk { visit in
      rows.append(row(visit, colours))
    }
    // A deeply nested object keeps a readable part of its name, as far as half of the line is enough for that.
    let deepest = rows.lazy.map { $0[0].leading }.max() ?? 0
    var table = TextTable([
      TextTable.Column("OBJECT", minimum: max(24, min(deepest + 16, (Output.width ?? 0) / 2))),
      TextTable.Column("CLASS", minimum: 10, yields: 3),
      TextTable.Column("PROCESS", minimum: 7, yields: 5),
      TextTable.Column("PID", .right, yields: 1),
      TextTable.Column("AGE", .right, yields: 4),
      TextTable.Column("SIZE", .right, yields: 2),
      TextTable.Column("MARKS", minimum: nil),
    ])
    for row in rows { table.add(row) }
    return table.text(header: legend) + (legend ? "\n" + self.legend : "")
  }

  private func row(_ visit: ObjectTree.Visit, _ colours: [Int64: Colour]) -> [TextTable.Cell] {
    let object = visit.object
    let colour = object.pid.map { colours[$0] ?? .faint } ?? .faint
    return [
      TextTable.Cell(object.component ?? "(no identifier)", colour, leading: prefix(visit.branches)),
      TextTable.Cell(object.classes.first ?? "-"),
      TextTable.Cell(object.process ?? "-", colour),
      TextTable.Cell(object.pid.map { String($0) } ?? "-"),
      TextTable.Cell(object.modified.map { Quantity.age(now - $0.milliseconds) } ?? "-"),
      TextTable.Cell(object.hasState ? Quantity.bytes(object.bytes) : "-"),
      TextTable.Cell(Mark.all.filter { $0.applies(object) }.map(\.letter).joined()),
    ]
  }

  /// The lines before a name. If only their end fits, only that is made, because a deep tree has many of them.
  private func prefix(_ branches: [Bool]) -> String {
    var parts = branches.dropLast().map { $0 ? lines.passing : lines.blank }[...]
    if let width = Output.width { parts = parts.suffix(width) }
    return parts.joined() + (branches.last == true ? lines.branch : lines.lastBranch)
  }

  /// Processes get their colours in the order of their objects.
  private var colours: [Int64: Colour] {
    var colours: [Int64: Colour] = [:]
    for pid in application.objects.compactMap(\.pid) where colours[pid] == nil {
      colours[pid] = Self.palette[colours.count % Self.palette.count]
    }
    return colours
  }

  private var legend: String {
    let objects = application.objects
    let bytes = objects.reduce(0) { $0 + $1.bytes }
    let states = objects.count(where: \.hasState)
    let sessions = application.sessions.count
    let counts = [
      Quantity.count(objects.count, "object"), "\(states) with state (\(Quantity.bytes(bytes)))",
      "\(Quantity.count(sessions, "session")).",
    ]
    return "\(Mark.all.map { "\($0.letter) \($0.meaning)" }.listed())\n\(counts.listed())\n"
  }
}

/// A letter in the last column of the tree.
struct Mark {
  let letter: String
  let meaning: String
  let applies: (ObjectDescription) -> Bool

  static var all: [Mark] {
    [
      Mark(letter: "v", meaning: "vacant") { $0.isVacant },
      Mark(letter: "o", meaning: "orphaned") { $0.orphaned },
      Mark(letter: "x", meaning: "excluded") { !$0.included },
      Mark(letter: "c", meaning: "confidential") { $0.confidential },
      Mark(letter: "w", meaning: "withheld") { $0.quarantined },
      Mark(letter: "e", meaning: "empty (no state)") { !$0.hasState },
    ]
  }
}
