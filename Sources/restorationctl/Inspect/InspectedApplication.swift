// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// The contents of a page. It is read by several calls, so changes meanwhile may appear in some parts only.
struct InspectedApplication {
  private static let generationsMax = 20
  /// The most paths named of each kind of difference.
  private static let differencesMax = 500
  /// Bytes of all states on a page; further states are left out.
  private static let stateBytesMax = 10 << 20

  let made = Timestamp(milliseconds: Clock.now)
  private let application: ApplicationDescription
  private let saved: [IdentifierPath: ArchivedObject]
  /// By `node`.
  private let explanations: [Int64: RestorationExplanation]
  private let generations: [GenerationDescription]
  /// From each generation to the next one, or to the head.
  private let differences: [Int64: GenerationDifference]

  /// - Parameter reveal: whether to include confidential states.
  init(_ name: String, reveal: Bool, _ broker: BrokerConnection) async throws {
    application = try await broker.describeApplication(name)
    var saved: [IdentifierPath: ArchivedObject] = [:]
    for try await object in broker.readArchive(of: name, reveal: reveal) { saved[object.path] = object }
    self.saved = saved
    let listed = try await broker.call(ListGenerations(), of: name).generations
    let generations = Array(listed.suffix(Self.generationsMax))
    self.generations = generations
    var differences: [Int64: GenerationDifference] = [:]
    for (index, generation) in generations.map(\.generation).enumerated() {
      let next = index + 1 < generations.count ? generations[index + 1].generation : nil
      differences[generation] = try await Self.unlessGone(.invalidParams) {
        try await broker.diffGenerations(of: name, from: generation, to: next, reveal: reveal)
      }
    }
    self.differences = differences
    var explanations: [Int64: RestorationExplanation] = [:]
    for object in application.objects {
      guard let reference = object.path.map(ObjectReference.path) ?? object.object.map(ObjectReference.handle) else {
        continue
      }
      explanations[object.node] = try await Self.unlessGone(.unknownObject) {
        try await broker.call(ExplainRestoration(object: reference, reveal: reveal), of: name)
      }
    }
    self.explanations = explanations
  }

  /// `nil` if the object listed before no longer exists.
  private static func unlessGone<Value>(_ code: ErrorCode, _ body: () async throws -> Value) async throws -> Value? {
    do {
      return try await body()
    } catch let error as RestorationError where error.code == code {
      return nil
    }
  }
}

extension InspectedApplication: JSONWritable {
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", application.application)
      writer.member("made", made)
      writer.member("version", BrokerConnection.version)
      writer.member("sessions", application.sessions)
      writeGenerations(to: &writer)
      var (texts, room) = (Texts(), Self.stateBytesMax)
      writer.key("objects")
      writer.beginArray()
      ObjectTree(application.objects).walk { visit in
        writer.object { writer in
          visit.object.writeMembers(to: &writer)
          writer.member("depth", visit.branches.count - 1)
          if let saved = visit.object.path.flatMap({ saved[$0] }) { Self.write(saved, to: &writer, &room) }
          if let told = explanations[visit.object.node] { Self.write(told, to: &writer, &texts) }
        }
      }
      writer.endArray()
      writer.member("texts", texts.all)
    }
  }

  /// The state is a string, because a browser would change numbers.
  private static func write(_ saved: ArchivedObject, to writer: inout JSONWriter, _ room: inout Int) {
    writer.member("status", saved.status)
    writer.member("redacted", ifTrue: saved.redacted)
    guard let state = saved.stateText else { return }
    room -= saved.bytes
    guard room >= 0 else { return writer.member("omitted", true) }
    writer.member("state", state.string)
    let slice = try? JSONSlice.read(sent: state.string, subject: "the state")
    let paths = slice?.references.compactMap { $0.target.strings.map { IdentifierPath($0) } } ?? []
    if !paths.isEmpty { writer.member("references", paths) }
    writer.member("elements", ifPresent: saved.elementsText)
  }

  private static func write(_ told: RestorationExplanation, to writer: inout JSONWriter, _ texts: inout Texts) {
    writer.member("verdict", told.verdict)
    writer.key("told")
    writer.integer(texts.number(of: "It \(ExplainCommand.sentence(told.verdict))"))
    writer.member("excluder", ifPresent: told.excluder)
    writer.key("saved")
    texts.write(told.saved, to: &writer)
    writer.key("restored")
    texts.write(told.restored, to: &writer)
  }

  /// Each with its differences from the former one; the head is the last.
  private func writeGenerations(to writer: inout JSONWriter) {
    writer.key("generations")
    writer.beginArray()
    var difference: GenerationDifference?
    for generation in generations {
      writer.object { writer in
        generation.writeMembers(to: &writer)
        Self.write(difference, to: &writer)
      }
      difference = differences[generation.generation]
    }
    writer.object { writer in
      writer.member("generation", Int64?.none)
      Self.write(difference, to: &writer)
    }
    writer.endArray()
  }

  private static func write(_ difference: GenerationDifference?, to writer: inout JSONWriter) {
    guard let difference else { return }
    writer.key("difference")
    writer.object { writer in
      writer.member("removed", Array(difference.removed.prefix(differencesMax)))
      writer.member("added", Array(difference.added.prefix(differencesMax)))
      writer.member("changed", Array(difference.changed.prefix(differencesMax)))
      writer.key("counts")
      writer.object { writer in
        writer.member("removed", difference.removed.count)
        writer.member("added", difference.added.count)
        writer.member("changed", difference.changed.count)
      }
    }
  }
}

/// Sentences of steps, stored once because most occur for many objects.
private struct Texts {
  private(set) var all: [String] = []
  private var places: [String: Int] = [:]

  /// Writes each step as time in milliseconds, number of the sentence, and number of repetitions.
  mutating func write(_ steps: [NotedStep<some CustomStringConvertible>], to writer: inout JSONWriter) {
    writer.beginArray()
    for noted in steps {
      writer.beginArray()
      (noted.at?.milliseconds).writeJSON(to: &writer)
      writer.integer(number(of: noted.step.description))
      writer.integer(noted.times)
      writer.endArray()
    }
    writer.endArray()
  }

  mutating func number(of text: String) -> Int {
    if let place = places[text] { return place }
    places[text] = all.count
    all.append(text)
    return all.count - 1
  }
}
