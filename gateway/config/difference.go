package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Effect says when a changed key takes effect.
type Effect string

// Effects of a changed key.
const (
	// AtReload: as soon as the file is read again.
	AtReload Effect = "reload"
	// AtReloadCold: as soon as the file is read again, and what is cached of the
	// resource is dropped.
	AtReloadCold Effect = "reload, its documents are dropped"
	// AtRestart: with the next process.
	AtRestart Effect = "restart"
)

// Change is a key whose value differs between two configurations.
type Change struct {
	// Key is the path of the key: "http.limits.client.rate". For a resource that only one
	// of the two has it is "resources." and the name.
	Key string
	// Old and New are the values as YAML, with the defaults that hold where the file says
	// nothing; "" where there is none. Secrets are hidden, so that both may look the same.
	Old, New string
	Effect   Effect
}

// Difference returns the keys whose values differ, in the order of the file. It knows
// secrets: a password that changed is a change, though it is not shown.
func Difference(old, new *Config) []Change {
	was, is := flatten(old.Marshal()), flatten(new.Marshal())
	list := sameConnections(compare(was, is), was, is)
	shownWas, shownIs := flatten(old.Redacted()), flatten(new.Redacted())
	for i := range list {
		c := &list[i]
		c.Old, c.New = shownWas.of[c.Key], shownIs.of[c.Key]
		c.judge(old)
	}
	return gather(list, was, is)
}

// DifferenceShown is Difference from what a running gateway shows of its configuration
// ([Config.Redacted]). Whether secrets have changed it cannot tell.
func DifferenceShown(shown []byte, new *Config) []Change {
	was, is := flatten(shown), flatten(new.Redacted())
	list := sameConnections(compare(was, is), was, is)
	for i := range list {
		list[i].judge(new)
	}
	return gather(list, was, is)
}

// flat is a configuration as one text a key.
type flat struct {
	keys []string // in the order of the file
	of   map[string]string
}

// flatten takes apart what Marshal writes: two blanks a level, one key a line; elements of
// lists that are mappings follow their key in lines that begin with a dash.
func flatten(text []byte) flat {
	f := flat{of: make(map[string]string)}
	var path []string
	list := -1 // depth of the list whose lines these are
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		rest := strings.TrimLeft(line, " ")
		depth := (len(line) - len(rest)) / 2
		if strings.HasPrefix(rest, "- ") && (list < 0 || depth <= list) {
			list = depth
		}
		if list >= 0 && depth >= list {
			key := strings.Join(path[:min(list, len(path))], ".")
			f.set(key, strings.TrimSpace(f.of[key]+" "+rest))
			continue
		}
		list = -1
		name, value := cutKey(rest)
		path = append(path[:min(depth, len(path))], name)
		if value != "" {
			key := strings.Join(path, ".")
			if key == "admin" {
				key = "admin.address" // a mapping that says only this is written as its address
			}
			f.set(key, value)
		}
	}
	return f
}

func (f *flat) set(key, value string) {
	if _, known := f.of[key]; !known {
		f.keys = append(f.keys, key)
	}
	f.of[key] = value
}

// cutKey cuts a line at the end of its key, which may be quoted.
func cutKey(line string) (name, value string) {
	end := 0
	if strings.HasPrefix(line, `"`) {
		for end = 1; end < len(line) && line[end] != '"'; end++ {
			if line[end] == '\\' {
				end++
			}
		}
	}
	at := strings.IndexByte(line[min(end, len(line)):], ':')
	if at < 0 {
		return line, ""
	}
	return line[:end+at], strings.TrimSpace(line[end+at+1:])
}

// compare lists what differs, with the values that were compared.
func compare(was, is flat) []Change {
	var list []Change
	for _, key := range inOrder(was.keys, is.keys) {
		if was.of[key] != is.of[key] {
			list = append(list, Change{Key: key, Old: was.of[key], New: is.of[key]})
		}
	}
	return list
}

// inOrder merges two lists of keys: those of b, each key that only a has behind the one
// that it follows there.
func inOrder(a, b []string) []string {
	all := slices.Clone(b)
	at := 0
	for _, key := range a {
		if i := slices.Index(all, key); i >= 0 {
			at = i + 1
			continue
		}
		all = slices.Insert(all, at, key)
		at++
	}
	return all
}

