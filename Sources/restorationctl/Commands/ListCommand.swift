// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import RestorationClient
internal import RestorationWire

struct ListCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the applications that have live sessions or saved state.",
    usage: "restorationctl list [<option> ...] [<pattern>]",
    discussion: """
      Examples:
        restorationctl list
        restorationctl list 'org.example.*' --sort size
        restorationctl list --no-legend
        restorationctl list -j

      STATES is the size of the saved states, known while the application is open.
      FILES is the size of its archive, with all generations. An application that
      another host has is "elsewhere". States withheld after failures of their
      program are counted; if all are withheld, the state is "quarantined". The
      JSON is the result of the method listApplications.
      """
  )

  enum Order: String, CaseIterable, ExpressibleByArgument {
    case name, size, time
  }

  @OptionGroup var options: CommonOptions

  @Option(help: ArgumentHelp("The first: by name, the largest (size), the last used (time).", valueName: "order"))
  var sort = Order.name

  @Argument(help: "A shell pattern that the names match: 'org.example.*'.", completion: .applications)
  var pattern: String?

  func run() async throws {
    try await withBroker { broker in
      let listed = try await broker.call(ListApplications()).with { $0.applications = chosen($0.applications) }
      if let layout = output.layout { return try layout.show(listed) }
      try Output.show(Self.table(of: listed.applications).text(counting: "application", legend))
    }
  }

  /// Those of the same size or time stay in ascending order of name.
  private func chosen(_ applications: [ApplicationOverview]) -> [ApplicationOverview] {
    let matching = applications.filter { pattern == nil || fnmatch(pattern, $0.application.description, 0) == 0 }
    return switch sort {
    case .name: matching
    case .size: matching.sorted { ($0.fileBytes ?? $0.bytes) > ($1.fileBytes ?? $1.bytes) }
    // An application in use has no unused days.
    case .time: matching.sorted { ($0.unusedDays ?? 0) < ($1.unusedDays ?? 0) }
    }
  }

  static func table(of applications: [ApplicationOverview]) -> TextTable {
    // Names can be copied as long as they fit into three quarters of the line.
    let longest = applications.lazy.map(\.application.description.columns).max() ?? 0
    var table = TextTable([
      TextTable.Column("APPLICATION", minimum: min(longest, (Output.width ?? 0) * 3 / 4)),
      TextTable.Column("SESSIONS", .right, yields: 6),
      TextTable.Column("OBJECTS", .right, yields: 3),
      TextTable.Column("GENERATION", .right, yields: 1),
      TextTable.Column("STATES", .right, yields: 4),
      TextTable.Column("FILES", .right, yields: 2),
      TextTable.Column("STATE", minimum: 9, yields: 5),
    ])
    for application in applications {
      table.add([
        application.application.description,
        String(application.sessions),
        String(application.objects),
        application.generation.map { String($0) } ?? "-",
        application.stateBytes.map(Quantity.bytes) ?? "-",
        application.fileBytes.map(Quantity.bytes) ?? "-",
        application.host.map { "elsewhere (\($0))" } ?? state(of: application),
      ])
    }
    return table
  }

  /// Reports a quarantine of the whole archive as the state.
  private static func state(of application: ApplicationOverview) -> String {
    let isPart = application.withheld > 0 && application.state != .quarantined
    return application.state.rawValue + (isPart ? ", \(application.withheld) withheld" : "")
  }
}
