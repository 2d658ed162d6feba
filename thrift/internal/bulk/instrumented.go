//go:build race || msan || asan

package bulk

const instrumented = true
