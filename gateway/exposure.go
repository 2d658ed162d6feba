package gateway

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// This file describes in words what clients of each listener can reach, for the log and
// for "config check --exposed".

// Exposure says who can reach a listener, and what is served there. Texts are for
// humans.
type Exposure struct {
	Listener string // such as [ListenHTTP]
	Address  string
	Remote   bool   // other machines can reach it
	Reach    string // who can connect
	TLS      string
	Callers  string   // the credentials that are accepted
	Open     []string // resources that need no credentials
	Pages    string   // what else is served
	Hosts    string   // which names are accepted in Host
	Limits   string   // of one client address and of one caller
}

// Exposures returns what the listeners of a configuration with its defaults expose, in the order
// HTTP, Redis, Thrift, admin, metrics.
func Exposures(cfg *config.Config) []Exposure {
	var all []Exposure
	for _, name := range listenerNames() {
		for _, l := range listenersOf(cfg)[name] {
			all = append(all, exposureOf(cfg, name, l))
		}
	}
	return all
}

func listenerNames() []string {
	var names []string
	for _, p := range protocols {
		names = append(names, p.name)
	}
	return append(names, ListenAdmin, ListenMetrics)
}

// exposureOf describes one listener.
func exposureOf(cfg *config.Config, name string, l config.Listener) Exposure {
	e := Exposure{Listener: name, Address: addressOf(cfg, l), Remote: l.Exposed(), Reach: reachOf(l), TLS: wordsOfTLS(tlsOf(cfg, name, l))}
	certificates := tlsOf(cfg, name, l).Clients != ""
	p := protocolOf(name)
	switch {
	case p != nil:
		e.Limits = wordsOfLimits(p.limits(cfg))
		p.expose(&e, cfg, l)
	case name == ListenAdmin:
		e.exposeAdmin(cfg)
	default:
		e.Callers, e.Pages, e.Hosts = everybody, pagesOfAll, hostsOfAdmin
	}
	if certificates {
		e.Callers = "only holders of a client certificate, and of these: " + e.Callers
	}
	return e
}

func (e *Exposure) exposeHTTP(cfg *config.Config, l config.Listener) {
	e.Callers, e.Open = callersOf(cfg, nil), openResources(cfg)
	if !cfg.HTTP.HideOpenAPI {
		e.Pages = "/openapi.json, of what the caller may read"
	}
	_, local := l.Unix()
	switch {
	case !cfg.HTTP.ChecksHost(!local && !l.Exposed()):
		e.Hosts = "every name"
	case len(cfg.HTTP.Hosts) == 0:
		e.Hosts = "localhost and IP addresses"
	default:
		e.Hosts = "localhost, IP addresses, " + listed(cfg.HTTP.Hosts)
	}
}

func (e *Exposure) exposeRedis(cfg *config.Config, _ config.Listener) {
	var users []string
	for _, u := range cfg.Redis.Users {
		users = append(users, u.Name)
	}
	e.Callers = callersOf(cfg, users)
	if cfg.RedisLogin() {
		e.Callers = "a login is required: " + e.Callers
	} else {
		e.Open = openResources(cfg)
	}
}

// exposeAdmin describes the listener of operators.
func (e *Exposure) exposeAdmin(cfg *config.Config) {
	e.Hosts, e.Callers = hostsOfAdmin, everybody
	e.Pages = pagesOfAll + "; console, configuration without secrets, purge and reload"
	if !cfg.Admin.NoProfiles {
		e.Pages += "; profiles"
	}
	if !e.Remote || cfg.Admin.TLS.Clients != "" {
		return
	}
	e.Callers = "callers from other machines: anyone for " + pagesOfAll + "; no access to the rest"
	if cfg.Admin.Token != "" {
		e.Callers = "callers from other machines: anyone for " + pagesOfAll + "; tokens of " + cfg.Admin.Token + " for the rest"
	}
}

// Texts about the listeners of operators.
const (
	everybody    = "everyone who can reach it"
	pagesOfAll   = "/metrics, /live and /ready"
	hostsOfAdmin = "localhost, IP addresses and the configured name"
)

