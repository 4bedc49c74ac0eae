// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import TestSupport
internal import Testing

/// `rpc.discover`, `Protocol/openrpc.json` and the broker's behaviour agree.
@Suite struct DiscoveryTests {
  private static let file = "\(Products.repository)/Protocol/openrpc.json"
  private static let usable = PythonPackages.areUsable("openrpc", "jsonschema_rs")

  @Test(
    .broker,
    arguments: [("openrpc.json", []), ("openrpc-client.json", [#"{"forGenerators":true}"#])] as [(String, [String])]
  )
  func theCommittedDocumentIsTheLiveOne(_ file: String, _ parameters: [String]) throws {
    let call = ["call", "--json=pretty", "rpc.discover"] + parameters
    let isSame = try ControlTool.run(call, status: 0).output == Files.text("\(Products.repository)/Protocol/\(file)")
    #expect(isSame, "write it anew: restorationctl \(call.joined(separator: " ")) >Protocol/\(file)")
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

  /// Plays all vectors and documented exchanges, several at a time, and mutates the messages. One process has all their
  /// sessions, and no application leaves memory while its vector waits.
  @Test(
    .broker(limits: ["sessionsPerProcessMax": 65_536, "openArchivesMax": 1_024]),
    .enabled(if: usable, Comment(rawValue: PythonPackages.requirement))
  )
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

  private static let canGenerate =
    PythonPackages.areUsable("openrpcclientgenerator")
    && (Environment.isCI || (try? ChildProcess.run(["tsc", "--version"]).end) == .exit(0))

  /// By openrpcclientgenerator, in TypeScript; the compiler checks a program that uses the client.
  @Test(.scratch, .enabled(if: canGenerate, "needs tsc and the Python packages; Tests/run.sh installs them"))
  func aPublicGeneratorMakesATypedClient() throws {
    try directory.write(Files.text("\(Products.repository)/Protocol/openrpc-client.json"), to: "openrpc.json")
    let made = try ChildProcess.run(
      [PythonPackages.program("orpc"), "typescript", "http://broker"],
      directory: directory.path
    )
    try #require(made.end == .exit(0), "\(made.errors)")
    let source = directory.file("out/typescript/restoration-http-client/src")
    let (client, models) = (try Files.text("\(source)/client.ts"), try Files.text("\(source)/models.ts"))
    let results = client.matches(of: /Promise<(.*)>/).map { String($0.1) }
    #expect(results.count == MethodTable.methods.count)
    for result in results { #expect(result.wholeMatch(of: /[A-Z]\w*( \| ([A-Z]\w*|null))*/) != nil, "\(result)") }
    #expect(!models.contains(/\b(any|unknown)\b/))
    let scoped = client.matches(of: /application: string \| null,\s+session: string \| null\s/).count
    #expect(scoped == MethodTable.methods.count { $0.isScoped })
    try Files.write(Array(Self.libraries.utf8), to: "\(source)/libraries.d.ts")
    let isTyped = { (member: String) in
      try Files.write(Array(Self.program(reading: member).utf8), to: "\(source)/program.ts")
      let options = ["--noEmit", "--strict", "--target", "es2020", "--moduleResolution", "node"]
      let files = ["--experimentalDecorators", "program.ts", "libraries.d.ts"]
      return try ChildProcess.run(["tsc"] + options + files, directory: source, Deadline(.seconds(120)))
    }
    let right = try isTyped("reason")
    #expect(right.end == .exit(0), "\(right.output)")
    #expect(try isTyped("raison").output.contains("Property 'raison' does not exist on type 'SkippedObject'"))
  }

  /// What the client needs and this machine does not have.
  private static let libraries = """
    declare module "axios" { export type AxiosRequestHeaders = Record<string, string>; }
    declare module "jsonrpc2-tsclient" {
      export class RPCHTTPClient { constructor(url: string); url: string; headers: object }
      export function rpcClient(...rest: unknown[]): ClassDecorator;
    }
    """

  private static func program(reading member: String) -> String {
    """
    import { RestorationClient } from "./client.js";
    export async function program(client: RestorationClient): Promise<(string | number | null)[]> {
      const result = await client.restoreApplicationState(5000, null, null, "org.example.Notes", null);
      const saved = await client.saveApplicationState(null, null, null, "org.example.Notes", null);
      return [...result.restored[0], result.skipped[0].\(member), saved.generation];
    }
    """
  }

  private static func validate(_ arguments: String...) throws -> (end: ChildProcess.End, output: String, errors: String)
  {
    let script = "\(Products.repository)/Tests/Clients/openrpc/validate.py"
    return try ChildProcess.run([PythonPackages.python, script] + arguments, Deadline(.seconds(240)))
  }
}
