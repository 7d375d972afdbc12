package compress

import (
	"github.com/loom-bridge/loom-bridge/context/blob"
)

// job is a result and what was found out about it.
type job struct {
	Result
	chars    int
	kind     string // of the content
	strategy Strategy
	// run is what a command did; only of strategy Exec.
	run run
	// failed says that the content says what went wrong, which stays.
	failed bool
}

func newJob(r Result, chars int) *job {
	j := &job{Result: r, chars: chars, strategy: StrategyOf(r)}
	j.kind = contentKind(r.Content, j.strategy)
	j.failed = r.Failed
	if j.strategy == Exec {
		j.run = runOf(&r, j.kind == blob.KindJSON)
		j.failed = j.failed || j.run.exitCode != 0
	}
	return j
}

// isText reports whether the content may go through a strategy for text.
func (j *job) isText() bool {
	return j.kind == blob.KindText || j.kind == blob.KindJSON || j.kind == blob.KindLog
}
