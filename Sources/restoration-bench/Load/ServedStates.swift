// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// What a client of a save round answers: a new state for each object that it is asked for.
package struct ServedStates {
  private let state: MessageTemplate
  private var turn = 0
  /// Answers are no longer than what any broker reads.
  private static let answerBytes = 2 << 20

  package init(size: Int) { state = MessageTemplate(SampleState.text(bytes: size)) }

  /// The answer to a call of the broker; `nil` if the text is no call, or one that is answered by nobody.
  package mutating func answer(to call: UnsafePointer<CChar>) -> [UInt8]? {
    guard let id = LineConnection.number("id", in: call), strstr(call, #""method":"#) != nil else { return nil }
    var answer = Array(#"{"jsonrpc":"2.0","id":\#(id),"result":{"#.utf8)
    if strstr(call, #""method":"encodeRestorableStateWithCoder""#) != nil {
      turn += 1
      let bytes = state.message(id: MessageTemplate.firstID + turn)
      answer += Array(#""states":["#.utf8)
      var place = UnsafePointer(call)
      let mark = #"{"object":"#
      while let next = strstr(place, mark) {
        place = UnsafePointer(next) + mark.utf8.count
        answer += Array(#"{"object":\#(strtol(place, nil, 10)),"#.utf8)
        if answer.count + bytes.count > Self.answerBytes {
          answer += Array(#""later":true},"#.utf8)
        } else {
          answer += Array(#""state":"#.utf8)
          answer += bytes
          answer += Array("},".utf8)
        }
      }
      if answer.last == UInt8(ascii: ",") { answer.removeLast() }
      answer.append(UInt8(ascii: "]"))
    }
    return answer + Array("}}\n".utf8)
  }
}
