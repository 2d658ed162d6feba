// Package frontend holds what the frontends of a gateway have in common, whatever their protocol:
// the configuration of connections and requests (config.go), the resources that they serve
// (served.go), the source of an answer (source.go), and the figures of answers and of connections
// (figures.go).
//
// A frontend is a package below this one. Package gateway says what it must provide.
package frontend
