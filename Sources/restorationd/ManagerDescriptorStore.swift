// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport
internal import SystemdSupport

/// Stores descriptors in the service manager, for the next process of this service (`FileDescriptorStoreMax=`).
struct ManagerDescriptorStore: DescriptorStore {
  let notifier: Notifier

  func store(_ descriptor: Int32, as name: String) { notifier.send(.store(name: name, descriptor: descriptor)) }

  func remove(_ name: String) { notifier.send(.removeStored(name: name)) }
}
