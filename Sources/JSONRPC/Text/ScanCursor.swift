// SPDX-License-Identifier: Apache-2.0

/// The inner loop of the scan: one pass over the bytes that have arrived, on plain memory.
///
/// Objects and arrays have a loop each, so that a usual member needs no decision about the next byte. A rare case ends
/// the run with an outcome that `JSONScan` handles before it runs the cursor again; only then is `state.phase` up to
/// date. All steps are inlined: with calls between them the scan takes a quarter longer.
struct ScanCursor {
  /// The frame's first byte.
  let base: UnsafePointer<UInt8>
  /// How many bytes of the frame have arrived. The byte after them, and seven more, are zero: no token crosses a zero
  /// byte, so `end` is checked only at one.
  let end: Int
  let levels: UnsafeMutableBufferPointer<ScanLevel>
  let tape: UnsafeMutableBufferPointer<TapeEntry>
  /// Containers around the members of a message.
  let memberDepth: Int
  let depthMax: Int
  let namesMax: Int32
  /// The first bytes of the vocabulary's names.
  let vocabularyInitials: (UInt8, UInt8)
  var state: ScanState

  /// Runs until an outcome needs handling.
  mutating func run() -> ScanOutcome {
    if state.phase.isInsideToken, let stop = finishToken() { return stop }
    if state.depth == 0, state.phase != .value { return .complete }
    while true {
      if let stop = state.inObject ? runObject() : runArray() { return stop }
    }
  }

  /// Continues in the innermost container, an object, until it changes.
  @inline(always)
  private mutating func runObject() -> ScanOutcome? {
    var entry = state.phase
    if entry == .firstName {
      entry = skipWhiteSpace() == UInt8(ascii: "}") ? .separator : .name
      if state.at >= end { return .needsBytes }
    }
    while true {
      if entry <= .name, let stop = name() { return stop }
      if entry <= .colon, let stop = colon() { return stop }
      if entry <= .value {
        let depth = state.depth
        if let stop = value(isMember: true) { return stop }
        if state.depth != depth { return nil }
      }
      switch skipWhiteSpace() {
      case UInt8(ascii: ","): state.at &+= 1
      case UInt8(ascii: "}"): return close()
      default: return unexpected(.separator)
      }
      entry = .name
    }
  }

  /// Continues in the innermost container, an array, until it changes; also at the root, if a scalar ends all.
  @inline(always)
  private mutating func runArray() -> ScanOutcome? {
    var entry = state.phase
    if entry == .firstElement {
      entry = skipWhiteSpace() == UInt8(ascii: "]") ? .separator : .value
      if state.at >= end { return .needsBytes }
    }
    while true {
      if entry <= .value {
        let depth = state.depth
        if let stop = value(isMember: false) { return stop }
        if state.depth != depth { return nil }
        if depth == 0 { return .complete }
      }
      switch skipWhiteSpace() {
      case UInt8(ascii: ","): state.at &+= 1
      case UInt8(ascii: "]"): return close()
      default: return unexpected(.separator)
      }
      entry = .value
    }
  }

  /// Continues inside an incomplete name, string or number.
  @inline(never)
  private mutating func finishToken() -> ScanOutcome? {
    switch state.phase {
    case .insideName: finishName()
    case .insideString: finishString(isMember: state.inObject)
    case .insideNumber, .firstName, .firstElement, .name, .colon, .value, .separator:
      finishNumber(isMember: state.inObject)
    }
  }

  /// Steps over white space and returns the byte after it.
  @inline(always)
  private mutating func skipWhiteSpace() -> UInt8 {
    let byte = base[state.at]
    if byte > 0x20 { return byte }
    let after = ScanToken.endOfWhiteSpace(base, state.at)
    state.whiteSpace &+= after &- state.at
    state.at = after
    return base[after]
  }

  /// Ends the run if `phase` comes next.
  @inline(always)
  private mutating func stop(_ phase: ScanPhase, _ outcome: ScanOutcome) -> ScanOutcome {
    state.phase = phase
    return outcome
  }

  /// Ends the run at an unexpected byte: either the end of the input so far, or a fault.
  @inline(always)
  private mutating func unexpected(_ phase: ScanPhase, _ fault: ScanFault = .unexpectedByte) -> ScanOutcome {
    stop(phase, state.at >= end ? .needsBytes : .syntax(fault))
  }
}

// Names
extension ScanCursor {
  @inline(always)
  private mutating func name() -> ScanOutcome? {
    guard skipWhiteSpace() == UInt8(ascii: "\"") else { return unexpected(.name) }
    levels[state.depth].namesLeft &-= 1
    if levels[state.depth].namesLeft < 0 { return stop(.name, .limit(.keysPerObject)) }
    state.at &+= 1
    state.nameStart = state.at
    state.escaped = false
    return finishName()
  }

