// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// One call in both forms, and the members it is written with.
struct RightCall: CustomTestStringConvertible {
  let method: any RestorationMethod.Type
  let named: String
  let positional: String
  let written: String

  init(_ method: any RestorationMethod.Type, _ named: String, _ positional: String, written: String? = nil) {
    self.method = method
    self.named = named
    self.positional = positional
    self.written = written ?? named
  }

  var testDescription: String { "\(method.method) \(named)" }
}

@Suite struct CallTests {
  @Test(arguments: calls)
  func aCallByPositionIsTheCallByName(_ call: RightCall) throws {
    #expect(written(try call.method.init(parameters(call.named))) == call.written)
    #expect(written(try call.method.init(parameters(call.positional))) == call.written)
  }

  @Test(arguments: calls)
  func unknownMembersAndPositionsAreIgnored(_ call: RightCall) throws {
    let named = call.named == "{}" ? #"{"x-color":[1]}"# : call.named.dropLast() + #","x-color":[1]}"#
    #expect(written(try call.method.init(parameters(named))) == call.written)
  }

  @Test func everyMethodIsListedOnce() {
    let names = MethodTable.methods.map { $0.method }
    #expect(Set(names).count == names.count)
    #expect(names.count == 46)
    for type in MethodTable.methods { #expect(Set(type.members.map(\.name)).count == type.members.count) }
  }

  @Test func callsWithoutParametersTakeAnyForm() throws {
    for method in [Ping.self, ReportLimits.self, ListApplications.self] as [any RestorationMethod.Type] {
      for text in ["", "{}", "[]", "[1,2]", #"{"a":1}"#] { #expect(try pointerOfError(method, text) == nil) }
    }
  }

  @Test func nullIsAnAbsentMember() throws {
    let call = try RegisterObjectForStateRestoration(
      parameters(#"{"restorationIdentifier":null,"kind":null,"objectClass":null,"position":null,"keep":null}"#)
    )
    #expect(call.restorationIdentifier == nil)
    #expect(call.kind == .object)
    #expect(call.classes.isEmpty)
    #expect(call.position == nil)
    #expect(call.keep == nil)
  }

  @Test func aStateIsTakenAsItsTextWithWhatTheScanFound() throws {
    let call = try EncodeRestorableState(
      parameters(#"{"object":["a"],"state":{ "n" : 1e400, "r":{"$restorable":["b"]}, "UIStateRestorationX":1 }}"#)
    )
    #expect(call.object == .path(["a"]))
    #expect(call.state.text.string == #"{"n":1e400,"r":{"$restorable":["b"]},"UIStateRestorationX":1}"#)
    #expect(call.state.references.count == 1)
    #expect(call.state.reservedKey == "UIStateRestorationX")
    #expect(call.state.depth == 3)
  }

  @Test func applicationAndSessionAreTakenByNameOnly() throws {
    #expect(
      try CallScope(parameters(#"{"application":"a","session":"t"}"#))
        == CallScope(application: "a", session: "t")
    )
    #expect(try CallScope(parameters(#"["a","t"]"#)) == CallScope())
    #expect(try CallScope(parameters("")) == CallScope())
    #expect(throws: ErrorObject.self) { try CallScope(parameters(#"{"application":1}"#)) }
  }

  /// Defaults, and forms that the descriptions do not tell; the rest is what `LawTests` find out from them.
  static let calls: [RightCall] = [
    RightCall(Initialize.self, #"{"application":"a","protocolVersion":1}"#, #"["a"]"#),
    RightCall(RestoreApplicationState.self, "{}", "[]"),
    RightCall(SaveApplicationState.self, "{}", "[]"),
    RightCall(NextRequest.self, "{}", "[]"),
    RightCall(NextRequest.self, #"{"serves":[]}"#, "[null,[]]"),
    RightCall(AnswerRequest.self, #"{"id":7,"result":{"n":1e400}}"#, #"[7,{"n":1e400}]"#),
    RightCall(AnswerRequest.self, #"{"id":7,"result":null}"#, "[7,null]"),
    RightCall(
      AnswerRequest.self,
      #"{"id":7,"error":{"code":-1,"message":"m"}}"#,
      #"[7,null,{"code":-1,"message":"m"}]"#
    ),
    RightCall(AnswerRequest.self, #"{"id":7,"error":{}}"#, "[7,null,{}]"),
    RightCall(RegisterObjectForStateRestoration.self, #"{"restorationIdentifier":"Main"}"#, #"["Main"]"#),
    RightCall(
      RegisterObjectForStateRestoration.self,
      #"{"restorationIdentifier":null,"restorationParent":7,"kind":"view","objectClass":["B"]}"#,
      #"[null,7,"view","B"]"#,
      written: #"{"restorationParent":7,"kind":"view","objectClass":"B"}"#
    ),
    RightCall(DecodeRestorableState.self, #"{"object":[]}"#, "[[]]"),
    RightCall(
      ImportArchive.self,
      #"{"part":{"x":1e400},"upload":"u","more":true,"force":true,"progressToken":"t"}"#,
      #"[null,{"x":1e400},"u",true,true,"t"]"#
    ),
    RightCall(Subscribe.self, "{}", "[]"),
  ]
}
