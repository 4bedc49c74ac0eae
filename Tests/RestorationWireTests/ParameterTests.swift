// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// One call with a member that is wrong, and what the error points to.
struct WrongCall: CustomTestStringConvertible {
  let method: any RestorationMethod.Type
  let text: String
  let pointer: String

  init(_ method: any RestorationMethod.Type, _ text: String, _ pointer: String) {
    self.method = method
    self.text = text
    self.pointer = pointer
  }

  var testDescription: String { "\(method.method) \(text)" }
}

@Suite struct ParameterTests {
  private static func named(_ member: String, _ bytes: Int) -> String {
    "{\"\(member)\":\"\(String(repeating: "n", count: bytes))\"}"
  }

  @Test(arguments: MethodTable.methods.map { $0.method })
  func aWrongParameterIsPointedToByNameAndByPosition(_ name: String) throws {
    let method = try #require(MethodTable.methods.first { $0.method == name })
    let call = DescribedObject(type: method)
    for (index, member) in method.members.enumerated() {
      let before = method.members.prefix(index).map { $0.schema.samples[0] }
      for wrong in call.misfits(of: member) {
        let named = try pointerOfError(method, call.text(with: [member.name: wrong])) ?? ""
        let positional = try pointerOfError(method, "[\((before + [wrong]).joined(separator: ","))]") ?? ""
        #expect(named == "/\(member.name)" || named.hasPrefix("/\(member.name)/"), "\(wrong)")
        #expect(positional == "/\(index)" + named.dropFirst(member.name.count + 1), "\(wrong)")
      }
    }
  }

  @Test(arguments: calls)
  func aWrongMemberIsPointedTo(_ call: WrongCall) throws {
    #expect(try pointerOfError(call.method, call.text) == call.pointer)
  }

