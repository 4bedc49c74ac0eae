// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl verify`, `backup`, `export` and `import`: their output, their files and their exit statuses.
@Suite struct ArchiveCommandTests {
  private static let application = "org.example.Notes"

  /// Two objects with states that JSON libraries like to change, one of them confidential.
  private static func fill() throws {
    let client = try broker.session(application, process: "main")
    try client.register("Main", with: ["objectClass": "W"])
    try client.register("Secret", in: "Main", with: ["confidential": true])
    try client.send(
      #"{"jsonrpc":"2.0","id":"e","method":"encodeRestorableState","params":{"object":["Main"],"state":"#
        + #"{"x":0.1,"y":1e400,"z":-0.0,"r":{"$restorable":["Main","Secret"]}}}}"# + "\n"
    )
    _ = try client.receive()
    try client.encode("Main", "Secret", state: ["password": "p"])
    try client.call("goodbye", ["reason": "restart"])
  }

  @Test(.broker) func exportedImportedAndExportedItIsTheSameByteForByte() throws {
    try Self.fill()
    let exported = try ControlTool.run(["export", Self.application, "--reveal"], status: 0)
    #expect(exported.errors.isEmpty)
    #expect(exported.output.contains(#""state":{"x":0.1,"y":1e400,"z":-0.0,"r":{"$restorable":["Main","Secret"]}}"#))
    #expect(exported.output.split(separator: "\n").count == 4)
    let file = broker.directory.file("notes.json")
    let written = try ControlTool.run(["export", Self.application, "--reveal", "-o", file], status: 0)
    #expect(written.output.isEmpty && written.errors.isEmpty)
    #expect(try Files.text(file) == exported.output)
    #expect(Files.mode(file) == 0o600)
    let piped = try ControlTool.run(["import", "org.example.Copy"], input: exported.output, status: 0)
    #expect(piped.output == "org.example.Copy now has 2 objects, 2 states, 77 B.\n")
    #expect(try ControlTool.run(["export", "org.example.Copy", "--reveal"]).output == exported.output)
    let json = try ControlTool.run(["import", "org.example.Third", file, "--json=short"])
    #expect(json.output == #"{"objects":2,"states":2,"bytes":77}"# + "\n")
    let pretty = try ControlTool.run(["export", "org.example.Third", "--reveal", "--json=pretty"])
    #expect(pretty.output.contains("\n  \"objects\": [\n"))
    #expect(pretty.output.contains("1e400"))
    try ControlTool.run(["import", "org.example.Fourth", "-"], input: pretty.output, status: 0)
    #expect(try ControlTool.run(["export", "org.example.Fourth", "--reveal"]).output == exported.output)
  }

  @Test(.broker) func allApplicationsAreCheckedCopiedAndExportedAtOnce() throws {
    try Self.fill()
    try broker.connect().encode("A", state: [:], of: "b")
    let verified = try ControlTool.run(["verify", "--all"], status: 0)
    #expect(verified.output.hasPrefix("b is sound: 1 object, 1 state, "), "\(verified.output)")
    #expect(verified.output.contains("\n\(Self.application) is sound: 2 objects, "), "\(verified.output)")
    try ControlTool.run(["backup", "--all"], status: 0)
    let json = try ControlTool.run(["verify", "--all", "-j"], status: 0).json["applications"]?.array ?? []
    #expect(json.map { $0["application"] } == ["b", .string(Self.application)])
    #expect(json.allSatisfy { $0["result"]?["sound"] == true })
    let directory = broker.directory.path
    let exported = try ControlTool.run(["export", "--all", "-o", directory], status: 0)
    #expect(exported.output.contains("b exported to \(directory)/b.json, "), "\(exported.output)")
    #expect(exported.errors.contains("confidential states were left out"))
    #expect(try Files.text("\(directory)/b.json") == ControlTool.run(["export", "b"]).output)
    let made = "\(directory)/saved"
    try ControlTool.run(["export", "--all", "-o", made], status: 0)
    #expect(Files.mode(made) & 0o7777 == 0o700)
    // A directory cannot be written as a file; the next application has its turn.
    let blocked = "\(directory)/blocked"
    for path in [blocked, "\(blocked)/b.json"] { try Files.makeDirectory(path) }
    let partly = try ControlTool.run(["export", "--all", "-o", blocked, "-j"], status: 1)
    #expect(try partly.json["applications"]?.array?.map { $0["error"]?["kind"] } == ["outputFailed", nil])
    #expect(Files.exists("\(blocked)/\(Self.application).json"))
    try ControlTool.run(["export", "--all", "-o", "/dev/null/x"], status: 74)
    for arguments in [["verify"], ["verify", "--all", "b"], ["export", "--all"], ["backup", "--all", "x"]] {
      try ControlTool.run(arguments, status: 64)
    }
  }

