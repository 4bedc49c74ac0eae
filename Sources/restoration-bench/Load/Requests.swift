// SPDX-License-Identifier: Apache-2.0

/// How messages are put one behind the other on a connection to the broker.
package enum MessageFraming: String, CaseIterable, Sendable {
  case lines, headers, http

  var replies: ReplyFraming { self == .lines ? .lines(1) : .headers }

  package func frame(_ text: String) -> String {
    switch self {
    case .lines: "\(text)\n"
    case .headers: "Content-Length: \(text.utf8.count)\r\n\r\n\(text)"
    case .http:
      """
      POST / HTTP/1.1\r\nHost: broker\r\nContent-Type: application/json\r\n\
      Content-Length: \(text.utf8.count)\r\n\r\n\(text)
      """
    }
  }
}

/// A state as a window of an editor would have it.
package enum SampleState {
  package static let leastBytes = 40

  /// Compact JSON of exactly so many bytes, if they are at least `leastBytes`, that differs from request to request.
  package static func text(bytes: Int) -> String {
    let head = #"{"turn":\#(MessageTemplate.id),"views":["#
    let tail = #"],"text":""}"#
    let view = #"{"kind":"textView","visible":true,"selection":[17,26],"offset":12.5,"text":"Lorem ipsum"}"#
    var views: [String] = []
    var room = bytes - head.utf8.count - tail.utf8.count
    while room > 2 * view.utf8.count, views.count < 8 {
      views.append(view)
      room -= view.utf8.count + 1
    }
    if !views.isEmpty { room += 1 }
    let fill = String(repeating: "p", count: max(0, room))
    return head + views.joined(separator: ",") + tail.dropLast(2) + fill + #""}"#
  }
}

/// What requests to the broker are about. `MessageTemplate.key` in it stands for the number of the object.
package struct Target: Sendable {
  package var application = Requests.application
  package var path = ["window-\(MessageTemplate.key)"]

  package init() {}

  fileprivate var members: String {
    let path = path.map { #""\#($0)""# }.joined(separator: ",")
    return #""application":"\#(application)","object":[\#(path)]"#
  }
}

/// The requests of each kind of server.
package enum Requests {
  package static let application = "org.example.Benchmark"

  // MARK: The broker, and the floor, which reads the same

  static func call(_ method: String, _ parameters: String? = nil, isNotification: Bool = false) -> String {
    let id = isNotification ? "" : #""id":\#(MessageTemplate.id),"#
    let parameters = parameters.map { #","params":\#($0)"# } ?? ""
    return #"{"jsonrpc":"2.0",\#(id)"method":"\#(method)"\#(parameters)}"#
  }

  package static func broker(
    _ work: Work,
    size: Int,
    _ framing: MessageFraming = .lines,
    of target: Target = Target()
  ) -> MessageTemplate {
    let encoded = #"{\#(target.members),"state":\#(SampleState.text(bytes: size))}"#
    let messages =
      switch work {
      case .ping: [call("ping")]
      case .encode: [call("encodeRestorableState", encoded)]
      case .notify: [call("encodeRestorableState", encoded, isNotification: true), call("ping")]
      case .decode: [call("decodeRestorableState", "{\(target.members)}")]
      }
    return MessageTemplate(messages.map(framing.frame).joined())
  }

  // MARK: Redis

  package static func redis(_ work: Work, size: Int) -> MessageTemplate {
    let key = "window-\(MessageTemplate.key)"
    let words =
      switch work {
      case .ping: ["PING"]
      case .encode, .notify: ["SET", key, SampleState.text(bytes: size)]
      case .decode: ["GET", key]
      }
    return MessageTemplate(
      "*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
    )
  }

  static func redisReplies(_ work: Work) -> ReplyFraming { .lines(work == .decode ? 2 : 1) }
}

/// One request at a time.
package enum Work: String, CaseIterable, Sendable {
  case ping, encode, notify, decode

  var hasState: Bool { self != .ping }
}