  /// A call, and how the message ends.
  private static let shown: [(method: any RestorationMethod.Type, text: String, end: String)] = [
    (Initialize.self, #"{"application":"my app!"}"#, #""my app!" is not an application name"#),
    (RegisterObjectForStateRestoration.self, #"{"kind":"window"}"#, #": "window""#),
    (UnregisterObject.self, #"[{"a":1}]"#, #": {"a":1}"#),
    (SetChildren.self, #"[1,[2,[0]]]"#, ": an array"),
    (SetChildren.self, #"{"object":1,"children":[-2]}"#, ": -2"),
    (Initialize.self, #"{"application":"a","aliases":{"identifiers":{"a/b~c":1}}}"#, ": 1"),
    (UnregisterObject.self, "{\"object\":\"\(String(repeating: "é", count: 60))\"}", "éé…"),
    // It may be confidential.
    (EncodeRestorableState.self, #"{"object":1,"state":"secret"}"#, "state is not an object: a string"),
    (EncodeRestorableState.self, #"[1,{},[{"role":"selected","indexPath":["secret"]}]]"#, ": a string"),
    (EncodeRestorableState.self, #"{"object":1,"state":{},"elements":{"secret":1}}"#, ": an object"),
  ]

  @Test(arguments: shown) func whatIsWrongIsShownUnlessItMayBelongToAState(
    _ call: (method: any RestorationMethod.Type, text: String, end: String)
  ) throws {
    let parameters = try parameters(call.text)
    let error = try #require(throws: ErrorObject.self) { try call.method.init(parameters) }
    #expect(error.message.hasSuffix(call.end), "\(error.message)")
    #expect(!error.message.contains("secret") && error.message.unicodeScalars.count < 200)
  }

  private static let calls: [WrongCall] = [
    // Texts and combinations that the descriptions do not tell
    WrongCall(Initialize.self, "", "/application"),
    WrongCall(Initialize.self, "[]", "/0"),
    WrongCall(Initialize.self, #"{"application":"a@"}"#, "/application"),
    WrongCall(Initialize.self, #"{"application":"a","instance":"x/y"}"#, "/instance"),
    WrongCall(Initialize.self, #"{"application":"a","instance":""}"#, "/instance"),
    WrongCall(Initialize.self, #"{"application":"a@b","instance":"auto"}"#, "/instance"),
    WrongCall(Initialize.self, #"{"application":"a","process":"a\nb"}"#, "/process"),
    WrongCall(Initialize.self, #"{"application":"a","serves":["pathChanged","nope"]}"#, "/serves/1"),
    WrongCall(Initialize.self, #"["a",null,null,null,null,-1,null,false,["nope"]]"#, "/8/0"),
    WrongCall(Initialize.self, #"{"application":"a","aliases":{"classes":3}}"#, "/aliases/classes"),
    WrongCall(
      Initialize.self,
      "{\"application\":\"a\",\"affinity\":\"\(String(repeating: "é", count: 2_049))\"}",
      "/affinity"
    ),
    WrongCall(
      Initialize.self,
      #"{"application":"a","aliases":{"identifiers":{"a/b~c":1}}}"#,
      "/aliases/identifiers/a~1b~0c"
    ),
    WrongCall(AnswerRequest.self, #"[9223372036854775808,1]"#, "/0"),
    WrongCall(AnswerRequest.self, #"{"id":1}"#, "/result"),
    WrongCall(AnswerRequest.self, #"{"id":1,"error":null}"#, "/result"),
    WrongCall(AnswerRequest.self, #"[1]"#, "/1"),
    WrongCall(AnswerRequest.self, #"{"id":1,"error":"no"}"#, "/error"),
    WrongCall(AnswerRequest.self, #"{"id":1,"result":1,"error":{"code":1,"message":"m"}}"#, "/error"),
    WrongCall(AnswerRequest.self, #"[1,1,{"code":1,"message":"m"}]"#, "/2"),
    WrongCall(DecodeRestorableState.self, "[{}]", "/0"),
    WrongCall(Goodbye.self, #"{"reason":null}"#, "/reason"),
    WrongCall(BackupArchive.self, #"{"to":"a"}"#, "/to"),
    WrongCall(BackupArchive.self, #"{"to":"/a/"}"#, "/to"),
    WrongCall(BackupArchive.self, #"{"to":"/a/.."}"#, "/to"),
    WrongCall(BackupArchive.self, #"{"to":"/a\u0000b"}"#, "/to"),
    WrongCall(ImportArchive.self, "{}", "/document"),
    WrongCall(ImportArchive.self, #"{"document":{},"part":{}}"#, "/part"),
    WrongCall(ImportArchive.self, #"{"document":{},"more":true}"#, "/more"),
    WrongCall(ImportArchive.self, #"{"document":{},"upload":"1"}"#, "/upload"),
    WrongCall(Subscribe.self, #"{"events":["stateEncoded","stateencoded"]}"#, "/events/1"),

    WrongCall(VerifyArchive.self, #"{"progressToken":1.0}"#, "/progressToken"),
    WrongCall(VerifyArchive.self, #"[{}]"#, "/0"),

    // References
    WrongCall(UnregisterObject.self, #"{"object":"a"}"#, "/object"),
    WrongCall(SetRestorationParent.self, #"{"object":1}"#, "/restorationParent"),
    WrongCall(SetRestorationParent.self, "[1]", "/1"),
    WrongCall(SetRestorationParent.self, #"{"object":0,"restorationParent":null}"#, "/object"),
    WrongCall(SetRestorationParent.self, #"{"object":-3,"restorationParent":null}"#, "/object"),
    WrongCall(SetRestorationParent.self, #"{"object":1.5,"restorationParent":null}"#, "/object"),
    WrongCall(SetRestorationParent.self, #"{"object":[],"restorationParent":null}"#, "/object"),
    WrongCall(SetRestorationParent.self, #"{"object":["a",1],"restorationParent":null}"#, "/object"),
    WrongCall(SetChildren.self, #"{"object":1,"children":[2,["a"],0]}"#, "/children/2"),
    WrongCall(SetChildren.self, #"[1,[{}]]"#, "/1/0"),

    // Classes
    WrongCall(RegisterObjectForStateRestoration.self, #"{"objectClass":[]}"#, "/objectClass"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"objectClass":""}"#, "/objectClass"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"objectClass":["A",""]}"#, "/objectClass"),
    WrongCall(RegisterObjectForStateRestoration.self, named("objectClass", 256), "/objectClass"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"storyboard":{"unit":7}}"#, "/storyboard/unit"),

    // Elements
    WrongCall(EncodeRestorableState.self, #"{"object":1,"state":{},"elements":{}}"#, "/elements"),
    WrongCall(EncodeRestorableState.self, #"{"object":1,"state":{},"elements":[1]}"#, "/elements/0"),
    WrongCall(
      EncodeRestorableState.self,
      #"{"object":1,"state":{},"elements":[{"role":"selected","indexPath":[0]},{"role":"selected"}]}"#,
      "/elements/1/indexPath"
    ),
    WrongCall(EncodeRestorableState.self, #"[1,{},[{"role":"selected","indexPath":[0,-1]}]]"#, "/2/0/indexPath/1"),
  ]
}
