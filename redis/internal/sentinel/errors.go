package sentinel

import (
	"errors"
	"strings"
)

var (
	// ErrUnknownMaster is the answer of a Sentinel that watches no master of the name.
	ErrUnknownMaster = errors.New("it knows no master of this name")
	// ErrOldView is returned if the Sentinels that answered have an older view than the one in force.
	ErrOldView = errors.New("the Sentinels that answered have an older view of the master than the one in force")
	// ErrClosed is returned by methods of a [Refresher] that was closed.
	ErrClosed = errors.New("the client is closed")

	errMoving      = errors.New("its config epoch has changed while it was asked")
	errInterrupted = errors.New("a Sentinel has published that there is another master")
)

// A NoMasterError says why no master is known: what each Sentinel that was asked has said.
type NoMasterError struct {
	// Name is the name of the master.
	Name string
	// Answers are in the order in which they came.
	Answers []Answer
}

// An Answer is what a Sentinel has said that names no master.
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

// A MasterError says why the server that a Sentinel names is not taken as the master.
type MasterError struct {
	// Addr is the address of the server.
	Addr string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *MasterError) Error() string { return "it names " + e.Addr + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *MasterError) Unwrap() error { return e.Err }

// A RoleError is the cause of a [MasterError] if the server is no master.
type RoleError string

// Error implements error.
func (e RoleError) Error() string { return "its role is " + quoted(string(e)) + ", not master" }
