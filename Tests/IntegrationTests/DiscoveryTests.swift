// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import TestSupport
internal import Testing

/// `rpc.discover`, `Protocol/openrpc.json` and the broker's behaviour agree.
@Suite struct DiscoveryTests {
  private static let file = "\(Products.repository)/Protocol/openrpc.json"
  private static let usable = PythonPackages.areUsable("openrpc", "jsonschema")

  @Test(.broker) func theCommittedDocumentIsTheLiveOne() throws {
    let result = try ControlTool.run(["call", "--json=pretty", "rpc.discover"], status: 0)
    let isSame = try result.output == Files.text(Self.file)
    #expect(isSame, "write it anew: restorationctl call --json=pretty rpc.discover >Protocol/openrpc.json")
  }

  /// A method that is described and not dispatched would be −32601.
  @Test(.broker) func everyDescribedMethodIsThere() throws {
    let methods = try JSONCodec.parse(Array(Files.text(Self.file).utf8))["methods"]?.array ?? []
    let names = methods.filter { $0["x-direction"]?.string == "toBroker" && $0["result"] != nil }
      .compactMap { $0["name"]?.string }
    #expect(names.count == MethodTable.methods.count)
    for name in names {
      let client = try WireClient(broker.socket)
      try client.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(name)","params":{"application":"a"}}"# + "\n")
      let answer = try JSONCodec.parse(Array(client.receive().utf8))
      #expect(answer["id"]?.integer == 1 && answer["error"]?["code"]?.integer != -32601, "\(name): \(answer)")
    }
  }

  /// Plays all vectors and documented exchanges, and mutates the messages.
  @Test(.broker, .enabled(if: usable, Comment(rawValue: PythonPackages.requirement)))
  func everythingThatIsSaidIsDescribed() throws {
    let result = try Self.validate(Self.file, broker.socket)
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
  }

  /// A validator that passes everything would be none.
  @Test(
    .scratch,
    .enabled(if: usable, Comment(rawValue: PythonPackages.requirement)),
    arguments: [
      (#""title": "The restoration protocol","#, ""),
      (#""minimum": 1,"#, #""minimum": "one","#),
      ("#/components/schemas/Handle", "#/components/schemas/Hand"),
      (#""x-direction": "toClient""#, #""x-direction": "away""#),
    ]
  )
  func aDocumentThatIsWrongDoesNotPass(_ right: String, _ wrong: String) throws {
    let text = try Files.text(Self.file)
    let changed = text.split(separator: right, omittingEmptySubsequences: false).joined(separator: wrong)
    #expect(changed != text)
    let result = try Self.validate(directory.write(changed, to: "openrpc.json"))
    #expect(result.end == .exit(1), "\(result.output)\(result.errors)")
  }

  private static func validate(_ arguments: String...) throws -> (end: ChildProcess.End, output: String, errors: String)
  {
    let script = "\(Products.repository)/Tests/Clients/openrpc/validate.py"
    return try ChildProcess.run([PythonPackages.python, script] + arguments, Deadline(.seconds(240)))
  }
}
