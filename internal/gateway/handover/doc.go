// Package handover gives the listening sockets of a running process to the one that
// replaces it, so that the kernel's queues of connections are never closed.
//
// The running process (the predecessor) waits at a unix socket. A new one (the successor)
// connects to it when it starts, and they talk, in frames of four bytes of length and JSON:
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
// Until it has read the last message the predecessor goes on as if nothing happened,
// whatever the successor does. Between the last message and the successor's first accept
// nobody accepts; connections wait in the kernel's queue, which both hold. If one of the
// two doubts what the other knows, both serve: never none.
//
// A file beside the unix socket, its name with ".lock" added, is locked (flock(2)) from
// [Inherit] to [Sockets.Ready]: of several processes that start at once each waits for the
// one before, and then replaces it.
//
// The package also takes sockets from systemd (sd_listen_fds(3)) and tells it how the
// process is (sd_notify(3)). Sockets are handed over on Linux alone.
package handover
