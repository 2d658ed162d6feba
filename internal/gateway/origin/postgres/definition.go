package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// bodyFormat is the version of the bodies of trigger functions and of what they
// record: the texts of [keyText], NULL for every document. It does not change with each
// release, so that a new release can read what the triggers of the previous one write. 2:
// no body requires a column to exist.
const bodyFormat = 2

// hashDigits is the length of the hash in names, 48 bits.
const hashDigits = 12

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashDigits]
}

// define sets the name under which the rows of each source are recorded: its name,
// and a hash of everything that decides what a row means. Gateways whose
// configurations differ in that therefore never read each other's rows, and both
// keep their promises while a deployment is rolling.
//
// The hash covers the contents of the configuration and the catalogs, and no text
// of SQL: that differs between the role that applies and the gateway's role, and
// between releases.
func (c *compiled) define() {
	for i := range c.sources {
		s := &c.sources[i]
		var meaning string
		if c.Root != nil {
			meaning = c.meaningOfNode(c.Nodes[i])
		} else {
			meaning = fmt.Sprintf("%q gives %q", c.Resource.Query.Depends[i].Via, c.Resource.Query.Key)
		}
		s.recorded = s.name + "@" + hashOf(fmt.Sprintf("%d %q %q %s", bodyFormat, s.name, []string{s.table.schema, s.table.name},
			columnsText(s.table, s.columns)+" "+meaning))
	}
}

// columnsText describes columns whose canonical texts are recorded.
func columnsText(t *table, columns []int) string {
	texts := make([]string, len(columns))
	for i, at := range columns {
		kt, _ := keyTypeOf(&t.columns[at])
		texts[i] = fmt.Sprintf("%q %s %q", t.columns[at].name, kt.kind, kt.sql)
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// meaningOfNode describes the way from a row of n to the key of its document.
func (c *compiled) meaningOfNode(n *node) string {
	var b strings.Builder
	for level := n; level.Parent != nil; level = level.Parent {
		own, up := make([]int, len(level.On)), make([]int, len(level.On))
		for i, j := range level.On {
			own[i], up[i] = j.Column, j.Parent
		}
		fmt.Fprintf(&b, "%s of %q in %s of %q, ", columnsText(level.Table, own), level.Table.sql(), columnsText(level.Parent.Table, up), level.Parent.Table.sql())
	}
	return b.String() + "key " + columnsText(c.Root.Table, c.KeyAt)
}

// hash identifies the definition of a group: the meaning of all its rows.
func (g *group) hash() string {
	names := make([]string, len(g.sources))
	for i, s := range g.sources {
		names[i] = s.recorded
	}
	return hashOf(fmt.Sprintf("%q %q", g.resource, names))
}

// flushSource is the source under which the group records a change of all
// documents. Another definition of the resource does not know it.
func (g *group) flushSource() string { return g.sources[0].recorded }

// nameless reports whether text is a value of the key that no path can express, so
// that no document has it: an empty text, an infinity, a date BC. A trigger of this
// definition writes no other text that [decodeKey] refuses.
func nameless(columns []resource.KeyColumn, text string) bool {
	segments := []*string{&text}
	if len(columns) > 1 {
		segments = nil
		if err := json.Unmarshal([]byte(text), &segments); err != nil || len(segments) != len(columns) {
			return false
		}
	}
	for i, s := range segments {
		if s != nil && columns[i].Check(*s) != nil && !namelessForm(columns[i].Kind).MatchString(*s) {
			return false
		}
	}
	return true
}

// namelessForm matches the texts of values of a kind beyond what a path can express.
func namelessForm(kind resource.Kind) *regexp.Regexp {
	switch kind {
	case resource.Text:
		return anyForm
	case resource.Bytes:
		return bytesForm
	case resource.Decimal:
		return decimalForm
	case resource.Date, resource.Timestamp, resource.TimestampTZ:
		return momentForm
	default: // a path can name every value
		return noForm
	}
}

var (
	anyForm     = regexp.MustCompile(``)
	noForm      = regexp.MustCompile(`[^\x00-\x{10FFFF}]`)
	bytesForm   = regexp.MustCompile(`^([0-9a-f]{2})*$`)
	decimalForm = regexp.MustCompile(`^(NaN|-?Infinity|-?[0-9]+(\.[0-9]+)?)$`)
	momentForm  = regexp.MustCompile(`^(-?infinity|[0-9]{4,7}-[0-9]{2}-[0-9]{2}(T[0-9:.]+Z?)?( BC)?)$`)
)
