package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (p program) probeCommand() *cobra.Command {
	var file, admin string
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "probe {live|ready}",
		Short: "Check whether a running gateway is alive, or may get traffic",
		Long: `Probe queries the admin listener of a gateway on this machine, for health checks of
containers, which neither reach that listener from outside nor have curl inside.
If the admin listener requires client certificates, it queries admin.metrics.

live succeeds while the process answers. ready succeeds while every promise is
kept and says why if not; a gateway that is not ready still serves, so use
ready to route traffic, never to decide on a restart.

` + exitCodes,
		Example: `  slipstream probe live -c /etc/slipstream/slipstream.yaml
  slipstream probe ready --admin 127.0.0.1:9100`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"live", "ready"},
		RunE: func(c *cobra.Command, args []string) error {
			at := operatorAt(local(admin))
			if admin == "" {
				cfg, err := loadConfig(file)
				if err != nil {
					return err
				}
				at = prober(cfg)
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			if err := probe(ctx, at, args[0]); err != nil {
				hint := ""
				if strings.Contains(err.Error(), "certificate required") {
					hint = "the listener requires a client certificate; add admin.metrics, a listener for probes"
				}
				return fail(exitFailure, fmt.Errorf("probe %s: %w", args[0], err), hint)
			}
			fmt.Fprintln(c.OutOrStdout(), args[0])
			return nil
		},
	}
	fileFlag(c, &file)
	c.Flags().StringVar(&admin, "admin", "", "`host:port`, unix:path or URL of the admin listener, instead of that of the configuration")
	c.Flags().DurationVar(&timeout, "timeout", 2*time.Second, "how long the answer may take")
	return c
}

// local returns the address at which a listener can be reached from this
// machine, also if it listens on every interface.
func local(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "" && !ip.IsUnspecified() {
		return address
	}
	return net.JoinHostPort("localhost", port)
}

// maxProbe bounds how much of an answer is read.
const maxProbe = 64 << 10

// probe requests a page of the admin listener. The error says what is missing.
func probe(ctx context.Context, at operator, page string) error {
	response, err := at.get(ctx, "/"+page)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProbe))
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var why struct{ Reasons []string }
	if err := json.Unmarshal(text, &why); err != nil || len(why.Reasons) == 0 {
		return fmt.Errorf("%s answers %s", at.name, response.Status)
	}
	return fmt.Errorf("%s", strings.Join(why.Reasons, "; "))
}
