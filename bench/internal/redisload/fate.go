package redisload

import (
	"errors"
	"net"
	"strings"

	"github.com/joomcode/errorx"
	redispipe "github.com/joomcode/redispipe/redis"
	"github.com/joomcode/redispipe/rediscluster"
	"github.com/mediocregopher/radix/v4/resp/resp3"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
)

// A Fate is the outcome of a call according to its error.
type Fate uint8

const (
	// Unknown means that the server may have executed the call. This is the fate of all
	// unrecognized errors.
	Unknown Fate = iota
	// NotSent means that the server has not received the call.
	NotSent
	// Answered means that the server answered with an error.
	Answered
	// Missing means that the server replied that there is no such key.
	Missing
)

// FateOf classifies the error of a call of any [Client]. Errors of ours and of redispipe contain
// the outcome of the call. For the others, server errors and connections that could not be opened
// are recognized by their types.
func FateOf(err error) Fate {
	if ours, ok := errors.AsType[*slipstream.Error](err); ok {
		return fateOfOurs(ours)
	}
	var answer goredis.Error
	var line resp3.SimpleError
	var dial *net.OpError
	_, refused := rueidis.IsRedisErr(err)
	switch {
	case errors.Is(err, errMissing), errors.Is(err, goredis.Nil), rueidis.IsRedisNil(err), strings.HasSuffix(err.Error(), "type <nil>, want bytes"):
		return Missing
	case errorx.HasTrait(err, redispipe.ErrTraitNotSent), errorx.IsOfType(err, rediscluster.ErrNoAliveConnection):
		return NotSent
	case refused, errors.As(err, &answer), errors.As(err, &line), errorx.IsOfType(err, redispipe.ErrResult):
		return Answered
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, goredis.ErrPoolTimeout), errors.Is(err, goredis.ErrPoolExhausted):
		return NotSent
	}
	return Unknown
}

func fateOfOurs(err *slipstream.Error) Fate {
	switch err.Outcome {
	case slipstream.NotSent, slipstream.Overloaded, slipstream.Closed:
		return NotSent
	case slipstream.Refused, slipstream.Executed:
		if _, ok := errors.AsType[*redis.ServerError](err); ok {
			return Answered
		}
	}
	return Unknown
}
