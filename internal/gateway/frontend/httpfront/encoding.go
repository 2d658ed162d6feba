package httpfront

import "strings"

// coding is a content coding of an answer (RFC 9110, section 8.4.1).
type coding uint8

const (
	identity coding = iota
	gzipped         // RFC 1952
	zstd            // RFC 8878, with the window of RFC 9659

	codings
)

// Field values of Content-Encoding.
var codingNames = [codings][]string{nil, {"gzip"}, {"zstd"}}

// Bounds of an Accept-Encoding that is read: browsers send five codings in 30
// bytes. A longer one is ignored.
const (
	maxAcceptEncoding = 1 << 10
	maxCodings        = 32
)

// accepted are the weights that a client gives to the supported codings, in
// thousandths; 0 means refused.
type accepted struct {
	weights [codings]int
	// listed says that the client named identity, or excluded it with "*;q=0":
	// then it is no longer a fallback.
	listed bool
}

// parseAccept reads a field Accept-Encoding (RFC 9110, section 12.5.3). Malformed
// elements are ignored.
func parseAccept(field string) accepted {
	var a accepted
	a.weights[identity] = 1
	if field == "" || len(field) > maxAcceptEncoding {
		return a
	}
	const unset = -1
	weights := [codings]int{unset, unset, unset}
	others := unset
	for n := 0; field != ""; n++ {
		if n == maxCodings {
			return accepted{weights: [codings]int{identity: 1}}
		}
		var element string
		element, field, _ = strings.Cut(field, ",")
		name, weight, ok := parseCoding(element)
		if !ok {
			continue
		}
		switch {
		case name == "*":
			others = weight
		case strings.EqualFold(name, "gzip"), strings.EqualFold(name, "x-gzip"):
			weights[gzipped] = weight
		case strings.EqualFold(name, "zstd"):
			weights[zstd] = weight
		case strings.EqualFold(name, "identity"):
			weights[identity] = weight
		}
	}
	for c := range weights {
		switch {
		case weights[c] != unset:
			a.weights[c] = weights[c]
			a.listed = a.listed || coding(c) == identity
		case coding(c) == identity:
			if others == 0 {
				a.weights[c], a.listed = 0, true
			}
		default:
			a.weights[c] = max(others, 0)
		}
	}
	return a
}

// parseCoding parses one element: a coding with or without a weight.
func parseCoding(element string) (name string, weight int, ok bool) {
	name, parameters, more := strings.Cut(element, ";")
	name = strings.Trim(name, " \t")
	if name == "" {
		return "", 0, false
	}
	if !more {
		return name, 1000, true
	}
	parameters = strings.Trim(parameters, " \t")
	if len(parameters) < 3 || parameters[0]|0x20 != 'q' || parameters[1] != '=' {
		return "", 0, false
	}
	weight, ok = parseWeight(parameters[2:])
	return name, weight, ok
}

// parseWeight reads a qvalue (RFC 9110, section 12.4.2): 0 or 1 with up to three
// decimals, as thousandths.
func parseWeight(s string) (int, bool) {
	if s == "" || s[0] != '0' && s[0] != '1' || len(s) > 5 || len(s) > 1 && s[1] != '.' {
		return 0, false
	}
	weight, unit := int(s[0]-'0')*1000, 100
	for i := 2; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		weight += int(s[i]-'0') * unit
		unit /= 10
	}
	return weight, weight <= 1000
}

// choose returns the coding with the greatest weight of those offered, which are in
// the server's order of preference. Identity is chosen if the client prefers it by
// name, or accepts none of the others. must says that identity is not acceptable; ok
// is false if nothing is.
func (a *accepted) choose(offered []coding) (c coding, must, ok bool) {
	best := 0
	for _, o := range offered {
		if w := a.weights[o]; w > best {
			c, best = o, w
		}
	}
	switch own := a.weights[identity]; {
	case best == 0:
		return identity, false, own > 0
	case own == 0:
		return c, true, true
	case a.listed && own > best:
		return identity, false, true
	}
	return c, false, true
}
