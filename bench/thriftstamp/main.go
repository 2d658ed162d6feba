// Command thriftstamp measures the cost of generated Thrift code with a prototype that was written
// before the generator. It repeats the prototype of package proto for many structs, one part after
// another, and prints the bytes of source, the CPU time of go build and go vet, and the bytes in a
// linked program. The code that thriftgo generates with its backend fastgo for the same IDL is also
// measured. Decision 0022 shows the tables.
//
//	go run ./thriftstamp            # 625 structs with 7,500 fields: about 15 minutes
//	go run ./thriftstamp -quick     # 25 structs, one round, to check that everything works
//	go run ./thriftstamp -speed     # nanoseconds instead of sizes: about 5 minutes
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// level is a set of files of the prototype that is measured together.
type level struct {
	name  string
	files []string // of package proto, without the extension
}

const chosen = "types codec_mixed"

var levels = []level{
	{"types", strings.Fields("types")},
	{"types, optional bits", strings.Fields("types_bits")},
	{"types, optional pointers", strings.Fields("types_pointers")},
	{"codec straight", strings.Fields("types codec_straight")},
	{"codec mixed", strings.Fields(chosen)},
	{"codec mixed, optional bits", strings.Fields("types_bits codec_bits")},
	{"codec mixed, optional pointers", strings.Fields("types_pointers codec_pointers")},
	{"codec calls", strings.Fields("types codec_calls")},
	{"codec table", strings.Fields("types table codec_table")},
	{"mixed + view straight", strings.Fields(chosen + " view_straight")},
	{"mixed + view table", strings.Fields(chosen + " view_table")},
	{"mixed + view table with setters", strings.Fields(chosen + " view_table view_edit")},
	{"mixed + JSON straight", strings.Fields(chosen + " json_straight")},
	{"mixed + equal straight", strings.Fields(chosen + " equal_straight")},
	{"mixed + copy straight", strings.Fields(chosen + " copy_straight")},
	{"mixed + string straight", strings.Fields(chosen + " string_straight")},
	{"mixed + all straight", strings.Fields(chosen + " view_straight json_straight equal_straight copy_straight string_straight")},
	{"mixed + table + JSON, equal, copy, string", strings.Fields(chosen + " table json_table equal_table copy_table string_table")},
	{"mixed + table + all of these + view table, setters", strings.Fields(chosen + " table json_table equal_table copy_table string_table view_table view_edit")},
}

// rivals are options of thriftgo's backend fastgo.
var rivals = []struct{ name, options string }{
	{"fastgo", "no_default_serdes"},
	{"fastgo slim", "no_default_serdes,template=slim"},
	{"fastgo + deep equal", "no_default_serdes,gen_deep_equal"},
}

func main() {
	var c config
	var err error
	out := flag.String("dir", "", "`directory` to build in; if empty, a temporary directory")
	flag.IntVar(&c.structs, "structs", 625, "`number` of structs")
	flag.IntVar(&c.rounds, "rounds", 3, "`number` of builds; speed is measured 5 times as often")
	flag.BoolVar(&c.rival, "rival", true, "also measure thriftgo, which is fetched as a module")
	only := flag.String("only", "", "measure only levels, or with -speed operations, whose names match this regular expression")
	quick := flag.Bool("quick", false, "25 structs, one round")
	speed := flag.Bool("speed", false, "measure speed instead of sizes")
	flag.Parse()
	if c.only, err = regexp.Compile(*only); err != nil {
		fmt.Fprintln(os.Stderr, "thriftstamp:", err)
		os.Exit(2)
	}
	if *quick {
		c.structs, c.rounds = 25, 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c, *out, *speed, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "thriftstamp:", err)
		os.Exit(1)
	}
}

type config struct {
	structs, rounds int
	rival           bool
	only            *regexp.Regexp
}

