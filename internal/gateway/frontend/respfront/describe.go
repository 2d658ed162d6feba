package respfront

import (
	"strings"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// The answers of COMMAND. Cluster clients learn from them where the keys of a command are,
// redis-cli learns names to complete.

func upper(name string) string { return strings.ToUpper(name) }

func (t *turn) commandCount([][]byte) {
	o := t.conn.Output()
	o.B = resp.AppendInt(o.B, int64(len(t.server.commands.list)))
}

func (t *turn) commandList([][]byte) {
	o := t.conn.Output()
	o.B = resp.AppendArrayHeader(o.B, len(t.server.commands.list))
	for _, c := range t.server.commands.list {
		o.B = t.appendCommand(o.B, c)
	}
}

// maxDescribed is how many names COMMAND INFO and COMMAND DOCS accept: answers are a
// hundred times as long as names.
const maxDescribed = 256

func (t *turn) manyNames(args [][]byte) bool {
	if len(args) > 2+maxDescribed {
		t.fail(FailUsage, "too many names of commands")
		return true
	}
	return false
}

func (t *turn) commandInfo(args [][]byte) {
	switch {
	case len(args) == 2:
		t.commandList(args)
		return
	case t.manyNames(args):
		return
	}
	o := t.conn.Output()
	o.B = resp.AppendArrayHeader(o.B, len(args)-2)
	for _, name := range args[2:] {
		if c := t.server.commands.named(name); c != nil {
			o.B = t.appendCommand(o.B, c)
		} else {
			o.B = appendNull(o.B, t.three)
		}
	}
}

// named is find that also supports names of subcommands: client|id.
func (t *table) named(name []byte) *command {
	c := t.find(name)
	if c != nil {
		return c
	}
	first, second, ok := strings.Cut(string(name), "|")
	if c = t.find([]byte(first)); !ok || c == nil {
		return nil
	}
	return c.subcommand([]byte(second))
}

// appendCommand appends the ten facts of COMMAND INFO.
func (t *turn) appendCommand(b []byte, c *command) []byte {
	b = resp.AppendArrayHeader(b, 10)
	b = resp.AppendBulkString(b, c.name)
	b = resp.AppendInt(b, int64(c.arity))
	b = t.appendWords(b, c.flags())
	first, last, step := c.positions()
	b = resp.AppendInt(resp.AppendInt(resp.AppendInt(b, first), last), step)
	b = t.appendWords(b, c.categories())
	b = resp.AppendArrayHeader(b, 0)
	b = t.appendSpecification(b, c)
	b = resp.AppendArrayHeader(b, len(c.sub))
	for _, s := range c.sub {
		b = t.appendCommand(b, s)
	}
	return b
}

func (t *turn) appendWords(b []byte, words []string) []byte {
	b = t.appendSet(b, len(words))
	for _, w := range words {
		b = resp.AppendSimpleString(b, w)
	}
	return b
}

func (c *command) flags() []string {
	switch {
	case c.keys:
		return []string{"readonly", "fast"}
	case c.run == nil:
		return nil
	case c.early:
		return []string{"loading", "stale", "fast", "no_auth"}
	}
	return []string{"loading", "stale", "fast"}
}

func (c *command) categories() []string {
	if c.keys {
		return []string{"@read", "@string", "@fast"}
	}
	return []string{"@connection", "@fast"}
}

// positions says where the keys of a command are.
func (c *command) positions() (first, last, step int64) {
	switch {
	case !c.keys:
		return 0, 0, 0
	case c.arity < 0:
		return 1, -1, 1
	}
	return 1, 1, 1
}

// appendSpecification appends the same in the form of Redis 7.
func (t *turn) appendSpecification(b []byte, c *command) []byte {
	if !c.keys {
		return t.appendSet(b, 0)
	}
	last := int64(0)
	if c.arity < 0 {
		last = -1
	}
	b = t.appendSet(b, 1)
	b = t.appendMap(b, 3)
	b = t.appendWords(resp.AppendBulkString(b, "flags"), []string{"RO", "access"})
	b = t.appendMap(resp.AppendBulkString(b, "begin_search"), 2)
	b = resp.AppendBulkString(resp.AppendBulkString(b, "type"), "index")
	b = t.appendMap(resp.AppendBulkString(b, "spec"), 1)
	b = resp.AppendInt(resp.AppendBulkString(b, "index"), 1)
	b = t.appendMap(resp.AppendBulkString(b, "find_keys"), 2)
	b = resp.AppendBulkString(resp.AppendBulkString(b, "type"), "range")
	b = t.appendMap(resp.AppendBulkString(b, "spec"), 3)
	b = resp.AppendInt(resp.AppendBulkString(b, "lastkey"), last)
	b = resp.AppendInt(resp.AppendBulkString(b, "keystep"), 1)
	return resp.AppendInt(resp.AppendBulkString(b, "limit"), 0)
}

func (t *turn) commandDocs(args [][]byte) {
	if t.manyNames(args) {
		return
	}
	list := t.server.commands.list
	if len(args) > 2 {
		list = nil
		for _, name := range args[2:] {
			if c := t.server.commands.named(name); c != nil {
				list = append(list, c)
			}
		}
	}
	o := t.conn.Output()
	o.B = t.appendMap(o.B, len(list))
	for _, c := range list {
		o.B = t.appendDocs(o.B, c)
	}
}

// appendDocs appends the name of a command and its documentation.
func (t *turn) appendDocs(b []byte, c *command) []byte {
	facts := 2
	if len(c.sub) > 0 {
		facts++
	}
	b = t.appendMap(resp.AppendBulkString(b, c.name), facts)
	b = resp.AppendBulkString(resp.AppendBulkString(b, "summary"), c.summary)
	group := c.group.String()
	if c.keys {
		group = "string"
	}
	b = resp.AppendBulkString(resp.AppendBulkString(b, "group"), group)
	if len(c.sub) == 0 {
		return b
	}
	b = t.appendMap(resp.AppendBulkString(b, "subcommands"), len(c.sub))
	for _, s := range c.sub {
		b = t.appendDocs(b, s)
	}
	return b
}
