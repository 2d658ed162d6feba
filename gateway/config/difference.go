package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
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
	// AtRestart: with the next process, as listeners are opened and stores are sized at the start.
	AtRestart Effect = "restart"
)

// Change is a key whose value differs between two configurations.
type Change struct {
	// Key is the path of the key: "http.limits.client.rate". For a resource that only one
	// of the two has, it is "resources." and the name.
	Key string
	// Old and New are the values as YAML, including defaults; "" if there is none. Secrets
	// are hidden, so that both may look the same.
	Old, New string
	Effect   Effect
}

// Difference returns the keys whose values differ, in the order of the file. It knows
// secrets: a password that changed is a change, though it is not shown.
func Difference(old, new *Config) []Change {
	was, is := flatten(old.Marshal()), flatten(new.Marshal())
	return compare(was, is, flatten(old.Redacted()), flatten(new.Redacted()), old)
}

// DifferenceShown is Difference from the configuration that a running gateway shows
// ([Config.Redacted]). It cannot tell whether secrets have changed.
func DifferenceShown(shown []byte, new *Config) []Change {
	was, is := flatten(shown), flatten(new.Redacted())
	return compare(was, is, was, is, new)
}

// NeedRestart returns those of the changes that a reload cannot make.
func NeedRestart(list []Change) []Change {
	return slices.DeleteFunc(slices.Clone(list), func(c Change) bool { return c.Effect != AtRestart })
}

// flat is a configuration as one text per key.
type flat struct {
	keys []string // in the order of the file
	of   map[string]string
}

// flatten parses the output of Marshal: two spaces per level, one key per line; elements of
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
	name, err := strconv.QuotedPrefix(line)
	if err != nil {
		name, _, _ = strings.Cut(line, ":")
	}
	return name, strings.TrimSpace(strings.TrimPrefix(line[len(name):], ":"))
}

// compare lists the differences. The running configuration is like c in all settings that cannot be
// changed. A resource that only one of the two has is one change; settings of a new one that need a
// restart follow.
func compare(was, is, shownWas, shownIs flat, c *Config) []Change {
	before, now := was.resources(), is.resources()
	asNeeded := was.connectsAsNeeded() && is.connectsAsNeeded()
	told := make(map[string]bool)
	var list []Change
	for _, key := range inOrder(was.keys, is.keys) {
		if was.of[key] == is.of[key] || key == "origin.connections" && asNeeded {
			continue
		}
		ch := Change{Key: key, Old: shownWas.of[key], New: shownIs.of[key]}
		ch.judge(c)
		name := resourceOf(key)
		one := name != "" && before[name] != now[name] // only one of the two has it
		if one && !told[name] {
			told[name] = true
			whole := Change{Key: "resources." + name, Old: "served", Effect: AtReload}
			if now[name] {
				whole.Old, whole.New = "", "a new resource"
			}
			list = append(list, whole)
		}
		if !one || now[name] && ch.Effect == AtRestart {
			list = append(list, ch)
		}
	}
	return list
}

// inOrder merges two lists of keys: those of b, each key that only a has after the one
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

func (f *flat) resources() map[string]bool {
	all := make(map[string]bool)
	for _, key := range f.keys {
		if name := resourceOf(key); name != "" {
			all[name] = true
		}
	}
	return all
}

// resourceOf returns the resource that a key belongs to, or "" if none.
func resourceOf(key string) string {
	rest, ok := strings.CutPrefix(key, "resources.")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".")
	return strings.Trim(name, `"`)
}

// effectOf returns the effect of a change of a key, or "" if no field states it.
func effectOf(key string, fields []field) Effect {
	name, rest, _ := strings.Cut(key, ".")
	i := slices.IndexFunc(fields, func(f field) bool { return f.Name == name })
	switch {
	case i < 0:
		return ""
	case fields[i].Reload != "" || fields[i].Value.members == nil:
		return fields[i].Reload
	case fields[i].Value.named:
		_, rest, _ = strings.Cut(rest, ".")
	}
	return effectOf(rest, fields[i].Value.members())
}

// judge sets when a change takes effect, if the running configuration is like c in all
// settings that cannot be changed.
func (ch *Change) judge(c *Config) {
	ch.Effect = cmp.Or(effectOf(ch.Key, new(Config).fields()), AtRestart)
	if r, err := c.Origin.rules(); err == nil && r.restarts != nil && r.restarts(c, ch) {
		ch.Effect = AtRestart
	}
}

// connectsAsNeeded reports whether the number of connections is the computed default. Then it is
// not a difference: a pool is sized at the start, by the number of resources.
func (f *flat) connectsAsNeeded() bool {
	sum := 0
	for key, value := range f.of {
		if strings.HasPrefix(key, "resources.") && strings.HasSuffix(key, ".load.concurrency") {
			n, _ := strconv.Atoi(value) // the value is a number
			sum += n
		}
	}
	return f.of["origin.connections"] == strconv.Itoa(min(sum, maxDefaultConnections))
}
