// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc

/// Measures the broker, and what else could keep states.
@main
struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restoration-bench",
    abstract: "Measure the broker, alone or beside Redis, SQLite, dconf, D-Bus and a server in C.",
    discussion: """
      Examples:
        restoration-bench run                  # all works of a broker of its own
        restoration-bench run encode decode --clients 1,50 --depth 1,16
        restoration-bench run ping --socket "$RESTORATIOND_SOCKET"
        restoration-bench compare --html compare.html
        restoration-bench growth objects connections --html growth.html
        restoration-bench fleet --turns 9      # with PostgreSQL

      Clients make a request as soon as an earlier one is answered. All of them
      are one thread on the last processor; servers have the first one. Figures
      depend on the machine and on what else runs there, so only figures of one
      run can be compared. "CPU us" is the server's CPU time for a request, "own
      CPU us" that of the generator: while that is less, the server is measured.

      Exit status:
         0  done
         1  nothing was measured, or a server refused requests
        64  the command line is invalid
      """,
    subcommands: [RunCommand.self, CompareCommand.self, GrowthCommand.self, FleetCommand.self]
  )

  static func main() {
    signal(SIGPIPE, SIG_IGN)
    main(nil)
  }
}

/// What all commands have.
struct CommonOptions: ParsableArguments {
  @Option(help: "Bytes of a state: 40 or more.")
  var size = Numbers([1_024])

  @Option(help: ArgumentHelp("Objects that requests are about, one after the other.", valueName: "count"))
  var objects = 1_000

  @Option(help: "Seconds for each figure; a fifth more comes before and does not count.")
  var seconds = 1.0

  @Option(help: ArgumentHelp("The program of the broker.", valueName: "path"))
  var broker = "restorationd"

  @Option(
    help: ArgumentHelp("Where servers get a private directory: the disk that is measured.", valueName: "path")
  )
  var directory = "/var/tmp"

  @Flag(inversion: .prefixedNo, help: "Give servers and generator a processor each.")
  var pin = true

  @Flag(name: .shortAndLong, help: "Print JSON instead of a table.")
  var json = false

  @Option(help: ArgumentHelp("Write the figures as a page with charts into this file, too.", valueName: "file"))
  var html: String?

  func validate() throws {
    guard size.values.allSatisfy({ $0 >= SampleState.leastBytes }) else {
      throw ValidationError("--size must be \(SampleState.leastBytes) or more, not \(size)")
    }
    guard (1...1_000_000).contains(objects) else {
      throw ValidationError("--objects must be 1 to 1000000, not \(objects)")
    }
    guard seconds > 0, seconds <= 3_600 else { throw ValidationError("--seconds must be 0 to 3600, not \(seconds)") }
  }

  /// The broker's program as a path.
  func program() throws -> String {
    guard let path = Peer.find(broker) else {
      throw Failure("there is no program \(broker); build it, or name it with --broker")
    }
    return path
  }

  /// A broker for this run, with a private directory.
  func ownBroker(_ stage: Stage) throws -> BrokerUnderLoad {
    BrokerUnderLoad(try Server.broker(try program(), stage, in: try stage.folder("broker")))
  }

  /// Runs `body` with a stage that is cleared afterwards, and prints what it has found.
  func report(_ command: String, _ body: (Stage) throws -> (rows: [Row], missing: [String], reference: String?)) throws
  {
    var loads = [0.0]
    getloadavg(&loads, 1)
    let stage = try Stage(in: directory, pins: pin)
    stage.clearWhenInterrupted()
    defer { stage.clear() }
    let found = try body(stage)
    let processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    var report = Report(command, found.rows, processors: processors, isPinned: stage.isPinned, load: loads[0])
    (report.missing, report.reference) = (found.missing, found.reference)
    try Output.print(json ? report.json + "\n" : report.table(room: Output.columns))
    if let html { try Output.write(Page(report).html, toFile: html) }
    if report.rows.contains(where: { $0.failed > 0 }) { throw ExitCode.failure }
  }
}

/// Numbers with commas between them.
struct Numbers: ExpressibleByArgument, CustomStringConvertible {
  let values: [Int]

  init(_ values: [Int]) { self.values = values }

  /// `nil` unless all of them are above zero.
  init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
    values = parts.compactMap { $0 }
    guard !values.isEmpty, values.count == parts.count, values.allSatisfy({ (1...10_000_000).contains($0) }) else {
      return nil
    }
  }

  var description: String { values.map(String.init).joined(separator: ",") }
  var defaultValueDescription: String { description }
}
