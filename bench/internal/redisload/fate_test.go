package redisload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	redispipe "github.com/joomcode/redispipe/redis"
	"github.com/joomcode/redispipe/rediscluster"
	"github.com/mediocregopher/radix/v4/resp/resp3"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
)

func TestFateOf(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, c := range []struct {
		err  error
		want Fate
	}{
		{&slipstream.Error{Outcome: slipstream.NotSent}, NotSent},
		{&slipstream.Error{Outcome: slipstream.Overloaded}, NotSent},
		{&slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: dial}, Unknown},
		{&slipstream.Error{Outcome: slipstream.Refused, Err: &redis.ServerError{Code: "MOVED"}}, Answered},
		{&slipstream.Error{Outcome: slipstream.Executed, Err: errors.New("a reply that cannot be decoded")}, Unknown},
		{fmt.Errorf("a pool: %w", dial), NotSent},
		{&net.OpError{Op: "read", Err: errors.New("connection reset")}, Unknown},
		{io.EOF, Unknown},
		{context.DeadlineExceeded, Unknown},
		{errMissing, Missing},
		{goredis.Nil, Missing},
		{goredis.ErrPoolTimeout, NotSent},
		{rueidis.Nil, Missing},
		{resp3.SimpleError{S: "CLUSTERDOWN The cluster is down"}, Answered},
		{redispipe.ErrContextClosed.NewWithNoMessage(), NotSent},
		{rediscluster.ErrNoAliveConnection.NewWithNoMessage(), NotSent},
		{redispipe.ErrIO.NewWithNoMessage(), Unknown},
		{redispipe.ErrResult.New("CLUSTERDOWN"), Answered},
	} {
		if got := FateOf(c.err); got != c.want {
			t.Errorf("%T %v: fate %d, want %d", c.err, c.err, got, c.want)
		}
	}
}
