package loop

import "errors"

func newGoroutines(*Server) (engine, error) {
	return nil, errors.New("loop: the backend Goroutines is not built in")
}
