// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

extension Benchmark {
  /// Text and messages: what every byte and every call of a client goes through.
  static let messages = [
    Benchmark(name: "scan", rounds: 200) { _ in
      let text = Array(Sample.encode("17").utf8)
      var decoder = FrameDecoder(limits: FrameLimits(), vocabulary: EncodedState.vocabulary)
      return {
        text.withUnsafeBytes { decoder.append($0) }
        return frame(of: &decoder) == nil ? 0 : 1
      }
    },
    Benchmark(name: "conversation", rounds: 200) { _ in
      let event = event(Sample.encode("17"))
      var conversation = Conversation(limits: ConversationLimits())
      var (deliveries, output): ([Conversation.Delivery], [UInt8]) = ([], [])
      return {
        conversation.receive(event, into: &output, &deliveries)
        for case .request(let call, _) in deliveries {
          conversation.respond(to: call, with: .result(JSONText(.bool(true))), into: &output)
        }
        defer {
          deliveries.removeAll(keepingCapacity: true)
          output.removeAll(keepingCapacity: true)
        }
        return output.count
      }
    },
    Benchmark(name: "parameters-of-encode", rounds: 200) { _ in
      let parameters = parameters(Sample.encode("17"))
      return { (try? EncodeRestorableState(parameters))?.elements.count ?? -1 }
    },
    Benchmark(name: "parameters-of-registration", rounds: 200) { _ in
      let parameters = parameters(Sample.registration("Document"))
      return { (try? RegisterObjectForStateRestoration(parameters))?.classes.count ?? -1 }
    },
    Benchmark(name: "result", rounds: 200) { _ in
      let result: any JSONWritable = RegisteredObject().with {
        ($0.object, $0.path, $0.included) = (17, IdentifierPath(["Main", "Document"]), true)
      }
      return {
        var writer = JSONWriter(reserving: 256)
        result.writeJSON(to: &writer)
        return writer.bytes.count
      }
    },
  ]

  private static func frame(of decoder: inout FrameDecoder) -> Frame? {
    guard case .frame(let frame) = decoder.next() else { return nil }
    return frame
  }

  private static func event(_ text: String) -> FrameDecoder.Event {
    var decoder = FrameDecoder(limits: FrameLimits(), vocabulary: EncodedState.vocabulary)
    Array(text.utf8).withUnsafeBytes { decoder.append($0) }
    guard let event = decoder.next(), case .frame = event else { preconditionFailure("not a message: \(text)") }
    return event
  }

  private static func parameters(_ text: String) -> Parameters {
    guard case .frame(let frame) = event(text), case .message(.request(let request)) = frame.content else {
      preconditionFailure("not a call: \(text)")
    }
    return request.parameters
  }
}
