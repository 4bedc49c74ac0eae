// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

struct Options {
  enum Action { case serve, check, printSchema }

  var action = Action.serve
  var configuration = "/etc/restorationd/gateway.json"
  /// For a gateway without a socket from a service manager.
  var socket: String?
  var logLevel: String?
  /// `nil` writes no metrics.
  var metricsFile: String?

  /// Throws the answer if a question was asked.
  static func read(_ words: some Collection<String>) throws(Ending) -> Options {
    var options = Options()
    var rest = Array(words)[...]
    while let word = rest.popFirst() {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      func value() throws(Ending) -> String {
        guard let value = parts.count > 1 ? String(parts[1]) : rest.popFirst(), !value.isEmpty else {
          throw .refused("\(parts[0]): the value is missing")
        }
        return value
      }
      switch word.hasPrefix("--") ? String(parts[0]) : word {
      case "--config": options.configuration = try value()
      case "--socket": options.socket = try value()
      case "--log-level": options.logLevel = try value()
      case "--metrics-file": options.metricsFile = try value()
      case "--check": try options.act(.check)
      case "schema": try options.act(.printSchema)
      case "--version": throw .answered(ProtocolVersion.program)
      case "--help", "-h": throw .answered(help)
      default: throw .refused("unknown argument \(word)")
      }
    }
    return options
  }

  private mutating func act(_ asked: Action) throws(Ending) {
    guard action == .serve || action == asked else { throw .refused("--check and schema are two commands; give one") }
    action = asked
  }

  static let usage =
    """
    restoration-gateway [--config FILE] [--socket PATH] [--metrics-file FILE] [--log-level LEVEL] \
    [--check | schema]
    """

  private static let help = """
    OVERVIEW: Lets the state of applications follow their users, by a database.

    USAGE: \(usage)

      --config FILE        The configuration (default /etc/restorationd/gateway.json).
      --socket PATH        The Unix socket to listen on, without a socket unit.
      --metrics-file FILE  Write there every 15 seconds what it does, for node_exporter.
      --log-level LEVEL    trace, debug, info, notice, warning, error or critical.
      --check              Read the configuration and ask the database, then end.
      schema               Print what an administrator applies to the database.
      --version            Show the version.
      -h, --help           Show help information.
    """
}
