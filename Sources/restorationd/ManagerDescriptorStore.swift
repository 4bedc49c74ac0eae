// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport
internal import SystemdSupport

/// The service manager keeps descriptors while it starts this service again (`FileDescriptorStoreMax=`).
struct ManagerDescriptorStore: DescriptorStore {
  let notifier: Notifier

  func store(_ descriptor: Int32, as name: String) { notifier.send(.store(name: name, descriptor: descriptor)) }

  func remove(_ name: String) { notifier.send(.removeStored(name: name)) }
}
