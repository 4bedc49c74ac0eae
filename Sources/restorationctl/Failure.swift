// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// Why a command failed: a message for people, an object for programs, an exit status for both.
struct Failure: Error {
  var status: ExitCode
  /// One sentence without a full stop.
  var message: String
  var hint: String?
  /// The error's name; programs decide by it.
  var kind: String
  /// The number of a JSON-RPC error; `nil` if the broker did not answer with one.
  var code: Int?
  var path: IdentifierPath?
  var pointer: String?

  init(_ status: ExitCode, kind: String, _ message: String, hint: String? = nil) {
    (self.status, self.message, self.hint, self.kind) = (status, message, hint, kind)
  }

  /// An error from the broker, or from the library in its place.
  ///
  /// - Parameters:
  ///   - hint: the next step, if the tool knows it better than the broker.
  ///   - near: the application that was probably meant.
  init(_ error: RestorationError, hint: String? = nil, near: String? = nil) {
    status =
      switch error.code {
      case .unknownApplication, .unknownObject: ExitStatus.notThere
      case .timedOut, .shuttingDown, .stateChanged: ExitStatus.tryAgain
      case .storeFailed where !error.indeterminate && !error.isRefused: ExitStatus.tryAgain
      default: ExitStatus.refused
      }
    let limit = error.limit.flatMap { error.message.contains($0.name) ? nil : $0 }
    message = error.message + (limit.map { ": \($0.name) is \($0.max), and this would be \($0.value)" } ?? "")
    self.hint = hint ?? Self.hint(for: error, near) ?? error.hint
    kind = error.code.description
    code = error.code.rawValue
    path = error.path
    pointer = error.pointer
  }

  /// The next step by this tool, where the broker's hint names a method.
  private static func hint(for error: RestorationError, _ near: String?) -> String? {
    switch error.code {
    case .unknownApplication:
      (near.map { "Did you mean \($0)? " } ?? "") + "restorationctl list shows the known applications."
    case .ownedElsewhere: "Quit it there, or take it from there: restorationctl take-over <application>"
    default: nil
    }
  }

  /// The failure without an answer.
  init(_ error: BrokerConnectionError) {
    let (status, kind) =
      switch error.code {
      case .noBroker, .refused: (ExitStatus.notRunning, "notRunning")
      case .noSocketPath: (ExitStatus.usage, "usage")
      case .busy: (ExitStatus.tryAgain, "busy")
      default: (ExitStatus.unavailable, "unavailable")
      }
    self.init(status, kind: kind, error.message)
    if let refusal = error.refusal {
      self = Failure(refusal)
      self.status = status
      return
    }
    switch error.code {
    case .lost:
      message = "the broker\(error.socketPath.map { " on \($0)" } ?? "") ended or closed the connection"
      hint = "Check its log, and run restorationctl status to see whether it runs again."
    case .unexpectedAnswer:
      hint = "Name the broker's socket by --socket, or use the restorationctl of the broker's version."
    default: break
    }
  }

  static func unknownObject(_ path: IdentifierPath, _ message: String, hint: String) -> Failure {
    let code = ErrorCode.unknownObject
    var failure = Failure(ExitStatus.notThere, kind: code.description, message, hint: hint)
    failure.code = code.rawValue
    failure.path = path
    return failure
  }

  /// Prints the failure on standard error. With JSON output, also prints it as an object on standard output, so that a
  /// program always reads exactly one document or, from a stream, one more line.
  func report() {
    let place = pointer.flatMap { $0.isEmpty ? nil : " (\($0))" } ?? ""
    Output.complain((message + place).printable)
    if let hint { Output.write("  \(hint.printable)\n", to: .messages) }
    // Not inside a truncated document, where it could not be parsed.
    if let layout = Output.settings.layout, Output.isAtLineBegin {
      let document = PrintedObject { $0.member("error", self) }
      Output.write(layout.lay(out: document.text.string) + "\n", to: .data)
    }
  }
}

extension Failure: JSONWritable {
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("code", code)
      writer.member("message", message)
      writer.member("kind", kind)
      writer.member("hint", hint)
      writer.member("path", path)
      writer.member("pointer", pointer)
    }
  }
}

/// Exit statuses by the rules of LSB and sysexits; `Protocol/restorationctl.md` lists them.
enum ExitStatus {
  /// The broker answered with an error, the user said no, or not everything was done.
  static let refused = ExitCode(1)
  static let notRunning = ExitCode(3)
  static let notThere = ExitCode(4)
  static let usage = ExitCode(64)
  /// A broker is running, but the connection to it failed.
  static let unavailable = ExitCode(69)
  static let outputFailed = ExitCode(74)
  /// Nothing was done; a repetition may succeed later.
  static let tryAgain = ExitCode(75)
}
