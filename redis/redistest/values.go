package redistest

import (
	"maps"
	"slices"
	"strings"
	"time"
)

func (c *Conn) get(args []string) any {
	v, err := c.server.space.of(args[0], "string")
	switch {
	case err != nil:
		return err
	case v == nil:
		return nil
	}
	return *v.text
}

// set answers SET with the options EX, PX, NX, XX, KEEPTTL and GET.
func (c *Conn) set(args []string) any {
	key, text := args[0], args[1]
	old := c.server.space[key]
	next := &value{text: &text}
	var nx, xx, keep, get bool
	for i := 2; i < len(args); i++ {
		switch option := strings.ToUpper(args[i]); option {
		case "NX":
			nx = true
		case "XX":
			xx = true
		case "KEEPTTL":
			keep = true
		case "GET":
			get = true
		case "EX", "PX":
			if i++; i == len(args) {
				return errSyntax
			}
			n, err := integer(args[i])
			if err != nil {
				return err
			}
			unit := time.Second
			if option == "PX" {
				unit = time.Millisecond
			}
			next.expires = c.server.now.Add(time.Duration(n) * unit)
		default:
			return errSyntax
		}
	}
	var before any
	if get {
		if before = c.get(args[:1]); before == error(errType) {
			return before
		}
	}
	if nx && old != nil || xx && old == nil {
		return before
	}
	if keep && old != nil {
		next.expires = old.expires
	}
	c.server.space[key] = next
	c.touch(key, next)
	if get {
		return before
	}
	return Simple("OK")
}

func (c *Conn) mget(keys []string) any {
	list := make([]any, len(keys))
	for i, key := range keys {
		if v := c.server.space[key]; v != nil && v.text != nil {
			list[i] = *v.text
		}
	}
	return list
}

func (c *Conn) mset(args []string) any {
	if len(args)%2 != 0 {
		return errArguments("mset")
	}
	for i := 0; i < len(args); i += 2 {
		c.set(args[i : i+2])
	}
	return Simple("OK")
}

func (c *Conn) appends(args []string) any {
	v, err := c.server.space.made(args[0], "string")
	if err != nil {
		return err
	}
	*v.text += args[1]
	c.touch(args[0], v)
	return len(*v.text)
}

func (c *Conn) strlen(args []string) any {
	v, err := c.server.space.of(args[0], "string")
	switch {
	case err != nil:
		return err
	case v == nil:
		return 0
	}
	return len(*v.text)
}

func (c *Conn) hset(args []string) any {
	if len(args)%2 != 1 {
		return errArguments("hset")
	}
	v, err := c.server.space.made(args[0], "hash")
	if err != nil {
		return err
	}
	fresh := 0
	for i := 1; i < len(args); i += 2 {
		if _, known := v.hash[args[i]]; !known {
			fresh++
		}
		v.hash[args[i]] = args[i+1]
	}
	c.touch(args[0], v)
	return fresh
}

func (c *Conn) hget(args []string) any {
	v, err := c.server.space.of(args[0], "hash")
	if err != nil {
		return err
	}
	if v != nil {
		if text, ok := v.hash[args[1]]; ok {
			return text
		}
	}
	return nil
}

func (c *Conn) hgetall(args []string) any {
	v, err := c.server.space.of(args[0], "hash")
	if err != nil {
		return err
	}
	all := make(map[string]any)
	if v != nil {
		for name, text := range v.hash {
			all[name] = text
		}
	}
	return all
}

func (c *Conn) hdel(args []string) any {
	v, err := c.server.space.of(args[0], "hash")
	if err != nil {
		return err
	}
	if v == nil {
		return 0
	}
	before := len(v.hash)
	for _, name := range args[1:] {
		delete(v.hash, name)
	}
	n := before - len(v.hash)
	c.touch(args[0], v)
	return n
}

func (c *Conn) hlen(args []string) any {
	v, err := c.server.space.of(args[0], "hash")
	switch {
	case err != nil:
		return err
	case v == nil:
		return 0
	}
	return len(v.hash)
}

func pushes(front bool) func(*Conn, []string) any {
	return func(c *Conn, args []string) any {
		v, err := c.server.space.made(args[0], "list")
		if err != nil {
			return err
		}
		for _, text := range args[1:] {
			if front {
				*v.list = slices.Insert(*v.list, 0, text)
			} else {
				*v.list = append(*v.list, text)
			}
		}
		n := len(*v.list)
		c.touch(args[0], v)
		return n
	}
}

func pops(front bool) func(*Conn, []string) any {
	return func(c *Conn, args []string) any {
		v, err := c.server.space.of(args[0], "list")
		switch {
		case err != nil:
			return err
		case v == nil:
			return nil
		}
		at := len(*v.list) - 1
		if front {
			at = 0
		}
		text := (*v.list)[at]
		*v.list = slices.Delete(*v.list, at, at+1)
		c.touch(args[0], v)
		return text
	}
}

func (c *Conn) lrange(args []string) any {
	v, err := c.server.space.of(args[0], "list")
	if err != nil {
		return err
	}
	from, err := integer(args[1])
	if err != nil {
		return err
	}
	to, err := integer(args[2])
	if err != nil {
		return err
	}
	if v == nil {
		return []string{}
	}
	n := int64(len(*v.list))
	if from < 0 {
		from += n
	}
	if to < 0 {
		to += n
	}
	from, to = max(from, 0), min(to, n-1)
	if from > to {
		return []string{}
	}
	return slices.Clone((*v.list)[from : to+1])
}

func (c *Conn) llen(args []string) any {
	v, err := c.server.space.of(args[0], "list")
	switch {
	case err != nil:
		return err
	case v == nil:
		return 0
	}
	return len(*v.list)
}

func (c *Conn) sadd(args []string) any {
	v, err := c.server.space.made(args[0], "set")
	if err != nil {
		return err
	}
	before := len(v.set)
	for _, member := range args[1:] {
		v.set[member] = struct{}{}
	}
	c.touch(args[0], v)
	return len(v.set) - before
}

func (c *Conn) srem(args []string) any {
	v, err := c.server.space.of(args[0], "set")
	if err != nil {
		return err
	}
	if v == nil {
		return 0
	}
	before := len(v.set)
	for _, member := range args[1:] {
		delete(v.set, member)
	}
	n := before - len(v.set)
	c.touch(args[0], v)
	return n
}

func (c *Conn) smembers(args []string) any {
	v, err := c.server.space.of(args[0], "set")
	switch {
	case err != nil:
		return err
	case v == nil:
		return []string{}
	}
	return slices.Sorted(maps.Keys(v.set))
}

func (c *Conn) sismember(args []string) any {
	v, err := c.server.space.of(args[0], "set")
	if err != nil {
		return err
	}
	if v != nil {
		if _, is := v.set[args[1]]; is {
			return 1
		}
	}
	return 0
}

func (c *Conn) scard(args []string) any {
	v, err := c.server.space.of(args[0], "set")
	switch {
	case err != nil:
		return err
	case v == nil:
		return 0
	}
	return len(v.set)
}
