package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func (p program) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page",
		Long: `Man prints the manual page of slipstream and all of its commands, as packages
install it.`,
		Example: `  slipstream man | man -l -
  slipstream man > /usr/local/share/man/man1/slipstream.1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), manual(p.root(), readBuild()))
			return fail(exitFailure, err, "")
		},
	}
}

// manWidth is the maximum width of a list of flags, without the indentation of the
// page.
const manWidth = 70

// page is a manual page that is being written, in the macros of man(7).
type page struct{ strings.Builder }

// manual returns the page of the whole tree of commands.
func manual(root *cobra.Command, b build) string {
	var p page
	date, _, _ := strings.Cut(b.Time, "T")
	p.macro("TH", "SLIPSTREAM", "1", date, "slipstream "+b.Version, "User Commands")
	p.WriteString(".nh\n.ad l\n") // neither hyphenate words nor stretch lines
	p.macro("SH", "NAME")
	p.text("slipstream - " + strings.ToLower(root.Short[:1]) + root.Short[1:])
	p.macro("SH", "SYNOPSIS")
	p.text("slipstream command [flags]")
	p.macro("SH", "DESCRIPTION")
	p.prose(root.Long)
	p.macro("SH", "COMMANDS")
	p.commands(root)
	p.macro("SH", "EXIT STATUS")
	_, codes, _ := strings.Cut(exitCodes, "\n")
	p.verbatim(codes)
	p.macro("SH", "EXAMPLES")
	p.verbatim(root.Example)
	p.macro("SH", "SEE ALSO")
	p.text("https://github.com/slipstream-go/slipstream/blob/main/docs/OPERATIONS.md")
	return p.String()
}

// commands writes a subsection for each command that does something.
func (p *page) commands(of *cobra.Command) {
	for _, c := range of.Commands() {
		switch {
		case !c.IsAvailableCommand() || c.Name() == "help":
			continue
		case !isGroup(c):
			p.command(c)
		}
		p.commands(c)
	}
}

// command writes the subsection of a command.
func (p *page) command(c *cobra.Command) {
	p.macro("SS", c.UseLine())
	p.prose(c.Long)
	if flags := c.NonInheritedFlags().FlagUsagesWrapped(manWidth); flags != "" {
		p.verbatim(flags)
	}
	p.verbatim(c.Example)
}

// prose writes paragraphs; an indented one is not changed. Exit codes have a section
// of their own.
func (p *page) prose(text string) {
	text = strings.TrimSpace(strings.ReplaceAll(text, exitCodes, ""))
	for i, paragraph := range strings.Split(text, "\n\n") {
		if strings.Contains("\n"+paragraph, "\n ") {
			p.verbatim(paragraph)
			continue
		}
		if i > 0 {
			p.macro("PP")
		}
		p.text(paragraph)
	}
}

func (p *page) verbatim(text string) {
	p.macro("PP")
	p.macro("EX")
	p.text(text)
	p.macro("EE")
}

// macro writes a line that begins with a macro.
func (p *page) macro(name string, arguments ...string) {
	p.WriteString("." + name)
	for _, a := range arguments {
		fmt.Fprintf(p, ` "%s"`, strings.ReplaceAll(escapeRoff.Replace(a), `"`, `\(dq`))
	}
	p.WriteByte('\n')
}

// escapeRoff keeps hyphens unchanged, so that options can be copied from the page.
var escapeRoff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...")

// text writes lines, none of which can be mistaken for a macro.
func (p *page) text(text string) {
	for line := range strings.Lines(text) {
		line = escapeRoff.Replace(strings.TrimRight(line, "\n"))
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		p.WriteString(line + "\n")
	}
}
