// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl edit`: a state in an editor.
@Suite(.broker) struct EditCommandTests {
  private static let application = "org.example.Notes"
  private static let editor = [application, "Main/Editor"]

  private static func put(_ state: String) throws { try ControlTool.run(["put"] + editor + [state], status: 0) }

  private static func state() throws -> String { try ControlTool.run(["get"] + editor, status: 0).output }

  /// Runs `edit` with an editor, which gets the file's path as its last argument.
  @discardableResult
  private static func edit(
    _ words: [String] = [],
    with command: String,
    status: Int32
  ) throws -> ControlTool.Result {
    let folder = broker.directory.file("drafts")
    if !Files.exists(folder) { try Files.makeDirectory(folder) }
    let variables: [String: String?] = [
      "VISUAL": nil, "EDITOR": command, "XDG_RUNTIME_DIR": folder, "PUT": "\(Products.control) put",
    ]
    return try ControlTool.run(["edit"] + editor + words, environment: variables, status: status)
  }

  /// The drafts that were left.
  private static func drafts() -> [String] {
    let folder = broker.directory.file("drafts")
    return Files.list(folder).map { "\(folder)/\($0)/state.json" }
  }

  @Test func whatIsEditedIsStoredAndEverythingElseStays() throws {
    try Self.put(#"{"z":1e400,"title":"x","n":18446744073709551615}"#)
    let whole = try Self.edit(with: "sed -i s/x/y/", status: 0)
    #expect(whole.output.hasPrefix("Stored Main/Editor of org.example.Notes as change "), "\(whole)")
    try Self.edit(["/title"], with: "sed -i s/y/w/", status: 0)
    #expect(try Self.state() == #"{"z":1e400,"title":"w","n":18446744073709551615}"# + "\n")
    #expect(Self.drafts().isEmpty)
  }

  @Test func onlyItsUserCanReadWhatIsEdited() throws {
    try Self.put("{}")
    let seen = broker.directory.file("seen")
    try Self.edit(with: "stat -c %a >\(seen)", status: 0)
    #expect(try Files.text(seen) == "600\n")
  }

  @Test func whatWasNotEditedIsNotStored() throws {
    let made = try Self.edit(with: "true", status: 0)
    #expect(made.output == "Nothing was changed.\n")
    #expect(try ControlTool.run(["list", "--no-legend"]).output.isEmpty)
    try Self.put(#"{"n":1}"#)
    #expect(try ControlTool.run(["show", "-j"] + Self.editor).json["sequence"] != nil)
    #expect(try Self.edit(["-j"], with: "true", status: 0).json == ["changed": false])
    #expect(Self.drafts().isEmpty)
  }

  @Test func anUnknownObjectIsMade() throws {
    try Self.edit(with: #"sed -i 's/{}/{"n":1}/'"#, status: 0)
    #expect(try Self.state() == #"{"n":1}"# + "\n")
  }

  @Test func aChangeMeanwhileStaysAndSoDoesTheEditedText() throws {
    try Self.put(#"{"n":1}"#)
    let words = Self.editor.joined(separator: " ")
    let meanwhile = #"f() { $PUT \#(words) /n 2 >/dev/null && sed -i s/1/3/ "$1"; }; f"#
    let refused = try Self.edit(with: meanwhile, status: 75)
    #expect(try Self.state() == #"{"n":2}"# + "\n")
    let draft = try #require(Self.drafts().first)
    #expect(try Files.text(draft) == "{\n  \"n\": 3\n}\n")
    let step = try #require(refused.errors.firstRange(of: "To store it: restorationctl ")).upperBound
    let command = refused.errors[step...].dropLast()
    #expect(refused.errors.contains("Your text is in \(draft). restorationctl get "), "\(refused.errors)")
    let stored = try ChildProcess.run(
      ["sh", "-c", "exec \(Products.control) \(command)"],
      environment: ControlTool.environment()
    )
    #expect(stored.end == .exit(0), "\(stored.errors)")
    #expect(try Self.state() == #"{"n":3}"# + "\n")
  }

  /// Numbers of changes begin again with a new archive.
  @Test func anApplicationThatIsMadeAnewMeanwhileStays() throws {
    try Self.put(#"{"n":1}"#)
    let words = Self.editor.joined(separator: " ")
    let anew = "\(Products.control) forget --yes \(Self.application) && $PUT \(words)"
    let refused = try Self.edit(with: #"f() { \#(anew) '{"n":2}' && sed -i s/1/3/ "$1"; } >&2; f"#, status: 75)
    #expect(refused.errors.contains("\(Self.application) was forgotten meanwhile"), "\(refused.errors)")
    #expect(try Self.state() == #"{"n":2}"# + "\n")
    #expect(try Files.text(#require(Self.drafts().first)) == "{\n  \"n\": 3\n}\n")
  }

  @Test func aTextThatCannotBeStoredIsKeptWithTheCommandThatStoresIt() throws {
    try Self.put(#"{"n":1}"#)
    for (editor, reason) in [("sed -i s/}//", "is not JSON"), ("sed -i 's/.*//;1s/$/7/'", "must be a JSON object")] {
      let refused = try Self.edit(with: editor, status: 64)
      #expect(refused.errors.contains(reason) && refused.errors.contains("--expecting "), "\(refused.errors)")
      let draft = try #require(Self.drafts().first)
      #expect(refused.errors.contains("Your text is in \(draft). Correct it there."), "\(refused.errors)")
      Files.removeContents(of: broker.directory.file("drafts"))
    }
    #expect(try Self.state() == #"{"n":1}"# + "\n")
  }

  @Test func anEditorThatFailsChangesNothing() throws {
    try Self.put(#"{"n":1}"#)
    let none = try Self.edit(with: "/nowhere/editor", status: 64)
    #expect(none.errors.contains("Set VISUAL or EDITOR"), "\(none.errors)")
    #expect(try Self.edit(["-j"], with: "false", status: 1).error["kind"] == "declined")
    #expect(Self.drafts().isEmpty)
    let changed = try Self.edit(with: #"f() { sed -i s/1/2/ "$1"; return 3; }; f"#, status: 1)
    let draft = try #require(Self.drafts().first)
    #expect(changed.errors.contains("with status 3") && changed.errors.contains("Your text is in \(draft)."))
    #expect(try Self.state() == #"{"n":1}"# + "\n")
  }

  @Test func anObjectOfALiveProcessIsRefusedBeforeTheEditorBegins() throws {
    let client = try broker.session(Self.application, process: "editor")
    try client.register("Main")
    try client.register("Editor", in: "Main")
    try client.encode("Main", "Editor", state: ["n": 1])
    let proof = broker.directory.file("proof")
    let refused = try Self.edit(["-j"], with: "touch \(proof);:", status: 1)
    #expect(try refused.error["kind"] == "notOwner")
    #expect(refused.errors.contains("is live in editor (\(getpid()))"), "\(refused.errors)")
    #expect(!Files.exists(proof))
  }

  @Test func aConfidentialStateIsEditedOnlyWithReveal() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Login", with: ["confidential": true])
    try client.encode("Login", state: ["password": "hunter2"])
    try client.call("goodbye", ["reason": "restart"])
    let words = ["edit", Self.application, "Login", "-j"]
    let hidden = try ControlTool.run(words, environment: ["VISUAL": "cat"], status: 1)
    #expect(try hidden.error["kind"] == "confidential")
    #expect(!hidden.output.contains("hunter2"))
    let editor = "sed -i s/hunter2/hunter3/"
    try ControlTool.run(words + ["--reveal"], environment: ["VISUAL": editor], status: 0)
    #expect(try ControlTool.run(["get", Self.application, "Login", "/password", "--reveal"]).output == "\"hunter3\"\n")
  }
}
