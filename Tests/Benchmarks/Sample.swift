// SPDX-License-Identifier: Apache-2.0

/// What clients say in the benchmarks.
enum Sample {
  /// A state of 1 KiB, as of a window; odd and even numbers give two that differ.
  static func state(_ number: Int) -> String {
    let views = (0..<5).map { view in
      let place = #""selection":[\#(view * 17),\#(view * 17 + 9)],"offset":\#(12.5 * Double(view))"#
      let isVisible = view % 3 > 0
      return #"{"id":"view-\#(view)","kind":"textView","visible":\#(isVisible),\#(place),"text":"Lorem ipsum dolor"}"#
    }
    let frame = #""frame":{"x":120.5,"y":64,"width":1280,"height":800},"miniaturized":false"#
    let position = #""selectedTab":\#(number % 2),"scroll":{"main":0.4375,"sidebar":0},"zoom":1.25,"undo":null"#
    let document = #""document":"file:///srv/u/Documents/Quarterly%20Report.odt","tags":["draft","review"]"#
    let members = [
      #""class":"DocumentWindow""#, frame, position, document, #""children":[\#(views.joined(separator: ","))]"#,
    ].joined(separator: ",")
    let pad = String(repeating: "p", count: max(0, 1_024 - members.utf8.count - 11))
    return #"{\#(members),"pad":"\#(pad)"}"#
  }

  static func call(_ method: String, _ parameters: String = "{}") -> String {
    #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(parameters)}"# + "\n"
  }

  static func encode(_ object: String, _ number: Int = 0) -> String {
    call("encodeRestorableState", #"{"object":\#(object),"state":\#(state(number))}"#)
  }

  static func decode(_ object: String) -> String { call("decodeRestorableState", #"{"object":\#(object)}"#) }

  static func registration(_ identifier: String) -> String {
    let members = #""restorationIdentifier":"\#(identifier)","restorationParent":["Main"],"kind":"viewController""#
    return call("registerObjectForStateRestoration", #"{\#(members),"objectClass":"DocumentController"}"#)
  }
}
