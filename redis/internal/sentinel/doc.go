// Package sentinel is what a client knows about a master that Redis Sentinel watches: where it is,
// and when to ask again. It knows no sockets and no client. Servers: Redis from 2.8 on and Valkey.
//
//   - [ParseView] turns the replies of one Sentinel into a [View]: the address of the master, the
//     config epoch, and the other Sentinels.
//   - [Refresher] decides when Sentinels are asked, whose answer is taken, and listens to what they
//     publish.
//   - [Relevant] says whether something that a Sentinel has published is about the master.
//
// # Which answer
//
// Each failover has a config epoch, which is higher than those before, and Sentinels spread it. An
// answer is taken if its epoch is higher than that of the master in force, and if the server that it
// names says in its reply to ROLE that it is a master. An answer with the same epoch and another
// address, or with a lower epoch, is old: it comes from a Sentinel that is cut off or has just come
// back, and the server that it names may say that it is a master although it was replaced. The
// exception are Sentinels that were set up anew, whose epochs begin again, and a failover of which no
// other Sentinel has learned before its leader was lost: if for 10 s a majority of the Sentinels names
// the same server in the same old epoch, and none confirms the master in force, that server is taken.
//
// SENTINEL GET-MASTER-ADDR-BY-NAME has the address and SENTINEL MASTER has the epoch. Only the former
// names the new master as soon as it was promoted, so both are asked, and the epoch twice: before and
// after the address, which is used only if both are the same. Services that answer nothing but the
// address have no epochs: what they say is taken.
//
// # Addresses
//
// A Sentinel tells the client where to connect to, so addresses are checked: see
// [cluster.Addresses].
package sentinel

// Bounds of what a reply may hold.
const (
	// MaxReply is how many bytes a reply has at most.
	MaxReply = 1 << 20
	// MaxElements is how many elements a reply has at most.
	MaxElements = 1 << 16
	maxName     = 128 // bytes of the name of a field
	maxHost     = 253 // bytes of a host name
)
