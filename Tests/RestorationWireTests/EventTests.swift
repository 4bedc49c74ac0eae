// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

/// The envelope of an event; `LawTests` check its own members.
@Suite struct EventWireTests {
  @Test(arguments: EventName.allCases)
  func anEventIsWrittenWithItsName(_ name: EventName) throws {
    let application = try #require(ApplicationName("App@2"))
    let facts = EventNotification.facts(of: name)
    let members = DescribedObject(type: facts).text().dropFirst()
    let event = try facts.init(wire: slice("{" + members))
    let text = EventNotification(subscription: 4, application: application, event: event).parameters.string
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
    let text = EventNotification(subscription: 1, application: nil, event: EventsLost(lost: 12)).parameters.string
    #expect(text == #"{"subscription":1,"name":"eventsLost","lost":12}"#)
  }

  @Test func namesLeadToTheirEvents() {
    for name in EventName.allCases { #expect(EventNotification.facts(of: name).name == name) }
  }
}
