//go:build !linux

package profiles

import "errors"

// listeners is implemented only on Linux.
func listeners(int) ([]string, error) {
	return nil, errors.New("on this system the URL of its profiles is needed, such as http://127.0.0.1:6060")
}