func run(ctx context.Context, c config, out string, speed bool, w io.Writer) error {
	if out == "" {
		dir, err := os.MkdirTemp("", "thriftstamp")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		out = dir
	}
	out, err := filepath.Abs(out) // The go command runs there.
	if err != nil {
		return err
	}
	m := module{ctx: ctx, dir: out}
	if err := m.begin(c.rival); err != nil {
		return err
	}
	if speed {
		return m.speed(c, w)
	}
	return m.sizes(c, w)
}

// sizes stamps and measures all levels.
func (m module) sizes(c config, w io.Writer) error {
	fmt.Fprintf(w, "%d structs, %d fields; medians of %d rounds\n", c.structs, 12*c.structs, c.rounds)
	fmt.Fprintln(w, "source: KiB of generated files. build, vet: CPU seconds of go build and go vet of only the package.")
	fmt.Fprintln(w, "text, data, file: KiB that the package and its dependencies add to a program with all of its methods. own: text of only the package.")
	fmt.Fprintf(w, "%-52s %8s %8s %7s %7s %8s %8s %8s %8s\n", "level", "source", "lines", "build", "vet", "own", "text", "data", "file")
	var packages []string
	for i, l := range levels {
		if !c.only.MatchString(l.name) {
			continue
		}
		pkg := fmt.Sprintf("level%02d", i)
		if err := m.stamp(pkg, l.files, c.structs); err != nil {
			return err
		}
		packages = append(packages, pkg+"="+l.name)
	}
	if c.rival {
		for i, r := range rivals {
			if !c.only.MatchString(r.name) {
				continue
			}
			pkg := fmt.Sprintf("rival%02d", i)
			if err := m.generate(pkg, r.options, c.structs); err != nil {
				return err
			}
			packages = append(packages, pkg+"="+r.name)
		}
	}
	if err := m.stampEmpty(); err != nil {
		return err
	}
	empty, err := m.link("empty")
	if err != nil {
		return err
	}
	if err := m.warm(c.rival); err != nil {
		return err
	}
	costs := make([]cost, len(packages))
	for round := range c.rounds {
		for i, p := range packages {
			pkg, name, _ := strings.Cut(p, "=")
			s := &costs[i]
			if err := m.measure(pkg, s); err != nil {
				return err
			}
			if round < c.rounds-1 {
				continue
			}
			linked, err := m.link(pkg)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%-52s %8.0f %8d %7.2f %7.2f %8.0f %8.0f %8.0f %8.0f\n", name, kib(s.source), s.lines, median(s.builds), median(s.vets),
				kib(linked.own), kib(linked.text-empty.text), kib(linked.data-empty.data), kib(linked.file-empty.file))
		}
	}
	return nil
}

func kib(n int64) float64 { return float64(n) / 1024 }

// speed builds the speed program with one struct of the rival, and runs it.
func (m module) speed(c config, w io.Writer) error {
	program := speedAlone
	if c.rival {
		if err := m.generate("rival", rivals[0].options, 1); err != nil {
			return err
		}
		program = speedBeside
	}
	if err := m.write("speedmain/main.go", fmt.Sprintf(program, 5*c.rounds, c.only)); err != nil {
		return err
	}
	bin := filepath.Join(m.dir, "speed.exe")
	if _, err := m.goTool("build", "-o", bin, "./speedmain"); err != nil {
		return err
	}
	return m.command(w, bin)
}

const speedAlone = `package main

import (
	"os"
	"stamped/speed"
)

func main() { speed.Run(os.Stdout, %d, %q, nil) }
`

const speedBeside = `package main

import (
	"os"
	"stamped/rival"
	"stamped/speed"
)

func main() {
	speed.Run(os.Stdout, %d, %q, func(b []byte) (func() int, func([]byte) []byte, func([]byte) (int, error)) {
		p := rival.NewS0000()
		if _, err := p.FastRead(b); err != nil {
			panic(err)
		}
		return p.BLength, p.FastAppend, func(b []byte) (int, error) { return rival.NewS0000().FastRead(b) }
	})
}
`
