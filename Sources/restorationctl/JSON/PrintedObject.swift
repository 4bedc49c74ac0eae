// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// An object in the tool's own format (`Protocol/restorationctl.md`). All other output consists of the protocol's
/// values.
struct PrintedObject: JSONWritable {
  let members: (inout JSONWriter) -> Void

  func writeJSON(to writer: inout JSONWriter) { writer.object(members) }
}

extension JSONText {
  /// The text must be valid and compact.
  init(compact text: String) { self.init(validated: Array(text.utf8)) }
}

struct ApplicationOutcome<Value: JSONWritable & Sendable>: JSONWritable, Sendable {
  let application: String
  /// `nil` if nothing was done.
  let result: Result<Value, Failure>?

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", application)
      switch result {
      case .success(let value): writer.member("result", value)
      case .failure(let failure): writer.member("error", failure)
      case nil: break
      }
    }
  }
}

extension ApplicationOutcome {
  /// An application's outcome: a failure does not stop the others.
  init(of application: String, _ body: () async throws -> Value) async throws {
    do {
      self.init(application: application, result: .success(try await body()))
    } catch let error as RestorationError {
      self.init(application: application, result: .failure(Failure(error)))
    } catch let failure as Failure {
      self.init(application: application, result: .failure(failure))
    }
  }

  /// `nil` if it succeeded.
  var failure: Failure? { if case .failure(let failure) = result { failure } else { nil } }
}

extension BrokerConnection {
  /// Runs `body` for one application after the other and prints each outcome.
  ///
  /// - Parameters:
  ///   - names: `nil` for all applications on this host.
  ///   - report: prints a result for people.
  /// - Returns: the outcomes, of which some may be failures.
  func forAll<Value: JSONWritable & Sendable>(
    _ output: OutputOptions,
    of names: [String]? = nil,
    _ body: (String) async throws -> Value,
    report: (String, Value) throws -> Void
  ) async throws -> [ApplicationOutcome<Value>] {
    var outcomes: [ApplicationOutcome<Value>] = []
    let applications = if let names { names } else { try await listHere() }
    for application in applications {
      let outcome = try await ApplicationOutcome(of: application) { try await body(application) }
      outcomes.append(outcome)
      guard output.layout == nil else { continue }
      switch outcome.result {
      case .success(let value): try report(application, value)
      case .failure(let failure): Output.complain("\(application): \(failure.message)".printable)
      case nil: break
      }
    }
    try output.layout?.print(PrintedObject { $0.member("applications", outcomes) })
    return outcomes
  }

  /// Without applications that only other hosts have.
  private func listHere() async throws -> [String] {
    try await call(ListApplications()).applications.filter { $0.sessions > 0 || $0.fileBytes != nil && $0.host == nil }
      .map(\.application.description)
  }
}
