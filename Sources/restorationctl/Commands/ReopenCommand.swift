// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct ReopenCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "reopen",
    abstract: "Reopen an object that was closed.",
    usage: "restorationctl reopen [<option> ...] <application> [<path>]",
    discussion: """
      Examples:
        restorationctl reopen org.example.Notes
        restorationctl reopen org.example.Notes Main/Editor
        restorationctl reopen org.example.Notes --list

      Reopens the last object that was closed, or the one at a path, with its state
      and everything closed with it. It belongs to no process until one registers
      it; `restorationctl restore APPLICATION PATH` restores it. Exit status 4 means
      that nothing can be reopened.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "Only list the objects that can be reopened.")
  var list = false

  @Argument(help: "The path it had: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath?

  func run() async throws {
    try await withBroker { broker in
      if list {
        let closed = try await broker.call(ListClosedObjects(), of: application)
        return try output.show(closed, or: Self.table(closed.objects))
      }
      let opened = try await reopen(broker)
      let text = "Opened \(opened.path) of \(application) again: \(Quantity.count(opened.objects, "object"))."
      try output.confirm(opened, or: text)
    }
  }

  private func reopen(_ broker: BrokerConnection) async throws -> ReopenedObject {
    do {
      return try await broker.call(ReopenObject(path: path), of: application)
    } catch let error as RestorationError where error.code == .unknownObject {
      throw Failure(error, hint: "See restorationctl reopen \(application) --list.")
    }
  }

  private static func table(_ closed: [ClosedObject]) -> String {
    guard !closed.isEmpty else { return "Nothing was closed lately.\n" }
    var table = TextTable([TextTable.Column("CLOSED"), TextTable.Column("PATH", minimum: nil)])
    for object in closed { table.add([object.closed.description, object.path.description]) }
    return table.text(header: true)
  }
}
