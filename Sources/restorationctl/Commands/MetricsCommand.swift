// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct MetricsCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "metrics",
    abstract: "Print the broker's metrics in OpenMetrics.",
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

  @Flag(help: "Add the metrics of each application.")
  var applications = false

  @Option(
    help: ArgumentHelp("Add a label to every sample; may be given several times.", valueName: "name=value"),
    transform: MetricLabel.read
  )
  var label: [MetricLabel] = []

  func validate() throws {
    let names = label.map(\.name)
    if let twice = names.enumerated().first(where: { names.prefix($0.offset).contains($0.element) })?.element {
      throw ValidationError("label '\(twice)' is given twice: leave one out")
    }
  }

  func run() async throws {
    // An old file would look as if the broker were running.
    let down = BrokerMetrics.down(label)
    if destination.file != nil { TimeLimit.whenOver { [destination] in try? destination.write(down, mode: 0o644) } }
    var text = down
    var failed: Failure?
    do {
      try await withBroker { broker in
        let statistics = try await broker.call(ReportStatistics())
        let listed = try await broker.call(ListApplications()).applications
        let metrics = BrokerMetrics(statistics: statistics, applications: listed)
        text = metrics.text(label, byApplication: applications)
      }
    } catch let failure as Failure where destination.file != nil {
      failed = failure
    }
    // The limit is for the broker; the disk may be slow as well.
    try TimeLimit.suspended { try destination.write(text, mode: 0o644) }
    if let failed, failed.status != ExitStatus.notRunning { throw failed }
  }
}

extension MetricLabel {
  /// A label as `name=value`, with a name that the format allows and the tool does not use itself.
  fileprivate static func read(_ argument: String) throws -> MetricLabel {
    let parts = argument.unicodeScalars.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      .map(String.init)
    guard parts.count == 2 else { throw ValidationError("'\(argument)' is no label: give name=value") }
    guard parts[0].wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) != nil, !parts[0].hasPrefix("__") else {
      throw ValidationError(
        "'\(parts[0])' names no label: use letters, digits and _, and begin neither with a digit nor with __"
      )
    }
    guard !["application", "cause", "le", "state", "version"].contains(parts[0]) else {
      throw ValidationError("the label '\(parts[0])' is one of the tool's own: choose another name")
    }
    return MetricLabel(name: parts[0], value: parts[1])
  }
}
