// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

@Suite struct JSONSliceTests {
  /// The text as a document, as a member of the `params` of a notification, and of an object that the `result` of an
  /// answer lists; alone and in a batch.
  private func slices(_ text: String) throws -> [JSONSlice] {
    var peer = PeerFixture()
    let notification = #"{"jsonrpc":"2.0","method":"m","params":{"state":"# + text + "}}"
    let answer = #"{"jsonrpc":"2.0","id":1,"result":{"states":[{"object":1,"state":"# + text + "}]}}"
    var slices = [try scan(text)]
    for event in peer.events("\(notification) \(answer) [\(answer), \(notification), \(answer)]".utf8) {
      guard case .frame(let frame) = event else { continue }
      let messages =
        switch frame.content {
        case .message(let message): [message]
        case .batch(let messages): messages
        }
      for message in messages {
        let holder: JSONSlice? =
          switch message {
          case .notification(let notification):
            if case .named(let parameters) = notification.parameters { parameters } else { nil }
          case .response(let response):
            if case .result(let result) = response.outcome { result["states"]?.elements?.first } else { nil }
          case .request, .invalid, .malformedResponse: nil
          }
        if let state = holder?["state"] { slices.append(state) }
      }
    }
    try #require(slices.count == 6)
    return slices
  }

  // Scalars

  @Test func scalarsAreReadOffTheText() throws {
    for (text, kind) in [
      ("\"a\"", JSONKind.string), ("1", .integer), ("-0", .integer), ("1.0", .real), ("1e1", .real), ("0E0", .real),
      ("true", .bool), ("false", .bool), ("null", .null), ("{}", .object), ("[]", .array),
    ] {
      for slice in try slices(text) {
        #expect(slice.kind == kind)
        #expect(slice.description == text)
        #expect((slice.string() != nil) == (kind == .string))
        #expect((slice.integer() != nil) == (kind == .integer))
        #expect((slice.real() != nil) == (kind == .integer || kind == .real))
        #expect(slice.bool() == (text == "true" ? true : text == "false" ? false : nil))
        #expect(slice.isNull == (kind == .null))
        #expect((slice.elements != nil) == (kind == .array))
        #expect((slice.members != nil) == (kind == .object))
        #expect(slice["a"] == nil)
      }
    }
  }

  @Test(
    arguments: [
      ("0", 0), ("-0", 0), ("7", 7), ("-7", -7), ("9223372036854775807", Int64.max),
      ("-9223372036854775808", Int64.min),
      ("9223372036854775808", nil), ("-9223372036854775809", nil), ("18446744073709551616", nil),
      ("100000000000000000000", nil),
    ] as [(String, Int64?)]
  )
  func integersBeyond64BitsAreNone(text: String, value: Int64?) throws {
    #expect(try scan(text).integer() == value)
    #expect(try scan(text).kind == .integer)
  }

