package sentinel

import (
	"errors"
	"strings"
)

var (
	// ErrUnknownMaster is returned if a Sentinel monitors no master with the given name.
	ErrUnknownMaster = errors.New("the Sentinel monitors no master with this name; check MasterName")
	// ErrOldView is returned if the Sentinels that answered have an older view than the current one.
	ErrOldView = errors.New("the Sentinels that answered have a view of the master that is older than the current one")
	// ErrClosed is returned by the methods of a closed [Refresher].
	ErrClosed = errors.New("the client is closed")

	errMoving      = errors.New("the config epoch of the Sentinel changed during the query, because a failover is in progress")
	errInterrupted = errors.New("a Sentinel announced another master")
)

// A NoMasterError says why no master is known. It contains the answer of each Sentinel that was
// queried.
type NoMasterError struct {
	// Name is the name of the master.
	Name string
	// Answers are in the order in which they arrived.
	Answers []Answer
}

// An Answer is the answer of a Sentinel that does not name a usable master.
type Answer struct {
	// Addr is the address of the Sentinel.
	Addr string
	Err  error
}

// Error implements error.
func (e *NoMasterError) Error() string {
	var b strings.Builder
	b.WriteString("no Sentinel names a master " + quoted(e.Name))
	for i, a := range e.Answers {
		b.WriteString([...]string{": ", "; "}[min(i, 1)])
		b.WriteString(a.Addr + ": " + a.Err.Error())
	}
	return b.String()
}

// Unwrap returns the errors of the answers.
func (e *NoMasterError) Unwrap() []error {
	errs := make([]error, len(e.Answers))
	for i, a := range e.Answers {
		errs[i] = a.Err
	}
	return errs
}

// A MasterError says why the server that a Sentinel names was not accepted as the master.
type MasterError struct {
	// Addr is the address of the server.
	Addr string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *MasterError) Error() string { return "the Sentinel names " + e.Addr + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *MasterError) Unwrap() error { return e.Err }

// A RoleError is the cause of a [MasterError] if the server is not a master.
type RoleError string

// Error implements error.
func (e RoleError) Error() string {
	return "the role of the server is " + quoted(string(e)) + ", expected master"
}
