// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// What a client in a sandbox may do: it is confined to one application and its instances.
extension Client {
  /// Whether it may use the application, and hear of it.
  func mayUse(_ name: ApplicationName) -> Bool { confinement.map { $0 == name.base } ?? true }

  /// Throws if it may not use the application. The error is the same whether there is such an application or not.
  func require(_ name: ApplicationName) throws(ErrorObject) {
    guard let confinement, !mayUse(name) else { return }
    throw .restoration(
      .forbidden,
      "this connection may use \(confinement) and its instances only",
      hint: "Name that application, or call from outside of the sandbox."
    )
  }

  /// The application that a call names.
  func application(named text: String) throws(ErrorObject) -> ApplicationName {
    guard let name = ApplicationName(text) else {
      throw Misfit(ApplicationName.invalid(text), at: "application").invalidParameter(at: "/application")
    }
    try require(name)
    return name
  }

  /// Throws if only a client outside of sandboxes may do that.
  func requireHost(to what: String) throws(ErrorObject) {
    guard confinement != nil else { return }
    throw .restoration(
      .forbidden,
      "a client in a sandbox may not \(what)",
      hint: "Call from outside of the sandbox, for example by restorationctl."
    )
  }
}