  @Test(.broker) func anExportDoesNotSteerTheTerminal() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Main")
    try client.encode("Main", state: ["evil": "\u{9b}2J\u{202e}\u{7f}"])
    let piped = try ControlTool.run(["export", Self.application], status: 0).output
    #expect(piped.contains("\u{9b}2J"))
    let shown = try ControlTool.runOnTerminal(["export", Self.application, "--no-pager"], status: 0).output
    #expect(shown.contains(#"\u009b2J\u202e\u007f"#), "\(shown)")
  }

  private static let forced =
    "\n  Use --force: saved state stays as the newest generation, and missing states are not imported."
    + " To import confidential ones, export them with --reveal.\n"

  @Test(.broker) func confidentialStatesStayUnlessTheyAreRevealed() throws {
    try Self.fill()
    let exported = try ControlTool.run(["export", Self.application], status: 0)
    #expect(!exported.output.contains("password"))
    #expect(exported.errors.contains("--reveal"))
    let refused = try ControlTool.run(["import", "org.example.Copy"], input: exported.output, status: 1)
    #expect(refused.errors.contains("missing"))
    #expect(refused.errors.contains(Self.forced))
    let forced = try ControlTool.run(["import", "org.example.Copy", "--force"], input: exported.output)
    #expect(forced.output == "org.example.Copy now has 2 objects, 1 state, 61 B.\n", "\(forced.errors)")
  }

  @Test(.broker) func stateThatIsThereIsReplacedByForceOnlyAndStaysAGeneration() throws {
    try Self.fill()
    let exported = try ControlTool.run(["export", Self.application, "--reveal"]).output
    let refused = try ControlTool.run(["import", Self.application], input: exported, status: 1)
    #expect(refused.output.isEmpty)
    #expect(refused.errors.contains("has saved state") && refused.errors.contains(Self.forced))
    let empty = #"{"format":"restorationd.archive","version":1,"objects":[]}"#
    // What gives parameters names them as the protocol does.
    let call = ["call", "importArchive", #"{"application":"\#(Self.application)","document":\#(empty)}"#]
    #expect(try ControlTool.run(call, status: 1).errors.contains("\n  Use force: true; the present state stays "))
    let forced = try ControlTool.run(["import", Self.application, "--force"], input: empty)
    #expect(forced.output.contains("the former state is generation 1"), "\(forced.errors)")
    let former = try ControlTool.run(["export", Self.application, "--reveal", "--generation", "1"])
    #expect(former.output == exported)
    let none = try ControlTool.run(["export", Self.application, "--generation", "9"], status: 4)
    #expect(none.output.isEmpty)
    #expect(none.errors.contains("unknown generation 9"))
  }

  @Test(.broker) func anApplicationInUseIsNotImportedInto() throws {
    let client = try broker.session(Self.application, process: "editor")
    let empty = #"{"format":"restorationd.archive","version":1,"objects":[]}"#
    let refused = try ControlTool.run(["import", Self.application, "--force"], input: empty, status: 1)
    #expect(refused.errors.contains("editor"))
    try client.call("goodbye", ["reason": "restart"])
  }

  @Test(.broker) func aWrongDocumentIsRefusedWithItsPlace() throws {
    let document = #"{"format":"restorationd.archive","version":1,"objects":[{"path":["a"],"kind":"window"}]}"#
    let wrong = try ControlTool.run(["import", Self.application], input: document, status: 1)
    #expect(wrong.output.isEmpty)
    #expect(wrong.errors.contains("kind"))
    let noJSON = try ControlTool.run(["import", Self.application], input: #"{"format":"#, status: 1)
    #expect(noJSON.errors.contains("not JSON"))
    let foreign = try ControlTool.run(["import", Self.application], input: "{}", status: 1)
    #expect(foreign.errors.contains("the document's format is not \"restorationd.archive\" (/document/format)\n"))
    for refused in [noJSON, foreign] {
      #expect(refused.errors.hasSuffix("\n  Give a document that restorationctl export has written.\n"))
    }
    let noFile = try ControlTool.run(["import", Self.application, broker.directory.file("none")], status: 64)
    #expect(noFile.errors.contains("No such file") && !noFile.errors.contains("Usage"), "\(noFile.errors)")
    #expect(try ControlTool.run(["list", "--no-legend"]).output.isEmpty)
  }

  @Test(.broker) func aFileIsWrittenWholeOrNotAtAll() throws {
    try Self.fill()
    let folder = try broker.directory.makeDirectory("locked")
    let inside = try ControlTool.run(["export", Self.application, "-o", "\(folder)/none/x.json"], status: 74)
    #expect(inside.errors.contains("cannot be written"))
    let file = broker.directory.file("old.json")
    try Files.write(Array("old".utf8), to: file)
    try ControlTool.run(["export", "org.example.Nobody", "-o", file], status: 4)
    #expect(try Files.text(file) == "old")
    #expect(try ControlTool.run(["export", Self.application, "-o", file]).end == .exit(0))
    #expect(try Files.text(file).hasPrefix(#"{"format":"#))
    #expect(!Files.list(broker.directory.path).contains { $0.contains(".part") })
  }

  @Test(.broker) func aLinkStaysALinkAndWhatIsNoFileIsWrittenTo() throws {
    try Self.fill()
    let exported = try ControlTool.run(["export", Self.application, "--reveal"]).output
    let file = broker.directory.file("real.json")
    try Files.write(Array("old".utf8), to: file)
    let (link, device) = (broker.directory.file("link.json"), broker.directory.file("device"))
    #expect(symlink(file, link) == 0 && symlink("/dev/null", device) == 0)
    #expect(try ControlTool.run(["export", Self.application, "--reveal", "-o", link]).end == .exit(0))
    #expect(try Files.text(file) == exported)
    #expect(realpath(link, nil).map { String(cString: $0) } == realpath(file, nil).map { String(cString: $0) })
    #expect(try ControlTool.run(["export", Self.application, "-o", device]).end == .exit(0))
    #expect(try Files.text(device).isEmpty)
    #expect(try ControlTool.run(["export", Self.application, "--reveal", "-o", "-"]).output == exported)
    #expect(!Files.exists("-"))
  }

  @Test(.broker) func verifySaysThatAnArchiveIsSound() throws {
    try Self.fill()
    let result = try ControlTool.run(["verify", Self.application], status: 0)
    #expect(result.output == "\(Self.application) is sound: 2 objects, 2 states, 77 B.\n")
    let json = try JSONCodec.parse(Array(try ControlTool.run(["verify", Self.application, "-j"]).output.utf8))
    #expect(json["sound"] == true && json["states"] == 2 && json["problems"] == [])
    let unknown = try ControlTool.run(["verify", "org.example.Nobody"], status: 4)
    #expect(unknown.output.isEmpty && unknown.errors.contains("no archive"))
  }

  @Test(.broker) func verifyListsWhatIsWrongAndEndsWith1() throws {
    try Self.fill()
    _ = try broker.terminate()
    // One byte of the text flips.
    let file = "\(broker.archives)/\(Self.application).sqlite"
    var bytes = try Files.read(file)
    let place = try #require(bytes.firstRange(of: Array("1e400".utf8)))
    bytes[place.lowerBound] = UInt8(ascii: "2")
    try Files.write(bytes, to: file)
    try broker.start()
    let result = try ControlTool.run(["verify", Self.application], status: 1)
    #expect(result.errors.isEmpty)
    let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines[0].hasPrefix("KIND"))
    #expect(lines[1].hasPrefix("state") && lines[1].contains("  Main  ") && lines[1].contains("checksum"))
    #expect(result.output.contains("is not sound: 1 problem;"))
    let json = try ControlTool.run(["verify", Self.application, "--json=short"], status: 1)
    let problem = try JSONCodec.parse(Array(json.output.utf8))["problems"]?.array?.first
    #expect(problem?["kind"] == "state" && problem?["path"] == ["Main"])
    // Everything else can still be exported.
    let exported = try ControlTool.run(["export", Self.application, "--reveal"]).output
    #expect(exported.contains(#""missing":"unreadable""#) && exported.contains("password"))
  }

  @Test(.broker) func backupCopiesToAFileThatWasNotThere() throws {
    try Self.fill()
    let own = try ControlTool.run(["backup", Self.application], status: 0)
    #expect(own.output.hasPrefix("\(Self.application) copied to its backup copy, "))
    #expect(Files.list(broker.archives).contains("\(Self.application)+backup.sqlite"))
    let file = broker.directory.file("copy.sqlite")
    let copied = try ControlTool.run(["backup", Self.application, file, "--json=short"], status: 0)
    #expect(try JSONCodec.parse(Array(copied.output.utf8))["to"] == .string(file))
    #expect(Files.mode(file) == 0o600)
    let again = try ControlTool.run(["backup", Self.application, file], status: 1)
    #expect(again.errors.contains("File exists"))
    // A copy in the place of an archive is that archive.
    _ = try broker.terminate()
    try Files.write(try Files.read(file), to: "\(broker.archives)/org.example.Moved.sqlite")
    try broker.start()
    let moved = try ControlTool.run(["export", "org.example.Moved", "--reveal"]).output
    #expect(try ControlTool.run(["export", Self.application, "--reveal"]).output == moved)
  }

  @Test(.scratch, arguments: ["verify", "backup", "export", "import"])
  func helpBeginsWithExamplesAndAMissingApplicationIsStatus64(_ command: String) throws {
    let help = try ChildProcess.run([Products.control, command, "--help"])
    #expect(help.end == .exit(0))
    let examples = try #require(help.output.firstRange(of: "Examples:"))
    let usage = try #require(help.output.firstRange(of: "USAGE"))
    #expect(examples.lowerBound < usage.lowerBound)
    let missing = try ChildProcess.run([Products.control, "--socket", directory.file("b.sock"), command])
    #expect(missing.end == .exit(64) && missing.output.isEmpty)
    let noBroker = try ChildProcess.run([Products.control, "--socket", directory.file("b.sock"), command, "a"])
    #expect(noBroker.end == .exit(3) && noBroker.output.isEmpty)
  }
}
