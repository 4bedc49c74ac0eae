// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// A message, or a part of messages, that says its members once.
struct DescribedObject: CustomTestStringConvertible {
  let type: any WireObject.Type

  var testDescription: String { String(reflecting: type) }

  /// Members that older brokers leave out although they are always there now.
  var later: Set<String> {
    switch type {
    case is ObjectDescription.Type: ["confidential"]
    case is ApplicationOverview.Type: ["restoreAtLogin", "units"]
    case is ReservedKeys.Type: ["UIApplicationStateRestorationUserInterfaceIdiomKey"]
    case is DecodeRestorableStateWithCoder.Content.Type: ["elements"]
    case is BrokerStatistics.Type: ["durations"]
    case is DecodeRestorableState.Reply.Type: ["elements", "sequence"]
    default: []
    }
  }

  /// Whether reading fails without the member. In a result, a nullable member may be absent as well.
  func isMissed(_ member: Schema.Member) -> Bool {
    let isMeantToBeThere = !member.schema.isNullable || type is any RestorationMethod.Type
    return member.isRequired && isMeantToBeThere && !later.contains(member.name)
  }

  func misfits(of member: Schema.Member) -> [String] {
    switch member.name {
    // Brokers say 0 of a process that they do not know.
    case "pid": member.schema.misfits.filter { $0 != "0" }
    // A text that is no identifier has an error of its own (R1).
    case "restorationIdentifier": ["7"]
    default: member.schema.misfits
    }
  }

  /// The text of one with the first sample of each member, but for `changes`: another text, or `nil` for none.
  func text(with changes: [String: String?] = [:]) -> String {
    let texts = type.members.compactMap { member in
      changes[member.name, default: member.schema.samples[0]].map { "\"\(member.name)\":\($0)" }
    }
    return "{\(texts.joined(separator: ","))}"
  }

  static let all = (methods + replies + events + notifications + calls + parts).map { DescribedObject(type: $0) }

  /// Those that the broker sends. What a client gave as `storyboard` is the client's.
  static let toClients = all.filter { !($0.type is any RestorationMethod.Type) && $0.type != Storyboard.self }

  private static let methods: [any WireObject.Type] = MethodTable.methods.map { $0 }

  private static let replies: [any WireObject.Type] = {
    func reply<Method: RestorationMethod>(_: Method.Type) -> (any WireObject.Type)? {
      Method.Reply.self as? any WireObject.Type
    }
    return MethodTable.methods.compactMap { reply($0) }
  }()

  private static let events: [any WireObject.Type] = EventName.allCases.map { EventNotification.facts(of: $0) }

  private static let notifications: [any WireObject.Type] = ServedMethod.allCases.compactMap {
    if case .notification(let type) = $0.form { type } else { nil }
  }

  private static let calls: [any WireObject.Type] = ServedMethod.allCases.compactMap {
    if case .call(let type) = $0.form { type } else { nil }
  }

  private static let parts: [any WireObject.Type] = [
    Aliases.self, ApplicationOverview.self, ArchiveProblem.self, ArchivedObject.self, BrokerVersion.self,
    DecodeRestorableStateWithCoder.Content.self, RestorableElement.self, EncodeRestorableStateWithCoder.Answer.self,
    EncodeRestorableStateWithCoder.Object.self, ExcludedObject.self, GenerationDescription.self,
    ObjectDescription.self, ObjectDifference.self, ObjectOwner.self, ObjectRestoration.self, PolledRequest.self,
    ProcessOutcome.self, QuarantinedObject.self, QuarantinedState.self, ReservedKeys.self, RestorationSituation.self,
    FailedUnit.self, SkippedObject.self, SessionDescription.self,
    SessionIdentity.self, StaleObject.self, Storyboard.self,
  ]
}

