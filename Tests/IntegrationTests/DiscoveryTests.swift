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

  /// By openrpcclientgenerator, in TypeScript; the compiler checks a program that uses the client, and node runs it.
  @Test(.broker, .enabled(if: canGenerate, "needs tsc and the Python packages; Tests/run.sh installs them"))
  func aPublicGeneratorMakesATypedClient() throws {
    let directory = broker.directory
    let document = try Files.text("\(Products.repository)/Protocol/openrpc-client.json")
    try directory.write(document, to: "openrpc.json")
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
    for (name, member) in [("program", "reason"), ("wrong", "raison")] {
      try Files.write(Array(Self.program(reading: member).utf8), to: "\(source)/\(name).ts")
    }
    let options = ["--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node"]
    let files = ["--experimentalDecorators", "program.ts", "wrong.ts", "libraries.d.ts"]
    let checked = try ChildProcess.run(["tsc"] + options + files, directory: source, Deadline(.seconds(120)))
    let library = "\(source)/node_modules/jsonrpc2-tsclient"
    try Packages.run(["mkdir", "-p", library])
    try Files.write(Array(#"{"type":"module","main":"index.js"}"#.utf8), to: "\(library)/package.json")
    try Files.write(Array("const { methods } = \(document);\n\(Self.transport)".utf8), to: "\(library)/index.js")
    let complaints = checked.output.split(separator: "\n").filter { !$0.hasPrefix(" ") }
    #expect(complaints.count == 1 && complaints[0].hasPrefix("wrong.ts("), "\(checked.output)")
    #expect(checked.output.contains("Property 'raison' does not exist on type 'SkippedObject'"))
    let run = try ChildProcess.run(["node", "program.js", broker.socket], directory: source)
    #expect(run.output == "available Grüße 0\n", "\(run.errors)")
  }

  /// What the client needs and this machine does not have.
  private static let libraries = """
    declare module "axios" { export type AxiosRequestHeaders = Record<string, string>; }
    declare module "jsonrpc2-tsclient" {
      export class RPCHTTPClient { constructor(url: string); url: string; headers: object }
      export function rpcClient(...rest: unknown[]): ClassDecorator;
    }
    """

  /// What the library does then: the client has no names of parameters, which the document has.
  private static let transport = """
    import http from "node:http";
    export class RPCHTTPClient {}
    const post = (socketPath, call) => new Promise((resolve, reject) =>
      http.request({ socketPath, method: "POST" }, async (response) => {
        let text = "";
        for await (const part of response) text += part;
        const { result, error } = JSON.parse(text);
        error ? reject(new Error(text)) : resolve(result);
      }).end(JSON.stringify({ jsonrpc: "2.0", id: 1, ...call })));
    export const rpcClient = (transport) => (type) => {
      for (const { name: method, params } of methods)
        type.prototype[method] = (...values) => post(
          transport.url, { method, params: Object.fromEntries(params.map(({ name }, at) => [name, values[at]])) });
    };
    """

  private static func program(reading member: String) -> String {
    """
    import { RestorationClient } from "./client.js";
    declare const process: { argv: string[] };
    const client = new RestorationClient(process.argv[2]);
    await client.encodeRestorableState(["Main"], { text: "Grüße" }, null, null, null, "org.example.Notes", null);
    const saved = await client.decodeRestorableState(["Main"], "org.example.Notes", null);
    const result = await client.restoreApplicationState(5000, null, null, "org.example.Notes", null);
    const reasons: string[] = result.skipped.map((object) => object.\(member));
    console.log(saved.status, (saved.state as { text: string }).text, result.restored.length + reasons.length);
    """
  }

  private static func validate(_ arguments: String...) throws -> (end: ChildProcess.End, output: String, errors: String)
  {
    let script = "\(Products.repository)/Tests/Clients/openrpc/validate.py"
    return try ChildProcess.run([PythonPackages.python, script] + arguments, Deadline(.seconds(240)))
  }
}
