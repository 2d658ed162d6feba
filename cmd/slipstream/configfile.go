package main

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// defaultFile is read when -c is not given.
const defaultFile = "slipstream.yaml"

// fileFlag adds -c to a command.
func fileFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "config", "c", defaultFile, "the configuration `file`")
	// Fails only if there is no such flag.
	_ = c.MarkFlagFilename("config", "yaml", "yml")
}

// loadConfig reads the file of -c.
func loadConfig(file string) (*config.Config, error) {
	c, err := config.Load(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && file == defaultFile:
		return nil, fail(exitUsage, err, "specify the file with -c, or try: slipstream demo")
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(exitUsage, err, "slipstream demo --print-config shows one to start from")
	case err != nil:
		return nil, fail(exitUsage, err, "slipstream config schema describes every field")
	}
	return c, nil
}

// newLogger returns the configured logger. Parse has checked the configuration.
func newLogger(w io.Writer, c config.Log) *slog.Logger {
	log, _ := newLevelLogger(w, c)
	return log
}

// newLevelLogger is newLogger with a variable level.
func newLevelLogger(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(logLevel(c))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}

func logLevel(c config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}
