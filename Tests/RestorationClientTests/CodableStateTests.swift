// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials
internal import RestorationClient
internal import SeededRandom
internal import TestSupport
internal import Testing

/// States that are values of the program's own types.
@Suite(.timeLimit(.minutes(2))) struct CodableStateTests {
  // MARK: Types as programs have them

  /// Twenty fields, and no line that maps one.
  private struct Draft: Codable, Hashable {
    var title: String
    var body: String?
    var cursor: Int
    var scroll: Double
    var zoom: Float
    var isPinned: Bool
    var opened: Date
    var closed: Date?
    var saved: Timestamp
    var source: URL
    var bookmark: Data
    var bytes: [UInt8]
    var font: Font
    var styles: [Font]
    var mode: Mode
    var tool: Tool?
    var counts: [String: Int]
    var tags: Set<String>
    var folds: [[Int]]
    var size: UInt64
  }

  private struct Font: Codable, Hashable {
    var name: String
    var size: Float
    var fallback: [String]?
  }

  private enum Mode: String, Codable { case edit, read }

  private enum Tool: Codable, Hashable {
    case pen(width: Double, color: String)
    case eraser
    indirect case grouped([Tool], Int)
  }

  private static let draft = Draft(
    title: "Grüße \"\\ 𝒳😀",
    body: nil,
    cursor: -17,
    scroll: 0.1,
    zoom: 1.1,
    isPinned: true,
    opened: Date(timeIntervalSince1970: 1_772_269_500.042),
    closed: nil,
    saved: Timestamp(milliseconds: 1_772_269_500_042),
    source: URL(string: "file:///tmp/a%20b?c#d") ?? URL(filePath: "/"),
    bookmark: Data([0, 255]),
    bytes: [1, 2, 3],
    font: Font(name: "Mono", size: 11.5, fallback: ["Sans"]),
    styles: [Font(name: "A", size: 1, fallback: nil), Font(name: "B", size: 2, fallback: [])],
    mode: .read,
    tool: .grouped([.pen(width: 0.5, color: "red"), .eraser], 2),
    counts: ["a": 1, "$date": 2],
    tags: ["x"],
    folds: [[], [1, 2]],
    size: .max
  )

  @Test func aStructOfTwentyFieldsComesBackWithoutALineOfMapping() throws {
    let state = try RestorableState(encoding: Self.draft)
    #expect(try state.decode(Draft.self) == Self.draft)
    // Other languages know these forms.
    #expect(state["opened"]?.date?.milliseconds == 1_772_269_500_042 && state["saved"] == state["opened"])
    #expect(state["bookmark"]?.data == [0, 255] && state["bytes"]?.data == [1, 2, 3])
    #expect(state["source"] == "file:///tmp/a%20b?c#d" && state["cursor"]?.int == -17 && state["mode"] == "read")
    #expect(state["font"] == ["name": "Mono", "size": 11.5, "fallback": ["Sans"]])
    #expect(state["counts"] == ["a": 1, "$date": 2] && state["body"] == nil)
    #expect(state.jsonText.contains(#""size":18446744073709551615"#) && state.jsonText.contains(#""zoom":1.1"#))
    // Equal values give equal text.
    #expect(try RestorableState(encoding: Self.draft) == state)
  }

  @Test func anObjectThatIsAskedGivesAndTakesItsOwnTypes() throws {
    let saved = try ObjectState(encoding: Self.draft, elements: [RestorableElement(.selected, at: [0])])
    #expect(try saved.decode(Draft.self) == Self.draft && saved.elements.count == 1)
  }

  @Test func aValueWithoutKeysIsAStateToo() throws {
    #expect(try RestorableState(encoding: 43).jsonText == #"{"value":43}"#)
    #expect(try RestorableState(encoding: 43).decode(Int.self) == 43)
    #expect(try RestorableState(encoding: ["a", "b"]).decode([String].self) == ["a", "b"])
    #expect(try RestorableState(encoding: Mode.edit).decode(Mode.self) == .edit)
    #expect(try RestorableState(encoding: Tool.eraser).decode(Tool.self) == .eraser)
    #expect(try RestorableState(encoding: Draft?.none).decode(Draft?.self) == nil)
    #expect(try RestorableState(encoding: Int?(7)).decode(Int?.self) == 7)
    #expect(try RestorableState(encoding: [UInt8]([1])).jsonText == #"{"value":{"$data":"AQ=="}}"#)
    #expect(try RestorableState(encoding: [UInt8]([1])).decode([UInt8].self) == [1])
    #expect(try RestorableState(encoding: [1: "x"]).decode([Int: String].self) == [1: "x"])
    #expect(try RestorableState(encoding: [[1, 2]: 3]).decode([[Int]: Int].self) == [[1, 2]: 3])
    struct Nothing: Codable, Equatable {}
    #expect(try RestorableState(encoding: Nothing()).jsonText == "{}")
    #expect(try RestorableState(encoding: Nothing()).decode(Nothing.self) == Nothing())
    // Its only property has the name under which values without keys are saved.
    struct Wrapper: Codable, Equatable { var value: [Int]? }
    for wrapper in [Wrapper(value: [1]), Wrapper(value: nil)] {
      #expect(try RestorableState(encoding: wrapper).decode(Wrapper.self) == wrapper)
    }
  }

  @Test("R14 Data that looks like a reference, bytes or a date comes back as data") func lookalikes() throws {
    for key in ["$restorable", "$literal", "$data", "$date"] {
      let values = [key: ["A"], "in": [key]]
      let state = try RestorableState(encoding: values)
      #expect(state.jsonText.hasPrefix(#"{"$literal":{"#))
      #expect(try state.decode([String: [String]].self) == values)
      // Values without a type are the same.
      #expect(state == [key: ["A"], "in": [.string(key)]] && state[key] == ["A"])
      #expect(state.values == [key: ["A"], "in": [.string(key)]])
      let nested = [[key: [key: ["$date": Date(timeIntervalSince1970: 1)]]]]
      #expect(try RestorableState(encoding: nested).decode(type(of: nested)) == nested)
    }
  }

  // MARK: Numbers

  private struct Numbers: Codable, Equatable {
    var integers: [Int64] = [.min, -1, 0, .max]
    var unsigned: [UInt64] = [0, .max]
    var small: [Int8] = [.min, .max]
    var huge: [Int128] = [.min, .max]
    var reals = [0.1, -0.0, .pi, .leastNonzeroMagnitude, .greatestFiniteMagnitude, .infinity, -.infinity]
    var floats: [Float] = [0.1, -0.0, .leastNonzeroMagnitude, .greatestFiniteMagnitude, .infinity]
  }

  @Test func numbersKeepTheirDigits() throws {
    let state = try RestorableState(encoding: Numbers())
    let numbers = try state.decode(Numbers.self)
    #expect(numbers == Numbers() && numbers.reals[1].sign == .minus && numbers.floats[1].sign == .minus)
    #expect(try RestorableState(encoding: Double.nan).decode(Double.self).isNaN)
    // As languages with one kind of numbers write them.
    let foreign = try RestorableState(jsonText: #"{"value":[17.0,1e2,3]}"#)
    #expect(try foreign.decode([Int].self) == [17, 100, 3])
    #expect(try foreign.decode([Double].self) == [17, 100, 3])
  }

  @Test(
    arguments: [
      ("300", "300 does not fit into UInt8"), ("1.5", "1.5 does not fit into UInt8"), ("null", "not null"),
      ("\"x\"", #"was expected, not "x""#), ("true", "was expected, not true"), ("{}", "was expected, not {}"),
    ]
  )
  func whatDoesNotFitIsAnErrorThatSaysWhere(_ text: String, _ message: String) throws {
    struct Outer: Codable { var fonts: [[String: UInt8]] }
    let state = try RestorableState(jsonText: #"{"fonts":[{},{"size":\#(text)}]}"#)
    let error = #expect(throws: DecodingError.self) { try state.decode(Outer.self) }
    let context: DecodingError.Context? =
      switch error {
      case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context): context
      default: nil
      }
    #expect(context?.codingPath.map(\.stringValue) == ["fonts", "1", "size"])
    #expect(context?.debugDescription.contains(message) == true, "\(context?.debugDescription ?? "")")
  }

  @Test func whatIsMissingIsAnErrorThatNamesIt() throws {
    let state = try RestorableState(jsonText: #"{"name":"A"}"#)
    let error = #expect(throws: DecodingError.self) { try state.decode(Font.self) }
    guard case .keyNotFound(let key, _)? = error else { throw TestFailure("another error") }
    #expect(key.stringValue == "size")
    #expect(throws: DecodingError.self) { try state.decode(Int.self) }
    #expect(throws: DecodingError.self) { try state.decode([Int].self) }
    struct Pair: Decodable {
      init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        _ = try container.decode(Int.self)
        _ = try container.decode(Int.self)
      }
    }
    #expect(throws: DecodingError.self) { try RestorableState(encoding: [1]).decode(Pair.self) }
  }

  // MARK: References

  private struct Layout: Codable, Equatable {
    var front: RestorableReference?
    var all: [RestorableReference?]
  }

  @Test("R14 References are references to all languages") func referencesAreReferences() throws {
    let layout = Layout(front: ["Main", "Editor"], all: [["A"], nil])
    let state = try RestorableState(encoding: layout)
    #expect(state.jsonText == #"{"all":[{"$restorable":["A"]},null],"front":{"$restorable":["Main","Editor"]}}"#)
    #expect(try state.decode(Layout.self) == layout)
    // As it is decoded when the objects are gone.
    let gone = #"{"all":[{"$restorable":null,"object":null}],"front":{"$restorable":null,"object":null}}"#
    #expect(try RestorableState(jsonText: gone).decode(Layout.self) == Layout(front: nil, all: [nil]))
    #expect(throws: DecodingError.self) {
      try RestorableState(jsonText: gone).decode([String: [RestorableReference]].self)
    }
  }

  // MARK: Containers that encoders seldom see

  private class Base: Codable {
    var base = 1

    init() {}
  }

  private final class Derived: Base {
    private enum Key: CodingKey { case own, list, deep, parent }

    var own = 2

    override init() { super.init() }

    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      own = try container.decode(Int.self, forKey: .own)
      var list = try container.nestedUnkeyedContainer(forKey: .list)
      #expect(try list.decodeNil() == true && list.currentIndex == 1)
      #expect(try list.decodeNil() == false && list.currentIndex == 1)
      var inner = try list.nestedUnkeyedContainer()
      #expect(try inner.decode(String.self) == "x" && inner.isAtEnd)
      #expect(try list.nestedContainer(keyedBy: Key.self).decode(Bool.self, forKey: .own))
      try super.init(from: list.superDecoder())
      let deep = try container.nestedContainer(keyedBy: Key.self, forKey: .deep)
      #expect(try Base(from: deep.superDecoder(forKey: .parent)).base == 1 && deep.allKeys.count == 1)
      #expect(try Base(from: container.superDecoder()).base == 1)
    }

    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      var list = container.nestedUnkeyedContainer(forKey: .list)
      var deep = container.nestedContainer(keyedBy: Key.self, forKey: .deep)
      try list.encodeNil()
      // Containers are filled in any order.
      try container.encode(own, forKey: .own)
      var inner = list.nestedUnkeyedContainer()
      var last = list.nestedContainer(keyedBy: Key.self)
      try inner.encode("x")
      try last.encode(true, forKey: .own)
      try super.encode(to: list.superEncoder())
      try super.encode(to: deep.superEncoder(forKey: .parent))
      var again = encoder.container(keyedBy: Key.self)
      try super.encode(to: again.superEncoder())
    }
  }

  @Test func everyKindOfContainerIsThere() throws {
    let derived = Derived()
    (derived.own, derived.base) = (3, 1)
    let state = try RestorableState(encoding: derived)
    #expect(
      state.jsonText
        == #"{"deep":{"parent":{"base":1}},"list":[null,["x"],{"own":true},{"base":1}],"own":3,"super":{"base":1}}"#
    )
    #expect(try state.decode(Derived.self).own == 3)
  }

  private struct Parts: Codable, Equatable {
    private enum Key: CodingKey { case part, list, one, other }

    var one = 1
    var other = 2

    init() {}

    init(from decoder: any Decoder) throws {
      let part = try decoder.container(keyedBy: Key.self).nestedContainer(keyedBy: Key.self, forKey: .part)
      (one, other) = (try part.decode(Int.self, forKey: .one), try part.decode(Int.self, forKey: .other))
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      for (key, value) in [(Key.one, one), (.other, other)] {
        var part = container.nestedContainer(keyedBy: Key.self, forKey: .part)
        try part.encode(value, forKey: key)
        var list = container.nestedUnkeyedContainer(forKey: .list)
        try list.encode(value)
      }
    }
  }

  @Test func aContainerThatIsRequestedTwiceIsOne() throws {
    let state = try RestorableState(encoding: Parts())
    #expect(state.jsonText == #"{"list":[1,2],"part":{"one":1,"other":2}}"#)
    #expect(try state.decode(Parts.self) == Parts())
  }

  @Test func aSuperclassThatIsNotSavedIsNull() throws {
    struct Child: Decodable {
      let isNull: Bool

      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: StringKey.self)
        let own = try container.superDecoder(forKey: StringKey(stringValue: "own")).singleValueContainer()
        isNull = try container.superDecoder().singleValueContainer().decodeNil() && own.decodeNil()
      }
    }
    struct StringKey: CodingKey {
      let stringValue: String
      let intValue: Int? = nil
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    #expect(try RestorableState(jsonText: "{}").decode(Child.self).isNull)
  }

  @Test func aDateThatIsNoNumberIsAnErrorThatSaysWhere() throws {
    let error = #expect(throws: EncodingError.self) {
      try RestorableState(encoding: ["opened": [Date(timeIntervalSince1970: .nan)]])
    }
    guard case .invalidValue(_, let context)? = error else { throw TestFailure("another error") }
    #expect(context.codingPath.map(\.stringValue) == ["opened", "0"])
    #expect(context.debugDescription == "this value of Date has no form in a state")
  }

  @Test func aStateThatIsTooDeepIsADecodingError() throws {
    let deep = (0..<2_000).reduce(RestorableValue.null) { value, _ in .array([value]) }
    #expect(throws: DecodingError.self) { try RestorableState(["deep": deep]).decode(Draft.self) }
  }

  // MARK: Any values

  /// Whatever a value may be made of.
  private indirect enum Anything: Codable, Hashable {
    case nothing
    case number(Int, Double?, Float)
    case wide(UInt64, Int8)
    case text(String)
    case bytes([UInt8], Data)
    case moment(Timestamp, Date)
    case reference(RestorableReference?)
    case list([Anything])
    case named([String: Anything], also: Anything?)
    case numbered([Int: Anything])

    init(_ generator: inout SeededGenerator, depth: Int) {
      let milliseconds = Int64(generator.next() % 4_000_000_000_000)
      switch generator.below(depth > 3 ? 7 : 10) {
      case 0: self = .nothing
      case 1:
        let real = Double(bitPattern: generator.next())
        let float = Float(bitPattern: UInt32(truncatingIfNeeded: generator.next()))
        let number = Int(truncatingIfNeeded: generator.next())
        self = .number(number, real.isNaN ? nil : real, float.isNaN ? -0.0 : float)
      case 2: self = .wide(generator.next(), Int8(truncatingIfNeeded: generator.next()))
      case 3: self = .text(generator.text)
      case 4:
        let bytes = (0..<generator.below(9)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
        self = .bytes(bytes, Data(bytes))
      case 5:
        let date = Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
        self = .moment(Timestamp(milliseconds: milliseconds), date)
      case 6: self = .reference(generator.below(2) == 0 ? nil : ["Main", "Editor#\(generator.below(9))"])
      case 7: self = .list((0..<generator.below(4)).map { _ in Anything(&generator, depth: depth + 1) })
      case 8:
        let members = (0..<generator.below(4)).map { _ in (generator.text, Anything(&generator, depth: depth + 1)) }
        let also = generator.below(2) == 0 ? nil : Anything(&generator, depth: depth + 1)
        self = .named(Dictionary(members) { first, _ in first }, also: also)
      default:
        let members = (0..<generator.below(4)).map { _ in (generator.below(99), Anything(&generator, depth: depth + 1))
        }
        self = .numbered(Dictionary(members) { first, _ in first })
      }
    }
  }

  @Test func randomValuesComeBack() throws {
    let seeds: Range<UInt64> = 0..<(Environment.isLong ? 100_000 : 1_000)
    for seed in seeds {
      var generator = SeededGenerator(seed: seed)
      let value = Anything(&generator, depth: 0)
      let state = try RestorableState(encoding: value)
      let text = state.jsonText
      #expect(try RestorableState(jsonText: text).decode(Anything.self) == value, "seed \(seed): \(text)")
    }
    print("\(seeds.count) random values were encoded and decoded")
  }

  // MARK: In a session

  @Test(.session) func aSessionStoresAndGivesValues() async throws {
    let editor = try await session.register("Editor")
    async let outcome = session.encode(Font(name: "Mono", size: 1.5, fallback: nil), for: editor)
    let encoding = try await fake.events.request()
    #expect(
      encoding.text
        == #"encodeRestorableState {"object":101,"state":{"name":"Mono","size":1.5},"revision":1}"#
    )
    try await encoding.answer(#"{"sequence":7,"durability":"disk"}"#)
    #expect(try await outcome == .stored(sequence: 7))
    for (answer, font) in [
      (
        #"{"status":"available","state":{"name":"Sans","size":2},"coder":null}"#,
        Font(name: "Sans", size: 2, fallback: nil)
      ),
      (#"{"status":"none","state":null,"coder":null}"#, nil),
      (#"{"status":"quarantined","state":null,"coder":null}"#, nil),
    ] {
      async let decoded = session.decode(Font.self, for: editor)
      try await fake.events.request().answer(answer)
      #expect(try await decoded == font)
    }
  }

  @Test(.session) func anErrorOfCodingNamesTheObject() async throws {
    struct Broken: Codable {
      func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(1, EncodingError.Context(codingPath: [], debugDescription: "broken"))
      }
    }
    let editor = try await session.register(ObjectRegistration("Editor", restorationParent: ["Main"]))
    let encoding = await thrownError { try await session.encode(Broken(), for: editor) }
    guard case .invalidValue(_, let context)? = encoding as? EncodingError else {
      throw TestFailure("no EncodingError")
    }
    #expect(context.debugDescription == "broken, in the state of Main/Editor")
    let decoding = Task { try await session.decode(Font.self, for: editor) }
    try await fake.events.request().answer(#"{"status":"available","state":{"name":5},"coder":null}"#)
    guard case .typeMismatch(_, let place)? = await thrownError({ try await decoding.value }) as? DecodingError else {
      throw TestFailure("no DecodingError")
    }
    #expect(place.codingPath.map(\.stringValue) == ["name"])
    #expect(place.debugDescription == "a value of String was expected, not 5, in the state of Main/Editor")
  }
}

extension SeededGenerator {
  /// A name or a text, among them those with a meaning of their own.
  fileprivate var text: String {
    mutating get {
      let words = ["", "a", "value", "super", "$restorable", "$date", "$data", "$literal", "é", "\"\\\u{0}😀", "NaN"]
      return words[below(words.count)]
    }
  }
}
