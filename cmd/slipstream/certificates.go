package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// certificates are the flags for TLS.
type certificates struct {
	ca, cert, key, name string
	insecure            bool
}

// register adds the flags of bench to a command, spelled as in curl and redis-cli.
func (f *certificates) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.ca, "cacert", "", "the `file` of the authorities that sign the server's certificate (PEM), instead of the system's")
	flags.StringVar(&f.cert, "cert", "", "the `file` of the client's certificate (PEM)")
	flags.StringVar(&f.key, "key", "", "the `file` of its private key (PEM)")
	flags.BoolVar(&f.insecure, "insecure", false, "accept any certificate of the server")
	flags.StringVar(&f.name, "sni", "", "the `name` that is sent to the server, and that its certificate must have, instead of that of the address")
	for _, name := range []string{"cacert", "cert", "key"} {
		// Fails only if there is no such flag.
		_ = c.MarkFlagFilename(name)
	}
	c.MarkFlagsRequiredTogether("cert", "key")
}

// given reports whether any flag was given.
func (f *certificates) given() bool { return *f != certificates{} }

// apply changes a configuration.
func (f *certificates) apply(c *tls.Config) error {
	c.MinVersion = tls.VersionTLS12
	if f.name != "" {
		c.ServerName = f.name
	}
	c.InsecureSkipVerify = f.insecure
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s holds no certificate in PEM", f.ca)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return nil
}
