package config

import "time"

// This file reads where the documents come from.

func originField() field[Config] {
	return field[Config]{Name: "origin", Doc: "where the documents are loaded from",
		Value: object(originFields, func(c *Config) *Origin { return &c.Origin }), Required: true, Reload: process,
		Check: func(p *parser, v value, into *Config) {
			for _, f := range originFields() {
				if one, found := v.child(f.Name); found && !f.applies(&into.Origin) {
					p.failKey(one, "only PostgreSQL has this; expected it with an origin.url such as %s", postgresExample)
				}
			}
		}}
}

func originFields() []field[Origin] {
	postgres := (*Origin).isPostgres // an SQLite file has no use for the others
	return []field[Origin]{
		{Name: "url", Doc: "the database: " + supportedOrigins,
			Value: scalar(databaseURL(supportedOrigins), func(o *Origin) *string { return &o.URL }), Required: true,
			Check: func(p *parser, v value, o *Origin) { _, err := o.Driver(); p.failIf(v, err) }},
		{Name: "stream_url", Doc: "where the stream of changes connects: directly to the server, when url leads through a pooler; left out: url",
			Value: scalar(databaseURL(postgresExample), func(o *Origin) *string { return &o.StreamURL }), If: postgres, Omit: ifZero,
			Check: func(p *parser, v value, o *Origin) { _, err := parsePostgresURL(o.StreamURL); p.failIf(v, err) }},
		{Name: "notify", Doc: "makes the triggers send NOTIFY, so that changes are known before the next poll; commits then wait for one another",
			Value: scalar(truth(), func(o *Origin) *bool { return &o.Notify }), If: postgres, Omit: ifZero},
		{Name: "poll", Doc: "how often the stream asks for changes, at most an eighth of the tightest freshness",
			Value: scalar(duration(5*time.Millisecond, time.Second), func(o *Origin) *time.Duration { return &o.Poll }), If: postgres, Default: 25 * time.Millisecond},
		{Name: "connections", Doc: "the loads that run at once; left out: the sum of load.concurrency of all resources, at most 16",
			Value: scalar(count(1, 1024), func(o *Origin) *int { return &o.Connections }), If: postgres},
		{Name: "keep_changes", Doc: "how long rows of the change table are kept; a gateway that is cut off for longer starts with an empty cache",
			Value: scalar(duration(10*time.Minute, 720*time.Hour), func(o *Origin) *time.Duration { return &o.KeepChanges }), If: postgres, Default: 24 * time.Hour},
		{Name: "keep_bytes", Doc: "how much these rows may take in the database before the oldest are deleted, however young they are",
			Value: scalar(size(16<<20, 1<<40), func(o *Origin) *int64 { return &o.KeepBytes }), If: postgres, Default: int64(1 << 30)},
	}
}

// databaseURL is the kind of a URL that may hold a password. What is wrong with it is said by a
// check, which repeats nothing of it.
func databaseURL(expected string) kind[string] {
	return kind[string]{
		expected: expected,
		parse: func(t text) (string, string) {
			if t.number || t.truth {
				return "", t.String()
			}
			return t.s, ""
		},
		format: func(s string) any { return s },
		schema: schema{"type": "string", "minLength": 1},
	}
}

func (p *parser) failIf(v value, err error) {
	if err != nil {
		p.failAt(v, "%s", err)
	}
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
