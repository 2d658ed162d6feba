package idl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//	Config.ReadFile --> loader --> lexer --> parser --> included files, depth first --> checker, file by file
//	                                              File: syntax tree                          Program: checked tree
//
// The limits are 16 MiB for all files together, a million nodes, 10,000 files, and 100 levels of
// nested types, values, typedefs and includes, and of services that extend services. Therefore code
// that walks a tree recursively cannot exhaust the stack. At most 400 bytes are allocated for each
// byte of a source, of which 70 are retained.

// Config configures Load. The zero value reads files of the operating system.
type Config struct {
	// ReadFile returns the content of a file, or an error that is fs.ErrNotExist if there is no
	// such file. Paths have slashes and are as path.Clean returns them. If nil, Load reads files of
	// the operating system, and an include may name any of them: programs that load files from
	// untrusted sources must set ReadFile. For an fs.FS, use
	//
	//	func(path string) ([]byte, error) { return fs.ReadFile(fsys, path) }
	ReadFile func(path string) ([]byte, error)
	// Dirs are searched in order for included files that are not found relative to the directory of
	// the including file.
	Dirs []string
	// NegativeIDs keeps IDs of fields that are not positive, like --allow-neg-keys of the Thrift
	// compiler. If false, they are replaced by -1, -2 and so on, with a warning.
	NegativeIDs bool
	// MaxBytes limits the size of all files together. If 0, the limit is 16 MiB.
	MaxBytes int
}

// Program is a set of checked files with all names resolved.
type Program struct {
	// Roots are the files that were passed to Load, in that order.
	Roots []*File
	// Files are all files. Each file comes after the files that it includes.
	Files []*File
	// Warnings describe constructs that are accepted but probably not intended, in the order of
	// Files. There are at most 100.
	Warnings ErrorList
}

const (
	defaultMaxBytes = 16 << 20
	maxFiles        = 10_000
)

// Load parses the named files and all files that they include, resolves names, and checks types,
// values and services. If there are errors, the program is nil and the error is an [ErrorList] with
// all of them. Files with syntax errors are not checked further, and neither are the files that
// include them.
func Load(config Config, names ...string) (*Program, error) {
	l := &loader{config: config, files: make(map[string]*loaded), nodes: maxNodes, bytes: config.MaxBytes}
	if l.bytes == 0 {
		l.bytes = defaultMaxBytes
	}
	if config.ReadFile == nil {
		l.config.ReadFile = l.readOS
	}
	p := &Program{}
	for _, name := range names {
		if config.ReadFile == nil {
			name = filepath.ToSlash(name)
		}
		name = path.Clean(name)
		f := l.load(name, nil)
		if f == nil {
			f = &File{Path: name}
			if e := l.report.errorf(f, Pos{}, "the file was not found"); e != nil {
				e.Err = fs.ErrNotExist
			}
		}
		p.Roots = append(p.Roots, f)
	}
	p.Files = l.order
	checkAll(p.Files, &l.report)
	if err := l.report.err(p.Files); err != nil {
		return nil, err
	}
	sortErrors(l.report.warnings, p.Files)
	p.Warnings = l.report.warnings
	return p, nil
}

// checkAll checks files, each of which follows those that it includes.
func checkAll(files []*File, r *report) {
	c := &checker{report: r, ids: make(map[shape]int32), lastID: int32(Named)}
	for _, f := range files {
		if f.complete && !r.full() {
			c.check(f)
		}
	}
}

// loader loads files. It is used by one goroutine.
type loader struct {
	config Config
	files  map[string]*loaded // by path
	order  []*File            // each after the files that it includes
	chain  []string           // paths of the files that are being loaded
	report report
	nodes  int // remaining number of nodes
	bytes  int // remaining number of bytes
}

// loaded is the result of loading a path.
type loaded struct {
	file *File // nil if the file does not exist
	busy bool  // the file is in the chain
}

// site is an include, or nil for the files that Load was called with.
type site struct {
	file    *File
	include *Include
}

