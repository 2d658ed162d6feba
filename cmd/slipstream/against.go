package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// maxShown bounds the configuration that a gateway shows: twice the largest file.
const maxShown = 4 << 20

// checkAgainst prints what a reload of the running gateway with the configuration would
// change. Secrets are hidden there, so it is unknown whether they have changed.
func checkAgainst(ctx context.Context, out io.Writer, at operator, cfg *config.Config) error {
	shown, err := shownConfig(ctx, at)
	if err != nil {
		return fail(exitFailure, err, "specify the admin listener: --against http://127.0.0.1:9100, or unix: and the path of its socket; from another machine with --token FILE")
	}
	changes := config.DifferenceShown(shown, cfg)
	if len(changes) == 0 {
		fmt.Fprintln(out, "no difference from the running gateway; passwords are not compared")
		return nil
	}
	for _, c := range changes {
		fmt.Fprintf(out, "%s: %s -> %s (%s)\n", c.Key, orNothing(c.Old), orNothing(c.New), c.Effect)
	}
	if need := config.NeedRestart(changes); len(need) > 0 {
		fmt.Fprintf(out, "%d of %d changes need a restart: a reload would be refused as a whole\n", len(need), len(changes))
		return nil
	}
	fmt.Fprintf(out, "%d changes, all take effect by a reload: POST %s/reload, or SIGHUP\n", len(changes), strings.TrimSuffix(at.name, "/"))
	return nil
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// shownConfig reads /config of an admin listener.
func shownConfig(ctx context.Context, at operator) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	response, err := at.get(ctx, "/config")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxShown))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusUnauthorized:
		return nil, errors.New(at.name + " requires a token: /config is answered with " + response.Status)
	case response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/yaml"):
		return nil, errors.New(at.name + " is not the admin listener of a gateway: /config is answered with " + response.Status)
	}
	return text, nil
}