// gather makes one change of a resource that only one of the two has. What of a new one needs a
// restart follows it.
func gather(list []Change, was, is flat) []Change {
	before, now := was.resources(), is.resources()
	told := make(map[string]bool)
	var out []Change
	for _, c := range list {
		name := resourceOf(c.Key)
		if name == "" || before[name] && now[name] {
			out = append(out, c)
			continue
		}
		if !told[name] {
			told[name] = true
			whole := Change{Key: "resources." + name, Old: "served", Effect: AtReload}
			if now[name] {
				whole.Old, whole.New = "", "a new resource"
			}
			out = append(out, whole)
		}
		if now[name] && c.Effect == AtRestart {
			out = append(out, c)
		}
	}
	return out
}

func (f *flat) resources() map[string]bool {
	all := make(map[string]bool)
	for _, key := range f.keys {
		if name := resourceOf(key); name != "" {
			all[name] = true
		}
	}
	return all
}

// resourceOf returns the resource that a key is of, "" if none.
func resourceOf(key string) string {
	rest, ok := strings.CutPrefix(key, "resources.")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".")
	return strings.Trim(name, `"`)
}

// cost is what a change of a setting costs on reload.
type cost uint8

const (
	_        cost = iota // not known, and so taken for process; a test refuses a field without a cost
	swap                 // requests that begin later see new views; nothing is lost
	flush                // the documents of the resource are dropped
	listener             // listeners are reopened, which only a restart does
	process              // a new process
)

// effect is what operators are told of a cost.
func (c cost) effect() Effect {
	switch c {
	case swap:
		return AtReload
	case flush:
		return AtReloadCold
	}
	return AtRestart
}

// costOf returns what a change of a key costs.
func costOf(key string, fields []field) cost {
	name, rest, _ := strings.Cut(key, ".")
	i := slices.IndexFunc(fields, func(f field) bool { return f.Name == name })
	switch {
	case i < 0:
		return 0
	case fields[i].Reload != 0 || fields[i].Value.members == nil:
		return fields[i].Reload
	case fields[i].Value.named:
		_, rest, _ = strings.Cut(rest, ".")
	}
	return costOf(rest, fields[i].Value.members())
}

// judge says when a change takes effect, if the running configuration is like c in what
// cannot be changed.
func (ch *Change) judge(c *Config) {
	ch.Effect = costOf(ch.Key, new(Config).fields()).effect()
	if r, err := c.Origin.rules(); err == nil && r.restarts != nil && r.restarts(c, ch) {
		ch.Effect = AtRestart
	}
}

func longer(text string, than time.Duration) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d > than
}

// longestLoad is the longest time that a statement may take.
func (c *Config) longestLoad() time.Duration {
	longest := time.Duration(0)
	for i := range c.Resources {
		longest = max(longest, c.Resources[i].Load.Timeout)
	}
	return longest
}

// sameConnections leaves the number of connections out if neither side says one: a pool is
// sized at the start, by the resources that there are then.
func sameConnections(list []Change, was, is flat) []Change {
	if !was.connectsAsNeeded() || !is.connectsAsNeeded() {
		return list
	}
	return slices.DeleteFunc(list, func(c Change) bool { return c.Key == "origin.connections" })
}

// connectsAsNeeded reports whether the number of connections is the one that is filled in.
func (f *flat) connectsAsNeeded() bool {
	sum := 0
	for key, value := range f.of {
		if strings.HasPrefix(key, "resources.") && strings.HasSuffix(key, ".load.concurrency") {
			n, _ := strconv.Atoi(value) // what is written is a number
			sum += n
		}
	}
	return f.of["origin.connections"] == strconv.Itoa(min(sum, maxDefaultConnections))
}

// NeedRestart returns those of the changes that a reload cannot make.
func NeedRestart(list []Change) []Change {
	var out []Change
	for _, c := range list {
		if c.Effect == AtRestart {
			out = append(out, c)
		}
	}
	return out
}
