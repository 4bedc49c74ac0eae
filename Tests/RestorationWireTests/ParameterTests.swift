// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
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

  @Test(arguments: initialize + polling + register + move + state + archive)
  func aWrongMemberIsPointedTo(_ call: WrongCall) throws {
    #expect(try pointerOfError(call.method, call.text) == call.pointer)
  }

  static let initialize: [WrongCall] = [
    WrongCall(Initialize.self, "", "/application"),
    WrongCall(Initialize.self, "{}", "/application"),
    WrongCall(Initialize.self, "[]", "/0"),
    WrongCall(Initialize.self, #"{"application":null}"#, "/application"),
    WrongCall(Initialize.self, #"{"application":7}"#, "/application"),
    WrongCall(Initialize.self, #"{"application":"-a"}"#, "/application"),
    WrongCall(Initialize.self, #"{"application":"a@"}"#, "/application"),
    WrongCall(Initialize.self, #"["a b"]"#, "/0"),
    WrongCall(Initialize.self, #"{"application":"a","session":""}"#, "/session"),
    WrongCall(Initialize.self, #"{"application":"a","session":1}"#, "/session"),
    WrongCall(Initialize.self, #"{"application":"a","instance":"x/y"}"#, "/instance"),
    WrongCall(Initialize.self, #"{"application":"a","instance":""}"#, "/instance"),
    WrongCall(Initialize.self, #"{"application":"a@b","instance":"auto"}"#, "/instance"),
    WrongCall(Initialize.self, #"{"application":"a","process":""}"#, "/process"),
    WrongCall(Initialize.self, #"{"application":"a","process":"a\nb"}"#, "/process"),
    WrongCall(Initialize.self, #"{"application":"a","bundleVersion":1.0}"#, "/bundleVersion"),
    WrongCall(Initialize.self, #"{"application":"a","userInterfaceIdiom":"pad"}"#, "/userInterfaceIdiom"),
    WrongCall(Initialize.self, #"{"application":"a","userInterfaceIdiom":1.5}"#, "/userInterfaceIdiom"),
    WrongCall(Initialize.self, #"{"application":"a","storyboard":"a.service"}"#, "/storyboard"),
    WrongCall(Initialize.self, #"{"application":"a","storyboard":{}}"#, "/storyboard/unit"),
    WrongCall(Initialize.self, #"{"application":"a","delegate":1}"#, "/delegate"),
    WrongCall(Initialize.self, #"{"application":"a","serves":"pathChanged"}"#, "/serves"),
    WrongCall(Initialize.self, #"{"application":"a","serves":["pathChanged","nope"]}"#, "/serves/1"),
    WrongCall(Initialize.self, #"{"application":"a","serves":[3]}"#, "/serves/0"),
    WrongCall(Initialize.self, #"["a",null,null,null,null,-1,null,false,["nope"]]"#, "/8/0"),
    WrongCall(Initialize.self, #"{"application":"a","messageBytesMax":0}"#, "/messageBytesMax"),
    WrongCall(Initialize.self, #"{"application":"a","aliases":[]}"#, "/aliases"),
    WrongCall(Initialize.self, #"{"application":"a","aliases":{"classes":3}}"#, "/aliases/classes"),
    WrongCall(
      Initialize.self,
      #"{"application":"a","aliases":{"identifiers":{"a/b~c":1}}}"#,
      "/aliases/identifiers/a~1b~0c"
    ),
    WrongCall(Initialize.self, #"{"application":"a","protocolVersion":"1"}"#, "/protocolVersion"),
  ]

  static let polling: [WrongCall] = [
    WrongCall(NextRequest.self, #"{"waitMilliseconds":-1}"#, "/waitMilliseconds"),
    WrongCall(NextRequest.self, #"{"waitMilliseconds":30001}"#, "/waitMilliseconds"),
    WrongCall(NextRequest.self, #"[1.5]"#, "/0"),
    WrongCall(NextRequest.self, #"{"serves":"progress"}"#, "/serves"),
    WrongCall(NextRequest.self, #"[0,["progress","nope"]]"#, "/1/1"),
    WrongCall(AnswerRequest.self, "", "/id"),
    WrongCall(AnswerRequest.self, #"{"id":null,"result":1}"#, "/id"),
    WrongCall(AnswerRequest.self, #"{"id":"1","result":1}"#, "/id"),
    WrongCall(AnswerRequest.self, #"{"id":0,"result":1}"#, "/id"),
    WrongCall(AnswerRequest.self, #"[9223372036854775808,1]"#, "/0"),
    WrongCall(AnswerRequest.self, #"{"id":1}"#, "/result"),
    WrongCall(AnswerRequest.self, #"{"id":1,"error":null}"#, "/result"),
    WrongCall(AnswerRequest.self, #"[1]"#, "/1"),
    WrongCall(AnswerRequest.self, #"{"id":1,"error":"no"}"#, "/error"),
    WrongCall(AnswerRequest.self, #"{"id":1,"result":1,"error":{"code":1,"message":"m"}}"#, "/error"),
    WrongCall(AnswerRequest.self, #"[1,1,{"code":1,"message":"m"}]"#, "/2"),
  ]

  static let register: [WrongCall] = [
    WrongCall(RegisterObjectForStateRestoration.self, #"{"restorationIdentifier":7}"#, "/restorationIdentifier"),
    WrongCall(RegisterObjectForStateRestoration.self, #"[7]"#, "/0"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"restorationParent":0}"#, "/restorationParent"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"restorationParent":-3}"#, "/restorationParent"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"restorationParent":1.5}"#, "/restorationParent"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"restorationParent":[]}"#, "/restorationParent"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"restorationParent":["a",1]}"#, "/restorationParent"),
    WrongCall(RegisterObjectForStateRestoration.self, #"["a",["b"],"window"]"#, "/2"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"kind":"Object"}"#, "/kind"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"objectClass":[]}"#, "/objectClass"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"objectClass":""}"#, "/objectClass"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"objectClass":["A",""]}"#, "/objectClass"),
    WrongCall(RegisterObjectForStateRestoration.self, named("objectClass", 256), "/objectClass"),
    WrongCall(RegisterObjectForStateRestoration.self, named("restorationClass", 1_025), "/restorationClass"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"restorationClass":""}"#, "/restorationClass"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"position":-1}"#, "/position"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"position":9007199254740992}"#, "/position"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"storyboard":{"unit":""}}"#, "/storyboard/unit"),
    WrongCall(
      RegisterObjectForStateRestoration.self,
      #"{"awaitParentMilliseconds":86400001}"#,
      "/awaitParentMilliseconds"
    ),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"takeOver":"yes"}"#, "/takeOver"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"confidential":0}"#, "/confidential"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"keep":"long"}"#, "/keep"),
    WrongCall(RegisterObjectForStateRestoration.self, #"{"keep":true}"#, "/keep"),
  ]

  static let move: [WrongCall] = [
    WrongCall(UnregisterObject.self, "", "/object"),
    WrongCall(UnregisterObject.self, #"{"object":"a"}"#, "/object"),
    WrongCall(UnregisterObject.self, #"{"object":1,"keepState":1}"#, "/keepState"),
    WrongCall(SetRestorationParent.self, #"{"object":1}"#, "/restorationParent"),
    WrongCall(SetRestorationParent.self, "[1]", "/1"),
    WrongCall(SetRestorationParent.self, #"{"object":1,"restorationParent":"a"}"#, "/restorationParent"),
    WrongCall(SetRestorationParent.self, #"{"object":null,"restorationParent":null}"#, "/object"),
    WrongCall(SetRestorationParent.self, #"[1,null,"x"]"#, "/2"),
    WrongCall(SetRestorationIdentifier.self, #"{"object":1}"#, "/restorationIdentifier"),
    WrongCall(SetRestorationIdentifier.self, #"{"object":1,"restorationIdentifier":["a"]}"#, "/restorationIdentifier"),
    WrongCall(SetRestorationIdentifier.self, #"{"object":1,"restorationIdentifier":"a","position":"0"}"#, "/position"),
    WrongCall(SetChildren.self, #"{"object":1}"#, "/children"),
    WrongCall(SetChildren.self, #"{"object":1,"children":null}"#, "/children"),
    WrongCall(SetChildren.self, #"{"object":1,"children":[2,["a"],0]}"#, "/children/2"),
    WrongCall(SetChildren.self, #"[1,[{}]]"#, "/1/0"),
  ]

  static let state: [WrongCall] = [
    WrongCall(EncodeRestorableState.self, #"{"state":{}}"#, "/object"),
    WrongCall(EncodeRestorableState.self, #"{"object":1}"#, "/state"),
    WrongCall(EncodeRestorableState.self, #"{"object":1,"state":[]}"#, "/state"),
    WrongCall(EncodeRestorableState.self, #"{"object":1,"state":null}"#, "/state"),
    WrongCall(EncodeRestorableState.self, #"[1,"x"]"#, "/1"),
    WrongCall(EncodeRestorableState.self, #"{"object":1,"state":{},"elements":{}}"#, "/elements"),
    WrongCall(EncodeRestorableState.self, #"{"object":1,"state":{},"elements":[1]}"#, "/elements/0"),
    WrongCall(
      EncodeRestorableState.self,
      #"{"object":1,"state":{},"elements":[{"role":"top","indexPath":[0]}]}"#,
      "/elements/0/role"
    ),
    WrongCall(
      EncodeRestorableState.self,
      #"{"object":1,"state":{},"elements":[{"role":"selected","indexPath":[0]},{"role":"selected"}]}"#,
      "/elements/1/indexPath"
    ),
    WrongCall(EncodeRestorableState.self, #"[1,{},[{"role":"selected","indexPath":[0,-1]}]]"#, "/2/0/indexPath/1"),
    WrongCall(
      EncodeRestorableState.self,
      #"{"object":1,"state":{},"elements":[{"role":"selected","indexPath":[],"identifier":3}]}"#,
      "/elements/0/identifier"
    ),
    WrongCall(
      EncodeRestorableState.self,
      #"{"object":1,"state":{},"elements":[{"role":"selected","indexPath":[],"resolved":0}]}"#,
      "/elements/0/resolved"
    ),
    WrongCall(EncodeRestorableState.self, #"{"object":1,"state":{},"revision":0}"#, "/revision"),
    WrongCall(EncodeRestorableState.self, #"{"object":1,"state":{},"revision":1e3}"#, "/revision"),
    WrongCall(DecodeRestorableState.self, "[{}]", "/0"),
    WrongCall(DecodeRestorableState.self, "{}", "/object"),
    WrongCall(Goodbye.self, "", "/reason"),
    WrongCall(Goodbye.self, #"{"reason":null}"#, "/reason"),
    WrongCall(Goodbye.self, #"{"reason":"quit"}"#, "/reason"),
    WrongCall(Goodbye.self, #"[1]"#, "/0"),
  ]

  static let archive: [WrongCall] = [
    WrongCall(DiscardApplicationState.self, #"{"reason":1}"#, "/reason"),
    WrongCall(DiscardApplicationState.self, #"{"generations":"all"}"#, "/generations"),
    WrongCall(DiscardApplicationState.self, #"["x",true,1]"#, "/2"),
    WrongCall(ReadArchive.self, #"{"generation":0}"#, "/generation"),
    WrongCall(ReadArchive.self, #"{"generation":"1"}"#, "/generation"),
    WrongCall(ReadArchive.self, #"{"cursor":""}"#, "/cursor"),
    WrongCall(ReadArchive.self, #"[1,"c",2]"#, "/2"),
    WrongCall(DescribeApplication.self, #"{"cursor":5}"#, "/cursor"),
    WrongCall(VerifyArchive.self, #"{"progressToken":1.0}"#, "/progressToken"),
    WrongCall(VerifyArchive.self, #"[{}]"#, "/0"),
    WrongCall(BackupArchive.self, #"{"to":"a"}"#, "/to"),
    WrongCall(BackupArchive.self, #"{"to":"/a/"}"#, "/to"),
    WrongCall(BackupArchive.self, #"{"to":"/a/.."}"#, "/to"),
    WrongCall(BackupArchive.self, #"{"to":"/a\u0000b"}"#, "/to"),
    WrongCall(BackupArchive.self, #"[""]"#, "/0"),
    WrongCall(ExportArchive.self, #"{"generation":0}"#, "/generation"),
    WrongCall(ExportArchive.self, #"{"reveal":"yes"}"#, "/reveal"),
    WrongCall(ImportArchive.self, "{}", "/document"),
    WrongCall(ImportArchive.self, #"{"document":{},"part":{}}"#, "/part"),
    WrongCall(ImportArchive.self, #"{"document":{},"more":true}"#, "/more"),
    WrongCall(ImportArchive.self, #"{"document":{},"upload":"1"}"#, "/upload"),
    WrongCall(ImportArchive.self, #"{"part":{},"upload":1}"#, "/upload"),
    WrongCall(Subscribe.self, #"{"events":{}}"#, "/events"),
    WrongCall(Subscribe.self, #"{"events":[]}"#, "/events"),
    WrongCall(Subscribe.self, #"{"events":["stateEncoded","stateencoded"]}"#, "/events/1"),
    WrongCall(Subscribe.self, #"[["stateEncoded",1]]"#, "/0/1"),
    WrongCall(Unsubscribe.self, "", "/subscription"),
    WrongCall(Unsubscribe.self, #"{"subscription":null}"#, "/subscription"),
    WrongCall(Unsubscribe.self, #"{"subscription":0}"#, "/subscription"),
    WrongCall(Unsubscribe.self, #"["1"]"#, "/0"),
  ]
}
