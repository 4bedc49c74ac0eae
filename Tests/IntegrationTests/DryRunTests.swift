// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `--dry-run` of the commands that remove or replace what is saved.
@Suite(.broker) struct DryRunTests {
  private static let application = "org.example.Notes"

  /// Two generations, of which the second has one object less and one more.
  private static func fill() throws {
    let client = try broker.session(application, process: "main")
    for name in ["Main", "Old"] {
      try client.register(name)
      try client.encode(name, state: ["n": 1, "text": .string(name)])
    }
    try client.call("saveApplicationState")
    try client.call("unregisterObject", ["object": .path("Old")])
    try client.register("New")
    try client.encode("New", state: ["n": 2])
    try client.encode("Main", state: ["n": 2, "text": "Main"])
    try client.call("goodbye", ["reason": "restart"])
  }

  /// What is there, of which nothing may change.
  private static func everything() throws -> String {
    try ["export", "history"].map { try ControlTool.run([$0, "-j", application], status: 0).output }.joined()
  }

  private static let rows: [([String], String)] = [
    (["rm", application, "Main", "/text"], #"Would remove /text of Main of org.example.Notes: "Main"."#),
    (["rm", application, "New"], "Would remove New of org.example.Notes: 7 B."),
    (["discard", application], "Would discard 2 states (28 B) of org.example.Notes. 1 generation is kept."),
    (["forget", application], "Would forget org.example.Notes: 2 objects (28 B)."),
    (["forget", application, "New"], "Would forget New of org.example.Notes: 1 object (7 B)."),
    (
      ["rollback", application, "1"],
      """
      CHANGE   PATH  KEYS
      removed  New
      added    Old
      changed  Main  n

      Would go back to generation 1: 1 removed, 1 added, 1 changed.
      """
    ),
    (["rollback", application, "1", "Old"], "Would go back to generation 1: 0 removed, 1 added, 0 changed."),
  ]

  /// Before an editor is opened, too.
  @Test func aChangeOfACopyThatWasSetAsideIsRefusedAtOnceInTheBrokersWords() throws {
    let copy = "\(Self.application)+conflict-1"
    let real = try ControlTool.run(["put", "-j", copy, "Main", "/n", "1"], status: 1).json
    for words in [
      ["edit", copy, "Main"], ["rm", "--dry-run", copy, "Main"], ["rm", "--dry-run", copy, "Main", "/n"],
      ["discard", "--dry-run", copy], ["rollback", "--dry-run", copy, "1"],
    ] {
      let said = try ControlTool.run(words + ["-j"], environment: ["EDITOR": "false", "VISUAL": nil], status: 1).json
      #expect(said == real, "\(words)")
    }
  }

  @Test func whatWouldBeDoneIsSaidAndNothingIsDone() throws {
    try Self.fill()
    let before = try Self.everything()
    for (words, expected) in Self.rows {
      let said = try ControlTool.run(words + ["--dry-run"], status: 0)
      #expect(said.output.hasSuffix(expected + "\n"), "\(words): \(said)")
      #expect(try ControlTool.run(words + ["--dry-run", "-j"], status: 0).json["dryRun"] == true, "\(words)")
    }
    #expect(try Self.everything() == before)
  }

  @Test func anImportSaysWhatItWouldReplace() throws {
    try Self.fill()
    let document = try ControlTool.run(["export", Self.application, "--generation", "1"], status: 0).output
    let before = try Self.everything()
    func said(_ words: String..., input: String) throws -> String {
      try ControlTool.run(["import"] + words + ["--dry-run"], input: input, status: 0).output
    }
    let replaced = try said(Self.application, "--force", input: document)
    #expect(replaced.hasSuffix("2 objects, 2 states. 2 states are replaced.\n"), "\(replaced)")
    #expect(try said("org.example.Copy", input: document) == "Would give org.example.Copy 2 objects, 2 states.\n")
    #expect(try Self.everything() == before)
  }

  /// Only the broker knows its limits, and how the objects of a document belong together.
  @Test func whatAnImportWouldRefuseItsDryRunRefuses() throws {
    try Self.fill()
    let document = try ControlTool.run(["export", Self.application], status: 0).output
    func refusal(_ application: String, _ input: String) throws -> JSONValue? {
      try ControlTool.run(["import", application, "--dry-run", "-j"], input: input, status: 1).error["kind"]
    }
    #expect(try refusal("org.example.Copy", document.replacing("\"New\"", with: "\"Main\"")) == "duplicatePath")
    let wrong = document.replacing(#""kind":"object""#, with: #""kind":"thing""#)
    #expect(try refusal("org.example.Copy", wrong) == "invalidParams")
    #expect(try refusal(Self.application, document) == "needsForce")
    let client = try broker.session(Self.application, process: "main")
    #expect(try refusal(Self.application, document) == "alreadyServed")
    try client.call("goodbye", ["reason": "restart"])
    let names = try ControlTool.run(["list", "-j"], status: 0).json["applications"]?.array?.map { $0["application"] }
    #expect(names == [.string(Self.application)])
  }

  @Test func whatCouldNotBeDoneIsToldAtOnce() throws {
    let client = try broker.session(Self.application, process: "editor")
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    try client.call("saveApplicationState")
    for words in [["rm", Self.application, "Main"], ["rm", Self.application, "Main", "/n"]] {
      #expect(try ControlTool.run(words + ["--dry-run", "-j"], status: 1).error["kind"] == "notOwner")
    }
    try ControlTool.run(["rm", Self.application, "Main", "/none", "--dry-run"], status: 1)
    try ControlTool.run(["rollback", Self.application, "9", "--dry-run"], status: 4)
    try ControlTool.run(["rollback", Self.application, "1", "No/Such", "--dry-run"], status: 4)
    let rollback = try ControlTool.run(["rollback", Self.application, "1", "--dry-run"], status: 0)
    #expect(rollback.output.hasSuffix(" 1 session is live, which takes --force.\n"), "\(rollback)")
  }

  @Test func noneUnusedIsForgotten() throws {
    try Self.fill()
    let none = try ControlTool.run(["forget", "--unused", "1", "--dry-run"], status: 0)
    #expect(none.output == "No application was unused for 1 day.\n")
  }
}
