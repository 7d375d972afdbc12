// Package inner is the part of the sandbox that runs as separate processes: it confines
// itself and then becomes the tool.
//
// The server starts the first stage, which makes the file tree (tier N), starts the
// second stage, watches it, answers the calls that the filter sends to it (tier L),
// and at the end kills and reaps everything. The second stage is its own process,
// because Landlock counts a signal by the domain of the thread that sends it: a tool
// that was forked by a confined thread of its supervisor could kill it. It sets limits
// and identity, drops capabilities, takes Landlock and the filter on, and calls execve.
//
// A program that imports this package becomes a stage when it is started under the
// name of one: so the server can start itself where no helper is embedded.
package inner

import "time"

// The names under which a program is a stage, as its argument 0.
const (
	FirstStage  = "loom-sandbox-1"
	SecondStage = "loom-sandbox-2"
)

// The tiers.
const (
	Namespaces = "namespaces" // N
	Landlock   = "landlock"   // L
	None       = "none"       // limits and supervision alone
)

// The layers, as Spec.Without and reports name them.
const (
	LayerUser     = "user-namespace"
	LayerMount    = "mount-namespace"
	LayerPID      = "pid-namespace"
	LayerNet      = "net-namespace"
	LayerIPC      = "ipc-namespace"
	LayerLandlock = "landlock"
	LayerSeccomp  = "seccomp"
	LayerNotify   = "supervisor"
	LayerCaps     = "capabilities"
	LayerNNP      = "no-new-privs"
	LayerLimits   = "limits"
)

// Descriptors of the first stage. The tool's own three follow the stage's.
const (
	fdControl = 3 + iota
	fdStdin
	fdStdout
	fdStderr
	fdHelper // the program of both stages
)

// HelperPath is the program as the stages see it.
const HelperPath = "/proc/self/fd/7"

// With these bytes the first stage says, before it reads the spec, that what Base asks for is
// made, or could not be made.
const (
	ReadyMark  = 0xfe
	FailedMark = 0xfd
)

// Base is the part of a spec that can be made before there is a job. The first stage gets
// it first. What is protected and hidden is no part of it: a job before may make what is to be
// kept from the next one.
func (s *Spec) Base() Spec {
	return Spec{
		Tier: s.Tier, Workspace: s.Workspace, ReadOnly: s.ReadOnly, Read: s.Read, Write: s.Write, UID: s.UID, GID: s.GID,
		ABI: s.ABI, Without: s.Without, Limits: Limits{Scratch: s.Limits.Scratch},
	}
}

// Spec is the first stage's input.
type Spec struct {
	Tier      string   `json:"tier"`
	Argv      []string `json:"argv,omitempty"`
	Env       []string `json:"env,omitempty"`
	Cwd       string   `json:"cwd"` // absolute
	Workspace Folder   `json:"workspace"`
	// ReadOnly keeps the workspace as it is.
	ReadOnly bool `json:"read_only,omitempty"`
	// Scratch is a private folder for temporary files (L).
	Scratch string `json:"scratch,omitempty"`
	// Read and Write are further places, absolute.
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
	// Hide are absolute places that stay empty (N).
	Hide []string `json:"hide,omitempty"`
	// Protect are paths in the workspace that stay as they are, in the form of commands.Set.
	Protect []string `json:"protect,omitempty"`
	// Own are folders of repositories that programs have made, by device and inode: what is
	// protected of others is not of these.
	Own []Folder `json:"own,omitempty"`
	// Proxy is the port of 127.0.0.1 that leads out; 0: nothing does. In tier N the first
	// stage listens there and passes the listener to the server; in tier L the server
	// listens.
	Proxy int `json:"proxy,omitempty"`
	// Input says that the tool has an input; else it reads nothing.
	Input bool `json:"input,omitempty"`
	// UID and GID are whom the tool runs as.
	UID    int    `json:"uid"`
	GID    int    `json:"gid"`
	Limits Limits `json:"limits"`
	// ABI is the newest Landlock ABI to use; 0: what the kernel has.
	ABI int `json:"abi,omitempty"`
	// Without are layers to leave out.
	Without []string `json:"without,omitempty"`
	// Check is what the second stage tries in place of becoming a tool; nil: nothing.
	Check *Check `json:"check,omitempty"`
}

// Folder is a folder and which one it is, so that another one under its name is noticed.
type Folder struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	// Born is its creation time in ns: the inode number of a deleted one may be reused. 0:
	// unknown.
	Born int64 `json:"born,omitempty"`
}

// Limits bound one run. Zero fields bound nothing.
type Limits struct {
	CPU       time.Duration `json:"cpu,omitempty"`
	Memory    int64         `json:"memory,omitempty"`
	Processes int           `json:"processes,omitempty"`
	File      int64         `json:"file,omitempty"`
	Scratch   int64         `json:"scratch,omitempty"`
	DiskFloor int64         `json:"disk_floor,omitempty"`
	OpenFiles int           `json:"open_files,omitempty"`
}

// Check is what must be refused, and what must work, for the layers to count as holding.
type Check struct {
	Outside string `json:"outside"` // a file that must not be read
	Port    int    `json:"port"`    // of 127.0.0.1, where somebody listens
	Server  int    `json:"server"`  // a process that must not be reached
	User    string `json:"user"`    // the user namespace of the server, as /proc names it
	IPC     string `json:"ipc"`     // its ipc namespace
}

// Report is the first stage's output.
type Report struct {
	// Error is why the tool was not started; empty when it was.
	Error string `json:"error,omitempty"`
	// Missing says that there is no such program.
	Missing bool `json:"missing,omitempty"`
	Exit    int  `json:"exit"`
	Signal  int  `json:"signal,omitempty"`
	// Limit is the limit that ended the run; empty for none.
	Limit string `json:"limit,omitempty"`
	// Refused are the protected names that the tool was kept from, the first of them.
	Refused []string `json:"refused,omitempty"`
	// Made are folders of repositories that it has made, as in Spec.Own.
	Made []Folder `json:"made,omitempty"`
	// Layers are the layers that were applied.
	Layers []string `json:"layers"`
	// ABI is the Landlock ABI in use; 0 for none.
	ABI int `json:"abi,omitempty"`
	// Failed are the layers that did not hold in a check, with what got through.
	Failed map[string]string `json:"failed,omitempty"`
}

// The limits as Report.Limit names them.
const (
	LimitCPU       = "cpu"
	LimitMemory    = "memory"
	LimitProcesses = "processes"
	LimitDisk      = "disk"
)

func (s *Spec) with(layer string) bool {
	for _, w := range s.Without {
		if w == layer {
			return false
		}
	}
	switch layer {
	case LayerUser, LayerMount, LayerPID, LayerNet, LayerIPC:
		return s.Tier == Namespaces
	case LayerLimits:
		return true
	}
	return s.Tier != None
}

// With reports whether a run takes a layer on.
func (s *Spec) With(layer string) bool { return s.with(layer) }