  @Test(arguments: [
    (#""plain""#, "plain"), (#""""#, ""), (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"),
    (#""\u0041\u00e9\u20AC\ud83d\uDE00\u0000""#, "Aé€😀\0"), ("\"é€😀\"", "é€😀"), (#""a\\u0041""#, #"a\u0041"#),
    (#""\udbff\udfff\ud800\udc00""#, "\u{10FFFF}\u{10000}"),
    (#""\u007f\u0080\u07ff\u0800\uffff""#, "\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}"),
  ])
  func stringsAreDecoded(text: String, value: String) throws {
    for slice in try slices(text) {
      #expect(slice.string().map { Array($0.unicodeScalars) } == Array(value.unicodeScalars))
    }
  }

  // Containers

  @Test func membersAndElementsAreFoundAtEveryDepth() throws {
    let text = #" { "a" : { "b" : { "c" : { "d" : [ 10 , [ 20 , { "e" : "x" } ] ] } } } , "" : 1 } "#
    for slice in try slices(text.trimmed) + [scan(text)] {
      #expect(slice["a"]?["b"]?["c"]?["d"]?.elements?[0].integer() == 10)
      #expect(slice["a"]?["b"]?["c"]?["d"]?.elements?[1].elements?[1]["e"]?.string() == "x")
      #expect(slice[""]?.integer() == 1)
      #expect(slice["b"] == nil)
      #expect(slice.members?.map(\.name) == ["a", ""])
      #expect(slice["a"]?["b"]?["c"]?.members?.map(\.name) == ["d"])
      #expect(slice.depth == 7)
      #expect(slice["a"]?.depth == 6)
      #expect(slice["a"]?["b"]?["c"]?.depth == 4)
      #expect(slice["a"]?["b"]?["c"]?["d"]?.elements?[0].depth == 0)
    }
  }

  @Test func namesAreComparedDecoded() throws {
    for slice in try slices(#"{"\u0061":1,"x":{"b\/c":{"d\u0022":2}},"é":3}"#) {
      #expect(slice["a"]?.integer() == 1)
      #expect(slice["x"]?["b/c"]?["d\""]?.integer() == 2)
      #expect(slice["\u{E9}"]?.integer() == 3)
      #expect(slice["e\u{301}"] == nil)
      #expect(slice.members?.map(\.name) == ["a", "x", "é"])
    }
  }

  @Test(arguments: 1...20)
  func namesThatDifferInOneByteAreToldApart(length: Int) throws {
    let name = String(repeating: "n", count: length)
    for slice in try slices(#"{"\#(name)":1}"#) {
      #expect(slice[name]?.integer() == 1)
      #expect(slice[name + "n"] == nil)
      for place in 0..<length {
        var other = Array(name.utf8)
        other[place] = UInt8(ascii: "m")
        #expect(slice[String(decoding: other, as: UTF8.self)] == nil)
      }
    }
  }

  @Test(arguments: [#""a\n""#, #""\u0061""#, #""a""#, #""""#, #""ab""#, "1", "null"])
  func whatAStringIsExpectedToBeChangesNothing(text: String) throws {
    for slice in try slices(text) {
      for expected in ["", "a", "b", "ab", "a\n", #"a\n"#, #"\u0061"#, "1"] {
        #expect(slice.string(expecting: expected) == slice.string())
      }
    }
  }

  @Test func onlyAnArrayOfStringsHoldsStrings() throws {
    for (text, strings) in [
      (#"["a","\u0062",""]"#, ["a", "b", ""]), ("[]", []), (#"["a",1]"#, nil), (#"{"a":"b"}"#, nil), (#""a""#, nil),
    ] as [(String, [String]?)] {
      for slice in try slices(text) { #expect(slice.strings == strings) }
    }
  }

  @Test func depthCountsContainersOnly() throws {
    for (text, depth) in [
      ("1", 0), ("\"[[\"", 0), ("{}", 1), ("[]", 1), ("[1]", 1), ("[[],[[]]]", 3), ("{\"a\":[],\"b\":{\"c\":{}}}", 3),
      ("[\"]\\\"]\",{\"}\":[[]]}]", 4), ("{\"a\":{\"b\":1},\"c\":[[1],[2]]}", 3),
    ] {
      for slice in try slices(text) { #expect(slice.depth == depth, "\(text)") }
    }
  }

  @Test func duplicateNamesAreFoundOnDemand() throws {
    for slice in try slices(#"{"a":1,"b":2}"#) { #expect(slice.duplicateName == nil) }
    for slice in try slices(#"{"a":1,"b":2,"\u0062":3,"a":4}"#) { #expect(slice.duplicateName == "b") }
    #expect(try scan(#"{"x":{"y":{"z":{"n":1,"n":2}}}}"#)["x"]?["y"]?["z"]?.duplicateName == "n")
    #expect(try scan("[1,1]").duplicateName == nil)
  }

  @Test func valuesAreReadByJansson() throws {
    let expected: JSONValue = ["a": [1, 2.5, "x", true, nil], "b": [:]]
    for slice in try slices(#"{"a":[1,2.5,"x",true,null],"b":{}}"#) { #expect(try slice.value() == expected) }
    #expect(throws: JSONError.self) { try scan("1e400").value() }
    #expect(throws: JSONError.self) { try scan("9223372036854775808").value() }
  }

  // White space

  @Test(arguments: [
    ("{ \"a b\" : [ 1 , \" \\\" \" ] }", #"{"a b":[1," \" "]}"#),
    ("[\n]", "[]"), ("{\t}", "{}"), ("[1,\r\n2]", "[1,2]"), ("[[1 ]]", "[[1]]"),
    ("{\"a\":{\"b\":{\"c\":[ ]}}}", #"{"a":{"b":{"c":[]}}}"#),
    ("[1,2]", "[1,2]"), ("\" a \"", "\" a \""), ("{\"a\":\" \"}", "{\"a\":\" \"}"),
  ])
  func compactTextHasNoInsignificantWhiteSpace(text: String, compact: String) throws {
    for slice in try slices(text) {
      #expect(slice.compactText.string == compact)
      #expect(slice.description == text)
    }
  }

  @Test func whiteSpaceElsewhereInTheFrameCausesNoCopy() throws {
    var peer = PeerFixture()
    let text = #" { "jsonrpc" : "2.0" , "method" : "m" , "params" : { "state" : {"a":[1]} , "other" : { } } } "#
    guard case .frame(let frame)? = peer.events(text.utf8).first,
      case .message(.notification(let notification)) = frame.content,
      case .named(let params) = notification.parameters, let state = params["state"]
    else {
      Issue.record("not a notification")
      return
    }
    #expect(state.compactText.bytes == state.text)
    #expect(state.compactText.bytes.startIndex == state.text.startIndex)
    #expect(params.compactText.string == #"{"state":{"a":[1]},"other":{}}"#)
  }

  @Test func numbersKeepTheirText() throws {
    for number in ["0.1", "1e300", "-0.0", "1e400", "123456789012345678901234567890", "1E+2", "-0"] {
      for slice in try slices("{\"n\":\(number)}") {
        #expect(slice.compactText.string == "{\"n\":\(number)}")
        #expect(slice["n"]?.description == number)
      }
    }
  }

  @Test func detachedTextHasStorageOfItsOwn() throws {
    let text = try scan("[  {\"a\":1}]").elements?[0].compactText.detached()
    #expect(text?.string == "{\"a\":1}")
    #expect(text?.bytes.startIndex == 0)
  }
}

@Suite struct JSONReferenceTests {
  private struct Found: Equatable {
    let object: String
    let target: String
  }

  private func found(_ slice: JSONSlice) -> [Found] {
    let bytes = slice.compactText.bytes
    return slice.references.map { reference in
      let range = reference.objectRange
      let object = bytes[bytes.startIndex + range.lowerBound..<bytes.startIndex + range.upperBound]
      return Found(object: String(decoding: object, as: UTF8.self), target: reference.target.compactText.string)
    }
  }

  private func found(_ text: String) throws -> [Found] { found(try scan(text)) }

  @Test func referencesAreFoundAtEveryDepthInTheOrderOfTheText() throws {
    let text =
      #"{"a":{"$restorable":1},"b":[[{"$restorable":["Main","Editor"],"object":7}]],"c":{"d":{"$restorable":{}}}}"#
    #expect(
      try found(text) == [
        Found(object: #"{"$restorable":1}"#, target: "1"),
        Found(object: #"{"$restorable":["Main","Editor"],"object":7}"#, target: #"["Main","Editor"]"#),
        Found(object: #"{"$restorable":{}}"#, target: "{}"),
      ]
    )
  }

  @Test func theReferenceKeyMayStandAnywhereInItsObject() throws {
    #expect(
      try found(#"[{"object":{"x":1},"$restorable":2,"y":[3]}]"#) == [
        Found(object: #"{"object":{"x":1},"$restorable":2,"y":[3]}"#, target: "2")
      ]
    )
  }

  @Test func theReferenceKeyMayBeEscaped() throws {
    #expect(
      try found(#"[{"\u0024restorable":2},{"$restor\u0061ble":3},{"$restorables":4},{"$":5}]"#) == [
        Found(object: #"{"\u0024restorable":2}"#, target: "2"),
        Found(object: #"{"$restor\u0061ble":3}"#, target: "3"),
      ]
    )
  }

  @Test func onlyTheOutermostReferencesCount() throws {
    #expect(
      try found(
        #"[{"before":{"$restorable":1},"$restorable":{"$restorable":2},"after":{"$restorable":3}},{"$restorable":4}]"#
      )
      .map(\.target) == [#"{"$restorable":2}"#, "4"]
    )
  }

  @Test func literalsHoldNoReferences() throws {
    #expect(try found(#"{"$literal":{"$restorable":1}}"#).isEmpty)
    #expect(try found(#"{"a":{"x":{"$restorable":1},"$literal":0},"b":{"$restorable":2}}"#).map(\.target) == ["2"])
    #expect(try found(#"{"a":{"$literal":0,"x":[{"$restorable":1}]}}"#).isEmpty)
    #expect(try found(#"{"a":{"$literal":0,"$restorable":1}}"#).isEmpty)
    #expect(
      try found(#"{"$restorable":{"$literal":{"$restorable":1}}}"#).map(\.target) == [
        #"{"$literal":{"$restorable":1}}"#
      ]
    )
  }

  @Test func stringsAndOtherValuesAreNoReferences() throws {
    #expect(try found(#"["$restorable",{"a":"$restorable"}]"#).isEmpty)
    #expect(try found("1").isEmpty)
  }

  @Test func offsetsCountInTheCompactText() throws {
    let text = #"{ "a" : { "$restorable" : [ "Main" , "x y" ] } , "b" : [ { "$restorable" : 5 } , 6 ] }"#
    let expected = [
      Found(object: #"{"$restorable":["Main","x y"]}"#, target: #"["Main","x y"]"#),
      Found(object: #"{"$restorable":5}"#, target: "5"),
    ]
    let slice = try scan(text)
    #expect(found(slice) == expected)
    #expect(slice["b"].map(found) == [expected[1]])
    #expect(slice["b"]?.elements?[0].references.first?.objectRange == 0..<17)
    #expect(slice["b"]?.elements?[1].references.isEmpty == true)
  }

  @Test func eachStateHasItsOwnReferences() throws {
    var peer = PeerFixture()
    let text =
      #"{"jsonrpc":"2.0","id":1,"result":{"states":[{"object":1,"state":{"r":{"$restorable":1}}},"#
      + #"{"object":2,"state":{}},{"object":3,"state":{"q":[],"r":{"$restorable":3},"s":{"$restorable":4}}}]}}"#
    guard case .frame(let frame)? = peer.events(text.utf8).first,
      case .message(.response(let response)) = frame.content, case .result(let result) = response.outcome
    else {
      Issue.record("not a response")
      return
    }
    let states = try #require(result["states"]?.elements?.compactMap { $0["state"] })
    #expect(states.map { found($0).map(\.target) } == [["1"], [], ["3", "4"]])
    #expect(states[2].references[0].objectRange == 12..<29)
  }

  @Test func theMessageAndItsParametersAreNoReferences() throws {
    var peer = PeerFixture()
    let text =
      #"{"jsonrpc":"2.0","$restorable":1,"method":"m","params":{"$restorable":2,"state":{"a":{"$restorable":3}}}}"#
    for frame in [text, "[" + text + "]"] {
      guard case .frame(let frame)? = peer.events(frame.utf8).first else { continue }
      let message: Message? =
        switch frame.content {
        case .message(let message): message
        case .batch(let messages): messages.first
        }
      guard case .notification(let notification)? = message, case .named(let params) = notification.parameters else {
        Issue.record("not a notification")
        return
      }
      #expect(found(params).map(\.target) == ["3"])
      #expect(params["state"].map(found)?.map(\.object) == [#"{"$restorable":3}"#])
    }
  }

  @Test func manyReferencesAreFound() throws {
    let count = 5_000
    let text = "[" + (0..<count).map { #"{"$restorable":\#($0)}"# }.joined(separator: ",") + "]"
    #expect(try found(text).map(\.target) == (0..<count).map(String.init))
  }
}
