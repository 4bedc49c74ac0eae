// SPDX-License-Identifier: Apache-2.0

// `optarg` and the like are variables of C. Swift cannot know that only the main thread uses them.
@preconcurrency internal import CLinux
internal import Glibc
internal import RestorationBroker

/// The command line, read by getopt_long(3).
enum Options {
  typealias Flags = BrokerConfiguration.Flags

  private struct Option: Sendable {
    let name: String
    /// The name of its value; `nil` if it takes none.
    let value: String?
    let help: String
    let take: @Sendable (inout Flags, String) throws(Ending) -> Void

    init(
      _ name: String,
      _ value: String?,
      _ help: String,
      _ take: @escaping @Sendable (inout Flags, String) throws(Ending) -> Void
    ) {
      (self.name, self.value, self.help, self.take) = (name, value, help, take)
    }

    var usage: String { "--\(name)" + (value.map { " <\($0)>" } ?? "") }
  }

  private static let settings = [
    Option("socket", "path", "The Unix socket to listen on.") { $0.socket = $1 },
    Option("archives", "dir", "The directory to keep archives in.") { $0.archives = $1 },
    Option("config", "file", "The configuration file to read instead of the usual ones.") { $0.file = $1 },
    Option("developer-mode", nil, "Never quarantine or discard anything.") { flags, _ in flags.developerMode = true },
    Option("log-level", "level", "trace, debug, info, notice, warning, error or critical.") { $0.logLevel = $1 },
    Option("idle-exit", "seconds", "End after this many idle seconds; only with a socket unit.") {
      (flags, text) throws(Ending) in flags.idleExitSeconds = try number(text, "--idle-exit")
    },
    Option("test-clock", "ms", "For tests: start the clock this far ahead; descriptor 0 moves it further.") {
      (flags, text) throws(Ending) in flags.testClock = try number(text, "--test-clock")
    },
  ]

  private static let questions = [
    Option("version", nil, "Show the version.") { (_, _) throws(Ending) in throw .answered(Broker.version) },
    Option("help", nil, "Show help information.") { (_, _) throws(Ending) in throw .answered(help) },
  ]

  private static func number(_ text: String, _ option: String) throws(Ending) -> Int {
    guard let number = Int(text) else { throw .refused("\(option): \"\(text)\" is not a number") }
    return number
  }

  // MARK: Reading

  private static let all = settings + questions
  /// getopt_long's number of the first option; a one-character option is its own number.
  private static let first: Int32 = 256

  /// Throws the answer if a question was asked. The last value of an option counts.
  static func read() throws(Ending) -> Flags {
    let names = all.map { strdup($0.name) }
    defer { for name in names { free(name) } }
    var table = all.indices.map { index in
      option(
        name: names[index],
        has_arg: all[index].value == nil ? no_argument : required_argument,
        flag: nil,
        val: first + Int32(index)
      )
    }
    table.append(option())
    var flags = Flags()
    let (count, words) = (CommandLine.argc, CommandLine.unsafeArgv)
    opterr = 0
    while case let found = getopt_long(count, words, ":h", table, nil), found >= 0 {
      switch found {
      case first...:
        try exactly(found, named: word(words)).take(&flags, optarg.map { String(cString: $0) } ?? "")
      case Int32(UInt8(ascii: "h")): throw .answered(help)
      case Int32(UInt8(ascii: ":")):
        throw .refused("\(try exactly(optopt, named: word(words)).usage): the value is missing")
      default: throw try refusal(words)
      }
    }
    if optind < count, let word = words[Int(optind)] {
      throw .refused("unexpected argument \(String(cString: word))")
    }
    return flags
  }

  /// The option that getopt_long has found. The beginning of a name is enough for it, until another option begins so.
  private static func exactly(_ number: Int32, named word: String) throws(Ending) -> Option {
    let option = all[Int(number - first)]
    guard word.prefix(while: { $0 != "=" }) == "--\(option.name)" else { throw .refused("unknown option \(word)") }
    return option
  }

  /// The word in which getopt_long has found an option: the last one, or the one before its value.
  private static func word(_ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> String {
    let last = words[Int(optind) - 1]
    let word = optarg != nil && optarg == last ? words[Int(optind) - 2] : last
    return word.map { String(cString: $0) } ?? ""
  }

  /// Describes the word at which getopt_long has stopped.
  private static func refusal(_ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) throws(Ending) -> Ending {
    if optopt == 0, let word = words[Int(optind) - 1] { return .refused("unknown option \(String(cString: word))") }
    if optopt >= first { return .refused("--\(try exactly(optopt, named: word(words)).name) takes no value") }
    guard optopt < 128, let letter = UnicodeScalar(UInt32(optopt)) else { return .refused("unknown option") }
    return .refused("unknown option -\(letter)")
  }

  // MARK: Help

  static let usage = "restorationd " + settings.map { "[\($0.usage)]" }.joined(separator: " ")

  private static var help: String {
    let column = 26
    let lines = all.map { option in
      let usage = (option.name == "help" ? "  -h, " : "  ") + option.usage
      return usage + String(repeating: " ", count: column - usage.count) + option.help
    }
    return """
      OVERVIEW: Keeps and restores the state of applications made of many processes.

      Example: restorationd --socket /tmp/r/broker.sock --archives /tmp/r/archives

      Without flags it listens on $RESTORATIOND_SOCKET or
      $XDG_RUNTIME_DIR/restorationd/broker.sock, and keeps archives in
      $XDG_STATE_HOME/restorationd. Flags override the environment, which overrides
      $XDG_CONFIG_HOME/restorationd/config.json, which overrides
      /etc/restorationd/config.json.

      USAGE: \(usage)

      OPTIONS:
      \(lines.joined(separator: "\n"))
      """
  }
}
