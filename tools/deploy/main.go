// Command deploy checks the contents of the folder deploy against the types of the programs that
// read it: a file for Compose, or objects for Kubernetes. Unknown fields are errors. It is a
// separate module, because those types bring hundreds of others.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := judge(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

func judge(args []string, in io.Reader) error {
	switch {
	case len(args) == 2 && args[0] == "compose":
		return compose(args[1])
	case len(args) == 1 && args[0] == "kubernetes":
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		return kubernetes(text)
	}
	return errors.New("expected: compose FILE, or kubernetes with objects on standard input")
}

// compose loads a project as Compose itself does: schema, variables, references.
func compose(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithOsEnv, cli.WithResolvedPaths(true))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d services\n", file, len(project.Services))
	return nil
}

// kubernetes reads objects as the API server does with strict validation of fields.
func kubernetes(text []byte) error {
	objects := 0
	for _, document := range bytes.Split(text, []byte("\n---")) {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return err
		}
		if kind.Kind == "" {
			continue
		}
		known := map[string]any{
			"apps/v1 Deployment":            new(apps.Deployment),
			"policy/v1 PodDisruptionBudget": new(policy.PodDisruptionBudget),
			"v1 ConfigMap":                  new(core.ConfigMap),
			"v1 Service":                    new(core.Service),
			"v1 ServiceAccount":             new(core.ServiceAccount),
		}
		name := strings.TrimSpace(kind.APIVersion + " " + kind.Kind)
		object, ok := known[name]
		if !ok {
			return fmt.Errorf("%s: unknown here; expected one of those in tools/deploy", name)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		objects++
	}
	if objects == 0 {
		return errors.New("no objects")
	}
	fmt.Printf("%d objects\n", objects)
	return nil
}
