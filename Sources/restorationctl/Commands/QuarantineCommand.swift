// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct QuarantineCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "quarantine",
    abstract: "Show or release states that are withheld after crashes.",
    usage: "restorationctl quarantine [<option> ...] <command>",
    discussion: """
      Examples:
        restorationctl quarantine list org.example.Notes
        restorationctl quarantine release org.example.Notes Main/Editor

      If a process fails twice after it got a state, by a fault or with an exit
      status, the state is withheld, and the application starts without it.
      After three failures of unknown cause all its states are withheld.
      """,
    subcommands: [QuarantineListCommand.self, QuarantineReleaseCommand.self]
  )

  // All options may stand before or after the command.
  @OptionGroup var options: CommonOptions
}

struct QuarantineListCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List withheld and suspected states.",
    usage: "restorationctl quarantine list [<option> ...] <application>",
    discussion: """
      Examples:
        restorationctl quarantine list org.example.Notes
        restorationctl quarantine list org.example.Notes -j | jq '.objects[].states[-1].state'

      A "quarantined" state is withheld from its owner. A "suspect" state is
      restored alone, to find out whether it crashes the process. "lifted" means
      that a newer state has replaced the withheld one. The last three are kept,
      and shown in JSON.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "Show the states of confidential objects, in JSON.")
  var reveal = false

  func run() async throws {
    try await withBroker { broker in
      let report = try await broker.listQuarantine(of: application, reveal: reveal)
      let withheld = PrintedObject { writer in
        writer.member("application", application)
        report.writeMembers(to: &writer)
      }
      try output.show(withheld, or: report.text(hidesLegend: legend.hidesLegend))
    }
  }
}

struct QuarantineReleaseCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "release",
    abstract: "Release withheld states.",
    usage: "restorationctl quarantine release [<option> ...] <application> [<path>]",
    discussion: """
      Examples:
        restorationctl quarantine release org.example.Notes Main/Editor
        restorationctl quarantine release org.example.Notes

      Without a path, all states are released, and all strikes against the
      application are cleared.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath?

  func run() async throws {
    try await withBroker { broker in
      let released = try await broker.call(ReleaseQuarantine(path: path), of: application).released
      let done = PrintedObject { writer in
        writer.member("application", application)
        writer.member("released", released)
      }
      let what = released == 0 ? "Nothing was withheld" : "Released \(Quantity.count(released, "object"))"
      let place = path.map { " at \($0.description)" } ?? ""
      try output.confirm(done, or: "\(what)\(place) of \(application).")
    }
  }
}

extension QuarantineReport {
  fileprivate func text(hidesLegend: Bool) -> String {
    var table = TextTable([
      TextTable.Column("PATH", minimum: 16),
      TextTable.Column("STANDING"),
      TextTable.Column("STRIKES", .right),
      TextTable.Column("TEXTS", .right),
      TextTable.Column("SINCE", .right),
    ])
    let now = Clock.now
    for object in objects {
      let since = object.states.last.map { Quantity.age(now - $0.quarantined.milliseconds) }
      table.add([
        TextTable.Cell(object.path?.description ?? "(no path)"),
        TextTable.Cell(object.standing.rawValue, object.standing == .quarantined ? .red : nil),
        // The count starts again when a state is withheld.
        TextTable.Cell(object.standing == .quarantined ? "-" : String(object.strikes)),
        TextTable.Cell(String(object.states.count)),
        TextTable.Cell(since ?? ""),
      ])
    }
    var text = objects.isEmpty ? "" : table.text(header: !hidesLegend)
    guard !hidesLegend else { return text }
    if !objects.isEmpty { text += "\n" }
    if let archive { text += "The whole archive is in quarantine since \(archive.local).\n" }
    if strikes > 0 { text += "\(Quantity.count(strikes, "strike")) in a row; the third withholds everything.\n" }
    return text + Quantity.count(objects.count, "object") + ".\n"
  }
}
