// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

@Suite struct ReservedKeysTests {
  @Test func aCoderHoldsUIKitsKeys() {
    let keys = ReservedKeys(
      bundleVersion: "1.2",
      userInterfaceIdiom: 1,
      timestamp: Timestamp(milliseconds: 42),
      systemVersion: "12",
      storyboard: "editor.service"
    )
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
    let keys = ReservedKeys(bundleVersion: nil, timestamp: Timestamp(milliseconds: 0), systemVersion: nil)
    #expect(
      keys.text.string
        == #"{"UIApplicationStateRestorationUserInterfaceIdiomKey":-1,"#
        + #""UIApplicationStateRestorationTimestampKey":"1970-01-01T00:00:00.000Z"}"#
    )
  }

  @Test(arguments: [
    ReservedKeys(bundleVersion: nil, timestamp: Timestamp(milliseconds: 0), systemVersion: nil),
    ReservedKeys(
      bundleVersion: "é\"",
      userInterfaceIdiom: .min,
      timestamp: Timestamp(milliseconds: 9),
      systemVersion: "12",
      storyboard: "u"
    ),
  ])
  func aCoderIsReadAsItWasWritten(_ keys: ReservedKeys) throws {
    #expect(try ReservedKeys(slice(keys.text.string)) == keys)
  }

  @Test(arguments: ["{}", "[]", #"{"UIApplicationStateRestorationTimestampKey":0}"#])
  func otherValuesAreNoCoder(_ text: String) throws {
    #expect(try ReservedKeys(slice(text)) == nil)
  }

  @Test func everyKeyHasAReservedPrefix() {
    for key in [
      ReservedKeys.bundleVersionKey, ReservedKeys.userInterfaceIdiomKey, ReservedKeys.timestampKey,
      ReservedKeys.systemVersionKey, ReservedKeys.storyboardKey,
    ] {
      #expect(EncodedState.reservedPrefixes.contains { key.hasPrefix($0) })
    }
  }
}

@Suite struct ElementTests {
  @Test func elementsAreReadAsTheyWereWritten() throws {
    let element = Element(role: .selected, indexPath: [0, 3], identifier: "m", resolved: false)
    let text = written { Element.write([element], to: &$0) }
    #expect(text == #"[{"role":"selected","indexPath":[0,3],"identifier":"m","resolved":false}]"#)
    let first = try #require(try slice(text).elements?.first)
    #expect(Element(first) == element)
    #expect(try Element(slice("{}")) == nil)
  }
}

@Suite struct ErrorCodeTests {
  @Test func codesAndKindsAreUnique() {
    #expect(ErrorCode.allCases.map(\.rawValue) == Array((-32020 ... -32001).reversed()))
    #expect(Set(ErrorCode.allCases.map(\.kind)).count == ErrorCode.allCases.count)
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
      error.data == [
        "kind": "duplicatePath", "hint": "h", "path": ["a"], "owners": [["process": "editor", "pid": 7]],
      ]
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
