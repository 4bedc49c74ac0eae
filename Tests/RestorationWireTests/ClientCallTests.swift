// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

/// Calls of the broker to clients, and the steps that explain what became of an object.
@Suite struct ClientCallTests {
  @Test func aStepOfALaterVersionIsPassedOver() throws {
    #expect(SavingStep(try slice(#"{"step":"teleported"}"#)) == nil)
    #expect(RestoringStep(try slice(#"{"step":"teleported"}"#)) == nil)
  }

  @Test func anEncodedObjectIsAStateAFailureOrLaterAndNothingElse() throws {
    let text = """
      {"states":[{"object":1,"state":{"a":1},"elements":[{"role":"selected","indexPath":[0]}],"revision":2},
      {"object":2,"error":{"message":"busy"}},{"object":3,"later":true},{"object":4},{"object":5,"state":7},
      {"object":6,"state":{"a":1,"a":2}},{"object":7,"state":{},"revision":0},
      {"object":8,"unchanged":true}]}
      """
    let answer = try #require(EncodeRestorableStateWithCoder.Answer(try slice(text)))
    let words = answer.states.map { entry in
      switch entry.outcome {
      case .encoded(let encoded):
        "\(entry.object) \(encoded.state.text.string) \(encoded.elements.count) \(encoded.revision ?? 0)"
      case .failed(let why): "\(entry.object) \(why)"
      case .later: "\(entry.object) later"
      case .unchanged: "\(entry.object) unchanged"
      case .malformed: "\(entry.object) malformed"
      }
    }
    #expect(
      words == [
        #"1 {"a":1} 1 2"#, "2 busy", "3 later", "4 malformed", "5 malformed", "6 malformed", "7 malformed",
        "8 unchanged",
      ]
    )
    for garbage in ["[]", "{}", "7", #"{"states":[7]}"#, #"{"states":[{"state":{}}]}"#] {
      #expect(EncodeRestorableStateWithCoder.Answer(try slice(garbage)) == nil)
    }
  }

  @Test func aFactoryAnswersWithAHandleWithNullWithAwaitedOrWithPass() throws {
    let answers: [(text: String, meaning: LocatedObject?)] = [
      ("null", .refused), (#"{"object":null}"#, .refused), (#"{"object":9}"#, .object(9)), (#"{"object":"9"}"#, nil),
      ("{}", nil), (#"{"awaited":true}"#, .awaited), (#"{"awaited":false}"#, nil), (#"{"pass":true}"#, .passed),
      (#"{"pass":false}"#, nil), (#"{"object":null,"forget":true}"#, .forgotten), (#"{"object":null,"forget":1}"#, nil),
    ]
    for answer in answers { #expect(LocatedObject(try slice(answer.text)) == answer.meaning, "\(answer.text)") }
    #expect(
      [.refused, .object(9), .awaited, .passed].map { ($0 as LocatedObject).text.string } == [
        "null", #"{"object":9}"#, #"{"awaited":true}"#, #"{"pass":true}"#,
      ]
    )
  }

  @Test func objectsToBeDecodedComeWholeOrDeferred() throws {
    let call = DecodeRestorableStateWithCoder().with {
      $0.objects = [.init(object: 1, path: ["A"], content: .init()), .init(object: 2, path: nil, content: nil)]
    }
    let text = call.text.string
    #expect(
      text == #"{"objects":[{"object":1,"path":["A"],"state":{},"coder":null,"elements":[]},"#
        + #"{"object":2,"path":null,"deferred":true}]}"#
    )
    #expect(try DecodeRestorableStateWithCoder(wire: slice(text)).objects == call.objects)
  }

  @Test func namesLeadToTheirCallsAndNotifications() {
    for name in ServedMethod.allCases {
      switch name.form {
      case .call(let call): #expect(call.method == name)
      case .notification(let notification): #expect(notification.method == name)
      case .event: #expect(name.rawValue == EventNotification.method)
      }
    }
  }

  @Test(arguments: [
    #"{"progressToken":"\u0061","done":1,"total":2,"message":"m"}"#,
    #"{"progressToken":18446744073709551616,"done":1}"#,
  ])
  func aProgressTokenIsEchoedByteForByte(_ text: String) throws {
    #expect(try ArchiveProgress(wire: slice(text)).text.string == text)
  }

  @Test(arguments: ["null", "1.5", #""\#(String(repeating: "x", count: 1_023))""#])
  func whatIsNoProgressTokenIsRefused(_ token: String) throws {
    let misfit = Misfit(ProgressToken.expected, at: "progressToken")
    #expect(throws: misfit) { try ArchiveProgress(wire: slice(#"{"progressToken":\#(token),"done":1}"#)) }
  }

  @Test func anElementIsFoundOrNot() throws {
    #expect(try IndexPathForElementWithModelIdentifier.Answer(wire: slice("[0,3]")) == [0, 3])
    #expect(IndexPathForElementWithModelIdentifier.Answer(try slice("[-1]")) == nil)
    #expect(try ModelIdentifierForElementAtIndexPath.Answer(wire: slice("null")) == nil)
  }
}
