package tree

import (
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// resolved is a driver's type with an [Outcome].
type resolved interface{ outcome() *Outcome }

// Retired is the outcome of a resource that was retired.
func Retired(r *resource.Resource) Outcome {
	return Outcome{Resource: r, Err: &origin.SchemaError{Resource: r.Name, Problem: "it is no longer served"}}
}

// Addition returns the resolved resources of a set, or their errors.
func Addition[R resolved](set *origin.Set, all []R) (*origin.Addition, error) {
	a := &origin.Addition{}
	var errs []error
	for i, one := range all {
		o := one.outcome()
		if o.Err != nil {
			errs = append(errs, o.Err)
		}
		a.Resources = append(a.Resources, set.Resources[i])
		a.Keys = append(a.Keys, o.Key)
		a.Warnings = append(a.Warnings, o.Warnings...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return a, nil
}

// RefuseNewKinds breaks the resources of a set whose key columns have changed their kind since
// the gateway started, and returns their indexes: every existing ID would mean something else.
func RefuseNewKinds[R resolved](set *origin.Set, all []R) (refused []int) {
	for i, one := range all {
		o := one.outcome()
		if o.Err != nil || i >= len(set.Keys) {
			continue
		}
		for k, now := range o.Key {
			if before := set.Keys[i][k]; now.Kind != before.Kind {
				o.Err = &origin.SchemaError{Resource: o.Resource.Name, Line: o.Resource.Line, Problem: fmt.Sprintf(
					"key column %s was of kind %s when the gateway started and is now of kind %s; restart the gateway", now.Name, before.Kind, now.Kind)}
				refused = append(refused, i)
				break
			}
		}
	}
	return refused
}
