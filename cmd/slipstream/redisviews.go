package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/redis"
)

// maxClaims bounds the owners of a slot that are distinguished.
const maxClaims = 8

// viewsReport says how far the views of the nodes agree.
type viewsReport struct {
	Answered int `json:"answered"`
	// Silent are nodes that could be reached but have not reported their view, with the
	// reason.
	Silent map[string]string `json:"silent,omitempty"`
	// Slots are those that views give to different owners.
	Slots []splitReport `json:"slots"`
	// Members are claims of views about nodes, whether or not the topology of the
	// client has them.
	Members []string `json:"members"`
	// Omitted is how many entries of Slots and Members are omitted.
	Omitted int `json:"omitted,omitempty"`
}

// splitReport is slots about which views disagree.
type splitReport struct {
	Slots  string        `json:"slots"` // such as 5-9
	Claims []claimReport `json:"claims"`
}

// claimReport is an owner, and the nodes that claim it: at most maxSayers by name, and the
// number of others.
type claimReport struct {
	Owner string   `json:"owner"` // its address; empty if none
	By    []string `json:"by"`
	More  int      `json:"more,omitempty"`
}

// sayers are the nodes that make the same claim.
type sayers struct {
	by   []string
	more int
}

func (s *sayers) add(addr string) {
	if len(s.by) < maxSayers {
		s.by = append(s.by, addr)
	} else {
		s.more++
	}
}

func (s *sayers) String() string {
	text := strings.Join(s.by, ", ")
	if s.more > 0 {
		text += fmt.Sprintf(" and %d more", s.more)
	}
	return text
}

// A claim is an owner of a slot according to views.
type claim struct {
	owner string // its ID, or its address if it has none; empty if none
	sayers
}

// views compares the views of nodes. Owners are compared by ID: nodes may know each other by
// different addresses.
type views struct {
	addrs    map[string]string // of the topology of the client, by ID
	moves    map[redis.MovingSlot]*movingReport
	slots    [allSlots][]claim
	answered int
	quiet    map[string]string
	failing  map[string]*sayers // of nodes, by address: the nodes that cannot reach them
	missing  map[string]*sayers // the nodes that do not list them
	stranger map[string]*sayers // nodes that the topology of the client lacks, by address
	omitted  int
}

func newViews(t redis.Topology) *views {
	v := &views{addrs: make(map[string]string), moves: make(map[redis.MovingSlot]*movingReport), quiet: make(map[string]string),
		failing: make(map[string]*sayers), missing: make(map[string]*sayers), stranger: make(map[string]*sayers)}
	for _, n := range t.Nodes {
		v.addrs[identity(n)] = n.Addr
	}
	return v
}

// identity returns what identifies a node.
func identity(n redis.NodeInfo) string { return cmp.Or(n.ID, n.Addr) }

// silent records that a node has not reported its view.
func (v *views) silent(addr, why string) { v.quiet[addr] = why }

// add adds the view of a node.
func (v *views) add(t redis.Topology) {
	v.answered++
	ids := make(map[string]string, len(t.Nodes)) // by the address in this view
	listed := make(map[string]bool, len(t.Nodes))
	for _, n := range t.Nodes {
		id := identity(n)
		ids[n.Addr], listed[id] = id, true
		addr, known := v.addrs[id]
		switch {
		case !known:
			v.note(v.stranger, n.Addr, t.From)
		case n.Failed:
			v.note(v.failing, addr, t.From)
		}
	}
	for id, addr := range v.addrs {
		if !listed[id] {
			v.note(v.missing, addr, t.From)
		}
	}
	next := 0
	for _, owned := range t.Slots {
		v.claim(next, owned.First-1, "", t.From)
		v.claim(owned.First, owned.Last, cmp.Or(ids[owned.Node], owned.Node), t.From)
		next = owned.Last + 1
	}
	v.claim(next, allSlots-1, "", t.From)
	for _, m := range t.Moving {
		v.move(m, t.From)
	}
}

// note adds a node that makes a claim about another.
func (v *views) note(about map[string]*sayers, addr, by string) {
	if about[addr] == nil {
		if len(about) == maxListed {
			v.omitted++
			return
		}
		about[addr] = new(sayers)
	}
	about[addr].add(by)
}

// claim records the owner of slots that a node names.
func (v *views) claim(first, last int, owner, by string) {
	for slot := first; slot <= last; slot++ {
		claims := v.slots[slot]
		at := slices.IndexFunc(claims, func(c claim) bool { return c.owner == owner })
		if at < 0 {
			if len(claims) == maxClaims {
				continue // more than enough to show that there is no agreement
			}
			at = len(claims)
			claims = append(claims, claim{owner: owner})
		}
		claims[at].add(by)
		v.slots[slot] = claims
	}
}

// move records a slot that a node migrates or imports.
func (v *views) move(m redis.MovingSlot, by string) {
	known := v.moves[m]
	if known == nil {
		if len(v.moves) == maxListed {
			v.omitted++
			return
		}
		known = &movingReport{Slot: m.Slot, From: m.From, To: m.To}
		v.moves[m] = known
	}
	known.Migrating = known.Migrating || by == m.From
	known.Importing = known.Importing || by == m.To
}

// report returns what the views disagree about, and the slots that move.
func (v *views) report() (r viewsReport, moving []movingReport) {
	r = viewsReport{Answered: v.answered, Silent: v.quiet, Slots: []splitReport{}, Members: []string{}, Omitted: v.omitted}
	last, before := -2, ""
	for slot, claims := range v.slots {
		if len(claims) < 2 {
			continue
		}
		slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.owner, b.owner) })
		for i := range claims {
			slices.Sort(claims[i].by)
		}
		text := fmt.Sprint(claims)
		switch n := len(r.Slots); {
		case slot == last+1 && text == before:
			first, _, _ := strings.Cut(r.Slots[n-1].Slots, "-")
			r.Slots[n-1].Slots = first + "-" + slotRange(slot, slot)
		case n == maxListed:
			r.Omitted++
			continue
		default:
			r.Slots = append(r.Slots, v.split(slot, claims))
		}
		last, before = slot, text
	}
	for _, about := range []struct {
		nodes map[string]*sayers
		text  string
	}{
		{v.failing, "%s has failed according to %s"},
		{v.missing, "%s is not known to %s"},
		{v.stranger, "%s is not in the topology of the client, but is in that of %s"},
	} {
		var lines []string
		for addr, by := range about.nodes {
			slices.Sort(by.by)
			lines = append(lines, fmt.Sprintf(about.text, addr, by))
		}
		slices.Sort(lines)
		r.Members = append(r.Members, lines...)
	}
	moving = []movingReport{}
	for _, m := range v.moves {
		moving = append(moving, *m)
	}
	slices.SortFunc(moving, func(a, b movingReport) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return r, moving
}

// split returns the claims to a slot.
func (v *views) split(slot int, claims []claim) splitReport {
	s := splitReport{Slots: slotRange(slot, slot)}
	for _, c := range claims {
		s.Claims = append(s.Claims, claimReport{Owner: cmp.Or(v.addrs[c.owner], c.owner), By: c.by, More: c.more})
	}
	return s
}
