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
  @Test(arguments: sessions + objects + rounds + archives)
  func aResultIsReadAsItWasWritten(_ result: ResultText) throws {
    let value = try #require(try result.type.init(slice(result.text)))
    #expect(written { value.writeJSON(to: &$0) } == result.text)
  }

  @Test(arguments: sessions + objects + rounds + archives)
  func membersThatLaterBrokersAddAreIgnored(_ result: ResultText) throws {
    let text = result.text == "{}" ? #"{"later":[{}]}"# : result.text.dropLast() + #","later":[{}]}"#
    let value = try #require(try result.type.init(slice(text)))
    #expect(written { value.writeJSON(to: &$0) } == result.text)
  }

  @Test(arguments: sessions + objects + rounds + archives)
  func aResultOfAnotherShapeIsNil(_ result: ResultText) throws {
    for text in result.wrong {
      #expect(try result.type.init(slice(text)) == nil, "\(text)")
    }
  }

  static let limits = written { Limits().writeJSON(to: &$0) }

  static let sessions: [ResultText] = [
    ResultText(
      Initialize.Reply.self,
      #"{"protocolVersion":1,"broker":{"name":"restorationd","version":"1.0"},"application":"a@b","session":"t","#
        + #""restoration":{"state":"available","reason":"recover","generation":3,"archive":"u","coder":{"k":1},"#
        + #""damaged":"d"},"limits":"# + limits + "}",
      wrong: [
        "{}",
        #"{"protocolVersion":1,"broker":{"name":"r","version":"1"},"application":"-","session":"t","#
          + #""restoration":{"state":"none","reason":"pristine"},"limits":"# + limits + "}",
      ]
    ),
    ResultText(
      Initialize.Reply.self,
      #"{"protocolVersion":1,"broker":{"name":"restorationd","version":"1.0"},"application":"a","session":"t","#
        + #""restoration":{"state":"none","reason":"pristine","generation":null,"archive":null,"coder":null},"#
        + #""limits":"# + limits + "}"
    ),
    ResultText(CompleteStateRestoration.Reply.self, #"{"pending":0}"#, wrong: ["{}", #"{"pending":true}"#]),
    ResultText(
      RestoreApplicationState.Reply.self,
      #"{"restored":[["a"]],"skipped":[{"path":["a","b"],"reason":"failed","message":"m"}],"absent":[["c"]],"#
        + #""declined":true,"omitted":3,"failedUnits":[{"unit":"a.service","message":"it is gone"}],"milliseconds":7}"#,
      wrong: [
        "{}",
        #"{"restored":[],"skipped":[],"absent":[],"failedUnits":[{"unit":"a"}],"milliseconds":7}"#,
        #"{"restored":[[]],"skipped":[],"absent":[],"milliseconds":7}"#,
        #"{"restored":[],"skipped":[{"path":["a"]}],"absent":[],"milliseconds":7}"#,
      ]
    ),
    ResultText(
      RestoreApplicationState.Reply.self,
      #"{"restored":[],"skipped":[],"absent":[],"milliseconds":0}"#
    ),
    ResultText(EmptyResult.self, "{}"),
    ResultText(Limits.self, limits, wrong: ["[]", #"{"frameBytesMax":"1"}"#]),
    ResultText(
      ReportStatistics.Reply.self,
      #"{"broker":{"name":"restorationd","version":"1.0"},"pid":7,"uptimeMilliseconds":12,"#
        + #""counters":{"commits":3,"encodes":9},"gauges":{"connections":1}}"#,
      wrong: [
        #"{"broker":{"name":"r","version":"1"},"pid":7,"uptimeMilliseconds":1,"counters":{"a":"b"},"gauges":{}}"#
      ]
    ),
  ]

  static let objects: [ResultText] = [
    ResultText(
      RegisterObjectForStateRestoration.Reply.self,
      #"{"object":4294967297,"path":["Main","Editor#2"],"included":true,"#
        + #""restoration":{"state":"none","classMatches":true}}"#,
      wrong: [
        "{}", #"{"object":1,"path":["a"],"included":true}"#,
        #"{"object":1,"path":[],"included":true,"restoration":{"state":"none","classMatches":true}}"#,
        #"{"object":1,"path":["a"],"included":true,"restoration":{"state":"some","classMatches":true}}"#,
      ]
    ),
    ResultText(
      RegisterObjectForStateRestoration.Reply.self,
      #"{"object":1,"path":null,"included":false,"restoration":{"state":"quarantined","classMatches":false}}"#
    ),
    ResultText(SetRestorationParent.Reply.self, #"{"path":["a"]}"#, wrong: [#"{"path":"a"}"#]),
    ResultText(SetRestorationParent.Reply.self, #"{"path":null}"#),
    ResultText(SetRestorationIdentifier.Reply.self, #"{"path":["a"],"included":false}"#, wrong: [#"{"path":["a"]}"#]),
    ResultText(SetChildren.Reply.self, #"{"paths":[["a","b#0"],null]}"#, wrong: ["{}", #"{"paths":[1]}"#]),
    ResultText(EncodeRestorableState.Reply.self, #"{"sequence":9,"durability":"disk"}"#, wrong: ["{}"]),
    ResultText(EncodeRestorableState.Reply.self, #"{"superseded":true}"#),
    ResultText(EncodeRestorableState.Reply.self, #"{"discarded":true}"#),
    ResultText(
      DecodeRestorableState.Reply.self,
      #"{"status":"available","state":{"n":1e400,"s":"\u0000é"},"coder":{"k":1},"elements":[{"role":"selected"}]}"#,
      wrong: ["{}", #"{"status":"gone"}"#]
    ),
    ResultText(
      DecodeRestorableState.Reply.self,
      #"{"status":"classMismatch","state":null,"coder":{"k":1},"elements":[]}"#
    ),
  ]

  static let rounds: [ResultText] = [
    ResultText(
      SaveApplicationState.Reply.self,
      #"{"saved":true,"generation":4,"objects":9,"bytes":812,"stale":[{"object":7,"path":["a","b"],"process":"p","#
        + #""pid":12,"why":"late"},{"object":null,"path":[],"process":null,"pid":null,"why":"failed","#
        + #""message":"m"},{"object":8,"path":null,"process":"p","pid":1,"why":"x"}],"excluded":[{"object":8,"path":["c"],"#
        + #""process":null,"pid":3,"by":7},{"object":9,"path":null,"process":"q","pid":3,"by":["d"]}],"#
        + #""omitted":2,"milliseconds":31}"#,
      wrong: [
        "{}",
        #"{"saved":true,"generation":4,"objects":9,"bytes":812,"stale":[{}],"excluded":[],"milliseconds":1}"#,
        #"{"saved":true,"generation":4,"objects":9,"bytes":812,"stale":[],"excluded":[{}],"milliseconds":1}"#,
        #"{"saved":true,"generation":4,"objects":9,"bytes":8,"stale":[{"path":[1],"why":"late"}],"#
          + #""excluded":[],"milliseconds":1}"#,
      ]
    ),
    ResultText(
      SaveApplicationState.Reply.self,
      #"{"saved":false,"reason":"declined","generation":null,"objects":0,"bytes":0,"stale":[],"excluded":[],"#
        + #""milliseconds":0}"#
    ),
  ]

  static let archives: [ResultText] = [
    ResultText(
      ReadArchive.Reply.self,
      #"{"generation":null,"objects":[{"object":null,"path":["a"],"kind":"view","objectClass":["B","C"],"#
        + #""process":"p","orphaned":true,"status":"available","state":{"x":-0.0},"coder":{},"elements":[],"#
        + #""bytes":8,"modified":"2026-01-02T03:04:05.006Z","confidential":false,"redacted":false}],"cursor":"c"}"#,
      wrong: ["{}", #"{"generation":1,"objects":[{}]}"#]
    ),
    ResultText(
      ReadArchive.Reply.self,
      #"{"generation":2,"objects":[{"object":7,"path":["a"],"kind":"object","objectClass":"B","process":null,"#
        + #""orphaned":false,"status":"none","state":null,"coder":null,"bytes":0,"modified":null,"#
        + #""confidential":true,"redacted":true}]}"#
    ),
    ResultText(
      ListApplications.Reply.self,
      #"{"applications":[{"application":"a@b","sessions":1,"objects":2,"generation":null,"bytes":3,"#
        + #""state":"available","restoreAtLogin":"always","units":["a.service"]}]}"#,
      wrong: [
        "{}", #"{"applications":[{"application":"a"}]}"#,
        #"{"applications":[{"application":"a","sessions":1,"objects":2,"generation":null,"bytes":3,"#
          + #""state":"available","restoreAtLogin":"seldom"}]}"#,
      ]
    ),
    ResultText(
      DescribeApplication.Reply.self,
      #"{"application":"a","archive":"u","generation":1,"sequence":5,"sessions":[{"process":null,"pid":7,"#
        + #""delegate":true,"serves":["progress"]}],"objects":[{"node":3,"parent":2,"object":7,"path":null,"#
        + #""kind":"view","objectClass":null,"process":null,"pid":7,"included":false,"orphaned":false,"bytes":0,"#
        + #""modified":null,"revision":4,"confidential":true}],"cursor":"c"}"#,
      wrong: ["{}"]
    ),
    ResultText(
      ListGenerations.Reply.self,
      #"{"generations":[{"generation":1,"kind":"startup","committed":"1970-01-01T00:00:00.000Z","objects":2,"#
        + #""bytes":3,"pinned":true}]}"#,
      wrong: [
        #"{"generations":[{"generation":1,"kind":"startup","committed":"now","objects":2,"bytes":3,"pinned":true}]}"#
      ]
    ),
    ResultText(
      ListQuarantine.Reply.self,
      #"{"archive":"2026-01-02T03:04:05.006Z","strikes":1,"objects":[{"object":7,"path":["a"],"#
        + #""standing":"lifted","strikes":1,"confidential":false,"redacted":false,"states":[{"sequence":5,"#
        + #""quarantined":"2026-01-02T03:04:05.006Z","state":{"x":1e400},"elements":[],"coder":{}},{"sequence":6,"#
        + #""quarantined":"2026-01-02T03:04:05.006Z","state":null,"coder":null,"unreadable":true}]}],"cursor":"c"}"#,
      wrong: ["{}", #"{"archive":null,"strikes":0,"objects":[{}]}"#, #"{"archive":"now","strikes":0,"objects":[]}"#]
    ),
    ResultText(ListQuarantine.Reply.self, #"{"archive":null,"strikes":0,"objects":[]}"#),
    ResultText(ReleaseQuarantine.Reply.self, #"{"released":3}"#, wrong: ["{}", #"{"released":"3"}"#]),
    ResultText(
      DiffGenerations.Reply.self,
      #"{"added":[["a"]],"removed":[["b","c"]],"changed":[{"path":["d"],"keys":["k"],"elements":true},{"path":["e"],"#
        + #""keys":[],"redacted":true},{"path":["f"],"keys":[],"unreadable":true}],"cursor":"c"}"#,
      wrong: [
        "{}", #"{"added":[],"removed":[],"changed":[{"path":["a"]}]}"#, #"{"added":[1],"removed":[],"changed":[]}"#,
      ]
    ),
    ResultText(DiffGenerations.Reply.self, #"{"added":[],"removed":[],"changed":[]}"#),
    ResultText(
      RollBack.Reply.self,
      #"{"generation":4,"former":3,"unreadable":[["a","b"]]}"#,
      wrong: ["{}", #"{"generation":4,"former":3,"unreadable":[7]}"#]
    ),
    ResultText(RollBack.Reply.self, #"{"generation":4,"former":null,"unreadable":[]}"#),
    ResultText(
      ExplainRestoration.Reply.self,
      #"{"path":["a"],"saved":[{"step":"included"},{"step":"saved","generation":2}],"#
        + #""restored":[{"step":"finished"}],"verdict":"restored"}"#,
      wrong: ["{}", #"{"path":null,"saved":[],"restored":7,"verdict":"saved"}"#]
    ),
    ResultText(ExplainRestoration.Reply.self, #"{"path":null,"saved":[],"restored":[],"verdict":"later"}"#),
    ResultText(
      VerifyArchive.Reply.self,
      #"{"sound":false,"objects":1,"states":2,"bytes":3,"problems":[{"kind":"state","path":["a"],"generation":4,"#
        + #""message":"m"},{"kind":"later","message":"n"}],"omitted":5,"milliseconds":6}"#,
      wrong: [
        "{}", #"{"sound":1,"objects":1,"states":2,"bytes":3,"problems":[],"milliseconds":6}"#,
        #"{"sound":true,"objects":1,"states":2,"bytes":3,"problems":[{"kind":"state"}],"milliseconds":6}"#,
      ]
    ),
    ResultText(
      BackupArchive.Reply.self,
      #"{"to":"/a","bytes":1,"milliseconds":2}"#,
      wrong: ["{}", #"{"to":1,"bytes":1,"milliseconds":2}"#]
    ),
    ResultText(BackupArchive.Reply.self, #"{"to":null,"bytes":1,"milliseconds":2}"#),
    ResultText(
      ExportArchive.Reply.self,
      #"{"part":{"objects":[1e400]},"cursor":"c"}"#,
      wrong: ["{}", #"{"part":[]}"#]
    ),
    ResultText(ImportArchive.Reply.self, #"{"upload":"u","objects":1,"states":2,"bytes":3}"#, wrong: ["{}"]),
    ResultText(ImportArchive.Reply.self, #"{"objects":1,"states":2,"bytes":3,"generation":4}"#),
    ResultText(Subscribe.Reply.self, #"{"subscription":3}"#, wrong: ["{}", #"{"subscription":"3"}"#]),
  ]
}

@Suite struct NotificationTests {
  @Test(arguments: [#"{"object":7,"path":["a","b#1"]}"#, #"{"object":7,"path":null}"#])
  func pathChangedIsReadAsItWasWritten(_ text: String) throws {
    #expect(try PathChanged(wire: slice(text)).text.string == text)
    #expect(PathChanged.method == .pathChanged)
  }

  @Test(arguments: [
    #"{"object":7,"path":["a"],"by":{"process":"editor","pid":42}}"#,
    #"{"object":7,"path":["a"],"by":{"process":null,"pid":42}}"#,
  ])
  func registrationReplacedIsReadAsItWasWritten(_ text: String) throws {
    #expect(try RegistrationReplaced(wire: slice(text)).text.string == text)
    #expect(RegistrationReplaced.method == .registrationReplaced)
  }

  @Test(arguments: [
    #"{"progressToken":"\u0061","done":1,"total":2,"message":"m"}"#,
    #"{"progressToken":18446744073709551616,"done":1}"#,
  ])
  func progressIsReadAsItWasWritten(_ text: String) throws {
    #expect(try Progress(wire: slice(text)).text.string == text)
    #expect(Progress.method == .progress)
  }

  @Test(arguments: ["{}", #"{"progressToken":null,"done":1}"#, #"{"progressToken":1.5,"done":1}"#])
  func progressOfAnotherShapeIsNil(_ text: String) throws {
    #expect(throws: Misfit.self) { try Progress(wire: slice(text)) }
  }

  @Test(arguments: ["{}", "[]", #"{"object":"7","path":["a"]}"#, #"{"object":7,"path":["a"],"by":{"pid":"x"}}"#])
  func aNotificationOfAnotherShapeIsNil(_ text: String) throws {
    #expect(throws: Misfit.self) { try RegistrationReplaced(wire: slice(text)) }
  }
}
