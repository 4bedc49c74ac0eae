// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct DiffCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Show the differences between two generations of an application.",
    usage: "restorationctl diff [<option> ...] <application> <from> [<to>]",
    discussion: """
      Examples:
        restorationctl diff org.example.Notes 3
        restorationctl diff org.example.Notes 3 5
        restorationctl diff org.example.Notes 3 --values
        restorationctl diff org.example.Notes 3 -j | jq '.changed[].path'

      Without a second number, the generation is compared with the head. Of
      states that differ, the top-level keys are listed. --values adds their former
      and present values, and --reveal includes confidential objects.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "Show the values that differ.")
  var values = false

  @Flag(help: "Name the keys of confidential objects.")
  var reveal = false

  @Argument(help: "The number of a generation.", completion: .generations, transform: GenerationNumber.read)
  var from: Int64

  @Argument(
    help: "The number of another generation (default: the head).",
    completion: .generations,
    transform: GenerationNumber.read
  )
  var to: Int64?

  func run() async throws {
    try await withBroker { broker in
      let (difference, changes) = try await compare(broker)
      let compared = PrintedObject { writer in
        writer.member("from", from)
        writer.member("to", to)
        if let changes {
          writer.member("added", difference.added)
          writer.member("removed", difference.removed)
          writer.member("changed", changes)
        } else {
          difference.writeMembers(to: &writer)
        }
      }
      try output.show(compared, or: text(of: difference, changes))
    }
  }

  /// Values are read only if they will be shown.
  private func compare(
    _ broker: BrokerConnection
  ) async throws -> (difference: GenerationDifference, changes: [ChangedObject]?) {
    try await GenerationNumber.orNotThere(in: application) {
      let difference = try await ProgressLine.during("comparing") { progress in
        try await broker.diffGenerations(of: application, from: from, to: to, reveal: reveal, progress: progress)
      }
      return (difference, values ? try await changes(difference.changed, broker) : nil)
    }
  }

  private func changes(_ changed: [ObjectDifference], _ broker: BrokerConnection) async throws -> [ChangedObject] {
    let paths = Set(changed.lazy.filter { $0.obstacle == nil }.map(\.path))
    let former = try await states(at: paths, in: from, broker)
    let present = try await states(at: paths, in: to, broker)
    return changed.map { ChangedObject(difference: $0, former: former[$0.path], present: present[$0.path]) }
  }

  private func states(
    at paths: Set<IdentifierPath>,
    in generation: Int64?,
    _ broker: BrokerConnection
  ) async throws -> [IdentifierPath: JSONSlice] {
    var states: [IdentifierPath: JSONSlice] = [:]
    guard !paths.isEmpty else { return states }
    for try await object in broker.readArchive(of: application, generation: generation, reveal: reveal)
    where paths.contains(object.path) {
      states[object.path] = try object.state.map { try JSONSlice.read(sent: $0.jsonText, subject: "the state") }
    }
    return states
  }

  private func text(of difference: GenerationDifference, _ changes: [ChangedObject]?) -> String {
    let sides = "generation \(from) and \(to.map { "generation \($0)" } ?? "now")"
    if difference.isEmpty { return legend.hidesLegend ? "" : "Nothing differs between \(sides).\n" }
    let table = Self.table(of: difference, changes)
    guard !legend.hidesLegend else { return table.text(header: false) }
    return table.text(header: true) + "\nBetween \(sides): \(difference.counts).\n"
  }

  /// - Parameter changes: `nil` lists keys without values.
  static func table(of difference: GenerationDifference, _ changes: [ChangedObject]? = nil) -> TextTable {
    let columns = changes == nil ? ["KEYS"] : ["KEY", "FROM", "TO"]
    var table = TextTable(
      [TextTable.Column("CHANGE", minimum: nil), TextTable.Column("PATH")] + columns.map { TextTable.Column($0) }
    )
    func add(_ word: String, _ colour: Colour, _ path: IdentifierPath, _ rest: [String] = []) {
      let cells = rest + Array(repeating: "", count: columns.count - rest.count)
      table.add([TextTable.Cell(word, colour), TextTable.Cell(path.description)] + cells.map { TextTable.Cell($0) })
    }
    for path in difference.removed { add("removed", .red, path) }
    for path in difference.added { add("added", .green, path) }
    for change in changes ?? [] {
      for row in change.rows { add("changed", .yellow, change.difference.path, row) }
    }
    if changes == nil {
      for change in difference.changed { add("changed", .yellow, change.path, [change.words]) }
    }
    return table
  }
}

extension GenerationDifference {
  var counts: String { "\(removed.count) removed, \(added.count) added, \(changed.count) changed" }
}

extension ObjectDifference {
  /// Why keys are not named; `nil` if they are.
  fileprivate var obstacle: String? { redacted ? "(confidential)" : unreadable ? "(damaged)" : nil }

  fileprivate var words: String { obstacle ?? (keys + (elements ? ["(elements)"] : [])).joined(separator: ", ") }
}

struct ChangedObject: JSONWritable {
  fileprivate let difference: ObjectDifference
  fileprivate let former: JSONSlice?
  fileprivate let present: JSONSlice?

  /// The values may have become equal again since the comparison.
  private var values: [(key: String, from: JSONText?, to: JSONText?)] {
    difference.keys.map { ($0, former?[$0]?.compactText, present?[$0]?.compactText) }.filter { $0.from != $0.to }
  }

  /// Key, former value, present value; a hyphen for none.
  fileprivate var rows: [[String]] {
    if let obstacle = difference.obstacle { return [[obstacle]] }
    let rows = values.map { [$0.key, $0.from?.string ?? "-", $0.to?.string ?? "-"] }
    return rows + (difference.elements ? [["(elements)"]] : [])
  }

  /// The members of `diffGenerations`, and the values.
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      difference.writeMembers(to: &writer)
      writer.key("values")
      writer.beginArray()
      for value in values {
        writer.object { writer in
          writer.member("key", value.key)
          if let from = value.from { writer.member("from", from) }
          if let to = value.to { writer.member("to", to) }
        }
      }
      writer.endArray()
    }
  }
}