// reachOf describes who can connect.
func reachOf(l config.Listener) string {
	if _, ok := l.Unix(); ok {
		owner := l.Owner
		if owner == "" {
			owner = "the user of the gateway"
		}
		return fmt.Sprintf("users of this machine: mode %04o, owner %s", l.Mode, owner)
	}
	if !l.Exposed() {
		return "programs on this machine"
	}
	host, _, _ := net.SplitHostPort(l.Address)
	if host == "" || host == "0.0.0.0" || host == "::" {
		return "every machine that can route to an address of this one"
	}
	return "every machine that can route to " + host
}

func wordsOfTLS(t config.TLS) string {
	if t.Cert == "" {
		return "none: clear text"
	}
	least := t.MinVersion
	if least == "" {
		least = "1.2"
	}
	words := least + " and later"
	if least == "1.3" {
		words = "1.3"
	}
	if t.Clients != "" {
		words += ", client certificates required"
	}
	return words
}

// callersOf lists the credentials that are accepted, including the given users of
// Redis.
func callersOf(cfg *config.Config, users []string) string {
	var known []string
	if len(users) > 0 {
		known = append(known, "users "+listed(users))
	}
	if cfg.Auth.Keys != "" {
		known = append(known, "API keys of "+cfg.Auth.Keys)
	}
	if j := &cfg.Auth.JWT; j.Known() {
		issuer, audience := j.Issuer, j.Audience
		if issuer == "" {
			issuer = j.Discovery
		}
		if issuer == "" {
			issuer = "any issuer"
		}
		known = append(known, "tokens of "+issuer+" for audience "+audience)
	}
	for i := range cfg.Resources {
		if a := cfg.Resources[i].Access; a != nil && len(a.Certificates) > 0 {
			known = append(known, "names in client certificates")
			break
		}
	}
	if known == nil {
		return "anyone; no credentials are configured"
	}
	return strings.Join(known, "; ")
}

// openResources are those that anyone may read.
func openResources(cfg *config.Config) (names []string) {
	for i := range cfg.Resources {
		if cfg.Resources[i].Access == nil {
			names = append(names, cfg.Resources[i].Name)
		}
	}
	return names
}

func wordsOfLimits(l config.Limits) string {
	of := func(r config.Rate) string {
		if r.PerSecond == 0 {
			return "no limit on requests"
		}
		return fmt.Sprintf("%s requests/s, bursts of %d", strconv.FormatFloat(r.PerSecond, 'g', -1, 64), r.Burst)
	}
	many := "no limit on connections"
	if l.PerAddress > 0 {
		many = fmt.Sprintf("%d connections", l.PerAddress)
	}
	return fmt.Sprintf("per address: %s, %s; per caller: %s; in total: %d connections", of(l.Client), many, of(l.Caller), l.Connections)
}

// maxListed is the maximum of names in a line.
const maxListed = 12

// listed joins the first few names.
func listed(names []string) string {
	if len(names) > maxListed {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", len(names)-maxListed)
	}
	return strings.Join(names, ", ")
}

// OpenText names the resources that need no credentials, the first few of many.
func (e *Exposure) OpenText() string {
	if len(e.Open) == 0 {
		return "none"
	}
	return listed(e.Open)
}

// logExposure logs what each listener exposes, by the address that it is bound to. It is called
// before the listeners are handed to the frontends.
func (g *Gateway) logExposure() {
	for _, name := range listenerNames() {
		told := make(map[string]bool)
		for _, l := range g.listeners[name] {
			bound := g.serves[l]
			if l.Addr().Network() == "tcp" {
				bound.Address = l.Addr().String()
			}
			e := exposureOf(g.config, name, bound)
			if told[e.Address] {
				continue
			}
			told[e.Address] = true
			attributes := []any{"listener", name, "address", e.Address, "reach", e.Reach, "tls", e.TLS, "callers", e.Callers}
			for _, more := range []struct{ name, text string }{{"hosts", e.Hosts}, {"limits", e.Limits}, {"pages", e.Pages}} {
				if more.text != "" {
					attributes = append(attributes, more.name, more.text)
				}
			}
			if protocolOf(name) != nil {
				attributes = append(attributes, "open_resources", e.OpenText())
			}
			g.log.Info("listening", attributes...)
		}
	}
}
