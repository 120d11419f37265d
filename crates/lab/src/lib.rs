//! Disposable hosts: anonymous network namespaces joined by veth pairs, gone with their file descriptors.
