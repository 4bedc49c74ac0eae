// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct DocumentTests {
  static let writer = #""writer":{"userInterfaceIdiom":-1,"written":"2026-02-28T09:05:00.042Z"}"#

  static let whole = [
    #"{"path":["a"],"kind":"object"}"#,
    #"{"path":null,"parent":0,"kind":"view"}"#,
    #"{"path":["a","b#3"],"parent":7,"kind":"viewController","objectClass":["C","D"],"restorationClass":"R","#
      + #""storyboard":{"unit":"u.service"},"keep":"forever","confidential":true,"missing":"unreadable"}"#,
    #"{"path":["é"],"kind":"view","objectClass":"C","state":{"n":0.1,"m":1e400,"z":-0.0,"r":{"$restorable":["a"]}},"#
      + #""elements":[{"role":"selected","indexPath":[0],"resolved":false}],"writer":{"objectClass":["X","Y"],"#
      + #""process":"p","bundleVersion":"1","userInterfaceIdiom":5,"systemVersion":"12","#
      + #""storyboard":{"unit":"u"},"written":"2026-02-28T09:05:00.042Z"}}"#,
    #"{"path":["a"],"kind":"object","state":{},\#(writer),"early":true,"beforeClaim":{"state":{"a":1},\#(writer)}}"#,
  ]

  @Test(arguments: whole)
  func anObjectIsWrittenAsItWasRead(_ text: String) throws {
    #expect(try DocumentObject(ProtocolPageTests.slice(text).compactText).text.string == text)
  }

  @Test func emptyElementsAreTheSameAsNone() throws {
    let text = #"{"path":["a"],"kind":"view","state":{},"elements":[],\#(Self.writer)}"#
    #expect(try DocumentObject(ProtocolPageTests.slice(text).compactText).state?.elements == nil)
  }

  @Test func whiteSpaceAndUnknownMembersAreLeftOut() throws {
    let text = #"{ "path" : [ "a" ] , "x-mine":[1], "kind":"object","state": { "s" : " " } ,\#(Self.writer) }"#
    let expected = #"{"path":["a"],"kind":"object","state":{"s":" "},\#(Self.writer)}"#
    #expect(try DocumentObject(ProtocolPageTests.slice(text).compactText).text.string == expected)
  }

  @Test func aDocumentIsWrittenWithItsObjectsAsTheyAre() throws {
    let objects = [JSONText(validated: Array(#"{"path":["a"],"kind":"object"}"#.utf8))]
    let text = ArchiveDocument().with { ($0.redacted, $0.objects) = (true, objects) }.text.string
    let document = try ArchiveDocument(ProtocolPageTests.slice(text), at: "")
    #expect(document.redacted)
    #expect(document.objects == objects)
  }
}
