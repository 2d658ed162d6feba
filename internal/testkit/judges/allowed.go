package main

import (
	"regexp"
	"strings"
)

// allowance lets a finding pass.
type allowance struct {
	judge, id string
	when      func(f finding) bool // nil for anywhere
	why       string
}

// allowed are the findings that are not the gateway's to change.
var allowed = []allowance{
	{
		judge: "redbot", id: "STATUS_BAD_REQUEST",
		when: func(f finding) bool {
			return strings.Contains(f.where, "bad key") || strings.Contains(f.where, "empty batch")
		},
		why: "it is noted for every answer with status 400, regardless of its content, and these requests are wrong on purpose",
	},
	{
		judge: "schemathesis", id: "error",
		when: func(f finding) bool {
			return batchRoute.MatchString(f.where) && strings.HasPrefix(f.text, "Network Error") &&
				strings.Count(f.text, "Errno") == strings.Count(f.text, "[Errno 104] Connection reset by peer")
		},
		why: "a batch of made-up keys has up to some MB of URL; what bounds the head answers 431 and reads no more, " +
			"and a client that is still writing sees a reset instead, with any server",
	},
}

var batchRoute = regexp.MustCompile(`^(GET|HEAD) /[a-z]+ with `)

// reasonFor returns why the finding is allowed; "" if it is not.
func reasonFor(judge string, f finding) string {
	for _, a := range allowed {
		if a.judge == judge && a.id == f.id && (a.when == nil || a.when(f)) {
			return a.why
		}
	}
	return ""
}
