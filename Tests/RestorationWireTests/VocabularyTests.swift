// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

@Suite struct ReservedKeysTests {
  @Test func aCoderHoldsUIKitsKeys() {
    let keys = ReservedKeys().with {
      $0.bundleVersion = "1.2"
      $0.userInterfaceIdiom = 1
      $0.timestamp = Timestamp(milliseconds: 42)
      $0.systemVersion = "12"
      $0.storyboard = "editor.service"
    }
    #expect(
      keys.text.string
        == #"{"UIApplicationStateRestorationBundleVersionKey":"1.2","#
        + #""UIApplicationStateRestorationUserInterfaceIdiomKey":1,"#
        + #""UIApplicationStateRestorationTimestampKey":"1970-01-01T00:00:00.042Z","#
        + #""UIApplicationStateRestorationSystemVersionKey":"12","#
        + #""UIStateRestorationViewControllerStoryboardKey":{"unit":"editor.service"}}"#
    )
  }

  @Test func whatASessionDidNotSayIsAbsent() {
    let keys = ReservedKeys()
    #expect(
      keys.text.string
        == #"{"UIApplicationStateRestorationUserInterfaceIdiomKey":-1,"#
        + #""UIApplicationStateRestorationTimestampKey":"1970-01-01T00:00:00.000Z"}"#
    )
  }

  @Test(arguments: [
    ReservedKeys(),
    ReservedKeys().with {
      $0.bundleVersion = "é\""
      $0.userInterfaceIdiom = .min
      $0.timestamp = Timestamp(milliseconds: 9)
      $0.systemVersion = "12"
      $0.storyboard = "u"
    },
  ])
  func aCoderIsReadAsItWasWritten(_ keys: ReservedKeys) throws {
    #expect(try ReservedKeys(wire: slice(keys.text.string)) == keys)
  }

  @Test(arguments: ["{}", "[]", #"{"UIApplicationStateRestorationTimestampKey":0}"#])
  func otherValuesAreNoCoder(_ text: String) throws {
    #expect(throws: Misfit.self) { try ReservedKeys(wire: slice(text)) }
  }

  @Test func everyKeyHasAReservedPrefix() {
    for key in ReservedKeys.members.map(\.name) {
      #expect(EncodedState.reservedPrefixes.contains { key.hasPrefix($0) })
    }
  }
}

@Suite struct ElementTests {
  @Test func elementsAreReadAsTheyWereWritten() throws {
    let element = RestorableElement(role: .selected, indexPath: [0, 3], identifier: "m", resolved: false)
    let text = [element].text.string
    #expect(text == #"[{"role":"selected","indexPath":[0,3],"identifier":"m","resolved":false}]"#)
    #expect(try [RestorableElement](wire: slice(text)) == [element])
    #expect(throws: Misfit(.missing, at: "role")) { try RestorableElement(wire: slice("{}")) }
  }
}

@Suite struct ErrorCodeTests {
  @Test func codesAndKindsAreUnique() {
    #expect(ErrorCode.all.map(\.rawValue).filter { $0 > -32600 } == Array((-32023 ... -32001).reversed()))
    #expect(Set(ErrorCode.all.map(\.kind)).count == ErrorCode.all.count)
  }

  @Test func anErrorSaysKindHintPathAndDetails() {
    let owner = ObjectOwner(process: "editor", pid: 7)
    let error = ErrorObject.restoration(
      .duplicatePath,
      "m",
      hint: "h",
      path: ["a"],
      details: ["owners": .array([owner.json])]
    )
    #expect(error.code == -32003)
    #expect(
      error.data == ["kind": "duplicatePath", "hint": "h", "path": ["a"], "owners": [["process": "editor", "pid": 7]]]
    )
  }

  @Test func aLimitErrorNamesLimitAndValue() {
    let error = ErrorObject.limitExceeded("stateBytesMax", max: 4, value: 5, path: ["a"])
    #expect(error.code == -32008)
    #expect(error.data?["limit"]?.string == "stateBytesMax")
    #expect(error.data?["max"]?.integer == 4)
    #expect(error.data?["value"]?.integer == 5)
    #expect(error.data?["path"] == ["a"])
  }
}
