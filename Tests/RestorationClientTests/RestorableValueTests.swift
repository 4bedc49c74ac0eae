// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import Testing

/// States as values.
@Suite struct RestorableValueTests {
  @Test func equalValuesGiveEqualText() {
    let state: RestorableState = ["b": 17, "a": [1.5, true, nil, "Grüße"], "c": ["y": 2, "x": [:]]]
    #expect(state.jsonText == #"{"a":[1.5,true,null,"Grüße"],"b":17,"c":{"x":{},"y":2}}"#)
    #expect(state == ["c": ["x": [:], "y": 2], "a": [1.5, true, nil, "Grüße"], "b": 17])
    #expect(state.values["a"]?.array?.first?.real == 1.5)
    #expect(state["b"]?.integer == 17 && state["b"]?.real == 17 && state["b"]?.string == nil)
    #expect(state["c"]?["y"] == 2)
    #expect(state["missing"] == nil)
    #expect(RestorableState.empty.values == [:])
  }

  @Test("R14 References are told from data that looks like them") func referencesAreToldFromData() throws {
    let state: RestorableState = [
      "front": .reference(["Main", "Editor"]), "data": ["$restorable": ["A"], "in": ["$literal": 1]],
    ]
    #expect(
      state.jsonText
        == #"{"data":{"$literal":{"$restorable":["A"],"in":{"$literal":1}}},"front":{"$restorable":["Main","Editor"]}}"#
    )
    #expect(state["front"]?.reference == .path(["Main", "Editor"]))
    #expect(state["data"] == ["$restorable": ["A"], "in": ["$literal": 1]])
    // As it is decoded (R27).
    let decoded = try RestorableState(jsonText: #"{"a":{"$restorable":["A"],"object":7},"b":{"$restorable":null}}"#)
    #expect(decoded.values == ["a": .reference(["A"]), "b": nil])
  }

  @Test func whateverJSONHoldsIsAValue() throws {
    let state = try RestorableState(jsonText: #"{"big":123456789012345678901234567890,"huge":1e400,"é":-0.0}"#)
    #expect(state["big"]?.real == 1.2345678901234568e29)
    #expect(state["huge"]?.real == .infinity)
    #expect(state["é"]?.real?.sign == .minus)
  }
}
