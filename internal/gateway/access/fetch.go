package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	maxCAFile     = 1 << 20  // bytes of the file of certificates
	maxFetchHead  = 64 << 10 // bytes of the fields of an answer
	handshakeTime = 5 * time.Second
)

// roots are the authorities that must have signed a server's certificate; nil means those of the
// system. The file is reread for each fetch, so that replacing it needs no restart.
func (r *remote) roots() (*x509.CertPool, error) {
	if r.caFile == "" {
		return nil, nil
	}
	_, data, err := readBounded(r.caFile, maxCAFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, &FileError{r.caFile, 0, "the file holds no certificate in PEM"}
	}
	return pool, nil
}

// client returns a client for one fetch.
func (r *remote) client() (*http.Client, error) {
	pool, err := r.roots()
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: handshakeTime}).DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    handshakeTime,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxFetchHead,
		},
		// Only the configuration, or the document of the issuer, may say where a set is.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// get returns the body of an answer of status 200, of at most limit bytes.
func get(ctx context.Context, client *http.Client, url string, most int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "slipstream")
	rsp, err := client.Do(req)
	if err != nil {
		return nil, err // a *url.Error, which has the details
	}
	defer rsp.Body.Close()
	switch {
	case rsp.StatusCode >= 300 && rsp.StatusCode <= 399:
		return nil, fmt.Errorf("%s: status %d, expected 200: redirects are not followed; configure the final URL", url, rsp.StatusCode)
	case rsp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: status %d, expected 200", url, rsp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(rsp.Body, int64(most)+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: the body did not arrive in time", url)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", url, err)
	case len(data) > most:
		return nil, fmt.Errorf("%s: the body is larger than %d bytes", url, most)
	}
	return data, nil
}
