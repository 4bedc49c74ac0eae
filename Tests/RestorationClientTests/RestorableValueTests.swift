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
    // As it is decoded (R14).
    let decoded = try RestorableState(jsonText: #"{"a":{"$restorable":["A"],"object":7},"b":{"$restorable":null}}"#)
    #expect(decoded.values == ["a": .reference(["A"]), "b": nil])
  }

  @Test("Bytes and dates are told from data that looks like them") func bytesAndDates() throws {
    let state: RestorableState = [
      "data": .data([0, 1, 255, 16]), "date": .date(Timestamp(milliseconds: 1_772_269_500_042)),
      "no": ["$data": "AAE="], "nor": ["$date": .data([1])],
    ]
    #expect(
      state.jsonText
        == #"{"data":{"$data":"AAH/EA=="},"date":{"$date":"2026-02-28T09:05:00.042Z"},"#
        + #""no":{"$literal":{"$data":"AAE="}},"nor":{"$literal":{"$date":{"$data":"AQ=="}}}}"#
    )
    #expect(state["data"]?.data == [0, 1, 255, 16] && state["date"]?.date?.milliseconds == 1_772_269_500_042)
    #expect(state["no"]?.object == ["$data": "AAE="] && state["no"]?.data == nil)
  }

  @Test(
    arguments: [
      ("2026-02-28T09:05:00Z", 1_772_269_500_000), ("2026-02-28T10:05:00.0429+01:00", 1_772_269_500_042),
      ("2026-02-27T23:35:00.5-09:30", 1_772_269_500_500), ("0001-01-01T00:00:00Z", -62_135_596_800_000),
      ("9999-12-31T23:59:59.999999999-00:00", 253_402_300_799_999), ("0000-12-31T23:59:59Z", nil),
      ("2026-02-28T09:05:60Z", nil), ("2026-02-29T09:05:00Z", nil), ("2026-02-28T09:05:00", nil),
      ("2026-02-28 09:05:00Z", nil), ("2026-02-28T09:05:00.Z", nil), ("2026-02-28T09:05:00+24:00", nil),
      ("2026-02-28T09:05:00+0100", nil), ("2026-02-28T09:05:00z", nil), ("", nil),
    ] as [(String, Int64?)]
  )
  func datesAreReadInAnyForm(_ text: String, _ milliseconds: Int64?) throws {
    let state = try RestorableState(jsonText: #"{"date":{"$date":"\#(text)"}}"#)
    #expect(state["date"]?.date?.milliseconds == milliseconds)
    #expect((state["date"]?.object == nil) == (milliseconds != nil))
  }

  @Test func bytesAreReadAndWrittenInEveryLength() throws {
    for count in 0..<20 {
      let bytes = (0..<count).map { UInt8($0 * 37 & 255) }
      #expect(RestorableState(["data": .data(bytes)])["data"]?.data == bytes)
    }
    for text in ["A", "AA", "AAA", "A===", "AA=A", "====", "AAAA==", "AA-_", "AA=", "AA==AA==", "AÄA="] {
      let state = try RestorableState(jsonText: #"{"data":{"$data":"\#(text)"}}"#)
      #expect(state["data"]?.object == ["$data": .string(text)], "\(text)")
    }
    let state = try RestorableState(jsonText: #"{"data":{"$data":"AA==","more":1},"date":{"$date":5}}"#)
    #expect(state["data"]?.object != nil && state["date"]?.object != nil)
  }

  @Test func whateverJSONHoldsIsAValue() throws {
    let state = try RestorableState(jsonText: #"{"big":123456789012345678901234567890,"huge":1e400,"é":-0.0}"#)
    #expect(state["big"]?.real == 1.2345678901234568e29)
    #expect(state["huge"]?.real == .infinity)
    #expect(state["é"]?.real?.sign == .minus)
  }
}
