// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// The tree of an application as nested JSON objects (`Protocol/restorationctl.md`).
struct TreeJSON {
  let application: ApplicationDescription

  /// Compact text.
  var text: String {
    var head = JSONMembers()
    head.add("application", application.application)
    head.add("archive", application.archive)
    head.add("generation", application.generation)
    head.add("sequence", application.sequence)
    head.add("sessions", text: JSONMembers.array(application.sessions.map(Self.session)))
    var text = "{\(head.inner),\"objects\":["
    var depth = 0
    ObjectTree(application.objects).walk { visit in
      // The object before is this one's parent, or it and some of its ancestors have no more children.
      let closed = depth - visit.branches.count + 1
      if closed > 0 { text += String(repeating: "]}", count: closed) + "," }
      text += "{\(Self.members(of: visit.object).inner),\"children\":["
      depth = visit.branches.count
    }
    return text + String(repeating: "]}", count: depth + 1)
  }

  private static func session(_ session: ApplicationDescription.Session) -> String {
    var members = JSONMembers()
    members.add("process", session.process)
    members.add("pid", session.pid)
    members.add("delegate", session.isDelegate)
    members.add("serves", session.serves)
    return members.text
  }

  /// What is said of one object, here and in `show`.
  static func members(of object: ApplicationDescription.Object) -> JSONMembers {
    var members = JSONMembers()
    members.add("component", object.component)
    members.add("path", object.path)
    members.add("object", object.object)
    members.add("kind", object.kind.rawValue)
    members.add("classes", object.classes)
    members.add("process", object.process)
    members.add("pid", object.pid)
    members.add("vacant", object.isVacant)
    members.add("orphaned", object.orphaned)
    members.add("included", object.included)
    members.add("confidential", object.confidential)
    members.add("hasState", object.hasState)
    members.add("bytes", Int64(object.bytes))
    members.add("modified", object.modified?.description)
    members.add("revision", object.revision)
    return members
  }
}
