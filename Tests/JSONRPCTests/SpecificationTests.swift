// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The exchanges in the examples section of the JSON-RPC 2.0 specification, with its methods.
@Suite struct SpecificationTests {
  @Test(arguments: SpecificationExchange.all, [1, Int.max])
  func exchangesGoAsSpecified(exchange: SpecificationExchange, step: Int) throws {
    var peer = PeerFixture()
    for event in peer.events(exchange.request.utf8, step: step) {
      for delivery in peer.conversation.receive(event, into: &peer.output) {
        guard case .request(let call, let request) = delivery else { continue }
        peer.conversation.respond(to: call, with: Self.dispatch(request.method, request.parameters), into: &peer.output)
      }
    }
    let lines = peer.takeLines()
    #expect(lines.count == (exchange.response == nil ? 0 : 1))
    if let line = lines.first, let response = exchange.response {
      #expect(try SpecificationExchange.canonical(line) == SpecificationExchange.canonical(response))
    }
  }

  @Test func allExchangesGoOverOneConnection() throws {
    var peer = PeerFixture()
    for exchange in SpecificationExchange.all { peer.serve(exchange.request + "\n", Self.dispatch) }
    let answers = try peer.takeLines().map(SpecificationExchange.canonical)
    let expected = try SpecificationExchange.all.compactMap(\.response).map(SpecificationExchange.canonical)
    #expect(answers == expected)
    #expect(SpecificationExchange.all.count == 15)
  }

  private static func dispatch(_ method: String, _ parameters: Parameters) -> Outcome {
    switch method {
    case "subtract":
      switch parameters {
      case .positional(let numbers) where numbers.count == 2:
        return integer((numbers[0].integer() ?? 0) - (numbers[1].integer() ?? 0))
      case .named(let object):
        return integer((object["minuend"]?.integer() ?? 0) - (object["subtrahend"]?.integer() ?? 0))
      default:
        return .error(.invalidParams(hint: "Give two numbers."))
      }
    case "sum", "notify_sum":
      guard case .positional(let numbers) = parameters else { return .error(.invalidParams(hint: "Give numbers.")) }
      return integer(numbers.compactMap { $0.integer() }.reduce(0, +))
    case "get_data": return .result(JSONText(["hello", 5]))
    case "update", "notify_hello": return .result(.null)
    default: return .error(.methodNotFound(method))
    }
  }

  private static func integer(_ value: Int64) -> Outcome {
    .result(JSONText(.integer(value)))
  }
}
