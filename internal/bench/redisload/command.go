package redisload

import "strings"

// Places in the arguments of a command, as memtier_benchmark has them.
const (
	keyPlace  = "__key__"
	dataPlace = "__data__"
)

// A command is what a caller sends if it is not GET and SET.
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

// arguments appends the arguments with a key and a value in their places.
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