/// What holds for everything that describes itself, found out from the description alone.
@Suite struct LawTests {
  @Test(arguments: DescribedObject.all)
  func everyMemberIsWrittenAsItWasRead(_ object: DescribedObject) throws {
    for member in object.type.members {
      var wasWritten = false
      for sample in member.schema.samples {
        let sent = object.text(with: [member.name: sample])
        let value = try object.type.init(wire: slice(sent))
        let written = value.text.string
        #expect(isKept(try parse(sent), try parse(written)), "\(sent) became \(written)")
        #expect(try object.type.init(wire: slice(written)).text.string == written)
        wasWritten = try parse(written)[member.name] != nil || wasWritten
        if member.isRequired { #expect(try parse(written)[member.name] != nil, "\(member.name)") }
      }
      #expect(wasWritten, "\(member.name)")
    }
  }

  @Test(arguments: DescribedObject.all)
  func onlyARequiredMemberIsMissed(_ object: DescribedObject) throws {
    for member in object.type.members {
      let without = object.text(with: [member.name: nil])
      let null = object.text(with: [member.name: "null"])
      if object.isMissed(member) {
        #expect(throws: Misfit(.missing, at: member.name), "\(without)") { try object.type.init(wire: slice(without)) }
        if member.schema.admitsNull {
          #expect(throws: Never.self, "\(null)") { try object.type.init(wire: slice(null)) }
        } else {
          let misfit = #expect(throws: Misfit.self, "\(null)") { try object.type.init(wire: slice(null)) }
          #expect(misfit?.place == member.name)
        }
      } else {
        let written = try object.type.init(wire: slice(without)).text.string
        if !member.schema.isAny {
          #expect(try object.type.init(wire: slice(null)).text.string == written, "\(member.name)")
        }
      }
    }
  }

  @Test(arguments: DescribedObject.all)
  func aMisfitSaysItsPlace(_ object: DescribedObject) throws {
    for member in object.type.members {
      for wrong in object.misfits(of: member) {
        let sent = object.text(with: [member.name: wrong])
        let misfit = #expect(throws: Misfit.self, "\(sent)") { try object.type.init(wire: slice(sent)) }
        let place = misfit?.place ?? ""
        #expect(place == member.name || place.hasPrefix("\(member.name)/"), "\(place) in \(sent)")
        #expect(misfit?.fault != .missing, "\(sent)")
      }
    }
  }

  @Test(arguments: DescribedObject.all)
  func membersThatLaterVersionsAddAreIgnored(_ object: DescribedObject) throws {
    let sent = object.text()
    let more = sent == "{}" ? #"{"x-later":[{}]}"# : sent.dropLast() + #","x-later":[{}]}"#
    #expect(try object.type.init(wire: slice(more)).text == object.type.init(wire: slice(sent)).text)
  }

  @Test(arguments: DescribedObject.all, ["7", "[]", "null", #""{}""#])
  func onlyAnObjectIsRead(_ object: DescribedObject, _ other: String) throws {
    #expect(throws: Misfit(object.type.expected)) { try object.type.init(wire: slice(other)) }
  }

  @Test(arguments: MethodTable.methods.map { $0.method })
  func aCallByPositionIsTheCallByName(_ name: String) throws {
    let method = try #require(MethodTable.methods.first { $0.method == name })
    for drop in 0...method.members.count where method.members.dropFirst(drop).allSatisfy({ !$0.isRequired }) {
      let given = method.members.prefix(drop)
      let named = given.map { "\"\($0.name)\":\($0.schema.samples[0])" }.joined(separator: ",")
      let positional = given.map { $0.schema.samples[0] }.joined(separator: ",")
      let expected = try method.init(wire: slice("{\(named)}")).text
      var members = MemberReader(try parameters("[\(positional)]"))
      var call = method.init()
      try call.walk(&members)
      #expect(call.text == expected, "[\(positional)]")
    }
  }

  /// What a confined client gets.
  @Test(arguments: DescribedObject.toClients)
  func nothingConcealedNamesAProcessOrAUnit(_ object: DescribedObject) throws {
    for member in object.type.members {
      for sample in member.schema.samples {
        let value = try object.type.init(wire: slice(object.text(with: [member.name: sample])))
        let concealed = value.concealed.text.string
        for found in try Self.ofHost(parse(concealed)) { Issue.record("\(found) in \(concealed)") }
        // Reading it is possible.
        _ = try object.type.init(wire: slice(concealed))
      }
    }
  }

  /// Members that name a process or unit. What a client gave as `storyboard` is the client's.
  private static func ofHost(_ value: JSONValue) -> [String] {
    switch value {
    case .object(let object):
      object.members.flatMap { name, value in
        switch name {
        case "storyboard", "UIStateRestorationViewControllerStoryboardKey": [String]()
        case "pid", "unit", "units": [.null, 0, "", []].contains(value) ? [] : [name]
        default: ofHost(value)
        }
      }
    case .array(let values): values.flatMap(ofHost)
    default: []
    }
  }

  /// Calls of the broker are not concealed.
  @Test func noCallNamesAProcess() {
    for served in ServedMethod.allCases {
      guard case .call(let type) = served.form else { continue }
      #expect(!type.members.contains { $0.schema.samples.contains { $0.contains("\"pid\"") } || $0.name == "pid" })
    }
  }

  @Test func anErrorIsConcealedWithoutItsOwnersAndFiles() {
    let owner = ObjectOwner(process: "editor", pid: 7)
    let details: JSONObject = ["owners": [owner.json], "pointer": "/x"]
    let error = ErrorObject.restoration(.notOwner, "it is of editor (7)", hint: "Go.", path: ["A"], details: details)
    let concealed = error.concealed
    #expect(concealed.code == error.code && concealed.message == ErrorCode.notOwner.summary)
    #expect(concealed.data == ["kind": "notOwner", "hint": "Go.", "path": ["A"], "owners": [], "pointer": "/x"])
    let full = ErrorObject.restoration(.storeFailed, "/x: disk full", hint: "Go.", details: ["indeterminate": true])
    #expect(full.concealed.message == ErrorCode.storeFailed.summary && full.concealed.data == full.data)
    let limit = ErrorObject.limitExceeded("batchMax", max: 1, value: 2)
    #expect(limit.concealed == limit)
    let place: JSONObject = ["host": "tower", "since": "2026-02-28T09:05:00.042Z"]
    for code in [ErrorCode.ownedElsewhere, .fenced] {
      let elsewhere = ErrorObject.restoration(code, "it is on tower", hint: "Go.", details: place).concealed
      #expect(elsewhere.message == code.summary)
      #expect(elsewhere.data == ["kind": .string(code.kind), "hint": "Go.", "host": .null, "since": .null])
    }
  }

  @Test func whatAllApplicationsHaveTogetherIsConcealed() {
    for limit in ["applicationsMax", "openArchivesMax", "allArchivesBytesMax"] {
      let error = ErrorObject.limitExceeded(limit, max: 1, value: 7_777)
      #expect(error.concealed == ErrorObject.limitExceeded(limit, max: 1, value: 2))
      let full = ErrorObject.limitExceeded(limit, max: 1, value: 7_777, hint: Optional("Give up some."))
      #expect(full.concealed == ErrorObject.limitExceeded(limit, max: 1, value: 2, hint: Optional("Give up some.")))
    }
  }

  @Test func aProblemOfAnArchiveIsConcealedWithoutItsMessage() {
    #expect(ArchiveProblem(.file, "/x: permission denied").concealed == ArchiveProblem(.file, ""))
  }

  @Test func namesOfMembersAreUniqueInEachObject() {
    for object in DescribedObject.all {
      let names = object.type.members.map(\.name)
      #expect(Set(names).count == names.count, "\(object.type)")
    }
  }

  // MARK: Texts

  private func parse(_ text: String) throws -> JSONValue { try JSONCodec.parse(Array(text.utf8)) }

  /// Whether `written` is `sent`, but for members of objects that are left out.
  private func isKept(_ sent: JSONValue, _ written: JSONValue) -> Bool {
    switch (sent, written) {
    case (.object(let sent), .object(let written)):
      let kept = sent.members.filter { written[$0.name] != nil }
      return kept.map(\.name) == written.members.map(\.name)
        && zip(kept, written.members).allSatisfy { isKept($0.value, $1.value) }
    case (.array(let sent), .array(let written)):
      return sent.count == written.count && zip(sent, written).allSatisfy { isKept($0, $1) }
    default:
      return sent == written
    }
  }
}

extension Schema {
  fileprivate var isNullable: Bool { if case .nullable = self { true } else { false } }

  /// Whether null is a value like another.
  fileprivate var isAny: Bool { if case .any = self { true } else { false } }
}
