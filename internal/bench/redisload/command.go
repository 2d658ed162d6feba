package redisload

import (
	"slices"
	"strings"
)

// Placeholders in the arguments of a command, the same as those of memtier_benchmark.
const (
	keyPlace  = "__key__"
	dataPlace = "__data__"
)

// opKind says how the replies to an operation are checked.
type opKind uint8

const (
	opOther opKind = iota
	opGet          // GET __key__, whose value is checked
	opSet          // SET __key__ __data__, whose value is recorded
)

// An operation is a command that callers may send.
type operation struct {
	kind    opKind
	command *command
}

func newOperation(words []string) operation {
	o := operation{command: newCommand(words)}
	switch {
	case strings.EqualFold(words[0], "GET") && slices.Equal(words[1:], []string{keyPlace}):
		o.kind = opGet
	case strings.EqualFold(words[0], "SET") && slices.Equal(words[1:], []string{keyPlace, dataPlace}):
		o.kind = opSet
	}
	return o
}

// A command is a command with its arguments.
type command struct {
	name string
	args []part
}

// A part is one argument.
type part struct {
	text      string
	hasPlaces bool
}

func newCommand(words []string) *command {
	c := &command{name: words[0]}
	for _, word := range words[1:] {
		c.args = append(c.args, part{text: word, hasPlaces: strings.Contains(word, keyPlace) || strings.Contains(word, dataPlace)})
	}
	return c
}

// arguments appends the arguments, with placeholders replaced by a key and a value.
func (c *command) arguments(args []string, key string, value []byte) []string {
	for _, p := range c.args {
		if !p.hasPlaces {
			args = append(args, p.text)
			continue
		}
		text := strings.ReplaceAll(p.text, keyPlace, key)
		args = append(args, strings.ReplaceAll(text, dataPlace, string(value)))
	}
	return args
}
