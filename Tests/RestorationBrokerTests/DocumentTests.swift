// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct DocumentTests {
  static let writer = #""writer":{"userInterfaceIdiom":-1,"written":"2026-02-28T09:05:00.042Z"}"#

  static let time = #""written":"2026-02-28T09:05:00.042Z""#

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

  @Test(arguments: [
    ("7", ""), ("[]", ""), ("{}", "/path"), (#"{"path":[]}"#, "/path"), (#"{"path":["a"]}"#, "/kind"),
    (#"{"path":["a"],"kind":"window"}"#, "/kind"), (#"{"path":["a"],"path":["b"],"kind":"object"}"#, "/path"),
    (#"{"path":null,"kind":"object"}"#, "/path"), (#"{"path":["a"],"kind":"view","parent":-1}"#, "/parent"),
    (#"{"path":["a"],"kind":"view","keep":"now"}"#, "/keep"),
    (#"{"path":["a"],"kind":"view","objectClass":[]}"#, "/objectClass"),
    (#"{"path":["a"],"kind":"view","state":[]}"#, "/state"),
    (#"{"path":["a"],"kind":"view","state":{}}"#, "/writer"),
    (#"{"path":["a"],"kind":"view","state":{},"writer":{}}"#, "/writer/written"),
    (#"{"path":["a"],"kind":"view","state":{},"writer":{"written":"yesterday"}}"#, "/writer/written"),
    (#"{"path":["a"],"kind":"view","state":{"k":1,"k":2},\#(writer)}"#, "/state/k"),
    (#"{"path":["a"],"kind":"view","state":{},"elements":[{"role":"x"}],\#(writer)}"#, "/elements/0/role"),
    (#"{"path":["a"],"kind":"view","elements":[]}"#, "/elements"),
    (#"{"path":["a"],"kind":"view",\#(writer)}"#, "/writer"),
    (#"{"path":null,"kind":"view","state":{},\#(writer)}"#, "/state"),
    (#"{"path":["a"],"kind":"view","missing":"redacted","state":{},\#(writer)}"#, "/missing"),
    (#"{"path":["a"],"kind":"view","early":true}"#, "/early"),
    (#"{"path":["a"],"kind":"view","state":{},\#(writer),"beforeClaim":{"state":{},\#(writer)}}"#, "/beforeClaim"),
    (#"{"path":["a"],"kind":"view","state":{},\#(writer),"early":true,"beforeClaim":{}}"#, "/beforeClaim/state"),
    (
      #"{"path":["a"],"kind":"view","state":{},\#(writer),"early":true,"beforeClaim":{"state":{},"writer":{}}}"#,
      "/beforeClaim/writer/written"
    ),
    (#"{"path":["a"],"kind":"view","state":{},"writer":{"written":"","written":""}}"#, "/writer/written"),
    (#"{"path":["a"],"kind":"view","state":{},"writer":{"process":"a","process":"b",\#(time)}}"#, "/writer/process"),
    (
      #"{"path":["a"],"kind":"view","state":{},\#(writer),"early":true,"#
        + #""beforeClaim":{"state":{},"state":{},\#(writer)}}"#,
      "/beforeClaim/state"
    ),
    (#"{"path":["a"],"kind":"view","state":{},"writer":{"process":"",\#(time)}}"#, "/writer/process"),
    (#"{"path":["a"],"kind":"view","state":{"r":{"$restorable":7}},\#(writer)}"#, "/state"),
    (#"{"path":["a"],"kind":"view","$literal":1}"#, "/$literal"),
    (#"{"path":["a"],"kind":"view","$restorable":["a"]}"#, "/$restorable"),
  ])
  func whatIsWrongIsPointedTo(_ text: String, _ pointer: String) throws {
    let error = #expect(throws: ErrorObject.self) { try DocumentObject(ProtocolPageTests.slice(text).compactText) }
    #expect(error?.data?["pointer"]?.string == pointer, "\(error.map(\.message) ?? "")")
    let hint = error?.data?["hint"]?.string ?? ""
    #expect(!hint.isEmpty && !hint.contains("absent") && !hint.contains("there;"), "\(hint)")
  }

  @Test(arguments: [
    ("[]", "/d"), ("{}", "/d/format"), (#"{"format":"x","version":1,"objects":[]}"#, "/d/format"),
    (#"{"format":"restorationd.archive","objects":[]}"#, "/d/version"),
    (#"{"format":"restorationd.archive","version":2,"objects":[]}"#, "/d/version"),
    (#"{"format":"restorationd.archive","version":1}"#, "/d/objects"),
    (#"{"format":"restorationd.archive","version":1,"objects":{}}"#, "/d/objects"),
    (#"{"format":"restorationd.archive","version":1,"redacted":1,"objects":[]}"#, "/d/redacted"),
  ])
  func aDocumentThatIsNoneIsPointedTo(_ text: String, _ pointer: String) throws {
    let error = #expect(throws: ErrorObject.self) { try ArchiveDocument(ProtocolPageTests.slice(text), at: "/d") }
    #expect(error?.data?["pointer"]?.string == pointer)
  }

  @Test func aDocumentIsWrittenWithItsObjectsAsTheyAre() throws {
    let objects = [JSONText(validated: Array(#"{"path":["a"],"kind":"object"}"#.utf8))]
    let text = ArchiveDocument().with { ($0.redacted, $0.objects) = (true, objects) }.text.string
    let document = try ArchiveDocument(ProtocolPageTests.slice(text), at: "")
    #expect(document.redacted)
    #expect(document.objects == objects)
  }
}
