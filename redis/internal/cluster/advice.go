package cluster

// When is the time at which a command is sent again.
type When uint8

// The times.
const (
	// Never means that the error is the result.
	Never When = iota
	// AtOnce means without a pause.
	AtOnce
	// AfterPause means after a pause, because the obstacle is temporary.
	AfterPause
)

// Where says to which node a command is sent again.
type Where uint8

// The nodes.
const (
	// ToOwner is the owner of the slot according to the map when the command is sent again.
	ToOwner Where = iota
	// ToTarget is the node that the redirect names.
	ToTarget
	// ToOther is another node that can execute the command, without a pause: for a read, another
	// replica or the master. If there is none, it means the owner, after a pause.
	ToOther
)

// Advice says how to handle an error reply. It does not say whether the command may be sent again:
// all these errors mean that the server did not execute the command, unless the command is a
// script, which may have written before it returned the error.
type Advice struct {
	When  When
	Where Where
	// Refresh says whether to refresh the topology.
	Refresh bool
	// Learn says whether the target of the redirect becomes the owner of the slot in the map.
	Learn bool
}

// Advise says how to handle an error reply whose first word is code. The rules:
//
//	MOVED        another node owns the slot: go there immediately, remember it, refresh
//	ASK          the key is at the node to which the slot moves, or nowhere: go there immediately, with
//	             ASKING; the owner remains the same, so remember nothing and do not refresh
//	TRYAGAIN     the keys are at both nodes of a migration: retry at the owner after a pause
//	CLUSTERDOWN  the slot has no owner, or the node cannot reach most masters: refresh, and retry
//	             after a pause
//	LOADING      the node loads its data: read elsewhere immediately, or wait; its slots remain
//	MASTERDOWN   a replica has lost its master and does not serve old data: read elsewhere
//	             immediately, and refresh, because a failover is likely
//	READONLY     a write reached a replica that was a master until now: refresh, and retry after a
//	             pause
//	CROSSSLOT    the keys are in different slots: an error of the caller on any node
//
// All other errors are results and have nothing to do with the cluster.
func Advise(code string) Advice {
	switch code {
	case "MOVED":
		return Advice{When: AtOnce, Where: ToTarget, Refresh: true, Learn: true}
	case "ASK":
		return Advice{When: AtOnce, Where: ToTarget}
	case "TRYAGAIN":
		return Advice{When: AfterPause, Where: ToOwner}
	case "CLUSTERDOWN", "READONLY":
		return Advice{When: AfterPause, Where: ToOwner, Refresh: true}
	case "LOADING":
		return Advice{When: AtOnce, Where: ToOther}
	case "MASTERDOWN":
		return Advice{When: AtOnce, Where: ToOther, Refresh: true}
	}
	return Advice{}
}
