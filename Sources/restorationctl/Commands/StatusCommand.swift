// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct StatusCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show whether the broker runs and what it holds.",
    usage: "restorationctl status [<option> ...]",
    discussion: """
      Examples:
        restorationctl status
        restorationctl status --json=short

      Exit status 3 means that no broker is running.
      """
  )

  @OptionGroup var options: CommonOptions

  func run() async throws {
    try await withBroker { broker in
      let statistics = try await broker.call(ReportStatistics())
      let applications = try await broker.call(ListApplications()).applications
      let status = BrokerStatus(socket: broker.socketPath, statistics: statistics, applications: applications)
      try output.print(status, or: status.text)
    }
  }
}
