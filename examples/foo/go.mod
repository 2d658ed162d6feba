// The service that docs/tutorial-profiling.md makes faster step by step: a module of its own, so that the library that
// version 1.6 needs is in nobody else's module graph.
module github.com/slipstream-go/slipstream/examples/foo

go 1.26.0

require github.com/mailru/easyjson v0.9.2

require github.com/josharian/intern v1.0.0 // indirect
