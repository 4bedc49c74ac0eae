// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

@Suite struct FrameDecoderTests {
  private static let call =
    #"{"jsonrpc":"2.0","id":7,"method":"encode","params":{"state":{"a":"é\n","b":[1,{"c":-0.5e3}]}}}"#
  private static let callSummary =
    #"request 7 encode {"state":{"a":"é\n","b":[1,{"c":-0.5e3}]}}"#
  private static let notification = #"{"jsonrpc":"2.0","method":"tick"}"#

  // Framing

  @Test func framesNeedNoLineFeedBetweenThem() {
    var peer = PeerFixture()
    let events = peer.events((Self.call + Self.notification + "[" + Self.notification + "]" + Self.notification).utf8)
    #expect(
      events.map(\.summary) == [Self.callSummary, "notification tick", "[notification tick]", "notification tick"]
    )
    #expect(!peer.decoder.position.isInsideFrame)
    #expect(peer.decoder.bufferedBytes == 0)
  }

  @Test func whiteSpaceAroundFramesIsIgnored() {
    var peer = PeerFixture()
    let events = peer.events(" \r\n\t\(Self.notification)\n\n \(Self.notification)\r\n".utf8)
    #expect(events.map(\.summary) == ["notification tick", "notification tick"])
    #expect(peer.decoder.bufferedBytes == 0)
    #expect(peer.decoder.finish() == nil)
  }

  @Test func prettyPrintedInputIsOneFrame() {
    let pretty = """
      {
        "jsonrpc" : "2.0",
        "method" : "set",
        "params" : {
          "state" : { "a b" : [ 1, 2 ] }
        }
      }
      """
    var peer = PeerFixture()
    #expect(peer.events(pretty.utf8).map(\.summary) == [#"notification set {"state":{"a b":[1,2]}}"#])
  }

  @Test(arguments: [
    call, notification, "[\(call),\(notification)]",
    #"{"jsonrpc":"2.0","id":"\ud83d\ude00é😀","method":"x\u0041","params":[true,false,null,1e5,0,-0,"",{},[]]}"#,
    #" { "jsonrpc" : "2.0" , "id" : null , "method" : "m" , "params" : [ 0.25 , [ ] , { } ] } "#,
    #"{"jsonrpc":"2.0","method":"m","params":{"s":{"\u0024restorable":1,"k":{"$restorable":[2]},"$literal":{}}}}"#,
  ])
  func framesMayBeCutAtEveryByte(text: String) {
    var whole = PeerFixture()
    let expected = whole.events(text.utf8).map(\.summary)
    #expect(expected.count == 1)
    let bytes = Array(text.utf8)
    for cut in 1..<bytes.count {
      var peer = PeerFixture()
      let events = peer.events(bytes[..<cut]) + peer.events(bytes[cut...])
      #expect(events.map(\.summary) == expected, "cut at \(cut)")
    }
    for step in 1...9 {
      var peer = PeerFixture()
      #expect(peer.events(bytes, step: step).map(\.summary) == expected, "steps of \(step)")
    }
  }

  @Test func aLargeFrameMayArriveByteByByte() {
    let number = String(repeating: "7", count: 20_000)
    let string = String(repeating: "é\\n", count: 10_000)
    let text =
      #"{"jsonrpc":"2.0","method":"m","params":["#
      + "\(number),\"\(string)\",\(number).\(number)e\(number)" + String(repeating: " ", count: 10_000) + "]}"
    var peer = PeerFixture()
    let events = peer.events(text.utf8, step: 1)
    #expect(events.count == 1)
    guard case .frame(let frame)? = events.first, case .message(.notification(let notification)) = frame.content,
      case .positional(let elements) = notification.parameters
    else {
      Issue.record("not a notification")
      return
    }
    #expect(elements.map(\.kind) == [.integer, .string, .real])
    #expect(elements[0].description == number)
    #expect(elements[1].string()?.count == 20_000)
  }

  @Test func eachByteIsLookedAtOnceHoweverItArrives() {
    // If the frame were scanned again with each piece, this would take minutes.
    let text =
      "[\"" + String(repeating: "x", count: 1 << 20) + "\",{\"" + String(repeating: "y", count: 1 << 20) + "\":1}]"
    var peer = PeerFixture()
    let events = peer.events(text.utf8, step: 16)
    #expect(events.count == 1)
    #expect(peer.decoder.bufferedBytes == 0)
  }

  @Test func manyFramesMayArriveAtOnceAndInPieces() {
    let text = String(repeating: Self.call + "\n", count: 500)
    for step in [1, 4_099, 65_536, Int.max] {
      var peer = PeerFixture()
      let events = peer.events(text.utf8, step: step).map(\.summary)
      #expect(events.count == 500)
      #expect(events.allSatisfy { $0 == Self.callSummary })
      #expect(peer.decoder.bufferedBytes == 0)
    }
  }

  @Test func aFrameWithManyNotedValuesIsGiven() {
    let states = (0..<3_000).map { #"{"object":\#($0),"state":{"a":[\#($0)]}}"# }.joined(separator: ",")
    for step in [100, Int.max] {
      var peer = PeerFixture()
      let text = #"{"jsonrpc":"2.0","id":1,"result":{"states":["# + states + "]}}" + Self.notification
      let events = peer.events(text.utf8, step: step)
      guard events.count == 2, case .frame(let frame) = events[0],
        case .message(.response(let response)) = frame.content, case .result(let result) = response.outcome,
        let elements = result["states"]?.elements
      else {
        Issue.record("not a response")
        return
      }
      #expect(elements.count == 3_000)
      for (number, element) in elements.enumerated() where number % 97 == 0 {
        #expect(element["object"]?.integer() == Int64(number))
        #expect(element["state"]?.depth == 2)
        #expect(element["state"]?.compactText.string == #"{"a":[\#(number)]}"#)
      }
    }
  }

  @Test func aFrameIsGivenWhenItsLastByteArrives() {
    var peer = PeerFixture()
    #expect(peer.events(Self.call.utf8.dropLast(), step: 1).isEmpty)
    #expect(peer.decoder.position.isInsideFrame)
    #expect(peer.decoder.bufferedBytes == Self.call.utf8.count - 1)
    #expect(peer.events("}".utf8).count == 1)
    #expect(!peer.decoder.position.isInsideFrame)
  }

  @Test func framesWaitUntilTheyAreAskedFor() {
    var peer = PeerFixture()
    for _ in 0..<3 { Array(Self.notification.utf8).withUnsafeBytes { peer.decoder.append($0) } }
    #expect(peer.decoder.next()?.summary == "notification tick")
    #expect(peer.decoder.bufferedBytes == 2 * Self.notification.utf8.count)
    Array(Self.call.utf8).withUnsafeBytes { peer.decoder.append($0) }
    #expect(peer.decoder.next()?.summary == "notification tick")
    #expect(peer.decoder.next()?.summary == "notification tick")
    #expect(peer.decoder.next()?.summary == Self.callSummary)
    #expect(peer.decoder.next() == nil)
  }

  // Recovery

  @Test(arguments: [
    "{\"jsonrpc\": \"2.0\", \"method\": \"foobar, \"params\": \"bar\", \"baz]",
    "{\"a\":01}", "{]", "[1,,2]", "{\"a\":\"\\x\"}", "{\"a\":tru}", "garbage", "}}}}", "\"text\"", "{'a':1}",
    "{\"a\":1}}", "{\"a\":\"\u{0}\"}", "{\"a\":\"\u{1}{[\"}", "{\"a\" {\"b\":[", "42",
  ])
  func afterASyntaxErrorReadingGoesOnAtTheNextLineThatBeginsAFrame(text: String) {
    let rest = "\n  {\"indented\":1}\nnoise\n\(Self.notification)\n\(Self.call)"
    for step in [1, 2, 5, Int.max] {
      var peer = PeerFixture()
      // The first frame decides the framing.
      let events = peer.events((Self.notification + "\n" + text + rest).utf8, step: step).map(\.summary)
      #expect(events.first == "notification tick")
      #expect(events.filter { $0 == "fault -32700" }.count == 1, "\(text) in steps of \(step): \(events)")
      #expect(events.suffix(2) == ["notification tick", Self.callSummary])
    }
  }

  @Test func aFrameCutShortIsLeftAtTheNextLineThatBeginsOne() {
    for text in ["{\"a\":1\n", "{\"a\":[1,2\r\n", "{\"a\":\"never closed\n", "{\n", "{\"a\"\n"] {
      var peer = PeerFixture()
      let events = peer.events((text + Self.notification).utf8).map(\.summary)
      #expect(events == ["fault -32700", "notification tick"], "\(text)")
    }
  }

  @Test func aSyntaxErrorIsReportedAsSoonAsSeen() {
    for text in ["{\"a\":nu", "[\"\\u12", "[1e", "[\"\\ud83d", "[\"\u{C3}", "[-", "[fals", "{\"a"] {
      var peer = PeerFixture()
      #expect(peer.events(text.utf8).isEmpty)
      #expect(peer.events("!".utf8, step: 1).count == (text == "{\"a" || text.hasSuffix("\u{C3}") ? 0 : 1), "\(text)")
    }
    var peer = PeerFixture()
    #expect(peer.events([UInt8(ascii: "["), UInt8(ascii: "\""), 0xE2]).isEmpty)
    #expect(peer.events([0x28]).count == 1)
  }

  @Test func theFaultSaysWhereAndWhatToDo() throws {
    var peer = PeerFixture()
    guard case .fault(let error, _)? = peer.events("[1,}".utf8).first else {
      Issue.record("no fault")
      return
    }
    #expect(error.code == -32700)
    #expect(error.message == "Parse error")
    #expect(error.kind == "parseError")
    #expect(error.data?["offset"] == 3)
    #expect(error.hint?.contains("offset 3") == true)
    #expect(error.hint?.contains("next line") == true)
  }

  @Test func recoveryKeepsNothing() {
    var peer = PeerFixture()
    #expect(peer.events("{]".utf8).count == 1)
    for _ in 0..<100 { #expect(peer.events(String(repeating: "x", count: 1_000).utf8).isEmpty) }
    #expect(peer.decoder.bufferedBytes == 0)
    #expect(!peer.decoder.position.isInsideFrame)
  }

  // The first byte

  @Test(arguments: ["hello", "hello you", "post / HTTP/1.1\r\n", "1", "\"a\"", "\0", ": x", "<xml/>"])
  func whatBeginsOtherwiseIsRefused(text: String) {
    var peer = PeerFixture()
    let events = peer.events(("  \n" + text + "\n" + Self.notification).utf8)
    guard case .refused(let error)? = events.first, events.count == 1 else {
      Issue.record("not refused")
      return
    }
    #expect(error.code == -32700)
    #expect(error.hint?.contains("JSON-RPC") == true)
    #expect(peer.events(Self.notification.utf8).isEmpty)
    #expect(peer.decoder.bufferedBytes == 0)
    #expect(peer.decoder.finish() == nil)
  }

  @Test func aByteOrderMarkIsRefused() {
    var peer = PeerFixture()
    guard case .refused(let error)? = peer.events(("\u{FEFF}" + Self.notification).utf8).first else {
      Issue.record("not refused")
      return
    }
    #expect(error.hint?.contains("byte order mark") == true)
  }

  // The end

  @Test func theEndOfInputInsideAFrameIsAFault() {
    for text in ["{", "[1", "{\"a\":\"", "{\"a\":1e", "[[]"] {
      var peer = PeerFixture()
      #expect(peer.events(text.utf8).isEmpty)
      #expect(peer.decoder.finish()?.summary == "fault -32700")
      #expect(!peer.decoder.position.isInsideFrame)
      #expect(peer.decoder.finish() == nil)
    }
  }

  @Test(arguments: ["", " \n", notification, notification + "\n", "{]", "{]\nmore"])
  func theEndOfInputElsewhereIsNone(text: String) {
    var peer = PeerFixture()
    _ = peer.events(text.utf8)
    #expect(peer.decoder.finish() == nil)
  }
}
