package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// The maximum lengths of the lists in one cell, and of the lists of slots that move or that
// views disagree about.
const (
	maxRangesShown = 6
	maxSplitsShown = 20
)

// print prints the report for humans.
func (r *clusterReport) print(out io.Writer) error {
	var b bytes.Buffer
	masters := len(r.Shards)
	fmt.Fprintf(&b, "cluster of %s: %s, %s, %d of %d slots have an owner, state %s\n", r.Seed,
		numbered(masters, "shard"), numbered(len(r.Nodes), "node"), r.Topology.Slots, allSlots, r.Topology.State)
	fmt.Fprintf(&b, "topology of the client: %s of %s, epoch %d\n", r.Topology.Source, r.Topology.From, r.Topology.Epoch)
	r.printShards(&b)
	r.printNodes(&b)
	r.printViews(&b)
	r.printMoving(&b)
	r.printKey(&b)
	printList(&b, "what the client does", r.Client)
	printList(&b, "problems", r.Problems)
	_, err := out.Write(b.Bytes())
	return err
}

// table starts a table. Its writer is flushed by the caller; writing to a buffer does not
// fail.
func table(b *bytes.Buffer, head ...string) *tabwriter.Writer {
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	row(w, head...)
	return w
}

// row writes a row. An empty cell is a dash.
func row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = cmp.Or(cell, "-")
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func (r *clusterReport) printShards(b *bytes.Buffer) {
	w := table(b, "SHARD", "MASTER", "SLOTS", "RANGES", "REPLICAS")
	for i, s := range r.Shards {
		row(w, strconv.Itoa(i+1), s.Master, strconv.Itoa(s.Slots), list(s.Ranges, maxRangesShown), list(s.Replicas, maxRangesShown))
	}
	_ = w.Flush()
}

func (r *clusterReport) printNodes(b *bytes.Buffer) {
	length := r.idLength()
	w := table(b, "NODE", "ID", "ROLE", "STATE", "VERSION", "REPLICA OF", "LINK", "OFFSET", "LAG", "PING MIN", "MEDIAN", "MAX")
	for i := range r.Nodes {
		n := &r.Nodes[i]
		var trip [3]string
		if t := n.RoundTrip; t != nil {
			for i, us := range []int64{t.Min, t.Median, t.Max} {
				trip[i] = (time.Duration(us) * time.Microsecond).String()
			}
		}
		row(w, n.Addr, n.ID[:min(length, len(n.ID))], n.Role, n.State, n.Version, n.Master, n.Link, figure(n.Offset), figure(n.Lag), trip[0], trip[1], trip[2])
	}
	_ = w.Flush()
}

// idLength returns how many characters distinguish the IDs of the nodes, at least 8.
func (r *clusterReport) idLength() int {
	for length := 8; ; length++ {
		seen := make(map[string]bool, len(r.Nodes))
		for i := range r.Nodes {
			seen[r.Nodes[i].ID[:min(length, len(r.Nodes[i].ID))]] = true
		}
		if len(seen) == len(r.Nodes) || length >= maxWord {
			return length
		}
	}
}

func figure(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func (r *clusterReport) printViews(b *bytes.Buffer) {
	fmt.Fprintln(b)
	if len(r.Views.Slots) == 0 {
		fmt.Fprintf(b, "views: %s answered, and they agree about the owner of each slot\n", numbered(r.Views.Answered, "node"))
	}
	for i, split := range r.Views.Slots {
		if i == maxSplitsShown {
			fmt.Fprintf(b, "views differ: %d more ranges of slots\n", len(r.Views.Slots)-i)
			break
		}
		fmt.Fprintf(b, "views differ: %s\n", split.subject())
		for _, c := range split.Claims {
			by := sayers{c.By, c.More}
			fmt.Fprintf(b, "  %s according to %s\n", cmp.Or(c.Owner, "no owner"), by.String())
		}
	}
	var older []string
	for _, n := range r.Nodes {
		if n.Epoch != 0 && n.Epoch < r.Topology.Epoch {
			older = append(older, fmt.Sprintf("%s (epoch %d)", n.Addr, n.Epoch))
		}
	}
	if len(older) > 0 {
		fmt.Fprintf(b, "older views: %s\n", list(older, maxSplitsShown))
	}
	for _, n := range r.Nodes {
		if why, silent := r.Views.Silent[n.Addr]; silent {
			fmt.Fprintf(b, "views: %s does not report its own: %s\n", n.Addr, why)
		}
	}
}

func (r *clusterReport) printMoving(b *bytes.Buffer) {
	for i, m := range r.Moving {
		if i == maxSplitsShown {
			fmt.Fprintf(b, "moving: %d more slots\n", len(r.Moving)-i)
			return
		}
		note := ""
		switch {
		case !m.Importing && r.told(m.To):
			note = "; the latter does not import it"
		case !m.Migrating && r.told(m.From):
			note = "; the former does not migrate it"
		}
		fmt.Fprintf(b, "moving: slot %d from %s to %s%s\n", m.Slot, cmp.Or(m.From, "a node that is not listed"), cmp.Or(m.To, "a node that is not listed"), note)
	}
}

// told reports whether the node at addr has reported its view.
func (r *clusterReport) told(addr string) bool {
	_, silent := r.Views.Silent[addr]
	return !silent && slices.ContainsFunc(r.Nodes, func(n nodeReport) bool { return n.Addr == addr && n.Error == "" })
}

func (r *clusterReport) printKey(b *bytes.Buffer) {
	if r.Key == nil {
		return
	}
	shard, number := r.shardOf(r.Key.Slot)
	if shard == nil {
		fmt.Fprintf(b, "\nkey \"%s\": slot %d, which has no owner\n", r.Key.Key, r.Key.Slot)
		return
	}
	fmt.Fprintf(b, "\nkey \"%s\": slot %d, shard %d; writes go to %s, reads to %s\n", r.Key.Key, r.Key.Slot, number, r.Key.Master, strings.Join(r.Key.Readers, " or "))
}

func printList(b *bytes.Buffer, head string, all []string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", head)
	for _, text := range all {
		fmt.Fprintf(b, "  - %s\n", text)
	}
}

// numbered returns a number of things.
func numbered(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
