package config

import "time"

// This file reads what is logged.

func logFields() []field[Log] {
	return []field[Log]{
		{Name: "level", Doc: "the least important message that is logged",
			Value: scalar(oneOf("debug", "info", "warn", "error"), func(l *Log) *string { return &l.Level }), Default: "info", Reload: swap},
		{Name: "format", Doc: "text for people, json for collectors",
			Value: scalar(oneOf("text", "json"), func(l *Log) *string { return &l.Format }), Default: "text", Reload: process},
		{Name: "slow", Doc: "requests that take longer are logged, at most a few a second; 0s: none",
			Value: scalar(durationOrOff(10*time.Minute), func(l *Log) *time.Duration { return &l.Slow }), Default: time.Second, Reload: swap},
		{Name: "requests", Doc: `the file that gets a line of JSON for every request; "-": standard output; or a mapping; left out: none`,
			Value: requests(), Reload: swap},
		{Name: "audit", Doc: "the file that gets a line of JSON for what operators do, for logins that fail and for files of keys that change; left out: such lines are in the log",
			Value: scalar(fileName("a file, relative to this one, such as audit.log"), func(l *Log) *string { return &l.Audit }), Omit: ifZero, Reload: swap},
	}
}

// requests takes only the name of a file, or a mapping that also says what part of the requests
// is written.
func requests() setting[Log] {
	file := scalar(fileName(`a file, relative to this one, such as requests.log, or "-"`), func(l *Log) *string { return &l.Requests })
	s := object(func() []field[Log] {
		return []field[Log]{
			{Name: "file", Doc: `the file; "-": standard output`, Value: file, Omit: ifZero, Required: true},
			{Name: "sample", Doc: "the part of the requests that gets a line; those that failed and those slower than slow always do; 0: none but those; left out: 1",
				Value: scalar(fraction(), func(l *Log) *float64 { return &l.RequestSample }), Omit: ifZero},
		}
	}, func(l *Log) *Log { return l })
	short := func(l *Log) bool { return l.RequestSample == 0 }
	return either(file, s, short)
}