  @inline(always)
  private mutating func finishName() -> ScanOutcome? {
    if let outcome = stringBody() { return stop(.insideName, outcome) }
    state.nameEnd = state.at
    state.nameEscaped = state.escaped
    state.at &+= 1
    if state.depth <= state.notedDepth { filterName() }
    let initial = base[state.nameStart]
    if initial == vocabularyInitials.0 || initial == vocabularyInitials.1 || initial == UInt8(ascii: "\\") {
      return stop(.colon, .name)
    }
    state.phase = .colon
    return nil
  }

  /// Marks the open container if the name may have occurred in it before.
  @inline(always)
  private mutating func filterName() {
    let length = state.nameEnd &- state.nameStart
    var word = ScanToken.word(base, state.nameStart)
    if length < 8 { word &= (1 &<< UInt64(truncatingIfNeeded: length &* 8)) &- 1 }
    if length > 8 { word = word &* 31 ^ ScanToken.word(base, state.nameEnd &- 8) }
    let hash = (word ^ UInt64(truncatingIfNeeded: length)) &* 0x9E37_79B9_7F4A_7C15
    let low: UInt64 = 1 &<< (hash &>> 58)
    let high: UInt64 = 1 &<< (hash &>> 52 & 63)
    let filter = levels[state.depth].filter
    if (filter.low & low != 0 && filter.high & high != 0) || state.escaped {
      tape[Int(levels[state.depth].entry)].flags.insert(.repeatedNames)
    }
    levels[state.depth].filter = (filter.low | low, filter.high | high)
  }

  @inline(always)
  private mutating func colon() -> ScanOutcome? {
    guard skipWhiteSpace() == UInt8(ascii: ":") else { return unexpected(.colon) }
    state.at &+= 1
    return nil
  }
}

// Values
extension ScanCursor {
  /// Reads one value; of a container only the beginning, which makes it the innermost.
  @inline(always)
  private mutating func value(isMember: Bool) -> ScanOutcome? {
    let byte = skipWhiteSpace()
    if state.valuesLeft == 0 { return stop(.value, state.at >= end ? .needsBytes : .limit(.valuesPerFrame)) }
    switch byte {
    case UInt8(ascii: "\""):
      if state.noted == tape.count { return stop(.value, .needsRoom) }
      state.valuesLeft &-= 1
      state.token = state.at
      state.at &+= 1
      state.escaped = false
      return finishString(isMember: isMember)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      return number(first: byte, isMember: isMember)
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      return open(isObject: byte == UInt8(ascii: "{"), isMember: isMember)
    case UInt8(ascii: "t"): return literal(0x6575_7274, length: 4, .bool, isMember: isMember)
    case UInt8(ascii: "f"): return literal(0x65_736C_6166, length: 5, .bool, isMember: isMember)
    case UInt8(ascii: "n"): return literal(0x6C6C_756E, length: 4, .null, isMember: isMember)
    default: return unexpected(.value)
    }
  }

  @inline(always)
  private mutating func finishString(isMember: Bool) -> ScanOutcome? {
    if let outcome = stringBody() { return stop(.insideString, outcome) }
    state.at &+= 1
    note(.string, isMember: isMember)
    return nil
  }

  /// Reads a usual number, which has arrived completely and has no exponent; others go through the phases.
  @inline(always)
  private mutating func number(first byte: UInt8, isMember: Bool) -> ScanOutcome? {
    if state.noted == tape.count { return stop(.value, .needsRoom) }
    state.valuesLeft &-= 1
    state.token = state.at
    var after = ScanToken.endOfDigits(base, state.at)
    if byte > UInt8(ascii: "0") || (byte == UInt8(ascii: "0") && after == state.at &+ 1) {
      var kind = JSONKind.integer
      if base[after] == UInt8(ascii: ".") && base[after &+ 1] &- UInt8(ascii: "0") < 10 {
        after = ScanToken.endOfDigits(base, after &+ 1)
        kind = .real
      }
      let delimiter = base[after]
      if delimiter == UInt8(ascii: ",") || delimiter | 0x20 == UInt8(ascii: "}") {
        state.at = after
        note(kind, isMember: isMember)
        return nil
      }
    }
    state.number = .start
    return finishNumber(isMember: isMember)
  }

  @inline(always)
  private mutating func finishNumber(isMember: Bool) -> ScanOutcome? {
    (state.at, state.number) = ScanToken.number(base, state.at, state.number)
    if state.at >= end { return stop(.insideNumber, .needsBytes) }
    guard state.number.isWhole else { return stop(.insideNumber, .syntax(.invalidNumber)) }
    note(state.number.isReal ? .real : .integer, isMember: isMember)
    return nil
  }

