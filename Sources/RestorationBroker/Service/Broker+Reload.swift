// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationTransport
internal import RestorationWire

extension BrokerConfiguration {
  /// What is in effect after `configuration` was read again: only what `Broker.reload` has taken over is new.
  package func reloaded(_ configuration: BrokerConfiguration) -> BrokerConfiguration {
    var result = self
    result.logLevel = configuration.logLevel
    result.idleExitSeconds = configuration.idleExitSeconds
    result.restoreAtLogin = configuration.restoreAtLogin
    for limit in Limit.all where BrokerCore.changeableLimits.contains(limit.name) {
      result.limits[keyPath: limit.keyPath] = configuration.limits[keyPath: limit.keyPath]
    }
    return result
  }
}

extension Broker {
  /// Takes over what may change while clients are connected.
  ///
  /// - Returns: names of settings that are different now but change only when the broker is started again.
  package func reload(_ configuration: BrokerConfiguration, from former: BrokerConfiguration) throws -> [String] {
    let service = service
    var rest: [String] = []
    // Where it was given a socket, the configuration has no say.
    if case .path(let new) = configuration.socket, case .path(let old) = former.socket, new != old {
      rest.append("socket")
    }
    if configuration.archives != former.archives { rest.append("archives") }
    if configuration.developerMode != former.developerMode { rest.append("developerMode") }
    let (limits, policies) = (configuration.limits, configuration.restoreAtLogin)
    for limit in Limit.all where limits[keyPath: limit.keyPath] != former.limits[keyPath: limit.keyPath] {
      if !BrokerCore.changeableLimits.contains(limit.name) { rest.append(limit.name) }
    }
    try service.eventLoop.submit {
      service.assumeIsolated { service in
        service.core.change(to: limits)
        service.core.configure(policies)
      }
    }.wait()
    return rest
  }
}
