// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

/// Names and members of events are what the protocol says, in both directions.
@Suite struct EventWireTests {
  private static let session = SessionIdentity(process: "editor", pid: 7)

  /// One of each, with the members it is written with.
  static let events: [(any RestorationEvent, String)] = [
    (
      SessionBegan().with {
        $0.session = session
        $0.delegate = true
        $0.detached = false
        $0.restoration = SessionBegan.Restoration(state: .available, reason: .recover)
      },
      #""process":"editor","pid":7,"delegate":true,"detached":false,"#
        + #""restoration":{"state":"available","reason":"recover"}"#
    ),
    (
      SessionEnded().with {
        $0.session = SessionIdentity()
        $0.ending = .crashed
        $0.objects = 3
      },
      #""process":null,"pid":null,"ending":"crashed","objects":3,"how":null,"code":null,"signal":null,"unit":null"#
    ),
    (
      SessionEnded().with {
        $0.session = session
        $0.ending = .stopped
        $0.objects = 0
        $0.outcome = ProcessOutcome(.exited, code: 7, signal: "SIGTERM", unit: "a.service")
      },
      #""process":"editor","pid":7,"ending":"stopped","objects":0,"how":"exited","code":7,"signal":"SIGTERM","#
        + #""unit":"a.service""#
    ),
    (
      ObjectRegistered().with {
        $0.object = 9
        $0.path = ["Main", "é"]
        $0.kind = .view
        $0.session = session
      },
      #""object":9,"path":["Main","é"],"kind":"view","process":"editor","pid":7"#
    ),
    (
      ObjectUnregistered().with {
        $0.object = 9
        $0.path = nil
        $0.session = session
        $0.cause = .replaced
        $0.stateKept = true
      },
      #""object":9,"path":null,"process":"editor","pid":7,"cause":"replaced","stateKept":true"#
    ),
    (ObjectMoved().with {
      $0.object = nil
      $0.from = nil
      $0.path = ["A"]
    }, #""object":null,"from":null,"path":["A"]"#),
    (
      StateEncoded().with {
        $0.object = 9
        $0.path = ["A"]
        $0.bytes = 13
        $0.sequence = 4
        $0.session = session
      },
      #""object":9,"path":["A"],"bytes":13,"sequence":4,"process":"editor","pid":7"#
    ),
    (
      EncodeFailed().with {
        $0.object = nil
        $0.path = ["A"]
        $0.session = session
        $0.error = EncodeFailed.Failure(ErrorObject.limitExceeded("stateBytesMax", max: 4, value: 5))
      },
      #""object":null,"path":["A"],"process":"editor","pid":7,"error":{"code":-32008,"kind":"limitExceeded","#
        + #""limit":"stateBytesMax","max":4,"value":5}"#
    ),
    (
      EncodeFailed().with {
        $0.object = 9
        $0.path = nil
        $0.session = session
        $0.error = EncodeFailed.Failure(ErrorObject.restoration(.reservedKey, "the key UIX is reserved", hint: "h"))
      },
      #""object":9,"path":null,"process":"editor","pid":7,"error":{"code":-32007,"kind":"reservedKey"}"#
    ),
    (
      GenerationSealed().with {
        $0.generation = 3
        $0.kind = "startup"
        $0.objects = 2
        $0.bytes = 40
      },
      #""generation":3,"kind":"startup","objects":2,"bytes":40"#
    ),
    (
      ArchiveOpened().with {
        $0.archive = "u"
        $0.generation = nil
        $0.objects = 2
        $0.bytes = 40
      },
      #""archive":"u","generation":null,"objects":2,"bytes":40"#
    ),
    (ArchiveClosed(), ""),
    (ArchiveDamaged().with { $0.message = "m" }, #""message":"m""#),
    (ArchiveUnreadable().with { $0.message = "m" }, #""message":"m""#),
    (ArchiveImported().with { $0.objects = 2; $0.bytes = 40 }, #""objects":2,"bytes":40"#),
    (
      RestorationCrashed().with {
        $0.session = session
        $0.objects = 3
        $0.suspects = 1
        $0.guilty = ["A"]
        $0.strikes = 2
      },
      #""process":"editor","pid":7,"objects":3,"suspects":1,"guilty":["A"],"strikes":2"#
    ),
    (StateQuarantined().with { $0.object = nil; $0.path = ["A"] }, #""object":null,"path":["A"]"#),
    (ArchiveQuarantined().with { $0.objects = 9 }, #""objects":9"#),
    (QuarantineEnded().with {
      $0.cause = .released
      $0.path = nil
      $0.objects = 9
    }, #""cause":"released","path":null,"objects":9"#),
    (
      ApplicationDiscarded().with {
        $0.cause = .discarded
        $0.reason = nil
        $0.generations = true
      },
      #""cause":"discarded","reason":null,"generations":true"#
    ),
  ]

  @Test func everyEventIsWrittenAndReadAsTheProtocolSays() throws {
    let application = try #require(ApplicationName("App@2"))
    for (event, members) in Self.events {
      let notification = EventNotification(subscription: 4, application: application, event: event)
      let text = notification.parameters.string
      let begin = #"{"subscription":4,"name":"\#(type(of: event).name.rawValue)","application":"App@2""#
      #expect(text == begin + (members.isEmpty ? "" : ",") + members + "}")
      let read = try #require(try EventNotification(slice(text)), "\(text)")
      #expect(read.subscription == 4)
      #expect(read.application == application)
      #expect(read.parameters.string == text)
    }
    #expect(Set(Self.events.map { type(of: $0.0).name }).union([.eventsLost]) == Set(EventName.allCases))
  }

  @Test func aLossIsOfNoApplication() throws {
    let text = EventNotification(subscription: 1, application: nil, event: EventsLost(lost: 12)).parameters.string
    #expect(text == #"{"subscription":1,"name":"eventsLost","lost":12}"#)
    #expect(try EventNotification(slice(text))?.event as? EventsLost == EventsLost(lost: 12))
  }

  @Test(arguments: [
    "{}", "[]", #"{"subscription":1,"name":"somethingNew","application":"a"}"#,
    #"{"subscription":"1","name":"archiveClosed"}"#, #"{"subscription":1,"name":"eventsLost"}"#,
    #"{"subscription":1,"name":"sessionEnded","application":"a","ending":"vanished","objects":1}"#,
  ])
  func otherValuesAreNoEvent(_ text: String) throws {
    #expect(try EventNotification(slice(text)) == nil)
  }

  @Test func namesLeadToTheirEvents() {
    for name in EventName.allCases { #expect(EventNotification.facts(of: name).name == name) }
  }

  @Test func theProtocolsPageListsEveryEventWithItsMembers() throws {
    let page = try ProtocolPageTests.page("notifications.md")
    var members: [EventName: Set<String>] = [.eventsLost: ["lost"]]
    for (event, _) in Self.events {
      let parameters = EventNotification(subscription: 1, application: nil, event: event).parameters.string
      members[type(of: event).name, default: []].formUnion(
        try (slice(parameters).members ?? []).map(\.name).filter { !["subscription", "name"].contains($0) }
      )
    }
    for (name, members) in members {
      let row = try #require(page.split(separator: "\n").first { $0.hasPrefix("| `\(name.rawValue)` |") }, "\(name)")
      for member in members { #expect(row.contains("`\(member)`"), "\(name).\(member)") }
    }
  }
}
