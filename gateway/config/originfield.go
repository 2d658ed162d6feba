package config

import (
	"slices"
	"time"
)

// This file reads where the documents come from.

func originField() field[Config] {
	f := required(object("origin", "where the documents are loaded from", originFields,
		func(c *Config) *Origin { return &c.Origin }))
	read := f.read
	f.read = func(p *parser, v value, into *Config) {
		read(p, v, into)
		if driver, err := into.Origin.scheme(); err != nil || driver == PostgreSQL {
			return
		}
		list, _ := entries(v.node)
		for _, entry := range list {
			if name, _ := keyName(entry.Key); slices.Contains(postgresFields, name) {
				p.failKey(value{node: entry.Value, key: entry.Key, path: join(v.path, name)},
					"only PostgreSQL has this; expected it with an origin.url such as %s", postgresExample)
			}
		}
	}
	return f
}

// postgresFields are the fields that an SQLite file has no use for.
var postgresFields = []string{"stream_url", "notify", "poll", "connections", "keep_changes", "keep_bytes"}

// The fields of PostgreSQL are written only for PostgreSQL: elsewhere they are
// zero, and [written] leaves zeros out.
func originFields() []field[Origin] {
	return []field[Origin]{
		required(urlField("url", "the database: "+supportedOrigins, supportedOrigins, func(o *Origin) *string { return &o.URL },
			func(o *Origin) error { _, err := o.Driver(); return err })),
		written(urlField("stream_url", "where the stream of changes connects: directly to the server, when url leads through a pooler; left out: url",
			postgresExample, func(o *Origin) *string { return &o.StreamURL },
			func(o *Origin) error { _, err := parsePostgresURL(o.StreamURL); return err })),
		written(one("notify", "makes the triggers send NOTIFY, so that changes are known before the next poll; commits then wait for one another",
			truth(), func(o *Origin) *bool { return &o.Notify })),
		written(one("poll", "how often the stream asks for changes, at most an eighth of the tightest freshness; left out: 25ms",
			duration(5*time.Millisecond, time.Second), func(o *Origin) *time.Duration { return &o.Poll })),
		written(one("connections", "the loads that run at once; left out: the sum of load.concurrency of all resources, at most 16",
			count(1, 1024), func(o *Origin) *int { return &o.Connections })),
		written(one("keep_changes", "how long rows of the change table are kept; a gateway that is cut off for longer starts with an empty cache; left out: 24h",
			duration(10*time.Minute, 720*time.Hour), func(o *Origin) *time.Duration { return &o.KeepChanges })),
		written(one("keep_bytes", "how much these rows may take in the database before the oldest are deleted, however young they are; left out: 1GiB",
			size(16<<20, 1<<40), func(o *Origin) *int64 { return &o.KeepBytes })),
	}
}

// urlField is a field with a URL that may hold a password. What is wrong with it
// is said by check, which repeats nothing of it.
func urlField(name, doc, expected string, at func(*Origin) *string, check func(*Origin) error) field[Origin] {
	f := one(name, doc, kind[string]{
		expected: expected,
		parse: func(t text) (string, string) {
			if t.number || t.truth {
				return "", t.String()
			}
			return t.s, ""
		},
		format: func(s string) any { return s },
		schema: schema{"type": "string", "minLength": 1},
	}, at)
	read := f.read
	f.read = func(p *parser, v value, into *Origin) {
		before := len(p.errors)
		read(p, v, into)
		if len(p.errors) > before {
			return
		}
		if err := check(into); err != nil {
			p.failAt(v, "%s", err)
		}
	}
	return f
}

// written leaves a field out of what is written while its value is zero.
func written[T any](f field[T]) field[T] {
	write, zero := f.write, f.write(new(T))
	f.write = func(from *T) any {
		if v := write(from); v != zero {
			return v
		}
		return nil
	}
	return f
}

// pace refuses a stream that would ask too seldom for the tightest promise: an
// eighth of it leaves room for polls that are late or fail.
func (p *parser) pace(root value, c *Config) {
	limit := c.MinFreshness() / 8
	if c.Origin.Poll <= limit {
		return
	}
	p.failAt(within(root, "origin", "poll"), "%s, and the tightest freshness of a resource is %s; expected at most an eighth of it, %s",
		formatDuration(c.Origin.Poll), formatDuration(c.MinFreshness()), formatDuration(limit))
}
