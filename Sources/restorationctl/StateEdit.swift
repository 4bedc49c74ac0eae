// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// A state that is read, changed and written, so that nothing is lost of what somebody else writes meanwhile (R15).
struct StateEdit {
  /// How often a state may have been replaced between reading and writing it.
  private static let attemptsMax = 16

  let application: String
  let path: IdentifierPath

  /// The state as everybody may read it; nil if the object or the application is unknown.
  func read(_ broker: BrokerConnection) async throws -> DecodedState? {
    do {
      return try await broker.decode(.path(path), application: application)
    } catch let error as RestorationError where [.unknownObject, .unknownApplication].contains(error.code) {
      return nil
    }
  }

  /// - Parameter change: makes the new state; it is called again with what is there now if that is another state.
  func perform(
    _ broker: BrokerConnection,
    _ change: (DecodedState?) throws -> JSONText
  ) async throws -> EditedState {
    var attempts = 0
    while true {
      let former = try await read(broker)
      let state = try RestorableState(jsonText: change(former).string)
      do {
        let outcome = try await broker.encode(
          state,
          for: .path(path),
          elements: former?.elements ?? [],
          expecting: former?.sequence ?? 0,
          application: application
        )
        return EditedState(edit: self, isNew: former == nil, outcome: outcome)
      } catch let error as RestorationError where error.code == .stateChanged && attempts < Self.attemptsMax {
        attempts += 1
      } catch let error as RestorationError where error.code == .notOwner {
        throw live(error)
      }
    }
  }

  /// Its owner has the object, and would replace whatever was written.
  func live(_ error: RestorationError) -> Failure {
    let owner = error.owners.first.map(\.description) ?? "another process"
    var failure = Failure(
      error,
      hint: "Change it there, or end \(owner) first: what it writes next would replace yours."
    )
    failure.message = "\(path) is live in \(owner)"
    failure.path = path
    return failure
  }

  /// What is in a state that is there and can be read; nil if there is none.
  func content(of state: DecodedState?) throws -> JSONSlice? {
    guard let state, state.status != .none else { return nil }
    guard let text = state.state?.jsonText else {
      throw failure(state.status.rawValue, "the state of \(path) is \(state.status.rawValue)")
    }
    return try JSONSlice.read(text, subject: "the state", hint: "The broker is another one than this tool is for.")
  }

  func failure(_ kind: String, _ message: String) -> Failure {
    var failure = Failure(ExitStatus.refused, kind: kind, message)
    failure.path = path
    return failure
  }

  /// The failure if there is no state.
  func absent(_ broker: BrokerConnection) async throws -> Failure {
    let paths = try await broker.describeApplication(application).objects.compactMap(\.path)
    guard paths.contains(path) else { return path.notFound(among: paths, "in \(application)") }
    var failure = failure("noState", "\(path) has no state")
    failure.status = ExitStatus.notThere
    return failure
  }
}

/// A state that was written.
struct EditedState: JSONWritable {
  let edit: StateEdit
  /// The object was unknown before.
  let isNew: Bool
  let outcome: EncodeOutcome

  var text: String {
    let place = "\(edit.path) of \(edit.application)"
    return switch outcome {
    case .stored(let sequence): "Stored \(place) as change \(sequence)."
    case .kept: "Kept \(place) in memory only: the object is excluded from saving."
    case .superseded, .discarded: "\(place) was not stored."
    }
  }

  /// Those of `encodeRestorableState`, and what was written.
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", edit.application)
      writer.member("path", edit.path)
      switch outcome {
      case .stored(let sequence): writer.member("sequence", sequence)
      case .kept: writer.member("included", false)
      case .superseded, .discarded: break
      }
    }
  }
}
