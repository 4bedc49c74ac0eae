// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct HistoryCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "List the generations of an application that are kept.",
    usage: "restorationctl history [<option> ...] <application>",
    discussion: """
      Examples:
        restorationctl history org.example.Notes
        restorationctl history org.example.Notes -j | jq '.generations[-1]'
        restorationctl show org.example.Notes Main/Editor --generation 3

      A generation is a numbered version of the archive that never changes. The
      pinned generation is the one the current run started from. In JSON it is
      the result of the method listGenerations.
      """
  )

  @OptionGroup var options: ApplicationOptions

  func run() async throws {
    try await withBroker { broker in
      if let layout = output.layout {
        let parameters = PrintedObject { $0.member("application", application) }
        return try layout.show(try await broker.call("listGenerations", parameters.text.string))
      }
      let table = table(of: try await broker.call(ListGenerations(), of: application).generations)
      try Output.show(table.text(counting: "generation", legend))
    }
  }

  private func table(of generations: [GenerationDescription]) -> TextTable {
    var table = TextTable([
      TextTable.Column("GENERATION", .right),
      TextTable.Column("COMMITTED", minimum: nil),
      TextTable.Column("AGE", .right, yields: 1),
      TextTable.Column("KIND"),
      TextTable.Column("OBJECTS", .right, yields: 3),
      TextTable.Column("SIZE", .right, yields: 2),
      TextTable.Column("PINNED"),
    ])
    let now = Clock.now
    for generation in generations {
      table.add([
        TextTable.Cell(String(generation.generation)),
        TextTable.Cell(generation.committed.local),
        TextTable.Cell(Quantity.age(now - generation.committed.milliseconds)),
        TextTable.Cell(generation.kind),
        TextTable.Cell(String(generation.objects)),
        TextTable.Cell(Quantity.bytes(generation.bytes)),
        TextTable.Cell(generation.pinned ? "pinned" : "", .green),
      ])
    }
    return table
  }
}
