package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// decide fills in the problems and what the client does, if it reads with that policy.
func (r *clusterReport) decide(policy string) {
	r.policy = policy
	r.findProblems()
	r.say("%s", r.coverage())
	r.say("%s", r.reads())
	said, away := 0, 0
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.State == "unreachable" {
			away++
		}
		if n.State == "unreachable" || n.State == "failed" {
			if said++; said <= maxListed {
				r.say("%s", r.without(n))
			}
		}
	}
	if away == len(r.Nodes) {
		r.say("no node can be reached at the address that the cluster announces, although %s answered; ClusterOptions.MapAddr translates addresses", r.Seed)
	}
	if len(r.Uncovered) > 0 {
		r.say("calls on slots without an owner go to any master, which answers CLUSTERDOWN; they are retried until DialTimeout (5s unless set) and then fail as refused")
	}
	if len(r.Moving) > 0 {
		r.say("while a slot moves, calls on keys that have moved are answered with ASK: the client sends that one call to the other node; commands on keys of both nodes wait (TRYAGAIN)")
	}
	if len(r.Views.Slots) > 0 {
		r.say("the client uses the view of %s, epoch %d, and no view with a lower epoch; MOVED corrects it slot by slot", r.Topology.From, r.Topology.Epoch)
	}
}

// say adds a sentence to Client.
func (r *clusterReport) say(format string, args ...any) {
	r.Client = append(r.Client, fmt.Sprintf(format, args...))
}

// findProblems fills in Problems.
func (r *clusterReport) findProblems() {
	if r.Topology.State != "ok" {
		r.problem("%s says that the cluster is down", r.Topology.From)
	}
	if without := allSlots - r.Topology.Slots; without > 0 {
		r.problem("%d slots have no owner: %s", without, list(r.Uncovered, maxSayers))
	}
	for i := range r.Nodes {
		switch n := &r.Nodes[i]; {
		case n.State == "unreachable":
			r.problem("%s cannot be reached: %s", n.Addr, n.Error)
		case n.State == "failed":
			r.problem("%s has failed according to the cluster, but can be reached from here", n.Addr)
		case n.ownRole == "slave" && n.Role == "master", n.ownRole == "master" && n.Role == "replica":
			r.problem("%s is a %s in the topology of the client, but reports another role itself", n.Addr, n.Role)
		}
	}
	for _, split := range r.Views.Slots {
		r.problem("the nodes disagree about the owner of %s", split.subject())
	}
	for _, text := range r.Views.Members {
		r.problem("%s", text)
	}
	if r.Views.Omitted > 0 {
		r.problem("%d more disagreements are omitted", r.Views.Omitted)
	}
}

// subject returns the slots with their noun.
func (s *splitReport) subject() string {
	if strings.Contains(s.Slots, "-") {
		return "slots " + s.Slots
	}
	return "slot " + s.Slots
}

// list joins the first elements of a list, and says how many more there are.
func list(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// coverage describes the effect of cluster-require-full-coverage.
func (r *clusterReport) coverage() string {
	by := make(map[string]*sayers)
	for i := range r.Nodes {
		setting := r.Nodes[i].Coverage
		if by[setting] == nil {
			by[setting] = new(sayers)
		}
		by[setting].add(r.Nodes[i].Addr)
	}
	delete(by, "") // unknown
	switch settings := slices.Sorted(maps.Keys(by)); {
	case len(settings) == 0:
		return "whether a slot without an owner stops the whole cluster (cluster-require-full-coverage) is unknown: the nodes do not permit CONFIG GET"
	case len(settings) == 2:
		return fmt.Sprintf("cluster-require-full-coverage is no at %s and yes at %s, which answer CLUSTERDOWN to commands on any key if a slot has no owner", by["no"], by["yes"])
	case settings[0] == "yes":
		return "cluster-require-full-coverage is yes: if a slot has no owner, nodes answer CLUSTERDOWN to commands on any key"
	}
	return "cluster-require-full-coverage is no: a slot without an owner only affects commands on its own keys"
}

// reads describes where read-only commands go.
func (r *clusterReport) reads() string {
	usable, replicas := 0, 0
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Role == "replica" {
			replicas++
			if n.State == "ok" {
				usable++
			}
		}
	}
	if replicas == 0 {
		return "reads go to masters: there are no replicas"
	}
	switch r.policy {
	case "master":
		return fmt.Sprintf("reads go to masters (--read-from master); %d of %d replicas could answer some", usable, replicas)
	case "replica":
		return fmt.Sprintf("reads go to replicas, %d of %d of which can answer them, and to the master of a shard that has none", usable, replicas)
	case "zone":
		return fmt.Sprintf("reads go to replicas in the zone of the client, to its masters, and then to other zones; %d of %d replicas can answer them", usable, replicas)
	case "nearest":
		return fmt.Sprintf("reads go to the nodes of a shard with the shortest round trips; %d of %d replicas can answer them", usable, replicas)
	}
	return fmt.Sprintf("reads go to masters and replicas in turn; %d of %d replicas can answer them", usable, replicas)
}

// without describes what the client does while it cannot reach a node.
func (r *clusterReport) without(n *nodeReport) string {
	switch {
	case n.State == "failed":
		return fmt.Sprintf("%s: the client keeps its connection, and prefers other nodes for reads", n.Addr)
	case n.Slots > 0:
		return fmt.Sprintf("%s: calls on its %d slots wait for it or for its successor, at most DialTimeout (5s unless set), and fail as not sent; "+
			"the client dials it again with pauses of up to 2s, and requests the topology four times a second", n.Addr, n.Slots)
	case n.Role == "replica":
		return fmt.Sprintf("%s: reads go to other nodes of its shard; the client dials it again with pauses of up to 2s", n.Addr)
	}
	return fmt.Sprintf("%s: it owns no slot, so no call needs it; the client dials it again with pauses of up to 2s", n.Addr)
}
