package config

import "time"

// This file has the settings of the process: tiers, tracing, shutdown, logs.

// Tiers are the stores in front of the origin.
type Tiers struct {
	Memory int64 // The budget of the memory tier, in bytes. Default 256 MiB.
	Disk   Disk  // Keeps documents across restarts. Default: none.
}

// Disk is the tier that keeps documents across restarts. The zero value means that there
// is none.
type Disk struct {
	Path string // The directory of its file, which is created if it does not exist.
	Size int64  // The maximum size of the file, in bytes: at least 32 MiB.
	Stay bool   // Documents are not put into memory: "promote: false" in the file.
}

// Set reports whether there is a disk tier.
func (d *Disk) Set() bool { return d.Path != "" }

// leastDisk is the minimum that the tier needs to write a batch before it frees
// what the batch replaces.
const leastDisk = 32 << 20

func (t *Tiers) fields() []field {
	return []field{
		{Name: "memory", Value: scalar(&t.Memory, size(1<<20, 1<<45)), Default: int64(256 << 20),
			Doc: "the budget of the memory tier"},
		{Name: "disk", Value: object(t.Disk.fields),
			Doc: "the tier that keeps documents across restarts; if omitted, there is none"},
	}
}

func (d *Disk) fields() []field {
	return []field{
		{Name: "path", Value: scalar(&d.Path, fileName("a directory, relative to this file, such as /var/lib/slipstream")),
			Required: true, Doc: "the directory of its file, which is created if it does not exist"},
		{Name: "size", Value: scalar(&d.Size, size(leastDisk, 1<<45)), Required: true,
			Doc: "the maximum size of the file"},
		{Name: "promote", Value: scalar(&d.Stay, inverted()), If: d.Set, Always: true,
			Doc: "also keeps documents that are found there in memory"},
	}
}

// Tracing says where spans of requests are sent, as OpenTelemetry over HTTP.
// Without Endpoint there are none, and the other fields are ignored.
type Tracing struct {
	// Endpoint is the URL of a collector, such as http://127.0.0.1:4318. It
	// must not contain credentials; those are taken from the environment
	// (OTEL_EXPORTER_OTLP_HEADERS).
	Endpoint string
	Sample   float64 // The fraction of requests to trace, of those whose caller has not decided. Default 0.01; if negative, none.
	Service  string  // The name of the gateway in traces. Default "slipstream".
}

func (t *Tracing) fields() []field {
	sent := func() bool { return t.Endpoint != "" }
	return []field{
		{Name: "endpoint", Value: scalar(&t.Endpoint, collector()), Required: true,
			Doc: "the URL of a collector, such as http://127.0.0.1:4318"},
		{Name: "sample", Value: scalar(&t.Sample, fraction()), If: sent, Default: 0.01,
			Doc: "the fraction of requests to trace, of those whose caller has not decided; 0 means none"},
		{Name: "service", Value: scalar(&t.Service, label("a name of 1 to 128 bytes", 128)), If: sent, Default: "slipstream",
			Doc: "the name of the gateway in traces"},
	}
}

// Drain says how a gateway shuts down. The zero value of a field means its
// default.
type Drain struct {
	// Grace is how long idle HTTP connections stay open for one more request, so
	// that no request is sent to a connection that is being closed; it must be less
	// than Timeout. The Redis protocol cannot announce that a connection ends, so
	// its connections have no grace. Default 2 s, at most half of Timeout; if
	// negative, there is none.
	Grace   time.Duration
	Timeout time.Duration // How long requests in flight may take. Default 15 s.
}

func (d *Drain) fields() []field {
	return []field{
		{Name: "grace", Value: scalar(&d.Grace, durationOrOff(time.Minute)), Reload: AtRestart,
			Default: func() any { return min(2*time.Second, d.Timeout/2) },
			Doc:     "how long idle HTTP connections stay open for one more request, less than timeout; 0s means not at all"},
		{Name: "timeout", Value: scalar(&d.Timeout, duration(10*time.Millisecond, time.Hour)), Default: 15 * time.Second, Reload: AtReload,
			Doc: "how long requests in flight may take"},
	}
}

// drain refuses a grace as long as the timeout: idle connections would be cut off as
// if they had a request in flight.
func (p *parser) drain(root value, c *Config) {
	if c.Drain.Grace >= c.Drain.Timeout {
		p.failAt(within(root, "drain"), "a grace of %s in a drain of %s; expected less", formatDuration(c.Drain.Grace), formatDuration(c.Drain.Timeout))
	}
}

// Log says what is logged. Except for Requests and Audit, the log goes to standard
// error.
type Log struct {
	Level  string        // debug, info, warn or error. Default info.
	Format string        // text or json. Default text.
	Slow   time.Duration // Requests that take longer are logged. Default 1 s; if negative, none are.
	// Requests is the file that gets a line of JSON for every request; "-" is standard output.
	// Default: none.
	Requests string
	// Audit is the file that gets a line of JSON for each action of an operator and each failed
	// login. Default: such lines are in the log.
	Audit string
	// RequestSample is the fraction of requests that get a line, from 0 to 1; those that failed and
	// those slower than Slow always do. Default 1; if negative, only those do.
	RequestSample float64
}

// RequestLogPath returns the file of Log.Requests as [Config.Path] does, "-" for standard output.
func (c *Config) RequestLogPath() string {
	if c.Log.Requests == "-" {
		return "-"
	}
	return c.Path(c.Log.Requests)
}

func (l *Log) fields() []field {
	return []field{
		{Name: "level", Value: scalar(&l.Level, oneOf("debug", "info", "warn", "error")), Default: "info", Reload: AtReload,
			Doc: "the lowest level that is logged"},
		{Name: "format", Value: scalar(&l.Format, oneOf("text", "json")), Default: "text", Reload: AtRestart,
			Doc: "text for humans, json for log collectors"},
		{Name: "slow", Value: scalar(&l.Slow, durationOrOff(10*time.Minute)), Default: time.Second, Reload: AtReload,
			Doc: "requests that take longer are logged, at most a few a second; 0s means none"},
		{Name: "requests", Value: l.requests(), Reload: AtReload,
			Doc: `the file that gets a line of JSON for every request; "-" is standard output; or a mapping; if omitted, none`},
		{Name: "audit", Value: scalar(&l.Audit, fileName("a file, relative to this one, such as audit.log")), Reload: AtReload,
			Doc: "the file that gets a line of JSON for each action of an operator, each failed login " +
				"and each changed file of keys; if omitted, such lines are in the log"},
	}
}

// requests accepts the name of a file, or a mapping that also says which fraction of the requests
// is written.
func (l *Log) requests() setting {
	file := scalar(&l.Requests, fileName(`a file, relative to this one, such as requests.log, or "-"`))
	both := func() []field {
		return []field{
			{Name: "file", Value: file, Required: true, Doc: `the file; "-" is standard output`},
			{Name: "sample", Value: scalar(&l.RequestSample, fraction()),
				Doc: "the fraction of requests that get a line; " +
					"those that failed and those slower than slow always do; 0 means only those; if omitted, 1"},
		}
	}
	return either(file, object(both), func() bool { return l.RequestSample == 0 })
}
