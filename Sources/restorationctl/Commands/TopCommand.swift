// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct TopCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "top",
    abstract: "Show the broker's activity, repeatedly.",
    usage: "restorationctl top [<option> ...]",
    discussion: """
      Examples:
        restorationctl top
        restorationctl top --interval 10
        restorationctl top --count 2 --json=short | tail -n 1 | jq .rates

      Rates count from the last display, the first ones from the broker's start.
      CPU is the time of the thread that serves all clients. Applications with most
      sessions come first, then those with the largest states.

      An interrupt ends it with status 0, and the end of the broker with status 69.
      """
  )

  @OptionGroup var options: CommonOptions

  @Option(
    help: ArgumentHelp("Seconds from one display to the next (default: 2).", valueName: "seconds"),
    transform: Seconds.read
  )
  var interval: Seconds?

  @Option(help: ArgumentHelp("End after this many displays.", valueName: "number"))
  var count: Int?

  func validate() throws {
    if let count, count < 1 { throw ValidationError("--count is \(count). Give at least 1.") }
  }

  func run() async throws {
    Interruption.endsTheTool()
    try await withBroker { broker in
      var former = BrokerStatistics()
      var left = count ?? .max
      while left > 0 {
        let statistics = try await broker.call(ReportStatistics())
        let load = Load(of: try await broker.call(ListApplications()).applications, statistics, since: former)
        TimeLimit.isForWatching()
        try output.refresh(load, or: load.text(legend: !legend.hidesLegend))
        (former, left) = (statistics, left - 1)
        if left > 0 { try await Task.sleep(for: interval?.duration ?? .seconds(2)) }
      }
    }
  }
}

private struct Load: JSONWritable {
  private static let rateNames = ["requests", "encodes", "decodes", "transactions", "events", "errors"]

  let statistics: BrokerStatistics
  let applications: [ApplicationOverview]
  let cpuPercent: Double
  /// Per second.
  let rates: [(name: String, rate: Double)]

  init(of applications: [ApplicationOverview], _ statistics: BrokerStatistics, since former: BrokerStatistics) {
    self.statistics = statistics
    self.applications = applications.sorted { left, right in
      (left.sessions, left.stateBytes ?? 0) > (right.sessions, right.stateBytes ?? 0)
    }
    let milliseconds = Double(max(1, statistics.uptimeMilliseconds - former.uptimeMilliseconds))
    let growth = { (name: String) in Double((statistics.counters[name] ?? 0) - (former.counters[name] ?? 0)) }
    // One digit after the point.
    let rounded = { (rate: Double) in (rate * 10).rounded() / 10 }
    cpuPercent = rounded(growth("busyMilliseconds") * 100 / milliseconds)
    rates = Self.rateNames.map { ($0, rounded(growth($0) * 1_000 / milliseconds)) }
  }

  func text(legend: Bool) -> String {
    let broker = "\(statistics.broker.name) \(statistics.broker.version)".printable
    let gauges = ["connections", "sessions", "openArchives"].map { "\($0) \(statistics.gauges[$0] ?? 0)" }
    let facts = [broker, "pid \(statistics.pid)", "up \(Quantity.span(statistics.uptime))"] + gauges
    let rates = ["CPU \(cpuPercent) %"] + rates.map { "\($0.name) \($0.rate)/s" }
    let table = ListCommand.table(of: applications)
    return """
      \(facts.listed())
      \(rates.listed())

      \(applications.isEmpty ? "no applications\n" : table.text(header: legend))
      """
  }

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("uptimeMilliseconds", statistics.uptimeMilliseconds)
      writer.member("cpuPercent", JSONText(.real(cpuPercent)))
      writer.member("rates", JSONText(.object(JSONObject(rates.map { ($0.name, .real($0.rate)) }))))
      writer.member("gauges", statistics.gauges)
      writer.member("applications", applications)
    }
  }
}
