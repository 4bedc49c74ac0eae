// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct MetricsCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "metrics",
    abstract: "Print what the broker counts and measures, in OpenMetrics.",
    usage: "restorationctl metrics [<option> ...]",
    discussion: """
      Examples:
        restorationctl metrics
        restorationctl metrics --applications | grep _damaged
        restorationctl metrics -o /var/lib/prometheus/node-exporter/restorationd.prom

      The text is for Prometheus and node_exporter, even with -j. A file is written
      completely or not at all, and everybody can read it. If no broker is running,
      the file says restorationd_up 0 and the exit status is 0; without a file it is
      3.
      """
  )

  @OptionGroup var options: CommonOptions
  @OptionGroup var destination: DestinationOptions

  @Flag(help: "Add what is known of each application.")
  var applications = false

  @Option(
    help: ArgumentHelp("Add a label to every sample; may be given several times.", valueName: "name=value")
  )
  var label: [MetricLabel] = []

  func validate() throws {
    guard Set(label.map(\.name)).count == label.count else { throw ValidationError("a label is given twice") }
  }

  func run() async throws {
    do {
      var metrics: BrokerMetrics?
      try await withBroker { broker in
        let statistics = try await broker.statistics()
        metrics = BrokerMetrics(statistics: statistics, applications: try await broker.listApplications())
      }
      guard let metrics else { return }
      try destination.write(metrics.text(label, byApplication: applications), mode: 0o644)
    } catch let failure as Failure where isToWriteDown(failure) {
      // A file of before would look like a broker that is well.
      try destination.write(BrokerMetrics.down(label), mode: 0o644)
      if failure.status != ExitStatus.notRunning { throw failure }
    }
  }

  private func isToWriteDown(_ failure: Failure) -> Bool {
    destination.file != nil && failure.status != ExitStatus.usage && failure.status != ExitStatus.outputFailed
  }
}
