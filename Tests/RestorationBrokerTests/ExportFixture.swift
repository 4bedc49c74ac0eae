// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

extension Peer {
  /// The whole document of an export, a line for each object.
  func export(_ application: String, _ more: String = #""reveal":true"#) throws -> String {
    var head = ""
    var objects: [String] = []
    var cursor: String?
    repeat {
      let members = [#""application":"\#(application)""#, more, cursor.map { #""cursor":"\#($0)""# } ?? ""]
      let id = start("exportArchive", "{\(members.filter { !$0.isEmpty }.joined(separator: ","))}")
      let answer = try JSONSlice.scan(Array(try text(id).utf8), vocabulary: EncodedState.vocabulary)
      let result = try #require(answer["result"], "\(answer)")
      let part = try #require(result["part"])
      let page = part.members?.filter { $0.name != "objects" }.map { "\"\($0.name)\":\($0.value)" }.joined(
        separator: ","
      )
      if !head.isEmpty { #expect(page == head) }
      head = page ?? ""
      objects += try #require(part["objects"]?.elements).map(\.description)
      cursor = result["cursor"]?.string()
    } while cursor != nil
    return "{\(head),\"objects\":[\n\(objects.joined(separator: ",\n"))\n]}"
  }

  /// Lets the time pass that a large document takes.
  @discardableResult
  func importDocument(_ document: String, into application: String, _ more: String = "") throws -> JSONValue {
    let id = start("importArchive", importing(document, into: application, more))
    connection.wait { hasAnswer(id) }
    return try result(of: id)
  }

  func importing(_ document: String, into application: String, _ more: String = "") -> String {
    #"{"application":"\#(application)","document":\#(document)\#(more.isEmpty ? "" : ",")\#(more)}"#
  }
}

/// Documents written by hand.
enum Document {
  static let writer = #""writer":{"userInterfaceIdiom":-1,"written":"2026-02-28T09:05:00.042Z"}"#

  static func of(_ objects: String..., head: String = #""format":"restorationd.archive","version":1"#) -> String {
    "{\(head),\"objects\":[\(objects.joined(separator: ","))]}"
  }

  /// An object with a state.
  static func object(_ path: String, _ state: String, _ more: String = "") -> String {
    #"{"path":\#(path),"kind":"object","state":\#(state),\#(writer)\#(more.isEmpty ? "" : ",")\#(more)}"#
  }
}
