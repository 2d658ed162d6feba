package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

func (p program) callCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "call",
		Short: "Call a function of a server with arguments in JSON",
		Long: `Call calls servers from the command line, by the description of their interface.

` + exitCodes,
		Example: `  slipstream call thrift -f shop.thrift -d '{"id": 17}' 127.0.0.1:9090 Shop.find`,
	})
	c.AddCommand(p.callThrift())
	return c
}

// callFlags are the flags of slipstream call thrift.
type callFlags struct {
	idl              idlFlags
	client           thriftClientFlags
	data             string
	meta, persistent []string
	timeout          seconds
	format           string
	i64Strings       bool
	allowUnknown     bool
	verbose          bool
}

func (p program) callThrift() *cobra.Command {
	f := callFlags{timeout: seconds(10 * time.Second)}
	c := &cobra.Command{
		Use:   "thrift ADDR SERVICE.FUNCTION",
		Short: "Call a function of a Thrift service",
		Long: `Thrift calls a function of a Thrift service by its IDL, with arguments and result in JSON. The
commands list and describe show what the IDL declares.

ADDR is host:port, or the path of a unix socket. Servers of this module and of Kitex understand
the transport ttheader; Apache Thrift needs --transport framed or buffered.

The arguments are an object with their names. Strings, numbers and objects are as expected;
values of enums are their names, binary values are in base64, and maps whose keys are doubles,
structs or containers are arrays of arrays with a key and a value. A name that the IDL does
not declare is an error that names its position, unless --allow-unknown is given.

The result is printed in JSON on the standard output: null if the function returns nothing,
and nothing at all if it is oneway. If the function throws an exception that it declares,
the fields of the exception are printed there, its name on the standard error, and the exit
code is 3. All other errors that the server answers with, a business status among them, are
exit code 1. After exit code 4 the call was not executed. After exit code 5 it may have been.

A function with the annotation streaming.mode is called with a stream, for which the transport
must be ttheader. Its messages are the structs themselves, without the name of the argument:
--data has any number of them, one after the other, which are sent as they are read, so that
-d - is interactive. The messages of the server are printed as they come, each on its own line.
A mistake in a message, exit code 2, ends the stream; those before it were sent. A signal
cancels the stream. There is no limit of time unless --timeout is given. With --verbose, the
header and the trailer of the stream are printed on the standard error.

` + exitCodes,
		Example: `  slipstream call thrift -f shop.thrift -d '{"id": 17}' 127.0.0.1:9090 Shop.find
  slipstream call thrift -f shop.thrift -d @order.json -H tenant=a -t 2s 127.0.0.1:9090 Shop.store
  slipstream call thrift -f shop.thrift --transport framed --protocol compact 127.0.0.1 Shop.ping
  slipstream call thrift -f shop.thrift --tls --cacert ca.pem -H authorization=@token shop:9090 Shop.ping
  slipstream call thrift -f shop.thrift -v -d '{"text": "a"} {"text": "b"}' 127.0.0.1:9090 Shop.talk
  slipstream call thrift list -f shop.thrift
  slipstream call thrift describe -f shop.thrift Shop.find`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], args[1]) },
	}
	f.idl.register(c)
	f.client.register(c)
	flags := c.Flags()
	flags.StringVarP(&f.data, "data", "d", "{}", "the arguments in `JSON`, or the messages of a stream; @FILE reads them from a file, and - from the standard input")
	flags.StringArrayVarP(&f.meta, "meta", "H", nil, "metadata of the call, `KEY=VALUE`, for ttheader; the value @FILE is read from the file, which keeps a secret out of the process list; may be repeated")
	flags.StringArrayVar(&f.persistent, "meta-persistent", nil, "metadata, `KEY=VALUE` as above, that the server passes on with its own calls; may be repeated")
	flags.VarP(&f.timeout, "timeout", "t", "the timeout of the call, which is passed to the server with ttheader; 0 is no limit, the default for streams")
	flags.StringVar(&f.format, "format", "json", "`how` the result is printed: json, on one line, or pretty")
	flags.BoolVar(&f.i64Strings, "i64-strings", false, "print i64 as strings, for programs whose numbers are doubles")
	flags.BoolVar(&f.allowUnknown, "allow-unknown", false, "ignore names in the arguments that the IDL does not declare")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print the header and the trailer of a stream on the standard error")
	_ = c.MarkFlagRequired("idl") // fails only if there is no such flag
	c.AddCommand(p.callThriftList(), p.callThriftDescribe())
	return c
}

