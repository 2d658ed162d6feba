package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/profiles"
)

// profiledWindow is the minimum window of a run that is made only for profiles.
const profiledWindow = 6 * time.Second

// withoutProfiles returns a side whose runs take no profiles, since these cost the server CPU time.
func (s Side) withoutProfiles() Side {
	s.Plan.Profile = nil
	return s
}

// lookForProfiles fails if the profiles of a side are not available, so that this is noticed before
// any request.
func (s Side) lookForProfiles(ctx context.Context) error {
	_, err := s.Plan.newRecorder(ctx)
	return err
}

// profile makes one more run, in which profiles are taken. It returns nil if none are requested.
// name is the directory of the files, relative to that of the plan, and may be empty.
func (s Side) profile(ctx context.Context, name string, progress io.Writer) (*Report, error) {
	if len(s.Plan.Profile) == 0 {
		return nil, nil
	}
	plan := s.Plan
	plan.Total, plan.Duration, plan.ProfileDir = 0, max(plan.Duration, profiledWindow), filepath.Join(plan.ProfileDir, name)
	w, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	if progress != nil {
		fmt.Fprintf(progress, "profiles of %s: one more run of %v\n", w.Name(), plan.Duration)
	}
	r, err := plan.Run(ctx, w)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return r, err
}

// A baseline is an earlier CPU profile, or the CPU profile of another server.
type baseline struct {
	tree *profiles.Tree
	of   string // completes "that of ..."
	// Titles of the columns for the baseline and for the profile compared with it.
	before, now string
}

// earlier returns the baseline for --profile-base.
func earlier(tree *profiles.Tree) *baseline {
	return &baseline{tree, "an earlier run", "before", "now"}
}

// baseOf returns profile number i of A as the baseline for that of B, or nil if there is none.
func (c *Comparison) baseOf(i int) *baseline {
	if c.ProfiledA == nil || i >= len(c.ProfiledA.Profiles) {
		return nil
	}
	tree := cpuTree(c.ProfiledA.Profiles[i])
	if tree == nil {
		return nil
	}
	return &baseline{tree, "A", "A", "B"}
}

// takeProfiles makes a run of each side for which profiles are requested.
func (c *Comparison) takeProfiles(ctx context.Context, a, b Side, progress io.Writer) (err error) {
	if c.ProfiledA, err = a.profile(ctx, "A", progress); err != nil {
		return err
	}
	c.ProfiledB, err = b.profile(ctx, "B", progress)
	return err
}

// takeProfiles makes a run at the rate that was found, in which profiles are taken.
func (k *Knee) takeProfiles(ctx context.Context, side Side, progress io.Writer) (err error) {
	if k.Rate > 0 {
		side.Plan.Rate = k.Rate
		k.Profiled, err = side.profile(ctx, "", progress)
	}
	return err
}

// writeProfiles writes the profiles of both sides and how they differ.
func (c *Comparison) writeProfiles(b *strings.Builder) {
	if r := c.ProfiledA; r != nil {
		for _, set := range r.Profiles {
			writeSet(b, set, nil)
		}
	}
	if r := c.ProfiledB; r != nil {
		for i, set := range r.Profiles {
			writeSet(b, set, c.baseOf(i))
		}
	}
}

// profileSections returns the same as sections of a page.
func (c *Comparison) profileSections() (all []section) {
	if r := c.ProfiledA; r != nil {
		for _, set := range r.Profiles {
			all = append(all, setSections(set, nil)...)
		}
	}
	if r := c.ProfiledB; r != nil {
		for i, set := range r.Profiles {
			all = append(all, setSections(set, c.baseOf(i))...)
		}
	}
	return all
}
