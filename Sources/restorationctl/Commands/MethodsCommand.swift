// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct MethodsCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "methods",
    abstract: "List the methods of the protocol, or describe one.",
    usage: "restorationctl methods [<option> ...] [<method>]",
    discussion: """
      Examples:
        restorationctl methods
        restorationctl methods encodeRestorableState
        restorationctl methods -j | jq -r '.methods[].name'

      The running broker describes its methods by rpc.discover. The broker itself
      calls the methods marked "client". In JSON a method has the form of that
      document (OpenRPC).
      """
  )

  @OptionGroup var options: CommonOptions

  @Argument(help: "The method to describe.", completion: .methods)
  var method: String?

  func run() async throws {
    try await withBroker { broker in
      let catalogue = try await MethodCatalogue(broker)
      guard let method else {
        let list = PrintedObject { $0.member("methods", catalogue.methods) }
        return try output.show(list, or: Self.table(of: catalogue.methods).text(counting: "method", legend))
      }
      guard let described = catalogue.methods.first(where: { $0.name == method }) else {
        throw catalogue.unknown(method)
      }
      try output.show(described.text, or: catalogue.page(of: described, legend))
    }
  }

  private static func table(of methods: [MethodCatalogue.Method]) -> TextTable {
    var table = TextTable([
      TextTable.Column("METHOD", minimum: nil), TextTable.Column("TO"), TextTable.Column("SUMMARY"),
    ])
    for method in methods { table.add([method.name, method.isToClient ? "client" : "broker", method.meaning]) }
    return table
  }
}

/// The broker's methods, from `rpc.discover`.
struct MethodCatalogue {
  struct Method: JSONWritable {
    let slice: JSONSlice

    var name: String { slice["name"]?.string() ?? "" }
    /// Its summary.
    var meaning: String { slice.meaning("summary") }
    var isToClient: Bool { slice["x-direction"]?.string() == "toClient" }
    /// The method's part of the document, unchanged.
    var text: JSONText { slice.compactText }

    func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("name", name)
        writer.member("summary", meaning)
        writer.member("toClient", isToClient)
      }
    }
  }

  private struct Parameter {
    let name: String
    let schema: JSONSlice?
    let isRequired: Bool
    let meaning: String
  }

  let methods: [Method]
  private let schemas: JSONSlice?
  /// Parameters of every method that is about an application.
  private let scope: [Parameter]

  init(_ broker: BrokerConnection) async throws {
    let document = try JSONSlice.read(sent: await broker.call("rpc.discover"), subject: "the answer")
    methods = document["methods"]?.elements?.map { Method(slice: $0) } ?? []
    schemas = document["components"]?["schemas"]
    scope = (document["x-scope"]?.members ?? []).map { name, schema in
      Parameter(name: name, schema: schema, isRequired: false, meaning: schema.meaning("description"))
    }
  }

  private func parameters(of method: Method) -> [Parameter] {
    let own = (method.slice["params"]?.elements ?? []).map { parameter in
      Parameter(
        name: parameter["name"]?.string() ?? "",
        schema: parameter["schema"],
        isRequired: parameter["required"]?.bool() == true,
        meaning: parameter.meaning("description")
      )
    }
    return own + (method.slice["x-scoped"]?.bool() == true ? scope : [])
  }

  func unknown(_ name: String) -> Failure {
    if methods.contains(where: { $0.name == name }) {
      let hint = "restorationctl methods \(name) describes it."
      return failure(.methodNotFound, "\(name) is called by the broker", hint: hint)
    }
    let near = Suggestion.nearest(to: name, in: methods.map(\.name)).map { "Did you mean \($0)? " } ?? ""
    return failure(.methodNotFound, "unknown method \(name)", hint: "\(near)restorationctl methods lists them.")
  }

  /// The failure of a call with an unknown parameter; `nil` if all are known.
  func unknownParameter(among given: [String], of called: String) -> Failure? {
    guard let method = methods.first(where: { $0.name == called && !$0.isToClient }) else { return nil }
    // Any call may have these and `_meta`.
    let known = (parameters(of: method) + scope).map(\.name)
    guard let name = given.first(where: { !known.contains($0) && $0 != "_meta" }) else { return nil }
    let unknown = name.shortened(to: 40)
    let near = Suggestion.nearest(to: unknown, in: known).map { "Did you mean \($0)? " } ?? ""
    var failure = failure(
      .invalidParams,
      "\(called) has no parameter \(unknown)",
      hint: "\(near)restorationctl methods \(called) lists them."
    )
    failure.pointer = JSONPointer.make(unknown)
    return failure
  }

  private func failure(_ code: ErrorCode, _ message: String, hint: String) -> Failure {
    var failure = Failure(ExitStatus.refused, kind: code.kind, message, hint: hint)
    failure.code = code.rawValue
    return failure
  }

  // MARK: For people

  func page(of method: Method, _ legend: LegendOptions) -> String {
    let parameters = parameters(of: method).map { parameter in
      [parameter.name, type(parameter.schema), (parameter.isRequired ? "Required. " : "") + parameter.meaning]
    }
    let errors = (method.slice["errors"]?.elements ?? []).map { error in
      [
        error["data"]?["kind"]?.string() ?? "", error["code"]?.description ?? "", error.meaning("message"),
      ]
    }
    let results = results(method.slice["result"]?["schema"])
    let tables =
      [(["PARAMETER", "TYPE", "MEANING"], parameters)] + results.map { (["RESULT", "TYPE", "MEANING"], $0) }
      + [(["ERROR", "CODE", "WHEN"], errors)]
    return tables.filter { !$0.1.isEmpty }.reduce("\(method.name): \(method.meaning)".printable + "\n") { page, part in
      var table = TextTable(part.0.map { TextTable.Column($0, minimum: nil) })
      for row in part.1 { table.add(row) }
      return page + "\n" + table.text(header: !legend.hidesLegend)
    }
  }

  /// The members of a result, or of each alternative of a result.
  private func results(_ schema: JSONSlice?) -> [[[String]]] {
    guard let schema = schema.map(resolved) else { return [] }
    if let choices = schema["anyOf"]?.elements { return choices.flatMap { results($0) } }
    guard let members = schema["properties"]?.members, !members.isEmpty else { return [[["", type(schema), ""]]] }
    return [members.map { [$0.name, type($0.value), $0.value.meaning("description")] }]
  }

  private func resolved(_ schema: JSONSlice) -> JSONSlice {
    schema["$ref"]?.string().flatMap { name in schemas?[String(name.split(separator: "/").last ?? "")] } ?? schema
  }

  /// The type in words: `integer`, `array of Element`, `Handle or null`.
  private func type(_ schema: JSONSlice?) -> String {
    guard let schema else { return "" }
    if let name = schema["$ref"]?.string() { return String(name.split(separator: "/").last ?? "") }
    if let choices = schema["anyOf"]?.elements { return choices.map { type($0) }.joined(separator: " or ") }
    if let value = schema["const"] { return value.description }
    let name = schema["type"]
    let names: [String] = name?.strings ?? name.flatMap { $0.string() }.map { [$0] } ?? []
    let items = schema["items"].map { " of \(type($0))" } ?? ""
    return names.map { $0 == "array" ? "array\(items)" : $0 }.joined(separator: " or ")
  }
}

extension JSONSlice {
  /// The text of a member, without references to the protocol's rules such as ` (R1, R4)`.
  fileprivate func meaning(_ name: StaticString) -> String {
    (self[name]?.string() ?? "").replacing(/\ \(R[0-9][^)]*\)/, with: "")
  }
}
