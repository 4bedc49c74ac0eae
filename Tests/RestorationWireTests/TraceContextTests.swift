// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

@Suite struct TraceContextTests {
  private static let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  private static func trace(_ meta: String) throws -> TraceContext? {
    let text = Array(#"{"_meta":\#(meta)}"#.utf8)
    return TraceContext(.named(try JSONSlice.scan(text, vocabulary: EncodedState.vocabulary, limits: FrameLimits())))
  }

  @Test func whatTheStandardCallsTraceparentAndTracestateIsRead() throws {
    let trace = try Self.trace(#"{"traceparent":"\#(Self.valid)","tracestate":"a=1,b=2","baggage":"c=3"}"#)
    #expect(trace?.traceparent == Self.valid && trace?.tracestate == "a=1,b=2")
    #expect(TraceContext(.none) == nil && TraceContext(.positional([])) == nil)
  }

  @Test(arguments: [
    "null", "1", "[]", "{}", #"{"traceparent":1}"#, #"{"traceparent":""}"#,
    #"{"traceparent":"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#,
    #"{"traceparent":"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"}"#,
    #"{"traceparent":"00-00000000000000000000000000000000-00f067aa0ba902b7-01"}"#,
    #"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"}"#,
    #"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e47360-0f067aa0ba902b7-01"}"#,
    #"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"}"#,
    #"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e473ü-00f067aa0ba902b-01"}"#,
  ])
  func anInvalidOneIsNone(_ meta: String) throws { #expect(try Self.trace(meta) == nil) }

  @Test func aTraceIsAddedToParametersByName() throws {
    let trace = try #require(TraceContext(traceparent: Self.valid, tracestate: "a=1"))
    let meta = #""_meta":{"traceparent":"\#(Self.valid)","tracestate":"a=1"}"#
    func added(to text: String?) -> String {
      trace.added(to: text.map { JSONText(validated: Array($0.utf8)) }).string
    }
    #expect(added(to: nil) == "{\(meta)}" && added(to: "{}") == "{\(meta)}")
    #expect(added(to: #"{"a":[]}"#) == #"{\#(meta),"a":[]}"#)
    #expect(added(to: "[]") == "[]" && added(to: "[{}]") == "[{}]")
  }

  @Test func aTracestateThatIsTooLongIsLeftOut() throws {
    for count in [512, 513] {
      let state = String(repeating: "a", count: count)
      let trace = try Self.trace(#"{"traceparent":"\#(Self.valid)","tracestate":"\#(state)"}"#)
      #expect(try #require(trace).tracestate == (count == 512 ? state : nil))
    }
  }
}
