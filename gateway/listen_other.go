//go:build !unix

package gateway

import (
	"errors"
	"fmt"
	"net"

	"github.com/slipstream-go/slipstream/gateway/config"
)

func listenUnix(path string, _ config.Listener) (net.Listener, error) {
	return nil, fmt.Errorf("%s: unix sockets with a mode: %w", path, errors.ErrUnsupported)
}