// errorf reports a file that cannot be loaded, at its include if there is one.
func (l *loader) errorf(s *site, name, format string, args ...any) *Error {
	if s != nil {
		return l.report.errorf(s.file, s.include.Pos, format, args...)
	}
	return l.report.errorf(&File{Path: name}, Pos{}, format, args...)
}

// load returns the file with that path, or nil if there is none. A file that cannot be used
// for another reason is returned incomplete, after the reason was reported.
func (l *loader) load(name string, s *site) *File {
	if known := l.files[name]; known != nil {
		if known.busy {
			l.errorf(s, name, "include cycle: %s", uncut(chainText(l.chain, name)))
			return &File{Path: name}
		}
		return known.file
	}
	known := &loaded{busy: true}
	l.files[name] = known
	src, err := l.config.ReadFile(name)
	if missing(err) {
		known.busy = false
		return nil
	}
	known.file = &File{Path: name}
	switch {
	case err != nil:
		if e := l.errorf(s, name, "the file %s cannot be read: %s", name, reason(err)); e != nil {
			e.Err = err
		}
	case len(l.order)+len(l.chain) >= maxFiles:
		l.errorf(s, name, "more than %d files", maxFiles)
	case len(l.chain) >= maxDepth:
		l.errorf(s, name, "includes are nested more than %d levels deep", maxDepth)
	case len(src) > l.bytes:
		l.errorf(s, name, "the files exceed the limit: only %d bytes are left for %s", l.bytes, name)
	default:
		l.bytes -= len(src)
		known.file = parse(name, src, &l.report, &l.nodes, l.config.NegativeIDs)
		l.chain = append(l.chain, name)
		l.includes(known.file)
		l.chain = l.chain[:len(l.chain)-1]
	}
	known.busy = false
	l.order = append(l.order, known.file)
	return known.file
}

// includes loads the files that a file includes.
func (l *loader) includes(f *File) {
	seen := make(map[*File]bool)
	for _, include := range f.Includes {
		if l.report.full() {
			f.complete = false
			return
		}
		s := &site{f, include}
		var tried []string
		for _, name := range l.candidates(f, include.Path) {
			tried = append(tried, name)
			if include.File = l.load(name, s); include.File != nil {
				break
			}
		}
		switch {
		case include.File == nil:
			if e := l.errorf(s, "", "the file %s was not found: tried %s", quote(include.Path), uncut(strings.Join(tried, ", "))); e != nil {
				e.Err = fs.ErrNotExist
			}
			f.complete = false
		case !include.File.complete:
			f.complete = false
		case seen[include.File]:
			l.report.warnf(f, include.Pos, "%s is included twice", include.File.Path)
		}
		seen[include.File] = true
	}
}

// candidates returns the paths at which the included file may be.
func (l *loader) candidates(f *File, name string) []string {
	if path.IsAbs(name) || filepath.IsAbs(name) {
		return []string{path.Clean(name)}
	}
	all := []string{path.Join(path.Dir(f.Path), name)}
	for _, dir := range l.config.Dirs {
		all = append(all, path.Join(filepath.ToSlash(dir), name))
	}
	return all
}

// missing reports whether there is no such file. A path that leads outside of an fs.FS is invalid.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid)
}

// readOS reads a file of the operating system, up to one byte more than the limit.
func (l *loader) readOS(name string) ([]byte, error) {
	f, err := os.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(l.bytes)+1))
}

// chainText describes a cycle of includes that begins and ends with a file.
func chainText(chain []string, name string) string {
	for len(chain) > 1 && chain[0] != name {
		chain = chain[1:]
	}
	const shown = 8
	text := strings.Join(chain[:min(shown, len(chain))], " includes ")
	if len(chain) > shown {
		text = fmt.Sprintf("%s and %d more", text, len(chain)-shown)
	}
	return text + " includes " + name
}

// reason returns the text of an error without the path that errors of package os begin with.
func reason(err error) string {
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		return inPath.Err.Error()
	}
	return err.Error()
}