  /// `letters` are the literal's bytes, the first in the lowest place.
  @inline(always)
  private mutating func literal(_ letters: UInt64, length: Int, _ kind: JSONKind, isMember: Bool) -> ScanOutcome? {
    if state.noted == tape.count { return stop(.value, .needsRoom) }
    let wrong = (ScanToken.word(base, state.at) ^ letters) & ((1 &<< UInt64(length &* 8)) &- 1)
    guard wrong == 0 else {
      let arrived = state.at &+ wrong.trailingZeroBitCount &>> 3
      if arrived >= end { return stop(.value, .needsBytes) }
      state.at = arrived
      return stop(.value, .syntax(.invalidLiteral))
    }
    state.valuesLeft &-= 1
    state.token = state.at
    state.at &+= length
    note(kind, isMember: isMember)
    return nil
  }

  @inline(always)
  private mutating func stringBody() -> ScanOutcome? {
    while true {
      let special = ScanToken.special(ScanToken.word(base, state.at))
      if special == 0 {
        state.at &+= 8
        continue
      }
      state.at &+= special.trailingZeroBitCount &>> 3
      if base[state.at] == UInt8(ascii: "\"") { return nil }
      switch ScanToken.specialCharacter(base, state.at, end) {
      case .forward(let length):
        if base[state.at] == UInt8(ascii: "\\") { state.escaped = true }
        state.at &+= length
      case .needsBytes: return .needsBytes
      case .fault(let fault): return .syntax(fault)
      }
    }
  }

  /// Puts the scalar from `token` to here on the tape if its level is noted; a separator comes next.
  @inline(always)
  private mutating func note(_ kind: JSONKind, isMember: Bool) {
    state.phase = .separator
    guard state.depth <= state.notedDepth else { return }
    tape[state.noted] = TapeEntry(
      name: isMember ? state.nameStart..<state.nameEnd : 0..<0,
      value: state.token..<state.at,
      next: state.noted &+ 1,
      kind: kind,
      flags: isMember && state.nameEscaped ? .escapedName : []
    )
    state.noted &+= 1
  }
}

// Containers
extension ScanCursor {
  @inline(always)
  private mutating func open(isObject: Bool, isMember: Bool) -> ScanOutcome? {
    guard state.depth < depthMax else { return stop(.value, .limit(.depth)) }
    if state.depth &+ 1 == levels.count || state.noted == tape.count { return stop(.value, .needsRoom) }
    state.valuesLeft &-= 1
    if state.depth == memberDepth { state.notedDepth = memberDepth &+ (isMember && isNamedResult ? 4 : 2) }
    let isNoted = state.depth <= state.notedDepth
    if isNoted {
      tape[state.noted] = TapeEntry(
        name: isMember ? state.nameStart..<state.nameEnd : 0..<0,
        value: state.at..<state.at,
        next: 0,
        kind: isObject ? .object : .array,
        flags: isMember && state.nameEscaped ? .escapedName : []
      )
    }
    state.depth &+= 1
    levels[state.depth].start = Int32(truncatingIfNeeded: state.at)
    levels[state.depth].namesLeft = namesMax
    levels[state.depth].marks = isObject ? .object : []
    levels[state.depth].entry = -1
    if isNoted {
      levels[state.depth].entry = Int32(truncatingIfNeeded: state.noted)
      levels[state.depth].whiteSpace = Int32(truncatingIfNeeded: state.whiteSpace)
      levels[state.depth].deepest = Int32(truncatingIfNeeded: state.deepest)
      levels[state.depth].filter = (0, 0)
      state.noted &+= 1
      state.deepest = state.depth
    } else if state.depth > state.deepest {
      state.deepest = state.depth
    }
    state.inObject = isObject
    state.at &+= 1
    state.phase = isObject ? .firstName : .firstElement
    return nil
  }

  /// Whether the last name is `result`: an answer may list objects with states, where a call has only one.
  @inline(always)
  private var isNamedResult: Bool {
    state.nameEnd &- state.nameStart == 6
      && ScanToken.word(base, state.nameStart) & 0xFFFF_FFFF_FFFF == 0x746C_7573_6572
  }

  /// Ends the innermost container at the bracket here.
  @inline(always)
  private mutating func close() -> ScanOutcome? {
    state.at &+= 1
    let entry = Int(levels[state.depth].entry)
    if entry >= 0 {
      tape[entry].end = Int32(truncatingIfNeeded: state.at)
      tape[entry].next = Int32(truncatingIfNeeded: state.noted)
      tape[entry].depth = UInt16(truncatingIfNeeded: state.deepest &- state.depth &+ 1)
      if state.whiteSpace != Int(levels[state.depth].whiteSpace) { tape[entry].flags.insert(.whiteSpace) }
      if state.depth <= state.notedDepth { tape[entry].flags.insert(.children) }
      state.deepest = max(state.deepest, Int(levels[state.depth].deepest))
    }
    let marks = levels[state.depth].marks
    state.depth &-= 1
    state.inObject = levels[state.depth].marks.contains(.object)
    state.phase = .separator
    if marks.rawValue > ScanMarks.object.rawValue { return .markedObject }
    return state.depth == 0 ? .complete : nil
  }
}
