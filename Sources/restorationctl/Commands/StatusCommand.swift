// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

/// `restorationctl status`
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show whether the broker runs and what it holds.",
    usage: "restorationctl status [<option> ...]",
    discussion: """
      Examples:
        restorationctl status
        restorationctl status --json=short

      Exit status 3 says that no broker is running.
      """
  )

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var legend: LegendOptions

  func run() async throws {
    try await connection.run { broker in
      let statistics = try await broker.statistics()
      let applications = try await broker.listApplications()
      let status = Status(socket: broker.socketPath, statistics: statistics, applications: applications)
      if let layout = output.layout {
        try layout.print(status.json)
      } else {
        try Output.print(status.text)
      }
    }
  }
}

/// What `status` shows.
private struct Status {
  let broker: String
  let version: String
  let pid: Int64
  let socket: String
  let uptime: Duration
  let sessions: Int
  let objects: Int
  let archives: Int
  let archiveBytes: Int
  /// Applications whose archive is or was damaged, and how.
  let troubles: [(application: String, what: String)]

  init(socket: String, statistics: BrokerStatistics, applications: [ApplicationSummary]) {
    self.broker = statistics.brokerName
    self.version = statistics.brokerVersion
    self.pid = statistics.pid
    self.socket = socket
    self.uptime = statistics.uptime
    self.sessions = applications.reduce(0) { $0 + $1.sessions }
    self.objects = applications.reduce(0) { $0 + $1.objects }
    // An application without an archive has nothing in it but live sessions.
    self.archives = applications.count { $0.bytes > 0 || $0.generation != nil || $0.state != .none }
    self.archiveBytes = applications.reduce(0) { $0 + $1.bytes }
    self.troubles = applications.compactMap { application in
      let what = application.damaged ?? (application.state == .unreadable ? "its archive cannot be read" : nil)
      return what.map { (application.application, $0) }
    }
  }

  var text: String {
    var table = TextTable([TextTable.Column("", .right), TextTable.Column("")])
    table.add(["Broker:", "\(broker) \(version)"])
    table.add(["Socket:", socket])
    table.add(["Process:", String(pid)])
    table.add(["Uptime:", Quantity.span(uptime)])
    table.add(["Sessions:", String(sessions)])
    table.add(["Objects:", String(objects)])
    table.add(["Archives:", archives == 0 ? "0" : "\(archives) (\(Quantity.bytes(archiveBytes)))"])
    for (application, what) in troubles {
      table.add(["Damage:", "\(application.printable): \(what.printable)"])
    }
    return table.text(header: false, width: nil)
  }

  var json: String {
    var members = JSONMembers()
    members.add("broker", broker)
    members.add("version", version)
    members.add("socket", socket)
    members.add("pid", pid)
    members.add(
      "uptimeMilliseconds",
      uptime.components.seconds * 1_000 + uptime.components.attoseconds / 1_000_000_000_000_000
    )
    members.add("sessions", Int64(sessions))
    members.add("objects", Int64(objects))
    members.add("archives", Int64(archives))
    members.add("bytes", Int64(archiveBytes))
    members.add(
      "damaged",
      text: JSONMembers.array(
        troubles.map { application, what in
          var trouble = JSONMembers()
          trouble.add("application", application)
          trouble.add("message", what)
          return trouble.text
        }
      )
    )
    return members.text
  }
}
