// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Programs in all languages form one application: each object is the child of an object of another language.
@Suite struct ExampleChainTests {
  private static let application = "org.example.notes.chain"
  /// The name of the Swift client, which is not a note program.
  private static let swift = "swift"
  /// Each the parent of the next; what takes long to start is waited for by few.
  private static let programs: [ExampleProgram] = [.c, .rust, .go, .perl, .python, .node, .java, .bash]
  private static let languages = [swift] + programs.map(\.rawValue)

  /// The path of the object that a language has, which is also its note.
  private static func path(_ language: String) -> [String] {
    languages.prefix { $0 != language }.map { "Of \($0)" } + ["Of \(language)"]
  }

  private static func note(_ language: String) -> String { "what \(language) has to say: \"\\ 𝒳😀\"" }

  private static func state(_ language: String) -> JSONValue {
    ["language": .string(language), "note": .string(note(language))]
  }

  /// The processes of the application.
  private struct Processes {
    var notes: [NoteProcess] = []
    var library: ServingClient

    /// Starts all of them in an order of the test's, and waits until all have registered.
    init(in order: [String]) throws {
      library = try broker.serving(.swift, of: application, as: swift)
      for language in order {
        if let program = ExampleProgram(rawValue: language) {
          notes.append(try NoteProcess(program, path(language), application))
        } else {
          try library.register([["identifier": .string("Of \(language)")]])
        }
      }
    }

    func expectAll(_ line: (String) -> String) throws {
      for process in notes { try process.expect(line(process.program.rawValue)) }
    }

    func kill() throws {
      for process in notes { try process.kill() }
      try library.kill()
    }
  }

  /// Which process has which object.
  private static func owners() throws -> [[String]: String] {
    let description = try broker.connect().call("describeApplication", ["application": .string(application)])
    var owners: [[String]: String] = [:]
    for object in description["objects"]?.array ?? [] { owners[object.strings("path")] = object["process"]?.string }
    return owners
  }

  private static func save() throws -> [[String]: JSONValue] {
    let saved = try ControlTool.run(["save", "-j", application], status: 0)
    #expect(try saved.json["stale"] == [])
    #expect(try saved.json["objects"] == .integer(Int64(languages.count)))
    return try broker.states(of: application, in: try saved.json["generation"])
  }

  @Test(.broker(alone: true)) func everyNoteComesBackInItsLanguage() throws {
    #expect(Set(Self.programs) == Set(ExampleProgram.allCases))
    let states = Dictionary(uniqueKeysWithValues: Self.languages.map { (Self.path($0), Self.state($0)) })
    let owners = Dictionary(uniqueKeysWithValues: Self.languages.map { (Self.path($0), $0) })
    // Alone, because a parent is awaited for ten seconds at most.
    // Compiled before any of them runs.
    for program in Self.programs { _ = try program.command() }
    // Children first: they wait for their parents.
    let first = try Processes(in: Self.languages.reversed())
    try first.expectAll { _ in "new" }
    for process in first.notes { try process.note(Self.note(process.program.rawValue)) }
    try first.library.tell("set", ["name": .string("Of \(Self.swift)"), "state": Self.state(Self.swift)])
    #expect(try Self.save() == states)
    #expect(try Self.owners() == owners)
    try first.kill()
    try broker.crashAndRestart()

    // Every second one, then the others.
    let order = Self.languages.enumerated().sorted { ($0.offset % 2, $0.offset) < ($1.offset % 2, $1.offset) }
    let second = try Processes(in: order.map(\.element))
    try second.expectAll { "restored: \(Self.note($0))" }
    try second.library.tell("decode", ["name": .string("Of \(Self.swift)")])
    #expect(try second.library.tell("restored")["objects"]?["Of \(Self.swift)"]?["state"] == Self.state(Self.swift))
    #expect(try Self.owners() == owners)
    #expect(try Self.save() == states)
    for process in second.notes {
      try process.type("quit\n")
      #expect(try process.waitForExit(0) == "")
    }
  }
}
