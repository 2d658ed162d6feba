package frontend

import "github.com/slipstream-go/slipstream/cache"

// Source says where the documents of an answer came from, as named in metrics.
type Source uint8

// Sources. An answer with several documents has the last of these that applies to
// one of them.
const (
	SourceOther  Source = iota // no document: errors, descriptions, commands about other things
	SourceHit                  // from a tier
	SourceStale                // from a tier, and possibly older than promised
	SourceJoined               // from a load that another request started
	SourceLoad                 // loaded for this request

	sources
)

// Sources lists all sources, in the order of the dashboard.
var Sources = [sources]Source{SourceHit, SourceLoad, SourceJoined, SourceStale, SourceOther}

// String returns the name of the source in metrics and logs.
func (s Source) String() string {
	return [...]string{"other", "hit", "stale", "joined", "load"}[s]
}

// SourceOf returns the source of an answer of the cache.
func SourceOf(a cache.Answer) Source {
	switch a.Source {
	case cache.FromTier:
		return SourceHit
	case cache.Stale:
		return SourceStale
	case cache.Joined:
		return SourceJoined
	default:
		return SourceLoad
	}
}
