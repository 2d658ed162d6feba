// Command typedgen generates the command table of package redis, and the methods of redis.Client
// that send a single command, from commands.txt, whose header describes its columns. It is run by
// go generate in package redis.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed commands.txt
var commands string

func main() {
	log.SetFlags(0)
	log.SetPrefix("typedgen: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: typedgen directory")
	}
	texts, err := generate(commands)
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// generate returns the generated files by name.
func generate(commands string) (map[string][]byte, error) {
	s, err := parse(commands)
	if err != nil {
		return nil, err
	}
	if err := s.checkRoutes(); err != nil {
		return nil, err
	}
	texts := make(map[string][]byte)
	if texts[tableFile], err = s.table(); err != nil {
		return nil, fmt.Errorf("%s: %w", tableFile, err)
	}
	for _, f := range s.files {
		if texts[f.name], err = f.source(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return texts, nil
}

// specification is the content of commands.txt.
type specification struct {
	rows  []row
	files []file
}

// file is a generated file with methods.
type file struct {
	name    string
	methods []method
}

// method is a method, from a line with six columns.
type method struct {
	name, command, doc string
	args               []argument
	reply              reply
	appends            bool // it has a variant that appends
}

// argument is an argument of a command.
type argument struct {
	name string
	kind kind
	key  bool // the argument routes the call
}

// kind says how an argument is given and encoded.
type kind string

const (
	word    kind = "word" // its name is sent literally
	text    kind = ""
	integer kind = "int"
	float   kind = "float"
	millis  kind = "ms"
	instant kind = "at"
	texts   kind = "..."     // all remaining arguments
	counted kind = "#"       // a slice, preceded by its length
	paired  kind = "#fields" // the same with fields
	fields  kind = "fields..."
	pairs   kind = "pairs..."
	members kind = "members..."
)

// goTypes are the Go types of parameters.
var goTypes = map[kind]string{
	text: "string", integer: "int64", float: "float64", millis: "time.Duration", instant: "time.Time",
	texts: "...string", counted: "[]string", paired: "[]Field", fields: "...Field", pairs: "...KeyValue", members: "...Member",
}

// reply says what a method returns, and which method of the package decodes it.
type reply struct {
	results, decoder string
	// appended and appender are the results and the decoder of the variant that appends, or "" if
	// there can be none.
	appended, appender string
}

var replies = map[string]reply{
	"ok":      {results: "error", decoder: "done"},
	"one":     {results: "error", decoder: "one"},
	"int?":    {results: "(n int64, found bool, err error)", decoder: "maybeNumber"},
	"int":     {results: "(int64, error)", decoder: "number"},
	"bool":    {results: "(bool, error)", decoder: "flag"},
	"float":   {results: "(float64, error)", decoder: "float"},
	"float?":  {results: "(x float64, found bool, err error)", decoder: "maybeFloat"},
	"text":    {results: "(string, error)", decoder: "text", appended: "([]byte, error)", appender: "appendText"},
	"text?":   {results: "(value string, found bool, err error)", decoder: "maybeText", appended: "(_ []byte, found bool, err error)", appender: "appendMaybeText"},
	"texts":   {results: "([]string, error)", decoder: "texts"},
	"items":   {results: "([]Item, error)", decoder: "items"},
	"fields":  {results: "([]Field, error)", decoder: "fields"},
	"members": {results: "([]Member, error)", decoder: "members"},
	"ints":    {results: "([]int64, error)", decoder: "ints"},
	"floats?": {results: "([]MaybeFloat, error)", decoder: "maybeFloats"},
	"seconds": {results: "(time.Duration, error)", decoder: "seconds"},
	"time?":   {results: "(at time.Time, found bool, err error)", decoder: "maybeTime"},
	"times":   {results: "([]MaybeTime, error)", decoder: "times"},
	"ttls":    {results: "([]MaybeDuration, error)", decoder: "ttls"},
	"any":     {results: "error", decoder: "into"},

	"entries":   {results: "([]Entry, error)", decoder: "claimedEntries"},
	"claimed":   {results: "(Claimed, error)", decoder: "claimed"},
	"pending":   {results: "(PendingSummary, error)", decoder: "pendingSummary"},
	"pendings":  {results: "([]Pending, error)", decoder: "pendings"},
	"stream":    {results: "(StreamInfo, error)", decoder: "streamInfo"},
	"groups":    {results: "([]GroupInfo, error)", decoder: "groupInfos"},
	"consumers": {results: "([]ConsumerInfo, error)", decoder: "consumerInfos"},
	"positions": {results: "([]Position, error)", decoder: "positions"},
	"places":    {results: "([]Place, error)", decoder: "places"},
}

// parse reads commands.txt.
func parse(text string) (*specification, error) {
	s := new(specification)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, ok := strings.CutPrefix(line, "file "); ok {
			s.files = append(s.files, file{name: name})
			continue
		}
		if err := s.parseLine(line); err != nil {
			return nil, fmt.Errorf("commands.txt:%d: %w", i+1, err)
		}
	}
	return s, nil
}

func (s *specification) parseLine(line string) error {
	columns := strings.SplitN(line, "|", 6)
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	want := 6
	if columns[0] == "-" {
		want = 3
	}
	if len(columns) != want {
		return fmt.Errorf("%d columns, expected %d", len(columns), want)
	}
	if err := s.add(columns[1], columns[2]); err != nil || want == 3 {
		return err
	}
	m, err := parseMethod(columns)
	if err != nil {
		return err
	}
	if len(s.files) == 0 {
		return errors.New("a method before the first file")
	}
	last := &s.files[len(s.files)-1]
	last.methods = append(last.methods, m)
	return nil
}

func parseMethod(columns []string) (method, error) {
	m := method{name: columns[0], command: columns[1], doc: columns[5]}
	var ok bool
	name, appends := strings.CutSuffix(columns[4], " append")
	if m.reply, ok = replies[name]; !ok || appends && m.reply.appender == "" {
		return m, fmt.Errorf("reply %q", columns[4])
	}
	m.appends = appends
	for i, text := range strings.Fields(columns[3]) {
		a := parseArgument(text)
		if _, ok := goTypes[a.kind]; !ok && a.kind != word {
			return m, fmt.Errorf("argument %q", text)
		}
		a.key = a.key || i == 0 && (a.name == "key" || a.name == "keys" || a.name == "channel")
		m.args = append(m.args, a)
	}
	return m, nil
}

func parseArgument(text string) argument {
	if name, ok := strings.CutPrefix(text, "="); ok {
		return argument{name: name, kind: word}
	}
	if name, ok := strings.CutPrefix(text, "#"); ok {
		if name, ok := strings.CutSuffix(name, ":fields"); ok {
			return argument{name: name, kind: paired}
		}
		return argument{name: name, kind: counted}
	}
	a := argument{name: text}
	a.name, a.key = strings.CutPrefix(a.name, "*")
	if name, kindName, ok := strings.Cut(a.name, ":"); ok {
		a.name, a.kind = name, kind(kindName)
	} else if name, ok := strings.CutSuffix(a.name, "..."); ok {
		a.name, a.kind = name, texts
	}
	return a
}

// source returns the text of the file.
func (f file) source() ([]byte, error) {
	var body bytes.Buffer
	var known []string
	for _, m := range f.methods {
		if !slices.Contains(known, m.command) {
			known = append(known, m.command)
		}
		m.write(&body, false)
		if m.appends {
			m.write(&body, true)
		}
	}
	var b bytes.Buffer
	b.WriteString("// Code generated by typedgen from commands.txt; DO NOT EDIT.\n\npackage redis\n\nimport (\n\t\"context\"\n")
	if strings.Contains(body.String(), "time.") {
		b.WriteString("\t\"time\"\n")
	}
	if strings.Contains(body.String(), "resp.") {
		b.WriteString("\n\t\"github.com/slipstream-go/slipstream/internal/wire/resp\"\n")
	}
	b.WriteString(")\n\nvar (\n")
	for _, command := range known {
		fmt.Fprintf(&b, "\t%s = known(%q)\n", infoName(command), command)
	}
	b.WriteString(")\n")
	b.Write(body.Bytes())
	return format.Source(b.Bytes())
}

func infoName(command string) string {
	return "info" + strings.NewReplacer(" ", "", "_", "").Replace(command)
}

// write writes the method, or its variant that appends.
func (m method) write(b *bytes.Buffer, appends bool) {
	name, results, decoder := m.name, m.results(), "c."+m.reply.decoder+"(ctx, &r)"
	parameters := []string{"ctx context.Context"}
	doc := name + " " + m.doc
	switch {
	case appends:
		name += "Append"
		results, decoder = m.reply.appended, "c."+m.reply.appender+"(ctx, &r, dst)"
		parameters = append(parameters, "dst []byte")
		doc = name + " is like [Client." + m.name + "], but appends the string to dst. It allocates nothing if dst has room."
	case m.reply.decoder == "into":
		decoder = "c.into(ctx, &r, dst)"
		parameters = append(parameters, "dst any")
	}
	fmt.Fprintf(b, "\n%s\nfunc (c *Client) %s(%s) %s {\n", comment(doc), name, m.parameters(parameters), results)
	fmt.Fprintf(b, "\tr := c.typed(%s, %s)\n", infoName(m.command), m.route())
	m.writeFrame(b)
	fmt.Fprintf(b, "\treturn %s\n}\n", decoder)
}

var isFalse = regexp.MustCompile(`(\w+) is false`)

// results returns the results. A bool has the name that the comment uses.
func (m method) results() string {
	if slices.ContainsFunc(m.args, func(a argument) bool { return a.name == "value" }) {
		return strings.Replace(m.reply.results, "(value ", "(old ", 1)
	}
	if found := isFalse.FindStringSubmatch(m.doc); found != nil && m.reply.decoder == "flag" {
		return "(" + found[1] + " bool, err error)"
	}
	return m.reply.results
}

// parameters adds the parameters of the command to list; adjacent ones of the same type share it.
func (m method) parameters(list []string) string {
	var names []string
	last := ""
	flush := func() {
		if len(names) > 0 {
			list = append(list, strings.Join(names, ", ")+" "+last)
		}
		names = nil
	}
	for _, a := range m.args {
		if a.kind == word {
			continue
		}
		if t := goTypes[a.kind]; t != last {
			flush()
			last = t
		}
		names = append(names, a.name)
	}
	flush()
	return strings.Join(list, ", ")
}

// router returns the position of the argument that starts with the key that selects the server, or
// -1 if there is none.
func (m method) router() int {
	return slices.IndexFunc(m.args, func(a argument) bool {
		switch a.kind {
		case counted:
			return a.name == "keys" && !slices.ContainsFunc(m.args, func(a argument) bool { return a.key && a.kind == text })
		case pairs:
			return true
		}
		return a.key && (a.kind == text || a.kind == texts)
	})
}

// route returns the expression for the key that selects the server.
func (m method) route() string {
	i := m.router()
	if i < 0 {
		return `""`
	}
	switch a := m.args[i]; a.kind {
	case text:
		return a.name
	case pairs:
		return "firstKey(" + a.name + ")"
	default:
		return "firstOf(" + a.name + ")"
	}
}

// checkRoutes compares the arguments that route methods with the keys of their commands. A channel
// routes a method, too: consecutive messages to it keep their order.
func (s *specification) checkRoutes() error {
	for _, f := range s.files {
		for _, m := range f.methods {
			i, key, position := m.router(), s.row(m.command).key, 0
			if i >= 0 {
				position = strings.Count(m.command, " ") + i + 1
				if m.args[i].kind == counted {
					position++
				}
			}
			if position != key && !(key == 0 && i >= 0 && m.args[i].name == "channel") {
				return fmt.Errorf("method %s is routed by position %d, but the first key of %s is at %d", m.name, position, m.command, key)
			}
		}
	}
	return nil
}

// writeFrame writes the lines that encode the command.
func (m method) writeFrame(b *bytes.Buffer) {
	count := 0
	more := ""
	var head strings.Builder
	add := func(s string) {
		count++
		fmt.Fprintf(&head, "$%d\\r\\n%s\\r\\n", len(s), s)
	}
	for _, s := range strings.Fields(m.command) {
		add(s)
	}
	first := 0
	for first < len(m.args) && m.args[first].kind == word {
		add(m.args[first].name)
		first++
	}
	for _, a := range m.args[first:] {
		switch a.kind {
		case texts:
			more += "+len(" + a.name + ")"
		case fields, pairs, members:
			more += "+2*len(" + a.name + ")"
		case paired:
			count++
			more += "+2*len(" + a.name + ")"
		case counted:
			count++
			more += "+len(" + a.name + ")"
		default:
			count++
		}
	}
	if more == "" {
		fmt.Fprintf(b, "\tb := append(r.call.Frame[:0], \"*%d\\r\\n%s\"...)\n", count, head.String())
	} else {
		fmt.Fprintf(b, "\tb := append(resp.AppendArrayHeader(r.call.Frame[:0], %d%s), \"%s\"...)\n", count, more, head.String())
	}
	for _, a := range m.args[first:] {
		b.WriteString(a.line())
	}
	b.WriteString("\tr.call.Frame = b\n")
}

// line returns the line that encodes the argument.
func (a argument) line() string {
	switch a.kind {
	case word:
		return fmt.Sprintf("\tb = append(b, \"$%d\\r\\n%s\\r\\n\"...)\n", len(a.name), a.name)
	case integer:
		return "\tb = resp.AppendBulkInt(b, " + a.name + ")\n"
	case float:
		return "\tb = resp.AppendBulkFloat(b, " + a.name + ")\n"
	case millis:
		return "\tb = resp.AppendBulkInt(b, milliseconds(" + a.name + "))\n"
	case instant:
		return "\tb = resp.AppendBulkInt(b, " + a.name + ".UnixMilli())\n"
	case texts:
		return "\tb = appendWords(b, " + a.name + ")\n"
	case counted:
		return "\tb = appendWords(resp.AppendBulkInt(b, int64(len(" + a.name + "))), " + a.name + ")\n"
	case paired:
		return "\tb = appendFields(resp.AppendBulkInt(b, int64(len(" + a.name + "))), " + a.name + ")\n"
	case fields:
		return "\tb = appendFields(b, " + a.name + ")\n"
	case pairs:
		return "\tb = appendPairs(b, " + a.name + ")\n"
	case members:
		return "\tb = appendMembers(b, " + a.name + ")\n"
	}
	return "\tb = resp.AppendBulkString(b, " + a.name + ")\n"
}

// comment wraps a text as the lines of a comment.
func comment(text string) string {
	var b strings.Builder
	line := "//"
	for _, w := range strings.Fields(text) {
		if len(line)+1+len(w) > 92 {
			b.WriteString(line + "\n")
			line = "//"
		}
		line += " " + w
	}
	b.WriteString(line)
	return b.String()
}
