package policy

import (
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

// bound is one limit: its key, what a file says of it, and what the profile has.
type bound struct {
	key  string
	text string // for spans and sizes
	n    int    // for counts
	span *time.Duration
	size *int64
	int  *int
	// floor says that more is narrower.
	floor bool
}

// bounds pairs the limits of a file with a profile's.
func bounds(from limits, p *Profile) []bound {
	l := &p.Limits
	return []bound{
		{key: "cpu", text: from.CPU, span: &l.CPU},
		{key: "wall", text: from.Wall, span: &p.Wall},
		{key: "memory", text: from.Memory, size: &l.Memory},
		{key: "processes", n: from.Processes, int: &l.Processes},
		{key: "file", text: from.File, size: &l.File},
		{key: "scratch", text: from.Scratch, size: &l.Scratch},
		{key: "disk_floor", text: from.DiskFloor, size: &l.DiskFloor, floor: true},
		{key: "open_files", n: from.OpenFiles, int: &l.OpenFiles},
		{key: "output", text: from.Output, size: &l.Output},
	}
}

// widensLimit is why a limit of a workspace is refused.
const widensLimit = "gives more than the profile has"

// set reads the limit into the profile. narrow refuses more than it has.
func (b bound) set(d document, key string, narrow bool) *FileError {
	key = joined(key, b.key)
	widens := func(more bool) *FileError {
		if narrow && more != b.floor {
			return d.fault(key, "%s", widensLimit)
		}
		return nil
	}
	switch {
	case b.int != nil && b.n < 0:
		return d.fault(key, "%d is not a number above 0", b.n)
	case b.int != nil && b.n > 0:
		if err := widens(b.n > *b.int); err != nil && b.n != *b.int {
			return err
		}
		*b.int = b.n
	case b.span != nil && b.text != "":
		span, err := spanOf(b.text)
		if err != nil {
			return d.fault(key, "%v", err)
		}
		if err := widens(*b.span > 0 && span > *b.span); err != nil && span != *b.span {
			return err
		}
		*b.span = span
	case b.size != nil && b.text != "":
		size, err := bytesOf(b.text)
		if err != nil {
			return d.fault(key, "%v", err)
		}
		if err := widens(size > *b.size); err != nil && size != *b.size {
			return err
		}
		*b.size = size
	}
	return nil
}

// least are the narrower of two limits each.
func least(a, b sandbox.Limits) sandbox.Limits {
	return sandbox.Limits{
		CPU: min(a.CPU, b.CPU), Memory: min(a.Memory, b.Memory), Processes: min(a.Processes, b.Processes), File: min(a.File, b.File),
		Scratch: min(a.Scratch, b.Scratch), DiskFloor: max(a.DiskFloor, b.DiskFloor), OpenFiles: min(a.OpenFiles, b.OpenFiles),
		Output: min(a.Output, b.Output),
	}
}

// shorter is the shorter of two spans, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
