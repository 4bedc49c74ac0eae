// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import RestorationClient
internal import RestorationWire

protocol ControlCommand: AsyncParsableCommand {
  associatedtype Options: ControlOptions

  /// Has the same name in all commands, so that options before the command are found.
  var options: Options { get }
}

extension ControlCommand {
  var connection: ConnectionOptions { options.connection }
  var output: OutputOptions { options.output }
  var legend: LegendOptions { options.legend }

  func withBroker(_ body: (BrokerConnection) async throws -> Void) async throws {
    try await connection.run(about: options.subject, body)
  }
}

extension ControlCommand where Options == ApplicationOptions {
  var application: String { options.application }
}

extension ControlCommand where Options == ValueOptions {
  var application: String { options.application }
  var path: IdentifierPath { options.path }
  var pointer: StatePointer? { options.pointer }
}

/// The options of every command, before or after its name.
protocol ControlOptions: ParsableArguments {
  /// Has the same name in all options, for the same reason.
  var shared: SharedOptions { get }
  /// The application that the command line names.
  var subject: String? { get }
}

extension ControlOptions {
  var connection: ConnectionOptions { shared.connection }
  var output: OutputOptions { shared.output }
  var legend: LegendOptions { shared.legend }
  var subject: String? { nil }
}

struct SharedOptions: ParsableArguments {
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var legend: LegendOptions
}

struct CommonOptions: ControlOptions {
  @OptionGroup var shared: SharedOptions
}

struct ApplicationOptions: ControlOptions {
  @OptionGroup var shared: SharedOptions

  @Argument(help: "The application, with its instance if it has one.", completion: .applications)
  var application: String

  var subject: String? { application }
}

/// Options of a command about the state of one object, or one value of it.
struct ValueOptions: ControlOptions {
  @OptionGroup var shared: SharedOptions

  @Argument(help: "The application, with its instance if it has one.", completion: .applications)
  var application: String

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath

  @Argument(
    help: "The JSON pointer to one value: /scroll.",
    completion: .pointers,
    transform: StatePointer.read
  )
  var pointer: StatePointer?

  var subject: String? { application }
}

/// Options of a command about one application; its name may be left out if there is only one.
struct OneApplicationOptions: ControlOptions {
  @OptionGroup var shared: SharedOptions

  @Argument(help: "The application, with its instance (default: the only one).", completion: .applications)
  var application: String?

  var subject: String? { application }
}

/// Options of a command about one application, or about all if none is named.
struct AnyApplicationOptions: ControlOptions {
  @OptionGroup var shared: SharedOptions

  @Argument(help: "The application, with its instance (default: all).", completion: .applications)
  var application: String?

  var subject: String? { application }
}

struct SomeApplicationsOptions: ControlOptions {
  @OptionGroup var shared: SharedOptions

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

/// Options of a command that removes or replaces saved states.
struct DryRunOptions: ParsableArguments {
  @Flag(name: .customLong("dry-run"), help: "Change nothing; say what would be done.")
  var isDry = false
}

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
  ///   - printed: the text for standard output, if it differs.
  ///   - mode: permissions of the file.
  func write(_ text: String, printed: String? = nil, mode: mode_t = 0o600) throws {
    guard let file else { return try Output.show(printed ?? text) }
    try OutputFile.reporting { () throws(OutputFile.Fault) in try OutputFile(path: file, mode: mode).write(text) }
  }
}

/// The broker's socket and the time limit.
struct ConnectionOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The broker's Unix socket.", valueName: "path"), completion: .file())
  var socket: String?

  /// A value that begins with a hyphen may be a number.
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Give up after this many seconds (exit status 75).", valueName: "seconds"),
    transform: Seconds.read
  )
  var timeout: Seconds?

  /// Whether it is the socket of the user's units.
  var isUsual: Bool { socket == nil && Terminal.variable("RESTORATIOND_SOCKET") == nil }

  /// `nil` if nothing names the socket.
  var path: String? { socket ?? (try? BrokerConnection.defaultSocketPath()) }

  /// Connects, runs `body`, and turns errors of the library into a `Failure`.
  ///
  /// - Parameter application: the name on the command line. If it is unknown, the failure suggests a similar one.
  func run(about application: String?, _ body: (BrokerConnection) async throws -> Void) async throws {
    do {
      if let timeout { TimeLimit.begin(timeout, waitingFor: try socket ?? BrokerConnection.defaultSocketPath()) }
      let broker = try await BrokerConnection.connect(to: socket)
      do {
        try await body(broker)
      } catch let error as RestorationError where error.code == .unknownApplication {
        if application?.contains("+") == true { throw Failure(error, hint: "See restorationctl store conflicts.") }
        let known = (try? await broker.applicationNames()) ?? []
        throw Failure(error, near: Suggestion.application(meantBy: application ?? "", in: known))
      } catch let error as RestorationError where error.code == .unknownObject {
        // The broker's hint names a method, but here the step is a command.
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

/// A time span in seconds: `5`, `0.2`.
struct Seconds: CustomStringConvertible {
  let milliseconds: Int64
  let description: String

  var duration: Duration { .milliseconds(milliseconds) }

  /// Throws a `ValidationError` unless the number is above zero and at most a day.
  static func read(_ argument: String) throws -> Seconds {
    guard let seconds = Double(argument), seconds > 0, seconds <= 86_400 else {
      throw ValidationError("give a number of seconds above 0, 86400 at most")
    }
    return Seconds(milliseconds: max(1, Int64(seconds * 1_000)), description: argument)
  }
}
