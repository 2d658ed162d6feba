package command

import (
	"errors"
	"io"
)

// A Stage is what the subjects of a scenario share, such as the servers that they connect to. Its
// zero value is ready to use. Subjects run one at a time, so it is not safe for concurrent use.
type Stage[T io.Closer] struct {
	current T
	opened  bool
}

// Open returns the stage of the current scenario, which build creates when the first subject needs
// it. If build fails, it may also return what it has created so far, which Open closes.
func (s *Stage[T]) Open(build func() (T, error)) (T, error) {
	if s.opened {
		return s.current, nil
	}
	made, err := build()
	if err != nil {
		var none T
		return none, errors.Join(err, made.Close())
	}
	s.current, s.opened = made, true
	return made, nil
}

// Close is the Close of every scenario, and that of the harness.
func (s *Stage[T]) Close() error {
	if !s.opened {
		return nil
	}
	current := s.current
	*s = Stage[T]{}
	return current.Close()
}
