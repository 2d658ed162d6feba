package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
)

func (p program) keyCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "key",
		Short: "Create API keys, and the lines of the key file",
		Long: `Clients send an API key in the header field X-API-Key, or over the Redis protocol as
the password of AUTH. The gateway only knows its hash, from the key file in auth.keys
of the configuration: one line "name sha256:<64 hex digits>" for each key. A name may
have several keys, so that a new one can be issued before the line of the old one is
removed. A third word says when a key
expires: "until:2027-06-30", the last day in UTC, or
"until:2027-06-30T18:00:00Z" (RFC 3339). Running gateways load a changed
file within seconds. The file of admin.token has the same lines; its keys are
sent as Authorization: Bearer.`,
		Example: `  slipstream key new web --file keys.txt
  slipstream key hash shop < key.txt >> keys.txt
  slipstream key check keys.txt
  slipstream key new ops --file admin.token > ops.token    # for the admin listener`,
	})
	c.AddCommand(p.keyNew(), p.keyHash(), p.keyCheck())
	return c
}

func (p program) keyNew() *cobra.Command {
	var file, until string
	var user bool
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a key and the line for the key file",
		Long: `New prints a key of 256 random bits to standard output. It is kept nowhere else:
pass it to the client now. The line for the key file goes to standard error, or
with --file to the end of that file, which is created if there is none. With --redis
it is the line for redis.users of the configuration.`,
		Example: `  slipstream key new web                      # the key, and the line to copy
  slipstream key new web --file keys.txt
  slipstream key new web --until 2027-06-30 --file keys.txt
  slipstream key new web --redis              # a password for AUTH web
  slipstream key new web --file keys.txt > web.key`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			key := access.NewKey()
			line, err := keyLine(args[0], key, until, user)
			if err != nil {
				return err
			}
			if file == "" {
				fmt.Fprintln(c.ErrOrStderr(), line)
			} else if err := appendLine(file, line); err != nil {
				return err
			}
			// The key is printed after its line has been written: without the line it would
			// be useless.
			_, err = fmt.Fprintln(c.OutOrStdout(), key)
			return fail(exitFailure, err, "the key is lost; remove its line and create another")
		},
	}
	c.Flags().StringVar(&file, "file", "", "append the line to this key `file`")
	redisFlag(c, &user)
	untilFlag(c, &until)
	c.MarkFlagsMutuallyExclusive("file", "redis")
	return c
}

func redisFlag(c *cobra.Command, user *bool) {
	c.Flags().BoolVar(user, "redis", false, "print a line for redis.users in the configuration")
}

// untilFlag adds the flag for the expiry of a key. Only lines of the key file have one:
// users of Redis are added and removed in the configuration.
func untilFlag(c *cobra.Command, until *string) {
	c.Flags().StringVar(until, "until", "", "the `date` at whose end (UTC) the key expires, or a date with time and zone (RFC 3339)")
	c.MarkFlagsMutuallyExclusive("until", "redis")
}

// keyLine makes the line of the key file, or of redis.users.
func keyLine(name, key, until string, user bool) (string, error) {
	line, err := access.KeyLine(name, key)
	if err == nil && until != "" {
		line, err = access.LineUntil(line, until)
	}
	if err != nil || !user {
		return line, err
	}
	name, digest, _ := strings.Cut(line, " ")
	return fmt.Sprintf("%q: %q", name, digest), nil // YAML, whatever the name looks like
}

// appendLine adds a line to a valid key file.
func appendLine(file, line string) error {
	var old []byte
	info, err := os.Stat(file)
	if err == nil && info.Size() > 0 {
		if _, _, err := access.CheckKeysFile(file); err != nil { // and is not too large to read
			return fail(exitUsage, err, "nothing was written; correct the file first")
		}
		old, err = os.ReadFile(file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(exitFailure, err, "")
	}
	text := line + "\n"
	if len(old) > 0 && old[len(old)-1] != '\n' {
		text = "\n" + text
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(exitFailure, err, "")
	}
	// One write, because a gateway may read at any time.
	_, err = io.WriteString(f, text)
	return fail(exitFailure, errors.Join(err, f.Close()), "check the end of the file before retrying")
}

func (p program) keyHash() *cobra.Command {
	var user bool
	var until string
	c := &cobra.Command{
		Use:   "hash NAME < KEY",
		Short: "Print the line for an existing key",
		Long: `Hash reads a key of 20 to 256 characters from standard input, so that it appears in
no process list, and prints the line for the key file. The file may be read
by everyone only if its keys cannot be guessed: a password is not an API key. With
--redis the line is one for redis.users of the configuration.`,
		Example: `  slipstream key hash shop < key.txt >> keys.txt
  slipstream key hash shop --redis < key.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			// The limit is larger than the longest key and its newline; longer input is
			// rejected.
			text, err := io.ReadAll(io.LimitReader(c.InOrStdin(), 1024))
			if err != nil {
				return fail(exitFailure, err, "")
			}
			key := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
			line, err := keyLine(args[0], string(key), until, user)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), line)
			return fail(exitFailure, err, "")
		},
	}
	redisFlag(c, &user)
	untilFlag(c, &until)
	return c
}

func (p program) keyCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Report mistakes in a key file",
		Long: `Check reads the file as the gateway does and reports the line that is invalid. If a
running gateway finds such a mistake, it keeps the keys that it read before.`,
		Example: `  slipstream key check keys.txt`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			n, expired, err := access.CheckKeysFile(args[0])
			if err != nil {
				return fail(exitUsage, err, "slipstream key --help shows the form of a line")
			}
			text := ""
			if expired > 0 {
				text = fmt.Sprintf(", %d expired", expired)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %d keys%s, no mistakes\n", args[0], n, text)
			return nil
		},
	}
}
