// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Synchronization
internal import Testing

/// The envelope of an event; `LawTests` check its own members.
@Suite struct EventWireTests {
  @Test(arguments: EventName.allCases)
  func anEventIsWrittenWithItsName(_ name: EventName) throws {
    let application = try #require(ApplicationName("App@2"))
    let facts = EventNotification.facts(of: name)
    let members = DescribedObject(type: facts).text().dropFirst()
    let event = try facts.init(wire: slice("{" + members))
    let text = EventNotification(application: application, event: event).parameters(for: 4).string
    let begin = #"{"subscription":4,"name":"\#(name.rawValue)","application":"App@2""#
    #expect(text == begin + (members == "}" ? "" : ",") + members)
  }

  @Test func aRefusedEncodeSaysWhatTheAnswerWouldHaveSaid() {
    let limit = EncodeFailed.Failure(ErrorObject.limitExceeded("stateBytesMax", max: 4, value: 5))
    #expect(limit.text.string == #"{"code":-32008,"kind":"limitExceeded","limit":"stateBytesMax","max":4,"value":5}"#)
    let key = EncodeFailed.Failure(ErrorObject.restoration(.reservedKey, "the key UIX is reserved", hint: "h"))
    #expect(key.text.string == #"{"code":-32007,"kind":"reservedKey"}"#)
  }

  @Test func aLossIsOfNoApplication() {
    let text = EventNotification(application: nil, event: EventsLost(lost: 12)).parameters(for: 1).string
    #expect(text == #"{"subscription":1,"name":"eventsLost","lost":12}"#)
  }

  /// Thousands of subscriptions may get it.
  @Test func anEventIsWrittenOnceForAllSubscriptions() {
    let notification = EventNotification(application: nil, event: CountedEvent())
    let texts = (1...100).map { notification.parameters(for: $0).string }
    #expect(texts == (1...100).map { #"{"subscription":\#($0),"name":"archiveClosed","a":1}"# })
    #expect(CountedEvent.walks.load(ordering: .relaxed) == 1)
  }

  @Test func namesLeadToTheirEvents() {
    for name in EventName.allCases { #expect(EventNotification.facts(of: name).name == name) }
  }
}

private struct CountedEvent: RestorationEvent {
  static let name = EventName.archiveClosed
  static let summary = "How often it is written."
  static let walks = Atomic(0)
  private var a = Int64(1)

  mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    Self.walks.add(1, ordering: .relaxed)
    try members.required("a", &a, "")
  }
}
