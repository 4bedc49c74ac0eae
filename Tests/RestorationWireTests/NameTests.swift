// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

@Suite struct RestorationIdentifierTests {
  @Test(arguments: [
    "a", "Main", " ", ".", "..", "é", "日本語", "a:b@c~d", "\u{2028}", "👩‍👩‍👧",
    String(repeating: "x", count: 255), String(repeating: "é", count: 127) + "x",
  ])
  func textOfUpTo255BytesIsAnIdentifier(_ text: String) {
    #expect(RestorationIdentifier.isValid(text))
    #expect(RestorationIdentifier.split(text)?.identifier == text)
    #expect(RestorationIdentifier.split(RestorationIdentifier.component(text, position: 12))?.position == 12)
  }

  @Test(arguments: [
    "", "/", "a/b", "#", "a#1", "a\nb", "\0", "\u{7F}", "\u{85}",
    String(repeating: "x", count: 256), String(repeating: "é", count: 128),
  ])
  func otherTextIsNone(_ text: String) { #expect(!RestorationIdentifier.isValid(text)) }

  @Test func controlCharactersAreThoseOfUnicode() {
    let scalars = (0...0x2FFF).compactMap(Unicode.Scalar.init)
    #expect(scalars.allSatisfy { String($0).hasControlCharacter == ($0.properties.generalCategory == .control) })
    #expect("é\u{9F}é".hasControlCharacter)
  }

  @Test(arguments: ["a#", "a#-1", "a#01", "a#1.0", "a#1#2", "#1", "a#x", "a#9223372036854775808"])
  func aMalformedPositionIsNoComponent(_ text: String) { #expect(RestorationIdentifier.split(text) == nil) }

  @Test func aPositionIsPartOfTheComponent() {
    #expect(RestorationIdentifier.component("Tab", position: 0) == "Tab#0")
    #expect(RestorationIdentifier.component("Tab", position: nil) == "Tab")
    #expect(RestorationIdentifier.split("Tab#0")?.identifier == "Tab")
    #expect(RestorationIdentifier.split("Tab")?.position == nil)
  }

  @Test func pathsDifferWhereTheirBytesDo() {
    let composed: IdentifierPath = ["caf\u{E9}"]
    let decomposed: IdentifierPath = ["cafe\u{301}"]
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed, ["caf\u{E9}"]]).count == 2)
    #expect(IdentifierPath(["ab", "c"]) != IdentifierPath(["a", "bc"]))
  }

  @Test func aPathCountsItsComponentsAndWhatIsBetween() {
    #expect(IdentifierPath(["ab", "é"]).bytes == 5)
    #expect(IdentifierPath([]).bytes == 0)
  }

  @Test(arguments: [[], ["a"], ["ab", "é"], ["\"", "\\", "a\"b\\c"], Array(repeating: "\u{2028}😀", count: 9)])
  func aPathKnowsHowLongItIsAsText(_ components: [String]) {
    #expect(IdentifierPath(components).jsonBytes == IdentifierPath(components).text.count)
  }

  @Test(arguments: [
    "0", "-1", "1.0", "1e3", "\"a\"", "[]", "[1]", "[[\"a\"]]", "null", "true", "{}", "9223372036854775808",
  ])
  func otherValuesAreNoReference(_ text: String) throws { #expect(try ObjectReference(slice(text)) == nil) }
}

@Suite struct ApplicationNameTests {
  static let longest = "a" + String(repeating: "b", count: 127)
  static let longestInstance = String(repeating: "c", count: 48)

  @Test(arguments: ["a", "Z9", "0", "org.example.Editor", "a-b_c.d", longest, "a@b", "\(longest)@\(longestInstance)"])
  func aNameMayHaveAnInstance(_ text: String) { #expect(ApplicationName(text)?.description == text) }

  @Test(arguments: [
    "", ".a", "-a", "_a", "a b", "a/b", "é", "@", "a@", "@b", "a@b@c", "a@.b", "a@-", longest + "b",
    "a@\(longestInstance)c", "a\0", "a+", "a+mark", "a+conflict-", "a+conflict-0", "a+conflict-01", "a+conflict-1x",
    "a+conflict-1@b", "a+conflict-1+conflict-1", "a+conflict-1234567890", "+conflict-1", "\(longest)b+conflict-1",
  ])
  func otherTextIsNone(_ text: String) { #expect(ApplicationName(text) == nil) }

  @Test func aNameIsTakenApart() throws {
    let name = try #require(ApplicationName("org.example.Editor@work"))
    #expect(name.base == "org.example.Editor")
    #expect(name.instance == "work")
    #expect(name.with(instance: "home") == nil)
    let copy = try #require(ApplicationName("\(Self.longest)@\(Self.longestInstance)+conflict-123456789"))
    #expect(copy.isSetAside && !name.isSetAside)
    #expect((copy.base, copy.instance) == (Self.longest, Self.longestInstance))
    let plain = try #require(ApplicationName("a"))
    #expect(plain.instance == nil)
    #expect(plain.with(instance: "b")?.description == "a@b")
    #expect(plain.with(instance: "b@c") == nil)
  }
}
