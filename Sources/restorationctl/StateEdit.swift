// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// Reads, changes and writes a state without losing what another process writes meanwhile (R15).
struct StateEdit {
  /// How often the state may be replaced between reading and writing.
  private static let attemptsMax = 16

  let application: String
  let path: IdentifierPath

  /// The newest state; `nil` if the object or the application is unknown.
  func read(_ broker: BrokerConnection) async throws -> DecodedState? {
    let found = try await find(broker)
    return try? found.get()
  }

  /// The failure names what is unknown.
  private func find(_ broker: BrokerConnection) async throws -> Result<DecodedState, RestorationError> {
    do {
      let state = try await broker.decode(.path(path), application: application)
      if state.status == .available, state.sequence == 0 { throw Self.older() }
      return .success(state)
    } catch let error as RestorationError where [.unknownObject, .unknownApplication].contains(error.code) {
      return .failure(error)
    }
  }

  /// The newest state as a person may see it, which is told if the state is withheld from its program; `nil` if there
  /// is none.
  func show(_ broker: BrokerConnection, reveal: Bool) async throws -> (state: JSONSlice?, sequence: Int64) {
    let decoded = try await read(broker)
    if decoded?.isConfidential == true, !reveal { throw confidential }
    let state = try content(of: decoded)
    if decoded?.isWithheld == true {
      let command = path.releaseCommand(of: application)
      let text = "\(path) is withheld, because its program failed with it; to release it: \(command)"
      Output.complain(text.printable)
    }
    return (state, decoded?.sequence ?? 0)
  }

  var confidential: Failure {
    var failure = failure("confidential", "\(path) is confidential")
    failure.hint = "--reveal prints it."
    return failure
  }

  static func checkWhole(_ value: JSONSlice) throws {
    guard value.kind != .object else { return }
    let message = "a state must be a JSON object, which \(value.compactText.brief) is not"
    let hint = "Give an object, or a pointer to change one value: /title."
    throw Failure(ExitStatus.usage, kind: "usage", message, hint: hint)
  }

  /// Writes a value at a place of the state, or removes the place if `value` is `nil`; repeats that if another process
  /// has written meanwhile.
  ///
  /// - Parameter expecting: fail unless the state is that of this change; with 0, unless there is no state.
  func perform(
    _ broker: BrokerConnection,
    at pointer: StatePointer,
    _ value: JSONText?,
    expecting: Int64? = nil
  ) async throws -> EditedState {
    var attempts = 0
    while true {
      let found = try await find(broker)
      let former = try? found.get()
      if let expecting, expecting != former?.sequence ?? 0 { throw changed(since: expecting, former) }
      let state = try RestorableState(jsonText: await edited(former, at: pointer, value, broker).string)
      do {
        let outcome = try await broker.encode(
          state,
          for: .path(path),
          elements: former?.elements ?? [],
          expecting: former?.sequence ?? 0,
          application: application
        )
        return EditedState(edit: self, outcome: outcome, unknown: found.error?.code)
      } catch let error as RestorationError where error.code == .stateChanged {
        attempts += 1
        guard attempts > Self.attemptsMax else { continue }
        throw Failure(error, hint: "Other processes write it all the time: try again later.")
      } catch let error as RestorationError where error.code == .notOwner {
        throw live(error)
      }
    }
  }

  /// The value that `perform` would remove.
  func removed(_ broker: BrokerConnection, at pointer: StatePointer) async throws -> (value: JSONText, isSecret: Bool) {
    try await requireNoOwner(broker)
    let former = try await read(broker)
    guard let state = try content(of: former) else { throw try await absent(broker) }
    let isSecret = former?.isConfidential == true
    guard let value = pointer.value(in: state) else {
      throw pointer.notFound(in: state, of: path, namesKeys: !isSecret)
    }
    return (value.compactText, isSecret)
  }

  /// Fails if a live process has the object.
  func requireNoOwner(_ object: ObjectDescription?) throws {
    guard let object, let pid = object.pid else { return }
    throw live(in: ObjectOwner(process: object.process, pid: pid).description)
  }

  /// Fails if a live process has the object. An unknown application has none.
  ///
  /// - Returns: the UUID of the archive; `nil` if there is none.
  @discardableResult
  func requireNoOwner(_ broker: BrokerConnection) async throws -> String? {
    let described: ApplicationDescription
    do {
      described = try await broker.describeApplication(application)
    } catch let error as RestorationError where error.code == .unknownApplication {
      return nil
    }
    try requireNoOwner(described.objects.first { $0.path == path })
    return described.archive
  }

