//go:build !linux || !amd64

package sandbox

import (
	"context"
	"runtime"
)

type machine struct{}

func (machine) release() error { return nil }

// Describe says that nothing confines a process here.
func (l *Local) Describe(context.Context) Confinement {
	return Confinement{Setting: l.opts.Setting, Problems: []string{l.reason()}}
}

func (l *Local) reason() string {
	return "tools are confined on Linux on amd64 alone, not on " + runtime.GOOS + " on " + runtime.GOARCH
}

// Prepared is 0: nothing is started here.
func (l *Local) Prepared() int { return 0 }

// Run refuses the job.
func (l *Local) Run(context.Context, Job, Streams) (RunOutcome, error) {
	if err := l.begin(); err != nil {
		return RunOutcome{}, err
	}
	defer l.running.Done()
	return RunOutcome{}, &UnavailableError{l.reason()}
}

// FolderAt is not known here: nothing is confined.
func FolderAt(string) Folder { return Folder{} }
