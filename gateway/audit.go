package gateway

import (
	"net/netip"

	"github.com/slipstream-go/slipstream/internal/gateway/audit"
)

// ruleProcess is the rule of requests made by a signal or by the program that embeds the gateway.
const ruleProcess = "process"

var auditFailures = newMetric("audit_failures_total", "Events that could not be written to the file of log.audit; they are in the log instead.")

// record writes to the audit log.
func (g *Gateway) record(e audit.Event) {
	if now := g.live.Load(); now != nil { // not before the end of New
		now.surface.audit.Record(e)
	}
}

// options returns the options for what a reload opens.
func (g *Gateway) options() Options { return Options{Logger: g.log, record: g.record} }

// loginFailed returns the function by which a frontend reports failed logins to
// the audit log.
func (o Options) loginFailed(listener string) func(client netip.Addr, rule, why string) {
	return func(client netip.Addr, rule, why string) {
		peer := ""
		if client.IsValid() {
			peer = client.String()
		}
		o.record(audit.Event{Event: audit.LoginFailed, Listener: listener, Peer: peer, Rule: rule, Outcome: audit.Refused, Detail: why})
	}
}

// fileChanged records in the audit log that a file of keys has changed.
func (o Options) fileChanged(file string, err error) {
	e := audit.Event{Event: audit.KeyFileChanged, Outcome: audit.Done, File: file}
	if err != nil {
		e.Outcome, e.Detail = audit.Refused, err.Error()
	}
	o.record(e)
}

func (g *Gateway) collectAudit(to sink) {
	to.send(auditFailures, float64(g.now().surface.audit.Failures()))
}
