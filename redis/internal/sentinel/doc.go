// Package sentinel contains what a client knows about a master that Redis Sentinel monitors: where
// the master is, and when to query again. It uses neither sockets nor the client. It supports Redis
// 2.8 and later, and Valkey.
//
//   - [ParseView] turns the replies of one Sentinel into a [View]: the address of the master, the
//     config epoch, the replicas that can be read, and the other Sentinels.
//   - [Refresher] decides when to query Sentinels and whose answer to use, and listens to what they
//     publish.
//   - [Relevant] reports whether a message that a Sentinel has published concerns the master.
//
// # Which answer
//
// Each failover has a config epoch, which is higher than all previous ones and which the Sentinels
// share with each other. An answer is used if its epoch is higher than that of the current master,
// and if the server that it names answers ROLE with master. An answer with the same epoch and
// another address, or with a lower epoch, is old: it comes from a Sentinel that is cut off or has
// just come back, and the server that it names may claim to be a master although it was replaced.
// There are two exceptions: Sentinels that were set up again, so that their epochs start over, and
// a failover whose leader was lost before another Sentinel had learned of it. So if a majority of
// the Sentinels names the same server with the same old epoch for 10 s, and none confirms the
// current master, that server is used.
//
// The reply to SENTINEL GET-MASTER-ADDR-BY-NAME contains the address, and the reply to SENTINEL
// MASTER contains the epoch. Only the former names the new master as soon as it is promoted, so
// both commands are sent. The epoch is queried before and after the address, which is used only if
// both epochs are the same. Services that answer only the address have no epochs; their answers are
// always used.
//
// # Replicas
//
// Replicas are queried only if they are to be read. A replica can be read if its Sentinel reaches
// it and it has a connection to its master. Sentinels do not publish when a replica becomes
// readable. So while one is not, they are queried again after 1 s, and then less and less often,
// down to every 16 s.
//
// # Addresses
//
// Sentinels tell the client where to connect, so addresses are checked; see [cluster.Addresses].
package sentinel

// Bounds of a reply.
const (
	// MaxReply is the maximum size of a reply in bytes.
	MaxReply = 1 << 20
	// MaxElements is the maximum number of elements of a reply.
	MaxElements = 1 << 16
	maxName     = 128 // bytes of the name of a field
	maxHost     = 253 // bytes of a host name
)
