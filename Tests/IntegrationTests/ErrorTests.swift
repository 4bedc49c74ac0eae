// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import TestSupport
internal import Testing

/// Every error of `Protocol/errors.md` that a client can provoke, with its `data`.
@Suite struct ErrorTests {
  /// Calls of one session of the application `a`, which has an object `Main`; the last call must fail.
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let calls: [String]
    let error: MessagePattern

    var testDescription: String { name }

    init(_ name: String, _ calls: [String], _ code: Int, _ kind: String, _ more: String = "") {
      self.name = name
      self.calls = calls
      self.error = .error("\(calls.count)", code, kind, more)
    }

    init(_ name: String, _ call: String, _ code: Int, _ kind: String, _ more: String = "") {
      self.init(name, [call], code, kind, more)
    }
  }

  private static func register(_ members: String) -> String {
    #""registerObjectForStateRestoration","params":{\#(members)}"#
  }

  private static func encode(_ state: String, _ object: String = #"["Main"]"#) -> String {
    #""encodeRestorableState","params":{"object":\#(object),"state":\#(state)}"#
  }

  static let parameters: [Case] = [
    Case(
      "a missing member",
      #""encodeRestorableState","params":{"object":["Main"]}"#,
      -32602,
      "invalidParams",
      #""pointer":"/state""#
    ),
    Case("a member of another type", encode("[]"), -32602, "invalidParams", #""pointer":"/state""#),
    Case(
      "a real where an integer is due",
      #""encodeRestorableState","params":{"object":["Main"],"state":{},"revision":1.0}"#,
      -32602,
      "invalidParams",
      #""pointer":"/revision""#
    ),
    Case(
      "an integer out of its range",
      #""encodeRestorableState","params":{"object":["Main"],"state":{},"revision":0}"#,
      -32602,
      "invalidParams",
      #""pointer":"/revision""#
    ),
    Case(
      "a word outside of its set",
      register(#""restorationIdentifier":"A","kind":"window""#),
      -32602,
      "invalidParams",
      #""pointer":"/kind""#
    ),
    Case(
      "a number for a boolean",
      register(#""restorationIdentifier":"A","takeOver":1"#),
      -32602,
      "invalidParams",
      #""pointer":"/takeOver""#
    ),
    Case(
      "a reference that is a string",
      #""decodeRestorableState","params":{"object":"Main"}"#,
      -32602,
      "invalidParams",
      #""pointer":"/object""#
    ),
    Case(
      "a path that holds a number",
      #""decodeRestorableState","params":{"object":["Main",1]}"#,
      -32602,
      "invalidParams"
    ),
    Case(
      "an element with an unknown role",
      #""encodeRestorableState","params":{"object":["Main"],"state":{},"elements":[{"role":"x","indexPath":[0]}]}"#,
      -32602,
      "invalidParams",
      #""pointer":"/elements/0/role""#
    ),
    Case(
      "an unknown reason of goodbye",
      #""goodbye","params":{"reason":"bye"}"#,
      -32602,
      "invalidParams",
      #""pointer":"/reason""#
    ),
    Case(
      "a generation that is not there",
      #""readArchive","params":{"generation":7}"#,
      -32602,
      "invalidParams",
      #""pointer":"/generation""#
    ),
    Case(
      "a cursor of nothing",
      #""readArchive","params":{"cursor":"x"}"#,
      -32602,
      "invalidParams",
      #""pointer":"/cursor""#
    ),
    Case(
      "another application",
      #""decodeRestorableState","params":{"application":"b","object":["Main"]}"#,
      -32602,
      "invalidParams",
      #""pointer":"/application""#
    ),
    Case(
      "an unknown session",
      #""decodeRestorableState","params":{"session":"00000000000000000000000000000000","object":["Main"]}"#,
      -32602,
      "invalidParams",
      #""pointer":"/session""#
    ),
    Case("a state's member given twice", encode(#"{"a":1,"a":2}"#), -32602, "invalidParams"),
    Case("a second initialize", #""initialize","params":{"application":"a"}"#, -32600, "invalidRequest"),
    Case(
      "a child named twice",
      [
        register(#""restorationIdentifier":"T","restorationParent":["Main"]"#),
        #""setChildren","params":{"object":["Main"],"children":[["Main","T"],["Main","T"]]}"#,
      ],
      -32602,
      "invalidParams",
      #""pointer":"/children/1""#
    ),
    Case(
      "no child at all",
      #""setChildren","params":{"object":["Main"],"children":[["Main"]]}"#,
      -32602,
      "invalidParams",
      #""pointer":"/children/0""#
    ),
  ]

  static let restoration: [Case] = [
    Case(
      "an unknown path",
      #""decodeRestorableState","params":{"object":["No","Body"]}"#,
      -32002,
      "unknownObject",
      #""path":["No","Body"]"#
    ),
    Case("an unknown handle", #""decodeRestorableState","params":{"object":987654321}"#, -32002, "unknownObject"),
    Case("an empty identifier", register(#""restorationIdentifier":"""#), -32004, "invalidIdentifier"),
    Case("an identifier with a slash", register(#""restorationIdentifier":"a/b""#), -32004, "invalidIdentifier"),
    Case("an identifier with a number sign", register(#""restorationIdentifier":"a#1""#), -32004, "invalidIdentifier"),
    Case(
      "an identifier with a control character",
      register(##""restorationIdentifier":"a\u0007""##),
      -32004,
      "invalidIdentifier"
    ),
    Case(
      "an identifier of 256 bytes",
      register(#""restorationIdentifier":"\#(String(repeating: "é", count: 128))""#),
      -32004,
      "invalidIdentifier"
    ),
    Case("a plain object without identifier", register(#""kind":"object""#), -32004, "invalidIdentifier"),
    Case(
      "an unknown parent",
      register(#""restorationIdentifier":"A","restorationParent":["X","Y"]"#),
      -32005,
      "unknownParent",
      #""path":["X","Y"]"#
    ),
    Case(
      "a parent that does not come in time",
      register(#""restorationIdentifier":"A","restorationParent":["X"],"awaitParentMilliseconds":50"#),
      -32005,
      "unknownParent",
      #""path":["X"]"#
    ),
    Case(
      "an object as its own parent",
      #""setRestorationParent","params":{"object":["Main"],"restorationParent":["Main"]}"#,
      -32006,
      "parentCycle",
      #""path":["Main"]"#
    ),
    Case(
      "a descendant as the parent",
      [
        register(#""restorationIdentifier":"A","restorationParent":["Main"]"#),
        register(#""restorationIdentifier":"B","restorationParent":["Main","A"]"#),
        #""setRestorationParent","params":{"object":["Main"],"restorationParent":["Main","A","B"]}"#,
      ],
      -32006,
      "parentCycle"
    ),
    Case(
      "a reserved key",
      encode(#"{"UIApplicationStateRestorationX":1}"#),
      -32007,
      "reservedKey",
      #""pointer":"/state/UIApplicationStateRestorationX","path":["Main"]"#
    ),
    Case(
      "another reserved key",
      encode(#"{"ok":1,"UIStateRestoration":null}"#),
      -32007,
      "reservedKey",
      #""pointer":"/state/UIStateRestoration""#
    ),
    Case(
      "an escaped reserved key",
      encode(##"{"\u0055IStateRestoration~/":1}"##),
      -32007,
      "reservedKey",
      #""pointer":"/state/UIStateRestoration~0~1""#
    ),
    Case("a reference to nothing", encode(#"{"list":[{"to":{"$restorable":["No"]}}]}"#), -32015, "invalidReference"),
    Case("a reference that is no reference", encode(#"{"to":{"$restorable":true}}"#), -32015, "invalidReference"),
    Case("a reference to an unknown handle", encode(#"{"to":{"$restorable":123456789}}"#), -32015, "invalidReference"),
    Case(
      "generations without force",
      #""discardApplicationState","params":{"generations":true}"#,
      -32020,
      "needsForce"
    ),
    Case(
      "a vacant path with a state of its own in the way",
      [
        #""encodeRestorableState","params":{"object":["Other"],"state":{"n":1}}"#, encode(#"{"n":2}"#),
        #""setRestorationIdentifier","params":{"object":["Main"],"restorationIdentifier":"Other"}"#,
      ],
      -32003,
      "duplicatePath",
      #""path":["Other"]"#
    ),
  ]

  @Test(arguments: parameters + restoration)
  func aWrongCallFailsAndSaysWhy(_ wrong: Case) async throws {
    try await withBroker { broker in
      let client = try broker.session("a")
      try client.call("registerObjectForStateRestoration", ["restorationIdentifier": "Main"])
      for (index, call) in wrong.calls.enumerated() {
        try client.send(#"{"jsonrpc":"2.0","id":\#(index + 1),"method":\#(call)}"#)
        let answer = try client.receive()
        if index == wrong.calls.count - 1 {
          try wrong.error.check(answer)
        } else {
          try MessagePattern.result("\(index + 1)").check(answer)
        }
      }
      // An error leaves everything as it was.
      try client.send(#"{"jsonrpc":"2.0","id":99,"method":"describeApplication"}"#)
      try MessagePattern.result("99", #"{"application":"a"}"#).check(try client.receive())
    }
  }

  /// Calls that need no session, or must not have one.
  static let bare: [Case] = [
    Case("no application", #""decodeRestorableState","params":{"object":["A"]}"#, -32001, "notInitialized"),
    Case(
      "no application in a registration",
      #""registerObjectForStateRestoration","params":{"restorationIdentifier":"A"}"#,
      -32001,
      "notInitialized"
    ),
    Case("goodbye without a session", #""goodbye","params":{"reason":"closed"}"#, -32001, "notInitialized"),
    Case(
      "an application that is none",
      #""describeApplication","params":{"application":"nobody"}"#,
      -32018,
      "unknownApplication"
    ),
    Case(
      "generations of an application that is none",
      #""listGenerations","params":{"application":"nobody"}"#,
      -32018,
      "unknownApplication"
    ),
    Case(
      "an archive of an application that is none",
      #""readArchive","params":{"application":"nobody"}"#,
      -32018,
      "unknownApplication"
    ),
    Case(
      "discarding an application that is none",
      #""discardApplicationState","params":{"application":"nobody"}"#,
      -32018,
      "unknownApplication"
    ),
    Case(
      "a bad application name",
      #""initialize","params":{"application":"a b"}"#,
      -32602,
      "invalidParams",
      #""pointer":"/application""#
    ),
    Case(
      "an application name that climbs",
      #""initialize","params":{"application":"../a"}"#,
      -32602,
      "invalidParams",
      #""pointer":"/application""#
    ),
    Case(
      "an application name of 129 characters",
      #""initialize","params":{"application":"\#(String(repeating: "a", count: 129))"}"#,
      -32602,
      "invalidParams",
      #""pointer":"/application""#
    ),
    Case(
      "an unknown name in serves",
      #""initialize","params":{"application":"a","serves":["pathChanged","pathMoved"]}"#,
      -32602,
      "invalidParams",
      #""pointer":"/serves/1""#
    ),
    Case(
      "protocol version 2",
      #""initialize","params":{"application":"a","protocolVersion":2}"#,
      -32016,
      "unsupportedProtocolVersion",
      #""supported":[1]"#
    ),
    Case(
      "an instance given twice over",
      #""initialize","params":{"application":"a@one","instance":"two"}"#,
      -32602,
      "invalidParams"
    ),
  ]

  @Test(arguments: bare)
  func aWrongFirstCallFailsAndSaysWhy(_ wrong: Case) async throws {
    try await withBroker { broker in
      let client = try broker.connect()
      try client.send(#"{"jsonrpc":"2.0","id":1,"method":\#(wrong.calls[0])}"#)
      try wrong.error.check(try client.receive())
      #expect(try client.call("listApplications") == ["applications": []], "an error leaves nothing behind")
    }
  }

  @Test func anObjectOfAnotherSessionCannotBeWritten() async throws {
    try await withBroker { broker in
      let owner = try broker.session("a", process: "owner")
      try owner.call("registerObjectForStateRestoration", ["restorationIdentifier": "Main"])
      let other = try broker.session("a", process: "other")
      let calls: [(String, JSONValue)] = [
        ("encodeRestorableState", ["object": .path("Main"), "state": [:]]),
        ("unregisterObject", ["object": .path("Main")]),
        ("setRestorationParent", ["object": .path("Main"), "restorationParent": nil]),
        ("setRestorationIdentifier", ["object": .path("Main"), "restorationIdentifier": "Other"]),
        ("setChildren", ["object": .path("Main"), "children": []]),
      ]
      for (method, parameters) in calls {
        let error = try other.failure(method, parameters)
        #expect(error.code == Int64(ErrorCode.notOwner.rawValue), "\(method): \(error)")
        #expect(error.data["path"] == .path("Main"))
      }
    }
  }

  /// R9
  @Test func aSecondDelegateIsRefused() async throws {
    try await withBroker { broker in
      let first = try broker.session("a", process: "one", ["delegate": true])
      let second = try broker.connect()
      let error = try second.failure("initialize", ["application": "a", "process": "two", "delegate": true])
      #expect(error.kind == "alreadyServed")
      #expect(error.data["owners"]?.array?.first?["process"] == "one")
      try first.call("goodbye", ["reason": "restart"])
      try second.call("initialize", ["application": "a", "process": "two", "delegate": true])
    }
  }
}
