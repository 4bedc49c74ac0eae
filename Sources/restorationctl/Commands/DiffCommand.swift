// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct DiffCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Show what differs between two generations of an application.",
    usage: "restorationctl diff [<option> ...] <application> <from> [<to>]",
    discussion: """
      Examples:
        restorationctl diff org.example.Notes 3
        restorationctl diff org.example.Notes 3 5
        restorationctl diff org.example.Notes 3 -j | jq '.changed[].path'

      Without a second number, the generation is compared with the head. For
      states that differ, the top-level keys are named; those of confidential
      objects only with --reveal.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "Name the keys of confidential objects.")
  var reveal = false

  @Argument(help: "The number of a generation.", transform: GenerationNumber.read)
  var from: Int64

  @Argument(help: "The number of another generation (default: the head).", transform: GenerationNumber.read)
  var to: Int64?

  func run() async throws {
    try await withBroker { broker in
      let difference = try await GenerationNumber.orNotThere(in: application) {
        try await ProgressLine.during("comparing") { progress in
          try await broker.diffGenerations(of: application, from: from, to: to, reveal: reveal, progress: progress)
        }
      }
      let compared = PrintedObject { writer in
        writer.member("from", from)
        writer.member("to", to)
        difference.writeMembers(to: &writer)
      }
      try output.show(compared, or: text(of: difference))
    }
  }

  private func text(of difference: GenerationDifference) -> String {
    let sides = "generation \(from) and \(to.map { "generation \($0)" } ?? "now")"
    if difference.isEmpty { return legend.hidesLegend ? "" : "Nothing differs between \(sides).\n" }
    var table = TextTable([
      TextTable.Column("CHANGE", minimum: nil), TextTable.Column("PATH"), TextTable.Column("KEYS"),
    ])
    func add(_ word: String, _ colour: Colour, _ path: IdentifierPath, _ keys: String = "") {
      table.add([TextTable.Cell(word, colour), TextTable.Cell(path.description), TextTable.Cell(keys)])
    }
    for path in difference.removed { add("removed", .red, path) }
    for path in difference.added { add("added", .green, path) }
    for change in difference.changed { add("changed", .yellow, change.path, Self.keys(of: change)) }
    guard !legend.hidesLegend else { return table.text(header: false) }
    let (removed, added, changed) = (difference.removed.count, difference.added.count, difference.changed.count)
    let counts = "\(removed) removed, \(added) added, \(changed) changed"
    return table.text(header: true) + "\nBetween \(sides): \(counts).\n"
  }

  private static func keys(of change: ObjectDifference) -> String {
    if change.redacted { return "(confidential)" }
    if change.unreadable { return "(damaged)" }
    return (change.keys + (change.elements ? ["(elements)"] : [])).joined(separator: ", ")
  }
}
