package config

import "time"

// This file has what the process is run with: tiers, traces, its end, logs.

// Tiers are the stores in front of the origin.
type Tiers struct {
	Memory int64 // The budget of the memory tier, in bytes. Default 256 MiB.
	Disk   Disk  // Keeps documents over restarts. Default: there is none.
}

// Disk is the tier that keeps documents over restarts. The zero value: there is none.
type Disk struct {
	Path string // The directory of its file, which is made if it does not exist.
	Size int64  // How large the file may become, in bytes: at least 32 MiB.
	Stay bool   // Documents are not put into memory: "promote: false" in the file.
}

// Set reports whether there is a disk tier.
func (d *Disk) Set() bool { return d.Path != "" }

// leastDisk is what the tier needs to write a batch beside what it replaces.
const leastDisk = 32 << 20

func (t *Tiers) fields() []field {
	return []field{
		{Name: "memory", Value: scalar(&t.Memory, size(1<<20, 1<<45)), Default: int64(256 << 20),
			Doc: "the budget of the memory tier"},
		{Name: "disk", Value: object(t.Disk.fields),
			Doc: "the tier that keeps documents over restarts; left out: there is none"},
	}
}

func (d *Disk) fields() []field {
	return []field{
		{Name: "path", Value: scalar(&d.Path, fileName("a directory, relative to this file, such as /var/lib/slipstream")),
			Required: true, Doc: "the directory of its file, which is made if it does not exist"},
		{Name: "size", Value: scalar(&d.Size, size(leastDisk, 1<<45)), Required: true,
			Doc: "how large the file may become"},
		{Name: "promote", Value: scalar(&d.Stay, inverted()), If: d.Set, Always: true,
			Doc: "puts documents that are found there into memory"},
	}
}

// Tracing says where spans of requests are sent, as OpenTelemetry over HTTP.
// Without Endpoint there are none, and the other fields mean nothing.
type Tracing struct {
	// Endpoint is the URL of a collector, such as http://127.0.0.1:4318. It
	// takes no credentials; the environment does (OTEL_EXPORTER_OTLP_HEADERS).
	Endpoint string
	Sample   float64 // The part of requests whose caller has not decided. Default 0.01; negative: none.
	Service  string  // The name of the gateway in traces. Default "slipstream".
}

func (t *Tracing) fields() []field {
	sent := func() bool { return t.Endpoint != "" }
	return []field{
		{Name: "endpoint", Value: scalar(&t.Endpoint, collector()), Required: true,
			Doc: "the URL of a collector, such as http://127.0.0.1:4318"},
		{Name: "sample", Value: scalar(&t.Sample, fraction()), If: sent, Default: 0.01,
			Doc: "the part of the requests that is traced, of those whose caller has not decided it; 0: none"},
		{Name: "service", Value: scalar(&t.Service, label("a name of 1 to 128 bytes", 128)), If: sent, Default: "slipstream",
			Doc: "the name of the gateway in traces"},
	}
}

// Drain says how a gateway ends. The zero value of a field means its default.
type Drain struct {
	// Grace is how long HTTP connections that ask nothing stay open for one more
	// request, so that none is sent into a connection that is being closed; less
	// than Timeout. Redis cannot say that a connection ends, so its connections
	// have none. Default 2 s, at most half of Timeout; negative: not at all.
	Grace   time.Duration
	Timeout time.Duration // How long requests in flight may take. Default 15 s.
}

func (d *Drain) fields() []field {
	return []field{
		{Name: "grace", Value: scalar(&d.Grace, durationOrOff(time.Minute)), Reload: AtRestart,
			Default: func() any { return min(2*time.Second, d.Timeout/2) },
			Doc:     "how long HTTP connections that ask nothing stay open for one more request, less than timeout; 0s: not at all"},
		{Name: "timeout", Value: scalar(&d.Timeout, duration(10*time.Millisecond, time.Hour)), Default: 15 * time.Second, Reload: AtReload,
			Doc: "how long requests in flight may take"},
	}
}

// drain refuses a grace that would take all the time there is: connections that ask
// nothing would be cut off as if they had asked.
func (p *parser) drain(root value, c *Config) {
	if c.Drain.Grace >= c.Drain.Timeout {
		p.failAt(within(root, "drain"), "a grace of %s in a drain of %s; expected less", formatDuration(c.Drain.Grace), formatDuration(c.Drain.Timeout))
	}
}

// Log says what is logged, to standard error but for Requests.
type Log struct {
	Level  string        // debug, info, warn or error. Default info.
	Format string        // text or json. Default text.
	Slow   time.Duration // What a request takes that is logged. Default 1 s; negative: none is.
	// Requests is the file that gets a line of JSON for every request; "-" is standard output.
	// Default: none.
	Requests string
	// Audit is the file that gets a line of JSON for what operators do and for logins that fail.
	// Default: such lines are in the log.
	Audit string
	// RequestSample is the part of the requests that gets a line, from 0 to 1; those that failed
	// and those slower than Slow always do. Default 1; negative: none but those.
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
			Doc: "the least important message that is logged"},
		{Name: "format", Value: scalar(&l.Format, oneOf("text", "json")), Default: "text", Reload: AtRestart,
			Doc: "text for people, json for collectors"},
		{Name: "slow", Value: scalar(&l.Slow, durationOrOff(10*time.Minute)), Default: time.Second, Reload: AtReload,
			Doc: "requests that take longer are logged, at most a few a second; 0s: none"},
		{Name: "requests", Value: l.requests(), Reload: AtReload,
			Doc: `the file that gets a line of JSON for every request; "-": standard output; or a mapping; left out: none`},
		{Name: "audit", Value: scalar(&l.Audit, fileName("a file, relative to this one, such as audit.log")), Reload: AtReload,
			Doc: "the file that gets a line of JSON for what operators do, for logins that fail " +
				"and for files of keys that change; left out: such lines are in the log"},
	}
}

// requests takes only the name of a file, or a mapping that also says what part of the requests
// is written.
func (l *Log) requests() setting {
	file := scalar(&l.Requests, fileName(`a file, relative to this one, such as requests.log, or "-"`))
	both := func() []field {
		return []field{
			{Name: "file", Value: file, Required: true, Doc: `the file; "-": standard output`},
			{Name: "sample", Value: scalar(&l.RequestSample, fraction()),
				Doc: "the part of the requests that gets a line; " +
					"those that failed and those slower than slow always do; 0: none but those; left out: 1"},
		}
	}
	return either(file, object(both), func() bool { return l.RequestSample == 0 })
}
