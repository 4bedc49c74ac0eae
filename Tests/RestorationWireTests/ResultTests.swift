// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

/// A result's text, and texts that are none of its kind.
struct ResultText: CustomTestStringConvertible {
  let type: any WireValue.Type
  let text: String
  let wrong: [String]

  init(_ type: any WireValue.Type, _ text: String, wrong: [String] = []) {
    self.type = type
    self.text = text
    self.wrong = wrong + ["[]", "7", "null"]
  }

  var testDescription: String { "\(type) \(text)" }
}

@Suite struct ResultTests {
  @Test(arguments: results)
  func aResultIsReadAsItWasWritten(_ result: ResultText) throws {
    let value = try #require(try result.type.init(slice(result.text)))
    #expect(written { value.writeJSON(to: &$0) } == result.text)
  }

  @Test(arguments: results)
  func membersThatLaterBrokersAddAreIgnored(_ result: ResultText) throws {
    let text = result.text == "{}" ? #"{"later":[{}]}"# : result.text.dropLast() + #","later":[{}]}"#
    let value = try #require(try result.type.init(slice(text)))
    #expect(written { value.writeJSON(to: &$0) } == result.text)
  }

  @Test(arguments: results)
  func aResultOfAnotherShapeIsNil(_ result: ResultText) throws {
    for text in result.wrong { #expect(try result.type.init(slice(text)) == nil, "\(text)") }
  }

  /// What the descriptions do not tell, besides what `LawTests` find out from them.
  static let results: [ResultText] = [
    ResultText(EmptyResult.self, "{}"),
    ResultText(Limits.self, Limits().text.string, wrong: [#"{"frameBytesMax":"1"}"#]),
    ResultText(EncodeRestorableState.Reply.self, #"{"sequence":9,"durability":"disk"}"#, wrong: ["{}"]),
    ResultText(EncodeRestorableState.Reply.self, #"{"superseded":true}"#),
    ResultText(EncodeRestorableState.Reply.self, #"{"discarded":true}"#),
    // Texts are handed on as they are.
    ResultText(
      DecodeRestorableState.Reply.self,
      #"{"status":"available","state":{"n":1e400,"s":"\u0000é"},"coder":{"k":1},"elements":[{"role":"selected"}],"#
        + #""sequence":7,"confidential":true}"#,
      wrong: ["{}", #"{"status":"gone"}"#]
    ),
    ResultText(
      ExportArchive.Reply.self,
      #"{"part":{"objects":[1e400]},"cursor":"c"}"#,
      wrong: ["{}", #"{"part":[]}"#]
    ),
    // Later brokers have more words.
    ResultText(
      VerifyArchive.Reply.self,
      #"{"sound":false,"objects":1,"states":2,"bytes":3,"problems":[{"kind":"later","message":"n"}],"omitted":5,"#
        + #""milliseconds":6}"#
    ),
    ResultText(ExplainRestoration.Reply.self, #"{"path":null,"saved":[],"restored":[],"verdict":"later"}"#),
  ]
}
