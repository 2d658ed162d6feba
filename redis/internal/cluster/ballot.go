package cluster

import "github.com/slipstream-go/slipstream/redis/internal/slot"

// mostAnswers is the maximum number of answers in a refresh.
const mostAnswers = 3

// resetRounds is the number of consecutive refreshes with only older views after which one is used.
const resetRounds = 3

// A ballot selects one of the views of the nodes in a refresh. See the package comment for the rules.
type ballot struct {
	inForce *Topology // nil if there is none yet
	olds    int       // consecutive previous refreshes with only older views
	answers []*Topology
}

// add adds an answer. It reports whether no other node needs to be queried.
func (b *ballot) add(t *Topology) (enough bool) {
	b.answers = append(b.answers, t)
	return b.clear(t) || !b.old(t) && b.shared(t) || len(b.answers) >= mostAnswers
}

// old reports whether a view is older than the current one. A node without any slots in its view is no
// longer in the cluster.
func (b *ballot) old(t *Topology) bool {
	return b.inForce != nil && (t.olderThan(b.inForce) || len(t.Ranges) == 0 && len(b.inForce.Ranges) > 0)
}

// dated reports whether a view contains an epoch, which shows how old it is.
func dated(t *Topology) bool { return t.CurrentEpoch != 0 || t.ConfigEpoch != 0 }

// clear reports whether a view can be used without asking another node.
func (b *ballot) clear(t *Topology) bool {
	known := dated(t) || b.inForce != nil && t.sameOwners(b.inForce)
	return known && !b.old(t) && t.State != Down && t.Doubt == "" && !b.lacks(t)
}

// lacks reports whether a view has no owner for slots that had one: its node may have lost or
// forgotten the others.
func (b *ballot) lacks(t *Topology) bool {
	had := slot.Count
	if b.inForce != nil {
		had = b.inForce.Covered()
	}
	return t.Covered() < had
}

// shared reports whether another node has the same view as t.
func (b *ballot) shared(t *Topology) bool {
	for _, other := range b.answers {
		if other != t && other.From != t.From && other.sameOwners(t) {
			return true
		}
	}
	return false
}

// winner returns the view to use, or an error that says why there is none. There must be at least one
// answer.
func (b *ballot) winner() (*Topology, error) {
	var best *Topology
	for _, t := range b.answers {
		if !b.old(t) && (best == nil || b.less(best, t)) {
			best = t
		}
	}
	switch {
	case best == nil && b.olds+1 >= resetRounds:
		return b.afterReset()
	case best == nil:
		return nil, ErrOldView
	case b.inForce != nil && len(b.answers) > 1 && !dated(best) && !b.clear(best) && !b.shared(best):
		return nil, ErrDisagree
	}
	return best, nil
}

// afterReset returns a view of a cluster whose epochs have started over. The view of a node that is cut
// off does not count.
func (b *ballot) afterReset() (*Topology, error) {
	var best *Topology
	for _, t := range b.answers {
		if t.State != Down && (best == nil || b.less(best, t)) {
			best = t
		}
	}
	if best == nil {
		return nil, ErrOldView
	}
	return best, nil
}

// less reports whether other is the better view.
func (b *ballot) less(t, other *Topology) bool {
	for _, better := range [...]func(*Topology) bool{
		func(t *Topology) bool { return t.State != Down },
		b.shared,
		func(t *Topology) bool { return t.Doubt == "" },
	} {
		if x, y := better(t), better(other); x != y {
			return y
		}
	}
	if older := t.olderThan(other); older || other.olderThan(t) {
		return older
	}
	return t.Covered() < other.Covered()
}
