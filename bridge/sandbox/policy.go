package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

// Folder is which folder one is, whatever its name: by device, inode, and when it was made, in
// ns (0: not known).
type Folder struct {
	Dev, Ino uint64
	Born     int64
}

// Setting is what the operator asks of the sandbox.
type Setting string

// The settings.
const (
	// Auto runs tools in the best tier there is, and in none refuses them.
	Auto Setting = "auto"
	// Require does not start without a tier.
	Require Setting = "require"
	// Off runs tools unconfined, with limits alone.
	Off Setting = "off"
)

// The tiers.
const (
	TierAuto       = "auto"
	TierNamespaces = inner.Namespaces
	TierLandlock   = inner.Landlock
	tierNone       = inner.None
)

// Mode is how much a policy gives.
type Mode string

// The modes.
const (
	// ModeRead: the workspace can be read; no network.
	ModeRead Mode = "read"
	// ModeWork: the workspace can be changed, except protected paths; no network.
	ModeWork Mode = "work"
	// ModeNet: work, and the hosts of a list, by the job's Network.
	ModeNet Mode = "net"
	// ModeOpen: work, and every public host, by the job's Network.
	ModeOpen Mode = "open"
	// ModeOff: unconfined, with limits alone; a runner must be set to allow it.
	ModeOff Mode = "off"
)

// Policy is what one job may do. It is resolved: it names no other.
type Policy struct {
	// Mode is how much it gives. Default ModeWork.
	Mode Mode
	// Read and Write are absolute places outside of the workspace that it gives too.
	Read, Write []string
	// Hide are absolute places in the workspace, each a folder or a file, that seem empty.
	Hide []string
	// Protect are paths in the workspace that stay as they are, in the form of commands.Set.
	// Default Protected.
	Protect []string
	// Own are repositories that programs have made, as Outcome.Made names them: what Protect
	// keeps of others can be changed in these.
	Own []Folder
	// Limits bound the job. Zero fields take the values of DefaultLimits.
	Limits Limits
}

// Limits bound one job; all of its processes together where it is not said otherwise.
type Limits struct {
	CPU       time.Duration // time of one process
	Memory    int64         // bytes that nothing on disk backs
	Processes int
	File      int64 // longest file that it may write
	Scratch   int64 // bytes of temporary files (tier N)
	DiskFloor int64 // bytes that stay free on the workspace's disk
	OpenFiles int   // of one process
	Output    int64 // bytes of stdout and stderr together
}

// DefaultLimits are enough for compilers and test runs of one project.
func DefaultLimits() Limits {
	const mib = 1 << 20
	return Limits{
		CPU: 10 * time.Minute, Memory: 2048 * mib, Processes: 512, File: 1024 * mib, Scratch: 512 * mib,
		DiskFloor: 256 * mib, OpenFiles: 4096, Output: 256 * mib,
	}
}

// Protected returns the paths of a workspace whose content others run with more rights than
// the tool has: the paths of commands.Table. git itself works: it commits, branches and
// merges.
func Protected() []string { return commands.Paths() }

// Path is where programs without a slash in their name are looked for.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// withDefaults fills in what is not said.
func (p Policy) withDefaults() Policy {
	if p.Mode == "" {
		p.Mode = ModeWork
	}
	if p.Protect == nil {
		p.Protect = Protected()
	}
	d := DefaultLimits()
	l := &p.Limits
	l.CPU, l.Processes, l.OpenFiles = orElse(l.CPU, d.CPU), orElse(l.Processes, d.Processes), orElse(l.OpenFiles, d.OpenFiles)
	for _, f := range []struct {
		to   *int64
		from int64
	}{{&l.Memory, d.Memory}, {&l.File, d.File}, {&l.Scratch, d.Scratch}, {&l.DiskFloor, d.DiskFloor}, {&l.Output, d.Output}} {
		*f.to = orElse(*f.to, f.from)
	}
	return p
}

func orElse[T int | int64 | time.Duration](value, fallback T) T {
	if value > 0 {
		return value
	}
	return fallback
}

// networked reports whether the mode reaches a network.
func (m Mode) networked() bool { return m == ModeNet || m == ModeOpen }

// check returns an ErrPolicy for what no tier can keep.
func (p Policy) check(allowOff bool) error {
	switch p.Mode {
	case ModeRead, ModeWork, ModeNet, ModeOpen:
	case ModeOff:
		if !allowOff {
			return fmt.Errorf("%w: mode off is the operator's alone", ErrPolicy)
		}
	default:
		return fmt.Errorf("%w: there is no mode %q", ErrPolicy, p.Mode)
	}
	for _, place := range slices.Concat(p.Read, p.Write, p.Hide) {
		if !filepath.IsAbs(place) {
			return fmt.Errorf("%w: %q is not absolute", ErrPolicy, place)
		}
	}
	for _, path := range p.Protect {
		if !filepath.IsLocal(path) {
			return fmt.Errorf("%w: protected path %q leads out of the workspace", ErrPolicy, path)
		}
	}
	return nil
}