// thriftCall is a call that is ready to be made.
type thriftCall struct {
	client   rpc.ClientConfig
	service  *idl.Service
	function *idl.Function
	mode     idl.StreamMode
	args     []byte // nil for streams
	meta     []rpc.Meta
}

// run makes the call and prints its result.
func (f *callFlags) run(c *cobra.Command, addr, name string) error {
	call, err := f.prepare(c.InOrStdin(), addr, name)
	if err != nil {
		return fail(exitUsage, err, c.CommandPath()+" --help says more")
	}
	if call.mode != idl.NoStreams {
		return f.runStream(c, call)
	}
	config := genericrpc.Config{Compact: call.client.Compact, AllowUnknown: f.allowUnknown, JSON: thrift.JSON{I64Strings: f.i64Strings}}
	client, err := genericrpc.NewClient(connecting{call.client}, call.service, config)
	if err != nil {
		return fail(exitUsage, err, "")
	}
	signaled, stop := untilFirstSignal(c)
	defer stop()
	ctx := rpc.WithMeta(signaled, call.meta...)
	if f.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(f.timeout))
		defer cancel()
		ctx = limited
	}
	result, err := client.Call(ctx, call.function.Name, call.args)
	if thrown, ok := errors.AsType[*genericrpc.Exception](err); ok {
		if err := f.print(c.OutOrStdout(), thrown.JSON); err != nil {
			return err
		}
	}
	if err != nil {
		return callFailure(signaled, err)
	}
	return f.print(c.OutOrStdout(), result)
}

// prepare checks the flags and reads the IDL and the arguments.
func (f *callFlags) prepare(stdin io.Reader, addr, name string) (call thriftCall, err error) {
	if call.client, err = f.client.config(addr); err != nil {
		return call, err
	}
	call.client.Timeout, call.client.FailFast, call.client.Retries = -1, true, -1
	if t := time.Duration(f.timeout); t > 0 {
		call.client.Timeout, call.client.DialTimeout = t, min(t, 5*time.Second)
	}
	switch {
	case f.format != "json" && f.format != "pretty":
		return call, fmt.Errorf("--format %q; expected json or pretty", f.format)
	case len(f.meta)+len(f.persistent) > 0 && !hasHeader(call.client.Transport):
		return call, fmt.Errorf("metadata with --transport %s, which cannot carry it; expected ttheader or ttheader-framed", f.client.transport)
	}
	if call.meta, err = appendMeta(nil, f.meta, "meta", false); err != nil {
		return call, err
	}
	if call.meta, err = appendMeta(call.meta, f.persistent, "meta-persistent", true); err != nil {
		return call, err
	}
	file, err := f.idl.load()
	if err != nil {
		return call, err
	}
	if call.service, call.function, err = genericrpc.Lookup(file, name); err != nil {
		return call, err
	}
	switch call.mode, _, _, err = genericrpc.Messages(call.function); {
	case err != nil || call.mode != idl.NoStreams:
		return call, err
	case f.verbose:
		return call, fmt.Errorf("--verbose with %s, which is not a streaming function; only streams have headers and trailers", name)
	}
	if call.args, err = readArguments(stdin, f.data); err == nil && areSeveral(call.args) {
		err = fmt.Errorf("--data has several values; %s is not a streaming function and expects one", name)
	}
	return call, err
}