  private func edited(
    _ former: DecodedState?,
    at pointer: StatePointer,
    _ value: JSONText?,
    _ broker: BrokerConnection
  ) async throws -> JSONText {
    // A whole state can be replaced even if it cannot be read.
    if pointer.isWhole, let value { return value }
    let state = try content(of: former)
    let base = try state ?? JSONSlice.read("{}", subject: "the state", hint: "")
    if let text = pointer.edit(base, value) { return text }
    guard let state else {
      guard value != nil else { throw try await absent(broker) }
      // The place could be made, also with its object.
      var failure = failure("noState", "\(path) has no state, and only the last key of \(pointer) may be new")
      failure.status = ExitStatus.notThere
      let whole = String(decoding: pointer.surroundings.bytes, as: UTF8.self)
      let words = [application, path.description, whole].map(\.shellWord).joined(separator: " ")
      failure.hint = "Put the others first: restorationctl put \(words)"
      throw failure
    }
    throw pointer.notFound(in: state, of: path, namesKeys: former?.isConfidential != true)
  }

  /// An older broker neither compares sequences nor reports what is confidential.
  private static func older() -> Failure {
    let hint = "Restart it: systemctl --user restart restorationd.service."
    return Failure(ExitStatus.refused, kind: "olderBroker", "the broker is older than restorationctl", hint: hint)
  }

  /// The failure if the state is not the expected one.
  private func changed(since expected: Int64, _ state: DecodedState?) -> Failure {
    let sequence = state?.sequence ?? 0
    let found = sequence == 0 ? "no state" : "the state of change \(sequence)"
    let wanted = expected == 0 ? "none" : "that of \(expected)"
    return changed("\(path) has \(found), not \(wanted)")
  }

  func changed(_ message: String) -> Failure {
    var failure = failure("stateChanged", message)
    (failure.status, failure.code) = (ExitStatus.tryAgain, ErrorCode.stateChanged.rawValue)
    failure.hint = "Get it again, and expect its present change."
    return failure
  }

  func live(_ error: RestorationError) -> Failure {
    live(in: error.owners.first.map(\.description) ?? "another process")
  }

  /// The object is live, so its owner would replace the value.
  private func live(in owner: String) -> Failure {
    var failure = failure(ErrorCode.notOwner.description, "\(path) is live in \(owner)")
    failure.code = ErrorCode.notOwner.rawValue
    failure.hint = "Change it there, or end \(owner) first: its next write would replace yours."
    return failure
  }

  /// The contents of a readable state; `nil` without a state.
  func content(of state: DecodedState?) throws -> JSONSlice? {
    guard let state, state.status != .none else { return nil }
    guard let text = state.state?.jsonText else {
      throw failure(state.status.rawValue, "the state of \(path) is \(state.status.rawValue)")
    }
    return try JSONSlice.read(sent: text, subject: "the state")
  }

  func failure(_ kind: String, _ message: String) -> Failure {
    var failure = Failure(ExitStatus.refused, kind: kind, message)
    failure.path = path
    return failure
  }

  func absent(_ broker: BrokerConnection) async throws -> Failure {
    let paths = try await broker.describeApplication(application).objects.compactMap(\.path)
    guard paths.contains(path) else { return path.notFound(among: paths, in: application) }
    var failure = failure("noState", "\(path) has no state")
    failure.status = ExitStatus.notThere
    return failure
  }
}

struct EditedState: JSONWritable {
  let edit: StateEdit
  let outcome: EncodeOutcome
  /// The application or object, if it was unknown before; otherwise `nil`.
  let unknown: ErrorCode?

  var text: String {
    let place = "\(edit.path) of \(edit.application)"
    return switch outcome {
    case .stored(let sequence, false): "Stored \(place) as change \(sequence)."
    case .stored(let sequence, true):
      "Stored \(place) as change \(sequence). The state before it was withheld, and is kept: "
        + "restorationctl quarantine list -j \(edit.application)"
    case .unsaved: "Stored nothing at \(place): the object is excluded from saving."
    case .superseded, .discarded: "\(place) was not stored."
    }
  }

  /// The members of `encodeRestorableState`, and the new value.
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", edit.application)
      writer.member("path", edit.path)
      switch outcome {
      case .stored(let sequence, let isOverWithheld):
        writer.member("sequence", sequence)
        writer.member("withheld", ifTrue: isOverWithheld)
      case .unsaved: writer.member("included", false)
      case .superseded, .discarded: break
      }
    }
  }
}

extension Result {
  fileprivate var error: Failure? { if case .failure(let error) = self { error } else { nil } }
}
