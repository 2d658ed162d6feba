package main

import (
	"context"

	"github.com/slipstream-go/slipstream/bench/internal/echo"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	nullTarget = "null"
	echoTarget = "echo"
)

func targets() loadproc.Targets {
	return loadproc.Targets{
		nullTarget: func(context.Context, loadproc.Spec) (load.Target, error) { return counted{null{}}, nil },
		echoTarget: func(ctx context.Context, s loadproc.Spec) (load.Target, error) {
			target, err := echo.Targets()[echo.TargetName](ctx, s)
			return counted{target}, err
		},
	}
}

// counted adds counters of the generator's context switches, if the system counts them.
type counted struct{ load.Target }

// Counters implements [loadproc.Targets].
func (counted) Counters() []load.Counter { return switches() }

// null is a target that answers immediately.
type null struct{}

// NewCaller implements [load.Target].
func (null) NewCaller(context.Context, int) (load.Caller, error) { return null{}, nil }

// Do implements [load.Caller].
func (null) Do(context.Context) error { return nil }

// Close implements [load.Caller].
func (null) Close() error { return nil }