// areSeveral reports whether text begins with two values in JSON.
func areSeveral(text []byte) bool {
	var value json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	return !json.Valid(text) && d.Decode(&value) == nil && d.Decode(&value) == nil
}

// appendMeta appends the values of a flag. Errors do not show them: they may be secrets.
func appendMeta(all []rpc.Meta, values []string, flag string, persistent bool) ([]rpc.Meta, error) {
	for i, text := range values {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("value %d of --%s; expected KEY=VALUE or KEY=@FILE", i+1, flag)
		}
		if file, ofFile := strings.CutPrefix(value, "@"); ofFile {
			var err error
			if value, err = readPassword(file); err != nil {
				return nil, fmt.Errorf("--%s %s: %w", flag, key, err)
			}
		}
		all = append(all, rpc.Meta{Key: key, Value: value, Persistent: persistent})
	}
	return all, nil
}

// maxArguments bounds arguments in JSON. Messages have at most 16 MiB.
const maxArguments = 64 << 20

// readArguments returns the text of the arguments, or that of the file that --data names.
func readArguments(stdin io.Reader, data string) ([]byte, error) {
	from, name := stdin, "the standard input"
	if path, ofFile := strings.CutPrefix(data, "@"); ofFile {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from, name = file, path
	} else if data != "-" {
		return []byte(data), nil
	}
	text, err := io.ReadAll(io.LimitReader(from, maxArguments+1))
	if err == nil && len(text) > maxArguments {
		err = fmt.Errorf("%s has more than %d bytes of arguments", name, maxArguments)
	}
	return text, err
}

// connecting is a client that connects for the call, after the arguments have been checked.
type connecting struct{ config rpc.ClientConfig }

// Call implements [rpc.Caller].
func (d connecting) Call(ctx context.Context, in rpc.Invocation) error {
	client, err := rpc.NewClient(d.config)
	if err != nil {
		return fail(exitUsage, err, "")
	}
	defer client.Close()
	if err := client.Connect(ctx); err != nil {
		return fail(exitUnreachable, errors.New(printable(err.Error(), maxErrorText)), noThriftServer)
	}
	return client.Call(ctx, in)
}

const noThriftServer = "is a Thrift server listening there, and does it require TLS (--tls)?"

// callFailure adds the exit code to the error of a call. A signal cancels ctx.
func callFailure(ctx context.Context, err error) error {
	outcome := slipstream.OutcomeOf(err)
	text := errors.New(printable(err.Error(), maxErrorText))
	if ctx.Err() != nil {
		return fail(exitInterrupted, text, "")
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if _, ok := errors.AsType[*genericrpc.Exception](err); ok {
		return fail(exitThrown, text, "")
	}
	switch outcome {
	case slipstream.MaybeExecuted:
		return fail(exitUnanswered, text, "the server may have executed the call: repeat it only if that does no harm")
	case slipstream.NotSent:
		_, ofJSON := errors.AsType[*thrift.JSONError](err)
		_, ofValue := errors.AsType[*generic.ValueError](err)
		if ofJSON || ofValue {
			return fail(exitUsage, text, "slipstream call thrift describe shows the arguments")
		}
		return fail(exitUnreachable, text, noThriftServer)
	case slipstream.Refused:
		if e, ok := errors.AsType[*thrift.ApplicationException](err); ok && e.Kind == rpc.KindRefused {
			return fail(exitUnreachable, text, "the server has not executed the call: repeat it later, or with a longer --timeout")
		}
	}
	return fail(exitFailure, text, "")
}

// print prints a result, if there is one.
func (f *callFlags) print(w io.Writer, text []byte) error {
	if text == nil {
		return nil
	}
	var b bytes.Buffer
	if f.format == "pretty" {
		if err := json.Indent(&b, text, "", "  "); err != nil {
			return fail(exitFailure, err, "")
		}
	} else {
		b.Write(text)
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(w)
	return fail(exitFailure, err, "")
}
