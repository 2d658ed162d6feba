package postgres

import (
	"fmt"
	"strings"
)

// lineage is the highest known timeline of one system: every promotion and every
// point-in-time recovery begins a higher one. Immutable.
type lineage struct {
	system   string // pg_control_system().system_identifier
	timeline string // eight hexadecimal digits
}

// left reports whether a server is on a timeline that the system has abandoned.
func (l *lineage) left(system, timeline string) bool {
	return l != nil && l.system == system && timeline < l.timeline
}

// learn notes that a system has reached a timeline. Another system's is ignored: only
// the stream moves from one system to another.
func (o *Origin) learn(system, timeline string) {
	for {
		known := o.lineage.Load()
		if known != nil && (known.system != system || known.timeline >= timeline) {
			return
		}
		if o.lineage.CompareAndSwap(known, &lineage{system, timeline}) {
			return
		}
	}
}

// lowerTimelineError is the refusal of a server that was the primary once.
type lowerTimelineError struct {
	host             string
	system           string
	timeline, beyond string // of the server, and the one that is known
}

func (e *lowerTimelineError) Error() string {
	return fmt.Sprintf("%s is on timeline %s, and its system %s has reached timeline %s: it is a former primary, and what is committed there is lost. "+
		"Stop it or make it a standby; if the database was rolled back deliberately, stop the gateway and run slipstream disk forget DIR, or without a disk tier restart the gateway",
		e.host, short(e.timeline), e.system, short(e.beyond))
}

// short is a timeline without leading zeros.
func short(timeline string) string {
	if s := strings.TrimLeft(timeline, "0"); s != "" {
		return s
	}
	return "0"
}

// name identifies the history. It includes the database: a copy within the server,
// which may replace it, has the same record of changes and the same transaction IDs. It
// is empty if nothing records changes.
func (h history) name(system string) string {
	if h.incarnation == "" {
		return ""
	}
	return system + "/" + h.timeline + "/" + h.incarnation + "/" + h.database
}

// lineageOf returns the lineage in the name of a history; ok is false for a name of an
// earlier release.
func lineageOf(name string) (system, timeline string, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 4 || len(parts[1]) != 8 {
		return "", "", false
	}
	return parts[0], parts[1], true
}
