// SPDX-License-Identifier: Apache-2.0

/// What happens in a history. Sessions are numbered; an object is named by its path, its components joined by `/`, or
/// by the label of the call that registered it.
enum ReferenceOperation: Hashable {
  enum Kind: String { case object, viewController, view }
  enum Ending: String { case crash, closed, userQuit, restart, logout }
  enum Object: Hashable {
    case path(String)
    case label(Int)
  }

  struct Registration: Hashable {
    /// It may end in a position: `cTab#1`; its first letter says of which kind the object is.
    var name: String?
    var parent: Object?
    var kind: Kind
    var objectClass: String?
    var restorationClass: String?
    var takeOver = false
  }

  /// What a client does that is to make an object; without one of these it makes it.
  enum Making: Hashable {
    case refused, awaited, forgotten
    /// The first that is asked passes.
    case passed
    case elsewhere(String)
  }

  /// A session of a process of its own; with `serves` it serves every call, and makes the objects of `classes`, which
  /// it shares with others or not.
  case begin(Int, role: String?, delegate: Bool, serves: Bool, classes: [String], shared: Bool)
  case end(Int, Ending)
  case register(Int, label: Int, Registration)
  /// Without a session a tool does it.
  case unregister(Int?, Object, keepState: Bool)
  /// `setRestorationParent`.
  case place(Int, Object, below: Object?, takeOver: Bool)
  /// `setRestorationIdentifier`.
  case rename(Int, Object, String?, takeOver: Bool)
  /// `setChildren`.
  case arrange(Int, Object, [Object])
  /// The state is `{"n": number, "to": [references]}`; without a session a tool writes it.
  case push(Int?, Object, Int, to: [String], revision: Int?)
  /// The empty path is the application.
  case decode(Int?, Object)
  case complete(Int)
  /// A save round, in which every object gives the state `number`, with references to `links` of its path. The
  /// application gives a state only if it has links, under the empty path.
  case save(Int, isDeclined: Bool, failing: [String], unchanged: [String], links: [String: [String]])
  case restore(Int?, isDeclined: Bool, making: [String: Making])
  case wait(milliseconds: Int)

  /// Swift source, to be put into a named test.
  var source: String {
    let prefix = String(reflecting: Object.self).dropLast("Object".count)
    return "."
      + ["Object", "Kind", "Ending", "Making"].reduce("\(self)") { $0.replacing(prefix + $1, with: "") }
      .replacing(String(prefix), with: "")
  }
}

extension ReferenceOperation.Kind {
  init(of name: String) { self = name.hasPrefix("c") ? .viewController : name.hasPrefix("v") ? .view : .object }
}
