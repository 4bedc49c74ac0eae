// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct TakeOverCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "take-over",
    abstract: "Take an application from another host that has it.",
    usage: "restorationctl take-over [<option> ...] <application>",
    discussion: """
      Examples:
        restorationctl take-over org.example.Notes

      For a host that sleeps, is lost or does not leave. Sessions there end, and
      what it has not sent is set aside there: see store conflicts.
      """
  )

  @OptionGroup var options: ApplicationOptions

  func run() async throws {
    try await withBroker { broker in
      let host = try await broker.takeOver(application)
      if host == nil { try await broker.call(DescribeApplication(), of: application) }
      let document = PrintedObject {
        $0.member("application", application)
        $0.member("host", host)
      }
      let outcome = host.map { "was taken from \($0)" } ?? "is on no other host"
      try output.confirm(document, or: "\(application) \(outcome).")
    }
  }
}

extension BrokerConnection {
  /// Takes an application from the host that has it. Returns that host; `nil` if no other has it.
  func takeOver(_ application: String) async throws -> String? {
    let status = try await call(ReportReplica(application: ApplicationName(sending: application)))
    let known = status.applications.first
    guard known?.lease == .elsewhere || !status.reachable else { return nil }
    try await call(DescribeApplication().with { $0.takeOver = true }, of: application)
    return known?.host
  }
}
