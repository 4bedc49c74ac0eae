// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// The tree of an application as nested JSON objects (`Protocol/restorationctl.md`).
struct TreeJSON: JSONWritable {
  let application: ApplicationDescription

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", application.application)
      writer.member("archive", application.archive)
      writer.member("generation", application.generation)
      writer.member("sequence", application.sequence)
      writer.member("sessions", application.sessions)
      writer.key("objects")
      writer.beginArray()
      var depth = 0
      ObjectTree(application.objects).walk { visit in
        // The previous object is this one's parent, or it and some of its ancestors have no more children.
        Self.close(depth - visit.branches.count + 1, &writer)
        writer.beginObject()
        Self.write(visit.object, to: &writer)
        writer.key("children")
        writer.beginArray()
        depth = visit.branches.count
      }
      Self.close(depth, &writer)
      writer.endArray()
    }
  }

  private static func close(_ count: Int, _ writer: inout JSONWriter) {
    for _ in 0..<count {
      writer.endArray()
      writer.endObject()
    }
  }

  private static func write(_ object: ObjectDescription, to writer: inout JSONWriter) {
    writer.member("component", object.component)
    writer.member("path", object.path)
    writer.member("object", object.object)
    writer.member("kind", object.kind)
    writer.member("classes", object.classes)
    writer.member("process", object.process)
    writer.member("pid", object.pid)
    writer.member("vacant", object.isVacant)
    writer.member("orphaned", object.orphaned)
    writer.member("included", object.included)
    writer.member("confidential", object.confidential)
    writer.member("quarantined", ifTrue: object.quarantined)
    writer.member("hasState", object.hasState)
    writer.member("bytes", object.bytes)
    writer.member("modified", object.modified)
    writer.member("revision", object.revision)
  }
}
