// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import RestorationClient

/// A command of the tool.
protocol ControlCommand: AsyncParsableCommand {
  associatedtype Options: ControlOptions

  /// Named alike in all commands, so that options before a command's name are found by it.
  var options: Options { get }
}

extension ControlCommand {
  var connection: ConnectionOptions { options.connection }
  var output: OutputOptions { options.output }
  var legend: LegendOptions { options.legend }

  /// Runs `body` with a connection to the broker.
  func withBroker(_ body: (BrokerConnection) async throws -> Void) async throws {
    try await connection.run(about: options.subject, body)
  }
}

extension ControlCommand where Options == ApplicationOptions {
  var application: String { options.application }
}

/// The options of every command, before or after its name.
protocol ControlOptions: ParsableArguments {
  var connection: ConnectionOptions { get }
  var output: OutputOptions { get }
  var legend: LegendOptions { get }
  /// The application that the command line names.
  var subject: String? { get }
}

extension ControlOptions {
  var subject: String? { nil }
}

struct CommonOptions: ControlOptions {
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var legend: LegendOptions
}

/// Those of a command about one application.
struct ApplicationOptions: ControlOptions {
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var legend: LegendOptions

  @Argument(help: "The application, with its instance if it has one.", completion: .applications)
  var application: String

  var subject: String? { application }
}

/// Those of a command about one application, which is named unless there is only one.
struct OneApplicationOptions: ControlOptions {
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var legend: LegendOptions

  @Argument(help: "The application, with its instance (default: the only one).", completion: .applications)
  var application: String?

  var subject: String? { application }
}

/// Those of a command about one application, or all of them if none is named.
struct AnyApplicationOptions: ControlOptions {
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var legend: LegendOptions

  @Argument(help: "The application, with its instance (default: all).", completion: .applications)
  var application: String?

  var subject: String? { application }
}

/// Those of a command about one application or all of them.
struct SomeApplicationsOptions: ControlOptions {
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var legend: LegendOptions

  @Flag(help: "All applications instead of one.")
  var all = false

  @Argument(help: "The application, with its instance if it has one.", completion: .applications)
  var application: String?

  var subject: String? { application }

  func validate() throws {
    guard all == (application == nil) else {
      throw ValidationError(all ? "Give an application or --all, not both." : "Give an application, or --all.")
    }
  }
}

/// Where a command writes that prints a whole text.
struct DestinationOptions: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("Write to a file; - is standard output.", valueName: "file"),
    completion: .file()
  )
  var output: String?

  /// `nil` for standard output.
  var file: String? { output == "-" ? nil : output }

  /// - Parameters:
  ///   - printed: the text for standard output, if it is another one.
  ///   - mode: permissions of the file.
  func write(_ text: String, printed: String? = nil, mode: mode_t = 0o600) throws {
    guard let file else { return try Output.show(printed ?? text) }
    try OutputFile.reporting { () throws(OutputFile.Fault) in try OutputFile(path: file, mode: mode).write(text) }
  }
}

/// Which broker to speak to, and how long.
struct ConnectionOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The broker's Unix socket.", valueName: "path"), completion: .file())
  var socket: String?

  /// What begins with a hyphen may be a number.
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Give up after this many seconds (exit status 75).", valueName: "seconds"),
    transform: Seconds.read
  )
  var timeout: Seconds?

  /// Connects, runs `body`, and turns errors of the library into a `Failure`.
  ///
  /// - Parameter application: as the command line names it; if it is unknown, the failure names the one that was meant.
  func run(about application: String?, _ body: (BrokerConnection) async throws -> Void) async throws {
    do {
      if let timeout { TimeLimit.begin(timeout, waitingFor: try socket ?? BrokerConnection.defaultSocketPath()) }
      let broker = try await BrokerConnection.connect(to: socket)
      do {
        try await body(broker)
      } catch let error as RestorationError where error.code == .unknownApplication {
        let known = (try? await broker.applicationNames()) ?? []
        throw Failure(error, near: Suggestion.application(meantBy: application ?? "", in: known))
      } catch let error as RestorationError where error.code == .unknownObject {
        // The broker names a method there, and a call is one.
        throw Failure(error, hint: application.map { "restorationctl tree \($0) shows the known objects." })
      }
      await broker.close()
    } catch let error as RestorationError {
      throw Failure(error)
    } catch let error as BrokerConnectionError {
      throw Failure(error)
    }
  }
}

/// A time span as people type it: `5`, `0.2`.
struct Seconds: CustomStringConvertible {
  let milliseconds: Int64
  let description: String

  var duration: Duration { .milliseconds(milliseconds) }

  /// Throws a `ValidationError` unless it is a number above zero; a day is more than anybody waits.
  static func read(_ argument: String) throws -> Seconds {
    guard let seconds = Double(argument), seconds > 0, seconds <= 86_400 else {
      throw ValidationError("give a number of seconds above 0, 86400 at most")
    }
    return Seconds(milliseconds: max(1, Int64(seconds * 1_000)), description: argument)
  }
}
