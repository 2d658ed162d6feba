package rpc

import (
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// StatusError is an application error with a nonzero code, a message, and details. Kitex calls it a business status. It
// is sent in the header of a reply, so only clients that use TTHeader receive it; others receive a
// [thrift.ApplicationException] with its message. Handlers may also return errors of Kitex's package kerrors, whose
// FromBizStatusError finds a StatusError.
type StatusError struct {
	Code    int32
	Message string
	Details map[string]string
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Code, e.Message) }

// BizStatusCode returns Code. BizStatusCode, BizMessage and BizExtra implement Kitex's interface for such errors.
func (e *StatusError) BizStatusCode() int32 { return e.Code }

// BizMessage returns Message.
func (e *StatusError) BizMessage() string { return e.Message }

// BizExtra returns Details.
func (e *StatusError) BizExtra() map[string]string { return e.Details }

// statusOf returns the application status in an error's chain, or nil if there is none.
func statusOf(err error) *StatusError {
	s, ok := errors.AsType[interface {
		error
		BizStatusCode() int32
		BizMessage() string
		BizExtra() map[string]string
	}](err)
	if !ok || s.BizStatusCode() == 0 {
		return nil
	}
	return &StatusError{Code: s.BizStatusCode(), Message: s.BizMessage(), Details: s.BizExtra()}
}

// InvalidCallError is the cause when a call cannot be sent to any server: its arguments cannot be encoded, or its
// message is larger than ClientConfig.MaxMessage.
type InvalidCallError struct{ Err error }

// Error returns the text of the cause.
func (e *InvalidCallError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InvalidCallError) Unwrap() error { return e.Err }

// KindRefused is the kind of the exception with which a [Server] answers a call that it did not and will not execute:
// there were too many calls, or the deadline had passed. A handler cannot return it: the server replaces it with
// thrift.InternalError.
const KindRefused = 0x736c7001

// keyRefused is the key in the header of such an answer. Its value is the reason.
const keyRefused = "slipstream-refused"

// keyAnyOrder is the header key with which a [Client] asks whether the server answers in any order, and with which a
// [Server] announces that it does.
const keyAnyOrder = frame.KeyAnyOrder

// refusal returns the exception of a call that is not executed.
func refusal(why string) *thrift.ApplicationException {
	return &thrift.ApplicationException{Kind: KindRefused, Message: "the call was not executed: " + why}
}
