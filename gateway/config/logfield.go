package config

import "time"

// This file reads what is logged.

func logFields() []field[Log] {
	def := Default()
	return []field[Log]{
		withDefault(one("level", "the least important message that is logged",
			oneOf("debug", "info", "warn", "error"), func(l *Log) *string { return &l.Level }), &def.Log),
		withDefault(one("format", "text for people, json for collectors",
			oneOf("text", "json"), func(l *Log) *string { return &l.Format }), &def.Log),
		withDefault(one("slow", "requests that take longer are logged, at most a few a second; 0s: none",
			durationOrOff(10*time.Minute), func(l *Log) *time.Duration { return &l.Slow }), &def.Log),
		requestsField(),
		written(one("audit", "the file that gets a line of JSON for what operators do, for logins that fail and for files of keys that change; left out: such lines are in the log",
			fileName("a file, relative to this one, such as audit.log"), func(l *Log) *string { return &l.Audit })),
	}
}

// requestsField takes the name of a file alone, or a mapping that also says what part
// of the requests is written.
func requestsField() field[Log] {
	name := fileName(`a file, relative to this one, such as requests.log, or "-"`)
	fields := func() []field[Log] {
		return []field[Log]{
			required(written(one("file", `the file; "-": standard output`, name, func(l *Log) *string { return &l.Requests }))),
			withoutZero(one("sample", "the part of the requests that gets a line; those that failed and those slower than slow always do; 0: none but those; left out: 1",
				fraction(), func(l *Log) *float64 { return &l.RequestSample }), func(l *Log) bool { return l.RequestSample == 0 }),
		}
	}
	return field[Log]{
		name: "requests", doc: `the file that gets a line of JSON for every request; "-": standard output; or a mapping; left out: none`,
		read: func(p *parser, v value, into *Log) {
			if _, ok := entries(v.node); ok {
				readObject(p, v, fields(), into)
				return
			}
			readScalar(p, v, name, &into.Requests)
		},
		write: func(from *Log) any {
			switch {
			case from.RequestSample != 0:
				return writeObject(fields(), from)
			case from.Requests != "":
				return from.Requests
			}
			return nil
		},
		schema: func() schema { return schema{"oneOf": []any{name.schema, objectSchema(fields())}} },
	}
}
