// Package proto is a prototype of generated Thrift code, written by hand, in
// several designs that the stamp program repeats and measures. Each file holds
// one part of one design; methods end in the name of their design.
package proto

import "strconv"

// Status is an enum.
type Status int32

// Values of Status.
const (
	StatusNew  Status = 0
	StatusPaid Status = 1
	StatusSent Status = 2
)

var statusNames = [...]string{"NEW", "PAID", "SENT"}

func (s Status) String() string {
	if s >= 0 && int(s) < len(statusNames) {
		return statusNames[s]
	}
	return strconv.Itoa(int(s))
}
