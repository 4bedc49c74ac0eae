// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An object whose state in a generation is an older one than the round that made it (R12).
package struct StaleObject: Hashable, Sendable, JSONWritable {
  /// Why there is no newer state; besides these the kind of the error that refused it, and more may come.
  package enum Cause: String, CaseIterable, Sendable {
    /// No answer within the deadline, or one alone that was put off three times.
    case late
    /// The session ended, or its process did.
    case ended
    /// The connection was lost.
    case disconnected
    /// The answer was not of the form it has to have.
    case malformed
    /// The answer left the object out.
    case missing
    /// The client answered an error.
    case failed
  }

  /// Nil where the broker has given no handle that still holds.
  package var object: ObjectHandle?
  /// Empty for the application's own state; nil where the object's own identifier is null (R4).
  package var path: [String]?
  /// The process role that the owner's session gave.
  package var process: String?
  package var pid: Int64?
  /// A word of `Cause`, or the kind of an error.
  package var why: String

  package init(object: ObjectHandle?, path: [String]?, process: String?, pid: Int64?, why: String) {
    self.object = object
    self.path = path
    self.process = process
    self.pid = pid
    self.why = why
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.object = try reader.optionalInteger("object")
      self.path = try reader.optional("path") { path -> [String]? in
        guard let components = path.elements?.map({ $0.string() }) else { return nil }
        return components.contains(nil) ? nil : components.compactMap { $0 }
      }
      self.process = try reader.optionalString("process")
      self.pid = try reader.optionalInteger("pid")
      self.why = try reader.string("why")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      writer.member("path", path)
      writer.member("process", process)
      writer.member("pid", pid)
      writer.member("why", why)
    }
  }
}
