package cluster

// When says when a command is sent again.
type When uint8

// The times.
const (
	// Never means that the error is the answer.
	Never When = iota
	// AtOnce means without a pause.
	AtOnce
	// AfterPause means after a pause, because what is in the way ends without action.
	AfterPause
)

// Where says to which node a command is sent again.
type Where uint8

// The nodes.
const (
	// ToOwner is the owner of the slot according to the map at that time.
	ToOwner Where = iota
	// ToTarget is the node that the redirect names.
	ToTarget
	// ToOther is another node that can answer the command: for a read, another replica or the master,
	// without a pause. If there is none, it is the owner, after a pause.
	ToOther
)

// Advice is what to do about an error of the server. It does not say that the command may be sent
// again: all these errors mean that the server has not executed the command, unless it is a script,
// which may have written before one of its commands was refused.
type Advice struct {
	When  When
	Where Where
	// Refresh is whether the topology should be asked for.
	Refresh bool
	// Learn is whether the map of slots learns the target of the redirect.
	Learn bool
}

// Advise returns what to do about an error whose first word is code. The rules:
//
//	MOVED        another node owns the slot: go there at once, remember it, refresh
//	ASK          the key is at the node that the slot moves to, or nowhere: go there at once, with
//	             ASKING; the owner stays the same, so nothing is remembered and nothing refreshed
//	TRYAGAIN     the keys are at both nodes of a migration: begin again at the owner, after a pause
//	CLUSTERDOWN  the slot has no owner, or the node cannot reach most masters: refresh, and begin
//	             again after a pause
//	LOADING      the node loads its data: read elsewhere at once, or wait for it; its slots stay
//	MASTERDOWN   a replica has lost its master and does not serve old data: read elsewhere at once;
//	             refresh, because a failover is likely
//	READONLY     a write reached a replica: the node was a master until now; refresh, and begin again
//	             after a pause
//	CROSSSLOT    keys of several slots: the caller's mistake, which no node answers
//
// Other errors are the answer to the command as far as the cluster is concerned.
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
