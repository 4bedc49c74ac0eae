// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
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
  @Test(arguments: sessions + objects + archives)
  func aCallByPositionIsTheCallByName(_ call: RightCall) throws {
    #expect(written(try call.method.init(parameters(call.named))) == call.written)
    #expect(written(try call.method.init(parameters(call.positional))) == call.written)
  }

  @Test(arguments: sessions + objects + archives)
  func unknownMembersAndPositionsAreIgnored(_ call: RightCall) throws {
    let named = call.named == "{}" ? #"{"x-color":[1]}"# : call.named.dropLast() + #","x-color":[1]}"#
    #expect(written(try call.method.init(parameters(named))) == call.written)
  }

  @Test func everyMethodIsListedOnce() {
    let names = RestorationMethods.all.map { $0.method }
    #expect(Set(names).count == names.count)
    #expect(names.count == 38)
    for type in RestorationMethods.all {
      #expect(Set(type.members.map(\.name)).count == type.members.count)
    }
  }

  @Test func callsWithoutParametersTakeAnyForm() throws {
    for method in [Ping.self, ReportLimits.self, ListApplications.self] as [any RestorationMethod.Type] {
      for text in ["", "{}", "[]", "[1,2]", #"{"a":1}"#] {
        #expect(try pointerOfError(method, text) == nil)
      }
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

  static let sessions: [RightCall] = [
    RightCall(Initialize.self, #"{"application":"a","protocolVersion":1}"#, #"["a"]"#),
    RightCall(
      Initialize.self,
      #"{"application":"a","session":"t","instance":"auto","process":"editor","bundleVersion":"1.2","#
        + #""userInterfaceIdiom":1,"storyboard":{"unit":"a.service"},"delegate":true,"serves":["pathChanged"],"#
        + #""messageBytesMax":65536,"aliases":{"classes":{"A":"B"}},"protocolVersion":2}"#,
      #"["a","t","auto","editor","1.2",1,{"unit":"a.service"},true,["pathChanged"],65536,{"classes":{"A":"B"}},2]"#
    ),
    RightCall(
      RestoreApplicationState.self,
      #"{"deadlineMilliseconds":500,"progressToken":"t"}"#,
      #"[500,"t"]"#
    ),
    RightCall(RestoreApplicationState.self, "{}", "[]"),
    RightCall(ExtendStateRestoration.self, "{}", "[]"),
    RightCall(CompleteStateRestoration.self, "{}", "[]"),
    RightCall(Goodbye.self, #"{"reason":"userQuit"}"#, #"["userQuit"]"#),
    RightCall(NextRequest.self, "{}", "[]"),
    RightCall(NextRequest.self, #"{"waitMilliseconds":30000,"serves":["progress"]}"#, #"[30000,["progress"]]"#),
    RightCall(NextRequest.self, #"{"serves":[]}"#, "[null,[]]"),
    RightCall(AnswerRequest.self, #"{"id":7,"result":{"n":1e400}}"#, #"[7,{"n":1e400}]"#),
    RightCall(AnswerRequest.self, #"{"id":7,"result":null}"#, "[7,null]"),
    RightCall(
      AnswerRequest.self,
      #"{"id":7,"error":{"code":-1,"message":"m"}}"#,
      #"[7,null,{"code":-1,"message":"m"}]"#
    ),
    RightCall(AnswerRequest.self, #"{"id":7,"error":{}}"#, "[7,null,{}]"),
    RightCall(Ping.self, "{}", "[]"),
    RightCall(ReportLimits.self, "{}", "[]"),
    RightCall(ReportStatistics.self, "{}", "[]"),
  ]

  static let objects: [RightCall] = [
    RightCall(RegisterObjectForStateRestoration.self, #"{"restorationIdentifier":"Main"}"#, #"["Main"]"#),
    RightCall(
      RegisterObjectForStateRestoration.self,
      #"{"restorationIdentifier":"Main","restorationParent":["A"],"kind":"viewController","objectClass":["B","C"],"#
        + #""restorationClass":"D","position":3,"storyboard":{"unit":"a.service"},"awaitParentMilliseconds":5,"#
        + #""takeOver":true,"confidential":true,"keep":"forever"}"#,
      #"["Main",["A"],"viewController",["B","C"],"D",3,{"unit":"a.service"},5,true,true,"forever"]"#
    ),
    RightCall(
      RegisterObjectForStateRestoration.self,
      #"{"restorationIdentifier":null,"restorationParent":7,"kind":"view","objectClass":["B"]}"#,
      #"[null,7,"view","B"]"#,
      written: #"{"restorationParent":7,"kind":"view","objectClass":"B"}"#
    ),
    RightCall(UnregisterObject.self, #"{"object":7,"keepState":true}"#, "[7,true]"),
    RightCall(UnregisterObject.self, #"{"object":["a","b"]}"#, #"[["a","b"]]"#),
    RightCall(SetRestorationParent.self, #"{"object":7,"restorationParent":null}"#, "[7,null]"),
    RightCall(
      SetRestorationParent.self,
      #"{"object":7,"restorationParent":["a"],"takeOver":true}"#,
      #"[7,["a"],true]"#
    ),
    RightCall(
      SetRestorationIdentifier.self,
      #"{"object":7,"restorationIdentifier":"b","position":0,"takeOver":true}"#,
      #"[7,"b",0,true]"#
    ),
    RightCall(SetRestorationIdentifier.self, #"{"object":7,"restorationIdentifier":null}"#, "[7,null]"),
    RightCall(SetChildren.self, #"{"object":7,"children":[8,["a"]]}"#, #"[7,[8,["a"]]]"#),
    RightCall(SetChildren.self, #"{"object":7,"children":[]}"#, "[7,[]]"),
    RightCall(RegisterRestorationClass.self, #"{"restorationClass":"Editor"}"#, #"["Editor"]"#),
    RightCall(RegisterDataSource.self, #"{"view":["a"]}"#, #"[["a"]]"#),
    RightCall(
      EncodeRestorableState.self,
      #"{"object":7,"state":{"x":0.1},"elements":[{"role":"topVisible","indexPath":[0,2],"identifier":"m","#
        + #""resolved":false}],"revision":9}"#,
      #"[7,{"x":0.1},[{"role":"topVisible","indexPath":[0,2],"identifier":"m","resolved":false}],9]"#
    ),
    RightCall(DecodeRestorableState.self, #"{"object":["a"]}"#, #"[["a"]]"#),
    RightCall(InvalidateRestorableState.self, #"{"object":7}"#, "[7]"),
    RightCall(SaveApplicationState.self, "{}", "[]"),
    RightCall(
      SaveApplicationState.self,
      #"{"reason":"r","deadlineMilliseconds":250,"progressToken":"t"}"#,
      #"["r",250,"t"]"#
    ),
  ]

  static let archives: [RightCall] = [
    RightCall(
      DiscardApplicationState.self,
      #"{"reason":"r","generations":true,"force":true}"#,
      #"["r",true,true]"#
    ),
    RightCall(DiscardApplicationState.self, "{}", "[]"),
    RightCall(ReadArchive.self, #"{"generation":3,"cursor":"c","reveal":true}"#, #"[3,"c",true]"#),
    RightCall(ListApplications.self, "{}", "[]"),
    RightCall(DescribeApplication.self, #"{"cursor":"c"}"#, #"["c"]"#),
    RightCall(ListGenerations.self, "{}", "[]"),
    RightCall(ListQuarantine.self, #"{"cursor":"c","reveal":true}"#, #"["c",true]"#),
    RightCall(ListQuarantine.self, "{}", "[]"),
    RightCall(ReleaseQuarantine.self, #"{"path":["a"]}"#, #"[["a"]]"#),
    RightCall(ReleaseQuarantine.self, "{}", "[]"),
    RightCall(
      DiffGenerations.self,
      #"{"from":3,"to":5,"reveal":true,"cursor":"c","progressToken":1}"#,
      #"[3,5,true,"c",1]"#
    ),
    RightCall(DiffGenerations.self, #"{"from":3}"#, "[3]"),
    RightCall(RollBack.self, #"{"generation":3,"force":true,"progressToken":"t"}"#, #"[3,true,"t"]"#),
    RightCall(RollBack.self, #"{"generation":3}"#, "[3]"),
    RightCall(ExplainRestoration.self, #"{"object":["a"],"reveal":true}"#, #"[["a"],true]"#),
    RightCall(ExplainRestoration.self, #"{"object":7}"#, "[7]"),
    RightCall(VerifyArchive.self, #"{"progressToken":"t"}"#, #"["t"]"#),
    RightCall(VerifyArchive.self, "{}", "[]"),
    RightCall(BackupArchive.self, #"{"to":"/a/b","progressToken":7}"#, #"["/a/b",7]"#),
    RightCall(
      ExportArchive.self,
      #"{"generation":3,"cursor":"c","reveal":true,"progressToken":-1}"#,
      #"[3,"c",true,-1]"#
    ),
    RightCall(
      ImportArchive.self,
      #"{"part":{"x":1e400},"upload":"u","more":true,"force":true,"progressToken":"t"}"#,
      #"[null,{"x":1e400},"u",true,true,"t"]"#
    ),
    RightCall(ImportArchive.self, #"{"document":{}}"#, #"[{}]"#),
    RightCall(Subscribe.self, "{}", "[]"),
    RightCall(Subscribe.self, #"{"events":["stateEncoded","eventsLost"]}"#, #"[["stateEncoded","eventsLost"]]"#),
    RightCall(Unsubscribe.self, #"{"subscription":3}"#, "[3]"),
  ]
}
