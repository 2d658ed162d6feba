package main

import (
	"regexp"
	"strings"
)

// allowance describes findings that are allowed.
type allowance struct {
	judge, id string
	when      func(f finding) bool // nil for anywhere
	why       string
}

// allowed lists the findings that the gateway cannot or need not fix.
var allowed = []allowance{
	{
		judge: "redbot", id: "STATUS_BAD_REQUEST",
		when: func(f finding) bool {
			return strings.Contains(f.where, "bad key") || strings.Contains(f.where, "empty batch")
		},
		why: "it is reported for every response with status 400, whatever its content, and these requests are wrong on purpose",
	},
	{
		judge: "schemathesis", id: "error",
		when: func(f finding) bool {
			return batchRoute.MatchString(f.where) && strings.HasPrefix(f.text, "Network Error") &&
				strings.Count(f.text, "Errno") == strings.Count(f.text, "[Errno 104] Connection reset by peer")
		},
		why: "a batch of made-up keys has a URL of up to several MB; the gateway responds with 431 at its limit and stops reading, " +
			"and, as with any server, a client that is still writing may get a reset instead",
	},
}

var batchRoute = regexp.MustCompile(`^(GET|HEAD) /[a-z]+ with `)

// reasonFor returns why the finding is allowed, or "" if it is not.
func reasonFor(judge string, f finding) string {
	for _, a := range allowed {
		if a.judge == judge && a.id == f.id && (a.when == nil || a.when(f)) {
			return a.why
		}
	}
	return ""
}
