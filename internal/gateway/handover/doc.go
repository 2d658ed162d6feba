// Package handover passes the listening sockets of a running process to the one that
// replaces it, so that the kernel's queues of connections are never closed.
//
// The running process (the predecessor) listens at a unix socket. A new one (the successor)
// connects to it when it starts, and they exchange frames of a four-byte length and JSON:
//
//	successor                               predecessor
//	  connects         ------------------>
//	                   <------------------  offer: names and addresses, descriptors by SCM_RIGHTS
//	  brings everything up, but accepts nothing
//	  ready            ------------------>
//	                   <------------------  taken
//	  renames its own unix socket over the predecessor's
//	  listening        ------------------>
//	  begins to accept                      stops accepting, drains, ends
//
// Until it has read the last message the predecessor continues as if nothing had happened,
// whatever the successor does. Between the last message and the successor's first accept neither
// accepts; connections wait in the kernel's queue, which both hold. If one of them is unsure
// about the state of the other, both serve, so at least one of them always does.
//
// A file next to the unix socket, with ".lock" added to its name, is locked (flock(2)) from
// [Inherit] to [Sockets.Ready]: of several processes that start together, each waits for the
// previous one and then replaces it.
//
// The package also accepts sockets from systemd (sd_listen_fds(3)) and reports the state
// of the process to it (sd_notify(3)). Sockets are handed over only on Linux.
package handover
