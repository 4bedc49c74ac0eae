// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

struct Options {
  enum Action {
    case serve, check, printSchema
    case erase(user: String)
  }

  var action = Action.serve
  var configuration = "/etc/restorationd/gateway.json"
  /// For a gateway without a socket from a service manager.
  var socket: String?
  var logLevel: String?
  /// `nil` writes no metrics.
  var metricsFile: String?

  /// Throws the answer if a question was asked.
  static func read(_ words: some Collection<String>) throws(Ending) -> Options {
    var (options, erases, user, isSure) = (Options(), false, String?.none, false)
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
      case "--user": user = try value()
      case "--yes": isSure = true
      case "--check": options.action = .check
      case "schema": options.action = .printSchema
      case "erase": erases = true
      case "--version": throw .answered(ProtocolVersion.program)
      case "--help", "-h": throw .answered(help)
      default: throw .refused("unknown argument \(word)")
      }
    }
    guard erases == (user != nil) else { throw .refused("erase and --user go together") }
    guard let user else { return options }
    guard isSure else {
      throw .refused("this removes the archives of \(user) for good, on all hosts; add --yes if that is meant")
    }
    options.action = .erase(user: user)
    return options
  }

  static let usage =
    """
    restoration-gateway [--config FILE] [--socket PATH] [--metrics-file FILE] [--log-level LEVEL] \
    [--check | schema | erase --user USER --yes]
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
      erase --user USER    Remove everything that the database has of a user, for good.
      --yes                Say that this is meant.
      --version            Show the version.
      -h, --help           Show help information.
    """
}
