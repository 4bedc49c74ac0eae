// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Mutation
internal import RestorationBroker
internal import RestorationReplica
internal import RestorationWire

extension FuzzTarget {
  /// Every value of the protocol and of the gateway's, read from any JSON. The first byte chooses which. What was read
  /// is written so that it is read again as the same.
  static let words = FuzzTarget(
    name: "words",
    seeds: {
      types.indices.flatMap { index in
        let text = Array(sample(of: types[index].schema).utf8)
        return ([text] + borders(of: text)).map { [UInt8(index)] + $0 }
      }
    },
    run: { input in
      guard let first = input.first else { return }
      let type = types[Int(first) % types.count]
      guard let slice = scan(Array(input.dropFirst())), let value = try? type.init(wire: slice) else { return }
      let text = written(value)
      guard let again = scan(text), let second = try? type.init(wire: again) else {
        preconditionFailure("\(type) does not read what it wrote: \(String(decoding: text, as: UTF8.self))")
      }
      demand(written(second) == text, "\(type) reads \(String(decoding: text, as: UTF8.self)) as something else")
    }
  )

  private static let types: [any WireValue.Type] = {
    func reply<Method: RestorationMethod>(_: Method.Type) -> any WireValue.Type { Method.Reply.self }
    func answer<Call: RestorationCall>(_: Call.Type) -> any WireValue.Type { Call.Answer.self }
    let methods = MethodTable.methods.flatMap { [$0, reply($0)] as [any WireValue.Type] }
    let events = EventName.allCases.map { EventNotification.facts(of: $0) as any WireValue.Type }
    let calls = ServedMethod.allCases.flatMap { method -> [any WireValue.Type] in
      switch method.form {
      case .notification(let type): [type]
      case .call(let type): [type, answer(type)]
      case .event: []
      }
    }
    let forwarded = GatewayMethods.forwarded.flatMap { [$0, reply($0)] as [any WireValue.Type] }
    let gateway = [Attach.self, Attach.Reply.self] + forwarded
    return methods + events + calls + gateway + [
      ArchiveDocument.self, DocumentObject.self, RunFacts.self, SessionFacts.self,
    ]
  }()

  private static func scan(_ text: [UInt8]) -> JSONSlice? {
    try? JSONSlice.scan(text, vocabulary: EncodedState.vocabulary, limits: .unframed)
  }

  private static func written(_ value: any WireValue) -> [UInt8] {
    var writer = JSONWriter()
    value.writeJSON(to: &writer)
    return Array(writer.bytes)
  }

  /// The text of one value that the schema admits.
  static func sample(of schema: Schema) -> String {
    func object(_ members: [Schema.Member]) -> String {
      "{" + members.map { "\"\($0.name)\":\(sample(of: $0.schema))" }.joined(separator: ",") + "}"
    }
    return switch schema {
    case .any, .keywords: #"{"message":"m"}"#
    case .boolean: "true"
    case .integer(let min, let max): "\(min ?? max ?? 0)"
    case .text: #""org.example.App""#
    case .word(let words, _): #""\#(words[0])""#
    case .array(let element, _): "[\(sample(of: element))]"
    case .map(let value): #"{"key":\#(sample(of: value))}"#
    case .object(let members): object(members)
    case .tagged(let tag, let forms):
      #"{"\#(tag)":"\#(forms[0].word)","# + object(forms[0].members).dropFirst()
    case .nullable(let schema), .shared(_, let schema): sample(of: schema)
    case .either(let schemas): sample(of: schemas[0])
    }
  }
}
