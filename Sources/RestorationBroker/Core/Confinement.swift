// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// A client in a sandbox is confined to one application and its instances.
extension Client {
  /// Whether it may use the application, and get its events.
  func mayUse(_ name: ApplicationName) -> Bool { confinement.map { $0 == name.base && !name.isSetAside } ?? true }

  /// Throws if the client may not use the application, with the same error whether it exists or not.
  func require(_ name: ApplicationName) throws(ErrorObject) {
    guard let confinement, !mayUse(name) else { return }
    throw .restoration(
      .forbidden,
      "this connection may use \(confinement) and its instances only",
      hint: "Name that application, or call from outside of the sandbox."
    )
  }

  func application(named text: String) throws(ErrorObject) -> ApplicationName {
    guard let name = ApplicationName(text) else {
      throw Misfit(ApplicationName.invalid(text), at: "application").invalidParameter(at: "/application")
    }
    try require(name)
    return name
  }

  /// Throws if the client is in a sandbox.
  func requireHost(to what: String) throws(ErrorObject) {
    guard confinement != nil else { return }
    throw .restoration(
      .forbidden,
      "a client in a sandbox may not \(what)",
      hint: "Call from outside of the sandbox, for example by restorationctl."
    )
  }
}
