package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
)

// printExposed prints what the listeners expose to other machines.
func printExposed(out io.Writer, cfg *config.Config) error {
	all := gateway.Exposures(cfg)
	reached := 0
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, e := range all {
		if !e.Remote {
			continue
		}
		reached++
		fmt.Fprintf(w, "%s %s\n", e.Listener, e.Address)
		for _, row := range [][2]string{
			{"reached by", e.Reach}, {"TLS", e.TLS}, {"credentials", e.Callers}, {"open resources", e.OpenText()},
			{"pages", e.Pages}, {"names in Host", e.Hosts}, {"limits", e.Limits},
		} {
			if row[1] == "" || row[0] == "open resources" && e.Listener != gateway.ListenHTTP && e.Listener != gateway.ListenRedis && e.Listener != gateway.ListenThrift {
				continue
			}
			fmt.Fprintf(w, "  %s\t%s\n", row[0], row[1])
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return fail(exitFailure, err, "")
	}
	_, err := fmt.Fprintf(out, "%d of %d listeners can be reached from other machines\n", reached, len(all))
	return fail(exitFailure, err, "")
}
