package rpc

import (
	"context"
	"log/slog"
)

// mostLoggedName bounds the function names in the log, because clients can send any name.
const mostLoggedName = 100

// AccessLog returns a function for [ServerConfig.OnCall] that logs each call: at level Info, or at level Warn if it was
// refused or failed with an undeclared error. It blocks until the log's handler returns.
func AccessLog(log *slog.Logger) func(CallReport) {
	return func(r CallReport) {
		name := r.Name[:min(len(r.Name), mostLoggedName)]
		attrs := make([]slog.Attr, 0, 9)
		attrs = append(attrs, slog.String("service", r.Service), slog.String("function", name))
		if r.Peer.IsValid() {
			attrs = append(attrs, slog.String("peer", r.Peer.String()))
		}
		attrs = append(attrs, slog.String("format", r.Format), slog.Duration("took", r.Took), slog.Int("received", r.Received), slog.Int("sent", r.Sent))
		level := slog.LevelInfo
		if r.Err != nil {
			level = slog.LevelWarn
			attrs = append(attrs, slog.Bool("refused", r.Refused), slog.String("error", r.Err.Error()))
		}
		log.LogAttrs(context.Background(), level, "call", attrs...)
	}
}
