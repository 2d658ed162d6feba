package subject

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// A Catalog builds programs on first use.
type Catalog struct {
	// Immutable after NewCatalog.
	suite    string
	progress io.Writer
	build    map[string]func(context.Context) (Program, error)

	// Guarded by mu.
	mu    sync.Mutex
	built map[string]Program
}

// NewCatalog returns a catalog of the programs that build makes, by name. A
// build must not request another program from the catalog.
func NewCatalog(suite string, progress io.Writer, build map[string]func(context.Context) (Program, error)) *Catalog {
	return &Catalog{suite: suite, progress: progress, build: build, built: map[string]Program{}}
}

// Program returns a program by its name.
func (c *Catalog) Program(ctx context.Context, name string) (Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.built[name]; p != nil {
		return p, nil
	}
	build := c.build[name]
	if build == nil {
		return nil, fmt.Errorf("no program %q", name)
	}
	fmt.Fprintf(c.progress, "%s: building %s\n", c.suite, name)
	p, err := build(ctx)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", name, err)
	}
	c.built[name] = p
	return p, nil
}
